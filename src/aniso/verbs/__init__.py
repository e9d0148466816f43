"""Whole tasks: denoise, enhance, inpaint and upsample."""
