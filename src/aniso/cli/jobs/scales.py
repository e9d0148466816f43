"""Scale spaces in files: one for each time, or one figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aniso.cli.files.places import Places
from aniso.cli.jobs.diffusion_setup import DiffusionSetup
from aniso.cli.jobs.file_job import FileJob, each_file, picture_facts
from aniso.cli.jobs.reporting import Tell, columns
from aniso.evolve import scale_space
from aniso.io.pages import Pages
from aniso.io.picture import FileError, Picture

_DPI = 150
_FIGURE = Picture(np.zeros((1, 1, 3), np.uint8), channel_axis=-1)  # what every figure is like


@dataclass(frozen=True)
class Scales:
    """The files, times and diffusion of a scale space."""

    job: FileJob
    times: Sequence[float]
    diffusion: DiffusionSetup
    contrast_given: bool

    def open(self, path: Path, where: Places, targets: Sequence[Path]) -> Pages:
        """Return the pages of a file, with notes."""
        stack = self.job.open(path, where, targets)
        self.diffusion.hint(self.job.report, stack.picture, self.contrast_given)
        return stack


def write_scales(scales: Scales) -> None:
    """Write a file for each time."""
    job = scales.job
    where = job.places("{stem}_{time}{suffix}", names=("time",))
    targets = where.variants(job.paths, [{"time": time} for time in _time_names(scales.times)])

    def action(path: Path, number: int, tell: Tell) -> tuple[dict[str, Any], list[str]]:
        own = [of_time[number - 1] for of_time in targets]
        stack = scales.open(path, where, own)
        outputs = []
        for target, time, images in zip(own, scales.times, _snapshots(stack, scales, tell), strict=True):
            written = job.write(where, target, stack, images)
            outputs.append({"time": time, "output": target})
        rows = [(f"t = {entry['time']:g}", str(entry["output"])) for entry in outputs]
        count = "one time" if len(outputs) == 1 else f"{len(outputs)} times"
        lines = [f"{path} at {count}  ({{seconds}})", columns(rows)]
        return {"outputs": outputs, **picture_facts(written)}, lines

    each_file(job.report, job.paths, action)
    job.report.finish(**scales.diffusion.facts())


def _time_names(times: Sequence[float]) -> list[str]:
    """Return short names of times, with as many digits as distinguish them."""
    short = [f"{time:g}" for time in times]
    return short if len(set(short)) == len(short) else [repr(time) for time in times]


def _snapshots(stack: Pages, scales: Scales, tell: Tell) -> Iterator[list[Any]]:
    """Yield all pages at each time."""
    shares = [0.0] * stack.count

    def progress_of(number: int) -> Tell:
        def tell_share(done: float, total: float) -> None:
            shares[number - 1] = done / total if total > 0 else 1.0
            tell(sum(shares), stack.count)

        return tell_share

    evolutions = [
        scale_space(
            page.image,
            scales.diffusion.model_of(page),
            scales.times,
            progress=progress_of(page.number),
            **scales.diffusion.options(page),
        )
        for page in stack
    ]
    for snapshots in zip(*evolutions, strict=True):
        yield [image for _, image in snapshots]


def write_figures(scales: Scales) -> None:
    """Write one figure for each input."""
    from aniso.figures import scale_space_figure

    job = scales.job
    where = job.places("{stem}_scale-space.png", renamed=True)
    targets = where.places(job.paths)

    def action(path: Path, number: int, tell: Tell) -> tuple[dict[str, Any], list[str]]:
        target = targets[number - 1]
        job.check(path, where, [target], _FIGURE)
        stack = scales.open(path, where, [])
        if stack.count > 1:
            raise FileError(f"{path} has {stack.count} pages, but a figure shows one image. Remove --figure.")
        (page,) = stack
        if stack.picture.orientation != 1:
            job.report.note("turned", f"{path} has an EXIF orientation; the figure shows it as stored.")
        figure = scale_space_figure(
            page.image,
            scales.diffusion.model_of(page),
            scales.times,
            progress=tell,
            **scales.diffusion.options(page),
        )
        drawn = _draw(figure)
        job.write_picture(where, target, drawn)
        return {"output": target, **picture_facts(drawn)}, [f"{path} → {target}  ({{seconds}})"]

    each_file(job.report, job.paths, action)
    job.report.finish(**scales.diffusion.facts())


def _draw(figure: Any) -> Picture:
    """Return a figure as an image, which is then written like any other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(_DPI)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return Picture(np.array(canvas.buffer_rgba())[..., :3], channel_axis=-1)
