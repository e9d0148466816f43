"""Options that several commands share, as dataclasses: such a parameter is replaced by its fields."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_type_hints

import typer

from aniso.cli.options import parsing
from aniso.parameters import About, Parameter

if TYPE_CHECKING:
    from aniso.io.pages import Page

#: The default of options that have to be given.
REQUIRED: Any = MISSING


def option(meaning: str | Callable[[], str], *names: str, default: Any = None, **settings: Any) -> Any:
    """Return an option with this help, for a field of a dataclass or as the default of an argument.

    The help may be a function, which is called when help is needed. The default is shown unless the help
    says what it is.
    """

    def build(panel: str) -> Any:
        text = meaning() if callable(meaning) else meaning
        shown = not isinstance(default, bool) and "Default" not in text
        return typer.Option(*names, help=text, show_default=shown, rich_help_panel=panel or None, **settings)

    return field(default=default, metadata={"option": build})


def number(meaning: str, *, default: Any = None, **limits: Any) -> Any:
    """Return an option that takes a number within the limits of :func:`aniso.cli.options.parsing.number`."""
    metavar = "NUMBER/auto" if limits.get("auto") else "NUMBER"
    return option(meaning, default=default, parser=parsing.number(**limits), metavar=metavar)


def expand(function: Callable[..., None]) -> Callable[..., None]:
    """Return the function with the fields of its dataclasses as options instead of the dataclasses.

    Examples
    --------
    >>> import inspect
    >>> from aniso.cli.options.shared import ReportingOptions, expand
    >>> def command(reporting: ReportingOptions) -> None:
    ...     print(reporting.quiet)
    >>> list(inspect.signature(expand(command)).parameters)
    ['quiet', 'json', 'debug']
    >>> expand(command)(quiet=True, json=False, debug=False)
    True
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, tuple[type, list[str]]] = {}
    parameters = []
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints[name]
        if is_dataclass(kind):
            inner = get_type_hints(kind)
            groups[name] = kind, [each.name for each in fields(kind)]  # type: ignore[assignment]
            panel = getattr(kind, "panel", "")
            parameters += [_parameter(each.name, inner[each.name], each, panel) for each in fields(kind)]
        else:
            parameters.append(_parameter(name, kind, parameter.default))

    @functools.wraps(function)
    def call(**values: Any) -> None:
        packed = {
            name: kind(**{key: values.pop(key) for key in keys}) for name, (kind, keys) in groups.items()
        }
        function(**values, **packed)

    wrapped: Any = call
    del wrapped.__wrapped__  # or its annotations would be used
    wrapped.__annotations__ = {}
    wrapped.__signature__ = inspect.Signature(parameters)
    return call


def _parameter(name: str, kind: Any, default: Any, panel: str = "") -> inspect.Parameter:
    if isinstance(default, Field):
        kind = Annotated[kind, default.metadata["option"](panel)]
        default = inspect.Parameter.empty if default.default is MISSING else default.default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


_UNITS = {"length": "units of length", "length²": "squared units of length", "×": ""}


def describe(about: About) -> str:
    """Return the meaning of a parameter, with its symbol and unit.

    Examples
    --------
    >>> from aniso.cli.options.shared import describe
    >>> from aniso.parameters import SIGMA
    >>> describe(SIGMA)
    'σ in units of length: standard deviation of the presmoothing Gaussian (noise scale).'
    """
    unit = _UNITS.get(about.unit, about.unit)
    unit = f"in {unit}" if unit else ""
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

    panel: ClassVar[str] = "Files"
    channel_axis: int | None = option(
        "Axis of the channels in an NPY file, e.g. -1, or 'none' for a grey-value volume or stack.",
        parser=parsing.axis,
        metavar="AXIS",
    )
    volume: bool | None = option(
        "Filter a stack as one volume, or page by page. Default: volume for NIfTI, MRC and NPY files, and "
        "for TIFF files with a z axis or with 8 or more pages of unknown kind.",
        "--volume/--slices",
    )
    no_limit: bool = option(
        "Also read files that decompress to more than 1 GB and more than 200 times their size.",
        "--no-limit",
        default=False,
    )


