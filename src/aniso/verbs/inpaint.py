"""inpaint(): fill in unknown pixels by diffusion along edges."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from aniso import arrays, checks
from aniso.arrays import Array, Mask, NotFiniteError
from aniso.blocks import lazy
from aniso.blocks.stages import Pipeline
from aniso.checks import Auto, Spacing
from aniso.dispatch import takes_arrays
from aniso.estimates import pixel_size
from aniso.models import EdgeContinuing, ImageDriven
from aniso.parameters import CONTRAST, RHO, SIGMA, About
from aniso.settings import EngineName, Progress, Settings, report_progress
from aniso.stencil import DeltaStencil
from aniso.verbs import edge_contrast
from aniso.verbs.holes import HoledSource
from aniso.verbs.inpaint_solver import Convergence, Solver, nothing_known
from aniso.verbs.plan import CONTRAST_UNIT, Plan, describe
from aniso.verbs.source import ImageSource

__all__ = ["InpaintPlan", "inpaint"]

# Sharper members of the family leave specks around isolated known pixels.
_STENCIL = DeltaStencil(alpha=0.0, gamma=0.0)
# The contrast, as a part of the usual difference between neighbours, and at least as a part of the spread.
_SHARE, _LEAST = 0.5, 0.005
# The maximum number of cycles, and their number if no window has both known and unknown pixels.
_MOST_CYCLES, _USUAL_CYCLES = 100, 20
_MAX_CYCLES = About(low=1, whole=True, advanced=True, meaning="maximum number of cycles", auto="100")
_TOLERANCE = About(
    high=1.0,
    open_low=True,
    slider=(1e-4, 0.1),
    meaning="stop when a cycle changes the unknown pixels by less than this fraction of the spread",
)


@dataclass(frozen=True, kw_only=True)
class InpaintPlan(Plan):
    """The values that :func:`aniso.inpaint` used, and the residual it reached.

    `unknown` and `residual` are those of the windows from which the plan was chosen; `residual` is None if
    none of them had both known and unknown pixels.
    """

    verb: ClassVar[str] = "inpaint"

    unknown: float = describe("fraction of unknown pixels", low=0, high=1)
    contrast: float = describe("contrast λ", CONTRAST_UNIT, low=0)
    sigma: float = describe("noise scale σ", low=0)
    rho: float = describe("integration scale ρ", low=0)
    cycles: int = describe("cycles on the finest grid", low=0, high=1e7)
    residual: float | None = describe("change in the last cycle (of the spread)", low=0)
    tolerance: float = describe("tolerance", low=0, high=1)

    @property
    def converged(self) -> bool:
        """Whether the residual reached the tolerance."""
        return self.residual is not None and self.residual <= self.tolerance

    @property
    def model(self) -> EdgeContinuing:
        """The model on all grids."""
        return EdgeContinuing(self.contrast, self.sigma, self.rho, "charbonnier")

    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float] | None:
        """Return the model; it diffuses until nothing changes."""
        return EdgeContinuing(self.contrast, self.sigma, self.rho), math.inf

    def solver(self, shape: tuple[int, ...], settings: Settings) -> Solver:
        """Return what fills arrays of this shape (without channels)."""
        return Solver(settings.prepare(self.model, shape))

    def pipeline(self, shape: tuple[int, ...], settings: Settings) -> Pipeline:
        """Return the cycles on the finest grid, from a start to which the coarser grids have led.

        Known pixels are "fixed" in the state.
        """
        return self.solver(shape, settings).pipeline(shape, self.cycles)

    def check_source(self, image: Any, mask: Any, **options: Any) -> HoledSource:
        """Return an image with unknown pixels, checked."""
        axes = options["channel_axis"], options["progress"], options["frame_axis"]
        return HoledSource.check_holes(image, mask, *axes)

    def filter(self, source: Any, settings: Settings, progress: Progress) -> Any:
        """Fill in the unknown pixels of a checked array."""
        settings = self.fit_settings(source, settings)
        with report_progress(progress, 1.0) as report:
            return source.map(lambda one, report: self._fill(one, settings, report), report)

    def _fill(self, source: HoledSource, settings: Settings, report: Callable[[float], object]) -> Any:
        solver = self.solver(source.shape, settings)
        if source.is_lazy:
            return _fill_lazily(source, solver, self.cycles)
        pixels = source.pixels
        filled = solver.diffuse(solver.start(pixels, source.known), source.known, self.cycles, report=report)
        _clip(filled, pixels, source.known)
        return arrays.channels_back(filled, source.channel_axis)


@takes_arrays(dask=None)
def inpaint(
    image: npt.ArrayLike,
    mask: npt.ArrayLike | None = None,
    *,
    contrast: Annotated[
        float | Auto, replace(CONTRAST, auto="from the differences of known neighbours")
    ] = "auto",
    sigma: Annotated[float | Auto, replace(SIGMA, auto="0.7 pixels")] = "auto",
    rho: Annotated[float | Auto, replace(RHO, auto="0.8 pixels")] = "auto",
    tolerance: Annotated[float, _TOLERANCE] = 5e-3,
    max_cycles: Annotated[int | None, _MAX_CYCLES] = None,
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
    frame_axis: int | None = None,
    engine: EngineName | None = None,
    threads: int | None = None,
    progress: Progress = None,
    return_info: bool = False,
) -> Any:
    """Fill in unknown pixels; known pixels are returned unchanged.

    Diffusion along edges (:class:`aniso.models.EdgeContinuing` with the Charbonnier diffusivity) runs from
    the known pixels into the unknown ones until it converges. It begins on a coarse grid, whose pixels are
    means of the known ones, and each grid gives the start of the next finer one. New values lie between the
    least and the greatest known value of their channel. In large images, the contrast and the number of
    cycles until convergence are chosen on a few windows.

    Parameters
    ----------
    image : array
        A signal (N,), an image (H, W) or a volume (D, H, W), with any number of channels along
        `channel_axis`. The values of unknown pixels do not matter. Never modified.
    mask : array of bool, optional
        True (or 1) where a pixel is unknown, as in scikit-image, with the shape of the image without
        channels, or that of one frame. By default pixels that are NaN in at least one channel are unknown.
    contrast : float or "auto"
        λ in grey values per unit length: stronger gradients are edges. "auto" takes ½·(mean of ∣d∣^¼)⁴ over
        the differences d of known neighbours, per unit length (for colours, their root mean square), and
        0.005 of the standard deviation of the known values at least. So the result scales with the image.
        If too few known pixels are neighbours, pairs s = 2, 4, 8, … pixels apart are used, with d/√s.
    sigma, rho : float or "auto"
        Standard deviations of the Gaussians for presmoothing and integration, in the units of `spacing`; by
        default 0.7 and 0.8 times the geometric mean of the spacing.
    tolerance : float
        Stop when the unknown pixels change in a cycle of 8 FSI steps by at most this, as root mean square and
        as a fraction of the standard deviation of the known values. If the image is sampled, this holds for
        each of the windows.
    max_cycles : int, optional
        The maximum number of cycles, 100 by default.
    channel_axis : int, optional
        The axis of the channels. They share one diffusion tensor, so that their edges agree.
    spacing, frame_axis, engine, threads, progress, return_info
        As for :func:`aniso.denoise`.

    Returns
    -------
    array
        An array of the same kind and shape. float32 and float64 are kept; integers and float16 are converted
        to float32, without rescaling.
    aniso.plans.InpaintPlan
        Only with ``return_info=True``.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> truth = aniso.samples.shapes(size=64, noise=0).truth
    >>> unknown = np.random.default_rng(0).random(truth.shape) > 0.2
    >>> filled, plan = aniso.inpaint(truth, unknown, return_info=True)
    >>> bool((filled[~unknown] == truth[~unknown]).all()), plan.converged
    (True, True)
    """
    source = HoledSource.check_holes(image, mask, channel_axis, progress, frame_axis)
    settings = Settings.check(len(source.shape), spacing=spacing, engine=engine, threads=threads)
    wishes: dict[str, Any] = {
        "contrast": contrast,
        "sigma": sigma,
        "rho": rho,
        "tolerance": tolerance,
        "max_cycles": max_cycles,
    }
    with report_progress(progress, 1.0) as report:
        plan, solution = choose_and_solve(source, settings, **wishes, report=report)
        if solution is None:
            settings = replace(settings, stencil=plan.stencil)
            result = plan.filter(source, settings, lambda done, _: report(done))
        else:
            result = arrays.channels_back(solution, channel_axis)
    plan.remember(source, result)
    return (result, plan) if return_info else result


def choose_and_solve(
    source: HoledSource,
    settings: Settings,
    *,
    contrast: float | Auto = "auto",
    sigma: float | Auto = "auto",
    rho: float | Auto = "auto",
    tolerance: float = 5e-3,
    max_cycles: int | None = None,
    report: Callable[[float], object] = lambda done: None,
) -> tuple[InpaintPlan, Array | None]:
    """Return contrast and number of cycles for windows of the image; the arguments are those of `inpaint`.

    Return also the result (channels, …), if a single window was all of an array in memory.
    """
    remedy = f"A good choice is max_cycles={_MOST_CYCLES}."
    most = _MOST_CYCLES if max_cycles is None else checks.whole("max_cycles", max_cycles, remedy)
    if most < 1:
        raise ValueError(f"max_cycles must be at least 1, got {max_cycles}. {remedy}")
    wanted, pixel = edge_contrast.check_contrast(contrast), pixel_size(settings.spacings)
    sigma, rho = edge_contrast.choose_scales((0.7 * pixel, 0.8 * pixel), sigma=sigma, rho=rho)
    tolerance = checks.within("tolerance", tolerance, 0.0, 1.0, "it is a fraction.", open_low=True)
    settings = replace(settings, stencil=_STENCIL)
    windows, masks = zip(*source.sample_holes(), strict=True)
    spread, edges = _measure(windows, masks, settings.spacings, wanted)
    count = sum(known.size for known in masks)
    plan = InpaintPlan(
        **source.plan_fields(settings),
        unknown=float(sum(known.size - np.count_nonzero(known) for known in masks) / count),
        contrast=edges,
        sigma=sigma,
        rho=rho,
        cycles=0,
        residual=0.0,
        tolerance=tolerance,
    )
    solver = plan.solver(source.shape, settings)
    whole = len(windows) == 1
    in_memory = whole and source.frame_axis is None and not source.is_lazy
    if all(known.all() for known in masks):
        return plan, windows[0].copy() if in_memory else None
    if whole and not masks[0].any():
        raise nothing_known()
    courses = []
    for pixels, known in zip(windows, masks, strict=True):
        if known.any() and not known.all():
            course = Convergence(spread, tolerance, report if whole else lambda done: None)
            filled = solver.diffuse(solver.start(pixels, known), known, most, course)
            courses.append(course)
    plan = replace(
        plan,
        cycles=max((one.cycles for one in courses), default=min(_USUAL_CYCLES, most)),
        residual=max((one.residual for one in courses), default=None),
    )
    if not in_memory:
        return plan, None
    _clip(filled, windows[0], masks[0])
    return plan, filled


@functools.wraps(choose_and_solve)
def choose(*given: Any, **wishes: Any) -> InpaintPlan:
    """Return the plan alone."""
    return choose_and_solve(*given, **wishes)[0]


def _measure(
    windows: tuple[Array, ...], masks: tuple[Mask, ...], spacings: tuple[float, ...], contrast: float | None
) -> tuple[float, float]:
    """Return the standard deviation of known values (root mean square over channels), and the contrast."""
    for pixels, known in zip(windows, masks, strict=True):
        if known.any():
            edge_contrast.check_sums(pixels[:, known])
    spread = math.sqrt(np.mean(np.square(edge_contrast.spread_of(windows, masks))))
    if contrast is None:
        usual = edge_contrast.usual_difference(windows, spacings, masks)
        contrast = edge_contrast.choose_contrast(_SHARE * usual, _LEAST * spread / pixel_size(spacings))
    return spread, contrast


def _clip(filled: Array, pixels: Array, known: Mask) -> None:
    """Limit each channel to the range of its known values."""
    for channel, given in zip(filled, pixels, strict=True):
        values = given[known]
        np.clip(channel, values.min(), values.max(), out=channel)


def _fill_lazily(source: HoledSource, solver: Solver, cycles: int) -> Any:
    """Return a Dask array with the same chunks, filled."""
    pixels, known = source.pixels, source.known
    start = solver.start_lazily(pixels, known)
    filled: Any = lazy.run_pipeline(start, 0, solver.pipeline(source.shape, cycles), known)
    low, high = source.limits(pixels)
    filled = np.where(known, pixels, np.maximum(np.minimum(filled, high), low))
    return arrays.channels_back(filled.rechunk(source.channels.chunks), source.channel_axis)


def fill_unknown(
    image: Any,
    mask: Any,
    *,
    spacing: Spacing | None,
    channel_axis: int | None,
    frame_axis: int | None,
    engine: EngineName | None,
    threads: int | None,
    progress: Progress,
    keep_nan: bool,
) -> tuple[ImageSource, HoledSource | None]:
    """Return an image for other verbs, with unknown pixels filled in, and where they were, if anywhere.

    They are those that are True in the mask, by default those that are NaN. With `keep_nan` they are NaN in
    results.
    """
    checks.instance("keep_nan", keep_nan, (bool,), "True or False", "keep_nan=True")
    if mask is None:
        try:
            return ImageSource.check(image, channel_axis, progress, frame_axis), None
        except NotFiniteError:  # pixels are looked at once, if all of them are known
            pass
    holes = HoledSource.check_holes(image, mask, channel_axis, progress, frame_axis)
    axes: Any = {"channel_axis": channel_axis, "frame_axis": frame_axis}
    filled = inpaint(image, mask, spacing=spacing, engine=engine, threads=threads, **axes)
    source = ImageSource.check(filled, channel_axis, progress, frame_axis)
    return (replace(source, finish=holes.hide) if keep_nan else source), holes


class FilledPlan(Plan):
    """A plan of a verb for which unknown pixels are filled in first."""

    fills_first: ClassVar[bool] = True

    def check_source(self, image: Any, mask: Any, **options: Any) -> ImageSource:
        """Return the image with unknown pixels filled in."""
        return fill_unknown(image, mask, spacing=self.spacings, **options)[0]
