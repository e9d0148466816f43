"""Synthetic volumes with known ground truth."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aniso.arrays import Field
from aniso.samples import common
from aniso.samples.common import Sample

Shape = int | tuple[int, int, int]

BACKGROUND, FOREGROUND = 60.0, 200.0


def fibres(
    shape: Shape = 64,
    *,
    count: int = 20,
    radius: float = 2.0,
    gaps: int = 0,
    noise: float = 40.0,
    seed: int = 0,
) -> Sample:
    """Draw bright curved fibres on a dark background in a volume, and add noise.

    Parameters
    ----------
    shape : int or (int, int, int)
        Voxels along each side, or (D, H, W).
    count : int
        Number of fibres. They run through the whole volume, most of them along the last axes.
    radius : float
        Their radius in voxels.
    gaps : int
        Number of interruptions: balls of 1.25 times the radius of fibres.
    noise : float
        Standard deviation of the noise in grey values; fibres are 140 grey values above the background.
    seed : int
        Random seed, for fibres, gaps and noise.

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
    sides = _sides(shape)
    radius = common.check_positive("radius", radius, "that of a fibre, in voxels")
    rng = common.generator(seed)
    axes = [_axis_of_fibre(sides, rng) for _ in range(common.check_count("count", count, "fibres"))]
    truth = np.full(sides, BACKGROUND)
    on_axis = np.zeros((0, 3))
    if axes:
        from scipy.spatial import cKDTree

        points = np.concatenate(axes)
        places = np.moveaxis(np.indices(sides, np.float64), 0, -1)
        distance, _ = cKDTree(points).query(places, distance_upper_bound=radius + 1)
        truth += np.clip(0.5 + radius - distance, 0, 1) * (FOREGROUND - BACKGROUND)
        inside = (points > radius).all(axis=1) & (points < np.array(sides) - 1 - radius).all(axis=1)
        on_axis = points[inside]
    cut = _balls_at(on_axis, gaps, 1.25 * radius, sides, rng) & (truth > 0.5 * (BACKGROUND + FOREGROUND))
    return Sample(common.with_noise(np.where(cut, BACKGROUND, truth), noise, rng), truth, cut)


def layers(
    shape: Shape = 64, *, period: float = 10.0, gaps: int = 0, noise: float = 40.0, seed: int = 0
) -> Sample:
    """Draw folded layers with a fault in a volume, as in seismic surveys, and add noise.

    Parameters
    ----------
    shape : int or (int, int, int)
        Voxels along each side, or (D, H, W), the depth first.
    period : float
        Approximate distance between layers of one grey value in voxels; it varies over the volume.
    gaps : int
        Number of interruptions: balls of mid-grey with a radius of 0.4 periods.
    noise : float
        Standard deviation of the noise in grey values; the layers reach from 27.5 to 227.5.
    seed : int
        Random seed, for gaps and noise.

    Returns
    -------
    Sample
        As for :func:`fibres`.

    Examples
    --------
    >>> import aniso
    >>> sample = aniso.samples.layers((32, 24, 24), noise=0.0)
    >>> bool((sample.image == sample.truth).all()), sample.truth.shape
    (True, (32, 24, 24))
    """
    sides = _sides(shape)
    period = common.check_positive("period", period, "the distance of the layers")
    rng = common.generator(seed)
    z, y, x = np.indices(sides, np.float64, sparse=True)
    v, u = y / max(sides[1], sides[2]), x / max(sides[1], sides[2])
    depth = z + period * (0.9 * np.sin(4.1 * u + 1.9 * v + 0.4) + 0.5 * np.cos(6.3 * v - 2.2 * u))
    # Beyond a fault, which is steep and oblique, everything lies deeper.
    beyond = u + 0.35 * v + 0.25 * z / max(sides) > 0.85
    depth = depth + np.where(beyond, 0.45 * period, 0.0)
    phase = 2 * np.pi * depth / period
    wave = np.sin(phase + 0.9 * np.sin(0.37 * phase))  # layers of different thickness
    truth = 127.5 + 100.0 * wave
    crests = np.argwhere(abs(wave) > 0.95).astype(np.float64)
    cut = _balls_at(crests, gaps, 0.4 * period, sides, rng)
    return Sample(common.with_noise(np.where(cut, 127.5, truth), noise, rng), truth, cut)


