"""What all commands that turn files into files have in common: from the options to what is written."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from aniso import checks, io
from aniso.cli.files import places, reading
from aniso.cli.files.losses import losses
from aniso.cli.files.places import Places
from aniso.cli.jobs.reporting import Report, Tell
from aniso.cli.options.bundles import Computing, Reading, Reporting, Writing
from aniso.io.formats import format_of
from aniso.io.pages import Pages, is_guess
from aniso.io.picture import Picture

#: From a file, its number and a function to be told the progress to facts for JSON and lines for people.
Action = Callable[[Path, int, Tell], tuple[dict[str, Any], list[str]]]


def each_file(report: Report, paths: Sequence[Path], action: Action) -> None:
    """Let all files have their turn; one that fails does not stop the others."""
    for number, path in enumerate(paths, 1):
        with report.attempt(str(path)), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "an image of shape")  # the file says what its axes are
            begin = time.perf_counter()
            title = path.name if len(paths) == 1 else f"{path.name} ({number} of {len(paths)})"
            with report.progress(title) as tell:
                facts, lines = action(path, number, tell)
            seconds = time.perf_counter() - begin
            report.results.append({"input": path, **facts, "seconds": round(seconds, 3)})
            for line in lines:
                report.say(line.replace("{seconds}", f"{seconds:.1f} s"))


@dataclass(frozen=True)
class Work:
    """What was asked for."""

    command: str
    files: Sequence[str]
    reading: Reading
    writing: Writing
    computing: Computing
    reporting: Reporting

    @cached_property
    def report(self) -> Report:
        """What happened, as far as it did."""
        return Report(self.command, self.reporting)

    @cached_property
    def paths(self) -> list[Path]:
        """The files to read."""
        return places.inputs(self.files)

    def places(self, usual: str, **options: Any) -> Places:
        """Where results go: to the pattern `usual` by default."""
        return Places.of(self.writing, len(self.paths), usual, **options)

    def check(self, path: Path, where: Places, targets: Sequence[Path], result: Picture | None) -> None:
        """Refuse an input or outputs before anything is computed; the result, as far as it is known."""
        io.check_input(path)  # first, or the output, named after it, would be blamed
        for target in targets:
            io.check_output(
                target, source=path, force=self.writing.force, parents=where.makes_folders, picture=result
            )

    def opened(
        self, path: Path, where: Places, targets: Sequence[Path], *, factor: int = 1, unknown: bool = False
    ) -> Pages:
        """The pages of a file, if their results can be written to these places.

        Results are `factor` times finer. `unknown`: whether pixels may be NaN.
        """
        self.check(path, where, targets, None)
        stack = reading.pages(reading.read(path, self.reading), self.reading, self.computing)
        self.check(path, where, targets, self._like(stack.picture).with_pixels(stack.outline(factor)))
        if not unknown and stack.picture.pixels.dtype.kind == "f":
            checks.finite(str(path), stack.picture.pixels, "a single one would spread over the whole image")
        self._hint(stack)
        return stack

    def write(self, where: Places, target: Path, stack: Pages, results: Sequence[Any]) -> Picture:
        """Write the results of all pages; returns what was written."""
        picture = self._like(stack.picture).with_pixels(stack.join(results))
        self.write_picture(where, target, picture)
        return replace(picture, format=format_of(target).name)

    def write_picture(self, where: Places, target: Path, picture: Picture) -> None:
        """Write a picture as the options say."""
        for kind, text in losses(target, picture, retyped=self.writing.dtype is not None):
            self.report.note(kind, text)
        io.write(
            target,
            picture,
            force=self.writing.force,
            parents=where.makes_folders,
            quality=self.writing.quality,
        )

    def _like(self, picture: Picture) -> Picture:
        return picture if self.writing.dtype is None else picture.with_dtype(self.writing.dtype)

    def _hint(self, stack: Pages) -> None:
        """Say what somebody might not expect."""
        picture = stack.picture
        source = picture.source.name if picture.source else "the picture"
        if stack.volume:
            if self.reading.volume is None and is_guess(picture):
                self.report.note(
                    "volume",
                    f"{source} has {picture.shape[0]} pages, which are taken for the slices of a volume. Add "
                    "--slices if they are not.",
                )
            if picture.details.get("image_stack") and self.reading.volume is None:
                self.report.note(
                    "volume",
                    f"{source} says that it is a stack of {picture.shape[0]} images, as many programs say of "
                    "volumes, and is taken for a volume. Add --slices if it is none.",
                )
            return
        if len(picture.shape) == 3:
            self.report.note(
                "pages",
                f"{source} has {picture.shape[0]} pages, which are filtered one by one. Add --volume if they "
                "are slices.",
            )
        own = picture.spacing
        if self.computing.spacing is not None or own is None or len(own) < 2:
            return
        if abs(own[-1] / own[-2] - 1) > 0.01:
            unit = f" {picture.unit}" if picture.unit else ""
            self.report.note(
                "spacing",
                f"pixels of {source} measure {own[-2]:g} × {own[-1]:g}{unit} and are taken for squares. Add "
                "--spacing file to use that.",
            )


def described(picture: Picture) -> dict[str, Any]:
    """What a file holds, for JSON."""
    return {
        "format": picture.format,
        "shape": list(picture.shape),
        "channels": picture.channels,
        "alpha": picture.alpha is not None,
        "dtype": str(picture.dtype),
    }


def sized(picture: Picture, stack: Pages) -> str:
    """What a file holds, in a few words; `stack` is what it was made from."""
    if stack.volume:
        parts = ["volume " + " × ".join(map(str, picture.shape))]
        if stack.spacing is not None:
            parts.append("spacing " + " × ".join(f"{h:.4g}" for h in np.atleast_1d(stack.spacing)))
    else:
        parts = [" × ".join(map(str, picture.shape[-2:])) + " pixels"]
        if len(picture.shape) == 3:
            parts.append(f"{picture.shape[0]} pages")
    if picture.channels not in (None, 1):
        parts.append(f"{picture.channels} channels")
    parts.append(str(picture.dtype))
    if picture.alpha is not None:
        parts.append("alpha kept")
    return ", ".join(parts)
