"""The engine that :func:`aniso.diffuse` chooses for tensors."""

from __future__ import annotations

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
    """Images on their way: shape (images, channels, H, W)."""

    def __init__(self, image: Tensor, problem: Problem) -> None:
        self._u, self._problem = image, problem
        self._fixed = None if problem.fixed is None else self._on_device(problem.fixed)
        model = problem.model
        if isinstance(model, FixedTensor):
            a, b, c = (self._on_device(entry, image.dtype) for entry in model.entries)
            self._entries: Entries = a, b, c
        else:
            check_diffusivity(getattr(model, "diffusivity", None), image)
            scales = (model.presmoothing, model.integration)
            self._noise, self._integration = (
                tuple(half_kernel(pixels(width, h), image) for h in problem.spacings) for width in scales
            )
            self._contrast = getattr(model, "contrast", 1.0)
            # The derivatives are in units of the contrast already.
            self._formula = model.tensor_formula(image.shape[1], {**vars(model), "contrast": 1.0})
        if isinstance(problem.stencil, FreeStencil):
            self._delta = self._on_device(problem.stencil.values, image.dtype)

    @property
    def image(self) -> Tensor:
        """The images as they are now."""
        return self._u

    def advance(self, steps: Cycle) -> None:
        """Carry out one cycle, with the tensors of the images as they are now."""
        h_y, h_x = self._problem.spacings
        a, b, c = at_unit_spacing(self._tensor(), self._problem.spacings)
        zeta = self._hourglass_weight(a, b, c, 1 / (h_x * h_y))
        self._u = cycle(self._u, lambda v: rate(v, a, b, c, zeta), steps.steps, self._fixed)

    def close(self) -> None:
        """Nothing to let go of."""

    def _tensor(self) -> Entries:
        if isinstance(self._problem.model, FixedTensor):
            return self._entries
        kernels = self._noise, self._integration
        return image_tensor(self._u, self._formula, self._contrast, self._problem.spacings, *kernels)

    def _hourglass_weight(self, a: Any, b: Any, c: Any, per_area: float) -> Any:
        if isinstance(self._problem.stencil, FreeStencil):
            return weights.free_hourglass_weight(a, c, self._delta * per_area)
        return self._problem.stencil.hourglass_weights((a, b, c), per_area)[0]

    def _on_device(self, array: Any, dtype: torch.dtype | None = None) -> Tensor:
        return torch.tensor(array, dtype=dtype, device=self._u.device)
