"""Test images and volumes: synthetic ones whose truth is known, and the photographs that scikit-image ships.

Grey values are float64 between 0 and 255; noise may leave that range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import checks
from aniso.arrays import Field
from aniso.samples import options, volumes
from aniso.samples.painting import paint_lighthouse
from aniso.samples.volumes import Shape

__all__ = [
    "PHOTOGRAPHS",
    "Sample",
    "balls",
    "fibres",
    "fingerprint",
    "layers",
    "lighthouse",
    "photograph",
    "ring_pattern",
    "ring_tensor",
    "rings",
    "shapes",
    "shell_pattern",
    "shell_tensor",
]

#: Names of the photographs that come with scikit-image itself, so that nothing is downloaded.
PHOTOGRAPHS = (
    "astronaut", "brick", "camera", "cell", "coffee", "coins", "grass", "gravel", "hubble_deep_field",
    "moon", "page", "text",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Sample:
    """A damaged image and what it was made from."""

    #: What a filter gets, shape (H, W), (H, W, 3) for colours, or (D, H, W) for volumes.
    image: Field
    #: What it should give back, of the same shape.
    truth: Field
    #: True where a line or layer was interrupted, shape (H, W) or (D, H, W).
    gaps: npt.NDArray[np.bool_]


def rings(size: int = 256, *, period: float = 12.0, noise: float = 40.0, seed: int = 0) -> Sample:
    """Dark concentric lines on bright ground, with gaps and noise.

    Parameters
    ----------
    size : int
        Pixels along each side.
    period : float
        Distance of the lines in pixels.
    noise : float
        Standard deviation of the noise in grey values.
    seed : int
        Of the noise and of the places where lines are interrupted.

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
    x, y = _centred(_checked(size))
    return _interrupted_lines(np.hypot(x, y), period, noise, seed)


def fingerprint(size: int = 256, *, period: float = 9.0, noise: float = 40.0, seed: int = 0) -> Sample:
    """Dark lines that flow like the ridges of a finger, with gaps and noise.

    Parameters
    ----------
    size : int
        Pixels along each side.
    period : float
        Distance of the lines in pixels, about: it differs from place to place.
    noise : float
        Standard deviation of the noise in grey values.
    seed : int
        Of the noise and of the places where lines are interrupted.

    Returns
    -------
    Sample
        ``image`` with noise and gaps, ``truth`` without, ``gaps`` True where a line is interrupted, all of
        shape (size, size).

    Examples
    --------
    >>> import aniso
    >>> float(aniso.samples.fingerprint(size=64, noise=0.0).truth.max()) <= 255
    True
    """
    x, y = _centred(_checked(size))
    x, y = x / size, y / size + 0.12
    swirl = 0.11 * np.sin(5.1 * y + 1.3) + 0.05 * np.cos(7.3 * x - 2.1 * y)
    distance = np.sqrt((1.25 * (x + swirl)) ** 2 + (0.85 * y) ** 2 + 1e-3) + 0.12 * y
    return _interrupted_lines(distance * size, period, noise, seed)


def shapes(size: int = 256, *, noise: float = 30.0, seed: int = 0) -> Sample:
    """A disc, a bar, a triangle, a ring and a ramp with sharp edges and corners, under noise.

    Parameters
    ----------
    size : int
        Pixels along each side.
    noise : float
        Standard deviation of the noise in grey values.
    seed : int
        Random seed.

    Returns
    -------
    Sample
        ``image`` with noise and ``truth`` without, of shape (size, size).

    Examples
    --------
    >>> import aniso
    >>> aniso.samples.shapes(size=64).truth.shape
    (64, 64)
    """
    x, y = _centred(_checked(size))
    x, y = x / size, y / size
    pixel = 1 / size

    def soft(signed_distance: Field) -> Field:
        """Cover of a pixel by a shape whose signed distance is given (negative inside)."""
        return np.clip(0.5 - signed_distance / pixel, 0, 1)

    slanted = 0.9 * x + 0.436 * y
    covers = [
        (soft(np.hypot(x + 0.22, y + 0.22) - 0.17), 205.0),
        (soft(np.maximum(abs(slanted - 0.26) - 0.035, abs(-0.436 * x + 0.9 * y) - 0.42)), 170.0),
        (soft(np.maximum(np.maximum(-y + 0.1, y - 0.4), abs(x + 0.2) - 0.75 * (y - 0.1))), 30.0),
        (soft(abs(np.hypot(x - 0.22, y + 0.24) - 0.13) - 0.03), 20.0),
    ]
    truth = 95.0 + 40.0 * (x + 0.5)
    for cover, grey in covers:
        truth = truth + cover * (grey - truth)
    image = options.with_noise(truth, noise, options.source(seed))
    return Sample(image, truth, np.zeros(truth.shape, bool))


