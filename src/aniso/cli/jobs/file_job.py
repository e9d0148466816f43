"""What all commands that read and write files have in common."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from aniso import arrays, checks, io
from aniso.cli import files
from aniso.cli.jobs.reporting import Report, Rows, Tell, columns
from aniso.cli.options import shared
from aniso.io import units
from aniso.io.formats import format_of
from aniso.io.pages import Page, Pages, is_guess
from aniso.io.picture import FileError, Picture
from aniso.verbs.plan import Plan

#: Takes a file, its number and a progress function; returns facts for JSON and lines of text.
Action = Callable[[Path, int, Tell], tuple[dict[str, Any], list[str]]]

_CLIPPED = 0.01  # share of the values; fewer are clipped without a note
_LARGEST_PLAN = 10**7  # bytes; a plan has some kilobytes


def each_file(report: Report, paths: Sequence[Path], action: Action) -> None:
    """Run an action for each file; one that fails does not stop the others."""
    for number, path in enumerate(paths, 1):
        with report.attempt(str(path)), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "an image of shape")  # the file says what its axes are
            start = time.perf_counter()
            title = path.name if len(paths) == 1 else f"{path.name} ({number} of {len(paths)})"
            with report.progress(title) as tell:
                tell(0, 1)
                facts, lines = action(path, number, tell)
            seconds = time.perf_counter() - start
            report.results.append({"input": path, **facts, "seconds": round(seconds, 3)})
            for line in lines:
                report.say(line.replace("{seconds}", f"{seconds:.1f} s"))


def divide_progress(stack: Pages, tell: Tell) -> Callable[[Page], Tell]:
    """Return a function that gives each page a progress function of its own; `tell` gets the sum of all."""
    finished = 0.0

    def tell_of(page: Page) -> Tell:
        before = 0.0

        def tell_share(done: float, total: float) -> None:
            nonlocal finished, before
            share = done / total if total > 0 else 1.0
            finished, before = finished + share - before, share
            tell(finished, stack.count)

        return tell_share

    return tell_of


@dataclass(frozen=True)
class FileJob:
    """The files and options of a command."""

    report: Report
    files: Sequence[str]
    reading: shared.ReadingOptions
    writing: shared.WritingOptions
    computing: shared.ComputingOptions
    plans: shared.PlanOptions = shared.PlanOptions()  # noqa: RUF009 (frozen)
    storage: Mapping[str, str] = field(default_factory=dict)  # options of stores at URLs

    @cached_property
    def paths(self) -> list[Path]:
        """The files to read."""
        return files.inputs(self.files)

    def targets(self, usual: str, *variants: Any, **options: Any) -> list[list[Path]]:
        """Return where results are written; as :func:`aniso.cli.files.targets`."""
        return files.targets(self.paths, self.writing, usual, *variants, **options)

    def check(self, path: Path, targets: Sequence[Path], result: Picture | None) -> None:
        """Reject an input or outputs before anything is computed; `result` as far as it is known."""
        io.check_input(path)  # first, because the output is named after it
        for target in targets:
            io.check_output(
                target, source=path, force=self.writing.force, parents=self._makes_folders, picture=result
            )

    @property
    def _makes_folders(self) -> bool:
        return self.writing.is_pattern or self.writing.is_folder

    def open(
        self,
        path: Path,
        targets: Sequence[Path],
        *,
        factors: Callable[[Pages], Sequence[int]] | None = None,
        unknown: bool = False,
        outlined: Callable[[Pages], Picture] | None = None,
    ) -> Pages:
        """Return the pages of a file; reject it if the results could not be written.

        Results are finer than the picture by `factors`, and otherwise like it; or else `outlined` gives one
        of zeros. `unknown`: whether pixels may be NaN.
        """
        self.check(path, targets, None)
        picture = files.read(path, self.reading)
        stack = files.pages(picture, self.reading, self.computing, frames=self.plans.frames)
        if outlined is None:
            result = self._like(stack.picture).with_pixels(stack.outline(factors and factors(stack)))
        else:
            result = outlined(stack)
        self.check(path, targets, result)
        if not unknown and stack.picture.pixels.dtype.kind == "f":
            arrays.check_finite(
                str(path), stack.picture.pixels, "a single one would spread over the whole image"
            )
        self._hint(stack)
        return stack

    def write(self, target: Path, stack: Pages, results: Sequence[Any]) -> Picture:
        """Write the results of all pages; return what was written."""
        return self.write_picture(target, self._like(stack.picture).with_pixels(stack.join(results)))

    def write_picture(self, target: Path, picture: Picture) -> Picture:
        """Write a picture according to the options; return what was written."""
        for kind, text in _losses(target, picture, retyped=self.writing.dtype is not None):
            self.report.note(kind, text)
        wanted = self.writing
        io.write(target, picture, force=wanted.force, parents=self._makes_folders, quality=wanted.quality)
        return replace(picture, format=format_of(target).name)

    def report_result(
        self, path: Path, target: Path, picture: Picture, stack: Pages, rows: Rows
    ) -> tuple[dict[str, Any], list[str]]:
        """Return facts and lines about a picture that was written, with these rows if it is the only one."""
        lines = [f"{path} → {target}  ({_describe_size(picture, stack)}, {{seconds}})"]
        if len(self.paths) == 1 and rows:
            lines.append(columns(rows))
        return {"output": target, **picture_facts(picture)}, lines

    def read_plan(self) -> Plan | None:
        """Return the plan of --plan, which must be one of this command; None without."""
        path = self.plans.plan
        if path is None:
            return None
        try:
            size = path.stat().st_size
            text = path.read_text("utf-8") if path.is_file() and size <= _LARGEST_PLAN else None
        except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a null byte in the name
            why = io.reason(error) if isinstance(error, OSError) else str(error)
            raise FileError(f"{path} cannot be read as a plan: {why}. Give a file of --save-plan.") from error
        if text is None:
            raise FileError(f"{path} is not the file of a plan. Give a file of --save-plan.")
        try:
            plan = Plan.from_json(text)
        except (TypeError, ValueError) as error:
            raise FileError(f"{path}: {checks.on_command_line(error)}") from error
        command = self.report.command
        if plan.verb != command:
            raise FileError(f"{path} is a plan of {plan.verb}, not of {command}. Use aniso {plan.verb}.")
        return plan

    def check_saved_plan(self, pages: int = 1, *, written: bool = False) -> None:
        """Reject --save-plan if the file cannot be written, or for several pages, before computing.

        `written`: whether the plan of another input has been written already.
        """
        path = self.plans.save_plan
        if path is None:
            return
        if pages > 1 and not self.plans.frames:
            raise FileError(
                f"--save-plan writes one plan, but there are {pages} pages, and each has its own. Add "
                "--frames to filter all pages with one plan, or --volume if they are slices of a volume."
            )
        if not written:
            io.check_place(path, force=self.writing.force)

    def save_plan(self, plan: Plan) -> None:
        """Write a plan to the file of --save-plan, if it was given."""
        if self.plans.save_plan is not None:
            io.write_text(self.plans.save_plan, plan.to_json() + "\n", force=self.writing.force)

    def _like(self, picture: Picture) -> Picture:
        return picture if self.writing.dtype is None else picture.with_dtype(self.writing.dtype)

    def _hint(self, stack: Pages) -> None:
        """Note what may be unexpected."""
        picture, note = stack.picture, self.report.note
        source = picture.source.name if picture.source else "the picture"
        pages = f"{source} has {stack.count if stack.stacked else picture.shape[0]} pages, which are filtered"
        if stack.volume and stack.stacked and not self.plans.frames:
            volumes = f"{source} is a series of {stack.count} volumes, which are filtered one by one"
            note(
                "series",
                f"{volumes}. Add --frames to filter all of them with one plan, or --slices for their slices.",
            )
        if stack.volume:
            if self.reading.volume is None and is_guess(picture):
                note("volume", f"{pages} as one volume. Add --slices to filter them one by one.")
            if self.reading.volume is None and picture.details.get("image_stack"):
                note(
                    "volume",
                    f"{source} is marked as a stack of {picture.shape[0]} images, which many programs do for "
                    "volumes, and is filtered as a volume. Add --slices to filter the images one by one.",
                )
            return
        if stack.count > 1:
            chosen = self.reading.volume is False or self.plans.frames or len(stack.stacked) > 1
            advice = "" if chosen else " Add --volume if they are slices of a volume."
            note("pages", f"{pages} one by one.{advice}")
        own = picture.spacing
        if self.computing.spacing is not None or own is None or len(own) < 2:
            return
        if abs(own[-1] / own[-2] - 1) > 0.01:
            size = f"{own[-2]:g} × {own[-1]:g}" + (f" {picture.unit}" if picture.unit else "")
            note(
                "spacing",
                f"pixels of {source} measure {size} but are treated as square. Add --spacing file to use "
                "their size.",
            )


def picture_facts(picture: Picture) -> dict[str, Any]:
    """Return the properties of a picture, for JSON."""
    return {
        "format": picture.format,
        "shape": list(picture.shape),
        "channels": picture.channels,
        "alpha": picture.alpha is not None,
        "dtype": str(picture.dtype),
    }


def _describe_size(picture: Picture, stack: Pages) -> str:
    """Return size and data type of a picture in words; `stack` is what it was made from."""
    if stack.volume:
        parts = ["volume " + " × ".join(map(str, picture.shape[-3:]))]
        if stack.spacing is not None:
            # Finer results have finer voxels.
            ratios = np.divide(stack.picture.shape[-3:], picture.shape[-3:])
            parts.append("spacing " + " × ".join(f"{h:.4g}" for h in ratios * stack.spacing))
    else:
        parts = [" × ".join(map(str, picture.shape[-2:])) + " pixels"]
    if stack.stacked:
        name = "frame" if stack.volume else "page"
        parts.append(f"{stack.count} {name}{'' if stack.count == 1 else 's'}")
    if picture.channels not in (None, 1):
        parts.append(f"{picture.channels} channels")
    parts.append(str(picture.dtype))
    if picture.alpha is not None:
        parts.append("alpha kept")
    return ", ".join(parts)


def _losses(target: Path, picture: Picture, *, retyped: bool) -> Iterator[tuple[str, str]]:
    """Yield kinds and texts of what is lost when a picture is written; `retyped`: its data type is new."""
    lengthless = picture.spacing is not None and units.metres(picture.unit) is None
    if lengthless and format_of(target).only_unit:
        why = f"is in {picture.unit}, which is not a known unit of length" if picture.unit else "has no unit"
        yield "unit", f"{target} is written without voxel size, because that of the input {why}."
    if not (retyped and picture.dtype.kind in "iu"):
        return
    limits = np.iinfo(picture.dtype)
    values = picture.pixels
    least, largest = float(values.min()), float(values.max())
    # Halves beyond the limits are rounded to them.
    share = float(np.mean((values < limits.min - 0.5) | (values > limits.max + 0.5)))
    if share > _CLIPPED:
        yield (
            "clipped",
            f"{100 * share:.0f} % of the values of {target} are clipped: they range from {least:.4g} to "
            f"{largest:.4g}, and {picture.dtype} from {limits.min} to {limits.max}. Scale them first, or "
            "choose another --dtype.",
        )
    elif least < largest <= least + 1:
        yield (
            "flat",
            f"values of {target} range from {least:.4g} to {largest:.4g} and are rounded to integers, which "
            "leaves almost nothing. Scale them first, or write floats as .tif or .npy.",
        )
