"""Arrays as pictures for the browser."""

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

#: Larger pictures are sent at lower resolution, and their visible part at full resolution.
LARGEST_SIDE = 2048
# Larger pictures take too long to send losslessly.
_LOSSLESS = 2**21
_QUALITY = 90


@dataclass(frozen=True)
class Encoded:
    """An encoded picture."""

    content: bytes
    kind: str
    width: int
    height: int


def shown(image: Array, grey_range: tuple[float, float]) -> Bytes:
    """Return 8-bit grey (H, W) or RGB (H, W, 3) values, from black to white over the grey range.

    Channels that are not colours are averaged. NaN is black.

    Examples
    --------
    >>> import numpy as np
    >>> from aniso.explorer.showing import pictures
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


def encoded(image: Bytes, *, lossless: bool) -> Encoded:
    """Encode as PNG, or as JPEG if it has to be fast."""
    height, width = image.shape[:2]
    if lossless and height * width <= _LOSSLESS:
        return _encoded(image, "PNG", compress_level=1)
    return _encoded(image, "JPEG", quality=_QUALITY, subsampling=0)


def reduction(shape: tuple[int, ...], largest: int = LARGEST_SIDE) -> int:
    """Return the factor by which an image of this shape is reduced."""
    return -(-max(shape[:2]) // largest)


def tinted(strength: Array, colour: tuple[int, int, int]) -> Encoded:
    """Return a layer of one colour as PNG, with the strength (0 to 1) as alpha."""
    veil = np.empty((*strength.shape, 4), np.uint8)
    veil[..., :3] = colour
    veil[..., 3] = np.clip(255 * strength, 0, 255)
    return _encoded(veil, "PNG", compress_level=1)  # JPEG has no alpha


def _encoded(image: Bytes, kind: str, **options: Any) -> Encoded:
    picture, stream = Image.fromarray(image), io.BytesIO()
    picture.save(stream, kind, **options)
    return Encoded(stream.getvalue(), f"image/{kind.lower()}", picture.width, picture.height)
