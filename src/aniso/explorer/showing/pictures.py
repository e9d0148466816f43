"""Arrays as pictures for the browser, and an album of those that a page can fetch."""

from __future__ import annotations

import io
import itertools
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from aniso.arrays import Array
from aniso.explorer.choosing.scene import block_means

Bytes = npt.NDArray[np.uint8]

#: Larger pictures are sent at lower resolution, and their visible part at full resolution.
LARGEST_SIDE = 2048
# Larger pictures take too long to send losslessly.
_LOSSLESS = 2**21
_QUALITY = 90
#: Slots of the pictures on the stencil tab, which do not depend on the image, and their captions.
RINGS = {"rings-before": "rings", "rings-after": "after diffusion along the rings"}
# Number of pictures of each slot that are kept for pages that fetch slowly.
_KEPT = 3


@dataclass(frozen=True)
class Encoded:
    """An encoded picture."""

    content: bytes
    kind: str


def shown(image: Array, grey_range: tuple[float, float]) -> Bytes:
    """Return 8-bit grey (H, W) or RGB (H, W, 3) values, from black to white over the grey range.

    Channels that are not colours are averaged. NaN is black.
    """
    if image.ndim == 3 and image.shape[2] != 3:
        image = image[..., :3] if image.shape[2] == 4 else image.mean(axis=2)
    if image.dtype == np.uint8 and grey_range == (0.0, 255.0):
        return image
    low, high = grey_range
    scaled = np.subtract(image, low, dtype=np.float32)
    scaled *= 255 / (high - low)
    scaled += 0.5
    np.clip(scaled, 0, 255, out=scaled)
    if image.dtype.kind == "f":
        np.nan_to_num(scaled, copy=False)
    return scaled.astype(np.uint8)


def difference(
    before: Array, after: Array, grey_range: tuple[float, float], white: float | None = None
) -> tuple[Bytes, float]:
    """Return the result minus the image around mid-grey, and the difference that white stands for.

    A finer result is compared by its block means. `white` is given for a part of a larger picture; by
    default nearly all differences are in range.
    """
    factor = after.shape[0] // before.shape[0]
    coarse = block_means(after, factor) if factor > 1 else after
    change = np.subtract(coarse, before, dtype=np.float32)
    change = change.mean(axis=2) if change.ndim == 3 else change
    np.nan_to_num(change, copy=False)
    if white is None:
        some = abs(change.reshape(-1)[:: max(1, change.size // 2**17)])
        white = max(float(np.quantile(some, 0.995)), 1e-3 * (grey_range[1] - grey_range[0]))
    return shown(change, (-white, white)), white


def encode(image: Bytes, *, lossless: bool) -> Encoded:
    """Encode as PNG, or as JPEG if it has to be fast."""
    height, width = image.shape[:2]
    if lossless and height * width <= _LOSSLESS:
        return _encode(image, "PNG", compress_level=1)
    return _encode(image, "JPEG", quality=_QUALITY, subsampling=0)


def reduction(shape: tuple[int, ...], largest: int = LARGEST_SIDE) -> int:
    """Return the factor by which an image of this shape is reduced."""
    return -(-max(shape[:2]) // largest)


def tinted(strength: Array, colour: tuple[int, int, int]) -> Encoded:
    """Return a layer of one colour as PNG, with the strength (0 to 1) as alpha."""
    veil = np.empty((*strength.shape, 4), np.uint8)
    veil[..., :3] = colour
    veil[..., 3] = np.clip(255 * strength, 0, 255)
    return _encode(veil, "PNG", compress_level=1)  # JPEG has no alpha


def _encode(image: Bytes, kind: str, **options: Any) -> Encoded:
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, kind, **options)
    return Encoded(stream.getvalue(), f"image/{kind.lower()}")


class Album:
    """Pictures by slot and number.

    Numbers are unique, so that a page never draws a newer picture at the place of an older one.
    """

    def __init__(self) -> None:
        self._slots: dict[str, dict[int, Encoded]] = {}
        self._numbers = itertools.count(1)

    def add(self, slot: str, picture: Encoded) -> int:
        """Keep a picture; return its number."""
        number, own = next(self._numbers), self._slots.setdefault(slot, {})
        own[number] = picture
        for old in list(own)[:-_KEPT]:
            del own[old]
        return number

    def get(self, slot: str, number: int) -> Encoded | None:
        """Return the picture of this number; None if it was replaced or dropped."""
        return self._slots.get(slot, {}).get(number)

    def drop(self, slot: str) -> bool:
        """Remove a slot; return whether it contained anything."""
        return self._slots.pop(slot, None) is not None

    def clear(self, but: Collection[str] = ()) -> None:
        """Remove all slots except these."""
        self._slots = {slot: own for slot, own in self._slots.items() if slot in but}
