"""Gaussians over mirrored images and cells.

Sums of shifted views and not convolutions: these round the same on every device (no reduced precision
under autocast or on tensor cores), and a pair of opposite values cancels exactly, which keeps the mixed
entry of the tensor at 0 on the boundary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from aniso.formulas.gaussian import fold_at_centre, fold_at_edge, gaussian_radius, gaussian_weights

#: Weight at the centre and at 1 … reach pixels from it, or None for no smoothing.
HalfKernel = Tensor | None
#: One along each axis, x last.
Kernels = tuple[HalfKernel, ...]


def half_kernel(sigma: Any, like: Tensor, largest: float | None = None) -> HalfKernel:
    """The kernel of width σ in pixels; its reach follows `largest`, the largest value that σ may take."""
    reach = gaussian_radius(float(sigma) if largest is None else largest)
    if reach == 0:
        return None
    offsets = torch.arange(-reach, reach + 1, device=like.device, dtype=like.dtype)
    kernel: Tensor = gaussian_weights(offsets, sigma)
    return kernel[reach:]


def smooth_pixels(u: Tensor, kernels: Kernels) -> Tensor:
    """Pixels through a Gaussian along each axis, the image being mirrored at the edges of its pixels."""
    for axis, kernel in enumerate(kernels, start=-len(kernels)):
        if kernel is not None:
            u = _weighted_sum(extend_edge(u, len(kernel) - 1, axis), kernel, axis)
    return u


def extend_edges(u: Tensor, reach: int) -> Tensor:
    """The image with mirrored pixels around it, however small it is."""
    for axis in (-2, -1):
        u = extend_edge(u, reach, axis)
    return u


def average_cells(entry: Tensor, kernels: Kernels, axes: tuple[int, int]) -> Tensor:
    """Cells through a Gaussian along each axis. The boundary passes through the centres of the outer ones.

    `axes` are the two of this entry of a tensor. Mirroring one of them turns the sign of a mixed entry, which
    vanishes on that boundary and stays so.
    """
    for axis, kernel in enumerate(kernels, start=-len(kernels)):
        if kernel is not None:
            odd = axes[0] != axes[1] and axis in axes
            parts = []
            for position in _outside(entry.shape[axis], len(kernel) - 1, entry):
                index, sign = fold_at_centre(position, entry.shape[axis])
                part = entry.index_select(axis, index)
                parts.append(part * sign.reshape(-1, *[1] * (-1 - axis)) if odd else part)
            entry = _weighted_sum(torch.cat([parts[0], entry, parts[1]], axis), kernel, axis)
    return entry


def extend_edge(u: Tensor, reach: int, axis: int) -> Tensor:
    """The image with mirrored pixels before and after it along one axis."""
    outside = _outside(u.shape[axis], reach, u)
    first, last = (u.index_select(axis, fold_at_edge(position, u.shape[axis])) for position in outside)
    return torch.cat([first, u, last], axis)


def _outside(length: int, reach: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """The positions that a kernel reaches before the first and after the last one."""
    steps = torch.arange(reach, device=like.device)
    return steps - reach, steps + length


def _weighted_sum(extended: Tensor, kernel: Tensor, axis: int) -> Tensor:
    reach = len(kernel) - 1
    length = extended.shape[axis] - 2 * reach
    total = extended.narrow(axis, reach, length) * kernel[0]
    for distance in range(1, reach + 1):
        pair = extended.narrow(axis, reach - distance, length) + extended.narrow(
            axis, reach + distance, length
        )
        total = torch.addcmul(total, pair, kernel[distance])
    return total
