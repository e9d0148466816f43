"""diffuse() and scale_space(): image in, image out."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from aniso import checks, engines, stability
from aniso.checks import Spacing
from aniso.models import FixedTensor, ImageDriven
from aniso.schemes import Explicit, Scheme
from aniso.stencil import DeltaStencil, FreeStencil, Stencil, check_stencil

__all__ = ["diffuse", "scale_space"]

Image = npt.NDArray[Any]
Progress = Callable[[float, float], object] | bool | None
EngineName = Literal["cpu", "reference"]


def diffuse(
    image: npt.ArrayLike,
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
    image : array
        A signal (N,) or an image (H, W), with any number of channels along `channel_axis`. Never modified.
    model : EdgeEnhancing, CoherenceEnhancing, PeronaMalik, Homogeneous or FixedTensor
        What steers the diffusion.
    time : float
        How long to diffuse, in squared units of length: homogeneous diffusion for a time t is a Gaussian
        of variance 2t. It is reached exactly.
    stencil : DeltaStencil or FreeStencil
        How the diffusion is discretised.
    scheme : Explicit, FED or FSI
        How the time is cut into steps.
    spacing : float or one float per axis, optional
        Distance of the pixels, axis 0 first, without the channels.
    channel_axis : int, optional
        The axis of the channels. All channels diffuse with one tensor, which their mean structure decides.
    fixed : array of bool, optional
        True where a pixel keeps its value; of the shape of the image without channels.
    engine : {"cpu", "reference"}, optional
        By default the one that suits the array: "cpu" for NumPy. "reference" is slow and obvious.
    threads : int, optional
        How many threads the cpu engine uses; by default the environment variable ANISO_NUM_THREADS or all
        cores. The result does not depend on it.
    progress : bool or callable, optional
        True shows a bar on the terminal; a function is called as progress(done_time, total_time).

    Returns
    -------
    array
        Of the shape of the image. float32 and float64 are kept; integers and float16 give float32, in the
        grey scale they have.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> noisy = np.random.default_rng(0).normal(100, 10, (32, 32))
    >>> smooth = aniso.diffuse(noisy, aniso.EdgeEnhancing(contrast=20), time=4)
    >>> bool(smooth.std() < 4), bool(np.isclose(smooth.mean(), noisy.mean()))
    (True, True)
    """
    end = _time(time)
    check_progress(progress)
    journey = Journey.of(image, model, stencil, scheme, spacing, channel_axis, fixed, engine, threads)
    with contextlib.closing(journey.evolution), reporter(progress, end) as report:
        journey.advance(0.0, end, report)
    return journey.image()


