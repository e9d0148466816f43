"""The engine that :func:`aniso.diffuse` chooses for tensors."""

from __future__ import annotations

import math
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
    pixels,
    rate,
)
from aniso.engines.torch.smoothing import half_kernel
from aniso.formulas import weights
from aniso.models import FixedTensor
from aniso.schemes import Cycle
from aniso.stencil import FreeStencil


class Evolution:
    """Images or volumes on their way: shape (images, channels, H, W) or (images, channels, D, H, W)."""

    def __init__(self, image: Tensor, problem: Problem) -> None:
        self._u, self._problem = image, problem
        self._fixed = None if problem.fixed is None else self._on_device(problem.fixed)
        model = problem.model
        if isinstance(model, FixedTensor):
            self._entries: Entries = tuple(self._on_device(entry, image.dtype) for entry in model.entries)
        else:
            check_diffusivity(getattr(model, "diffusivity", None), image)
            scales = (model.presmoothing, model.integration)
            self._noise, self._integration = (
                tuple(half_kernel(pixels(width, h), image) for h in problem.spacings) for width in scales
            )
            self._contrast = getattr(model, "contrast", 1.0)
            # The derivatives are in units of the contrast already.
            values = {**vars(model), "contrast": 1.0}
            self._formula = model.tensor_formula(image.shape[1], values, len(problem.spacings))
        if isinstance(problem.stencil, FreeStencil):
            self._delta = self._on_device(problem.stencil.values, image.dtype)

    @property
    def image(self) -> Tensor:
        """The images as they are now."""
        return self._u

    def advance(self, steps: Cycle) -> None:
        """Carry out one cycle, with the tensors of the images as they are now."""
        entries = at_unit_spacing(self.tensor(), self._problem.spacings)
        inner = self._hourglass_weights(entries, 1 / math.prod(self._problem.spacings))
        coupled = self._problem.stencil.coupled
        self._u = cycle(self._u, lambda v: rate(v, entries, inner, coupled=coupled), steps.steps, self._fixed)

    def close(self) -> None:
        """Nothing to let go of."""

    def tensor(self) -> Entries:
        """The entries of the diffusion tensors over the cells, of the images as they are now."""
        if isinstance(self._problem.model, FixedTensor):
            return self._entries
        kernels = self._noise, self._integration
        return image_tensor(self._u, self._formula, self._contrast, self._problem.spacings, *kernels)

    def _hourglass_weights(self, entries: Entries, per_area: float) -> Entries:
        if isinstance(self._problem.stencil, FreeStencil):
            a, _, c = entries
            return (weights.free_hourglass_weight(a, c, self._delta * per_area),)
        return self._problem.stencil.hourglass_weights(entries, per_area)

    def _on_device(self, array: Any, dtype: torch.dtype | None = None) -> Tensor:
        return torch.tensor(array, dtype=dtype, device=self._u.device)
