"""diffuse() and scale_space(): image in, image out."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import arrays, checks, engines, stability
from aniso.arrays import Layout
from aniso.blocks import lazy
from aniso.blocks.lazy import is_dask
from aniso.checks import Spacing
from aniso.models import FixedTensor, ImageDriven, Model
from aniso.schemes import Explicit, Scheme
from aniso.stencil import DeltaStencil, FreeStencil, Stencil, check_stencil

__all__ = ["diffuse", "scale_space"]

Image = Any  # a NumPy array or a PyTorch tensor
Progress = Callable[[float, float], object] | bool | None
EngineName = str  # a name in aniso.engines.ENGINES


def diffuse(
    image: Any,
    model: ImageDriven | FixedTensor,
    time: float,
    *,
    stencil: Stencil = DeltaStencil(),  # noqa: B008 (frozen)
    scheme: Scheme = Explicit(),  # noqa: B008 (frozen)
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
    fixed: npt.ArrayLike | None = None,
    engine: EngineName | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Image:
    """The image after diffusing for this time.

    Parameters
    ----------
    image : array or tensor
        A signal (N,), an image (H, W) or a volume (D, H, W), with any number of channels along
        `channel_axis`. Never modified. An image with colours is not a volume: say `channel_axis`. A PyTorch
        tensor may also be a batch (N, C, H, W) or (N, C, D, H, W); gradients flow through.
    model : EdgeEnhancing, EdgeContinuing, CoherenceEnhancing, PeronaMalik, Homogeneous or FixedTensor
        What steers the diffusion.
    time : float
        How long to diffuse, in squared units of length: homogeneous diffusion for a time t is a Gaussian
        of variance 2t. It is reached exactly.
    stencil : DeltaStencil or FreeStencil, for volumes DeltaStencil or aniso.stencil.SplitStencil
        How the diffusion is discretised.
    scheme : Explicit, FED or FSI
        How the time is cut into steps.
    spacing : float or one float per axis, optional
        Distance of the pixels, axis 0 first, without the channels; from 1e-15 to 1e15.
    channel_axis : int, optional
        The axis of the channels. All channels diffuse with one tensor, which their mean structure decides.
    fixed : array of bool, optional
        True where a pixel keeps its value; of the shape of the image without channels.
    engine : str, optional
        A name in :data:`aniso.engines.ENGINES`. By default "cpu" for NumPy arrays and "torch" for PyTorch
        tensors, on their device. "reference" is slow and easy to read.
    threads : int, optional
        How many threads the cpu engine uses; by default the environment variable ANISO_NUM_THREADS or all
        cores. The result does not depend on it.
    progress : bool or callable, optional
        True shows a bar on the terminal; a function is called as progress(done_time, total_time).

    Returns
    -------
    array or tensor
        As the image was, of its shape. float32 and float64 are kept; integers and float16 give float32,
        in the grey scale they have.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> noisy = np.random.default_rng(0).normal(100, 10, (32, 32))
    >>> smooth = aniso.diffuse(noisy, aniso.EdgeEnhancing(contrast=20), time=4)
    >>> bool(smooth.std() < 4), bool(np.isclose(smooth.mean(), noisy.mean()))
    (True, True)
    """
    end = checked_time(time)
    check_progress(progress)
    if is_dask(image):
        return _tiled(
            image, model, end, stencil, scheme, spacing, channel_axis, fixed, engine, threads, progress
        )
    journey = Journey.of(image, model, stencil, scheme, spacing, channel_axis, fixed, engine, threads)
    with contextlib.closing(journey.evolution), reporter(progress, end) as report:
        journey.advance(0.0, end, report)
    return journey.image()


def scale_space(
    image: Any,
    model: ImageDriven | FixedTensor,
    times: Sequence[float] | npt.NDArray[Any],
    *,
    stencil: Stencil = DeltaStencil(),  # noqa: B008 (frozen)
    scheme: Scheme = Explicit(),  # noqa: B008 (frozen)
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
    fixed: npt.ArrayLike | None = None,
    engine: EngineName | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Generator[tuple[float, Image], None, None]:
    """The image at several times, one after another, each computed from the one before.

    Nothing is computed before it is asked for. FED and FSI spend their cycles anew between each two times.

    Parameters
    ----------
    times : sequence of float
        Increasing; 0 gives the image itself.
    image, model, stencil, scheme, spacing, channel_axis, fixed, engine, threads, progress
        As for :func:`diffuse`.

    Yields
    ------
    time, image
        The time asked for, and the image then: a new array each.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> image = np.eye(16)
    >>> for time, smooth in aniso.scale_space(image, aniso.Homogeneous(), [1, 4]):
    ...     print(time, round(float(smooth.max()), 3))
    1.0 0.374
    4.0 0.194
    """
    stops = _times(times)
    check_progress(progress)
    journey = Journey.of(image, model, stencil, scheme, spacing, channel_axis, fixed, engine, threads)
    scheme.plan(stops[0], journey.limit)  # refuses now, not when the first image is asked for

    def snapshots() -> Generator[tuple[float, Image], None, None]:
        now = 0.0
        with contextlib.closing(journey.evolution), reporter(progress, stops[-1]) as report:
            for stop in stops:
                journey.advance(now, stop, report)
                now = stop
                yield stop, journey.image()

    return snapshots()


@dataclass
class Journey:
    """An evolution together with the shape, type and scheme that the caller knows.

    For :func:`diffuse` and for verbs that look at the image between cycles, or change it there.
    """

    evolution: engines.Evolution
    scheme: Scheme
    limit: float
    layout: Layout

    @classmethod
    def of(
        cls,
        image: Any,
        model: ImageDriven | FixedTensor,
        stencil: Stencil,
        scheme: Scheme,
        spacing: Spacing | None,
        channel_axis: int | None,
        fixed: npt.ArrayLike | None,
        engine: EngineName | None,
        threads: int | None,
    ) -> Journey:
        engines.check_name(engine)
        layout, name = arrays.layout(image, channel_axis, engine)
        shape, start = layout.shape, layout.start
        spacings, limit = _checked_problem(shape, model, stencil, scheme, spacing)
        mask = _checked_mask(fixed, shape)
        if len(shape) == 1:
            # An image of one row, whose other axis reaches so far that nothing varies along it.
            start = start[..., None, :]
            spacings = (math.inf, *spacings)
            mask = None if mask is None else mask[np.newaxis]
        problem = engines.Problem(model, stencil, spacings, mask, checked_threads(threads))
        return cls(engines.load(name)(problem.precise(start), problem), scheme, limit, layout)

    def advance(self, start: float, stop: float, report: Callable[[float], object]) -> None:
        done = start
        for cycle in self.scheme.plan(stop - start, self.limit):
            self.evolution.advance(cycle)
            done += cycle.time
            # The last cycle ends at the stop itself, not at a sum of rounded times.
            report(done if stop - done > 0.5 * cycle.time else stop)

    def pixels(self) -> npt.NDArray[Any]:
        """The evolving image itself, not a copy: a NumPy array (channels, …) that may be changed."""
        image = self.evolution.image
        return (image[0].numpy() if checks.is_tensor(image) else image).reshape(-1, *self.layout.shape)

    def image(self) -> Image:
        """The image as it is now: a new array."""
        return arrays.checked_result(self.layout, self.evolution.image)


def _checked_problem(
    shape: tuple[int, ...], model: Any, stencil: Any, scheme: Any, spacing: Spacing | None
) -> tuple[tuple[float, ...], float]:
    """Spacing along each axis, and the largest stable step, if all this fits an image of this shape."""
    kinds = (ImageDriven, FixedTensor)
    checks.instance("model", model, kinds, "a diffusion model", "aniso.EdgeEnhancing(contrast=3.5)")
    if isinstance(scheme, type) or not hasattr(scheme, "plan"):
        raise TypeError(f"scheme must be Explicit, FED or FSI, got {scheme!r}. Try aniso.Explicit().")
    check_stencil(stencil, len(shape))
    spacings = checks.axis_spacing(spacing, len(shape))
    _check_fit(model, stencil, shape)
    for name, width in (("sigma", model.presmoothing), ("rho", model.integration)):
        checks.not_too_many_pixels(name, width, spacings)
    return spacings, stability.stable_step(model, stencil, spacings, len(shape))


def _tiled(
    image: Any,
    model: ImageDriven | FixedTensor,
    end: float,
    stencil: Stencil,
    scheme: Scheme,
    spacing: Spacing | None,
    channel_axis: int | None,
    fixed: Any,
    engine: EngineName | None,
    threads: int | None,
    progress: Progress,
) -> Any:
    """A Dask array after this time, lazily. Workers use one thread each unless told otherwise."""
    engines.check_name(engine)
    lazy.checked(image, channel_axis)
    if progress:
        raise ValueError(
            "progress was asked for, but a Dask array is not computed before you say so. Use "
            "dask.diagnostics.ProgressBar, or the dashboard of a cluster."
        )
    shape = arrays.channels_first(image, channel_axis).shape[1:]
    spacings, limit = _checked_problem(shape, model, stencil, scheme, spacing)
    mask = None if is_dask(fixed) else _checked_mask(fixed, shape)
    if is_dask(fixed):
        _check_mask(fixed, shape)
    problem = engines.Problem(model, stencil, spacings, mask, checked_threads(threads) or 1)
    cycles = tuple(scheme.plan(end, limit))
    return lazy.evolved(image, channel_axis, cycles, problem, engine, fixed if is_dask(fixed) else None)


def checked_time(time: float) -> float:
    """The time as a float, if it is not negative and finite."""
    end = checks.real("time", time, "Give the diffusion time, e.g. time=4.0.")
    if not 0 <= end < math.inf:
        raise ValueError(
            f"time must be at least 0 and finite, got {time}: diffusion runs forward. Give e.g. time=4.0."
        )
    return end


def _times(times: Sequence[float] | npt.NDArray[Any]) -> list[float]:
    if np.ndim(times) == 0:
        raise TypeError(f"times must be a sequence of numbers, got {times!r}. For one time, give e.g. [4.0].")
    stops = [checked_time(time) for time in times]
    if not stops:
        raise ValueError("times is empty: give at least one time, e.g. times=[1, 2, 4].")
    for before, after in itertools.pairwise(stops):
        if after <= before:
            raise ValueError(
                f"times must increase, got {after:g} after {before:g}: each image is computed from the one "
                "before. Sort them first."
            )
    return stops


def _check_fit(model: Model, stencil: object, shape: tuple[int, ...]) -> None:
    if model.image_shape not in (None, shape):
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


def _checked_mask(fixed: npt.ArrayLike | None, shape: tuple[int, ...]) -> npt.NDArray[np.bool_] | None:
    if fixed is None:
        return None
    if checks.is_tensor(fixed):
        checks.plain_tensor("fixed", fixed)
        fixed = fixed.cpu()  # type: ignore[union-attr]
    mask = np.asarray(fixed)
    _check_mask(mask, shape)
    return mask.copy()


def _check_mask(mask: Any, shape: tuple[int, ...]) -> None:
    """Refuse a mask of another type or shape; a NumPy or Dask array."""
    if mask.dtype != np.bool_:
        raise TypeError(
            f"fixed must hold True and False, got dtype {mask.dtype}: True where a pixel keeps its value. "
            "Use e.g. fixed > 0."
        )
    if mask.shape != shape:
        raise ValueError(
            f"fixed has shape {mask.shape}, the image without channels {shape}: they must be equal."
        )


def checked_threads(threads: int | None) -> int | None:
    """The number of threads, if it is one; None for all cores."""
    if threads is None:
        return None
    threads = checks.whole("threads", threads, "", "a whole number or None")
    if threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}. Use None for all cores.")
    return threads


def check_progress(progress: Progress) -> None:
    """Refuse what can neither show progress nor be told it."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(
            f"progress must be True, None or a function of (done_time, total_time), got {progress!r}."
        )


@contextlib.contextmanager
def reporter(progress: Progress, total: float) -> Iterator[Callable[[float], object]]:
    """A function to be told the time reached."""
    if progress is None or progress is False:
        yield lambda done: None
    elif progress is True:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

        columns = ("diffusing", BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("", total=total)
            yield lambda done: bar.update(task, completed=done)
    else:
        yield lambda done: progress(done, total)
