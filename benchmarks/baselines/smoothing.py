"""Gaussian smoothing in eager PyTorch, along one axis after the other, with a mirror at the boundary."""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor


@functools.cache
def gaussian(sigma: float) -> Tensor:
    """Its weights up to 4σ."""
    radius = int(4 * sigma + 0.5)
    weights = [math.exp(-0.5 * (offset / sigma) ** 2) for offset in range(-radius, radius + 1)]
    return torch.tensor(weights) / sum(weights)


def mirrored(u: Tensor, radius: int, axis: int) -> Tensor:
    """The image continued by its mirror image … 1 0 | 0 1 … along one axis."""
    before = u.narrow(axis, 0, radius).flip(axis)
    after = u.narrow(axis, u.shape[axis] - radius, radius).flip(axis)
    return torch.cat([before, u, after], axis)
