"""Options that several commands share, as dataclasses: such a parameter is replaced by its fields."""

from __future__ import annotations

import functools
import inspect
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
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
# What stands for a value of a type in help.
_METAVARS: dict[Any, str] = {int: "N", int | None: "N", Path | None: "FILE"}
_PLAN_SUFFIX = ".json"


def option(meaning: str | Callable[[], str], *names: str, default: Any = None, **settings: Any) -> Any:
    """Return an option with this help, for a field of a dataclass or as the default of an argument.

    The help may be a function, which is called when help is needed. The default is shown unless the help
    says what it is. What is False by default is a flag.
    """

    def build(name: str, kind: Any, panel: str) -> Any:
        text = meaning() if callable(meaning) else meaning
        flags = names or ((f"--{name.replace('_', '-')}",) if default is False else ())
        shown = not isinstance(default, bool) and "Default" not in text
        more: dict[str, Any] = ({"metavar": _METAVARS[kind]} if kind in _METAVARS else {}) | settings
        return typer.Option(*flags, help=text, show_default=shown, rich_help_panel=panel or None, **more)

    return field(default=default, metadata={"option": build})


def number(meaning: str, *, default: Any = None, **limits: Any) -> Any:
    """Return an option that takes a number within the limits of :func:`aniso.cli.options.parsing.number`."""
    metavar = "NUMBER/auto" if limits.get("auto") else "NUMBER"
    return option(meaning, default=default, parser=parsing.number(**limits), metavar=metavar)


def expand(function: Callable[..., None]) -> Callable[..., None]:
    """Return the function with the fields of its dataclasses as options instead of the dataclasses."""
    hints = get_type_hints(function, include_extras=True)
    own = inspect.signature(function).parameters

    @functools.wraps(function)
    def call(**values: Any) -> None:
        function(**{name: _pack(name, hints[name], values) for name in own})

    wrapped: Any = call
    del wrapped.__wrapped__  # or its annotations would be used
    wrapped.__annotations__ = {}
    options = [_options(name, hints[name], each.default) for name, each in own.items()]
    wrapped.__signature__ = inspect.Signature(list(itertools.chain(*options)))
    return call


def _options(name: str, kind: Any, default: Any, panel: str = "") -> list[inspect.Parameter]:
    """Return the option of a parameter, or those of the fields of a dataclass."""
    if is_dataclass(kind):
        inner, panel = get_type_hints(kind), getattr(kind, "panel", "")
        groups = [_options(each.name, inner[each.name], each, panel) for each in fields(kind)]
        return list(itertools.chain(*groups))
    if isinstance(default, Field):
        kind = Annotated[kind, default.metadata["option"](name, kind, panel)]
        default = inspect.Parameter.empty if default.default is MISSING else default.default
    return [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)]


def _pack(name: str, kind: Any, values: Mapping[str, Any]) -> Any:
    """Return the value of a parameter, from those of the options."""
    if not is_dataclass(kind):
        return values[name]
    inner: Any = get_type_hints(kind)
    return kind(**{each.name: _pack(each.name, inner[each.name], values) for each in fields(kind)})  # type: ignore[operator]


def value_option(about: About, name: str, text: str, *, auto: bool = False) -> tuple[Any, Any]:
    """Return the type and the option of a switch, a choice or a number."""
    if about.switch:
        flag = name.replace("_", "-")
        return bool | None, option(text, f"--{flag}/--no-{flag}")
    if about.choices:
        kind: Any = Literal[tuple(about.choices)]
        return kind | None, option(text, metavar="NAME")
    return float | None, number(text, low=about.low, high=about.high, open_low=about.open_low, auto=auto)


_UNITS = {"length": "units of length", "length²": "squared units of length", "×": ""}


