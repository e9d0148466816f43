"""Synthetic images, and the photographs of scikit-image."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from aniso.arrays import Field
from aniso.samples import common
from aniso.samples.common import Sample

#: Names of the photographs that come with scikit-image itself, so that nothing is downloaded.
PHOTOGRAPHS = (
    "astronaut", "brick", "camera", "cell", "coffee", "coins", "grass", "gravel", "hubble_deep_field",
    "moon", "page", "text",
)  # fmt: skip


def rings(size: int = 256, *, period: float = 12.0, noise: float = 40.0, seed: int = 0) -> Sample:
    """Draw dark concentric lines on a bright background, with gaps and noise.

    Parameters
    ----------
    size : int
        Pixels along each side.
    period : float
        Distance between lines in pixels.
    noise : float
        Standard deviation of the noise in grey values.
    seed : int
        Random seed, for the noise and the gaps.

    Returns
    -------
    Sample
        ``image`` with noise and gaps, ``truth`` without, ``gaps`` True where a line is interrupted, all of
        shape (size, size).

    Examples
    --------
    >>> import aniso
    >>> sample = aniso.samples.rings(size=64, noise=0.0)
    >>> sample.image.shape, bool(sample.gaps.any())
    ((64, 64), True)
    """
    y, x = common.centred_grid(size, 2)
    return _interrupted_lines(np.hypot(x, y), period, noise, seed)


def fingerprint(size: int = 256, *, period: float = 9.0, noise: float = 40.0, seed: int = 0) -> Sample:
    """Draw dark lines that flow like the ridges of a finger, with gaps and noise.

    Parameters
    ----------
    size, noise, seed
        As for :func:`rings`.
    period : float
        Approximate distance between lines in pixels; it varies over the image.

    Returns
    -------
    Sample
        As for :func:`rings`.

    Examples
    --------
    >>> import aniso
    >>> float(aniso.samples.fingerprint(size=64, noise=0.0).truth.max()) <= 255
    True
    """
    y, x = common.centred_grid(size, 2) / size
    y = y + 0.12
    swirl = 0.11 * np.sin(5.1 * y + 1.3) + 0.05 * np.cos(7.3 * x - 2.1 * y)
    distance = np.sqrt((1.25 * (x + swirl)) ** 2 + (0.85 * y) ** 2 + 1e-3) + 0.12 * y
    return _interrupted_lines(distance * size, period, noise, seed)


def shapes(size: int = 256, *, noise: float = 30.0, seed: int = 0) -> Sample:
    """Draw a disc, a bar, a triangle, a ring and a ramp with sharp edges and corners, and add noise.

    Parameters
    ----------
    size, noise, seed
        As for :func:`rings`.

    Returns
    -------
    Sample
        ``image`` with noise and ``truth`` without, of shape (size, size); no gaps.

    Examples
    --------
    >>> import aniso
    >>> aniso.samples.shapes(size=64).truth.shape
    (64, 64)
    """
    y, x = common.centred_grid(size, 2) / size
    slanted = 0.9 * x + 0.436 * y
    # Signed distances (negative inside) and grey values.
    drawn = [
        (np.hypot(x + 0.22, y + 0.22) - 0.17, 205.0),
        (np.maximum(abs(slanted - 0.26) - 0.035, abs(-0.436 * x + 0.9 * y) - 0.42), 170.0),
        (np.maximum(np.maximum(-y + 0.1, y - 0.4), abs(x + 0.2) - 0.75 * (y - 0.1)), 30.0),
        (abs(np.hypot(x - 0.22, y + 0.24) - 0.13) - 0.03, 20.0),
    ]
    truth = 95.0 + 40.0 * (x + 0.5)
    for distance, grey in drawn:
        truth = truth + _coverage(distance, 1 / size) * (grey - truth)
    image = common.with_noise(truth, noise, common.generator(seed))
    return Sample(image, truth, np.zeros(truth.shape, bool))


def lighthouse(size: int = 256, *, noise: float = 25.0, seed: int = 0) -> Sample:
    """Paint a lighthouse by the sea in colours, and add noise.

    It has a smooth sky and sea, sharp and oblique contours, and fine waves, at any size. The noise is
    independent in the three channels.

    Parameters
    ----------
    size, noise, seed
        As for :func:`rings`.

    Returns
    -------
    Sample
        ``image`` with noise and ``truth`` without, of shape (size, size, 3); no gaps.

    Examples
    --------
    >>> import aniso
    >>> sample = aniso.samples.lighthouse(size=64)
    >>> sample.image.shape, bool(0 <= sample.truth.min() and sample.truth.max() <= 255)
    ((64, 64, 3), True)
    """
    y, x = common.centred_grid(size, 2) / size
    truth = _paint_lighthouse(x, y, 1 / size)
    image = common.with_noise(truth, noise, common.generator(seed))
    return Sample(image, truth, np.zeros(truth.shape[:2], bool))


def ring_pattern(
    size: int = 129, *, k_max: float = 0.5 * np.pi, radius: float = 60.0, width: float = 6.0
) -> Field:
    """Draw rings whose frequency grows with the radius up to `k_max`, where they fade out.

    Values lie between −1 and 1. Diffusion with :func:`ring_tensor` should not change the pattern at all:
    any change is dissipation of the stencil.

    Parameters
    ----------
    size : int
        Pixels along each side.
    k_max : float
        Largest frequency, in radians per pixel: π/2 is a wavelength of four pixels.
    radius, width : float
        Where the rings fade out, and over which distance, in pixels.

    Returns
    -------
    array, shape (size, size)

    Examples
    --------
    >>> import aniso
    >>> aniso.samples.ring_pattern().shape
    (129, 129)
    """
    y, x = common.centred_grid(size, 2)
    return common.fading_wave(np.hypot(x, y), k_max, radius, width)


def ring_tensor(size: int = 129) -> tuple[Field, Field, Field]:
    """Return tensors over the cells of a square image for diffusion along circles around its centre.

    Parameters
    ----------
    size : int
        Pixels along each side of the image.

    Returns
    -------
    a, b, c : array, shape (size+1, size+1)
        For :meth:`aniso.FixedTensor.from_entries <aniso.models.FixedTensor.from_entries>`. The eigenvalues
        are 1 along the circles and 0 across them.

    Examples
    --------
    >>> import aniso
    >>> [entry.shape for entry in aniso.samples.ring_tensor(129)]
    [(130, 130), (130, 130), (130, 130)]
    """
    y, x = common.centred_grid(size, 2, extra=1)
    r2 = np.maximum(x**2 + y**2, 1e-12)
    return y**2 / r2, -x * y / r2, x**2 / r2


def photograph(name: str) -> npt.NDArray[Any]:
    """Return a photograph of scikit-image, unchanged: uint8, grey (H, W) or colour (H, W, 3).

    Parameters
    ----------
    name : str
        One of :data:`PHOTOGRAPHS`. Needs scikit-image: ``pip install "aniso[photos]"``.

    Returns
    -------
    array, shape (H, W) or (H, W, 3)
        A new array.

    Examples
    --------
    >>> import aniso
    >>> aniso.samples.photograph("camera").shape
    (512, 512)
    """
    if str(name) not in PHOTOGRAPHS:
        raise ValueError(f"there is no photograph {name!r}. The names are: {', '.join(PHOTOGRAPHS)}.")
    try:
        from skimage import data
    except ImportError as error:
        raise ImportError(
            'the photographs come with scikit-image, which is not installed: pip install "aniso[photos]".'
        ) from error
    return np.asarray(getattr(data, name)())


def _interrupted_lines(distance: Field, period: float, noise: float, seed: int) -> Sample:
    """Draw dark lines at odd multiples of half a period, cut by small discs of mid-grey."""
    period = common.check_positive("period", period, "the distance between lines")
    phase = 2 * np.pi * distance / period
    rng = common.generator(seed)
    truth = 127.5 + 127.5 * np.cos(phase)
    rows, columns = np.nonzero(np.cos(phase) < -0.9)
    wanted = int(truth.size / (5 * period) ** 2)
    chosen = rng.choice(len(rows), size=min(wanted, len(rows)), replace=False)
    cut = np.zeros(truth.shape, bool)
    y, x = np.indices(truth.shape)
    for row, column in zip(rows[chosen], columns[chosen], strict=True):
        cut |= np.hypot(y - row, x - column) < 0.4 * period
    gaps = cut & (truth < 127.5)
    return Sample(common.with_noise(np.where(gaps, 127.5, truth), noise, rng), truth, gaps)


def _coverage(signed_distance: Field, pixel: float) -> Field:
    """Return how much of each pixel a shape covers; its signed distance is negative inside."""
    return np.clip(0.5 - signed_distance / pixel, 0, 1)


def _paint_lighthouse(x: Field, y: Field, pixel: float) -> Field:
    """Paint the scene over coordinates from −½ to ½, y downwards, from the back to the front."""

    def paint(cover: Field, *colours: Any, along: Field | float = 0.0) -> None:
        """Put a colour, or a gradient between two, over what is there."""
        blend = np.clip(along, 0, 1)
        first, last = (np.array(colour, float) for colour in (colours[0], colours[-1]))
        colour = first + np.asarray(blend)[..., np.newaxis] * (last - first)
        scene[...] += cover[..., np.newaxis] * (colour - scene)

    def inside(signed_distance: Field) -> Field:
        return _coverage(signed_distance, pixel)

    scene = np.zeros((*x.shape, 3))
    everywhere = np.ones(x.shape)
    horizon = 0.12
    paint(everywhere, (62, 96, 158), (250, 200, 150), along=(y + 0.5) / (horizon + 0.5))
    paint(inside(np.hypot(x - 0.22, y - 0.02) - 0.105), (255, 238, 176))
    paint(inside(0.075 - 0.045 * np.sin(7 * x + 0.6) - 0.02 * np.sin(19 * x) - y), (150, 128, 152))
    paint(inside(0.115 - 0.05 * np.sin(4.3 * x + 2.4) - y), (104, 98, 130))

    # The sea: waves that get longer towards the shore, and the sun in them.
    sea = inside(horizon - y)
    depth = np.maximum(y - horizon, pixel)
    paint(sea, (84, 122, 156), (22, 48, 88), along=depth / 0.38)
    waves = np.sin(34 * np.log(depth + 0.06) + 2.2 * np.sin(9 * x + 14 * y))
    visible = np.clip(depth / (24 * pixel), 0, 1)
    paint(sea * visible * 0.16 * (1 + waves), (150, 188, 205))
    gleam = np.exp(-(((x - 0.22) / (0.05 + 0.16 * depth)) ** 2))
    paint(sea * gleam * (0.35 + 0.3 * visible * waves), (255, 214, 150))

    # A boat: hull, mast and two sails.
    paint(inside(np.maximum(abs(y - 0.265) - 0.012, abs(x - 0.3) - 0.06 + 1.6 * (y - 0.265))), (52, 34, 40))
    paint(inside(np.maximum(abs(x - 0.303) - 0.003, abs(y - 0.17) - 0.09)), (52, 34, 40))
    for side, slope, colour in ((1.0, 0.42, (246, 240, 228)), (-1.0, 0.3, (216, 92, 70))):
        away = side * (x - 0.303) - 0.008
        sail = np.maximum(np.maximum(-away, y - 0.245), away - slope * (y - 0.095))
        paint(inside(sail / 1.1), colour, (170, 160, 160), along=away / 0.12)

    # The cliff, and the tower on it.
    shore = 0.2 + 0.07 * np.tanh(9 * (x + 0.16)) + 0.012 * np.sin(31 * x) + 1.1 * np.maximum(x + 0.06, 0)
    paint(inside((shore - y) / 1.3), (96, 116, 64), (40, 44, 38), along=(y - shore) / 0.16)
    from_axis = x + 0.24
    half_width = 0.05 + 0.06 * (y + 0.26)
    tower = np.maximum(abs(from_axis) - half_width, abs(y + 0.03) - 0.225)
    light = (from_axis + half_width) / (2 * half_width)
    paint(inside(tower), (250, 246, 238), (150, 140, 150), along=light)
    band = 0.035 * (2 * abs(((y + 0.35 * from_axis) / 0.15 + 0.5) % 1 - 0.5) - 0.5) * 2
    paint(inside(np.maximum(tower, band)), (206, 46, 44), (110, 22, 40), along=light)
    paint(inside(np.maximum(abs(from_axis) - 0.065, abs(y + 0.262) - 0.008)), (48, 40, 52))
    paint(inside(np.maximum(abs(from_axis) - 0.034, abs(y + 0.3) - 0.032)), (255, 232, 140))
    for bar in (-0.034, 0.0, 0.034):
        paint(inside(np.maximum(abs(from_axis - bar) - 0.0035, abs(y + 0.3) - 0.032)), (48, 40, 52))
    paint(inside(np.maximum(y + 0.33, 0.72 * abs(from_axis) - 0.035 - (y + 0.335))), (150, 30, 40))
    door = np.maximum(np.maximum(abs(from_axis) - 0.016, -(y - 0.11)), y - 0.17)
    paint(inside(np.minimum(door, np.hypot(from_axis, y - 0.112) - 0.016)), (60, 44, 56))
    return scene
