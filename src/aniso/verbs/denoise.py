"""denoise(): contrast and stopping time from the noise, by an unbiased estimate of the error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from aniso import checks, estimates
from aniso.arrays import Mask
from aniso.blocks.sample import orient
from aniso.blocks.stages import Diffuse, Pipeline, Stage, Take
from aniso.checks import Auto, Spacing
from aniso.colours import OPPONENT_NAMES, Axes, check_axes
from aniso.dispatch import takes_arrays
from aniso.memory import return_freed_memory
from aniso.models import ImageDriven
from aniso.noise import NoiseModel
from aniso.noise.compression import lost_variance
from aniso.noise.given import Noise, check_noise, find_noise
from aniso.noise.impulses import FILLED_NOISE, Impulses, look_for_impulses
from aniso.parameters import CONTRAST, NOISE, TIME, About
from aniso.schemes import FED, Cycle, Explicit, Scheme
from aniso.settings import EngineName, Progress, Settings
from aniso.stencil import DeltaStencil, Stencil
from aniso.verbs.candidates import choose_models, choose_times, grid_of, is_strong
from aniso.verbs.cautions import list_cautions, remark_on_change
from aniso.verbs.edge_contrast import check_contrast
from aniso.verbs.inpaint import FilledPlan, fill_unknown
from aniso.verbs.learned import (
    LARGEST_SLICED,
    METHOD,
    Learned,
    Method,
    RunNet,
    SliceNet,
    check_method,
    choose_level,
    explain_method,
    is_better,
    is_known,
    refuse_reason,
)
from aniso.verbs.mixture import AddWeighted, MeasureFlatness, Mixture, Weights, check_sums
from aniso.verbs.noise_map import NoiseMap
from aniso.verbs.plan import CONTRAST_UNIT, GREY, describe
from aniso.verbs.risk import Judge, Stop, expected_square, rejected_variance, variance_doubt
from aniso.verbs.similar import Similar, choose_similar
from aniso.verbs.source import ImageSource
from aniso.verbs.stabilise import (
    FillImpulses,
    MixChannels,
    Restore,
    Stabilise,
    decorrelate,
    grey_weights,
    is_gaussian,
    is_plain,
    mean_scale,
    mix_channels,
    remaining_levels,
    stabilise,
    stabilised_level,
    without_noise,
)
from aniso.verbs.trials import Candidates, Path, make_path

__all__ = ["DenoisePlan", "denoise"]

# Level of stabilised noise in bright regions, nominally 1, below which it is far from normal: single photons.
_NORMAL = 0.9
_NOISE = replace(
    NOISE,
    kinds=("gaussian", "poisson", "rician", "speckle"),
    auto="kind, level and correlation are estimated",
)
_UNLESS = ("method", "learned")
_CONTRAST, _TIME = (
    replace(each, auto="by the smallest expected error", unless=_UNLESS) for each in (CONTRAST, TIME)
)
_MIX = About(switch=True, meaning="mix several diffusions, or take the best single one", unless=_UNLESS)


@dataclass(frozen=True, kw_only=True)
class DenoisePlan(FilledPlan):
    """The values that :func:`aniso.denoise` used, and the error it expects.

    `noise` is the root mean square of the noise level over the image, if the level depends on the grey value.
    `model` is then a diffusion of the transformed image, and `contrast` its contrast in grey values.
    `start` are the weights of the unfiltered image in the mixture, and `paths` those of diffused ones.
    Without a mixture there is one path without weights, or none if the image is left unchanged. In volumes,
    `similar` are the weights of averages of similar voxels and of a net on slices, which are added. If the
    channels have common noise, `axes` are those on which it is independent, and `noise_models` are theirs.
    `choice` says which method is used, and why. With `learned`, the best single diffusion is not used.
    A plan that was `mapped` belongs to a map of noise levels, and cannot be applied without it. `cautions`
    are reasons to doubt the result, which are part of `remark`.
    """

    verb: ClassVar[str] = "denoise"
    on_tensors: ClassVar[bool] = True

    noise: float = describe("noise level", GREY, low=0)
    noise_models: tuple[NoiseModel, ...] = describe("model of the noise", parts=OPPONENT_NAMES)
    certainty: float = describe("its certainty, from 0 to 1", low=0, high=1)
    impulses: Impulses | None = describe("impulses")  # noqa: RUF009
    choice: str = describe("method")
    model: ImageDriven | None = describe("best single diffusion")  # noqa: RUF009
    contrast: float | None = describe("its contrast λ", CONTRAST_UNIT, low=0)
    time: float = describe("its time", low=0)
    single_error: float = describe("its expected error (root mean square)", GREY, low=0)
    expected_error: float = describe("expected error of the result", GREY, low=0)
    candidates: int = describe("diffusions computed", low=0)
    mixed: int = describe("images averaged", low=1)
    scheme: Scheme
    start: Weights | None = field(repr=False)
    paths: tuple[Path, ...] = field(repr=False)
    axes: Axes | None = field(repr=False)
    similar: Similar | None = field(repr=False)
    learned: Learned | None = describe("learned diffusion")  # noqa: RUF009
    mapped: bool = field(default=False, repr=False)
    cautions: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.axes is not None:
            check_axes(self.axes, self.channels)
        weights = [self.start, *(one for path in self.paths for one in path.weights)]
        used = [one for one in weights if one is not None]
        if len(self.noise_models) not in (1, self.channels):
            raise ValueError(
                f"a plan for {self.channels} channels has one model of the noise, or one for each channel, "
                f"got {len(self.noise_models)}."
            )
        if self.learned is not None and (used or self.paths):
            raise ValueError("a plan has a learned diffusion or paths of others, not both.")
        if self.mixed != max(len(used), 1):
            raise ValueError(f"the plan mixes {self.mixed} images, but has weights for {len(used)}.")
        if used:
            self._check_mixture(used)
        elif self.similar is not None:
            raise ValueError("a plan without a mixture has no averages of similar voxels.")
        elif self.learned is None and [path.model for path in self.paths] != (
            [] if self.model is None else [self.model]
        ):
            raise ValueError("without weights, a plan has the path of its model, or none without a model.")

    def _check_mixture(self, weights: list[Weights]) -> None:
        check_sums(weights, self.channels)
        if self.similar is not None:
            self.similar.check(self.channels)
        if not self._level > 0:
            raise ValueError(
                f"the noise level of a plan that mixes images must be positive, got {self.noise}."
            )
        stops = [(path.model, time) for path in self.paths for time in path.times]
        if self.model is not None and (self.model, self.time) not in stops:
            raise ValueError("the best diffusion of a plan must be one of its paths, at one of their times.")

    def _check_axes(self, source: object, axes: int, count: int) -> None:
        if self.mapped:
            raise ValueError(
                "this plan of denoise belongs to a map of noise levels, which is not part of it. Other "
                "images cannot be filtered with it: call denoise with noise=map for each of them."
            )
        super()._check_axes(source, axes, count)

    @property
    def _level(self) -> float:
        """The noise level of stabilised images."""
        return stabilised_level(self.noise_models)

    @property
    def unused(self) -> frozenset[str]:
        """Those of diffusions, or of the learned one."""
        learned = {"model", "contrast", "time", "single_error", "candidates", "mixed"}
        return frozenset({"learned"} if self.learned is None else learned)

    @property
    def remark(self) -> str | None:
        """Why the image is not, or hardly, changed; that the noise is in doubt; and other cautions."""
        smoothing = self.mixed > 1 or self.model is not None or self.learned is not None
        said = remark_on_change(
            self.noise,
            self.certainty,
            self.expected_error,
            smoothing=smoothing,
            filling=self.impulses is not None,
        )
        return " ".join(filter(None, (said, *self.cautions))) or None

    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float] | None:
        """Return the best single diffusion, as one of the image before it is stabilised."""
        if self.model is None or self.contrast is None:
            return None
        return replace(self.model, contrast=self.contrast), self.time  # type: ignore[call-arg]

    def pipeline(self, shape: tuple[int, ...], settings: Settings) -> Pipeline:
        """Return the diffusions one after another, each added to the mixture where it has weights."""
        settings = replace(settings, scheme=self.scheme)
        ndim = len(shape)
        mixing = self.mixed > 1
        stages: list[Stage] = []
        if self.start is not None:
            stages.append(AddWeighted("image", self.start, ndim))
        if mixing and self.model is None:
            stages.append(MeasureFlatness("image", self._level, ndim))
        # The best one first, since the weights depend on its flatness.
        for path in sorted(self.paths, key=lambda path: path.model != self.model):
            prepared = settings.prepare(path.model, shape)
            cycles: list[Cycle] = []
            looks: list[tuple[int, Stage]] = []
            for before, time, weights in zip((0.0, *path.times), path.times, path.weights, strict=False):
                cycles += prepared.plan(time - before)
                if mixing and path.model == self.model and time == self.time:
                    looks.append((len(cycles), MeasureFlatness("diffused", self._level, ndim)))
                if mixing and weights is not None:
                    looks.append((len(cycles), AddWeighted("diffused", weights, ndim)))
            target = "diffused" if mixing else "image"
            stages.append(Diffuse("image", target, prepared, tuple(cycles), tuple(looks), keep=not mixing))
        if self.learned is not None:
            if (reason := refuse_reason(settings)) is not None:
                raise ValueError(f"this plan has a learned diffusion, which cannot be used: {reason}.")
            stages += [RunNet(self.learned, settings, self.axes is not None), Take("learned", ndim)]
        if self.similar is not None:
            stages += self.similar.stages(self._level, settings, turned=self.axes is not None)
        if mixing:
            stages.append(Take("mixture", ndim))
        if stages and not is_plain(self.noise_models):
            stages = [Stabilise(self.noise_models, ndim), *stages, Restore(self.noise_models, ndim)]
        if stages and self.axes is not None:
            stages = [MixChannels(self.axes, False, ndim), *stages, MixChannels(self.axes, True, ndim)]
        if self.impulses is not None:
            stages = [FillImpulses(self.impulses, ndim), *stages]
        return Pipeline(shape, tuple(stages))


@takes_arrays(dask=None)
def denoise(
    image: npt.ArrayLike,
    *,
    noise: Annotated[Noise, _NOISE] = "auto",
    contrast: Annotated[float | Auto, _CONTRAST] = "auto",
    time: Annotated[float | Auto, _TIME] = "auto",
    mix: Annotated[bool | None, _MIX] = None,
    method: Annotated[Method | None, METHOD] = "auto",
    mask: npt.ArrayLike | None = None,
    keep_nan: bool = False,
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

    Kind, level and correlation of the noise are found by :func:`aniso.noise.estimate`. If its level depends
    on the grey value, a transform makes it uniform, and its exact unbiased inverse is applied at the end.
    Impulses (hot pixels, salt and pepper) are replaced by means of their neighbours.

    Images are denoised by a learned diffusion, :class:`aniso.nn.KernelDiffusionNet`, or by diffusions whose
    parameters are chosen, if their expected error is clearly smaller. The latter are always used for signals,
    volumes, images of single photons, and pixels that are not square.

    Several diffusions run, and Stein's unbiased risk estimate gives the mean squared error of each of them at
    each time, without knowledge of the image without noise: the squared change, minus the variance of the
    noise, plus twice that variance times the divergence, which is measured with a small random change of the
    image. The smallest estimate gives contrast and stopping time. Then all diffusions, each at its best time
    and at the times before and after it, are mixed with the weights that minimise the estimate, one set of
    weights for edges and one for flat regions. In large images, all of this is chosen on a few windows.

    The candidates are edge-enhancing diffusions with λ = 0.2, 0.45 and 0.9 of the noise level per pixel, and
    coherence-enhancing ones with 0.2 of it and two noise scales. For strong noise there are two more, with
    wider noise scales; for correlated noise, all scales and times are those of a coarser grid. Volumes have
    candidates of their own, and in a second step averages of similar voxels are mixed in, and the learned
    diffusion of slices where it is nearly as good.

    Parameters
    ----------
    image : array
        A signal (N,), an image (H, W) or a volume (D, H, W), with any number of channels along
        `channel_axis`. Never modified.
    noise : float, str, aniso.noise.NoiseModel, list or array
        Standard deviation of the noise in grey values; a model of :mod:`aniso.noise`; or a kind of which the
        rest is estimated: "gaussian", "poisson", "rician" or "speckle", also with a parameter, as in
        "rician:12". A list has one of them for each channel. An array with the axes of the image, without
        channels, is a map: the level at each pixel. By default, :func:`aniso.noise.estimate` finds all of it.
    contrast : float or "auto"
        λ in grey values per unit length: gradients above it are edges. With a number there is one candidate,
        edge-enhancing diffusion with this contrast.
    time : float or "auto"
        The diffusion time, in squared units of length.
    mix : bool, optional
        If False, or if `contrast` or `time` are given, the result is the best single diffusion.
    method : {"auto", "diffusion", "learned"}
        "diffusion" never uses the learned diffusion, "learned" always does, or raises a ValueError
        where it cannot, as for signals, volumes and pixels that are not square. The learned diffusion
        preserves the mean of each channel (of the stabilised image, if the noise level depends on the grey
        value) and never increases the Euclidean norm.
    mask : array of bool, optional
        True at pixels that are not to be trusted, with the axes of the image without channels; by default
        those that are NaN. They have no influence: they are filled in by :func:`aniso.inpaint` first. Dask
        arrays with NaN need a mask.
    keep_nan : bool
        If True, these pixels are NaN in the result.
    stencil : DeltaStencil or FreeStencil
        The spatial discretisation.
    spacing : float or one float per axis, optional
        Pixel spacing along each axis, without the channels.
    channel_axis : int, optional
        The axis of the channels.
    frame_axis : int, optional
        The axis of the frames of a time series, or of slices that are filtered one by one. All frames are
        filtered in the same way: the plan is made from several of them.
    engine, threads
        As for :func:`aniso.diffuse`.
    progress : bool or callable, optional
        True shows a bar on the terminal; a function is called as progress(done, 1.0).
    return_info : bool
        If True, also return the plan: the values used, which can filter further images in the same way.

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
    levels = NoiseMap.of(noise, image, channel_axis, frame_axis) if NoiseMap.is_map(noise) else None
    if levels is not None:
        image, noise = levels.divide(image), levels.level
    source, holes = fill_unknown(
        image,
        mask,
        spacing=spacing,
        channel_axis=channel_axis,
        frame_axis=frame_axis,
        engine=engine,
        threads=threads,
        progress=progress,
        keep_nan=keep_nan,
    )
    settings = Settings.check(
        len(source.shape), stencil=stencil, spacing=spacing, engine=engine, threads=threads
    )
    known = None if holes is None else holes.sample_known()
    plan = choose(
        source, settings, noise=noise, contrast=contrast, time=time, mix=mix, method=method, known=known
    )
    return_freed_memory()  # many small windows, of which large arrays could not use the space
    result = plan.filter(source, settings, progress)
    if levels is not None:
        result, plan = levels.multiply(result), replace(plan, mapped=True)
    return (result, plan) if return_info else result


def choose(
    source: ImageSource,
    settings: Settings,
    *,
    noise: Noise = "auto",
    contrast: float | Auto = "auto",
    time: float | Auto = "auto",
    mix: bool | None = None,
    method: Method | None = "auto",
    known: list[Mask] | None = None,
) -> DenoisePlan:
    """Return the diffusions of least risk in windows of the image; the arguments are those of `denoise`.

    `known` are masks of windows, True where pixels are to be trusted.
    """
    checks.instance("mix", mix, (bool, type(None)), "True, False or None", "mix=False")
    given_contrast = check_contrast(contrast)
    given_time = checks.number_or_auto("time", time, "the stopping time")
    free = mixing = mix is not False and given_contrast is None and given_time is None
    # From one time of the list to the next one tensor is enough; to a given time it is not.
    settings = replace(settings, scheme=FED(1) if given_time is None else Explicit())
    check_noise(noise)
    windows = sample = source.checked_sample()
    if isinstance(settings.stencil, DeltaStencil):  # others fit the image as it is
        windows, known = orient(windows, known, settings.spacings)
    impulses, filling = look_for_impulses(windows), 0.0
    if impulses is not None:
        windows, filling = impulses.fill_windows(windows)
    unknown = None if known is None else [~one for one in known]
    found = find_noise(noise, windows, unknown)
    if len(settings.spacings) == 3:
        return_freed_memory()  # of blocks, into which volumes do not fit
    common = decorrelate(found, windows, unknown) if isinstance(noise, str) and noise == "auto" else None
    axes = None
    if common is not None:
        axes, found = common
        windows = [mix_channels(axes, window) for window in windows]
    level = stabilised_level(found.models)
    stabilised = [stabilise(found.models, window) for window in windows]
    # Correlated noise is nearly white on a coarser grid.
    pixel = estimates.pixel_size(settings.spacings) * grid_of(found.correlation)
    stabilised_unit = found.level / level if min(found.level, level) > 0 else 1.0  # in grey values
    if given_contrast is not None:
        given_contrast /= stabilised_unit
    levels = remaining_levels(found.models, stabilised)
    normal = levels is None or np.quantile(np.concatenate([one.ravel() for one in levels]), 0.95) >= _NORMAL
    mixing = mixing and normal  # weights rest on the estimate of the error, which is for normal noise
    ndim, strong = len(settings.spacings), is_strong(level, stabilised)
    models = choose_models(level, given_contrast, pixel, ndim, strong=strong, normal=normal)
    times = choose_times(pixel, ndim) if given_time is None else [given_time]
    levels = without_noise(levels, level, windows, known)
    candidates = Candidates(models, times, settings, source.alive, mixing, leave=given_time is None)

    method = check_method(method, settings, free=free)
    judge = Judge(stabilised, level, found.correlation, levels)
    best, mixture, learned, similar, tried = judge.start, Mixture(), None, None, 0
    used, risk = best, math.inf
    if method != "learned" or level == 0:
        outcome = candidates.try_all(judge, found)
        best, mixture, risk, tried = outcome.best, outcome.mixture, outcome.risk, len(models)
        used = best
        if ndim == 3 and len(mixture) > 1:
            sure = found.certainty < 1 and not found.compressed
            slices = method == "auto" and is_known(found) and math.prod(source.shape) <= LARGEST_SLICED
            net = SliceNet(settings, source.alive, turned=axes is not None) if slices else None
            similar, risk = choose_similar(judge, best, mixture, net, sure=sure, settings=settings)
    plain, gaussian = is_plain(found.models), is_gaussian(found.models)
    doubt = judge.level**2 * variance_doubt(
        known=found.certainty == 1, gaussian=gaussian, compressed=found.compressed
    )
    net_fits = mixing and refuse_reason(settings) is None and is_known(found)
    stops = {"diffusion": (best, risk)}
    if level > 0 and (method == "learned" or (method == "auto" and net_fits)):
        stage, stop = choose_level(judge, settings, source.alive, turned=axes is not None)
        if method == "auto" or not plain:
            stop = stage.judge_windows(judge)
        if method == "learned" or is_better(judge, stop, best, outcome.crossed, 0.0 if gaussian else doubt):
            used, mixture, risk, learned = stop, Mixture(), judge.risk(stop), stage.learned
            stops = {"learned": (stop, risk)} | stops
        else:
            stops["learned"] = stop, judge.risk(stop)
    # Errors of bright pixels count more in grey values, and are often larger.
    shift = 0.0
    if not plain:
        shift = judge.weighted_risk(used, grey_weights(found.models, windows)) - judge.risk(used)
    scale = mean_scale(found.models, windows)
    total = found.level if plain else scale * level  # in grey values

    missed = rejected_variance(found) + (lost_variance(windows) if found.compressed else 0.0)
    if impulses is not None:
        missed += impulses.share * max(filling - FILLED_NOISE * total**2, 0.0)

    def expected_error(stop: Stop, risk: float, part: float = 0.5) -> float:
        # What remains of the noise itself, since estimates of small errors and divergences may be negative.
        least = judge.remaining * max(stop.divergence, 0.0) * judge.level**2
        square = scale**2 * expected_square(risk + shift, part * least, doubt)
        return math.sqrt(square + missed)

    errors = {name: expected_error(*one) for name, one in stops.items()} if len(stops) > 1 else {}
    sliced = similar is not None and similar.learned is not None
    return DenoisePlan(
        **source.plan_fields(settings),
        noise=total,
        noise_models=found.models,
        certainty=found.certainty,
        impulses=impulses,
        choice=explain_method(method, settings, found, errors, free=free, normal=normal, sliced=sliced),
        model=best.model,
        contrast=None if best.model is None else best.model.contrast * stabilised_unit,  # type: ignore[attr-defined]
        time=best.time,
        single_error=expected_error(best, judge.risk(best), 1.0),
        expected_error=expected_error(used, risk),
        candidates=tried,
        mixed=max(len(mixture), 1),
        scheme=settings.scheme,
        start=next((weights for stop, weights in mixture if stop.model is None), None),
        paths=tuple(path for model in models if (path := make_path(model, times, mixture)) is not None),
        axes=axes,
        similar=similar,
        learned=learned,
        cautions=list_cautions(judge, used, found, sample, noise=total, fits=learned is None or net_fits),
    )
