"""Options of a diffusion, checked once: stencil, scheme, spacing, engine and threads."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import checks, engines, notebook, stability
from aniso.arrays import Mask
from aniso.checks import Spacing
from aniso.models import FixedTensor, ImageDriven
from aniso.schemes import Cycle, Explicit, Scheme
from aniso.stencil import DeltaStencil, FreeStencil, Stencil, check_stencil

Progress = Callable[[float, float], object] | bool | None
EngineName = str  # a name in aniso.engines.ENGINES


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How images of one number of axes diffuse, whatever the model. All values are checked."""

    spacings: tuple[float, ...]
    stencil: Stencil = DeltaStencil()  # noqa: RUF009 (frozen)
    scheme: Scheme = Explicit()  # noqa: RUF009 (frozen)
    engine: str = engines.default("numpy")
    threads: int | None = None

    @classmethod
    def check(
        cls, ndim: int, *, spacing: Spacing | None = None, threads: int | None = None, **options: Any
    ) -> Settings:
        """Return settings for images with `ndim` axes besides the channels, from options of the caller."""
        if "engine" in options:
            engines.check_name(options["engine"])
            options["engine"] = options["engine"] or engines.default("numpy")
        settings = cls(spacings=checks.axis_spacing(spacing, ndim), threads=check_threads(threads), **options)
        scheme = settings.scheme
        if isinstance(scheme, type) or not hasattr(scheme, "plan"):
            raise TypeError(f"scheme must be Explicit, FED or FSI, got {scheme!r}. Try aniso.Explicit().")
        check_stencil(settings.stencil, ndim)
        return settings

    def prepare(
        self, model: ImageDriven | FixedTensor, shape: tuple[int, ...], fixed: Mask | None = None
    ) -> Prepared:
        """Return the diffusion of images of this shape, after checking that model and stencil fit them."""
        kinds = (ImageDriven, FixedTensor)
        checks.instance("model", model, kinds, "a diffusion model", "aniso.EdgeEnhancing(contrast=3.5)")
        _check_fit(model, self.stencil, shape)
        spacings = self.spacings
        if isinstance(model, ImageDriven):
            check_widths(model, spacings)
        limit = stability.largest_step(model, self.stencil, spacings)
        if len(shape) == 1:
            # An image of one row, with an infinite spacing along the other axis.
            spacings = (math.inf, *spacings)
            fixed = None if fixed is None else fixed[np.newaxis]
        problem = engines.Problem(model, self.stencil, spacings, fixed, self.threads, self.engine)
        return Prepared(problem, self.scheme, limit)


@dataclass(frozen=True)
class Prepared:
    """A diffusion of images of one shape: all that is known before it starts."""

    problem: engines.Problem
    scheme: Scheme
    limit: float  # the largest stable step

    def plan(self, time: float) -> Iterator[Cycle]:
        """Return the cycles that reach this time."""
        return self.scheme.plan(time, self.limit)

    def with_fixed(self, fixed: Mask) -> Prepared:
        """Return the same diffusion with other fixed pixels, for models that fit images of any shape."""
        if fixed.ndim < len(self.problem.spacings):  # a signal
            fixed = fixed[np.newaxis]
        return replace(self, problem=replace(self.problem, fixed=fixed))


def check_widths(model: ImageDriven, spacings: tuple[float, ...]) -> None:
    """Reject Gaussians that extend over too many pixels."""
    for name, width in (("sigma", model.presmoothing), ("rho", model.integration)):
        checks.not_too_many_pixels(name, width, spacings)


def _check_fit(model: object, stencil: object, shape: tuple[int, ...]) -> None:
    if isinstance(model, FixedTensor) and model.image_shape != shape:
        raise ValueError(
            f"the tensors of the model fit an image of shape {model.image_shape}, got one of shape {shape}: "
            "there must be one more cell than pixels along each axis."
        )
    if isinstance(stencil, FreeStencil):
        cells = tuple(n + 1 for n in ((1, *shape) if len(shape) == 1 else shape))
        if stencil.values.shape != cells:
            raise ValueError(
                f"the stencil's delta has shape {stencil.values.shape}, an image of shape {shape} needs "
                f"{cells}: one more cell than pixels along each axis."
            )


def check_time(time: float) -> float:
    """Return a finite diffusion time that is not negative as a float."""
    end = checks.real("time", time, "Give the diffusion time, e.g. time=4.0.")
    if not 0 <= end < math.inf:
        raise ValueError(
            f"time must be at least 0 and finite, got {time}: diffusion runs forward. Give e.g. time=4.0."
        )
    return end


def check_times(times: Sequence[float] | npt.NDArray[Any]) -> list[float]:
    """Return increasing diffusion times as floats."""
    if np.ndim(times) == 0:
        raise TypeError(f"times must be a sequence of numbers, got {times!r}. For one time, give e.g. [4.0].")
    stops = [check_time(time) for time in times]
    if not stops:
        raise ValueError("times is empty: give at least one time, e.g. times=[1, 2, 4].")
    for before, after in itertools.pairwise(stops):
        if after <= before:
            raise ValueError(
                f"times must increase, got {after:g} after {before:g}: each image is computed from the one "
                "before. Sort them first."
            )
    return stops


def check_threads(threads: int | None) -> int | None:
    """Return the number of threads; None for all cores."""
    if threads is None:
        return None
    threads = checks.whole("threads", threads, "", "a whole number or None")
    if threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}. Use None for all cores.")
    return threads


def check_progress(progress: Progress) -> None:
    """Reject values that are neither a switch nor a function."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(
            f"progress must be True, None or a function of (done_time, total_time), got {progress!r}."
        )


@contextlib.contextmanager
def report_progress(progress: Progress, total: float) -> Iterator[Callable[[float], object]]:
    """Yield a function that reports the time reached."""
    if progress is None or progress is False:
        yield lambda done: None
    elif progress is True and notebook.in_notebook():
        with notebook.progress_bar(total) as update:
            yield update
    elif progress is True:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

        columns = ("diffusing", BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("", total=total)
            yield lambda done: bar.update(task, completed=done)
    else:
        yield lambda done: progress(done, total)
