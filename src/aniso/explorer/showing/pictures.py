"""Arrays as bytes that a browser shows."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from aniso.explorer.computing.blocks import block_means

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

#: Larger pictures are sent coarser, and what is visible of them once more as it is.
LARGEST_SIDE = 2048
# Lossless pictures up to this many pixels: beyond it they take too long on their way.
_LOSSLESS = 2**21
_QUALITY = 90


@dataclass(frozen=True)
class Encoded:
    """A picture on its way to the page."""

    content: bytes
    kind: str
    width: int
    height: int


def shown(image: Array, grey_range: tuple[float, float]) -> Bytes:
    """8-bit grey (H, W) or RGB (H, W, 3), from black at the one end of the range to white at the other.

    Channels that are not colours are averaged. NaN is black.

    Examples
    --------
    >>> import numpy as np
    >>> from aniso.explorer import pictures
    >>> pictures.shown(np.array([[-1.0, 0.5, 2.0]]), (0.0, 1.0))
    array([[  0, 128, 255]], dtype=uint8)
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
    """The result minus the image around mid-grey, and how many grey values white stands for.

    A finer result is compared in the means of its blocks. `white` is given where this is a part of something
    larger; else nearly all differences fit in.
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


def encoded(image: Bytes, *, lossless: bool) -> Encoded:
    """As PNG, or as JPEG where it has to be quick."""
    height, width = image.shape[:2]
    if lossless and height * width <= _LOSSLESS:
        return _encoded(image, "PNG", compress_level=1)
    return _encoded(image, "JPEG", quality=_QUALITY, subsampling=0)


def reduction(shape: tuple[int, ...], largest: int = LARGEST_SIDE) -> int:
    """By which factor an image of this shape is sent coarser."""
    return -(-max(shape[:2]) // largest)


def tinted(strength: Array, colour: tuple[int, int, int]) -> Encoded:
    """A veil of one colour, as opaque as the strength (0 to 1) says, as PNG with alpha."""
    veil = np.empty((*strength.shape, 4), np.uint8)
    veil[..., :3] = colour
    veil[..., 3] = np.clip(255 * strength, 0, 255)
    return _encoded(veil, "PNG", compress_level=1)  # JPEG has no alpha


def _encoded(image: Bytes, kind: str, **options: Any) -> Encoded:
    picture, stream = Image.fromarray(image), io.BytesIO()
    picture.save(stream, kind, **options)
    return Encoded(stream.getvalue(), f"image/{kind.lower()}", picture.width, picture.height)
