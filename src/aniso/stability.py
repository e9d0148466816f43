"""Bounds on the spectral norm ρ(A), and the largest stable steps.

An explicit step u + τAu does not increase the Euclidean norm if τ ≤ 2/ρ(A). Each pixel lies in four cells
and a cell has the eigenvalues 0, λ1, λ2 and ζ, hence ρ(A) ≤ 4·max(λ1, ζ) on a grid of unit spacing. This
bound is sharp. The theory page of the documentation has the proof.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from aniso import checks, tensor_fields
from aniso.checks import Spacing
from aniso.formulas import bounds, views, weights
from aniso.stencil import DeltaStencil, ImageStencil, Stencil, check_stencil, collapse_ghost_cells, entries

if TYPE_CHECKING:  # models use the bounds
    from aniso.models import Model

__all__ = [
    "cell_bound",
    "gershgorin_bound",
    "image_bound",
    "paper_bound",
    "spectral_bound",
    "stable_step",
    "stencil_properties",
]


def spectral_bound(
    stencil: Stencil, lambda1: float, lambda2: float, spacing: Spacing = 1.0, ndim: int = 2
) -> float:
    """Return the bound on ρ(A) for all tensor fields with eigenvalues up to λ1 ≥ λ2.

    Parameters
    ----------
    stencil : DeltaStencil, FreeStencil or SplitStencil
        The member of the family.
    lambda1, lambda2 : float
        Upper bounds of the larger and of the smaller eigenvalue over the whole image; in volumes of the
        largest and of the other two. Edge-enhancing diffusion has λ1 = λ2 = 1, since in flat regions it
        diffuses in all directions.
    spacing : float or one float per axis
        Pixel spacing along each axis.
    ndim : int
        2 for an image, 3 for a volume. For :class:`aniso.DeltaStencil` only the number of spacings differs.

    Returns
    -------
    float
        The largest stable step is 2 over it. It is sharp for DeltaStencil: constant tensors on
        periodic grids with even side lengths attain it.

    Examples
    --------
    >>> import aniso
    >>> aniso.stability.spectral_bound(aniso.DeltaStencil(alpha=0.25), 1.0, 1.0)
    4.0
    >>> aniso.stability.paper_bound(aniso.DeltaStencil(alpha=0.25), 1.0, 1.0)
    6.0
    """
    if not _is_one_of(ndim, (2, 3)):
        raise ValueError(f"ndim must be 2 (an image) or 3 (a volume), got {ndim!r}.")
    check_stencil(stencil, ndim)
    lambda1, lambda2 = _eigenvalues(lambda1, lambda2)
    spacings = checks.axis_spacing(spacing, ndim)
    return grid_bound(stencil, lambda1, lambda2, spacings)


def grid_bound(stencil: Stencil, lambda1: float, lambda2: float, spacings: tuple[float, ...]) -> float:
    """Return the bound for arguments that are checked already."""
    hourglass = stencil.largest_hourglass_weight(lambda1, lambda2, spacings)
    return float(bounds.spectral_bound(lambda1, 1 / min(spacings) ** 2, hourglass))


def paper_bound(stencil: DeltaStencil, lambda1: float, lambda2: float, spacing: float = 1.0) -> float:
    """Return the bound on ρ(A) of Theorem 1 in Schrader, Weickert and Krause (2023), for comparison.

    Parameters
    ----------
    stencil : DeltaStencil
        The member of the family. With `beta`, where the sign of γ follows that of b, the larger of the two
        values is returned.
    lambda1, lambda2 : float
        Upper bounds of the larger and of the smaller eigenvalue over the whole image.
    spacing : float
        Pixel spacing; the theorem is for equal spacing.

    Returns
    -------
    float
        Never smaller than :func:`spectral_bound`.

    Examples
    --------
    >>> import aniso
    >>> 2 / aniso.stability.paper_bound(aniso.DeltaStencil(0.0, 1.0), 1.0, 0.0)
    0.5
    """
    if not isinstance(stencil, DeltaStencil):
        raise TypeError(
            f"the paper's theorem covers DeltaStencil, got {stencil!r}. Use spectral_bound, which "
            "covers every stencil."
        )
    lambda1, lambda2 = _eigenvalues(lambda1, lambda2)
    h_y, h_x = checks.axis_spacing(spacing, 2)
    if h_y != h_x:
        raise ValueError(
            f"the paper's theorem is for equal spacing, got {spacing}. Use spectral_bound, which "
            "covers unequal spacing."
        )
    slack = 1 - 2 * stencil.alpha
    oblique = -abs(stencil.beta) if stencil.beta is not None else stencil.gamma * slack
    isotropic = 4 * (1 - stencil.alpha) * (lambda1 + lambda2)
    return (isotropic + 2 * (1 - oblique) * (lambda1 - lambda2)) / h_x**2


def image_bound(
    a: ArrayLike, b: ArrayLike, c: ArrayLike, stencil: ImageStencil | None = None, spacing: Spacing = 1.0
) -> float:
    """Return a bound on ρ(A) for one tensor field: the smaller of two that are computed from its cells.

    It never exceeds :func:`spectral_bound`, and is much smaller where strong diffusion is rare.

    Parameters
    ----------
    a, b, c, stencil, spacing
        As for :func:`aniso.stencil.entries`.

    Returns
    -------
    float
        In units of 1/time; the largest stable step for these tensors is 2 over it.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> a = np.zeros((9, 9)); a[4, 4] = 1.0       # one cell that diffuses along x
    >>> aniso.stability.image_bound(a, 0 * a, 0 * a)
    1.0
    """
    by_cells, by_rows = cell_bound(a, b, c, stencil, spacing), gershgorin_bound(a, b, c, stencil, spacing)
    # Row sums are differences of entries: they are known up to rounding of the largest entry only.
    h_y, h_x = checks.axis_spacing(spacing, 2)
    largest = np.max(a, initial=0) / h_x**2 + np.max(c, initial=0) / h_y**2
    return float(min(by_cells, by_rows + 8 * np.finfo(np.float64).eps * largest))


def cell_bound(
    a: ArrayLike, b: ArrayLike, c: ArrayLike, stencil: ImageStencil | None = None, spacing: Spacing = 1.0
) -> float:
    """Return the largest sum of the spectral norms of cells, max(λ1, ζ), over the four cells of a pixel.

    Parameters
    ----------
    a, b, c, stencil, spacing
        As for :func:`aniso.stencil.entries`.

    Returns
    -------
    float
        An upper bound of ρ(A), in units of 1/time.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> one, zero = np.ones((9, 9)), np.zeros((9, 9))
    >>> aniso.stability.cell_bound(one, zero, one, aniso.DeltaStencil.named("standard"))
    8.0
    """
    stencil = DeltaStencil() if stencil is None else stencil
    check_stencil(stencil)
    h_y, h_x = checks.axis_spacing(spacing, 2)
    a, b, c = weights.scaled(*collapse_ghost_cells(a, b, c), 1 / h_x, 1 / h_y)
    zeta = stencil.hourglass_weight(a, b, c, 1 / (h_x * h_y))
    norms = np.maximum(0.5 * (a + c) + np.hypot(0.5 * (a - c), b), zeta)
    # A cell on the boundary acts on its two real corners alone, along the boundary.
    norms[:, [0, -1]] = c[:, [0, -1]]
    norms[[0, -1], :] = a[[0, -1], :]
    norms[[0, 0, -1, -1], [0, -1, 0, -1]] = 0.0
    return float(sum(views.corners(norms)).max())


def gershgorin_bound(
    a: ArrayLike, b: ArrayLike, c: ArrayLike, stencil: ImageStencil | None = None, spacing: Spacing = 1.0
) -> float:
    """Return the largest absolute row sum of A.

    Parameters
    ----------
    a, b, c, stencil, spacing
        As for :func:`aniso.stencil.entries`.

    Returns
    -------
    float
        An upper bound of ρ(A), in units of 1/time.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> one, zero = np.ones((9, 9)), np.zeros((9, 9))
    >>> aniso.stability.gershgorin_bound(one, zero, one, aniso.DeltaStencil.named("standard"))
    8.0
    """
    folded = entries(a, b, c, stencil, spacing)
    # A neighbour outside the image is the pixel on this side of the border: add it to that entry.
    for side, outside in ((0, 0), (-1, 2)):
        folded[:, 1, :, side] += folded[:, outside, :, side]
        folded[:, outside, :, side] = 0.0
        folded[1, :, side, :] += folded[outside, :, side, :]
        folded[outside, :, side, :] = 0.0
    return float(abs(folded).sum(axis=(0, 1)).max())


def stable_step(model: Model, stencil: Stencil | None = None, spacing: Spacing = 1.0, ndim: int = 2) -> float:
    """Return the largest step for which an explicit scheme does not increase the Euclidean norm.

    Parameters
    ----------
    model : aniso.models.Model
        A diffusion model, e.g. ``aniso.Homogeneous()``.
    stencil : DeltaStencil or FreeStencil, optional
        The member of the family.
    spacing : float or one float per axis
        Pixel spacing along each axis.
    ndim : int
        1 for a signal, 2 for an image, 3 for a volume.

    Returns
    -------
    float
        The limit itself, in units of time; infinity if nothing diffuses.

    Examples
    --------
    >>> import aniso
    >>> aniso.stability.stable_step(aniso.Homogeneous())
    0.5
    >>> aniso.stability.stable_step(aniso.Homogeneous(), aniso.DeltaStencil.named("standard"))
    0.25
    """
    if not _is_one_of(ndim, (1, 2, 3)):
        raise ValueError(f"ndim must be 1 (a signal), 2 (an image) or 3 (a volume), got {ndim!r}.")
    if isinstance(model, type) or not hasattr(model, "spectral_bound"):
        raise TypeError(
            f"model must be a diffusion model, got {model!r}. Try aniso.EdgeEnhancing(contrast=3.5)."
        )
    stencil = DeltaStencil() if stencil is None else stencil
    check_stencil(stencil, ndim)
    return largest_step(model, stencil, checks.axis_spacing(spacing, ndim))


def largest_step(model: Model, stencil: Stencil, spacings: tuple[float, ...]) -> float:
    """Return the largest stable step for arguments that are checked already."""
    if len(spacings) == 1:
        # A signal is an image of one row: nothing varies along the other axis, however far it reaches.
        spacings = (math.inf, *spacings)
    bound = model.spectral_bound(stencil, spacings)
    return 2 / bound if bound > 0 else math.inf


def stencil_properties(
    stencil: DeltaStencil, a: float, b: float, c: float, spacing: Spacing = 1.0
) -> dict[str, Any]:
    """Return weights, entries and step limits of a stencil for one constant tensor (a b; b c).

    Parameters
    ----------
    stencil : DeltaStencil
        The member of the family.
    a, b, c : float
        Entries of the tensor, with a along x (right) and c along y (down).
    spacing : float or two floats
        Pixel spacing along y and x.

    Returns
    -------
    dict
        Stencil, tensor, its eigenvalues and the spacing; δ, hourglass and directional weights, the 3 × 3
        entries, and whether the maximum principle holds; bounds on the spectral norm, sharp and of the
        paper, and the steps they allow. The bound of the paper is None for unequal spacing.

    Examples
    --------
    >>> import aniso
    >>> from aniso import stability
    >>> stability.stencil_properties(aniso.DeltaStencil(), 1.0, 0.0, 1.0)["stable_step"]
    0.5
    """
    h_y, h_x = checks.axis_spacing(spacing, 2)
    seen = weights.scaled(a, b, c, 1 / h_x, 1 / h_y)
    delta = float(stencil.delta(*seen))
    radius = math.hypot(0.5 * (a - c), b)
    eigenvalues = 0.5 * (a + c) + radius, max(0.5 * (a + c) - radius, 0.0)
    bound = spectral_bound(stencil, *eigenvalues, (h_y, h_x))
    paper = paper_bound(stencil, *eigenvalues, h_x) if h_x == h_y else None
    constant = np.ones((4, 4))
    stencil_entries = entries(a * constant, b * constant, c * constant, stencil, (h_y, h_x))
    return {
        "stencil": stencil,
        "tensor": [[a, b], [b, c]],
        "eigenvalues": eigenvalues,
        "spacing": [h_y, h_x],
        "delta": delta,
        "hourglass_weight": float(stencil.hourglass_weight(*seen)),
        "directional_weights": [float(w) for w in weights.directional_weights(*seen, delta)],
        "entries": stencil_entries[:, :, 1, 1].tolist(),
        "nonnegative": stencil.is_nonnegative(a, b, c, (h_y, h_x)),
        "spectral_bound": bound,
        "stable_step": 2 / bound if bound > 0 else math.inf,
        "paper_bound": paper,
        "paper_step": 2 / paper if paper else None,
    }


def _is_one_of(ndim: Any, known: tuple[int, ...]) -> bool:
    return isinstance(ndim, int | np.integer) and ndim in known


def _eigenvalues(lambda1: float, lambda2: float) -> tuple[float, float]:
    larger = checks.real("lambda1", lambda1, "Give the largest eigenvalue of the tensors.")
    smaller = checks.real("lambda2", lambda2, "Give the smaller eigenvalue of the tensors.")
    if not math.inf > larger >= smaller >= 0:
        raise ValueError(
            f"eigenvalues must satisfy lambda1 ≥ lambda2 ≥ 0 and be finite, got lambda1={lambda1} and "
            f"lambda2={lambda2}. Give upper bounds of the larger and of the smaller one over the image."
        )
    tensor_fields.check_entries("lambda1", np.array(larger))
    return larger, smaller
