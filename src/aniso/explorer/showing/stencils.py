"""The values of the stencil tab: weights, steps, and the ring test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import aniso
from aniso import samples
from aniso.explorer.choosing.controls import Control
from aniso.explorer.showing import pictures
from aniso.models import FixedTensor
from aniso.schemes import FED
from aniso.stability import stencil_properties
from aniso.stencil import DeltaStencil

_SIZE = 129


#: The controls of the tab: name, label, symbol, unit, meaning, kind, value, default, low and high end.
CONTROLS = {
    row[0]: Control(row[0], row[0].capitalize(), *row[1:4], "number", row[4], *row[4:])
    for row in (
        ("alpha", "α", "", "larger is sharper; at 0.5 checkerboard patterns are not damped", 0.4, 0.0, 0.5),
        ("gamma", "γ", "", "1 is sharpest and allows the largest steps", 1.0, -1.0, 1.0),
        ("angle", "φ", "°", "direction of the diffusion, from right to down", 30.0, 0.0, 180.0),
        ("across", "λ₂", "", "diffusivity across this direction; along it, it is 1", 0.0, 0.0, 1.0),
        ("time", "t", "px²", "diffusion time of the ring test", 60.0, 0.0, 100.0),
    )
}
#: Slots of the two pictures, and their captions.
RINGS = {"rings-before": "rings", "rings-after": "after diffusion along the rings"}


@dataclass(frozen=True)
class StencilChoice:
    """The chosen parameters."""

    alpha: float = 0.4
    gamma: float = 1.0
    angle: float = 30.0
    across: float = 0.0
    time: float = 60.0

    @property
    def stencil(self) -> DeltaStencil:
        """The member of the family."""
        return DeltaStencil(self.alpha, self.gamma)

    def facts(self) -> dict[str, Any]:
        """Return weights, entries and step limits for the tensor."""
        x, y = math.cos(math.radians(self.angle)), math.sin(math.radians(self.angle))
        a, b, c = x * x + self.across * y * y, (1 - self.across) * x * y, y * y + self.across * x * x
        return stencil_properties(self.stencil, a, b, c)


@lru_cache(maxsize=1)
def _rings() -> tuple[Any, Any]:
    pattern = samples.ring_pattern(_SIZE).astype(np.float32)
    return pattern, FixedTensor.from_entries(*samples.ring_tensor(_SIZE))


@dataclass(frozen=True)
class RingTest:
    """Rings after diffusion along the rings, which should not change them."""

    before: pictures.Encoded
    after: pictures.Encoded
    changed: float

    @classmethod
    def of(cls, choice: StencilChoice) -> RingTest:
        """Diffuse the rings."""
        rings, tensors = _rings()
        after = aniso.diffuse(rings, tensors, choice.time, stencil=choice.stencil, scheme=FED(1))
        changed = float(np.linalg.norm(after - rings) / np.linalg.norm(rings))

        def seen(image: Any) -> pictures.Encoded:
            return pictures.encode(pictures.shown(image, (-1.0, 1.0)), lossless=True)

        return cls(seen(rings), seen(after), changed)
