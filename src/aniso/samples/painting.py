"""Paint the scene of :func:`aniso.samples.lighthouse`."""

from __future__ import annotations

from typing import Any

import numpy as np

from aniso.arrays import Field


def coverage(signed_distance: Field, pixel: float) -> Field:
    """Return how much of each pixel a shape covers; its signed distance is negative inside."""
    return np.clip(0.5 - signed_distance / pixel, 0, 1)


def paint_lighthouse(x: Field, y: Field, pixel: float) -> Field:
    """Paint the scene over coordinates from −½ to ½, y downwards, from the back to the front."""

    def paint(cover: Field, *colours: Any, along: Field | float = 0.0) -> None:
        """Put a colour, or a gradient between two, over what is there."""
        blend = np.clip(along, 0, 1)
        first, last = (np.array(colour, float) for colour in (colours[0], colours[-1]))
        colour = first + np.asarray(blend)[..., np.newaxis] * (last - first)
        scene[...] += cover[..., np.newaxis] * (colour - scene)

    def inside(signed_distance: Field) -> Field:
        return coverage(signed_distance, pixel)

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
