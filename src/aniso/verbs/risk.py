"""Stein's unbiased risk estimate: the error of a diffused image without a reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aniso.arrays import Array
from aniso.models import ImageDriven
from aniso.noise.correlation import blur_noise

# The change of the image that measures the divergence, as a part of the noise level.
_PROBE = 0.05


@dataclass(frozen=True, eq=False)
class Stop:
    """Diffused windows, the diffused changed windows, and the estimated mean squared error."""

    time: float
    image: list[Array]
    changed: list[Array]
    risk: float
    model: ImageDriven | None


class Judge:
    """Stein's unbiased risk estimate for windows (channels, …) of an image."""

    def __init__(self, windows: list[Array], level: float, correlation: float = 0.0) -> None:
        self.image = windows
        self.level, self.correlation = level, correlation
        self.size = sum(window.size for window in windows)
        random = np.random.default_rng(0)
        # Correlated like the noise, since the estimate holds for a change with the covariance of the noise.
        self.probe = [
            blur_noise(
                (2 * random.integers(0, 2, window.shape, dtype=np.int8) - 1).astype(window.dtype),
                correlation,
                first_axis=1,
            )
            for window in windows
        ]
        self.step = _PROBE * level
        self.changed = [
            window + window.dtype.type(self.step) * probe
            for window, probe in zip(windows, self.probe, strict=True)
        ]
        self.start = Stop(0.0, self.image, self.changed, level**2, None)

    def risk(self, result: list[Array], changed: list[Array]) -> float:
        """Return the expected mean squared error of diffused windows."""
        square = 0.0
        for start, one in zip(self.image, result, strict=True):
            difference = one - start
            square += float(np.vdot(difference, difference))
        return square / self.size + 2 * self.covariance(result, changed) - self.level**2

    def covariance(self, result: list[Array], changed: list[Array]) -> float:
        """Return the expected product of noise and result at a pixel: σ² times the divergence."""
        if self.step == 0:
            return 0.0
        pairs = zip(self.probe, result, changed, strict=True)
        total = sum(float(np.vdot(probe, other - one)) for probe, one, other in pairs)
        return self.level**2 / self.step * total / self.size
