"""The mixture of diffused images on PyTorch tensors (images, channels, …), on any device."""

from __future__ import annotations

import torch
from torch import Tensor

from aniso.engines.torch.smoothing import extend_edge, half_kernel, smooth_pixels
from aniso.verbs.flatness import AVERAGED, EDGE_ENERGY, SEEN


def add_weighted(total: Tensor | float, image: Tensor, weights: tuple[tuple[float, ...], ...]) -> Tensor:
    """Return the sum of `total` and the channels of an image, weighted."""
    matrix = torch.tensor(weights, dtype=image.dtype, device=image.device)
    return total + torch.einsum("ij,nj...->ni...", matrix, image)


def flatness(image: Tensor, level: float) -> Tensor:
    """Return values near 1 in flat regions and near 0 at edges, (images, 1, …)."""
    axes = range(2 - image.ndim, 0)
    seen, averaged = half_kernel(SEEN, image), half_kernel(AVERAGED, image)
    assert seen is not None
    energy = torch.zeros_like(image[:, :1])
    for axis in axes:
        slope = smooth_pixels(image, tuple(None if other == axis else seen for other in axes))
        energy = energy + _derivative(slope, seen, axis).square().mean(dim=1, keepdim=True)
    energy = smooth_pixels(energy, (averaged,) * len(axes))
    return 1 / (1 + energy / (EDGE_ENERGY * level**2))


def _derivative(u: Tensor, kernel: Tensor, axis: int) -> Tensor:
    """Return the derivative of a Gaussian-smoothed image along an axis."""
    reach = len(kernel) - 1
    length = u.shape[axis]
    extended = extend_edge(u, reach, axis)
    total = torch.zeros_like(u)
    for distance in range(1, reach + 1):
        ahead, behind = (extended.narrow(axis, reach + s * distance, length) for s in (1, -1))
        total = total + distance / SEEN**2 * kernel[distance] * (ahead - behind)
    return total