def describe(about: About) -> str:
    """Return the meaning of a parameter, with its symbol and unit."""
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
        help="Image files: PNG, JPEG, BMP, TIFF, NPY, with the extra 'volumes' also NIfTI and MRC, with "
        "'medical' NRRD, MHA and DICOM (a folder is a series), with 'microscopy' CZI, LIF and ND2. Patterns "
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
        "Filter a stack as one volume, or page by page. Default: volume for files of "
        "volumes such as NIfTI and MRC, for NPY files, for each frame of a series of volumes, and for TIFF "
        "files with a z axis or with 8 or more pages of unknown kind.",
        "--volume/--slices",
    )
    no_limit: bool = option(
        "Also read files that decompress to more than 1 GB and more than 200 times their size.", default=False
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

    @property
    def is_pattern(self) -> bool:
        """Whether names of results are filled in; folders are then created."""
        return self.output is not None and ("{" in self.output or "}" in self.output)

    @property
    def is_folder(self) -> bool:
        """Whether the output is a folder, which is created if needed."""
        output = self.output or ""
        return not self.is_pattern and (output.endswith(("/", os.sep)) or os.path.isdir(output))


@dataclass(frozen=True)
class WritingOptions(PlacingOptions):
    """Where results go, and as what."""

    dtype: Literal["uint8", "uint16", "float32", "float64"] | None = option(
        "Data type of the output: uint8, uint16, float32 or float64. Values are rounded and clipped, not "
        "scaled. Default: that of the input.",
        metavar="TYPE",
    )
    quality: int = option("JPEG quality, 1 to 100.", default=95, min=1, max=100)


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
    threads: int | None = option("Number of threads. Default: all cores.", min=1)

    def arguments(self, page: Page) -> dict[str, Any]:
        """Return the arguments of verbs that say what a page is and how it is computed."""
        where = {"spacing": page.spacing, "channel_axis": page.channel_axis}
        return {**where, "engine": self.engine, "threads": self.threads}


@dataclass(frozen=True)
class StorageOptions:
    """How Zarr stores at URLs are opened."""

    panel: ClassVar[str] = "Zarr stores"
    storage_option: list[str] | None = option(
        "Option for stores at s3://, gs://, az:// or https:// URLs, e.g. region=eu-west-1 or "
        "endpoint=https://...; source.region and target.region are for one of them. Several may be given. "
        "Credentials are better given by environment variables.",
        metavar="KEY=VALUE",
    )

    @property
    def storage(self) -> dict[str, str]:
        """The options by name."""
        return parsing.storage_options(self.storage_option or ())


@dataclass(frozen=True)
class ClusterOptions(StorageOptions):
    """The workers that filter Zarr stores."""

    scheduler: str | None = option(
        "Address of a Dask scheduler, e.g. tcp://10.0.0.1:8786.", metavar="ADDRESS"
    )
    workers: int = option(
        "Number of worker processes on this machine, if no scheduler is given.", default=2, min=1
    )
    memory: str | None = option(
        "Memory limit of each worker process, e.g. 4GB. Default: an equal share of the machine's memory.",
        parser=parsing.memory,
        metavar="SIZE",
    )

    pyramid: bool = option(
        "Write the lower resolutions of an OME-Zarr result too, as viewers need them.", default=False
    )
    fields: bool = option("Filter all fields of an OME-Zarr plate or well, with one plan.", default=False)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `filter_store`."""
        names = ("scheduler", "workers", "memory", "pyramid", "fields")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class ReportingOptions:
    """What is printed."""

    panel: ClassVar[str] = "Report"
    quiet: bool = option("Print errors only.", "--quiet", "-q", default=False)
    json: bool = option("Print a JSON summary to standard output.", default=False)
    debug: bool = option("Show tracebacks.", default=False)


@dataclass(frozen=True)
class MaskOptions:
    """Which pixels are unknown."""

    mask_file: str | None = option(
        "Mask image of the same size: pixels are unknown where any channel is not 0. For Zarr stores "
        "(inpaint only), a file or a store.",
        "--mask",
        metavar="FILE",
    )
    invert: bool = option("Invert the mask: pixels are unknown where it is 0.", default=False)
    mask_value: float | None = number("Pixels are unknown where all channels have this value.")

    @property
    def given(self) -> bool:
        """Whether there is a mask or a value."""
        return self.mask_file is not None or self.mask_value is not None

    def check(self) -> None:
        """Reject options that contradict each other."""
        if self.mask_file is not None and self.mask_value is not None:
            raise typer.BadParameter("--mask and --mask-value cannot be combined. Give one of them.")
        if self.invert and self.mask_file is None:
            raise typer.BadParameter("--invert needs a mask. Add --mask FILE.")


@dataclass(frozen=True)
class PlanOptions:
    """A plan to apply, or where to save the one that is made."""

    panel: ClassVar[str] = "Plans"
    plan: Path | None = option("Apply the plan in this file, and estimate nothing.")
    save_plan: Path | None = option(
        "Save the chosen parameters as a plan (JSON), to filter other images in the same way. Several "
        "files are filtered with one plan, which is made from several of them."
    )
    frames: bool = option(
        "Filter all pages or frames of a file with one plan, which is made from several of them.",
        "--frames",
    )

    def check(self, others: Sequence[str]) -> None:
        """Reject options that contradict each other, `others` included, and names of other kinds of files."""
        if self.plan is not None and self.save_plan is not None:
            raise typer.BadParameter("--plan and --save-plan cannot be combined: copy the file of the plan.")
        if self.save_plan is not None and self.save_plan.suffix.lower() != _PLAN_SUFFIX:
            raise typer.BadParameter(
                f"--save-plan {self.save_plan} must have the suffix {_PLAN_SUFFIX}, e.g. "
                f"{self.save_plan.with_suffix(_PLAN_SUFFIX) if self.save_plan.name else 'plan.json'}."
            )
        if self.plan is not None and others:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in others)
            raise typer.BadParameter(
                f"a plan has all parameters, and cannot be combined with {names}. Remove them."
            )
