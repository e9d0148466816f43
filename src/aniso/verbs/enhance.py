"""enhance(): coherence enhancement of lines and flow-like patterns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from aniso import checks
from aniso.arrays import Array, Mask
from aniso.blocks.sample import orient
from aniso.blocks.stages import Diffuse, Pipeline, Stage, State, Take, whole_region
from aniso.checks import Auto, Spacing
from aniso.dispatch import takes_arrays
from aniso.estimates import pixel_size
from aniso.models import CoherenceEnhancing, ImageDriven
from aniso.noise.given import find_noise
from aniso.noise.level import choose_noise
from aniso.parameters import CONTRAST, NOISE, PLATES, TIME, About
from aniso.schemes import FED
from aniso.settings import EngineName, Progress, Settings
from aniso.stencil import DeltaStencil, Stencil
from aniso.verbs.corrections import PUT_BACK, Correction, FillGaps, KeepToLines, PutBack
from aniso.verbs.extension import Extend
from aniso.verbs.inpaint import FilledPlan, fill_unknown
from aniso.verbs.line_scales import CYCLES, LineScales, check_wavelength
from aniso.verbs.plan import CONTRAST_UNIT, GREY, describe
from aniso.verbs.source import ImageSource

__all__ = ["EnhancePlan", "enhance"]

# How often gaps are filled and diffusion starts again.
_ROUNDS = 3
# The certainty from which on an estimate of correlated or signal-dependent noise is used.
_CERTAIN = 0.25
# What is usual is learned from windows up to this number of pixels (with margins) times the wavelength in
# pixels, by the number of axes: the time that it takes is about proportional to both.
_LEARNED = {2: 6e6, 3: 4e6}

_WAVELENGTH = About(
    unit="length",
    open_low=True,
    slider=(4.0, 40.0),
    meaning="distance between lines; all scales follow from it",
)
_COHERENCE = replace(CONTRAST, meaning="structures that are more coherent than this are enhanced")
_REFINE = About(switch=True, meaning="close gaps and put back lost structure, or diffuse only once")


@dataclass(frozen=True, kw_only=True)
class EnhancePlan(FilledPlan):
    """The values that :func:`aniso.enhance` used.

    `first` is the time of the first diffusion. `departures` has, for each time that gaps are filled, the
    usual departure of the image from the diffused one, and `energies`, for each scale at which structure is
    put back, twice the usual energy of what was lost. `window` is the width of the Gaussian within which
    lines must be coherent. Like `interrupted`, `put_back` and `lines`, they are measured on windows of the
    image.
    """

    verb: ClassVar[str] = "enhance"

    noise: float = describe("noise level", GREY)
    wavelength: float = describe("line spacing")
    contrast: float = describe("contrast λ", CONTRAST_UNIT)
    sigma: float = describe("noise scale σ")
    rho: float = describe("integration scale ρ")
    time: float = describe("time of each diffusion")
    diffusions: int = describe("diffusions")
    interrupted: float = describe("fraction treated as gaps in lines")
    put_back: float = describe("fraction of structure restored")
    lines: float = describe("fraction with lines")
    first: float
    window: float
    plates: bool
    departures: tuple[float, ...]
    energies: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.spacings) < 2:
            raise ValueError(f"a plan of enhance is for images or volumes, got the spacings {self.spacings}.")
        if min(self.wavelength, self.time, self.first, self.window) <= 0:
            raise ValueError("wavelength, window and times of a plan of enhance must be positive.")
        if len(self.departures) != max(self.diffusions - 1, 0):
            raise ValueError("a plan of enhance must have a departure for each diffusion but the first one.")
        if len(self.energies) != (len(PUT_BACK) if self.departures else 0):
            raise ValueError(
                f"a plan of enhance with several diffusions must have {len(PUT_BACK)} energies, others none."
            )

    @property
    def model(self) -> CoherenceEnhancing:
        """The model of all diffusions."""
        return CoherenceEnhancing(self.contrast, self.sigma, self.rho, plates=self.plates)

    def check_fit(self, source: ImageSource) -> None:
        """Reject arrays that are much smaller than the distance between lines, since margins are as wide."""
        super().check_fit(source)
        longest = max(n * h for n, h in zip(source.shape, self.spacings, strict=True))
        if self.departures and self.wavelength > 4 * longest:
            raise ValueError(
                f"this plan of enhance is for lines at a distance of {self.wavelength:g}, got {source}, "
                f"whose longest side is {longest:g}. Make a plan for such images."
            )

    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float] | None:
        """Return a diffusion; None if the image is left unchanged."""
        return (self.model, self.time) if self.diffusions else None

    def pipeline(self, shape: tuple[int, ...], settings: Settings) -> Pipeline:
        """Return a diffusion, or several of them with corrections on a grid with margins."""
        ndim = len(shape)
        margins = (0,) * ndim
        if self.departures:
            margins = tuple(math.ceil(self.wavelength / h) for h in self.spacings)
        grid = tuple(n + 2 * m for n, m in zip(shape, margins, strict=True))
        prepared = replace(settings, scheme=FED(CYCLES)).prepare(self.model, grid)
        first, later = (tuple(prepared.plan(time)) for time in (self.first, self.time))
        if not self.departures:
            return Pipeline(shape, (Diffuse("image", "image", prepared, first),) if self.diffusions else ())
        stages: list[Stage] = [
            Extend(shape, margins, self.spacings, self.sigma, self.rho),
            Diffuse("image", "diffused", prepared, first),
        ]
        wavelengths = tuple(self.wavelength / h for h in self.spacings)
        # Fibres are single; lines in images and layers are not.
        patterns = self.plates or ndim == 2
        for number, departure in enumerate(self.departures, 1):
            last = number == len(self.departures)
            stages.append(FillGaps(wavelengths, settings.threads, departure, last=last, patterns=patterns))
            stages.append(Diffuse("diffused", "diffused", prepared, later))
        parts = (self.spacings, self.wavelength, self.window, self.noise, settings.threads)
        stages.append(KeepToLines(shape, margins, *parts))
        for part, energy in zip(PUT_BACK, self.energies, strict=True):
            stages.append(PutBack(wavelengths, settings.threads, energy, part))
        return Pipeline(shape, (*stages, Take("diffused", ndim)), margins)


@takes_arrays(dask=None)
def enhance(
    image: npt.ArrayLike,
    *,
    noise: Annotated[float | Auto, NOISE] = "auto",
    wavelength: Annotated[float | Auto, _WAVELENGTH] = "auto",
    contrast: Annotated[float | Auto, _COHERENCE] = "auto",
    time: Annotated[float | Auto, replace(TIME, auto="from the wavelength and the noise")] = "auto",
    plates: Annotated[bool, PLATES] = True,
    refine: Annotated[bool | None, _REFINE] = None,
    mask: npt.ArrayLike | None = None,
    keep_nan: bool = False,
    stencil: Stencil = DeltaStencil(alpha=0.45),  # noqa: B008 (frozen)
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
    frame_axis: int | None = None,
    engine: EngineName | None = None,
    threads: int | None = None,
    progress: Progress = None,
    return_info: bool = False,
) -> Any:
    """Remove noise from lines, and in volumes from layers, and close their gaps.

    Coherence-enhancing diffusion, with scales that follow from the distance between the lines, and with four
    corrections:

    - The image is extended beyond its boundary along its lines, since mirroring would bend them.
    - Gaps weaken the lines next to them. Where the image is significantly fainter than the diffused one, a
      line is considered interrupted, and diffusion starts again with those pixels filled in, three times.
    - Diffusion draws lines into noise. The result is kept only where lines are significant: where structure
      at their distance has one direction, more clearly than (possibly correlated) noise would by chance, and
      more energy than noise. Elsewhere noise is smoothed by a Gaussian, and other structure is left alone.
    - Diffusion removes strongly curved structures. Where the residual is significantly larger than
      elsewhere, it is added again, smoothed at scales from coarse to fine.

    What is significant, and all parameters, are determined on windows of a large image, see
    :class:`aniso.Plan`.

    Parameters
    ----------
    image : array
        An image (H, W) or a volume (D, H, W), with any number of channels along `channel_axis`. Never
        modified.
    noise : float or "auto"
        Standard deviation of the noise in grey values; by default that of :func:`aniso.noise.estimate`, or
        :func:`aniso.estimates.noise_level` where hardly any place is flat.
    wavelength : float or "auto"
        Distance between lines in units of length; :func:`aniso.estimates.wavelength` by default.
    contrast : float or "auto"
        λ in grey values per unit length: structures whose coherence exceeds it are enhanced. By default
        0.39 of :func:`aniso.estimates.contrast` (λ² is 0.15 of the typical coherence), in volumes 0.2 of it.
    time : float or "auto"
        Time of a diffusion, in squared units of length. By default 1.2 times the squared wavelength times
        noise over signal, but at least 0.1 and at most 1 of the squared wavelength; the first of the
        diffusions takes at least 0.35 of it. In volumes 0.1 (between 0.03 and 0.12, 0.05 for the first) with
        plates and 0.3 (0.1, 0.4, 0.2) without.
    plates : bool
        For volumes: if True, plates (layers, membranes) are structures too; False is for fibres and vessels,
        see :class:`aniso.CoherenceEnhancing`. Has no effect on images.
    refine : bool, optional
        If False, diffuse only once, without the four corrections.
    mask, keep_nan, stencil, spacing, channel_axis, frame_axis, engine, threads, progress, return_info
        As for :func:`aniso.denoise`.

    Returns
    -------
    array
        An array of the same kind and shape. float32 and float64 are kept; integers and float16 are converted
        to float32, without rescaling.
    aniso.plans.EnhancePlan
        Only with ``return_info=True``.

    Examples
    --------
    >>> import aniso
    >>> rings = aniso.samples.rings(96)
    >>> result, plan = aniso.enhance(rings.image, return_info=True)
    >>> bool(abs(result - rings.truth).mean() < 0.3 * abs(rings.image - rings.truth).mean())
    True
    >>> bool((result < 127.5)[rings.gaps].mean() > 0.9)
    True
    """
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
    if len(source.shape) < 2:
        raise ValueError(
            "image must have at least two axes besides the channels, got shape "
            f"{source.array.shape}: a signal has no lines. Use denoise for signals."
        )
    settings = Settings.check(
        len(source.shape), stencil=stencil, spacing=spacing, engine=engine, threads=threads
    )
    plan = choose(
        source,
        settings,
        noise=noise,
        wavelength=wavelength,
        contrast=contrast,
        time=time,
        plates=plates,
        refine=refine,
        known=None if holes is None else holes.sample_known(),
    )
    result = plan.filter(source, settings, progress)
    return (result, plan) if return_info else result


def choose(
    source: ImageSource,
    settings: Settings,
    *,
    noise: float | Auto = "auto",
    wavelength: float | Auto = "auto",
    contrast: float | Auto = "auto",
    time: float | Auto = "auto",
    plates: bool = True,
    refine: bool | None = None,
    known: list[Mask] | None = None,
) -> EnhancePlan:
    """Return the scales of windows of the image and what is usual in them; arguments as for `enhance`.

    `known` are masks of windows, True where pixels are to be trusted.
    """
    checks.instance("refine", refine, (bool, type(None)), "True, False or None", "refine=False")
    checks.instance("plates", plates, (bool,), "True or False", "plates=False for fibres")
    check_wavelength(wavelength, source.shape, settings.spacings)
    windows = source.checked_sample()
    if isinstance(settings.stencil, DeltaStencil):  # others fit the image as it is
        windows, known = orient(windows, known, settings.spacings)
    source.alive()
    level = _choose_level(noise, windows, known)
    wishes: dict[str, Any] = {"wavelength": wavelength, "contrast": contrast, "time": time, "plates": plates}
    estimates = []
    for window in windows:
        source.alive()
        estimates.append(LineScales.estimate(window, settings.spacings, noise=level, **wishes))
    scales = LineScales.combine(estimates)
    rounds = 0 if scales.flat or refine is False else _ROUNDS
    plan = EnhancePlan(
        **source.plan_fields(settings),
        noise=level,
        wavelength=scales.wavelength,
        contrast=scales.contrast,
        sigma=scales.sigma,
        rho=scales.rho,
        time=scales.time,
        diffusions=0 if scales.flat else 1 + rounds,
        interrupted=0.0,
        put_back=0.0,
        lines=scales.lines,
        first=scales.first,
        window=scales.window,
        plates=plates,
        departures=(0.0,) * rounds,
        energies=(0.0,) * len(PUT_BACK) if rounds else (),
    )
    if not rounds:
        return plan
    # Nothing departs from a constant.
    lined = [window for window, one in zip(windows, estimates, strict=True) if not one.flat]
    return _learn(plan, lined, settings, source.alive)


def _choose_level(noise: float | Auto, windows: list[Array], known: list[Mask] | None) -> float:
    """Return the given noise level, or that of known pixels of the windows.

    If their noise is not certain, because hardly any place is flat, it is the median of what second
    differences say, which resists lines.
    """
    if checks.number_or_auto("noise", noise, "the standard deviation of the noise", open_low=False) is None:
        found = find_noise("auto", windows, None if known is None else [~one for one in known])
        if found.certainty >= _CERTAIN:
            return found.level
    return float(np.median([choose_noise(noise, window) for window in windows]))


def _learn(
    plan: EnhancePlan, windows: list[Array], settings: Settings, alive: Callable[[], object]
) -> EnhancePlan:
    """Return the plan with what is usual in windows of the image: they are enhanced side by side.

    `alive` is called on the way.
    """
    pipeline = plan.pipeline(windows[0].shape[1:], settings)
    region = whole_region(pipeline.grid)
    inner = tuple(slice(m, m + n) for m, n in zip(pipeline.margins, pipeline.shape, strict=True))
    work = math.prod(pipeline.grid) * plan.channels * plan.wavelength / pixel_size(plan.spacings)
    count = max(int(_LEARNED[len(inner)] / work), 1)
    states: list[State] = [{"image": window} for window in windows[:count]]
    usual: dict[type[Stage], list[float]] = {FillGaps: [], PutBack: []}
    corrected: dict[type[Stage], list[Array]] = {}
    for stage in pipeline.stages:
        if not isinstance(stage, Correction):
            for state in states:
                stage.run(state, region, alive)
            continue
        observed = []
        for state in states:
            alive()
            observed.append(stage.observe(state))
        differences = np.concatenate([np.abs(one[0]).ravel() for one in observed])
        # What is constant or left alone, except for rounding, does not count.
        differences = differences[differences >= 1e-9 * differences.max()]
        quantile, factor = stage.quantiles[len(inner)]
        stage = replace(stage, usual=factor * float(np.quantile(differences, quantile)))
        usual[type(stage)].append(stage.usual)
        corrected[type(stage)] = []
        for state, one in zip(states, observed, strict=True):
            alive()
            corrected[type(stage)].append(stage.correct(state, *one)[inner])
    return replace(
        plan,
        departures=tuple(usual[FillGaps]),
        energies=tuple(usual[PutBack]),
        interrupted=float(np.mean(corrected[FillGaps])),
        put_back=float(np.mean(np.greater(corrected[PutBack], 0.5))),
    )
