"""Options that several commands share, as dataclasses: such a parameter is replaced by its fields."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, Literal, get_type_hints

import typer

from aniso.cli.options import parsing
from aniso.parameters import About, Parameter
from aniso.stencil import DeltaStencil


def expand(function: Callable[..., None]) -> Callable[..., None]:
    """Return the function with the fields of its bundles instead of the bundles.

    Examples
    --------
    >>> import inspect
    >>> from aniso.cli.options.bundles import StencilOptions, expand
    >>> def command(stencil: StencilOptions) -> None:
    ...     print(stencil.alpha)
    >>> list(inspect.signature(expand(command)).parameters)
    ['stencil', 'alpha', 'gamma', 'beta']
    >>> expand(command)(stencil=None, alpha=0.4, gamma=None, beta=None)
    0.4
    """
    hints = get_type_hints(function, include_extras=True)
    bundles: dict[str, tuple[type, list[str]]] = {}
    parameters = []
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints[name]
        if is_dataclass(kind):
            inner = get_type_hints(kind, include_extras=True)
            bundles[name] = kind, [field.name for field in fields(kind)]  # type: ignore[assignment]
            parameters += [_parameter(field.name, inner[field.name], field.default) for field in fields(kind)]
        else:
            parameters.append(_parameter(name, kind, parameter.default))

    @functools.wraps(function)
    def call(**values: Any) -> None:
        packed = {
            name: kind(**{inner: values.pop(inner) for inner in names})
            for name, (kind, names) in bundles.items()
        }
        function(**values, **packed)

    wrapped: Any = call
    del wrapped.__wrapped__  # or its annotations would be used
    wrapped.__annotations__ = {}
    wrapped.__signature__ = inspect.Signature(parameters)
    return call


def _parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def flag(*names: str, **options: Any) -> Any:
    """Return an option that is a switch."""
    return typer.Option(*names, show_default=False, **options)


def number_option(meaning: str, *, panel: str | None = None, **limits: Any) -> Any:
    """Return an option that takes a number within the limits of :func:`aniso.cli.options.parsing.number`."""
    return typer.Option(
        help=meaning,
        parser=parsing.number(**limits),
        metavar="NUMBER/auto" if limits.get("auto") else "NUMBER",
        show_default=False,
        rich_help_panel=panel,
    )


_UNITS = {"length": "units of length", "length²": "squared units of length"}


def describe(about: About) -> str:
    """Return the meaning of a parameter, with its symbol and unit.

    Examples
    --------
    >>> from aniso.cli.options.bundles import describe
    >>> from aniso.parameters import NOISE, SIGMA
    >>> describe(SIGMA)
    'σ in units of length: standard deviation of the presmoothing Gaussian (noise scale).'
    >>> describe(NOISE)
    'Standard deviation of the noise, in grey values.'
    """
    unit = f"in {_UNITS.get(about.unit, about.unit)}" if about.unit else ""
    if about.symbol:
        return f"{f'{about.symbol} {unit}'.strip()}: {about.meaning}."
    meaning = f"{'for volumes: ' if about.for_volumes else ''}{about.meaning}{f', {unit}' if unit else ''}."
    return meaning[0].upper() + meaning[1:]


def default_words(parameter: Parameter) -> str:
    """Return the default of a parameter in words."""
    if parameter.about.switch:
        return "yes" if parameter.default else "no"
    if parameter.automatic:
        return parameter.about.auto
    return f"{parameter.default:g}" if isinstance(parameter.default, float | int) else str(parameter.default)


_FILES, _COMPUTING, _REPORT, _STENCIL, _TENSOR = "Files", "Computation", "Report", "Stencil", "Tensor"
_ZARR = "Zarr stores"

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES",
        help="Image files: PNG, JPEG, TIFF, NPY, and with the extra 'volumes' also NIfTI and MRC. Patterns "
        "such as 'scans/*.tif' are expanded.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class ReadingOptions:
    """How files are read."""

    channel_axis: Annotated[
        int | None,
        typer.Option(
            help="Axis of the channels in an NPY file, e.g. -1, or 'none' for a grey-value volume or stack.",
            parser=parsing.axis,
            metavar="AXIS",
            rich_help_panel=_FILES,
        ),
    ] = None
    volume: Annotated[
        bool | None,
        flag(
            "--volume/--slices",
            help="Filter a stack as one volume, or page by page. Default: volume for NIfTI, MRC and NPY "
            "files, and for TIFF files with a z axis or with 8 or more pages of unknown kind.",
            rich_help_panel=_FILES,
        ),
    ] = None
    no_limit: Annotated[
        bool,
        flag(
            "--no-limit",
            help="Also read files that decompress to more than 1 GB and more than 200 times their size.",
            rich_help_panel=_FILES,
        ),
    ] = False


@dataclass(frozen=True)
class PlacingOptions:
    """Where results are written."""

    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Output file, folder (ending in /, created if needed), or pattern with {stem}, {suffix}, "
            "{name}, {folder} and {number}. Default: next to the input, with a new name.",
            metavar="PLACE",
            show_default=False,
            rich_help_panel=_FILES,
        ),
    ] = None
    force: Annotated[
        bool, flag("--force", "-f", help="Overwrite existing files.", rich_help_panel=_FILES)
    ] = False


@dataclass(frozen=True)
class WritingOptions(PlacingOptions):
    """Where results go, and as what."""

    dtype: Annotated[
        Literal["uint8", "uint16", "float32", "float64"] | None,
        typer.Option(
            help="Data type of the output: uint8, uint16, float32 or float64. Values are rounded and "
            "clipped, not scaled. Default: that of the input.",
            metavar="TYPE",
            show_default=False,
            rich_help_panel=_FILES,
        ),
    ] = None
    quality: Annotated[
        int,
        typer.Option(min=1, max=100, help="JPEG quality, 1 to 100.", metavar="N", rich_help_panel=_FILES),
    ] = 95


@dataclass(frozen=True)
class MeasuringOptions:
    """Pixel spacing."""

    spacing: Annotated[
        Any,
        typer.Option(
            help="Pixel spacing: a number, 'Y,X' or 'Z,Y,X', or 'file' to use that of the file. It sets "
            "the unit of lengths and times. Default: 1 for images; for volumes the voxel shape of the "
            "file, with the shortest side as unit.",
            parser=parsing.spacing,
            metavar="SPACING",
            show_default=False,
            rich_help_panel=_COMPUTING,
        ),
    ] = None


@dataclass(frozen=True)
class ComputingOptions(MeasuringOptions):
    """How the work is done."""

    engine: Annotated[
        Literal["cpu", "torch", "reference"] | None,
        typer.Option(
            help="Engine: cpu (compiled loops, the default), torch, or reference (plain NumPy).",
            metavar="NAME",
            show_default=False,
            rich_help_panel=_COMPUTING,
        ),
    ] = None
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of threads. Default: all cores.",
            metavar="N",
            show_default=False,
            rich_help_panel=_COMPUTING,
        ),
    ] = None


@dataclass(frozen=True)
class ClusterOptions:
    """The workers that filter Zarr stores."""

    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Address of a Dask scheduler, e.g. tcp://10.0.0.1:8786.",
            metavar="ADDRESS",
            show_default=False,
            rich_help_panel=_ZARR,
        ),
    ] = None
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of worker processes on this machine, if no scheduler is given.",
            metavar="N",
            rich_help_panel=_ZARR,
        ),
    ] = 2
    memory: Annotated[
        str | None,
        typer.Option(
            help="Memory limit of each worker process, e.g. 4GB. Default: an equal share of the machine's "
            "memory.",
            parser=parsing.memory,
            metavar="SIZE",
            show_default=False,
            rich_help_panel=_ZARR,
        ),
    ] = None


@dataclass(frozen=True)
class ReportingOptions:
    """What is printed."""

    quiet: Annotated[bool, flag("--quiet", "-q", help="Print errors only.", rich_help_panel=_REPORT)] = False
    json: Annotated[
        bool, flag("--json", help="Print a JSON summary to standard output.", rich_help_panel=_REPORT)
    ] = False
    debug: Annotated[bool, flag("--debug", help="Show tracebacks.", rich_help_panel=_REPORT)] = False


@dataclass(frozen=True)
class StencilOptions:
    """A member of the stencil family."""

    stencil: Annotated[
        str | None,
        typer.Option(
            help=f"Named stencil: {', '.join(DeltaStencil.names())}.",
            parser=parsing.stencil_name,
            metavar="NAME",
            rich_help_panel=_STENCIL,
        ),
    ] = None
    alpha: Annotated[
        float | None,
        number_option(
            "Stencil parameter α, 0 to 0.5. Larger is sharper; at 0.5 checkerboard patterns are not damped.",
            panel=_STENCIL,
            low=0,
            high=0.5,
        ),
    ] = None
    gamma: Annotated[
        float | None,
        number_option(
            "Stencil parameter γ, −1 to 1. 1 is sharpest and allows the largest steps.",
            panel=_STENCIL,
            low=-1,
            high=1,
        ),
    ] = None
    beta: Annotated[
        float | None,
        number_option("Stencil parameter β instead of γ, with ∣β∣ ≤ 1 − 2α.", panel=_STENCIL, low=-1, high=1),
    ] = None

    def chosen(self) -> Any:
        """Return the DeltaStencil that the options describe; None if there are no such options."""
        given = {
            name: value for name in ("alpha", "gamma", "beta") if (value := getattr(self, name)) is not None
        }
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

    tensor: Annotated[
        tuple[float, float, float] | None,
        typer.Option(
            help="Entries of D = (a b; b c), with a along x (right) and c along y (down).",
            metavar="A B C",
            show_default=False,
            rich_help_panel=_TENSOR,
        ),
    ] = None
    angle: Annotated[
        float | None,
        typer.Option(
            help="Direction of the first eigenvector in degrees, from x (right) to y (down).",
            parser=parsing.number(),
            metavar="DEGREES",
            show_default=False,
            rich_help_panel=_TENSOR,
        ),
    ] = None
    eigenvalues: Annotated[
        tuple[float, float] | None,
        typer.Option(
            help="Diffusivities along and across the angle. Default: 1 0.",
            metavar="L1 L2",
            show_default=False,
            rich_help_panel=_TENSOR,
        ),
    ] = None

    @property
    def given(self) -> bool:
        """Whether any of the options was given."""
        return any(value is not None for value in (self.tensor, self.angle, self.eigenvalues))

    def entries(self) -> tuple[float, float, float]:
        """Return the entries a, b, c."""
        import math

        if self.tensor is not None:
            if self.angle is not None or self.eigenvalues is not None:
                raise typer.BadParameter(
                    "--tensor already defines the tensor. Remove --angle and --eigenvalues."
                )
            a, b, c = self.tensor
        else:
            along, across = (1.0, 0.0) if self.eigenvalues is None else self.eigenvalues
            angle = math.radians(self.angle or 0.0)
            x, y = math.cos(angle), math.sin(angle)
            a, b, c = (
                along * x * x + across * y * y,
                (along - across) * x * y,
                along * y * y + across * x * x,
            )
        if not all(math.isfinite(number) for number in (a, b, c, a + c)):
            raise typer.BadParameter("the entries of the tensor must be finite.")
        if 0.5 * (a + c) - math.hypot(0.5 * (a - c), b) < -1e-12 * (abs(a) + abs(c)):
            raise typer.BadParameter(
                f"the tensor ({a:g} {b:g}; {b:g} {c:g}) has a negative eigenvalue, which makes diffusion "
                "unstable. Choose ∣b∣ ≤ √(ac)."
            )
        return a, b, c