def lighthouse(size: int = 256, *, noise: float = 25.0, seed: int = 0) -> Sample:
    """A lighthouse by the sea in colours, shape (size, size, 3), under noise.

    Smooth sky and sea, sharp and oblique contours, and fine waves, at any size. Noise is independent in the
    three channels.

    Parameters
    ----------
    size : int
        Pixels along each side.
    noise : float
        Standard deviation of the noise in grey values.
    seed : int
        Random seed.

    Returns
    -------
    Sample
        Without gaps.

    Examples
    --------
    >>> import aniso
    >>> sample = aniso.samples.lighthouse(size=64)
    >>> sample.image.shape, bool(0 <= sample.truth.min() and sample.truth.max() <= 255)
    ((64, 64, 3), True)
    """
    x, y = _centred(_checked(size))
    truth = paint_lighthouse(x / size, y / size, 1 / size)
    image = options.with_noise(truth, noise, options.source(seed))
    return Sample(image, truth, np.zeros(truth.shape[:2], bool))


def fibres(
    shape: Shape = 64,
    *,
    count: int = 20,
    radius: float = 2.0,
    gaps: int = 0,
    noise: float = 40.0,
    seed: int = 0,
) -> Sample:
    """A volume of bright curved fibres on dark ground, under noise.

    Parameters
    ----------
    shape : int or (int, int, int)
        Voxels along each side, or (D, H, W).
    count : int
        How many fibres there are. They run through the whole volume, most of them along the last axes.
    radius : float
        Their radius in voxels.
    gaps : int
        How many times they are interrupted, by balls of 1.25 times their radius.
    noise : float
        Standard deviation of the noise in grey values; fibres are 140 grey values brighter than the ground.
    seed : int
        Of the fibres, of their gaps and of the noise.

    Returns
    -------
    Sample
        ``image`` with noise and gaps, ``truth`` without, ``gaps`` True where a fibre is interrupted, all of
        shape (D, H, W).

    Examples
    --------
    >>> import aniso
    >>> sample = aniso.samples.fibres((16, 32, 32), gaps=3)
    >>> sample.image.shape, bool(sample.truth[sample.gaps].min() > 130)
    ((16, 32, 32), True)
    """
    return Sample(*volumes.fibres(shape, count, radius, gaps, noise, seed))


def layers(
    shape: Shape = 64, *, period: float = 10.0, gaps: int = 0, noise: float = 40.0, seed: int = 0
) -> Sample:
    """A volume of folded layers with a fault, as seismic surveys see them, under noise.

    Parameters
    ----------
    shape : int or (int, int, int)
        Voxels along each side, or (D, H, W), the depth first.
    period : float
        Distance of layers of one grey value in voxels, about: it differs from place to place.
    gaps : int
        How many times they are interrupted, by balls of mid-grey with 0.4 periods radius.
    noise : float
        Standard deviation of the noise in grey values; the layers reach from 27.5 to 227.5.
    seed : int
        Of the gaps and of the noise.

    Returns
    -------
    Sample
        ``image`` with noise and gaps, ``truth`` without, ``gaps`` True where a layer is interrupted, all of
        shape (D, H, W).

    Examples
    --------
    >>> import aniso
    >>> sample = aniso.samples.layers((32, 24, 24), noise=0.0)
    >>> bool((sample.image == sample.truth).all()), sample.truth.shape
    (True, (32, 24, 24))
    """
    return Sample(*volumes.layers(shape, period, gaps, noise, seed))


def balls(shape: Shape = 64, *, count: int = 20, noise: float = 30.0, seed: int = 0) -> Sample:
    """A volume of balls of several sizes and grey values on a slope, under noise.

    Parameters
    ----------
    shape : int or (int, int, int)
        Voxels along each side, or (D, H, W).
    count : int
        How many balls there are.
    noise : float
        Standard deviation of the noise in grey values.
    seed : int
        Of the balls and of the noise.

    Returns
    -------
    Sample
        ``image`` with noise and ``truth`` without, of shape (D, H, W), without gaps.

    Examples
    --------
    >>> import aniso
    >>> aniso.samples.balls(24).image.shape
    (24, 24, 24)
    """
    return Sample(*volumes.balls(shape, count, noise, seed))


