"""Edge-enhancing diffusion in eager PyTorch, as the residual block of the paper.

One explicit step is u + τ·Kᵀ(Φ(Ku)): a convolution to six channels (the differences along the edges and
diagonals of a 2×2 cell), a weight for each, and the transposed convolution back.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.baselines.smoothing import gaussian, mirrored


def _differences() -> Tensor:
    """2×2 filters that give the six differences of a cell: x twice, y twice, ↘, ↙."""
    nw, ne, sw, se = (0, 0), (0, 1), (1, 0), (1, 1)
    pairs = ((nw, ne), (sw, se), (nw, sw), (ne, se), (nw, se), (ne, sw))
    filters = torch.zeros(6, 1, 2, 2)
    for channel, (start, end) in enumerate(pairs):
        filters[channel, 0][start], filters[channel, 0][end] = -1.0, 1.0
    return filters


DIFFERENCES = _differences()
GRADIENT = 0.5 * torch.tensor([[[[-1.0, 1.0], [-1.0, 1.0]]], [[[-1.0, -1.0], [1.0, 1.0]]]])


def _smoothed(u: Tensor, sigma: float) -> Tensor:
    kernel = gaussian(sigma)
    radius = len(kernel) // 2
    u = F.conv2d(mirrored(u, radius, 3), kernel.view(1, 1, 1, -1))
    return F.conv2d(mirrored(u, radius, 2), kernel.view(1, 1, -1, 1))


def _weights(u: Tensor, sigma: float, contrast: float, alpha: float, gamma: float) -> Tensor:
    """Twice the weights of the six differences in every cell, from the tensor D = (a b; b c)."""
    smoothed = F.pad(_smoothed(u, sigma), (1, 1, 1, 1), mode="replicate")
    q_x, q_y = F.conv2d(smoothed, GRADIENT / contrast).split(1, 1)
    r = (q_x * q_x + q_y * q_y).clamp(min=0.52)  # below it the exponential is far below rounding
    r2 = r * r
    loss = torch.exp(-3.31488 / (r2 * r2)) / r
    loss_x = loss * q_x
    a, b, c = 1 - loss_x * q_x, -loss_x * q_y, 1 - loss * q_y * q_y
    delta = alpha * (a + c) + gamma * (1 - 2 * alpha) * b.abs()
    along_x, along_y, falling, rising = a - delta, c - delta, delta + b, delta - b
    return torch.cat([along_x, along_x, along_y, along_y, falling, rising], 1)


@torch.no_grad()
def edge_enhancing(
    image: Tensor, steps: int, *, sigma: float, contrast: float, step: float, alpha: float, gamma: float
) -> Tensor:
    """The image (H, W), float32, after this many explicit steps."""
    u = image[None, None]
    for _ in range(steps):
        differences = F.conv2d(F.pad(u, (1, 1, 1, 1), mode="replicate"), DIFFERENCES)
        fluxes = _weights(u, sigma, contrast, alpha, gamma) * differences
        divergence = F.conv_transpose2d(fluxes, -0.5 * DIFFERENCES, padding=1)
        u = u + step * divergence
    return u[0, 0]
