"""The reference engine: NumPy and SciPy on whole arrays, in double precision, slow and obvious.

Every other engine is measured against it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from aniso.engines import Problem
from aniso.formulas import cell, views, weights
from aniso.formulas.folding import centre_fold
from aniso.formulas.gaussian import gaussian_radius
from aniso.formulas.steps import extrapolated_step
from aniso.formulas.structure import structure
from aniso.models import FixedTensor, ImageDriven
from aniso.schemes import Cycle

Array = npt.NDArray[np.float64]


class Evolution:
    """An image on its way: shape (channels, H, W)."""

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

    def close(self) -> None:
        """Nothing to let go of."""


def frozen_rate(u: Array, problem: Problem) -> Callable[[Array], Array]:
    """The linear map v → A(u) v."""
    h_y, h_x = problem.spacings
    a, b, c = weights.scaled(*diffusion_tensor(u, problem), 1 / h_x, 1 / h_y)
    zeta = problem.stencil.hourglass_weight(a, b, c, 1 / (h_x * h_y))

    def rate(v: Array) -> Array:
        modes = cell.modes(*views.corners(_mirrored(v)))
        return views.pixel_sums(*cell.corner_shares(*cell.fluxes(*modes, a, b, c, zeta)))

    return rate


def diffusion_tensor(u: Array, problem: Problem) -> tuple[Array, Array, Array]:
    """a, b, c over the cells."""
    model = problem.model
    if isinstance(model, FixedTensor):
        return model.entries
    j_xx, j_xy, j_yy = structure_tensor(u, model, problem.spacings)
    a, b, c = model.tensor_formula(len(u))(j_xx, j_xy, j_yy)
    # An entry may be a constant.
    a, b, c = (np.broadcast_to(np.asarray(entry, np.float64), j_xx.shape) for entry in (a, b, c))
    return a, b, c


def structure_tensor(u: Array, model: ImageDriven, spacings: tuple[float, ...]) -> tuple[Array, Array, Array]:
    """j_xx, j_xy, j_yy over the cells: mean over the channels, averaged over the integration scale."""
    h_y, h_x = spacings
    smooth = ndimage.gaussian_filter(
        u, (0, model.presmoothing / h_y, model.presmoothing / h_x), mode="reflect", truncate=4.0
    )
    x, y, _ = cell.modes(*views.corners(_mirrored(smooth)))
    with np.errstate(over="ignore"):  # homogeneous diffusion takes any image and does not look at this
        j_xx, j_xy, j_yy = (j.mean(axis=0) for j in structure(x / h_x, y / h_y))
    widths = model.integration / h_y, model.integration / h_x
    j_xx, j_yy = (_averaged(j, widths, odd=False) for j in (j_xx, j_yy))
    return j_xx, _averaged(j_xy, widths, odd=True), j_yy


def _mirrored(u: Array) -> Array:
    return np.pad(u, [(0, 0), (1, 1), (1, 1)], mode="edge")


def _averaged(field: Array, widths: tuple[float, ...], odd: bool) -> Array:
    """A Gaussian over cells. The boundary passes through the centres of the outer ones.

    Mirroring keeps j_xx and j_yy and turns the sign of j_xy, which therefore vanishes on the boundary.
    """
    for axis, width in enumerate(widths):
        reach = gaussian_radius(width)
        if reach == 0:
            continue
        index, sign = centre_fold(field.shape[axis], reach)
        folded = np.take(field, index, axis)
        if odd:
            folded = folded * np.expand_dims(sign, 1 - axis)
        smooth = ndimage.gaussian_filter1d(folded, width, axis, mode="constant", truncate=4.0)
        field = np.take(smooth, np.arange(reach, reach + field.shape[axis]), axis)
        if odd:
            np.moveaxis(field, axis, 0)[[0, -1]] = 0.0
    return field
