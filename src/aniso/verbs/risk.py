"""Stein's unbiased risk estimate: the error of a diffused image without a reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aniso.arrays import Array
from aniso.models import ImageDriven

# The change of the image that measures the divergence, as a part of the noise level.
_PROBE = 0.05


@dataclass(frozen=True, eq=False)
class Stop:
    """A diffused image, the diffused changed image, and the estimated mean squared error."""

    time: float
    image: Array
    changed: Array
    risk: float
    model: ImageDriven | None


class Judge:
    """Stein's unbiased risk estimate for images that are computed from the noisy one."""

    def __init__(self, image: Array, level: float) -> None:
        self.image = image
        self.level = level
        signs = np.random.default_rng(0).integers(0, 2, image.shape, dtype=np.int8)
        self.probe = (2 * signs - 1).astype(image.dtype)
        self.step = _PROBE * level
        self.changed = image + image.dtype.type(self.step) * self.probe
        self.start = Stop(0.0, image, self.changed, level**2, None)

    def covariance(self, result: Array, changed: Array) -> float:
        """Return the expected sum of noise times result over the pixels: σ² times the divergence."""
        if self.step == 0:
            return 0.0
        return self.level**2 / self.step * float(np.vdot(self.probe, changed - result))

    def risk(self, result: Array, changed: Array) -> float:
        """Return the expected mean squared error."""
        difference = result - self.image
        square = float(np.vdot(difference, difference))
        return (square + 2 * self.covariance(result, changed)) / self.image.size - self.level**2
