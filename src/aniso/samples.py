"""Test images: synthetic ones whose truth is known, and the photographs that scikit-image ships.

Grey values are float64 between 0 and 255; noise may leave that range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso.checks import Field

__all__ = [
    "PHOTOGRAPHS",
    "Sample",
    "fingerprint",
    "photograph",
    "ring_pattern",
    "ring_tensor",
    "rings",
    "shapes",
]

#: Names of the photographs that come with scikit-image itself, so that nothing is downloaded.
PHOTOGRAPHS = (
    "astronaut", "brick", "camera", "cell", "coffee", "coins", "grass", "gravel", "hubble_deep_field",
    "moon", "page", "text",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Sample:
    """A damaged image and what it was made from."""

    #: What a filter gets, shape (H, W).
    image: Field
    #: What it should give back, shape (H, W).
    truth: Field
    #: True where a line was interrupted, shape (H, W).
    gaps: npt.NDArray[np.bool_]


def rings(size: int = 256, *, period: float = 12.0, noise: float = 40.0, seed: int = 0) -> Sample:
    """Dark concentric lines on bright ground, with gaps and noise.

    Examples
    --------
    >>> import aniso
    >>> sample = aniso.samples.rings(size=64, noise=0.0)
    >>> sample.image.shape, bool(sample.gaps.any())
    ((64, 64), True)
    """
    x, y = _centred(size)
    return _interrupted_lines(np.hypot(x, y), period, noise, seed)


def fingerprint(size: int = 256, *, period: float = 9.0, noise: float = 40.0, seed: int = 0) -> Sample:
    """Dark lines that flow like the ridges of a finger, with gaps and noise.

    Examples
    --------
    >>> import aniso
    >>> float(aniso.samples.fingerprint(size=64, noise=0.0).truth.max()) <= 255
    True
    """
    x, y = _centred(size)
    x, y = x / size, y / size + 0.12
    swirl = 0.11 * np.sin(5.1 * y + 1.3) + 0.05 * np.cos(7.3 * x - 2.1 * y)
    distance = np.sqrt((1.25 * (x + swirl)) ** 2 + (0.85 * y) ** 2 + 1e-3) + 0.12 * y
    return _interrupted_lines(distance * size, period, noise, seed)


def shapes(size: int = 256, *, noise: float = 30.0, seed: int = 0) -> Sample:
    """A disc, a bar, a triangle, a ring and a ramp with sharp edges and corners, under noise.

    Examples
    --------
    >>> import aniso
    >>> aniso.samples.shapes(size=64).truth.shape
    (64, 64)
    """
    x, y = _centred(size)
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
    image = truth + np.random.default_rng(seed).normal(0, noise, truth.shape)
    return Sample(image, truth, np.zeros(truth.shape, bool))


def ring_pattern(
    size: int = 129, *, k_max: float = 0.5 * np.pi, radius: float = 60.0, width: float = 6.0
) -> Field:
    """Rings whose frequency grows with the radius up to `k_max`, fading out there; values −1 to 1.

    With :func:`ring_tensor` nothing of it should ever change: what does is the stencil's dissipation.

    Examples
    --------
    >>> import aniso
    >>> aniso.samples.ring_pattern().shape
    (129, 129)
    """
    x, y = _centred(size)
    r = np.hypot(x, y)
    return np.sin(k_max * r**2 / (2 * radius)) * (0.5 * np.tanh((radius - r) / width) + 0.5)


def ring_tensor(size: int = 129) -> tuple[Field, Field, Field]:
    """a, b, c over the cells of a square image: diffusion along circles around its centre only.

    Examples
    --------
    >>> import aniso
    >>> [entry.shape for entry in aniso.samples.ring_tensor(129)]
    [(130, 130), (130, 130), (130, 130)]
    """
    x, y = _centred(size + 1)
    r2 = np.maximum(x**2 + y**2, 1e-12)
    return y**2 / r2, -x * y / r2, x**2 / r2


def photograph(name: str) -> npt.NDArray[Any]:
    """A photograph that scikit-image ships, as it is: uint8, grey (H, W) or colour (H, W, 3).

    Parameters
    ----------
    name : str
        One of :data:`PHOTOGRAPHS`. Needs scikit-image: ``pip install "aniso[photos]"``.

    Examples
    --------
    >>> import aniso
    >>> aniso.samples.photograph("camera").shape
    (512, 512)
    """
    if name not in PHOTOGRAPHS:
        raise ValueError(f"there is no photograph {name!r}. The names are: {', '.join(PHOTOGRAPHS)}.")
    try:
        from skimage import data
    except ImportError as error:
        raise ImportError(
            'the photographs come with scikit-image, which is not installed: pip install "aniso[photos]".'
        ) from error
    return np.asarray(getattr(data, name)())


def _centred(size: int) -> tuple[Field, Field]:
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}: it is the number of pixels along each side.")
    axis = np.arange(size) - 0.5 * (size - 1)
    y, x = np.meshgrid(axis, axis, indexing="ij")
    return x, y


def _interrupted_lines(distance: Field, period: float, noise: float, seed: int) -> Sample:
    """Dark lines at odd multiples of half a period, cut by small discs of mid-grey."""
    if not period > 0:
        raise ValueError(f"period must be positive, got {period}: it is the distance between lines.")
    phase = 2 * np.pi * distance / period
    rng = np.random.default_rng(seed)
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
    image = np.where(gaps, 127.5, truth) + rng.normal(0, noise, truth.shape)
    return Sample(image, truth, gaps)
