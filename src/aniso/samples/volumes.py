"""Synthetic volumes whose truth is known: fibres, layers and balls. They are public in aniso.samples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aniso.arrays import Field
from aniso.samples import options

Shape = int | tuple[int, int, int]
Cut = npt.NDArray[np.bool_]

BACKGROUND, FOREGROUND = 60.0, 200.0


def fibres(
    shape: Shape, count: int, radius: float, gaps: int, noise: float, seed: int
) -> tuple[Field, Field, Cut]:
    """Noisy volume, truth and gaps of bright curved tubes."""
    sides = _sides(shape)
    radius = options.positive("radius", radius, "that of a fibre, in voxels")
    rng = options.source(seed)
    axes = [_axis_of_fibre(sides, rng) for _ in range(options.count("count", count, "fibres"))]
    truth = np.full(sides, BACKGROUND)
    on_axis = np.zeros((0, 3))
    if axes:
        from scipy.spatial import cKDTree

        points = np.concatenate(axes)
        places = np.moveaxis(np.indices(sides, np.float64), 0, -1)
        distance, _ = cKDTree(points).query(places, distance_upper_bound=radius + 1)
        cover = np.clip(0.5 + radius - distance, 0, 1)
        truth += cover * (FOREGROUND - BACKGROUND)
        inside = (points > radius).all(axis=1) & (points < np.array(sides) - 1 - radius).all(axis=1)
        on_axis = points[inside]
    cut = _balls_at(on_axis, gaps, 1.25 * radius, sides, rng) & (truth > 0.5 * (BACKGROUND + FOREGROUND))
    return options.with_noise(np.where(cut, BACKGROUND, truth), noise, rng), truth, cut


def layers(shape: Shape, period: float, gaps: int, noise: float, seed: int) -> tuple[Field, Field, Cut]:
    """Noisy volume, truth and gaps of folded layers with a fault."""
    sides = _sides(shape)
    period = options.positive("period", period, "the distance of the layers")
    rng = options.source(seed)
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
    return options.with_noise(np.where(cut, 127.5, truth), noise, rng), truth, cut


def balls(shape: Shape, count: int, noise: float, seed: int) -> tuple[Field, Field, Cut]:
    """Noisy volume and truth of balls of several sizes and grey values; no gaps."""
    sides = _sides(shape)
    rng = options.source(seed)
    z, y, x = np.indices(sides, np.float64, sparse=True)
    truth = np.full(sides, BACKGROUND) + 40.0 * x / sides[2]
    for _ in range(options.count("count", count, "balls")):
        centre = rng.uniform(0, sides)
        radius = rng.uniform(0.05, 0.18) * min(sides)
        grey = rng.uniform(100.0, 230.0)
        distance = np.sqrt((z - centre[0]) ** 2 + (y - centre[1]) ** 2 + (x - centre[2]) ** 2)
        cover = np.clip(0.5 + radius - distance, 0, 1)
        truth += cover * (grey - truth)
    return options.with_noise(truth, noise, rng), truth, np.zeros(sides, bool)


def _axis_of_fibre(sides: tuple[int, int, int], rng: np.random.Generator) -> Field:
    """Points along a smooth curve through the volume, four per voxel."""
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
) -> Cut:
    """True in balls around some of these places, chosen at random."""
    cut = np.zeros(sides, bool)
    wanted = min(options.count("gaps", count, "gaps"), len(places))
    z, y, x = np.indices(sides, np.float64, sparse=True)
    for centre in places[rng.choice(len(places), size=wanted, replace=False)] if wanted else ():
        cut |= (z - centre[0]) ** 2 + (y - centre[1]) ** 2 + (x - centre[2]) ** 2 < radius**2
    return cut


def _sides(shape: Shape) -> tuple[int, int, int]:
    what = "a number of voxels along a side"
    sides = shape if isinstance(shape, tuple | list) else (shape,) * 3
    if len(sides) != 3:
        raise ValueError(
            f"shape must be a number of voxels, or three for (D, H, W), each at least 1, got {shape}."
        )
    depth, height, width = (options.side("shape", length, what) for length in sides)
    return depth, height, width
