"""Statistics of an image that determine the ranges of sliders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import estimates

Array = npt.NDArray[Any]

# Largest side of the part that is measured, in pixels, by the number of axes.
_SIDE = {2: 512, 3: 80}


@dataclass(frozen=True)
class Measures:
    """Statistics of an image or volume: noise level, typical and steepest gradient, shortest side."""

    noise: float
    typical: float
    steepest: float
    side: int

    @classmethod
    def of(cls, image: Array, channel_axis: int | None) -> Measures:
        """Measure the image; only its middle part, if it is large."""
        shape = image.shape if channel_axis is None else image.shape[:-1]
        longest = _SIDE[len(shape)]
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
    """Return the numbers of values that are NaN, and that are infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from aniso.explorer.choosing import measures
    >>> measures.invalid_pixels(np.array([[1.0, np.nan], [np.inf, np.nan]]))
    (2, 1)
    """
    if image.dtype.kind != "f":
        return 0, 0
    return int(np.isnan(image).sum()), int(np.isinf(image).sum())


def grey_range(pixels: Array) -> tuple[float, float]:
    """Return the values to show as black and as white: the range of known pixels without extremes.

    Examples
    --------
    >>> import numpy as np
    >>> from aniso.explorer.choosing import measures
    >>> measures.grey_range(np.full((3, 4), 7.0))
    (6.5, 7.5)
    """
    some = pixels.reshape(-1)[:: max(1, pixels.size // 2**20)]
    known = some[np.isfinite(some)] if some.dtype.kind == "f" else some
    low, high = np.quantile(known, (0.001, 0.999)) if known.size else (0.0, 1.0)
    return (float(low), float(high)) if high > low else (float(low) - 0.5, float(low) + 0.5)
