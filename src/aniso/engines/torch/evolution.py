"""The engine that :func:`aniso.diffuse` chooses for tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from aniso.engines import Problem
from aniso.engines.torch.operator import (
    Entries,
    at_unit_spacing,
    check_diffusivity,
    cycle,
    image_tensor,
    rate,
)
from aniso.engines.torch.smoothing import half_kernel
from aniso.formulas import weights
from aniso.schemes import Cycle
from aniso.stencil import FreeStencil


class Steering:
    """What a problem needs on the device of an image, and the tensors of images under it."""

    def __init__(self, image: Tensor, problem: Problem) -> None:
        self.problem, self._device, self._dtype = problem, image.device, image.dtype
        self.fixed = None if problem.fixed is None else self.on_device(problem.fixed)
        model = problem.model
        if model.entries is not None:
            self.entries: Entries = tuple(self.on_device(entry, image.dtype) for entry in model.entries)
        else:
            check_diffusivity(getattr(model, "diffusivity", None), image)
            scales = (model.presmoothing, model.integration)
            self.noise, self.integration = (
                tuple(half_kernel(width / h, image) for h in problem.spacings) for width in scales
            )
            self.contrast = getattr(model, "contrast", 1.0)
            # The derivatives are in units of the contrast already.
            values = {**vars(model), "contrast": 1.0}
            self.formula = model.tensor_formula(image.shape[1], values, len(problem.spacings))
        if isinstance(problem.stencil, FreeStencil):
            self.delta = self.on_device(problem.stencil.values, image.dtype) / math.prod(problem.spacings)

    def tensor(self, u: Tensor) -> Entries:
        """Return the entries of the diffusion tensors of images over the cells."""
        if self.problem.model.entries is not None:
            return self.entries
        kernels = self.noise, self.integration
        return image_tensor(u, self.formula, self.contrast, self.problem.spacings, *kernels)

    def rate(self, entries: Entries) -> Callable[[Tensor], Tensor]:
        """Return the linear map v → A v for tensors that are scaled to unit spacing."""
        stencil = self.problem.stencil
        if isinstance(stencil, FreeStencil):
            a, _, c = entries
            inner: Entries = (weights.free_hourglass_weight(a, c, self.delta),)
        else:
            inner = stencil.hourglass_weights(entries, 1 / math.prod(self.problem.spacings))
        return lambda v: rate(v, entries, inner, coupled=stencil.coupled)

    def on_device(self, array: Any, dtype: torch.dtype | None = None) -> Tensor:
        """Return an array as a tensor on the device of the image."""
        return torch.tensor(array, dtype=dtype, device=self._device)


class Evolution:
    """Evolving images or volumes: shape (images, channels, H, W) or (images, channels, D, H, W)."""

    def __init__(self, image: Tensor, problem: Problem) -> None:
        self._u, self._steering = image, Steering(image, problem)

    @property
    def image(self) -> Tensor:
        """The images as they are now."""
        return self._u

    def advance(self, steps: Cycle) -> None:
        """Carry out one cycle, with the tensors of the images as they are now."""
        steering = self._steering
        entries = at_unit_spacing(self.tensor(), steering.problem.spacings)
        self._u = cycle(self._u, steering.rate(entries), steps.steps, steering.fixed)

    def close(self) -> None:
        """Nothing to release."""

    def tensor(self) -> Entries:
        """Return the entries of the diffusion tensors over the cells, of the images as they are now."""
        return self._steering.tensor(self._u)
