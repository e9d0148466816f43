"""From an image to its diffusion tensor, and from the tensor to A as a linear map."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from aniso.engines.torch.smoothing import Kernels, averaged, smoothed
from aniso.formulas import cell, views, weights
from aniso.formulas.steps import explicit_step, extrapolated_step
from aniso.formulas.structure import structure
from aniso.models import TensorFormula

#: a, b, c over the cells, (images, 1, H+1, W+1).
Entries = tuple[Tensor, Tensor, Tensor]


def structure_tensor(
    u: Tensor, noise: Kernels, integration: Kernels, per_unit: tuple[Any, Any]
) -> tuple[Tensor, Tensor, Tensor]:
    """j_xx, j_xy, j_yy over the cells, averaged over the channels.

    `per_unit` are the factors of the derivatives along y and x, 1/(h·contrast), so that the tensor is in
    units of the contrast. Derivatives whose fourth power would leave the range of the type stop growing.
    """
    per_y, per_x = per_unit
    x, y, _ = cell.modes(*views.corners(mirrored(smoothed(u, noise))))
    most = torch.finfo(u.dtype).max ** 0.24
    x, y = (x * per_x).clamp(-most, most), (y * per_y).clamp(-most, most)
    j_xx, j_xy, j_yy = structure(x, y)
    if u.shape[1] > 1:
        j_xx, j_xy, j_yy = (j.mean(dim=1, keepdim=True) for j in (j_xx, j_xy, j_yy))
    return (
        averaged(j_xx, integration),
        averaged(j_xy, integration, odd=True),
        averaged(j_yy, integration),
    )


def image_tensor(
    u: Tensor,
    formula: TensorFormula,
    contrast: Any,
    spacings: tuple[float, ...],
    noise: Kernels,
    integration: Kernels,
) -> Entries:
    """a, b, c of the image. The formula is the one for contrast 1."""
    per_y, per_x = (1 / (h * contrast) for h in spacings)
    j_xx, j_xy, j_yy = structure_tensor(u, noise, integration, (per_y, per_x))
    entries = formula(j_xx, j_xy, j_yy)
    # Gradients are as large as grey values. Times grey values or structure that are huge too they would be
    # inf, and then inf · 0: there the tensor counts as constant. Ordinary numbers never come near.
    if any(isinstance(entry, Tensor) and entry.requires_grad for entry in entries):
        largest = u.detach().abs().amax(dim=(1, 2, 3), keepdim=True)
        moderate = (1 + j_xx + j_yy) * largest * largest < torch.finfo(u.dtype).max ** 0.75
    else:
        moderate = None
    a, b, c = (_over_cells(entry, j_xx, moderate) for entry in entries)
    return a, b, c


def _over_cells(entry: Any, like: Tensor, moderate: Tensor | None) -> Tensor:
    if not isinstance(entry, Tensor):  # a constant
        return like.new_full((), entry).expand_as(like)
    return entry if moderate is None else torch.where(moderate, entry, entry.detach())


def at_unit_spacing(entries: Entries, spacings: tuple[float, ...]) -> Entries:
    """The tensor as a grid of unit spacing sees it."""
    h_y, h_x = spacings
    return entries if h_y == h_x == 1 else weights.scaled(*entries, 1 / h_x, 1 / h_y)


def rate(v: Tensor, a: Tensor, b: Tensor, c: Tensor, zeta: Tensor) -> Tensor:
    """A v, for a tensor that is scaled to unit spacing."""
    fluxes = cell.fluxes(*cell.modes(*views.corners(mirrored(v))), a, b, c, zeta)
    sums: Tensor = views.pixel_sums(*cell.corner_shares(*fluxes))
    return sums


def cycle(
    u: Tensor,
    rate_of: Callable[[Tensor], Tensor],
    steps: tuple[tuple[float, Any], ...],
    fixed: Tensor | None = None,
) -> Tensor:
    """The image after the steps (w, τ) with one tensor; pixels where `fixed` is True keep their values."""
    start, previous = u, u
    for weight, tau in steps:
        if weight == 1:
            u, previous = explicit_step(u, rate_of(u), tau), u
        else:
            u, previous = extrapolated_step(u, previous, rate_of(u), weight, tau), u
        if fixed is not None:
            u = torch.where(fixed, start, u)
    return u


def mirrored(u: Tensor) -> Tensor:
    """The image with one mirrored pixel around it."""
    return F.pad(u, (1, 1, 1, 1), mode="replicate")


def pixels(width: float, spacing: float) -> float:
    """A width in pixels; along an axis that reaches infinitely far, nothing is smoothed."""
    return 0.0 if math.isinf(spacing) else width / spacing


def check_diffusivity(diffusivity: Any, like: Tensor) -> None:
    """Refuse a function of the user's that does not know tensors, before it fails in the middle."""
    if not callable(diffusivity):
        return
    r = torch.tensor([0.0, 1e-3, 1.0, 1e3], dtype=like.dtype, device=like.device, requires_grad=True)
    try:
        knows_tensors = isinstance(diffusivity(r), Tensor)
        reason = "it returned no tensor"
    except Exception as error:
        knows_tensors, reason = False, f"{type(error).__name__}: {error}"
    if not knows_tensors:
        raise TypeError(
            f"the diffusivity {diffusivity!r} does not work on tensors ({reason}). PyTorch's "
            "are handed to it: use arithmetic such as 1 / (1 + r) ** 0.5, or the functions of "
            "aniso.formulas.operations, which know arrays and tensors."
        )