def balls(shape: Shape = 64, *, count: int = 20, noise: float = 30.0, seed: int = 0) -> Sample:
    """Draw balls of several sizes and grey values on a ramp in a volume, and add noise.

    Parameters
    ----------
    shape, noise, seed
        As for :func:`fibres`.
    count : int
        Number of balls.

    Returns
    -------
    Sample
        ``image`` with noise and ``truth`` without, of shape (D, H, W); no gaps.

    Examples
    --------
    >>> import aniso
    >>> aniso.samples.balls(24).image.shape
    (24, 24, 24)
    """
    sides = _sides(shape)
    rng = common.generator(seed)
    z, y, x = np.indices(sides, np.float64, sparse=True)
    truth = np.full(sides, BACKGROUND) + 40.0 * x / sides[2]
    for _ in range(common.check_count("count", count, "balls")):
        centre = rng.uniform(0, sides)
        radius = rng.uniform(0.05, 0.18) * min(sides)
        grey = rng.uniform(100.0, 230.0)
        distance = np.sqrt((z - centre[0]) ** 2 + (y - centre[1]) ** 2 + (x - centre[2]) ** 2)
        truth += np.clip(0.5 + radius - distance, 0, 1) * (grey - truth)
    return Sample(common.with_noise(truth, noise, rng), truth, np.zeros(sides, bool))


def shell_pattern(
    size: int = 49, *, k_max: float = 0.5 * np.pi, radius: float = 24.0, width: float = 3.0
) -> Field:
    """Draw spherical shells in a volume, the counterpart of :func:`ring_pattern`.

    Parameters
    ----------
    size, k_max, radius, width
        As for :func:`ring_pattern`, in voxels.

    Returns
    -------
    array, shape (size, size, size)

    Examples
    --------
    >>> import aniso
    >>> aniso.samples.shell_pattern().shape
    (49, 49, 49)
    """
    r = np.sqrt((common.centred_grid(size, 3) ** 2).sum(axis=0))
    return common.fading_wave(r, k_max, radius, width)


def shell_tensor(size: int = 49) -> Field:
    """Return tensors over the cells of a cube for diffusion along spheres around its centre.

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
    position = common.centred_grid(size, 3, extra=1)
    r2 = np.maximum((position**2).sum(axis=0), 1e-12)
    return np.eye(3)[..., None, None, None] - position[:, None] * position[None] / r2


def _axis_of_fibre(sides: tuple[int, int, int], rng: np.random.Generator) -> Field:
    """Return points along a smooth curve through the volume, four per voxel."""
    direction = rng.normal(0, 1, 3) * (0.4, 0.7, 1.0)
    direction /= np.linalg.norm(direction)
    first = np.cross(direction, np.eye(3)[np.argmin(abs(direction))])
    first /= np.linalg.norm(first)
    second = np.cross(direction, first)
    length = float(np.linalg.norm(sides))
    along = np.arange(-0.5 * length, 0.5 * length, 0.25)[:, np.newaxis]
    through = rng.uniform(0.1, 0.9, 3) * (np.array(sides) - 1)
    curve = through + along * direction
    for normal in (first, second):
        wave, swing, phase = rng.uniform((0.6, 0.03, 0.0), (1.4, 0.08, 2 * np.pi))
        curve = curve + swing * length * np.sin(2 * np.pi * along / (wave * length) + phase) * normal
    return curve


def _balls_at(
    places: Field, count: int, radius: float, sides: tuple[int, int, int], rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Return a mask of balls around some of these places, chosen at random."""
    cut = np.zeros(sides, bool)
    wanted = min(common.check_count("gaps", count, "gaps"), len(places))
    z, y, x = np.indices(sides, np.float64, sparse=True)
    for centre in places[rng.choice(len(places), size=wanted, replace=False)] if wanted else ():
        cut |= (z - centre[0]) ** 2 + (y - centre[1]) ** 2 + (x - centre[2]) ** 2 < radius**2
    return cut


def _sides(shape: Shape) -> tuple[int, int, int]:
    sides = shape if isinstance(shape, tuple | list) else (shape,) * 3
    if len(sides) != 3:
        raise ValueError(
            f"shape must be a number of voxels, or three for (D, H, W), each at least 1, got {shape}."
        )
    depth, height, width = (common.check_side("shape", length) for length in sides)
    return depth, height, width
