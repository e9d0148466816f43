"""Noise whose level is given for each pixel: the image is scaled so that the level is the same everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from aniso import arrays
from aniso.arrays import is_dask
from aniso.blocks.lazy import compute
from aniso.blocks.sample import windows


@dataclass(frozen=True, eq=False)
class NoiseMap:
    """Levels relative to their root mean square, `level`, with the axes of the image.

    Differences from the grey value `centre` are scaled, so that images far from 0 change little.
    """

    relative: Any
    level: float
    centre: float

    @staticmethod
    def is_map(noise: Any) -> bool:
        """Return whether noise is an array with a value for each pixel, rather than one for each channel."""
        return hasattr(noise, "shape") and hasattr(noise, "dtype") and len(noise.shape) > 1

    @classmethod
    def of(cls, noise: Any, image: Any, channel_axis: int | None, frame_axis: int | None) -> NoiseMap:
        """Check a map for an image; one without the axis of frames serves all of them."""
        array = image if is_dask(image) else arrays.as_array("image", image)
        levels = noise if is_dask(noise) else np.asarray(noise)
        axes = [axis % array.ndim for axis in (channel_axis, frame_axis) if axis is not None]
        for dropped in (axes, axes[:1] if channel_axis is not None else []):
            shape = tuple(n for axis, n in enumerate(array.shape) if axis not in dropped)
            if levels.shape == shape:
                break
        else:
            wanted = tuple(n for axis, n in enumerate(array.shape) if axis not in axes)
            raise ValueError(
                f"noise must have one level for each pixel, as an array of shape {wanted}, or be a number, a "
                f"kind or a model, got an array of shape {levels.shape}."
            )
        if levels.dtype.kind not in "fiu":
            raise ValueError(f"noise must be an array of real numbers, got {levels.dtype}.")
        # From the windows that a plan is made from, so that arrays in blocks give the same numbers.
        sample = _sample(levels).astype(np.float64)
        whole = sample if is_dask(levels) else levels
        if not (np.isfinite(whole).all() and (whole > 0).all()):
            raise ValueError(
                "noise must be positive and finite everywhere. Give pixels that are not to be trusted as a "
                "mask."
            )
        level = float(np.sqrt(np.mean(np.square(sample))))
        pixels = _sample(array).astype(np.float64)
        known = pixels[np.isfinite(pixels)]
        centre = float(np.median(known)) if known.size else 0.0
        relative = levels.astype(arrays.result_type(array.dtype)) / level
        for axis in sorted(dropped):
            relative = np.expand_dims(relative, axis)
        return cls(relative.astype(arrays.result_type(array.dtype)), level, centre)

    def divide(self, image: Any) -> Any:
        """Return an image with noise of one level."""
        array = image if is_dask(image) else arrays.as_array("image", image)
        centre = self.relative.dtype.type(self.centre)
        return (array.astype(self.relative.dtype) - centre) / self.relative + centre

    def multiply(self, image: Any) -> Any:
        """Return grey values as they were."""
        centre = self.relative.dtype.type(self.centre)
        return (image - centre) * self.relative + centre


def _sample(array: Any) -> Any:
    """Return the pixels of windows of an array as a vector."""
    ndim = min(array.ndim, 3)  # further axes are taken whole
    return np.concatenate(compute([array[window].ravel() for window in windows(array.shape[:ndim])]))
