"""Scale spaces in files: one for each time, or one figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aniso import io
from aniso.commands import pages, places
from aniso.commands.bundles import Computing, Reading, Reporting, Writing
from aniso.commands.diffusions import Diffusion
from aniso.commands.filtering import described, each_file, hint
from aniso.commands.places import Places
from aniso.commands.reporting import Report, Tell, columns
from aniso.evolve import scale_space
from aniso.picture import FileError

_DPI = 150


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    files: Sequence[str]
    times: Sequence[float]
    diffusion: Diffusion
    contrast_given: bool
    reading: Reading
    writing: Writing
    computing: Computing
    reporting: Reporting

    def report(self) -> Report:
        """A report that has not begun."""
        return Report("scale-space", self.reporting)

    def stack(self, path: Path, report: Report) -> pages.Pages:
        """The pages of a file, with hints."""
        stack = pages.pages(pages.read(path, self.reading), self.computing)
        hint(report, stack.picture, self.computing)
        self.diffusion.hint(report, stack.picture, self.contrast_given)
        return stack


def write_scales(request: Request) -> None:
    """A file for each time."""
    report, paths = request.report(), places.inputs(request.files)
    where = Places.of(request.writing, len(paths), "{stem}_{time}{suffix}", names=("time",))
    targets = [where.places(paths, time=time) for time in _spelled(request.times)]

    def action(path: Path, number: int, tell: Tell) -> tuple[dict[str, Any], list[str]]:
        own = [of_time[number - 1] for of_time in targets]
        for target in own:
            where.check(path, target, force=request.writing.force)
        stack = request.stack(path, report)
        like = pages.with_dtype(stack.picture, request.writing.dtype)
        written = []
        for target, time, images in zip(own, request.times, _snapshots(stack, request, tell), strict=True):
            where.make_folder()
            io.write(
                target,
                stack.joined(images),
                like=like,
                force=request.writing.force,
                quality=request.writing.quality,
            )
            written.append({"time": time, "output": target})
        rows = [(f"t = {entry['time']:g}", str(entry["output"])) for entry in written]
        lines = [f"{path} at {len(written)} times  ({{seconds}})", columns(rows)]
        return {"outputs": written, **described(stack.picture)}, lines

    each_file(report, paths, action)
    report.finish(**request.diffusion.facts())


def _spelled(times: Sequence[float]) -> list[str]:
    """Short names of times, with as many digits as tell them apart."""
    short = [f"{time:g}" for time in times]
    return short if len(set(short)) == len(short) else [repr(time) for time in times]


def _snapshots(stack: pages.Pages, request: Request, tell: Tell) -> Iterator[list[Any]]:
    """The pages at each time, together."""
    shares = [0.0] * stack.count

    def telling(number: int) -> Tell:
        def told(done: float, total: float) -> None:
            shares[number - 1] = done / total if total > 0 else 1.0
            tell(sum(shares), stack.count)

        return told

    ways = [
        scale_space(
            page.image,
            request.diffusion.model_of(page),
            request.times,
            progress=telling(page.number),
            **request.diffusion.options(page),
        )
        for page in stack
    ]
    for snapshots in zip(*ways, strict=True):
        yield [image for _, image in snapshots]


def write_figures(request: Request) -> None:
    """One figure for each input."""
    from aniso.figures import scale_space_figure

    report, paths = request.report(), places.inputs(request.files)
    where = Places.of(request.writing, len(paths), "{stem}_scale-space.png", renamed=True)
    targets = where.places(paths)

    def action(path: Path, number: int, tell: Tell) -> tuple[dict[str, Any], list[str]]:
        target = targets[number - 1]
        where.check(path, target, force=request.writing.force)
        stack = request.stack(path, report)
        if stack.count > 1:
            raise FileError(f"{path} has {stack.count} pages: a figure shows one image. Leave --figure out.")
        (page,) = stack
        figure = scale_space_figure(
            page.image,
            request.diffusion.model_of(page),
            request.times,
            progress=tell,
            **request.diffusion.options(page),
        )
        where.make_folder()
        io.write(target, _drawn(figure), force=request.writing.force, quality=request.writing.quality)
        return {"output": target, **described(stack.picture)}, [f"{path} → {target}  ({{seconds}})"]

    each_file(report, paths, action)
    report.finish(**request.diffusion.facts())


def _drawn(figure: Any) -> Any:
    """A figure as an image: so it is written like any other, whole or not at all."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(_DPI)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.array(canvas.buffer_rgba())[..., :3]
