"""Learned diffusions as data: what runs a trained net without PyTorch."""