def ring_pattern(
    size: int = 129, *, k_max: float = 0.5 * np.pi, radius: float = 60.0, width: float = 6.0
) -> Field:
    """Rings whose frequency grows with the radius up to `k_max`, fading out there; values −1 to 1.

    With :func:`ring_tensor` nothing of it should ever change: what does is the stencil's dissipation.

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
    x, y = _centred(_checked(size))
    r = np.hypot(x, y)
    return _fading_wave(r, k_max, radius, width)


def ring_tensor(size: int = 129) -> tuple[Field, Field, Field]:
    """a, b, c over the cells of a square image: diffusion along circles around its centre only.

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
    x, y = _centred(_checked(size) + 1)
    r2 = np.maximum(x**2 + y**2, 1e-12)
    return y**2 / r2, -x * y / r2, x**2 / r2


def shell_pattern(
    size: int = 49, *, k_max: float = 0.5 * np.pi, radius: float = 24.0, width: float = 3.0
) -> Field:
    """Spherical shells in a volume, else as :func:`ring_pattern`.

    Parameters
    ----------
    size : int
        Voxels along each side.
    k_max : float
        Largest frequency, in radians per voxel: π/2 is a wavelength of four voxels.
    radius, width : float
        Where the shells fade out, and over which distance, in voxels.

    Returns
    -------
    array, shape (size, size, size)

    Examples
    --------
    >>> import aniso
    >>> aniso.samples.shell_pattern().shape
    (49, 49, 49)
    """
    r = np.sqrt((_centred_volume(_checked(size)) ** 2).sum(axis=0))
    return _fading_wave(r, k_max, radius, width)


def shell_tensor(size: int = 49) -> Field:
    """Tensors over the cells of a cube: diffusion along spheres around its centre only.

    Parameters
    ----------
    size : int
        Voxels along each side of the volume.

    Returns
    -------
    array, shape (3, 3, size+1, size+1, size+1)
        For :class:`aniso.FixedTensor`. The eigenvalues are 1 along the spheres and 0 across them.

    Examples
    --------
    >>> import aniso
    >>> aniso.samples.shell_tensor(9).shape
    (3, 3, 10, 10, 10)
    """
    position = _centred_volume(_checked(size) + 1)
    r2 = np.maximum((position**2).sum(axis=0), 1e-12)
    return np.eye(3)[..., None, None, None] - position[:, None] * position[None] / r2


def photograph(name: str) -> npt.NDArray[Any]:
    """A photograph that scikit-image ships, as it is: uint8, grey (H, W) or colour (H, W, 3).

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


def _fading_wave(r: Field, k_max: float, radius: float, width: float) -> Field:
    """A wave whose frequency grows with r, up to `k_max` at this radius, where it fades out."""
    k_max = checks.within("k_max", k_max, 0, 1e3, "it is a frequency in radians per pixel.")
    radius = options.positive("radius", radius, "where the wave fades out")
    width = options.positive("width", width, "the distance over which the wave fades out")
    return np.sin(k_max * r**2 / (2 * radius)) * (0.5 * np.tanh((radius - r) / width) + 0.5)


def _checked(size: int) -> int:
    return options.side("size", size, "the number of pixels along each side")


def _centred(size: int) -> tuple[Field, Field]:
    y, x = np.meshgrid(*[_centred_axis(size)] * 2, indexing="ij")
    return x, y


def _centred_volume(size: int) -> Field:
    """z, y, x."""
    return np.array(np.meshgrid(*[_centred_axis(size)] * 3, indexing="ij"))


def _centred_axis(size: int) -> Field:
    return np.arange(size, dtype=np.float64) - 0.5 * (size - 1)


def _interrupted_lines(distance: Field, period: float, noise: float, seed: int) -> Sample:
    """Dark lines at odd multiples of half a period, cut by small discs of mid-grey."""
    period = options.positive("period", period, "the distance between lines")
    phase = 2 * np.pi * distance / period
    rng = options.source(seed)
    truth = 127.5 + 127.5 * np.cos(phase)
    on_line = truth < 127.5
    rows, columns = np.nonzero(np.cos(phase) < -0.9)
    wanted = int(truth.size / (5 * period) ** 2)
    chosen = rng.choice(len(rows), size=min(wanted, len(rows)), replace=False)
    cut = np.zeros(truth.shape, bool)
    y, x = np.indices(truth.shape)
    for row, column in zip(rows[chosen], columns[chosen], strict=True):
        cut |= np.hypot(y - row, x - column) < 0.4 * period
    gaps = cut & on_line
    return Sample(options.with_noise(np.where(gaps, 127.5, truth), noise, rng), truth, gaps)
