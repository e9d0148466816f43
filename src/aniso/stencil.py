"""The δ-stencil family of 3×3 discretisations of div(D ∇u), as weights, entries or a matrix.

A member of the family is a choice of δ in every cell, which determines only the weight ζ of the hourglass
mode. Small ζ is sharp and rotation invariant; ζ = 0 does not damp checkerboard patterns. See the theory page
of the documentation for the derivation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from aniso import arrays, checks
from aniso.arrays import Field
from aniso.checks import Spacing
from aniso.formulas import bounds, dimensions, views, volume_weights, weights
from aniso.formulas.weights import directional_weights
from aniso.tensor_fields import assemble, collapse_ghost_cells

if TYPE_CHECKING:  # only matrix() needs it, and it takes longer to import than all the rest
    import scipy.sparse

__all__ = [
    "DeltaStencil",
    "FreeStencil",
    "ImageStencil",
    "SplitStencil",
    "Stencil",
    "collapse_ghost_cells",
    "directional_weights",
    "entries",
    "matrix",
]

_DOUBLE_PRECISION = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class DeltaStencil:
    """A member of the 3×3 stencil family, with the parameters α and γ (or β).

    Its free parameter is δ = α(a + c) + γ(1 − 2α)∣b∣, or δ = α(a + c) + βb where `beta` is given
    (the parametrisation of Weickert, Welk and Wickert 2013).

    Parameters
    ----------
    alpha : float
        Between 0 and ½. Larger values are sharper; ½ does not damp checkerboard patterns.
    gamma : float
        Between −1 and 1. 1 is sharpest; the steps are largest for all values from 0 on.
    beta : float, optional
        Between −(1 − 2α) and 1 − 2α, in place of `gamma`. Such members are not mirror-equivariant.

    Examples
    --------
    >>> import aniso
    >>> aniso.DeltaStencil()
    DeltaStencil(alpha=0.4, gamma=1.0, beta=None)
    >>> aniso.DeltaStencil.named("nonnegativity").delta(a=1.0, b=-0.25, c=0.5)
    0.25
    """

    alpha: float = 0.4
    gamma: float = 1.0
    beta: float | None = None

    coupled: ClassVar[bool] = False
    _named: ClassVar[MappingProxyType[str, dict[str, float]]] = MappingProxyType(
        {
            "standard": {"alpha": 0.0, "gamma": 0.0},
            "nonnegativity": {"alpha": 0.0, "gamma": 1.0},
            "forward-forward": {"alpha": 0.0, "beta": -1.0},
            "forward-backward": {"alpha": 0.0, "beta": 1.0},
            "finite-elements": {"alpha": 1 / 3, "gamma": 0.0},
            "nine-point": {"alpha": 1 / 6, "gamma": 0.0},
            "cell-centred": {"alpha": 0.5, "gamma": 0.0},
            "quality": {"alpha": 0.44, "gamma": 0.98},
        }
    )

    def __post_init__(self) -> None:
        unstable = "outside it the scheme is not stable."
        alpha = checks.within("alpha", self.alpha, 0, 0.5, f"{unstable} A good choice is alpha=0.4.")
        gamma = checks.within("gamma", self.gamma, -1, 1, f"{unstable} A good choice is gamma=1.0.")
        if self.beta is not None:
            if gamma not in (0.0, 1.0):
                raise ValueError(
                    f"gamma={self.gamma} and beta={self.beta} were both given: they are two ways to "
                    "choose the same number δ. Leave one of them out."
                )
            beta = checks.real("beta", self.beta, "Leave it out to use gamma.")
            if abs(beta) > 1 - 2 * alpha + _DOUBLE_PRECISION:
                raise ValueError(
                    f"beta must lie in [{2 * alpha - 1:g}, {1 - 2 * alpha:g}] for alpha={alpha:g}, got "
                    f"{self.beta}: {unstable} Take |beta| ≤ 1 − 2·alpha, or gamma instead of beta."
                )
            gamma = 0.0
            object.__setattr__(self, "beta", beta)
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "gamma", gamma)

    @classmethod
    def named(cls, name: str) -> DeltaStencil:
        """Return a member that has a name in the literature.

        Parameters
        ----------
        name : str
            ``"standard"`` (central mixed differences, δ = 0), ``"nonnegativity"`` (δ = ∣b∣),
            ``"forward-forward"`` and ``"forward-backward"`` (δ = ∓b), ``"finite-elements"`` (bilinear,
            δ = (a + c)/3), ``"nine-point"`` (δ = (a + c)/6), ``"cell-centred"`` (δ = (a + c)/2) or
            ``"quality"`` (α = 0.44, γ = 0.98).

        Examples
        --------
        >>> import aniso
        >>> aniso.DeltaStencil.named("cell-centred")
        DeltaStencil(alpha=0.5, gamma=0.0, beta=None)
        """
        if str(name) not in cls.names():
            raise ValueError(f"there is no stencil named {name!r}. The names are: {', '.join(cls._named)}.")
        return cls(**cls._named[name])

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names for :meth:`named`."""
        return tuple(cls._named)

    def delta(self, a: Any, b: Any, c: Any, per_area: float = 1.0) -> Any:
        """Return the free parameter δ, element by element; it scales with the tensor."""
        return weights.delta(a, b, c, self.alpha, self.gamma, self.beta or 0.0)

    def hourglass_weight(self, a: Any, b: Any, c: Any, per_area: float = 1.0) -> Any:
        """Return ζ = a + c − 2δ ≥ 0, element by element, computed without cancellation."""
        return weights.hourglass_weight(a, b, c, self.alpha, self.gamma, self.beta or 0.0)

    def hourglass_weights(self, entries: tuple[Any, ...], per_area: float = 1.0) -> tuple[Any, ...]:
        """Return ζ for images; for volumes ζ of each plane of axes, and κ, their mean."""
        return dimensions.hourglass_weights(entries, self.alpha, self.gamma, self.beta or 0.0)

    def largest_hourglass_weight(self, lambda1: float, lambda2: float, spacing: tuple[float, ...]) -> float:
        """Return the largest ζ of all tensors with eigenvalues up to λ1 ≥ λ2."""
        p2, p1 = sorted(1 / h**2 for h in spacing)[-2:]
        parameters = self.alpha, self.gamma, self.beta
        return float(bounds.largest_hourglass_weight(lambda1, lambda2, p1, p2, *parameters))

    def is_nonnegative(self, a: Any, b: Any, c: Any, spacing: Spacing = 1.0) -> Any:
        """Return where the stencil has no negative entries off its centre: there the maximum principle holds.

        This is the case for tensors with ∣b∣ ≤ δ ≤ min(a, c). If all four cells around a pixel have such
        tensors, an explicit step of at most 1/∣centre∣ stays within the range of the neighbours.

        Parameters
        ----------
        a, b, c : float or array
            Entries of the diffusion tensor, a along x (axis 1), c along y (axis 0).
        spacing : float or (float, float)
            Pixel spacing along each axis.

        Returns
        -------
        bool or array of bool
            With the broadcast shape of a, b and c.

        Examples
        --------
        >>> import aniso
        >>> stencil = aniso.DeltaStencil.named("nonnegativity")
        >>> stencil.is_nonnegative(1.0, 0.25, 0.5), stencil.is_nonnegative(1.0, 0.6, 0.5)
        (True, False)
        """
        per_x, per_y = _per_unit(spacing)
        a, b, c = weights.scaled(np.asarray(a), np.asarray(b), np.asarray(c), per_x, per_y)
        rounding = 4 * _DOUBLE_PRECISION * (a + c)
        answer = np.all([w >= -rounding for w in directional_weights(a, b, c, self.delta(a, b, c))], axis=0)
        return bool(answer) if answer.ndim == 0 else answer


