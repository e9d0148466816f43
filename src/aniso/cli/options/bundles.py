"""Options that several commands share, as dataclasses: a parameter of such a type becomes its fields."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, Literal, get_type_hints

import typer

from aniso.cli.options import parsing


def expanded(function: Callable[..., None]) -> Callable[..., None]:
    """The function with the fields of its bundles in place of the bundles.

    Examples
    --------
    >>> import inspect
    >>> from aniso.cli.options.bundles import Stencil, expanded
    >>> def command(stencil: Stencil) -> None:
    ...     print(stencil.alpha)
    >>> list(inspect.signature(expanded(command)).parameters)
    ['stencil', 'alpha', 'gamma', 'beta']
    >>> expanded(command)(stencil=None, alpha=0.4, gamma=None, beta=None)
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
    del wrapped.__wrapped__  # or its annotations would be looked at
    wrapped.__annotations__ = {}
    wrapped.__signature__ = inspect.Signature(parameters)
    return call


def _parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def flag(*names: str, **options: Any) -> Any:
    """A switch."""
    return typer.Option(*names, show_default=False, **options)


def number_option(meaning: str, *, panel: str | None = None, **limits: Any) -> Any:
    """An option that takes a number within the limits of :func:`aniso.cli.options.parsing.number`."""
    return typer.Option(
        help=meaning,
        parser=parsing.number(**limits),
        metavar="NUMBER/auto" if limits.get("auto") else "NUMBER",
        show_default=False,
        rich_help_panel=panel,
    )


_FILES, _COMPUTING, _REPORT, _STENCIL, _TENSOR = "Files", "Computation", "Report", "Stencil", "Tensor"
_ZARR = "Zarr stores"

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES",
        help="Images: PNG, JPEG, TIFF, NPY; with the extra 'volumes' NIfTI and MRC. Also patterns such as "
        "'scans/*.tif'.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Reading:
    """How files are read."""

    channel_axis: Annotated[
        int | None,
        typer.Option(
            help="Axis of the channels in an NPY file, e.g. -1; 'none' for a volume or a stack in grey.",
            parser=parsing.axis,
            metavar="AXIS",
            rich_help_panel=_FILES,
        ),
    ] = None
    volume: Annotated[
        bool | None,
        flag(
            "--volume/--slices",
            help="Filter a stack as one volume, or page by page. By default volumes are what NIfTI, MRC and "
            "NPY files hold, and TIFF files with a z axis or, if they do not say what their pages are, with "
            "8 or more.",
            rich_help_panel=_FILES,
        ),
    ] = None
    no_limit: Annotated[
        bool,
        flag(
            "--no-limit",
            help="Read files that unfold to more than 1 GB and 200 times their size, too.",
            rich_help_panel=_FILES,
        ),
    ] = False


@dataclass(frozen=True)
class Writing:
    """Where results go, and as what."""

    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="A file, a folder (results/ is made if needed, names stay), or a pattern of {stem}, "
            "{suffix}, {name}, {folder}, {number}. By default beside the input, under a name of its own.",
            metavar="PLACE",
            show_default=False,
            rich_help_panel=_FILES,
        ),
    ] = None
    force: Annotated[
        bool, flag("--force", "-f", help="Overwrite existing files.", rich_help_panel=_FILES)
    ] = False
    dtype: Annotated[
        Literal["uint8", "uint16", "float32", "float64"] | None,
        typer.Option(
            help="Type of the pixels that are written, one of uint8, uint16, float32, float64: values are "
            "rounded and clipped to it, not scaled. By default that of the input.",
            metavar="TYPE",
            show_default=False,
            rich_help_panel=_FILES,
        ),
    ] = None
    quality: Annotated[
        int,
        typer.Option(
            min=1, max=100, help="Quality of JPEG files, 1 to 100.", metavar="N", rich_help_panel=_FILES
        ),
    ] = 95


@dataclass(frozen=True)
class Computing:
    """How the work is done."""

    spacing: Annotated[
        Any,
        typer.Option(
            help="Distance of the pixels: a number, 'Y,X' or 'Z,Y,X', or 'file' for what the file says. "
            "Lengths and times are in its units; by default in pixels, for volumes in the shortest side of a "
            "voxel as the file says.",
            parser=parsing.spacing,
            metavar="SPACING",
            show_default=False,
            rich_help_panel=_COMPUTING,
        ),
    ] = None
    engine: Annotated[
        str | None,
        typer.Option(
            parser=parsing.engine,
            help=parsing.engine_help(),
            metavar="NAME",
            show_default=False,
            rich_help_panel=_COMPUTING,
        ),
    ] = None
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, help="By default all cores.", metavar="N", show_default=False, rich_help_panel=_COMPUTING
        ),
    ] = None


