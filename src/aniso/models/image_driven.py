"""The models whose tensor follows the evolving image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aniso.formulas import tensors, volume_tensors
from aniso.models.base import ImageDriven, TensorFormula, Values
from aniso.models.diffusivity import DIFFUSIVITY, forms
from aniso.parameters import CONTRAST, PLATES, RHO, SIGMA, About

__all__ = [
    "CoherenceEnhancing",
    "EdgeContinuing",
    "EdgeEnhancing",
    "Homogeneous",
    "PeronaMalik",
]


@dataclass(frozen=True)
class EdgeEnhancing(ImageDriven):
    """Edge-enhancing diffusion: unrestricted along edges, and weaker across stronger edges.

    D has the eigenvalue 1 along the edge and g(∣∇u_σ∣²/λ²) across it.

    Parameters
    ----------
    contrast : float
        λ in the literature, in grey values per unit length: gradients above it are edges.
    sigma : float
        Noise scale σ, in the units of `spacing`: structures below it are ignored.
    diffusivity : str or callable
        g(r) with r = ∣∇u_σ∣²/λ²: a name in :data:`aniso.models.DIFFUSIVITIES`, or a function that works on
        arrays, is 1 at r = 0 and lies in (0, 1].

    Examples
    --------
    >>> import aniso
    >>> aniso.EdgeEnhancing(contrast=5)
    EdgeEnhancing(contrast=5.0, sigma=1.0, diffusivity='weickert')
    """

    contrast: float = CONTRAST.field(3.5)
    sigma: float = SIGMA.field(1.0)
    diffusivity: str | Callable[[Any], Any] = DIFFUSIVITY.field("weickert")  # noqa: RUF009

    def formula(self, formulas: Any, channels: int, values: Values) -> TensorFormula:
        """D = I − ψ(r) q qᵀ for one channel, D = g(J/λ²) for several."""
        g, scale = forms(values["diffusivity"]), (values["contrast"] ** -2,)
        if channels == 1:
            return TensorFormula(formulas.edge_enhancing, (g.decline,), scale)
        return TensorFormula(formulas.edge_enhancing_joint, (g.diffusivity, g.slope), scale)


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
    diffusivity : str or callable
        g(r) with r = (μ1 − μ2)/λ²: a name in :data:`aniso.models.DIFFUSIVITIES` or a function.

    Examples
    --------
    >>> import aniso
    >>> aniso.EdgeContinuing(contrast=2)
    EdgeContinuing(contrast=2.0, sigma=0.7, rho=0.8, diffusivity='charbonnier')
    """

    contrast: float = CONTRAST.field(3.5)
    sigma: float = SIGMA.field(0.7)
    rho: float = RHO.field(0.8)
    diffusivity: str | Callable[[Any], Any] = DIFFUSIVITY.field("charbonnier")  # noqa: RUF009

    def formula(self, formulas: Any, channels: int, values: Values) -> TensorFormula:
        """D = I − ψ(r)(J − μ2·I)/λ², for any number of channels; in volumes g((J − μ3·I)/λ²)."""
        g, scale = forms(values["diffusivity"]), (values["contrast"] ** -2,)
        functions = (g.decline,) if formulas is tensors else (g.diffusivity, g.slope)
        return TensorFormula(formulas.edge_continuing, functions, scale)


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

    def formula(self, formulas: Any, channels: int, values: Values) -> TensorFormula:
        """D = f(μ1·I − J/λ²)."""
        lines = formulas is volume_tensors and not self.plates
        formula = formulas.line_enhancing if lines else formulas.coherence_enhancing
        return TensorFormula(formula, (), (values["contrast"] ** -2, values["min_diffusivity"]))


@dataclass(frozen=True)
class PeronaMalik(ImageDriven):
    """Scalar nonlinear diffusion: equal in all directions, less where the gradient is large.

    With σ > 0 the regularised model of Catté et al., with σ = 0 that of Perona and Malik.

    Parameters
    ----------
    contrast, sigma, diffusivity
        As for :class:`EdgeEnhancing`.

    Examples
    --------
    >>> import aniso
    >>> aniso.PeronaMalik(contrast=10, sigma=0)
    PeronaMalik(contrast=10.0, sigma=0.0, diffusivity='perona-malik')
    """

    contrast: float = CONTRAST.field(3.5)
    sigma: float = SIGMA.field(0.5)
    diffusivity: str | Callable[[Any], Any] = DIFFUSIVITY.field("perona-malik")  # noqa: RUF009

    def formula(self, formulas: Any, channels: int, values: Values) -> TensorFormula:
        """D = g(r) I."""
        g = forms(values["diffusivity"])
        return TensorFormula(formulas.perona_malik, (g.diffusivity,), (values["contrast"] ** -2,))


@dataclass(frozen=True)
class Homogeneous(ImageDriven):
    """Linear diffusion, the same everywhere and in all directions: a Gaussian of variance 2·time.

    Examples
    --------
    >>> import aniso
    >>> aniso.stability.stable_step(aniso.Homogeneous(), spacing=2.0)
    2.0
    """

    def formula(self, formulas: Any, channels: int, values: Values) -> TensorFormula:
        """D = I."""
        return TensorFormula(formulas.homogeneous, (), ())
