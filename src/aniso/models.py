"""Diffusion models: which tensor steers the diffusion. Each is a small frozen set of parameters.

A model says how far to smooth the image before looking at it (`sigma`), how far to average its
structure (`rho`), which formula turns structure into a tensor, and how large the eigenvalues of
that tensor can get, from which the stable step follows. Engines do the rest, for every model alike.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from aniso import arrays, checks, stability, tensor_fields
from aniso.arrays import Field
from aniso.formulas import diffusivities, tensors, volume_tensors
from aniso.formulas.dimensions import ENTRY_AXES
from aniso.parameters import CONTRAST, PLATES, RHO, SIGMA, About, of_model
from aniso.stencil import ImageStencil, Stencil, check_stencil, collapse_ghost_cells
from aniso.volumes import cell_bound, checked_tensor, collapsed_entries

__all__ = [
    "DIFFUSIVITIES",
    "CoherenceEnhancing",
    "EdgeContinuing",
    "EdgeEnhancing",
    "FixedTensor",
    "Homogeneous",
    "ImageDriven",
    "Model",
    "PeronaMalik",
    "TensorFormula",
    "kinds",
]


@dataclass(frozen=True)
class TensorFormula:
    """How structure becomes a tensor: a function of its entries, further functions, and numbers."""

    function: Callable[..., tuple[Any, ...]]
    functions: tuple[Callable[..., Any], ...]
    parameters: tuple[float, ...]

    def __call__(self, *structure: Any) -> tuple[Any, ...]:
        """The entries of the diffusion tensor, from those of the structure tensor: xx, xy, yy, …."""
        return self.function(*structure, *self.functions, *self.parameters)


def _tensors(ndim: int) -> Any:
    """The tensor formulas for images or for volumes, which have the same names."""
    return volume_tensors if ndim == 3 else tensors


class Model(Protocol):
    """What the step-size limit asks of every model."""

    def spectral_bound(self, stencil: Stencil, spacings: tuple[float, ...]) -> float:
        """An upper bound of ρ(A), whatever the image."""
        ...


@dataclass(frozen=True)
class Diffusivity:
    """The three forms in which the tensor formulas need a diffusivity."""

    diffusivity: Callable[[Any], Any]
    decline: Callable[[Any], Any]
    slope: Callable[[Any, Any], Any]


DIFFUSIVITIES = {
    name: Diffusivity(
        *(
            getattr(diffusivities, f"{name.replace('-', '_')}_{form}")
            for form in ("diffusivity", "decline", "slope")
        )
    )
    for name in ("weickert", "charbonnier", "perona-malik", "exponential")
}


@dataclass(frozen=True)
class SecantDecline:
    """ψ of a diffusivity given by the user."""

    diffusivity: Callable[[Any], Any]

    def __call__(self, r: Any) -> Any:
        return diffusivities.secant_decline(r, self.diffusivity)


@dataclass(frozen=True)
class SecantSlope:
    """The slope of a diffusivity given by the user."""

    diffusivity: Callable[[Any], Any]

    def __call__(self, s: Any, r: Any) -> Any:
        return diffusivities.secant_slope(s, r, self.diffusivity)


def _forms(diffusivity: str | Callable[[Any], Any]) -> Diffusivity:
    if isinstance(diffusivity, str):
        return DIFFUSIVITIES[diffusivity]
    # One that can say ψ itself does not need the secant, which loses digits near 0.
    decline = getattr(diffusivity, "decline", None) or SecantDecline(diffusivity)
    return Diffusivity(diffusivity, decline, SecantSlope(diffusivity))


def diffusivity_function(diffusivity: str | Callable[[Any], Any]) -> Callable[[Any], Any]:
    """g(r) of a diffusivity that is given by name or as a function."""
    return _forms(diffusivity).diffusivity


def check_diffusivity(diffusivity: Any) -> None:
    """Refuse what is neither a name nor a function g(r) that keeps diffusion stable."""
    if isinstance(diffusivity, str) and diffusivity in DIFFUSIVITIES:
        return
    if not callable(diffusivity):
        names = ", ".join(f'"{name}"' for name in DIFFUSIVITIES)
        raise ValueError(
            f"diffusivity must be one of {names} or a function g(r), got {diffusivity!r}: it decides how "
            "fast diffusion falls with r = |∇u|²/contrast²."
        )
    r = np.array([0.0, 1e-3, 1.0, 1e3])
    try:
        with np.errstate(all="ignore"):
            g = np.asarray(diffusivity(r), dtype=np.float64)
    except Exception as error:
        raise ValueError(
            f"diffusivity(r) must work on arrays, but failed for r = {r} with {type(error).__name__}: "
            f"{error}. Use numpy.exp and the like in place of math.exp."
        ) from error
    # A diffusivity that falls fast may underflow to 0.
    if g.shape != r.shape or not ((g >= 0) & (g <= 1)).all() or g[0] != 1:
        raise ValueError(
            f"diffusivity(r) must be 1 at r = 0 and lie in (0, 1] elsewhere, got {g} for r = {r}: outside "
            "that range the step size limit does not hold."
        )


_DIFFUSIVITY = About(
    symbol="g",
    choices=tuple(DIFFUSIVITIES),
    meaning="how fast diffusion across an edge falls with the contrast",
)


def _check_switch(name: str, value: Any, meaning: str) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}: {meaning}.")


@dataclass(frozen=True)
class ImageDriven:
    """A model whose tensor follows the evolving image."""

    def __post_init__(self) -> None:
        for parameter in of_model(self).values():
            value, about = getattr(self, parameter.name), parameter.about
            if about.choices:
                check_diffusivity(value)
                continue
            if about.switch:
                _check_switch(parameter.name, value, about.meaning)
                continue
            meaning = f"{about.symbol}, {about.meaning}."
            number = checks.within(
                parameter.name, value, about.low, about.high, meaning, open_low=about.open_low
            )
            if number == np.inf:
                raise ValueError(f"{parameter.name} must be finite, got inf: {meaning}")
            if parameter.name == "contrast" and not 1e-140 <= number <= 1e140:
                size, way = ("small", "up") if number < 1 else ("large", "down")
                raise ValueError(
                    f"contrast={value} is too {size} to compute with. Scale the image {way} first."
                )
            object.__setattr__(self, parameter.name, number)

    @property
    def presmoothing(self) -> float:
        """Width of the Gaussian through which the image is looked at."""
        return float(getattr(self, "sigma", 0.0))

    @property
    def integration(self) -> float:
        """Width of the Gaussian that averages the structure."""
        return float(getattr(self, "rho", 0.0))

    @property
    def needs_doubles(self) -> bool:
        """Whether squared gradients are beyond single precision where they matter: near λ²."""
        return not 1e-12 <= getattr(self, "contrast", 1.0) <= 1e12

    def eigenvalue_bounds(self, ndim: int = 2) -> tuple[float, float]:
        """λ1 ≥ λ2, which the largest and all further eigenvalues of this model's tensors do not exceed."""
        return 1.0, 1.0

    def tensor_formula(
        self, channels: int, values: Mapping[str, Any] | None = None, ndim: int = 2
    ) -> TensorFormula:
        """How structure becomes a tensor, for an image (ndim 2) or volume (3) with this many channels.

        `values` may stand in for the model's own parameters, under the same names: numbers that are learned.
        """
        raise NotImplementedError

    def spectral_bound(self, stencil: Stencil, spacings: tuple[float, ...]) -> float:
        """An upper bound of ρ(A), whatever the image."""
        return stability.grid_bound(stencil, *self.eigenvalue_bounds(len(spacings)), spacings)