@dataclass(frozen=True)
class Cluster:
    """Who computes Zarr stores."""

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
            help="Processes on this machine, if there is no scheduler.",
            metavar="N",
            rich_help_panel=_ZARR,
        ),
    ] = 2
    memory: Annotated[
        str | None,
        typer.Option(
            help="Memory of each of them, e.g. 4GB. By default their share of the machine's.",
            parser=parsing.memory,
            metavar="SIZE",
            show_default=False,
            rich_help_panel=_ZARR,
        ),
    ] = None


@dataclass(frozen=True)
class Reporting:
    """What is said."""

    quiet: Annotated[bool, flag("--quiet", "-q", help="Say nothing but errors.", rich_help_panel=_REPORT)] = (
        False
    )
    json: Annotated[
        bool, flag("--json", help="One JSON summary on standard output.", rich_help_panel=_REPORT)
    ] = False
    debug: Annotated[bool, flag("--debug", help="Show where an error arose.", rich_help_panel=_REPORT)] = (
        False
    )


@dataclass(frozen=True)
class Stencil:
    """A member of the stencil family."""

    stencil: Annotated[
        str | None,
        typer.Option(
            help="A named member: standard, nonnegativity, finite-elements, quality, …",
            parser=parsing.stencil_name,
            metavar="NAME",
            rich_help_panel=_STENCIL,
        ),
    ] = None
    alpha: Annotated[
        float | None,
        number_option(
            "α, 0 to 0.5: towards 0.5 sharper; at 0.5 the checkerboard is no longer damped.",
            panel=_STENCIL,
            low=0,
            high=0.5,
        ),
    ] = None
    gamma: Annotated[
        float | None,
        number_option(
            "γ, −1 to 1: 1 is sharpest and allows the largest steps.", panel=_STENCIL, low=-1, high=1
        ),
    ] = None
    beta: Annotated[
        float | None,
        number_option("β, in place of γ, with ∣β∣ ≤ 1 − 2α.", panel=_STENCIL, low=-1, high=1),
    ] = None

    def chosen(self) -> Any:
        """The DeltaStencil that the options describe; None if there are no such options."""
        from aniso.stencil import DeltaStencil

        given = {
            name: value for name in ("alpha", "gamma", "beta") if (value := getattr(self, name)) is not None
        }
        if self.stencil is None:
            with parsing.usage():
                return DeltaStencil(**given) if given else None
        if given:
            raise typer.BadParameter(
                f"--stencil {self.stencil} fixes α and γ already. Leave --{next(iter(given))} out, or give "
                "α and γ alone."
            )
        return DeltaStencil.named(self.stencil)


@dataclass(frozen=True)
class Tensor:
    """A constant diffusion tensor."""

    tensor: Annotated[
        tuple[float, float, float] | None,
        typer.Option(
            help="Entries of D = (a b; b c), a along x (to the right), c along y (downwards).",
            metavar="A B C",
            show_default=False,
            rich_help_panel=_TENSOR,
        ),
    ] = None
    angle: Annotated[
        float | None,
        typer.Option(
            help="Direction of the first eigenvector in degrees, from x (right) towards y (down).",
            parser=parsing.number(),
            metavar="DEGREES",
            show_default=False,
            rich_help_panel=_TENSOR,
        ),
    ] = None
    eigenvalues: Annotated[
        tuple[float, float] | None,
        typer.Option(
            help="Diffusivity along the angle and across it. Default 1 0.",
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
        """The entries a, b, c."""
        import math

        if self.tensor is not None:
            if self.angle is not None or self.eigenvalues is not None:
                raise typer.BadParameter(
                    "--tensor says all about the tensor. Leave --angle and --eigenvalues out."
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
            raise typer.BadParameter("the tensor must consist of finite numbers of ordinary size.")
        if 0.5 * (a + c) - math.hypot(0.5 * (a - c), b) < -1e-12 * (abs(a) + abs(c)):
            raise typer.BadParameter(
                f"the tensor ({a:g} {b:g}; {b:g} {c:g}) has a negative eigenvalue: diffusion against a "
                "gradient is unstable. Take ∣b∣ ≤ √(ac)."
            )
        return a, b, c
