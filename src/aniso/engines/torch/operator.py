"""From an image to its diffusion tensor, and from the tensor to A as a linear map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from aniso.engines.torch.smoothing import Kernels, average_cells, smooth_pixels
from aniso.formulas import dimensions, views
from aniso.formulas.bounds import explicit_step, extrapolated_step
from aniso.formulas.operations import maximum
from aniso.models import TensorFormula

#: xx, xy, yy and for volumes xz, yz, zz over the cells, (images, 1, H+1, W+1) or (images, 1, D+1, H+1, W+1).
Entries = tuple[Tensor, ...]


def structure_tensor(u: Tensor, noise: Kernels, integration: Kernels, per_unit: tuple[Any, ...]) -> Entries:
    """j_xx, j_xy, j_yy, … over the cells, averaged over the channels.

    `per_unit` are the factors of the derivatives, x first, 1/(h·contrast), so that the tensor is in units of
    the contrast. Derivatives whose fourth power would leave the range of the type stop growing.
    """
    formulas = dimensions.of(len(per_unit))
    gradient = formulas.modes(*views.corners(pad_edges(smooth_pixels(u, noise)), formulas.ndim))[
        : formulas.ndim
    ]
    most = largest_magnitude(u.dtype)
    slopes = [(mode * per).clamp(-most, most) for mode, per in zip(gradient, per_unit, strict=True)]
    entries = formulas.structure(*slopes)
    if u.shape[1] > 1:
        entries = tuple(entry.mean(dim=1, keepdim=True) for entry in entries)
    return tuple(
        average_cells(entry, integration, axes)
        for entry, axes in zip(entries, formulas.entry_axes, strict=True)
    )


def largest_magnitude(dtype: torch.dtype) -> float:
    """The largest number whose fourth power is in the range of the type."""
    most: float = torch.finfo(dtype).max ** 0.24
    return most


def slope_factors(contrast: Any, spacings: tuple[float, ...], dtype: torch.dtype) -> tuple[Any, ...]:
    """1/(h·contrast), x first, which turn differences into derivatives in units of the contrast."""
    least = torch.finfo(dtype).max ** -0.5  # so that 1/λ stays finite
    return tuple(1 / maximum(h * contrast, least) for h in reversed(spacings))


def image_tensor(
    u: Tensor,
    formula: TensorFormula,
    contrast: Any,
    spacings: tuple[float, ...],
    noise: Kernels,
    integration: Kernels,
) -> Entries:
    """xx, xy, yy, … of the image. The formula is the one for contrast 1."""
    structure = structure_tensor(u, noise, integration, slope_factors(contrast, spacings, u.dtype))
    return tensor_of_structure(structure, u, formula)


def tensor_of_structure(structure: Entries, u: Tensor, formula: TensorFormula) -> Entries:
    """xx, xy, yy, … of an image with this structure."""
    first, *others = structure[0], structure[2], *structure[5:]  # the diagonal
    trace = sum(others, start=first)
    return tuple(
        finite_gradient(entry, u, trace)
        if isinstance(entry, Tensor)
        else trace.new_full((), entry).expand_as(trace)  # a constant
        for entry in formula(*structure)
    )


def finite_gradient(values: Tensor, u: Tensor, structure: Tensor | float = 0.0) -> Tensor:
    """Values computed from an image and its structure, constant to gradients where both are huge.

    Gradients are as large as grey values. Times grey values or structure that are huge too they would be inf,
    and then inf · 0. Ordinary numbers never come near.
    """
    if not values.requires_grad:
        return values
    largest = u.detach().abs().amax(dim=tuple(range(1, u.ndim)), keepdim=True)
    moderate = (1 + structure) * largest * largest < torch.finfo(u.dtype).max ** 0.75
    return torch.where(moderate, values, values.detach())


def at_unit_spacing(entries: Entries, spacings: tuple[float, ...]) -> Entries:
    """The tensor as a grid of unit spacing sees it."""
    if all(h == 1 for h in spacings):
        return entries
    return dimensions.of(len(spacings)).scaled(*entries, *(1 / h for h in reversed(spacings)))


def rate(v: Tensor, entries: Entries, inner: Entries, *, coupled: bool = False) -> Tensor:
    """A v, for a tensor that is scaled to unit spacing; `inner` are the weights of the hourglasses."""
    formulas = dimensions.of(v.ndim - 2)
    corners = views.corners(pad_edges(v), formulas.ndim)
    sums: Tensor = views.pixel_sums(*formulas.cell_shares(corners, (*entries, *inner), coupled=coupled))
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


def pad_edges(u: Tensor) -> Tensor:
    """The image or volume with one mirrored pixel around it."""
    return F.pad(u, (1, 1) * (u.ndim - 2), mode="replicate")


def check_diffusivity(diffusivity: Any, like: Tensor) -> None:
    """Reject a function of the user's that does not know tensors, before it fails in the middle."""
    if not callable(diffusivity):
        return
    r = torch.tensor([0.0, 1e-3, 1.0, 1e3], dtype=like.dtype, device=like.device, requires_grad=True)
    try:
        reason = "" if isinstance(diffusivity(r), Tensor) else "it returned no tensor"
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    if reason:
        raise TypeError(
            f"the diffusivity {diffusivity!r} does not work on tensors ({reason}). It is "
            "called with PyTorch tensors: use arithmetic such as 1 / (1 + r) ** 0.5, or the functions of "
            "aniso.formulas.operations, which accept arrays and tensors."
        )
