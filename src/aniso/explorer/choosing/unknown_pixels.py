"""Unknown pixels, to be filled in: drawn with a brush, or chosen at random."""

from __future__ import annotations

import base64
import itertools
import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from aniso.arrays import Mask
from aniso.explorer.choosing.scene import block_means


@dataclass(frozen=True)
class RandomPixels:
    """A fraction of all pixels, chosen at random."""

    share: float = 0.9
    seed: int = 0
    _kept: dict[tuple[int, ...], Mask] = field(default_factory=dict, compare=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    def mask(self, shape: tuple[int, ...]) -> Mask:
        """Return True where a pixel is unknown; cached, because several threads ask for it."""
        with self._lock:
            if shape not in self._kept:
                self._kept.clear()
                mask = np.random.default_rng(self.seed).random(shape) < self.share
                mask.flags.writeable = False
                self._kept[shape] = mask
            return self._kept[shape]

    def line(self, shape: tuple[int, ...]) -> str:
        """Return the same mask as a line of Python."""
        return f"np.random.default_rng({self.seed}).random({shape}) < {self.share!r}"


class LazyMask(NamedTuple):
    """A mask that is computed by the thread that needs it, because it may be large.

    `mask` returns it for the filtered image or volume, `here` for the image on the page.
    """

    mask: Callable[[], Mask]
    here: Callable[[], Mask]


def paint(mask: Mask, points: Sequence[Sequence[float]], radius: float, *, erase: bool = False) -> None:
    """Paint a stroke of a round brush through these points (x, y), in pixels, on the mask itself.

    The time does not depend on the size of the mask.
    """
    height, width = mask.shape
    ways = list(itertools.pairwise(points)) or [(points[0], points[0])]
    for (x0, y0), (x1, y1) in ways:
        left, right = _span(min(x0, x1) - radius, max(x0, x1) + radius, width)
        top, bottom = _span(min(y0, y1) - radius, max(y0, y1) + radius, height)
        x, y = np.arange(left, right) + 0.5, np.arange(top, bottom)[:, np.newaxis] + 0.5
        length = (x1 - x0) ** 2 + (y1 - y0) ** 2
        along = np.clip(((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length, 0, 1) if length else 0.0
        near = np.hypot(x - x0 - along * (x1 - x0), y - y0 - along * (y1 - y0)) <= radius
        mask[top:bottom, left:right][near] = not erase


def mask_line(mask: Mask) -> str:
    """Return a line of Python that gives this mask, bit by bit."""
    packed = base64.b85encode(zlib.compress(np.packbits(mask).tobytes(), 9)).decode("ascii")
    bits = f"np.frombuffer(zlib.decompress(base64.b85decode({packed!r})), np.uint8)"
    return f"np.unpackbits({bits}, count={mask.size}).reshape{mask.shape}.astype(bool)"


def known_means(image: Any, mask: Mask, factor: int) -> tuple[Any, Mask]:
    """Return image and mask on a coarser grid: means of known pixels, unknown if all are."""
    weights = (~mask).astype(np.float32)
    known = block_means(weights, factor)
    unknown = known < 1e-6
    if image.ndim == 3:
        weights, known = weights[..., np.newaxis], known[..., np.newaxis]
    coarse = block_means(np.where(weights > 0, image, 0) * weights, factor) / np.maximum(known, 1e-6)
    return coarse.astype(np.float32), unknown


def _span(low: float, high: float, length: int) -> tuple[int, int]:
    return max(0, int(low)), max(0, min(length, int(high) + 1))
