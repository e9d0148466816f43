"""Stages of a learned diffusion by fused kernels, as a PyTorch operator.

The smoothing that goes with a dilation has the kernel of the presmoothing. It is symmetric and commutes with
mirrors, so that it comes before the responses and, as its own adjoint, after Kᵀ.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from aniso.engines.torch import net as eager
from aniso.engines.torch.net import hat_weights
from aniso.engines.torch.operator import largest_magnitude
from aniso.engines.triton import net_kernels
from aniso.engines.triton.launches import Tile
from aniso.engines.triton.steering import smooth_along
from aniso.formulas.gaussian import fold_at_edge

# Sizes for which the kernels fit the registers of all GPUs tried, see benchmarks/gpu.py: kernels times
# pixels, and pixels where there are no kernels.
_RESPONSES, _PIXELS = 2048, Tile(1, 256)


@torch.library.custom_op("aniso::learned_part", mutates_args=())
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
    """Return the same as :func:`aniso.engines.torch.net.learned_part`.

    Gradients are those of the PyTorch operations, which are carried out again.
    """
    u, f, kernels, mixing, numbers = (each.contiguous() for each in (u, f, kernels, mixing, numbers))
    others = None if others is None else others.contiguous()
    count, side = kernels.shape[0], kernels.shape[-1]
    images, channels, height, width = u.shape
    sizes: dict[str, Any] = {"height": height, "width": width}
    of_images = {**sizes, "channels": channels, "numbers": numbers}
    of_images["per_image"] = 0 if len(numbers) == 1 else numbers.shape[1]
    responses = {**of_images, "u": _smooth(u, dilation), "kernels": kernels, "dilation": dilation}
    of_kernels = {"COUNT": count, "PADDED": triton.next_power_of_2(count), "SIDE": side}
    of_kernels["SMALL"] = min(height, width) < dilation * (side // 2)
    row = Tile(1, _RESPONSES // of_kernels["PADDED"])
    pixels, planes = (images, height, width), (images * channels, height, width)
    energies = u.new_empty(images, count, height, width)
    arguments = {**responses, "out": energies, "most": largest_magnitude(u.dtype)}
    row.launch(net_kernels.response_energies, pixels, arguments, of_kernels)
    fluxes = u.new_empty(images, channels, count, height, width)
    averaged = torch.empty_like(energies) if keeps else u.new_empty(0)
    arguments = {
        **{**responses, "energies": energies, "others": energies if others is None else others},
        **{"averaged": averaged if keeps else energies, "out": fluxes, "mixing": mixing},
    }
    constants = {**of_kernels, "OTHERS": others is not None, "KEEPS": keeps}
    row.launch(net_kernels.response_fluxes, pixels, arguments, constants)
    rates, after = torch.empty_like(u), torch.empty_like(u)
    arguments = {**sizes, "fluxes": fluxes, "out": rates, "kernels": kernels, "dilation": dilation}
    row.launch(net_kernels.flux_sums, planes, arguments, of_kernels)
    arguments = {**of_images, "u": u, "f": f, "rates": _smooth(rates, dilation), "out": after}
    _PIXELS.launch(net_kernels.finish_stage, planes, arguments, {"COUNT": count})
    return after, averaged


def _smooth(u: Tensor, dilation: int) -> Tensor:
    """Return the average over the pixels between those that a dilated kernel takes."""
    if dilation == 1:
        return u
    weights = hat_weights(dilation, u)
    for axis in (0, 1):
        length = u.shape[axis + 2]
        place = torch.arange(1 - dilation, length + dilation - 1, device=u.device)
        u = smooth_along(u, 2, axis, weights, fold_at_edge(place, length).to(torch.int32))
    return u


@learned_part.register_fake
def _(*given: Any) -> tuple[Tensor, Tensor]:
    u, _, _, kernels, *_, keeps = given
    images, _, height, width = u.shape
    averaged = u.new_empty(images, kernels.shape[0], height, width) if keeps else u.new_empty(0)
    return torch.empty_like(u, memory_format=torch.contiguous_format), averaged


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.dilation, ctx.keeps = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
    again = torch.is_grad_enabled()
    wanted = ctx.needs_input_grad[:-2]
    with torch.enable_grad():
        inputs = [
            each if each is None or again else each.detach().requires_grad_(need)
            for each, need in zip(ctx.saved_tensors, wanted, strict=True)
        ]
        compute: Any = eager.learned_part
        outputs = compute(*inputs, ctx.dilation, ctx.keeps)
        if not ctx.keeps:
            outputs, grads = outputs[:1], grads[:1]
        chosen = [each for each, need in zip(inputs, wanted, strict=True) if need]
        found = iter(torch.autograd.grad(outputs, chosen, grads, create_graph=again, allow_unused=True))
    return (*(next(found) if need else None for need in wanted), None, None)


learned_part.register_autograd(_backward, setup_context=_keep)
