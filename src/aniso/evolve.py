"""diffuse() and scale_space(): image in, image out."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy.typing as npt

from aniso import arrays, checks, engines
from aniso.arrays import Image, is_dask
from aniso.blocks import lazy
from aniso.blocks.stages import Pipeline
from aniso.checks import Spacing
from aniso.dispatch import takes_arrays
from aniso.evolving import EvolvingImage
from aniso.models import FixedTensor, ImageDriven
from aniso.notebook import Snapshots
from aniso.schemes import FED, FSI, Explicit, Scheme
from aniso.settings import (
    EngineName,
    Progress,
    Settings,
    check_progress,
    check_time,
    check_times,
    report_progress,
)
from aniso.stencil import DeltaStencil, Stencil
from aniso.verbs.plan import Plan, describe
from aniso.verbs.source import ImageSource

__all__ = ["diffuse", "scale_space"]

_FIXED = "a pixel keeps its value"


def _begin(
    image: Any, model: Any, *, channel_axis: int | None, fixed: Any, engine: EngineName | None, **options: Any
) -> EvolvingImage:
    """Check an array or a tensor and all options."""
    engines.check_name(engine)
    name = engine or engines.default_for(image)
    layout = arrays.layout(image, channel_axis, tensors=engines.ENGINES[name].arrays == "torch")
    settings = Settings.check(len(layout.shape), engine=name, **options)
    mask = None if fixed is None else arrays.check_mask("fixed", fixed, layout.shape, _FIXED)
    return EvolvingImage(layout, settings.prepare(model, layout.shape, mask))


def _diffuse_dask(image: Any, model: Any, time: float, **options: Any) -> Any:
    """Return a Dask array after this time, lazily."""
    ((_, result),) = _scale_space_dask(image, model, [check_time(time)], **options)
    return result


def _scale_space_dask(
    image: Any,
    model: Any,
    times: Any,
    *,
    channel_axis: int | None,
    fixed: Any,
    threads: int | None,
    progress: Progress,
    **options: Any,
) -> Generator[tuple[float, Any], None, None]:
    """Yield Dask arrays at several times, each computed from the one before.

    Workers use one thread each by default.
    """
    stops = check_times(times)
    check_progress(progress)
    lazy.check_chunks(image, channel_axis)
    lazy.reject_progress(progress)
    shape = arrays.channels_first(image, channel_axis).shape[1:]
    settings = Settings.check(len(shape), threads=1 if threads is None else threads, **options)
    mask = None if fixed is None else arrays.check_mask("fixed", fixed, shape, _FIXED)
    whole, lazy_mask = (None, mask) if is_dask(mask) else (mask, None)
    prepared = settings.prepare(model, shape, whole)
    pipelines = [
        Pipeline.diffuse(shape, prepared, prepared.plan(stop - before))
        for before, stop in zip([0.0, *stops], stops, strict=False)
    ]

    def snapshots() -> Generator[tuple[float, Any], None, None]:
        now = image
        for stop, pipeline in zip(stops, pipelines, strict=True):
            now = lazy.run_pipeline(now, channel_axis, pipeline, lazy_mask)
            yield stop, now

    return snapshots()


@dataclass(frozen=True, kw_only=True)
class DiffusePlan(Plan):
    """The model, the diffusion time and the scheme of :func:`aniso.diffuse`, for Zarr stores."""

    verb: ClassVar[str] = "diffuse"

    model: ImageDriven = describe("model")  # noqa: RUF009
    time: float = describe("time")
    scheme: Scheme = describe("scheme")  # noqa: RUF009

    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float]:
        """Return the model and the time."""
        return self.model, self.time

    def pipeline(self, shape: tuple[int, ...], settings: Settings) -> Pipeline:
        """Return a single diffusion."""
        prepared = replace(settings, scheme=self.scheme).prepare(self.model, shape)
        return Pipeline.diffuse(shape, prepared, prepared.plan(self.time))


def choose(
    source: ImageSource,
    settings: Settings,
    *,
    model: ImageDriven,
    time: float,
    scheme: Scheme = Explicit(),  # noqa: B008 (frozen)
) -> DiffusePlan:
    """Return a plan with these arguments of `diffuse`; nothing is estimated."""
    example = "aniso.EdgeEnhancing(contrast=3.5)"
    checks.instance("model", model, (ImageDriven,), "a model whose tensor follows from the image", example)
    checks.instance("scheme", scheme, (Explicit, FED, FSI), "Explicit, FED or FSI", "aniso.Explicit()")
    plan = DiffusePlan(
        **source.plan_fields(settings),
        model=model,
        time=check_time(time),
        scheme=scheme,
    )
    plan.pipeline(source.shape, settings)  # rejects steps that are not stable
    return plan


@takes_arrays(torch=None, dask=_diffuse_dask)
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
    """Diffuse an image for a given time.

    Parameters
    ----------
    image : array or tensor
        A signal (N,), an image (H, W) or a volume (D, H, W), with any number of channels along
        `channel_axis`. Never modified. Colour images need `channel_axis`. A PyTorch tensor may also be a
        batch (N, C, H, W) or (N, C, D, H, W), and is differentiable. A Dask array is filtered lazily. An
        xarray.DataArray keeps its coordinates.
    model : EdgeEnhancing, EdgeContinuing, CoherenceEnhancing, PeronaMalik, Homogeneous or FixedTensor
        The model, which determines the diffusion tensor.
    time : float
        The diffusion time, in squared units of length: homogeneous diffusion for a time t is a Gaussian
        filter of variance 2t.
    stencil : DeltaStencil or FreeStencil, for volumes DeltaStencil or aniso.stencil.SplitStencil
        The spatial discretisation.
    scheme : Explicit, FED or FSI
        The time discretisation; the given time is reached exactly.
    spacing : float or one float per axis, optional
        Pixel spacing along each axis, without the channels; from 1e-15 to 1e15.
    channel_axis : int, optional
        The axis of the channels. All channels share one diffusion tensor, computed from their mean
        structure tensor.
    fixed : array of bool, optional
        True where a pixel keeps its value, with the shape of the image without channels.
    engine : {"cpu", "torch", "triton", "reference"}, optional
        By default "cpu" for NumPy and Dask arrays. PyTorch tensors are processed on their device: by "triton"
        on a GPU where Triton is installed, by "torch" otherwise. "reference" is a slow and simple
        implementation for comparison.
    threads : int, optional
        Number of threads of the cpu engine; by default the environment variable ANISO_NUM_THREADS, or all
        cores. The result does not depend on it.
    progress : bool or callable, optional
        True shows a bar on the terminal; a function is called as progress(done_time, total_time).

    Returns
    -------
    array or tensor
        An array of the same kind and shape. float32 and float64 are kept; integers and float16 are converted
        to float32, without rescaling.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> noisy = np.random.default_rng(0).normal(100, 10, (32, 32))
    >>> smooth = aniso.diffuse(noisy, aniso.EdgeEnhancing(contrast=20), time=4)
    >>> bool(smooth.std() < 4), bool(np.isclose(smooth.mean(), noisy.mean()))
    (True, True)
    """
    end = check_time(time)
    check_progress(progress)
    options: Any = {"stencil": stencil, "scheme": scheme, "spacing": spacing, "threads": threads}
    evolving = _begin(image, model, channel_axis=channel_axis, fixed=fixed, engine=engine, **options)
    with report_progress(progress, end) as report:
        return evolving.diffuse(end, report)


@takes_arrays(torch=None, dask=_scale_space_dask)
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
    """Diffuse an image and yield it at several times, each computed from the one before.

    Images are computed when they are requested; Dask arrays stay lazy. FED and FSI use their number of cycles
    between consecutive times.

    Parameters
    ----------
    times : sequence of float
        Increasing; 0 gives the image itself.
    image, model, stencil, scheme, spacing, channel_axis, fixed, engine, threads, progress
        As for :func:`diffuse`.

    Yields
    ------
    time, image
        The requested time, and the image at that time as a new array.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> image = np.eye(16)
    >>> for time, smooth in aniso.scale_space(image, aniso.Homogeneous(), [1, 4]):
    ...     print(time, round(float(smooth.max()), 3))
    1.0 0.374
    4.0 0.194
    """
    stops = check_times(times)
    check_progress(progress)
    options: Any = {"stencil": stencil, "scheme": scheme, "spacing": spacing, "threads": threads}
    begin = partial(_begin, image, model, channel_axis=channel_axis, fixed=fixed, engine=engine, **options)
    first = begin()
    first.prepared.plan(stops[0])  # rejects now, not when the first image is requested
    begun = [first]

    def snapshots() -> Generator[tuple[float, Image], None, None]:
        evolving = begun.pop() if begun else begin()
        with report_progress(progress, stops[-1]) as report:
            yield from evolving.snapshots(stops, report)

    return Snapshots(snapshots, stops, channel_axis)
