"""Diffusions with a given model: what `diffuse` and `scale-space` share, and scale spaces in files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer

from aniso import stability
from aniso.cli.jobs.file_job import FileJob, divide_progress, each_file, picture_facts
from aniso.cli.jobs.reporting import Report, Rows, Tell, columns
from aniso.cli.options import parsing
from aniso.cli.options.diffusion_options import DiffusionOptions
from aniso.cli.options.shared import ComputingOptions
from aniso.evolve import scale_space
from aniso.io.pages import Page, Pages
from aniso.io.picture import FileError, Picture
from aniso.models import FixedTensor, ImageDriven
from aniso.stencil import DeltaStencil
from aniso.verbs.plan import format_value

_DPI = 150
_FIGURE = Picture(np.zeros((1, 1, 3), np.uint8), channel_axis=-1)  # what every figure is like


@dataclass(frozen=True)
class DiffusionSetup:
    """What is the same for every page."""

    model: ImageDriven | None
    contrast_given: bool
    entries: tuple[float, float, float] | None
    stencil: DeltaStencil
    scheme: Any
    computing: ComputingOptions

    @classmethod
    def of(cls, given: DiffusionOptions, computing: ComputingOptions, first: float) -> DiffusionSetup:
        """Return the setup; options, and steps to the first time, are rejected now, not at the first file."""
        entries, names = given.tensor.entries() if given.tensor.given else None, given.model.given()
        steered = None if entries is not None else given.model.chosen()
        if entries is not None and names:
            raise typer.BadParameter(
                f"a constant tensor and a model cannot be combined. Remove {', '.join(names)}, or the tensor."
            )
        member = given.stencil.chosen() or DeltaStencil()
        result = cls(steered, "--contrast" in names, entries, member, given.scheme.chosen(), computing)
        if steered is not None and computing.spacing != "file":
            with parsing.usage():
                spacing = computing.spacing or 1.0
                axes = len(spacing) if isinstance(spacing, tuple) else 2
                result.scheme.plan(first, stability.stable_step(steered, member, spacing, axes))
        return result

    def run(self, function: Callable[..., Any], page: Page, time: Any, progress: Tell) -> Any:
        """Call `diffuse`, or a function like it, for a page and a time or times."""
        options = {"stencil": self.stencil, "scheme": self.scheme, **self.computing.arguments(page)}
        return function(page.image, self._model_of(page), time, progress=progress, **options)

    def _model_of(self, page: Page) -> Any:
        """Return the model; a constant tensor takes the shape of the page."""
        if self.entries is None:
            return self.model
        shape = [n for axis, n in enumerate(page.image.shape) if axis != page.channel_axis]
        a, b, c = self.entries
        if len(shape) == 3:
            raise FileError("a tensor (a b; b c) is for images, but this is a volume. Add --slices.")
        return FixedTensor.from_matrix([[c, b], [b, a]] if len(shape) == 2 else [[a]], tuple(shape))

    def summary(self) -> Rows:
        """Return the rows of the summary."""
        rows = [("stencil", format_value(self.stencil)), ("scheme", format_value(self.scheme))]
        if self.entries is None:
            return [("model", format_value(self.model)), *rows]
        a, b, c = self.entries
        return [("tensor", f"({a:.4g} {b:.4g}; {b:.4g} {c:.4g})"), *rows]

    def facts(self) -> dict[str, Any]:
        """Return the same for JSON."""
        made = {"model": self.model, "tensor": self.entries}
        return {**made, "stencil": self.stencil, "scheme": self.scheme}

    def hint(self, report: Report, picture: Picture) -> None:
        """Note if the default contrast, which is for grey values from 0 to 255, does not suit the picture."""
        contrast = getattr(self.model, "contrast", None)
        if contrast is None or self.contrast_given or picture.dtype == "uint8" or picture.dtype.kind == "b":
            return
        low, high = float(picture.pixels.min()), float(picture.pixels.max())
        if not 25 <= high - low <= 2550:
            report.note(
                "contrast",
                f"the default contrast {contrast:g} suits grey values from 0 to 255, but those of "
                f"{picture.source} range from {low:.4g} to {high:.4g}. Give --contrast; aniso info "
                "estimates it.",
            )

    def open(self, job: FileJob, path: Path, targets: Sequence[Path], **options: Any) -> Pages:
        """Return the pages of a file, with notes; options as for `FileJob.open`."""
        stack = job.open(path, targets, **options)
        self.hint(job.report, stack.picture)
        return stack


def write_scales(job: FileJob, times: Sequence[float], diffusion: DiffusionSetup) -> None:
    """Write a file for each time."""
    targets = job.targets("{stem}_{time}{suffix}", [{"time": time} for time in _time_names(times)])

    def action(path: Path, number: int, tell: Tell) -> tuple[dict[str, Any], list[str]]:
        own = [of_time[number - 1] for of_time in targets]
        stack = diffusion.open(job, path, own)
        outputs = []
        snapshots = _snapshots(stack, times, diffusion, tell)
        for target, time, images in zip(own, times, snapshots, strict=True):
            written = job.write(target, stack, images)
            outputs.append({"time": time, "output": target})
        rows = [(f"t = {entry['time']:g}", str(entry["output"])) for entry in outputs]
        count = "one time" if len(outputs) == 1 else f"{len(outputs)} times"
        lines = [f"{path} at {count}  ({{seconds}})", columns(rows)]
        return {"outputs": outputs, **picture_facts(written)}, lines

    each_file(job.report, job.paths, action)
    job.report.finish(**diffusion.facts())


def _time_names(times: Sequence[float]) -> list[str]:
    """Return short names of times, with as many digits as distinguish them."""
    short = [f"{time:g}" for time in times]
    return short if len(set(short)) == len(short) else [repr(time) for time in times]


def _snapshots(
    stack: Pages, times: Sequence[float], diffusion: DiffusionSetup, tell: Tell
) -> Iterator[list[Any]]:
    """Yield all pages at each time."""
    tell_of = divide_progress(stack, tell)
    evolutions = [diffusion.run(scale_space, page, times, tell_of(page)) for page in stack]
    for snapshots in zip(*evolutions, strict=True):
        yield [image for _, image in snapshots]


def write_figures(job: FileJob, times: Sequence[float], diffusion: DiffusionSetup) -> None:
    """Write one figure for each input."""
    from aniso.figures import scale_space_figure

    (targets,) = job.targets("{stem}_scale-space.png", renamed=True)

    def action(path: Path, number: int, tell: Tell) -> tuple[dict[str, Any], list[str]]:
        target = targets[number - 1]
        stack = diffusion.open(job, path, [target], outlined=lambda stack: _FIGURE)
        if stack.count > 1:
            raise FileError(f"{path} has {stack.count} pages, but a figure shows one image. Remove --figure.")
        (page,) = stack
        if stack.picture.orientation != 1:
            job.report.note("turned", f"{path} has an EXIF orientation; the figure shows it as stored.")
        drawn = _draw(diffusion.run(scale_space_figure, page, times, tell))
        job.write_picture(target, drawn)
        return {"output": target, **picture_facts(drawn)}, [f"{path} → {target}  ({{seconds}})"]

    each_file(job.report, job.paths, action)
    job.report.finish(**diffusion.facts())


def _draw(figure: Any) -> Picture:
    """Return a figure as an image, which is then written like any other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.set_dpi(_DPI)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return Picture(np.array(canvas.buffer_rgba())[..., :3], channel_axis=-1)
