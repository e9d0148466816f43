"""Scale spaces in files: one for each time, or one figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aniso.cli.files.places import Places
from aniso.cli.jobs.diffusions import Diffusion
from aniso.cli.jobs.reporting import Tell, columns
from aniso.cli.jobs.work import Work, described, each_file
from aniso.evolve import scale_space
from aniso.io.pages import Pages
from aniso.io.picture import FileError, Picture

_DPI = 150
_FIGURE = Picture(np.zeros((1, 1, 3), np.uint8), channel_axis=-1)  # what every figure is like


@dataclass(frozen=True)
class Scales:
    """What was asked for."""

    work: Work
    times: Sequence[float]
    diffusion: Diffusion
    contrast_given: bool

    def opened(self, path: Path, where: Places, targets: Sequence[Path]) -> Pages:
        """The pages of a file, with hints."""
        stack = self.work.opened(path, where, targets)
        self.diffusion.hint(self.work.report, stack.picture, self.contrast_given)
        return stack


def write_scales(scales: Scales) -> None:
    """A file for each time."""
    work = scales.work
    where = work.places("{stem}_{time}{suffix}", names=("time",))
    targets = where.variants(work.paths, [{"time": time} for time in _spelled(scales.times)])

    def action(path: Path, number: int, tell: Tell) -> tuple[dict[str, Any], list[str]]:
        own = [of_time[number - 1] for of_time in targets]
        stack = scales.opened(path, where, own)
        outputs = []
        for target, time, images in zip(own, scales.times, _snapshots(stack, scales, tell), strict=True):
            written = work.write(where, target, stack, images)
            outputs.append({"time": time, "output": target})
        rows = [(f"t = {entry['time']:g}", str(entry["output"])) for entry in outputs]
        count = "one time" if len(outputs) == 1 else f"{len(outputs)} times"
        lines = [f"{path} at {count}  ({{seconds}})", columns(rows)]
        return {"outputs": outputs, **described(written)}, lines

    each_file(work.report, work.paths, action)
    work.report.finish(**scales.diffusion.facts())


def _spelled(times: Sequence[float]) -> list[str]:
    """Short names of times, with as many digits as tell them apart."""
    short = [f"{time:g}" for time in times]
    return short if len(set(short)) == len(short) else [repr(time) for time in times]


def _snapshots(stack: Pages, scales: Scales, tell: Tell) -> Iterator[list[Any]]:
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
            scales.diffusion.model_of(page),
            scales.times,
            progress=telling(page.number),
            **scales.diffusion.options(page),
        )
        for page in stack
    ]
    for snapshots in zip(*ways, strict=True):
        yield [image for _, image in snapshots]


def write_figures(scales: Scales) -> None:
    """One figure for each input."""
    from aniso.figures import scale_space_figure

    work = scales.work
    where = work.places("{stem}_scale-space.png", renamed=True)
    targets = where.places(work.paths)

    def action(path: Path, number: int, tell: Tell) -> tuple[dict[str, Any], list[str]]:
        target = targets[number - 1]
        work.check(path, where, [target], _FIGURE)
        stack = scales.opened(path, where, [])
        if stack.count > 1:
            raise FileError(f"{path} has {stack.count} pages: a figure shows one image. Leave --figure out.")
        (page,) = stack
        if stack.picture.orientation != 1:
            work.report.note(
                "turned", f"{path} is to be turned for looking at it; the figure shows it as stored."
            )
        figure = scale_space_figure(
            page.image,
            scales.diffusion.model_of(page),
            scales.times,
            progress=tell,
            **scales.diffusion.options(page),
        )
        drawn = _drawn(figure)
        work.write_picture(where, target, drawn)
        return {"output": target, **described(drawn)}, [f"{path} → {target}  ({{seconds}})"]

    each_file(work.report, work.paths, action)
    work.report.finish(**scales.diffusion.facts())


def _drawn(figure: Any) -> Picture:
    """A figure as an image: so it is written like any other, whole or not at all."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(_DPI)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return Picture(np.array(canvas.buffer_rgba())[..., :3], channel_axis=-1)
