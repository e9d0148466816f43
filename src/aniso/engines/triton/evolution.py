"""The engine for tensors on a GPU."""

from __future__ import annotations

import torch
from torch import Tensor

from aniso.engines import Problem
from aniso.engines.torch import evolution
from aniso.engines.triton.devices import check_device
from aniso.engines.triton.operators import frozen_step, fused_step, register, stored_tensors
from aniso.engines.triton.steering import FusedSteering
from aniso.schemes import Cycle


class Evolution(evolution.Evolution):
    """Evolving images or volumes: shape (images, channels, H, W) or (images, channels, D, H, W).

    An explicit step of one channel without integration scale is a single kernel after presmoothing. In all
    other cases the tensors are computed and stored first, and each step of the cycle is a kernel.
    """

    _steering: FusedSteering

    @torch.compiler.disable  # type: ignore[untyped-decorator]  # the text of kernels is not to be traced
    def __init__(self, image: Tensor, problem: Problem) -> None:
        check_device(image.device)
        self._u = image.contiguous()
        self._steering = FusedSteering(self._u, problem)
        self._context = self._steering.constants, register(self._steering)

    def advance(self, steps: Cycle) -> None:
        """Carry out one cycle, with the tensors of the images as they are now."""
        # The image before the first one of a cycle is that one itself: extrapolation is a longer step there.
        (weight, tau), *others = steps.steps
        if self._steering.can_fuse and not others:
            self._u = fused_step(self._u, *self._context, weight * tau)
            return
        tensors = self._steering.tensors
        if tensors is None:
            tensors = stored_tensors(self._u, *self._context)
        previous, u = self._u, frozen_step(self._u, None, tensors, *self._context, 1.0, weight * tau, True)
        for weight, tau in others:
            before = None if weight == 1 else previous
            previous, u = u, frozen_step(u, before, tensors, *self._context, weight, tau, True)
        self._u = u
