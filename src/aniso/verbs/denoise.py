"""denoise(): contrast and stopping time from the noise, by an unbiased estimate of the error."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from aniso import checks, estimates
from aniso.arrays import Array
from aniso.blocks.stages import Diffuse, Pipeline, Stage, Take
from aniso.checks import Auto, Spacing
from aniso.dispatch import takes_arrays
from aniso.evolving import EvolvingImage
from aniso.memory import return_freed_memory
from aniso.models import ImageDriven
from aniso.parameters import CONTRAST, NOISE, TIME, About
from aniso.schemes import FED, Cycle, Explicit, Scheme
from aniso.settings import EngineName, Prepared, Progress, Settings
from aniso.stencil import DeltaStencil, Stencil
from aniso.verbs.candidates import choose_models, choose_times
from aniso.verbs.edge_contrast import check_contrast
from aniso.verbs.mixture import AddWeighted, MeasureFlatness, Mixture, Weights, mix_stops
from aniso.verbs.plan import CONTRAST_UNIT, GREY, Plan, describe
from aniso.verbs.risk import Judge, Stop
from aniso.verbs.source import ImageSource

__all__ = ["DenoisePlan", "denoise"]

_MIX = About(switch=True, meaning="mix several diffusions, or take the best single one")


@dataclass(frozen=True)
class Path:
    """A diffusion that stops at these times, and the weights of the images at some of them."""

    model: ImageDriven
    times: tuple[float, ...]
    weights: tuple[Weights | None, ...]


@dataclass(frozen=True, kw_only=True)
class DenoisePlan(Plan):
    """The values that :func:`aniso.denoise` used, and the error it expects.

    `start` are the weights of the unfiltered image in the mixture, and `paths` those of diffused ones.
    Without a mixture there is one path without weights, or none if the image is left unchanged.
    """

    verb: ClassVar[str] = "denoise"
    on_tensors: ClassVar[bool] = True

    noise: float = describe("noise level", GREY)
    model: ImageDriven | None = describe("best single diffusion")  # noqa: RUF009
    contrast: float | None = describe("its contrast λ", CONTRAST_UNIT)
    time: float = describe("its time")
    single_error: float = describe("its expected error (root mean square)", GREY)
    expected_error: float = describe("expected error of the result", GREY)
    candidates: int = describe("diffusions computed")
    mixed: int = describe("images averaged")
    scheme: Scheme
    start: Weights | None = field(repr=False)
    paths: tuple[Path, ...] = field(repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for path in self.paths:
            if len(path.times) != len(path.weights) or not path.times:
                raise ValueError("a path of a plan must have weights, or None, for each of its times.")
            if any(after <= before for before, after in zip((0.0, *path.times), path.times, strict=False)):
                raise ValueError(f"the times of a path of a plan must increase, got {path.times}.")
        weights = [self.start, *(one for path in self.paths for one in path.weights)]
        used = [one for one in weights if one is not None]
        if self.mixed != max(len(used), 1):
            raise ValueError(f"the plan mixes {self.mixed} images, but has weights for {len(used)}.")
        if used:
            self._check_mixture(used)
        elif [path.model for path in self.paths] != ([] if self.model is None else [self.model]):
            raise ValueError("without weights, a plan has the path of its model, or none without a model.")

    def _check_mixture(self, weights: list[Weights]) -> None:
        square = {(self.channels, self.channels)}
        for matrix in (matrix for one in weights for matrix in (one.everywhere, one.flat)):
            if {(len(matrix), len(row)) for row in matrix} != square:
                raise ValueError(
                    f"the weights of a plan for {self.channels} channels must be square matrices."
                )
        sums = [np.sum([getattr(one, name) for one in weights], axis=0) for name in ("everywhere", "flat")]
        if not np.allclose(sums, [np.eye(self.channels), np.zeros((self.channels,) * 2)], rtol=0, atol=1e-9):
            raise ValueError("the weights of a plan must add up to 1.")
        if not self.noise > 0:
            raise ValueError(
                f"the noise level of a plan that mixes images must be positive, got {self.noise}."
            )
        stops = [(path.model, time) for path in self.paths for time in path.times]
        if self.model is not None and (self.model, self.time) not in stops:
            raise ValueError("the best diffusion of a plan must be one of its paths, at one of their times.")

    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float] | None:
        """Return the best single diffusion."""
        return None if self.model is None else (self.model, self.time)

    def pipeline(self, shape: tuple[int, ...], settings: Settings) -> Pipeline:
        """Return the diffusions one after another, each added to the mixture where it has weights."""
        settings = replace(settings, scheme=self.scheme)
        ndim = len(shape)
        mixing = self.mixed > 1
        stages: list[Stage] = []
        if self.start is not None:
            stages.append(AddWeighted("image", self.start, ndim))
        if mixing and self.model is None:
            stages.append(MeasureFlatness("image", self.noise, ndim))
        # The best one first, since the weights depend on its flatness.
        for path in sorted(self.paths, key=lambda path: path.model != self.model):
            prepared = settings.prepare(path.model, shape)
            cycles: list[Cycle] = []
            looks: list[tuple[int, Stage]] = []
            for before, time, weights in zip((0.0, *path.times), path.times, path.weights, strict=False):
                cycles += prepared.plan(time - before)
                if mixing and path.model == self.model and time == self.time:
                    looks.append((len(cycles), MeasureFlatness("diffused", self.noise, ndim)))
                if mixing and weights is not None:
                    looks.append((len(cycles), AddWeighted("diffused", weights, ndim)))
            target = "diffused" if mixing else "image"
            stages.append(Diffuse("image", target, prepared, tuple(cycles), tuple(looks), keep=not mixing))
        return Pipeline(shape, (*stages, Take("mixture", ndim)) if mixing else tuple(stages))


@takes_arrays(dask=None)
def denoise(
    image: npt.ArrayLike,
    *,
    noise: Annotated[float | Auto, NOISE] = "auto",
    contrast: Annotated[float | Auto, replace(CONTRAST, auto="by the smallest expected error")] = "auto",
    time: Annotated[float | Auto, replace(TIME, auto="by the smallest expected error")] = "auto",
    mix: Annotated[bool | None, _MIX] = None,
    stencil: Stencil = DeltaStencil(),  # noqa: B008 (frozen)
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
    frame_axis: int | None = None,
    engine: EngineName | None = None,
    threads: int | None = None,
    progress: Progress = None,
    return_info: bool = False,
) -> Any:
    """Remove noise from an image; all parameters are estimated from the data.

    Several diffusions run, and Stein's unbiased risk estimate gives the mean squared error of each of them at
    each time, without knowledge of the image without noise: the squared change, minus the variance of the
    noise, plus twice that variance times the divergence, which is measured with a small random change of the
    image. The smallest estimate gives contrast and stopping time. Then all diffusions, each some time before
    and after its best time, are mixed with the weights that minimise the estimate, one set of weights for
    edges and one for flat regions. In large images, all of this is chosen on a few windows.

    The candidates are edge-enhancing diffusions with λ = 0.2, 0.45 and 0.9 of the noise level per pixel, and
    coherence-enhancing ones with 0.2 of it and two noise scales.

    Parameters
    ----------
    image : array
        A signal (N,), an image (H, W) or a volume (D, H, W), with any number of channels along
        `channel_axis`. Never modified.
    noise : float or "auto"
        Standard deviation of the noise in grey values, the same in all channels; by default
        :func:`aniso.estimates.noise_level`.
    contrast : float or "auto"
        λ in grey values per unit length: gradients above it are edges. With a number there is one candidate,
        edge-enhancing diffusion with this contrast.
    time : float or "auto"
        The stopping time, in squared units of length.
    mix : bool, optional
        If False, or if `contrast` or `time` are given, the result is the best single diffusion.
    stencil : DeltaStencil or FreeStencil
        The spatial discretisation.
    spacing : float or one float per axis, optional
        Pixel spacing along each axis, without the channels.
    channel_axis : int, optional
        The axis of the channels.
    frame_axis : int, optional
        The axis of the frames of a time series, or of slices that are filtered one by one. All frames are
        filtered alike: the plan is made from several of them.
    engine, threads
        As for :func:`aniso.diffuse`.
    progress : bool or callable, optional
        True shows a bar on the terminal; a function is called as progress(done, 1.0).
    return_info : bool
        If True, also return the plan: the values used, which can filter further images alike.

    Returns
    -------
    array
        An array of the same kind and shape. float32 and float64 are kept; integers and float16 are converted
        to float32, without rescaling.
    aniso.plans.DenoisePlan
        Only with ``return_info=True``.

    Examples
    --------
    >>> import aniso
    >>> sample = aniso.samples.shapes(96, noise=20.0)
    >>> result, plan = aniso.denoise(sample.image, return_info=True)
    >>> bool(((result - sample.truth) ** 2).mean() < 0.1 * 20**2)
    True
    >>> bool(19 < plan.noise < 21)
    True
    """
    source = ImageSource.check(image, channel_axis, progress, frame_axis)
    settings = Settings.check(
        len(source.shape), stencil=stencil, spacing=spacing, engine=engine, threads=threads
    )
    plan = choose(source, settings, noise=noise, contrast=contrast, time=time, mix=mix)
    return_freed_memory()  # many small windows, of which large arrays could not use the space
    result = plan.filter(source, settings, progress)
    return (result, plan) if return_info else result


def choose(
    source: ImageSource,
    settings: Settings,
    *,
    noise: float | Auto = "auto",
    contrast: float | Auto = "auto",
    time: float | Auto = "auto",
    mix: bool | None = None,
) -> DenoisePlan:
    """Return the diffusions of least risk in windows of the image; the arguments are those of `denoise`."""
    checks.instance("mix", mix, (bool, type(None)), "True, False or None", "mix=False")
    given_contrast = check_contrast(contrast)
    given_time = checks.number_or_auto("time", time, "the stopping time")
    mixing = mix is not False and given_contrast is None and given_time is None
    # From one time of the list to the next one tensor is enough; to a given time it is not.
    settings = replace(settings, scheme=FED(1) if given_time is None else Explicit())
    windows, level = source.sample_with_noise(noise)
    pixel = estimates.pixel_size(settings.spacings)
    models = choose_models(level, given_contrast, pixel, len(settings.spacings))
    times = choose_times(pixel, len(settings.spacings)) if given_time is None else [given_time]
    judge = Judge(windows, level)
    # Leaving the image unchanged is a candidate too, unless a time is given.
    best = judge.start if given_time is None or not models else None
    helpers: list[Stop] = []
    for model in models:
        prepared = settings.prepare(model, windows[0].shape[1:])
        stop, others = _follow(judge, model, prepared, times, source.alive, full=mixing)
        helpers += others
        best = stop if best is None or stop.risk < best.risk else best
    assert best is not None
    mixture: Mixture = []
    risk = best.risk
    if helpers:
        mixture, risk = mix_stops(judge, best, helpers)
    if len(mixture) < 2:
        mixture = [] if best.model is None else [(best, None)]
    return DenoisePlan(
        spacings=settings.spacings,
        channel_axis=source.channel_axis,
        channels=len(source.channels),
        stencil=settings.stencil,
        noise=level,
        model=best.model,
        contrast=getattr(best.model, "contrast", None),
        time=best.time,
        single_error=math.sqrt(max(best.risk, 0.0)),
        expected_error=math.sqrt(max(risk, 0.0)),
        candidates=len(models),
        mixed=max(len(mixture), 1),
        scheme=settings.scheme,
        start=next((weights for stop, weights in mixture if stop.model is None), None),
        paths=tuple(path for model in models if (path := _path(model, times, mixture)) is not None),
    )


def _path(model: ImageDriven, times: list[float], mixture: Mixture) -> Path | None:
    """Return the way of a diffusion to the last of its images that is used, or None if none is."""
    used = {stop.time: weights for stop, weights in mixture if stop.model is model}
    if not used:
        return None
    visited = tuple(time for time in times if time <= max(used))
    return Path(model, visited, tuple(used.get(time) for time in visited))


def _follow(
    judge: Judge,
    model: ImageDriven,
    prepared: Prepared,
    times: list[float],
    alive: Callable[[], object],
    *,
    full: bool,
) -> tuple[Stop, list[Stop]]:
    """Run a diffusion until its risk has passed the minimum twice, and keep only what may be needed.

    Return the stop of least risk and, if `full`, those before and after it, which are mixed.
    """
    stops: list[Stop] = []
    lowest = 0
    with contextlib.ExitStack() as stack:

        def snapshots(windows: list[Array]) -> list[Any]:
            evolving = [EvolvingImage.of_channels(window, prepared).snapshots(times) for window in windows]
            return [stack.enter_context(contextlib.closing(one)) for one in evolving]

        images, changed_images = snapshots(judge.image), snapshots(judge.changed)
        for time in times:
            image = [next(one)[1] for one in images]
            changed = [next(one)[1] for one in changed_images]
            alive()
            stop = Stop(time, image, changed, judge.risk(image, changed), model)
            stops.append(stop)
            if stop.risk < stops[lowest].risk:
                lowest = len(stops) - 1
                del stops[: lowest - 1]
                lowest = min(lowest, 1)
            elif len(stops) > lowest + 2:
                break
    neighbours = [stops[k] for k in (lowest - 1, lowest + 1) if 0 <= k < len(stops)]
    return stops[lowest], neighbours if full else []
