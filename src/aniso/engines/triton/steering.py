"""What a problem needs on a GPU, and which kernels carry it out."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from aniso.engines import Problem
from aniso.engines.torch import evolution
from aniso.engines.torch.operator import (
    Entries,
    at_unit_spacing,
    largest_magnitude,
    slope_factors,
    tensor_of_structure,
)
from aniso.engines.triton import kernels
from aniso.engines.triton.device_functions import is_compilable, tensor_function
from aniso.engines.triton.launches import Launch, Tile
from aniso.formulas.dimensions import ENTRY_AXES
from aniso.formulas.gaussian import centre_fold, edge_fold
from aniso.stencil import FreeStencil, SplitStencil

# Sizes for which the kernels fit the registers of all GPUs tried, see benchmarks/gpu.py.
_SMOOTHING, _TILES, _LINE = Tile(16, 64), {2: Tile(4, 64), 3: Tile(4, 32)}, 256


class FusedSteering(evolution.Steering):
    """The tables and numbers of the kernels, for images of one shape, type and device."""

    def __init__(self, image: Tensor, problem: Problem) -> None:
        super().__init__(image, problem)
        self._ndim = len(problem.spacings)
        self._shape = tuple(image.shape[-self._ndim :])
        self._lengths = dict(zip(("depth", "height", "width"), (1, *self._shape)[-3:], strict=True))
        self.stencil = _stencil_name(problem.stencil)
        self.tensors: Tensor | None = None
        self.is_compiled = self.can_fuse = False
        parameters: tuple[float, ...] = ()
        model, slopes = problem.model, (0.0,) * self._ndim
        if model.entries is not None:
            self.tensors = torch.stack(at_unit_spacing(self.entries, problem.spacings))[:, None]
        else:
            slopes = slope_factors(self.contrast, problem.spacings, image.dtype)
            self.is_compiled = is_compilable(self.formula)
            smooth = model.integration == 0
            self.can_fuse = self.is_compiled and smooth and image.shape[1] == 1 and self.stencil == "delta"
            if self.is_compiled:
                parameters = self.formula.parameters
                self._tensor_function = tensor_function(self.formula, self._ndim)
            self._pixel_tables = [
                self.on_device(edge_fold(n, _reach(weights)), torch.int32)
                for n, weights in zip(self._shape, self.noise, strict=True)
            ]
            self._cell_tables = [
                self._cell_table(n + 1, _reach(weights))
                for n, weights in zip(self._shape, self.integration, strict=True)
            ]
        of_stencil = (getattr(problem.stencil, name, None) or 0.0 for name in ("alpha", "gamma", "beta"))
        per_unit = (1 / h for h in reversed(problem.spacings))
        most = largest_magnitude(image.dtype)
        numbers = (*slopes, *per_unit, *of_stencil, most, *parameters)
        self.numbers = self.on_device(numbers, image.dtype)
        self._mask = None if self.fixed is None else self.fixed.to(torch.uint8)

    @property
    def constants(self) -> list[Tensor]:
        """The tensors that the eager operations use."""
        if self.problem.model.entries is not None:
            given = []
        else:
            given = [kernel for kernel in (*self.noise, *self.integration) if kernel is not None]
        given += [] if self.fixed is None else [self.fixed]
        return given + ([self.delta] if self.stencil == "free" else [])

    def with_constants(self, constants: list[Tensor]) -> FusedSteering:
        """Return the same with other tensors in their place."""
        other, given = copy.copy(self), iter(constants)
        if self.problem.model.entries is None:
            other.noise, other.integration = (
                tuple(None if kernel is None else next(given) for kernel in kernels)
                for kernels in (self.noise, self.integration)
            )
        other.fixed = None if self.fixed is None else next(given)
        if self.stencil == "free":
            other.delta = next(given)
        return other

    def fused_step(self, u: Tensor, tau: float) -> Tensor:
        """Return images of one channel after an explicit step with the tensors of these images."""
        return self.frozen_step(u, None, None, 1.0, tau, True, look=self._smooth(u))

    def frozen_step(
        self,
        u: Tensor,
        previous: Tensor | None,
        tensors: Tensor | None,
        weight: float,
        tau: float,
        keeps_fixed: bool,
        *,
        look: Tensor | None = None,
    ) -> Tensor:
        """Return images after a step (w, τ) with stored tensors, or those of the smoothed images `look`.

        Fixed pixels keep their values, or not.
        """
        out, mask = torch.empty_like(u), self._mask if keeps_fixed else None
        arguments = {
            "u": u,
            "previous": u if previous is None else previous,
            "look": u if look is None else look,
            "tensors": u if tensors is None else tensors,
            "delta": self.delta if self.stencil == "free" else u,
            "fixed": u if mask is None else mask,
            "out": out,
            "numbers": self.numbers,
            "weight": weight,
            "tau": tau,
            "channels": u.shape[1],
            **self._lengths,
            "per_image": 0 if tensors is None or tensors.shape[1] == 1 else tensors[0, 0].numel(),
            "per_entry": 0 if tensors is None else tensors[0].numel(),
        }
        constants = {
            "TENSOR": None if look is None else self._tensor_function,
            "NDIM": self._ndim,
            "STENCIL": self.stencil,
            "EXTRAPOLATED": previous is not None,
            "FIXED": mask is not None,
        }
        depth, height, width = self._lengths.values()
        matrices = u.shape[0] * u.shape[1], depth * height, width
        _TILES[self._ndim].launch(kernels.diffusion_step, matrices, arguments, constants)
        return out

    def stored_tensors(self, u: Tensor) -> Tensor:
        """Return the tensors of images over the cells, (entries, images, cells along each axis)."""
        look = self._smooth(u)
        if self.is_compiled and self.problem.model.integration == 0:
            return self._cells(look, self._tensor_function)
        structure = self._average(self._cells(look, None))
        if not self.is_compiled:
            return self._stack(tensor_of_structure(structure.unsqueeze(2).unbind(0), u, self.formula))
        out = torch.empty_like(structure)
        cells = structure[0].numel()
        arguments = {"structures": structure, "out": out, "numbers": self.numbers, "cells": cells}
        constants = {"TENSOR": self._tensor_function, "NDIM": self._ndim, "SIZE": _LINE}
        Launch(kernels.tensors_of_structure, arguments, constants, -(-cells // _LINE), 4).run()
        return out

    def eager_tensors(self, u: Tensor) -> Tensor:
        """Return the same, by operations that are differentiable."""
        return self._stack(self.tensor(u))

    def _stack(self, entries: Entries) -> Tensor:
        """Return entries (images, 1, …) as one tensor (entries, images, …), scaled to unit spacing."""
        scaled = at_unit_spacing(entries, self.problem.spacings)
        return torch.stack([entry[:, 0] for entry in scaled])

    def _cells(self, look: Tensor, tensor: Any) -> Tensor:
        """Return the structure over the cells or, with a formula, the tensors."""
        cells = tuple(length + 1 for length in self._shape)
        out = look.new_empty(self._ndim * (self._ndim + 1) // 2, len(look), *cells)
        arguments = {
            "look": look,
            "out": out,
            "numbers": self.numbers,
            "channels": look.shape[1],
            **self._lengths,
            "per_entry": out[0].numel(),
        }
        matrices = len(look), out[0, 0, ..., 0].numel(), out.shape[-1]
        constants = {"TENSOR": tensor, "NDIM": self._ndim}
        _TILES[self._ndim].launch(kernels.cell_tensors, matrices, arguments, constants)
        return out

    def _smooth(self, u: Tensor) -> Tensor:
        """Return the images through the presmoothing Gaussian."""
        for axis, weights in enumerate(self.noise):
            if weights is not None:
                u = smooth_along(u, self._ndim, axis, weights, self._pixel_tables[axis])
        return u

    def _average(self, structure: Tensor) -> Tensor:
        """Return the structure through the Gaussian of the integration scale."""
        for axis, weights in enumerate(self.integration):
            if weights is not None:
                mixed = [axes[0] != axes[1] and axis - self._ndim in axes for axes in ENTRY_AXES]
                odd = sum(1 << number for number in range(len(structure)) if mixed[number])
                tables = self._cell_tables[axis]
                structure = smooth_along(structure, self._ndim, axis, weights, *tables, odd)
        return structure

    def _cell_table(self, cells: int, reach: int) -> tuple[Tensor, Tensor]:
        index, sign = centre_fold(cells, reach)
        return self.on_device(index, torch.int32), self.on_device(sign, torch.int8)


def smooth_along(
    source: Tensor,
    ndim: int,
    axis: int,
    weights: Tensor,
    fold: Tensor,
    sign: Tensor | None = None,
    odd: int = 0,
) -> Tensor:
    """Return a tensor (stacks, …, pixels along `ndim` axes) through symmetric weights along one axis.

    `weights` start at the centre. `fold` and `sign` are the indices and signs of values from the first that
    they reach on, `odd` the stacks with signs.
    """
    last = axis == ndim - 1
    if last:
        height, width = source[0, ..., 0].numel(), source.shape[-1]
    else:
        height, width = source.shape[axis - ndim], source.shape[axis + 1 - ndim :].numel()
    planes = source.numel() // (height * width)
    out = torch.empty_like(source)
    arguments = {
        "source": source,
        "out": out,
        "weights": weights,
        "fold": fold,
        "sign": fold if sign is None else sign,
        "reach": len(weights) - 1,
        "planes": planes // len(source),
        "height": height,
        "width": width,
    }
    _SMOOTHING.launch(kernels.smooth, (planes, height, width), arguments, {"ALONG_X": last, "ODD": odd})
    return out


def _reach(weights: Tensor | None) -> int:
    return 0 if weights is None else len(weights) - 1


def _stencil_name(stencil: Any) -> str:
    if isinstance(stencil, FreeStencil):
        return "free"
    return "split" if isinstance(stencil, SplitStencil) else "delta"
