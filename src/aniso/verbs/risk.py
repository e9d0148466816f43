"""Stein's unbiased risk estimate: the error of a diffused image, without knowing the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso.models import ImageDriven

Image = npt.NDArray[Any]


# The image is changed by this part of the noise to see how strongly the result follows.
_PROBE = 0.05


@dataclass(frozen=True, eq=False)
class Stop:
    """A diffused image, what became of the changed one, and the estimated mean squared error."""

    time: float
    image: Image
    changed: Image
    risk: float
    model: ImageDriven | None


class Judge:
    """Stein's unbiased risk estimate for images that were computed from the noisy one."""

    def __init__(self, image: Image, level: float) -> None:
        self.image = image
        self.level = level
        signs = np.random.default_rng(0).integers(0, 2, image.shape, dtype=np.int8)
        self.probe = (2 * signs - 1).astype(image.dtype)
        self.step = _PROBE * level
        self.changed = image + image.dtype.type(self.step) * self.probe
        self.start = Stop(0.0, image, self.changed, level**2, None)

    def covariance(self, result: Image, changed: Image) -> float:
        """Σ of noise times result, over the pixels, as far as it can be expected: σ² times the divergence."""
        if self.step == 0:
            return 0.0
        return self.level**2 / self.step * float(np.vdot(self.probe, changed - result))

    def risk(self, result: Image, changed: Image) -> float:
        """The expected mean squared error."""
        difference = result - self.image
        square = float(np.vdot(difference, difference))
        return (square + 2 * self.covariance(result, changed)) / self.image.size - self.level**2
