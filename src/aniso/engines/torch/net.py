"""One stage of a learned diffusion for tensors (images, channels, H, W), by PyTorch operations.

:mod:`aniso.engines.triton.net` has fused kernels for the same.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from aniso.engines.torch.operator import finite_gradient, largest_magnitude
from aniso.formulas.learned import energy, learned_step, response_weight, scaled_square


def learned_part(
    u: Tensor,
    f: Tensor,
    whole: Tensor,
    kernels: Tensor,
    mixing: Tensor,
    numbers: Tensor,
    others: Tensor | None,
    dilation: int,
    keeps: bool,
) -> tuple[Tensor, Tensor]:
    """Return some channels of images after a stage, and the averages ē of the energies of their responses.

    The latter have no values, and another shape, unless `keeps` is set.

    `f` are these channels of the noisy images, and `whole` all channels of the evolving ones. `kernels` is
    (count, 1, side, side), and `mixing` (2 or 3, count, count) the matrices M, N and P, of which P is for the
    averages `others` of other channels. `numbers`, (images or 1, 3·count + 2), holds c/σ, a and b for each
    kernel, and s and μ.
    """
    values = numbers[:, :, None, None]
    unit, gain, bias = values[:, :-2].chunk(3, dim=1)
    step, back = values[:, -2:].chunk(2, dim=1)
    v = responses(u.flatten(0, 1)[:, None], kernels, dilation)
    v = v.reshape(*u.shape[:2], *v.shape[1:])
    e = energy(scaled_square(v, unit[:, None], largest_magnitude(u.dtype)).mean(dim=1))
    averaged = averages(e, dilation)
    weights = response_weight(_mix(mixing, e, averaged, others), gain, bias)
    flux = v * finite_gradient(weights, whole)[:, None]
    rate = responses_adjoint(flux.flatten(0, 1), kernels, u.shape, dilation)
    return learned_step(u, rate, f, step, back), averaged if keeps else u.new_empty(0)


def _mix(mixing: Tensor, *energies: Tensor | None) -> Tensor:
    """Return M e + N ē + P ē'."""
    given = [each for each in energies if each is not None]
    matrices = mixing[..., None, None]
    total = F.conv2d(given[0], matrices[0])
    for averaged, matrix in zip(given[1:], matrices[1:], strict=True):
        total = total + F.conv2d(averaged, matrix)
    return total


def averages(energy: Tensor, dilation: int) -> Tensor:
    """Return averages over those of 3×3 pixels, spaced by the dilation, that lie inside the image."""
    return _sums(energy, dilation) / _sums(torch.ones_like(energy[:1, :1]), dilation)


def _sums(energy: Tensor, n: int) -> Tensor:
    """Return sums over 3×3 pixels, with zeros outside the image."""
    e = F.pad(energy, [n, n, n, n])
    e = e[..., : -2 * n, :] + e[..., n:-n, :] + e[..., 2 * n :, :]
    return e[..., : -2 * n] + e[..., n:-n] + e[..., 2 * n :]


def responses(u: Tensor, kernels: Tensor, dilation: int) -> Tensor:
    """Return K u, (N, 1, H, W) → (N, count, H, W); the image is mirrored at its boundary."""
    for axis in (-2, -1):
        u = u.index_select(axis, _mirrored(u.shape[axis], kernels, dilation))
    return F.conv2d(smooth(u, F.conv2d, dilation), kernels, dilation=dilation)


def responses_adjoint(flux: Tensor, kernels: Tensor, shape: torch.Size, dilation: int) -> Tensor:
    """Return Kᵀ of the flux in the shape of the image."""
    u = smooth(F.conv_transpose2d(flux, kernels, dilation=dilation), F.conv_transpose2d, dilation)
    for axis in (-2, -1):
        length = shape[axis]
        zeros = u.new_zeros([*u.shape[:axis], length, *u.shape[axis:][1:]])
        u = zeros.index_add(axis, _mirrored(length, kernels, dilation), u)
    return u.reshape(shape)


def _mirrored(length: int, kernels: Tensor, dilation: int) -> Tensor:
    """Return the pixels of an axis with as many mirrored ones at its ends as the kernels reach."""
    reach = dilation * (kernels.shape[-1] // 2) + dilation - 1
    position = torch.arange(-reach, length + reach, device=kernels.device)
    position = position % torch.full_like(position, 2 * length)
    return torch.minimum(position, 2 * length - 1 - position)


def smooth(u: Tensor, convolve: Any, dilation: int) -> Tensor:
    """Average over the pixels between those that a dilated kernel takes."""
    if dilation == 1:
        return u
    hat = hat_weights(dilation, u)
    hat = torch.cat([hat[1:].flip(0), hat])
    smoothed: Tensor = convolve(convolve(u, hat[None, None, :, None]), hat[None, None, None])
    return smoothed


def hat_weights(dilation: int, like: Tensor) -> Tensor:
    """Return the weights of the smoothing that goes with a dilation, from the centre outwards."""
    return (dilation - torch.arange(dilation, device=like.device)).to(like.dtype) / dilation**2
