"""Edge-enhancing diffusion of a volume in eager PyTorch, one operation after another on whole volumes.

One explicit step is u − τ·Kᵀ(W·Ku): the seven modes of every 2×2×2 cell, the diffusion tensor on three of
them and weights on the other four, and the transposed modes back. Modes are sums and differences of shifted
views, along one axis after the other, which is faster than a convolution with seven filters.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.baselines.smoothing import gaussian, mirrored

_AXES = (0, 1, 2)


def _smoothed(u: Tensor, sigma: float) -> Tensor:
    kernel = gaussian(sigma)
    for axis in _AXES:
        wide = mirrored(u, len(kernel) // 2, axis)
        shape = [1] * 5
        shape[axis + 2] = -1
        u = F.conv3d(wide[None, None], kernel.view(shape))[0, 0]
    return u


def _padded(u: Tensor) -> Tensor:
    return F.pad(u[None, None], (1,) * 6, mode="replicate")[0, 0]


def _difference(u: Tensor, axis: int) -> Tensor:
    return u.narrow(axis, 1, u.shape[axis] - 1) - u.narrow(axis, 0, u.shape[axis] - 1)


def _sum(u: Tensor, axis: int) -> Tensor:
    return u.narrow(axis, 1, u.shape[axis] - 1) + u.narrow(axis, 0, u.shape[axis] - 1)


def _modes(u: Tensor) -> list[Tensor]:
    """Mean gradient x, y, z, hourglasses x, y, z and the one of all three axes, times 4."""
    along, across = _difference(u, 2), _sum(u, 2)
    d_along, s_along = _difference(along, 1), _sum(along, 1)
    d_across, s_across = _difference(across, 1), _sum(across, 1)
    return [
        _sum(s_along, 0), _sum(d_across, 0), _difference(s_across, 0),
        _difference(d_across, 0), _difference(s_along, 0), _sum(d_along, 0), _difference(d_along, 0),
    ]  # fmt: skip


def _transposed(parts: list[Tensor]) -> Tensor:
    """The transpose of the modes; mirrored voxels drop out."""
    x, y, z, r_x, r_y, r_z, t = parts
    s_along = _sum(x, 0) - _difference(r_y, 0)
    d_along = _sum(r_z, 0) - _difference(t, 0)
    d_across = _sum(y, 0) - _difference(r_x, 0)
    s_across = -_difference(z, 0)
    along = _sum(s_along, 1) - _difference(d_along, 1)
    across = _sum(s_across, 1) - _difference(d_across, 1)
    return _sum(across, 2) - _difference(along, 2)


def _fluxes(
    u: Tensor, modes: list[Tensor], sigma: float, contrast: float, alpha: float, gamma: float
) -> list[Tensor]:
    """The tensor D = I − ψ q qᵀ on the gradient, the stencil's weights on the hourglasses."""
    q_x, q_y, q_z = (q * (0.25 / contrast) for q in _modes(_padded(_smoothed(u, sigma)))[:3])
    r = (q_x * q_x + q_y * q_y + q_z * q_z).clamp(min=0.52)  # below it the exponential is far below rounding
    r2 = r * r
    loss = torch.exp(-3.31488 / (r2 * r2)) / r
    xx, yy, zz = 1 - loss * q_x * q_x, 1 - loss * q_y * q_y, 1 - loss * q_z * q_z
    xy, xz, yz = -loss * q_x * q_y, -loss * q_x * q_z, -loss * q_y * q_z
    slack = 1 - 2 * alpha
    zeta_x = slack * (yy + zz - 2 * gamma * yz.abs())
    zeta_y = slack * (xx + zz - 2 * gamma * xz.abs())
    zeta_z = slack * (xx + yy - 2 * gamma * xy.abs())
    kappa = (zeta_x + zeta_y + zeta_z) / 3
    x, y, z, r_x, r_y, r_z, t = modes
    return [
        xx * x + xy * y + xz * z, xy * x + yy * y + yz * z, xz * x + yz * y + zz * z,
        zeta_x * r_x, zeta_y * r_y, zeta_z * r_z, kappa * t,
    ]  # fmt: skip


@torch.no_grad()
def edge_enhancing(
    volume: Tensor, steps: int, *, sigma: float, contrast: float, step: float, alpha: float, gamma: float
) -> Tensor:
    """The volume (D, H, W), float32, after this many explicit steps."""
    u = volume
    for _ in range(steps):
        fluxes = _fluxes(u, _modes(_padded(u)), sigma, contrast, alpha, gamma)
        u = u - (step / 16) * _transposed(fluxes)
    return u
