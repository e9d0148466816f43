"""Tests of the napari plugin."""
