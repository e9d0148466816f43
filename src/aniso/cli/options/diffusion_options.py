"""Options for model, stencil, constant tensor and scheme.

Those of the models are generated from their fields: a new model, or a new field, appears automatically.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, make_dataclass
from typing import Any, ClassVar, Literal

import typer

from aniso import models, schemes
from aniso.cli.options import parsing
from aniso.cli.options.shared import default_words, describe, number, option, value_option
from aniso.parameters import Parameter, of_model
from aniso.stencil import DeltaStencil


def _given(options: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the values of the options that were given."""
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


@dataclass(frozen=True)
class StencilOptions:
    """A member of the stencil family."""

    panel: ClassVar[str] = "Stencil"
    stencil: str | None = option(
        f"Named stencil: {', '.join(DeltaStencil.names())}.", parser=parsing.stencil_name, metavar="NAME"
    )
    alpha: float | None = number(
        "Stencil parameter α, 0 to 0.5. Larger is sharper; at 0.5 checkerboard patterns are not damped.",
        low=0,
        high=0.5,
    )
    gamma: float | None = number(
        "Stencil parameter γ, −1 to 1. 1 is sharpest and allows the largest steps.", low=-1, high=1
    )
    beta: float | None = number("Stencil parameter β instead of γ, with ∣β∣ ≤ 1 − 2α.", low=-1, high=1)

    def chosen(self) -> Any:
        """Return the DeltaStencil given by the options, or None if no stencil option is given."""
        given = _given(self, ("alpha", "gamma", "beta"))
        if self.stencil is None:
            with parsing.usage():
                return DeltaStencil(**given) if given else None
        if given:
            raise typer.BadParameter(
                f"--stencil {self.stencil} already sets α and γ. Remove --{next(iter(given))} or --stencil."
            )
        return DeltaStencil.named(self.stencil)


@dataclass(frozen=True)
class TensorOptions:
    """A constant diffusion tensor."""

    panel: ClassVar[str] = "Tensor"
    tensor: tuple[float, float, float] | None = option(
        "Entries of D = (a b; b c), with a along x (right) and c along y (down).", metavar="A B C"
    )
    angle: float | None = option(
        "Direction of the first eigenvector in degrees, from x (right) to y (down).",
        parser=parsing.number(),
        metavar="DEGREES",
    )
    eigenvalues: tuple[float, float] | None = option(
        "Diffusivities along and across the angle. Default: 1 0.", metavar="L1 L2"
    )

    @property
    def given(self) -> bool:
        """Whether any of the options was given."""
        return bool(_given(self, ("tensor", "angle", "eigenvalues")))

    def entries(self) -> tuple[float, float, float]:
        """Return the entries a, b, c."""
        if self.tensor is not None:
            if self.angle is not None or self.eigenvalues is not None:
                raise typer.BadParameter(
                    "--tensor already defines the tensor. Remove --angle and --eigenvalues."
                )
            a, b, c = self.tensor
        else:
            along, across = self.eigenvalues or (1.0, 0.0)
            angle = math.radians(self.angle or 0.0)
            x, y = math.cos(angle), math.sin(angle)
            a, c = along * x * x + across * y * y, along * y * y + across * x * x
            b = (along - across) * x * y
        if not all(math.isfinite(entry) for entry in (a, b, c, a + c)):
            raise typer.BadParameter("the entries of the tensor must be finite.")
        if 0.5 * (a + c) - math.hypot(0.5 * (a - c), b) < -1e-12 * (abs(a) + abs(c)):
            raise typer.BadParameter(
                f"the tensor ({a:g} {b:g}; {b:g} {c:g}) has a negative eigenvalue, which makes diffusion "
                "unstable. Choose ∣b∣ ≤ √(ac)."
            )
        return a, b, c