@dataclass(frozen=True, eq=False)
class FreeStencil:
    """A stencil with a given δ in every cell.

    Parameters
    ----------
    delta : array, shape (H+1, W+1)
        δ over the cells of an H × W image, in the units of the tensor. The scheme is unstable if it exceeds
        (a + c)/2: :func:`matrix` rejects such a δ, and with models that follow the image it is clipped. δ is
        divided by h_x·h_y.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> stencil = aniso.FreeStencil(np.full((4, 4), 0.25))
    >>> a = c = np.ones((4, 4)); b = np.zeros((4, 4))
    >>> aniso.stencil.matrix(a, b, c, stencil).shape
    (9, 9)
    """

    values: Field
    coupled: ClassVar[bool] = False

    def __init__(self, delta: ArrayLike) -> None:
        given = arrays.as_array("delta", delta)
        if given.dtype.kind not in "iuf":
            raise TypeError(f"delta must hold real numbers, got dtype {given.dtype}. Give one per cell.")
        values = np.array(arrays.limit_to_doubles(given), dtype=np.float64)
        if values.ndim != 2 or min(values.shape) < 2:
            raise ValueError(
                f"delta must be given over the cells of an image, shape (H+1, W+1) with at least 2 × 2 "
                f"cells, got shape {values.shape}. For one rule in all cells use DeltaStencil."
            )
        arrays.check_finite("delta", values, "the stencil must be known in every cell")
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    def __repr__(self) -> str:
        """Return the shape instead of all values."""
        return f"FreeStencil(<delta over {' × '.join(map(str, self.values.shape))} cells>)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FreeStencil) and np.array_equal(self.values, other.values)

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from the values, so that a copy is read-only too."""
        return FreeStencil, (self.values,)

    def delta(self, a: Any, b: Any, c: Any, per_area: float = 1.0) -> Any:
        """Return the given δ, scaled to unit spacing."""
        return self.values * per_area

    def hourglass_weight(self, a: Any, b: Any, c: Any, per_area: float = 1.0) -> Any:
        """Return ζ = a + c − 2δ, at least 0."""
        return weights.free_hourglass_weight(a, c, self.values * per_area)

    def hourglass_weights(self, entries: tuple[Any, ...], per_area: float = 1.0) -> tuple[Any, ...]:
        """Return ζ = a + c − 2δ, at least 0; for images only."""
        a, b, c = entries
        return (self.hourglass_weight(a, b, c, per_area),)

    def largest_hourglass_weight(self, lambda1: float, lambda2: float, spacing: tuple[float, ...]) -> float:
        """Return the largest ζ of all tensors with eigenvalues up to λ1 ≥ λ2."""
        p2, p1 = sorted(1 / h**2 for h in spacing)[-2:]
        return float(max(0.0, lambda1 * p1 + lambda2 * p2 - 2 * self.values.min() * np.sqrt(p1 * p2)))


@dataclass(frozen=True, slots=True)
class SplitStencil:
    """The literal generalisation of the paper's splitting to volumes: nine 1-D diffusions, 19 points.

    Three are along the axes and six along the diagonals of the faces of a cell, with the free parameters
    δ_ij = α(d_ii + d_jj − d_kk). It is for comparison: :class:`DeltaStencil`, which has 27 points in volumes,
    dissipates less and allows larger steps.

    Parameters
    ----------
    alpha : float
        Between 0 and ½. Larger values are sharper.

    Examples
    --------
    >>> import aniso
    >>> stencil = aniso.stencil.SplitStencil(alpha=0.25)
    >>> aniso.stability.stable_step(aniso.Homogeneous(), stencil, ndim=3)
    0.3333333333333333
    """

    alpha: float = 0.4
    coupled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        why = "outside it the scheme is not stable. A good choice is alpha=0.4."
        object.__setattr__(self, "alpha", checks.within("alpha", self.alpha, 0, 0.5, why))

    def hourglass_weights(self, entries: tuple[Any, ...], per_area: float = 1.0) -> tuple[Any, ...]:
        """Return ζ_x, ζ_y, ζ_z and κ."""
        xx, xy, yy, xz, yz, zz = entries
        return volume_weights.split_weights(xx, xy, yy, xz, yz, zz, self.alpha)

    def largest_hourglass_weight(self, lambda1: float, lambda2: float, spacing: tuple[float, ...]) -> float:
        """Return the largest eigenvalue of R, or κ, for tensors with eigenvalues up to λ1 ≥ λ2 ≥ λ3."""
        return float(bounds.largest_split_weight(lambda1, lambda2, self.alpha) / min(spacing) ** 2)


#: The members of the family for images. Methods take entries of tensors that are scaled to unit spacing, see
#: :func:`aniso.formulas.weights.scaled`, and return δ and ζ in the same scale; `per_area` is 1/(h_x·h_y).
ImageStencil = DeltaStencil | FreeStencil
#: Those for images and volumes. `coupled`: mixed entries of the tensor couple the hourglasses of a volume.
Stencil = ImageStencil | SplitStencil


def check_stencil(stencil: object, ndim: int = 2) -> None:
    """Check that it is a stencil for images (ndim 1 or 2) or for volumes (3)."""
    other, what = FreeStencil, "a DeltaStencil or FreeStencil for images"
    if ndim == 3:
        other, what = SplitStencil, "a DeltaStencil for volumes"
    checks.instance("stencil", stencil, (DeltaStencil, other), what, "aniso.DeltaStencil()")


def entries(
    a: ArrayLike, b: ArrayLike, c: ArrayLike, stencil: ImageStencil | None = None, spacing: Spacing = 1.0
) -> Field:
    """Return the 3×3 stencil at every pixel, as printed in the paper.

    Parameters
    ----------
    a, b, c : array, shape (H+1, W+1)
        Entries of the diffusion tensors over the cells of an H × W image.
    stencil : DeltaStencil or FreeStencil, optional
        The member of the family.
    spacing : float or (float, float)
        Pixel spacing along each axis.

    Returns
    -------
    array, shape (3, 3, H, W)
        ``entries[1 + dy, 1 + dx]`` belongs to the neighbour at offset (dy, dx), y downwards. Neighbours
        outside the image are those of the mirrored image.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> one, zero = np.ones((4, 4)), np.zeros((4, 4))
    >>> aniso.stencil.entries(one, zero, one, aniso.DeltaStencil.named("standard"))[:, :, 1, 1]
    array([[ 0.,  1.,  0.],
           [ 1., -4.,  1.],
           [ 0.,  1.,  0.]])
    """
    a, b, c, delta = _scaled_tensor(a, b, c, DeltaStencil() if stencil is None else stencil, spacing)
    directions = directional_weights(a, b, c, delta)
    per_cell = zip(*(views.corners(w) for w in directions), strict=True)
    return np.array(weights.stencil_entries(*per_cell))


def matrix(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    stencil: ImageStencil | None = None,
    spacing: Spacing = 1.0,
    boundary: Literal["mirror", "natural"] = "mirror",
) -> scipy.sparse.csr_array:
    """Return the sparse matrix A of the evolution du/dt = A u.

    Parameters
    ----------
    a, b, c : array, shape (H+1, W+1)
        Entries of the diffusion tensors over the cells of an H × W image: cell (i, j) has pixel (i, j) at
        its lower right corner, the outer ring lies on the boundary. See
        :func:`collapse_ghost_cells` for b on that ring.
    stencil, spacing
        As for :func:`entries`.
    boundary : {"mirror", "natural"}
        "mirror" reflects the image at the edges of its outer pixels and has order two. "natural" omits the
        outer ring of cells, as older codes do: it is stable too, but not consistent there.

    Returns
    -------
    scipy.sparse.csr_array, shape (H·W, H·W)
        Symmetric, row sums 0, negative semidefinite. Pixels are numbered row by row.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> one, zero = np.ones((2, 4)), np.zeros((2, 4))
    >>> aniso.stencil.matrix(one, zero, one).toarray()
    array([[-1.,  1.,  0.],
           [ 1., -2.,  1.],
           [ 0.,  1., -1.]])
    """
    stencil = DeltaStencil() if stencil is None else stencil
    if boundary not in ("mirror", "natural"):
        raise ValueError(f'boundary must be "mirror" or "natural", got {boundary!r}.')
    a, b, c, _ = _scaled_tensor(a, b, c, stencil, spacing)
    zeta = stencil.hourglass_weight(a, b, c, math.prod(_per_unit(spacing)))
    if boundary == "natural":
        cells = np.pad(np.ones(tuple(n - 2 for n in a.shape)), 1)
        a, b, c, zeta = a * cells, b * cells, c * cells, zeta * cells
    return assemble((a, b, c, zeta))


def _per_unit(spacing: Spacing) -> tuple[float, float]:
    """Return 1/h_x and 1/h_y."""
    h_y, h_x = checks.axis_spacing(spacing, 2)
    return 1 / h_x, 1 / h_y


def _scaled_tensor(
    a: ArrayLike, b: ArrayLike, c: ArrayLike, stencil: ImageStencil, spacing: Spacing
) -> tuple[Field, Field, Field, Field]:
    """Return checked and collapsed tensors, scaled to unit spacing, with their δ."""
    check_stencil(stencil)
    per_x, per_y = _per_unit(spacing)
    a, b, c = weights.scaled(*collapse_ghost_cells(a, b, c), per_x, per_y)
    delta = stencil.delta(a, b, c, per_x * per_y)
    if np.shape(delta) != a.shape:
        raise ValueError(
            f"the stencil's delta has shape {np.shape(delta)}, the tensors have shape {a.shape}: both are "
            "given over the same cells, (H+1, W+1) for an image of shape (H, W)."
        )
    # On the outer ring of cells the hourglass vanishes, so that δ does not matter there.
    excess = np.pad((delta - 0.5 * (a + c) * (1 + 8 * _DOUBLE_PRECISION))[1:-1, 1:-1], 1)
    if (excess > 0).any():
        worst = tuple(int(i) for i in np.unravel_index(np.argmax(excess), excess.shape))
        raise ValueError(
            f"delta = {delta[worst]:.6g} in cell {worst} exceeds (a + c)/2 = {0.5 * (a + c)[worst]:.6g}: "
            "beyond it the matrix is not negative semidefinite and the scheme unstable. Take a smaller "
            "delta there."
        )
    return a, b, c, delta