@dataclass(frozen=True)
class EdgeEnhancing(ImageDriven):
    """Edge-enhancing diffusion: along edges freely, across them less the stronger they are.

    D has the eigenvalue 1 along the edge and g(∣∇u_σ∣²/λ²) across it.

    Parameters
    ----------
    contrast : float
        λ in the literature, in grey values per unit length: gradients above it are edges.
    sigma : float
        Noise scale σ, in the units of `spacing`: structures below it are ignored.
    diffusivity : {"weickert", "charbonnier", "perona-malik", "exponential"} or callable
        g(r) with r = ∣∇u_σ∣²/λ². A function of your own must work on arrays, be 1 at r = 0 and lie in
        (0, 1].

    Examples
    --------
    >>> import aniso
    >>> aniso.EdgeEnhancing(contrast=5)
    EdgeEnhancing(contrast=5.0, sigma=1.0, diffusivity='weickert')
    """

    contrast: float = CONTRAST.field(3.5)
    sigma: float = SIGMA.field(1.0)
    diffusivity: str | Callable[[Any], Any] = _DIFFUSIVITY.field("weickert")  # noqa: RUF009

    def tensor_formula(
        self, channels: int, values: Mapping[str, Any] | None = None, ndim: int = 2
    ) -> TensorFormula:
        """D = I − ψ(r) q qᵀ for one channel, D = g(J/λ²) for several."""
        values = values or vars(self)
        forms, scale = _forms(values["diffusivity"]), (values["contrast"] ** -2,)
        if channels == 1:
            return TensorFormula(_tensors(ndim).edge_enhancing, (forms.decline,), scale)
        return TensorFormula(_tensors(ndim).edge_enhancing_joint, (forms.diffusivity, forms.slope), scale)