@dataclass(frozen=True)
class PlacingOptions:
    """Where results are written."""

    panel: ClassVar[str] = "Files"
    output: str | None = option(
        "Output file, folder (ending in /, created if needed), or pattern with {stem}, {suffix}, {name}, "
        "{folder} and {number}. Default: next to the input, with a new name.",
        "--output",
        "-o",
        metavar="PLACE",
    )
    force: bool = option("Overwrite existing files.", "--force", "-f", default=False)


@dataclass(frozen=True)
class WritingOptions(PlacingOptions):
    """Where results go, and as what."""

    dtype: Literal["uint8", "uint16", "float32", "float64"] | None = option(
        "Data type of the output: uint8, uint16, float32 or float64. Values are rounded and clipped, not "
        "scaled. Default: that of the input.",
        metavar="TYPE",
    )
    quality: int = option("JPEG quality, 1 to 100.", default=95, min=1, max=100, metavar="N")


@dataclass(frozen=True)
class MeasuringOptions:
    """Pixel spacing."""

    panel: ClassVar[str] = "Computation"
    spacing: Any = option(
        "Pixel spacing: a number, 'Y,X' or 'Z,Y,X', or 'file' to use that of the file. It sets the unit of "
        "lengths and times. Default: 1 for images; for volumes the voxel shape of the file, with the "
        "shortest side as unit.",
        parser=parsing.spacing,
        metavar="SPACING",
    )


@dataclass(frozen=True)
class ComputingOptions(MeasuringOptions):
    """How the work is done."""

    engine: str | None = option(parsing.engine_help, parser=parsing.engine, metavar="NAME")
    threads: int | None = option("Number of threads. Default: all cores.", min=1, metavar="N")

    def arguments(self, page: Page) -> dict[str, Any]:
        """Return the arguments of verbs that say what a page is and how it is computed."""
        where = {"spacing": page.spacing, "channel_axis": page.channel_axis}
        return {**where, "engine": self.engine, "threads": self.threads}


@dataclass(frozen=True)
class ClusterOptions:
    """The workers that filter Zarr stores."""

    panel: ClassVar[str] = "Zarr stores"
    scheduler: str | None = option(
        "Address of a Dask scheduler, e.g. tcp://10.0.0.1:8786.", metavar="ADDRESS"
    )
    workers: int = option(
        "Number of worker processes on this machine, if no scheduler is given.",
        default=2,
        min=1,
        metavar="N",
    )
    memory: str | None = option(
        "Memory limit of each worker process, e.g. 4GB. Default: an equal share of the machine's memory.",
        parser=parsing.memory,
        metavar="SIZE",
    )


@dataclass(frozen=True)
class ReportingOptions:
    """What is printed."""

    panel: ClassVar[str] = "Report"
    quiet: bool = option("Print errors only.", "--quiet", "-q", default=False)
    json: bool = option("Print a JSON summary to standard output.", "--json", default=False)
    debug: bool = option("Show tracebacks.", "--debug", default=False)


@dataclass(frozen=True)
class MaskOptions:
    """Which pixels are unknown."""

    mask_file: Path | None = option(
        "Mask image of the same size: pixels are unknown where any channel is not 0. For Zarr stores, a file "
        "or a store.",
        "--mask",
        metavar="FILE",
    )
    invert: bool = option("Invert the mask: pixels are unknown where it is 0.", "--invert", default=False)
    mask_value: float | None = number("Pixels are unknown where all channels have this value.")

    @property
    def given(self) -> bool:
        """Whether any pixels are marked."""
        return self.mask_file is not None or self.mask_value is not None

    def check(self) -> None:
        """Reject options that contradict each other."""
        if self.mask_file is not None and self.mask_value is not None:
            raise typer.BadParameter("--mask and --mask-value cannot be combined. Give one of them.")
        if self.invert and self.mask_file is None:
            raise typer.BadParameter("--invert needs a mask. Add --mask FILE.")
