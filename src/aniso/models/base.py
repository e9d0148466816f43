"""What every model offers to the engines, and the checks of models with parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from aniso import checks, stability
from aniso.arrays import Field
from aniso.formulas import tensors, volume_tensors
from aniso.models.diffusivity import check_diffusivity
from aniso.parameters import of_model
from aniso.stencil import Stencil

#: The parameters of a model by name.
Values = Mapping[str, Any]


@dataclass(frozen=True)
class TensorFormula:
    """How structure becomes a tensor: a function of its entries, of further functions, and of numbers.

    `function` takes them by position in this order: the entries of the structure tensor, three for images and
    six for volumes, then `functions`, then `parameters`. The names of its arguments do not matter.
    """

    function: Callable[..., tuple[Any, ...]]
    functions: tuple[Callable[..., Any], ...]
    parameters: tuple[float, ...]

    def __call__(self, *structure: Any) -> tuple[Any, ...]:
        """Compute the entries of the diffusion tensor from those of the structure tensor: xx, xy, yy, …."""
        return self.function(*structure, *self.functions, *self.parameters)


class Model(ABC):
    """What engines, blocks and the limit of the step size ask of every model.

    The tensor is either given, by `entries`, or follows from the image by `tensor_formula`.
    """

    @property
    def presmoothing(self) -> float:
        """Standard deviation of the presmoothing Gaussian: the field `sigma`, or 0."""
        return float(getattr(self, "sigma", 0.0))

    @property
    def integration(self) -> float:
        """Standard deviation of the Gaussian that averages the structure tensor: the field `rho`, or 0."""
        return float(getattr(self, "rho", 0.0))

    @property
    def needs_doubles(self) -> bool:
        """Whether squared gradients near λ² are beyond single precision."""
        return not 1e-12 <= getattr(self, "contrast", 1.0) <= 1e12

    @property
    def entries(self) -> tuple[Field, ...] | None:
        """The entries of given tensors over the cells; None if the tensor follows from the image."""
        return None

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        """The shape of images, without channels, that given tensors fit; None for any shape."""
        return None

    def part(self, cells: tuple[slice, ...]) -> Model:
        """Return the model for some of the cells."""
        return self

    def tensor_formula(self, channels: int, values: Values | None = None, ndim: int = 2) -> TensorFormula:
        """Return how structure becomes a tensor, for an image (ndim 2) or a volume (3) with these channels.

        `values` replaces the model's own parameters, under the same names, e.g. by numbers that are learned.
        """
        raise NotImplementedError(f"{self!r} has tensors of its own, and no formula for them")

    @abstractmethod
    def spectral_bound(self, stencil: Stencil, spacings: tuple[float, ...]) -> float:
        """Return an upper bound of ρ(A) for all images."""


@dataclass(frozen=True)
class ImageDriven(Model):
    """A model whose tensor follows the evolving image.

    Subclasses are dataclasses. Their fields carry descriptions, by which values are checked.
    """

    def __post_init__(self) -> None:
        for parameter in of_model(self).values():
            name, about = parameter.name, parameter.about
            value = getattr(self, name)
            if about.choices:
                check_diffusivity(value)
                continue
            if about.switch:
                if not isinstance(value, bool):
                    raise TypeError(f"{name} must be True or False, got {value!r}: {about.meaning}.")
                continue
            meaning = f"{about.symbol}, {about.meaning}."
            number = checks.within(name, value, about.low, about.high, meaning, open_low=about.open_low)
            if number == np.inf:
                raise ValueError(f"{name} must be finite, got inf: {meaning}")
            if name == "contrast" and not 1e-140 <= number <= 1e140:
                size, way = ("small", "up") if number < 1 else ("large", "down")
                raise ValueError(
                    f"contrast={value} is too {size} to compute with. Scale the image {way} first."
                )
            object.__setattr__(self, name, number)

    def eigenvalue_bounds(self, ndim: int = 2) -> tuple[float, float]:
        """Return upper bounds λ1 ≥ λ2 of the largest and of all other eigenvalues of the tensors."""
        return 1.0, 1.0

    def tensor_formula(self, channels: int, values: Values | None = None, ndim: int = 2) -> TensorFormula:
        """Return how structure becomes a tensor."""
        return self.formula(volume_tensors if ndim == 3 else tensors, channels, values or vars(self))

    def formula(self, formulas: Any, channels: int, values: Values) -> TensorFormula:
        """Return how structure becomes a tensor.

        `formulas` are those of :mod:`aniso.formulas.tensors`, or `volume_tensors` with the same names.
        """
        raise NotImplementedError

    def spectral_bound(self, stencil: Stencil, spacings: tuple[float, ...]) -> float:
        """Return an upper bound of ρ(A) for all images."""
        return stability.grid_bound(stencil, *self.eigenvalue_bounds(len(spacings)), spacings)