def scale_space(
    image: npt.ArrayLike,
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
                yield stop, journey.image().copy()

    return snapshots()


@dataclass
class Journey:
    """An evolution together with the shape, type and scheme that the caller knows.

    For :func:`diffuse` and for verbs that look at the image between cycles, or change it there.
    """

    evolution: engines.Evolution
    scheme: Scheme
    limit: float
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    channel_axis: int | None

    @classmethod
    def of(
        cls,
        image: npt.ArrayLike,
        model: ImageDriven | FixedTensor,
        stencil: Stencil,
        scheme: Scheme,
        spacing: Spacing | None,
        channel_axis: int | None,
        fixed: npt.ArrayLike | None,
        engine: EngineName | None,
        threads: int | None,
    ) -> Journey:
        kinds = (ImageDriven, FixedTensor)
        checks.instance("model", model, kinds, "a diffusion model", "aniso.EdgeEnhancing(contrast=3.5)")
        if isinstance(scheme, type) or not hasattr(scheme, "plan"):
            raise TypeError(f"scheme must be Explicit, FED or FSI, got {scheme!r}. Try aniso.Explicit().")
        check_stencil(stencil)
        evolution = engines.chosen(engine)
        array = checked_image(image, channel_axis)
        channels_first = array[np.newaxis] if channel_axis is None else np.moveaxis(array, channel_axis, 0)
        shape = channels_first.shape[1:]
        spacings = checks.axis_spacing(spacing, len(shape))
        _check_fit(model, stencil, shape)
        limit = stability.stable_step(model, stencil, spacings, len(shape))
        mask = _checked_mask(fixed, shape)
        if len(shape) == 1:
            # An image of one row, whose other axis reaches so far that nothing varies along it.
            channels_first = channels_first[:, np.newaxis]
            spacings = (math.inf, *spacings)
            mask = None if mask is None else mask[np.newaxis]
        problem = engines.Problem(model, stencil, spacings, mask, _checked_threads(threads))
        dtype = result_type(array.dtype)
        start = channels_first.astype(dtype)
        return cls(evolution(start, problem), scheme, limit, shape, dtype, channel_axis)

    def advance(self, start: float, stop: float, report: Callable[[float], object]) -> None:
        done = start
        for cycle in self.scheme.plan(stop - start, self.limit):
            self.evolution.advance(cycle)
            done += cycle.time
            # The last cycle ends at the stop itself, not at a sum of rounded times.
            report(done if stop - done > 0.5 * cycle.time else stop)

    def image(self) -> Image:
        image = self.evolution.image.astype(self.dtype, copy=False).reshape(-1, *self.shape)
        if not (math.isfinite(image.max()) and math.isfinite(image.min())):
            raise ArithmeticError(
                f"the result left the range of {self.dtype}: grey values, contrast or spacing are too large "
                "or too small for it. Scale the image to ordinary numbers, or convert it to float64."
            )
        if self.channel_axis is None:
            return image[0]
        return np.ascontiguousarray(np.moveaxis(image, 0, self.channel_axis))


def _time(time: float) -> float:
    end = checks.real("time", time, "Give the diffusion time, e.g. time=4.0.")
    if not 0 <= end < math.inf:
        raise ValueError(
            f"time must be at least 0 and finite, got {time}: diffusion runs forward. Give e.g. time=4.0."
        )
    return end


def _times(times: Sequence[float] | npt.NDArray[Any]) -> list[float]:
    if np.ndim(times) == 0:
        raise TypeError(f"times must be a sequence of numbers, got {times!r}. For one time, give e.g. [4.0].")
    stops = [_time(time) for time in times]
    if not stops:
        raise ValueError("times is empty: give at least one time, e.g. times=[1, 2, 4].")
    for before, after in itertools.pairwise(stops):
        if after <= before:
            raise ValueError(
                f"times must increase, got {after:g} after {before:g}: each image is computed from the one "
                "before. Sort them first."
            )
    return stops


def result_type(given: np.dtype[Any]) -> np.dtype[Any]:
    """Double precision is kept, everything else becomes float32."""
    return np.dtype(np.float64 if given.kind == "f" and given.itemsize >= 8 else np.float32)


def checked_image(image: npt.ArrayLike, channel_axis: int | None) -> Image:
    """The image as an array, if it can diffuse: not masked, real and finite, with the right axes."""
    if isinstance(image, np.ma.MaskedArray):
        raise TypeError(
            "image is a masked array, whose mask diffusion does not know. Fill it first, e.g. with "
            "image.filled(0), or keep pixels by fixed=."
        )
    array = checked_layout(np.asarray(image), channel_axis)
    if array.dtype.kind == "f":
        checks.finite("image", array, "a single one would spread over the whole image")
    return array


def checked_layout(array: Image, channel_axis: int | None) -> Image:
    """The array, if it has the type and the axes of an image; its values may be anything."""
    if array.dtype.kind not in "iuf":
        raise TypeError(
            f"image must hold real numbers, got dtype {array.dtype}: diffusion is for grey values. Give an "
            "array of numbers, e.g. image.astype(numpy.float32)."
        )
    if channel_axis is not None:
        checks.whole("channel_axis", channel_axis, "", "a whole number or None")
        if not -array.ndim <= channel_axis < array.ndim:
            raise ValueError(
                f"channel_axis={channel_axis} does not exist in an image of shape {array.shape}. Give the "
                "axis of the channels, e.g. -1, or None."
            )
    spatial = array.ndim - (channel_axis is not None)
    if spatial not in (1, 2):
        remedy = "Give channel_axis=-1 if the last axis holds colours." if spatial == 3 else ""
        raise ValueError(
            f"image must be a signal (N,) or an image (H, W), with channels only along channel_axis, got "
            f"shape {array.shape} with channel_axis={channel_axis}. {remedy}".strip()
        )
    if array.size == 0:
        raise ValueError(f"image is empty, got shape {array.shape}: there is nothing to diffuse.")
    return array


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


def _checked_mask(fixed: npt.ArrayLike | None, shape: tuple[int, ...]) -> npt.NDArray[np.bool_] | None:
    if fixed is None:
        return None
    mask = np.asarray(fixed)
    if mask.dtype != np.bool_:
        raise TypeError(
            f"fixed must hold True and False, got dtype {mask.dtype}: True where a pixel keeps its value. "
            "Use e.g. fixed > 0."
        )
    if mask.shape != shape:
        raise ValueError(
            f"fixed has shape {mask.shape}, the image without channels {shape}: they must be equal."
        )
    return mask.copy()


def _checked_threads(threads: int | None) -> int | None:
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
