"""The PyTorch operators of the fused kernels: what they compute, their shapes and their gradients.

`torch.compile` sees them as operators of which it knows the shapes. They never wait for the device.

A step with stored tensors is linear in the images, and A is symmetric: its adjoint is the same kernel. Other
gradients are those of the eager operations, which are carried out again; so they can be differentiated twice.
These need the tensors of the steering as arguments, `constants`, or `torch.compile` could not trace them.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from aniso.engines.torch.operator import at_unit_spacing, cycle
from aniso.engines.triton.steering import FusedSteering

_steerings: weakref.WeakValueDictionary[int, FusedSteering] = weakref.WeakValueDictionary()
_numbers = itertools.count()


def register(steering: FusedSteering) -> int:
    """Return the number by which operators find it, as long as it is in use."""
    key = next(_numbers)  # never given again: compiled code may remember it
    _steerings[key] = steering
    return key


@torch.library.custom_op("aniso::fused_step", mutates_args=())
def fused_step(u: Tensor, constants: list[Tensor], steering: int, tau: float) -> Tensor:
    """Return images of one channel after an explicit step with the tensors of these images."""
    return _steerings[steering].fused_step(u.contiguous(), tau)


@torch.library.custom_op("aniso::stored_tensors", mutates_args=())
def stored_tensors(u: Tensor, constants: list[Tensor], steering: int) -> Tensor:
    """Return the tensors of images over the cells, (entries, images, cells along each axis)."""
    return _steerings[steering].stored_tensors(u.contiguous())


@torch.library.custom_op("aniso::frozen_step", mutates_args=())
def frozen_step(
    u: Tensor,
    previous: Tensor | None,
    tensors: Tensor,
    constants: list[Tensor],
    steering: int,
    weight: float,
    tau: float,
    keeps_fixed: bool,
) -> Tensor:
    """Return images after a step (w, τ) with stored tensors; fixed pixels keep their values, or do not."""
    images = u.contiguous(), None if previous is None else previous.contiguous()
    return _steerings[steering].frozen_step(*images, tensors.contiguous(), weight, tau, keeps_fixed)


@fused_step.register_fake
@frozen_step.register_fake
def _(u: Tensor, *others: Any) -> Tensor:
    return torch.empty_like(u, memory_format=torch.contiguous_format)


@stored_tensors.register_fake
def _(u: Tensor, constants: list[Tensor], steering: int) -> Tensor:
    ndim = u.ndim - 2
    return u.new_empty(ndim * (ndim + 1) // 2, len(u), *(length + 1 for length in u.shape[2:]))


def _keep_driven(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    u, constants, steering, *ctx.others = inputs
    ctx.save_for_backward(u, *constants)
    ctx.steering = _steerings[steering]  # which lives as long as gradients may be asked for


def _driven_gradient(ctx: Any, grad: Tensor, compute: Callable[[FusedSteering, Tensor], Tensor]) -> Tensor:
    """Return the gradient of a function of the images, by the eager operations."""
    u, *constants = ctx.saved_tensors
    steering, again = ctx.steering.with_constants(constants), torch.is_grad_enabled()
    with torch.enable_grad():
        u = u if again and u.requires_grad else u.detach().requires_grad_()
        result = compute(steering, u)
        if not result.requires_grad:  # a tensor that is the same for all images
            return torch.zeros_like(u)
        (gradient,) = torch.autograd.grad(result, u, grad, create_graph=again)
    return gradient


def _fused_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    (tau,) = ctx.others

    def step(steering: FusedSteering, u: Tensor) -> Tensor:
        rate = steering.rate(at_unit_spacing(steering.tensor(u), steering.problem.spacings))
        return cycle(u, rate, ((1.0, tau),), steering.fixed)

    return _driven_gradient(ctx, grad, step), _no_gradients(ctx), None, None


def _stored_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    return _driven_gradient(ctx, grad, FusedSteering.eager_tensors), _no_gradients(ctx), None


def _no_gradients(ctx: Any) -> list[None]:
    return [None] * len(ctx.steering.constants)


def _keep_frozen(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    u, previous, tensors, constants, ctx.key, ctx.weight, ctx.tau, ctx.keeps_fixed = inputs
    ctx.extrapolated, ctx.steering = previous is not None, _steerings[ctx.key]
    # The images themselves matter only to the gradients of tensors.
    ctx.save_for_backward(tensors, *constants, *((u,) if tensors.requires_grad else ()))


def _frozen_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    tensors, *saved = ctx.saved_tensors
    count = len(ctx.steering.constants)
    constants, images = list(saved[:count]), saved[count:]
    steering = ctx.steering.with_constants(constants)
    fixed = steering.fixed if ctx.keeps_fixed else None
    free = grad if fixed is None else grad.masked_fill(fixed, 0.0)
    of_u = of_previous = of_tensors = None
    if ctx.needs_input_grad[0]:
        # w(I + τA), without the fixed pixels, which no step changes.
        of_u = ctx.weight * frozen_step(free, None, tensors, constants, ctx.key, 1.0, ctx.tau, False)
        if fixed is not None:
            of_u = of_u + (grad - free)
    if ctx.extrapolated and ctx.needs_input_grad[1]:
        of_previous = (1 - ctx.weight) * free
    if ctx.needs_input_grad[2]:
        again = torch.is_grad_enabled()
        with torch.enable_grad():
            given = tensors if again else tensors.detach().requires_grad_()
            rate = steering.rate(given.unsqueeze(2).unbind(0))(images[0])
            factor = ctx.weight * ctx.tau
            (of_tensors,) = torch.autograd.grad(rate, given, factor * free, create_graph=again)
    return of_u, of_previous, of_tensors, _no_gradients(ctx), None, None, None, None


fused_step.register_autograd(_fused_backward, setup_context=_keep_driven)
stored_tensors.register_autograd(_stored_backward, setup_context=_keep_driven)
frozen_step.register_autograd(_frozen_backward, setup_context=_keep_frozen)