@dataclass(frozen=True)
class EdgeContinuing(ImageDriven):
    """Edge-enhancing diffusion in the mean direction of a neighbourhood: it carries edges on into gaps.

    With μ1 ≥ μ2 the eigenvalues of the structure tensor, D has the eigenvalue 1 along the mean direction
    and g((μ1 − μ2)/λ²) across it; in volumes g((μ − μ3)/λ²) for each eigenvalue μ, with μ3 the least. With
    ρ = 0 and one channel it is :class:`EdgeEnhancing`.

    Parameters
    ----------
    contrast : float
        λ, in grey values per unit length: gradients above it are edges, if their neighbours agree with them.
    sigma : float
        Noise scale σ, in the units of `spacing`: structures below it are ignored.
    rho : float
        Integration scale ρ, in the units of `spacing`: the neighbourhood in which the direction is averaged.
    diffusivity : {"weickert", "charbonnier", "perona-malik", "exponential"} or callable
        g(r) with r = (μ1 − μ2)/λ².

    Examples
    --------
    >>> import aniso
    >>> aniso.EdgeContinuing(contrast=2)
    EdgeContinuing(contrast=2.0, sigma=0.7, rho=0.8, diffusivity='charbonnier')
    """

    contrast: float = CONTRAST.field(3.5)
    sigma: float = SIGMA.field(0.7)
    rho: float = RHO.field(0.8)
    diffusivity: str | Callable[[Any], Any] = _DIFFUSIVITY.field("charbonnier")  # noqa: RUF009

    def tensor_formula(
        self, channels: int, values: Mapping[str, Any] | None = None, ndim: int = 2
    ) -> TensorFormula:
        """D = I − ψ(r)(J − μ2·I)/λ², for any number of channels; in volumes g((J − μ3·I)/λ²)."""
        values = values or vars(self)
        forms, scale = _forms(values["diffusivity"]), (values["contrast"] ** -2,)
        functions = (forms.decline,) if ndim == 2 else (forms.diffusivity, forms.slope)
        return TensorFormula(_tensors(ndim).edge_continuing, functions, scale)


