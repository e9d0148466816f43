"""Figures of an image from which the ranges of sliders follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import estimates

Array = npt.NDArray[Any]

# Estimates that only set the ranges of sliders look at so many pixels per side, by the number of axes.
_LOOK_AT = {2: 512, 3: 80}


@dataclass(frozen=True)
class Measures:
    """Figures of an image or volume from which ranges follow, and what "auto" takes for models."""

    noise: float
    typical: float
    steepest: float
    side: int

    @classmethod
    def of(cls, image: Array, channel_axis: int | None) -> Measures:
        """Of the middle of the image, if it is large."""
        shape = image.shape if channel_axis is None else image.shape[:-1]
        longest = _LOOK_AT[len(shape)]
        starts = [max(0, (n - longest) // 2) for n in shape]
        middle = tuple(slice(start, start + longest) for start in starts)
        part = np.nan_to_num(image[middle].astype(np.float64), posinf=0.0, neginf=0.0)
        noise = estimates.noise_level(part, channel_axis=channel_axis)

        def strength(quantile: float) -> float:
            return estimates.contrast(part, noise=0.0, quantile=quantile, channel_axis=channel_axis)

        spread = float(part.max() - part.min()) or 1.0
        typical = estimates.contrast(part, noise=noise, quantile=0.8, channel_axis=channel_axis)
        return cls(noise, typical or 0.01 * spread, strength(0.999) or 0.1 * spread, min(shape))


def invalid_pixels(image: Array) -> tuple[int, int]:
    """How many numbers are NaN, and how many are infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from aniso.explorer import measures
    >>> measures.invalid_pixels(np.array([[1.0, np.nan], [np.inf, np.nan]]))
    (2, 1)
    """
    if image.dtype.kind != "f":
        return 0, 0
    return int(np.isnan(image).sum()), int(np.isinf(image).sum())


def grey_range(pixels: Array) -> tuple[float, float]:
    """What is to be shown as black and as white: all but the extremes of the known pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from aniso.explorer import measures
    >>> measures.grey_range(np.full((3, 4), 7.0))
    (6.5, 7.5)
    """
    some = pixels.reshape(-1)[:: max(1, pixels.size // 2**20)]
    known = some[np.isfinite(some)] if some.dtype.kind == "f" else some
    low, high = np.quantile(known, (0.001, 0.999)) if known.size else (0.0, 1.0)
    return (float(low), float(high)) if high > low else (float(low) - 0.5, float(low) + 0.5)
