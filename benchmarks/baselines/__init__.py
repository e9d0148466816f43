"""Ordinary implementations of edge-enhancing diffusion, so that speed ratios mean something."""