@dataclass(frozen=True)
class CoherenceEnhancing(ImageDriven):
    """Coherence-enhancing diffusion: along lines and flow-like patterns, closing their gaps.

    D has the eigenvalue ε across the structure, and between ε and 1 along it, the larger the more
    coherent it is: ε + (1 − ε)·exp(−(λ²/(μ1 − μ2))²), with μ1 ≥ μ2 the eigenvalues of the structure tensor.
    In volumes this holds for each eigenvalue, with μ1 − μ for μ1 − μ2: along lines, and within plates in both
    directions.

    Parameters
    ----------
    contrast : float
        λ, in grey values per unit length: structures whose coherence √(μ1 − μ2) exceeds it are enhanced.
    sigma : float
        Noise scale σ, in the units of `spacing`: structures below it are ignored.
    rho : float
        Integration scale ρ, in the units of `spacing`: the neighbourhood in which orientation is averaged.
        Gaps up to about this size close.
    min_diffusivity : float
        ε, the diffusivity across structures.
    plates : bool
        For volumes: whether plates are structures too. If not, D has the eigenvalue
        ε + (1 − ε)·exp(−(λ²/(μ2 − μ3))²) in the direction of least change and ε in all others, so that only
        lines are enhanced.

    Examples
    --------
    >>> import aniso
    >>> aniso.CoherenceEnhancing(rho=6)
    CoherenceEnhancing(contrast=1.0, sigma=0.5, rho=6.0, min_diffusivity=0.001, plates=True)
    """

    contrast: float = CONTRAST.field(1.0)
    sigma: float = SIGMA.field(0.5)
    rho: float = RHO.field(4.0)
    min_diffusivity: float = About(
        symbol="ε", high=1.0, meaning="diffusivity across structures, and where there is no structure"
    ).field(1e-3)
    plates: bool = PLATES.field(True)

    def eigenvalue_bounds(self, ndim: int = 2) -> tuple[float, float]:
        """1 along structures, ε across; plates extend in two directions."""
        return 1.0, 1.0 if ndim == 3 and self.plates else self.min_diffusivity

    def tensor_formula(
        self, channels: int, values: Mapping[str, Any] | None = None, ndim: int = 2
    ) -> TensorFormula:
        """D = f(μ1·I − J/λ²)."""
        values = values or vars(self)
        formula = _tensors(ndim).coherence_enhancing
        if ndim == 3 and not self.plates:
            formula = volume_tensors.line_enhancing
        return TensorFormula(formula, (), (values["contrast"] ** -2, values["min_diffusivity"]))


@dataclass(frozen=True)
class PeronaMalik(ImageDriven):
    """Scalar nonlinear diffusion: in all directions alike, less where the gradient is large.

    With σ > 0 the regularised model of Catté et al., with σ = 0 that of Perona and Malik.

    Parameters
    ----------
    contrast : float
        λ, in grey values per unit length: gradients above it are edges.
    sigma : float
        Noise scale σ, in the units of `spacing`.
    diffusivity : {"weickert", "charbonnier", "perona-malik", "exponential"} or callable
        g(r) with r = ∣∇u_σ∣²/λ².

    Examples
    --------
    >>> import aniso
    >>> aniso.PeronaMalik(contrast=10, sigma=0)
    PeronaMalik(contrast=10.0, sigma=0.0, diffusivity='perona-malik')
    """

    contrast: float = CONTRAST.field(3.5)
    sigma: float = SIGMA.field(0.5)
    diffusivity: str | Callable[[Any], Any] = _DIFFUSIVITY.field("perona-malik")  # noqa: RUF009

    def tensor_formula(
        self, channels: int, values: Mapping[str, Any] | None = None, ndim: int = 2
    ) -> TensorFormula:
        """D = g(r) I."""
        values = values or vars(self)
        forms = _forms(values["diffusivity"])
        return TensorFormula(_tensors(ndim).perona_malik, (forms.diffusivity,), (values["contrast"] ** -2,))