@dataclass(frozen=True)
class SchemeOptions:
    """A scheme and its parameter."""

    panel: ClassVar[str] = "Time stepping"
    scheme: Literal[tuple(schemes.kinds())] = option(  # type: ignore[valid-type]
        "Scheme: explicit computes a tensor for every step; the cycles of fed and fsi reach long times "
        "faster.",
        default="explicit",
        metavar="NAME",
    )
    step: float | None = number(
        "Largest step of the explicit scheme. Default: 0.9 times the largest stable step.",
        low=0,
        open_low=True,
    )
    cycles: int | None = option("Number of cycles of fed and fsi, with one tensor each. Default: 5.", min=1)

    def chosen(self) -> Any:
        """Return the scheme that the options describe."""
        kind = schemes.kinds()[self.scheme]
        given = _given(self, ("step", "cycles"))
        for name in given:
            if name not in kind.__dataclass_fields__:
                others = [key for key, each in schemes.kinds().items() if name in each.__dataclass_fields__]
                raise typer.BadParameter(
                    f"the scheme {self.scheme} has no --{name}. Remove it, or add --scheme {others[0]}."
                )
        with parsing.usage():
            return kind(**given)


class _Model:
    """A choice of model, and a field for each field of any model."""

    panel: ClassVar[str] = "Model"
    model: str

    def given(self) -> list[str]:
        """Return the options of the model that were given."""
        return [_flag(name) for name in _given(self, _model_fields())]

    def chosen(self) -> models.ImageDriven:
        """Return the model that the options describe."""
        kind = models.kinds()[self.model]
        own, given = list(of_model(kind)), _given(self, _model_fields())
        for name in given:
            if name not in own:
                has = ", ".join(map(_flag, own)) or "no parameters"
                raise typer.BadParameter(f"the model {self.model} has no {_flag(name)}; it has {has}.")
        with parsing.usage():
            return kind(**given)


def _model_fields() -> dict[str, dict[str, Parameter]]:
    """Return field name → model name → parameter."""
    found: dict[str, dict[str, Parameter]] = {}
    for name, kind in models.kinds().items():
        for parameter in of_model(kind).values():
            found.setdefault(parameter.name, {})[name] = parameter
    # As in the models: contrast before the scales before what few have.
    return dict(sorted(found.items(), key=lambda entry: (-len(entry[1]), entry[0])))


def _model_option(name: str, owners: Mapping[str, Parameter]) -> tuple[str, Any, Any]:
    """Return name, type and option of a field; its help has all defaults, which may differ between models."""
    about = next(iter(owners.values())).about
    by_default: dict[str, list[str]] = {}
    for model, parameter in owners.items():
        by_default.setdefault(default_words(parameter), []).append(model)
    defaults = "; ".join(f"{value} ({', '.join(names)})" for value, names in by_default.items())
    span = ", ".join(about.choices) or parsing.span(about.low, about.high, about.open_low)
    values = "" if about.switch else f" Values: {span}."
    return name, *value_option(about, name, f"{describe(about)}{values} Default: {defaults}.")


def _purpose(kind: type) -> str:
    """Return what a model does, from the first line of its docstring."""
    line = (kind.__doc__ or "").strip().splitlines()[0]
    return line.partition(": ")[2].rstrip(".") or line.rstrip(".")


def _model_options() -> Any:
    lines = [f"{name} ({_purpose(kind)})" for name, kind in models.kinds().items()]
    text = f"Diffusion model: {'; '.join(lines)}."
    choice = option(text, "--model", "-m", default="edge-enhancing", metavar="NAME")
    names: Any = Literal[tuple(models.kinds())]
    entries = [("model", names, choice), *(_model_option(*each) for each in _model_fields().items())]
    return make_dataclass("ModelOptions", entries, bases=(_Model,), frozen=True)


ModelOptions: Any = _model_options()


@dataclass(frozen=True)
class DiffusionOptions:
    """A model or a constant tensor, a stencil and a scheme."""

    model: ModelOptions
    tensor: TensorOptions
    stencil: StencilOptions
    scheme: SchemeOptions
