"""The reference engine: NumPy and SciPy on whole arrays, in double precision, slow and obvious.

Every other engine is measured against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from aniso.cancelling import check_cancelled
from aniso.engines import Problem
from aniso.formulas import dimensions, views
from aniso.formulas.bounds import extrapolated_step
from aniso.formulas.gaussian import centre_fold, gaussian_radius
from aniso.models import Model
from aniso.schemes import Cycle

Array = npt.NDArray[np.float64]


class Evolution:
    """An evolving image or volume: shape (channels, H, W) or (channels, D, H, W)."""

    def __init__(self, image: npt.NDArray[Any], problem: Problem) -> None:
        self._u = image.astype(np.float64)
        self._problem = problem

    @property
    def image(self) -> Array:
        """The image as it is now."""
        return self._u

    def advance(self, cycle: Cycle) -> None:
        """Carry out one cycle, with the tensor of the image as it is now."""
        start, fixed = self._u, self._problem.fixed
        rate = frozen_rate(start, self._problem)
        u, previous = start, start
        for weight, tau in cycle.steps:
            u, previous = extrapolated_step(u, previous, rate(u), weight, tau), u
            if fixed is not None:
                u[:, fixed] = start[:, fixed]
        self._u = u

    def tensor(self) -> tuple[Array, ...]:
        """The entries xx, xy, yy, … of the diffusion tensor over the cells, of the image as it is now."""
        return diffusion_tensor(self._u, self._problem)

    def close(self) -> None:
        """Nothing to release."""


def frozen_rate(u: Array, problem: Problem) -> Callable[[Array], Array]:
    """The linear map v → A(u) v."""
    formulas, stencil = dimensions.of(len(problem.spacings)), problem.stencil
    entries = formulas.scaled(*diffusion_tensor(u, problem), *per_unit(problem.spacings))
    inner = stencil.hourglass_weights(entries, 1 / math.prod(problem.spacings))

    def rate(v: Array) -> Array:
        corners = views.corners(_pad_edges(v), formulas.ndim)
        shares = formulas.cell_shares(corners, (*entries, *inner), coupled=stencil.coupled)
        sums: Array = views.pixel_sums(*shares)
        return sums

    return rate


def diffusion_tensor(u: Array, problem: Problem) -> tuple[Array, ...]:
    """The entries xx, xy, yy, … over the cells."""
    model = problem.model
    if model.entries is not None:
        return model.entries
    structure = structure_tensor(u, model, problem.spacings)
    entries = model.tensor_formula(len(u), ndim=len(problem.spacings))(*structure)
    # An entry may be a constant.
    return tuple(np.broadcast_to(np.asarray(entry, np.float64), structure[0].shape) for entry in entries)


def structure_tensor(u: Array, model: Model, spacings: tuple[float, ...]) -> tuple[Array, ...]:
    """The entries over the cells: mean over the channels, averaged over the integration scale."""
    formulas = dimensions.of(len(spacings))
    widths = [model.presmoothing / h for h in spacings]
    smooth = ndimage.gaussian_filter(u, (0, *widths), mode="reflect", truncate=4.0)
    check_cancelled()
    gradient = formulas.modes(*views.corners(_pad_edges(smooth), formulas.ndim))[: formulas.ndim]
    check_cancelled()
    with np.errstate(over="ignore"):  # homogeneous diffusion takes any image and does not look at this
        slopes = (mode * per for mode, per in zip(gradient, per_unit(spacings), strict=True))
        entries = [entry.mean(axis=0) for entry in formulas.structure(*slopes)]
    widths = [model.integration / h for h in spacings]
    return tuple(
        _average_cells(entry, widths, axes) for entry, axes in zip(entries, formulas.entry_axes, strict=True)
    )


def per_unit(spacings: tuple[float, ...]) -> tuple[float, ...]:
    """One over the spacings, x first."""
    return tuple(1 / h for h in reversed(spacings))


def _pad_edges(u: Array) -> Array:
    return np.pad(u, [(0, 0)] + [(1, 1)] * (u.ndim - 1), mode="edge")


def _average_cells(field: Array, widths: list[float], axes: tuple[int, int]) -> Array:
    """A Gaussian over cells. The boundary passes through the centres of the outer ones.

    Mirroring keeps the entries xx, yy, … and turns the sign of a mixed one if it mirrors one of its axes;
    it therefore vanishes on that boundary.
    """
    for axis, width in enumerate(widths, start=-len(widths)):
        check_cancelled()
        reach = gaussian_radius(width)
        if reach == 0:
            continue
        index, sign = centre_fold(field.shape[axis], reach)
        folded = np.take(field, index, axis)
        odd = axes[0] != axes[1] and axis in axes
        if odd:
            folded = folded * sign.reshape(-1, *[1] * (-1 - axis))
        smooth = ndimage.gaussian_filter1d(folded, width, axis, mode="constant", truncate=4.0)
        field = np.take(smooth, np.arange(reach, reach + field.shape[axis]), axis)
        if odd:
            np.moveaxis(field, axis, 0)[[0, -1]] = 0.0
    return field