@dataclass(frozen=True)
class Homogeneous(ImageDriven):
    """Linear diffusion, the same everywhere and in all directions: a Gaussian of variance 2·time.

    Examples
    --------
    >>> import aniso
    >>> aniso.stability.stable_step(aniso.Homogeneous(), spacing=2.0)
    2.0
    """

    def tensor_formula(
        self, channels: int, values: Mapping[str, Any] | None = None, ndim: int = 2
    ) -> TensorFormula:
        """D = I."""
        return TensorFormula(_tensors(ndim).homogeneous, (), ())


def kinds() -> dict[str, type[ImageDriven]]:
    """Return the models whose tensor follows the image, by the names that they have on the command line.

    Examples
    --------
    >>> from aniso import models
    >>> next(iter(models.kinds()))
    'coherence-enhancing'
    """
    return {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower(): kind
        for kind in sorted(ImageDriven.__subclasses__(), key=lambda kind: kind.__name__)
        if kind.__name__ in __all__
    }


@dataclass(frozen=True, eq=False, repr=False)
class FixedTensor:
    """Diffusion with tensors that you give, one per cell.

    Parameters
    ----------
    tensor : array, shape (2, 2, H+1, W+1), (3, 3, D+1, H+1, W+1) for a volume, or (1, 1, N+1) for a signal
        Symmetric and positive semidefinite, in the order of the array's axes: ``tensor[0, 0]`` along
        axis 0 (y), ``tensor[1, 1]`` along axis 1 (x). Cell (i, j) has pixel (i, j) at its lower right
        corner; the outer ring lies on the boundary of the image, where the tensors are replaced by what
        lets no flux out (see :func:`aniso.stencil.collapse_ghost_cells`).

    Examples
    --------
    >>> import numpy as np, aniso
    >>> aniso.FixedTensor.from_matrix([[0.0, 0.0], [0.0, 1.0]], shape=(32, 32))   # along x only
    FixedTensor(<2 × 2 tensors over 33 × 33 cells>)
    """

    tensor: Field

    def __post_init__(self) -> None:
        given = arrays.as_array("tensor", self.tensor)
        ndim = given.shape[0] if given.ndim else 0
        if ndim not in (1, 2, 3) or given.shape[:2] != (ndim, ndim) or given.ndim != ndim + 2:
            raise ValueError(
                f"tensor must have shape (2, 2, H+1, W+1), one 2 × 2 tensor per cell of an H × W image, or "
                f"(3, 3, D+1, H+1, W+1) for a volume, got {given.shape}. For a constant tensor use "
                "FixedTensor.from_matrix(D, shape)."
            )
        if ndim == 3:
            tensor = checked_tensor(given)
        elif ndim == 2:
            if given.dtype.kind == "f":
                arrays.check_finite("tensor", given, "tensors must be known in every cell")
                tensor_fields.check_entries("tensor", given)
            symmetric = tensor_fields.symmetrize(given) if given.dtype.kind in "iuf" else given
            a, b, c = tensor_fields.check_tensor_field(symmetric[1, 1], symmetric[0, 1], symmetric[0, 0])
            tensor = np.array([[c, b], [b, a]])
        else:
            along = np.broadcast_to(given[0, 0], (2, given.shape[-1]))
            nothing = np.zeros(along.shape)
            a, _, _ = tensor_fields.check_tensor_field(along, nothing, nothing)
            tensor = a[np.newaxis, :1]
        tensor.flags.writeable = False
        object.__setattr__(self, "tensor", tensor)

    @classmethod
    def from_entries(cls, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> FixedTensor:
        """From the paper's letters: a along x (axis 1), c along y (axis 0), each of shape (H+1, W+1).

        Examples
        --------
        >>> import numpy as np, aniso
        >>> one, zero = np.ones((5, 5)), np.zeros((5, 5))
        >>> aniso.FixedTensor.from_entries(one, zero, zero).tensor[1, 1, 0, 0]
        np.float64(1.0)
        """
        a, b, c = tensor_fields.check_tensor_field(a, b, c)
        return cls(np.array([[c, b], [b, a]]))

    @classmethod
    def from_matrix(cls, matrix: npt.ArrayLike, shape: tuple[int, ...]) -> FixedTensor:
        """One constant tensor for an image of this shape (without channels), in the order of its axes.

        Examples
        --------
        >>> import aniso
        >>> aniso.FixedTensor.from_matrix([[1.0, 0.0], [0.0, 0.1]], (8, 8)).tensor.shape
        (2, 2, 9, 9)
        """
        constant, lengths = arrays.as_array("matrix", matrix), arrays.as_array("shape", shape)
        if (
            lengths.dtype.kind not in "iu"
            or lengths.ndim > 1
            or (lengths < 1).any()
            or (lengths > 2**31).any()
        ):
            raise ValueError(
                f"shape must be that of an image, whole numbers from 1 up, got {shape!r}. Give image.shape, "
                "without the channels."
            )
        shape = tuple(int(n) for n in np.atleast_1d(lengths))
        if constant.shape != (len(shape),) * 2:
            raise ValueError(
                f"a constant tensor for an image of shape {shape} must be a {len(shape)} × {len(shape)} "
                f"matrix, got shape {constant.shape}."
            )
        cells = tuple(n + 1 for n in shape)
        return cls(
            np.broadcast_to(constant.reshape(constant.shape + (1,) * len(shape)), constant.shape + cells)
        )

    def part(self, cells: tuple[slice, ...]) -> FixedTensor:
        """The tensors in some of the cells; they are not checked anew."""
        tensor = self.tensor[(slice(None), slice(None), *cells)]
        part = object.__new__(FixedTensor)
        object.__setattr__(part, "tensor", tensor)
        return part

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Shape of the images that these tensors fit, without channels."""
        return tuple(n - 1 for n in self.tensor.shape[2:])

    @functools.cached_property
    def entries(self) -> tuple[Field, ...]:
        """xx, xy, yy and for volumes xz, yz, zz over the cells, fit for the mirror boundary.

        A signal is an image of one row.
        """
        if len(self.tensor) == 3:
            volume_entries = collapsed_entries(tuple(self.tensor[axes] for axes in ENTRY_AXES))
            for entry in volume_entries:
                entry.flags.writeable = False
            return volume_entries
        if len(self.tensor) == 1:
            a = np.broadcast_to(self.tensor[0, 0], (2, self.tensor.shape[-1]))
            b, c = 0 * a, 0 * a
        else:
            (c, b), (_, a) = self.tensor
            a, b, c = collapse_ghost_cells(a, b, c)
        for entry in (a, b, c):
            entry.flags.writeable = False
        return a, b, c

    def spectral_bound(self, stencil: Stencil, spacings: tuple[float, ...]) -> float:
        """An upper bound of ρ(A) for these tensors."""
        if len(spacings) == 3:
            return cell_bound(self.tensor, stencil, spacings)
        finite = tuple(h if np.isfinite(h) else 1.0 for h in spacings)
        check_stencil(stencil)
        a, b, c = self.entries
        return stability.image_bound(a, b, c, cast(ImageStencil, stencil), finite)

    def __repr__(self) -> str:
        """Short, since the tensors are an array."""
        ndim, cells = len(self.tensor), " × ".join(map(str, self.tensor.shape[2:]))
        return f"FixedTensor(<{ndim} × {ndim} tensors over {cells} cells>)"

    def __eq__(self, other: object) -> bool:
        """Equal if the tensors are equal in every cell."""
        return isinstance(other, FixedTensor) and np.array_equal(self.tensor, other.tensor)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from the tensors, so that a copy is read-only too."""
        return FixedTensor, (self.tensor,)
