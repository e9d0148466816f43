"""upsample(): a finer image with given block means, by diffusion along edges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from aniso import checks
from aniso.blocks.stages import Pipeline
from aniso.checks import Auto, Spacing
from aniso.dispatch import takes_arrays
from aniso.estimates import pixel_size
from aniso.models import EdgeContinuing, ImageDriven
from aniso.parameters import CONTRAST, RHO, SIGMA, TIME, About
from aniso.schemes import FSI
from aniso.settings import EngineName, Progress, Settings
from aniso.stencil import DeltaStencil
from aniso.verbs import edge_contrast
from aniso.verbs.plan import CONTRAST_UNIT, UNKNOWN_COORDINATES, Plan, describe
from aniso.verbs.projection import DiffuseProjected, FinishProjected, Refine
from aniso.verbs.source import ImageSource

__all__ = ["UpsamplePlan", "upsample"]

# As dissipative as the longest steps allow.
_STENCIL = DeltaStencil(alpha=0.25, gamma=0.0)
# The contrast, as a part of the usual difference between neighbours, and at least as a part of the spread.
_SHARE, _LEAST = 0.3, 0.003
# Number of FSI cycles.
_CYCLES = 2
_LARGEST = 8
_TIME = replace(TIME, open_low=False, auto="8 squared pixels of the input")
_FACTOR = About(
    unit="×",
    low=1,
    high=_LARGEST,
    whole=True,
    choices=(2, 3, 4, 6, 8),
    meaning="how many times finer the result is",
    needed=True,
    per_axis=True,
)
_ISOTROPIC = About(
    switch=True,
    advanced=True,
    meaning="choose the factor along each axis from the pixel spacing, that of the file by default, so that "
    "the finer pixels are as isotropic as possible",
    replaces="factor",
)


@dataclass(frozen=True, kw_only=True)
class UpsamplePlan(Plan):
    """The values that :func:`aniso.upsample` used.

    `factor` is one number for all axes, or one per axis. `spacings` are those of the image.
    """

    verb: ClassVar[str] = "upsample"
    keeps_grid: ClassVar[bool] = False

    factor: int | tuple[int, ...] = describe("factor")
    contrast: float = describe("contrast λ", CONTRAST_UNIT, low=0)
    sigma: float = describe("noise scale σ", low=0)
    rho: float = describe("integration scale ρ", low=0)
    time: float = describe("diffusion time", low=0)
    steps: int = describe("steps, each with a projection", low=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_factors(self.factor, len(self.spacings))

    @property
    def factors(self) -> tuple[int, ...]:
        """The factor along each axis."""
        return _check_factors(self.factor, len(self.spacings))

    @property
    def remark(self) -> str | None:
        """Why the image is not changed."""
        return "all factors are 1: the image is left unchanged." if max(self.factors) == 1 else None

    @property
    def model(self) -> EdgeContinuing:
        """The model of the diffusion on the finer grid."""
        return EdgeContinuing(self.contrast, self.sigma, self.rho, "charbonnier")

    def steering(self, options: Mapping[str, Any]) -> tuple[ImageDriven, float] | None:
        """Return the diffusion on the finer grid."""
        return EdgeContinuing(self.contrast, self.sigma, self.rho), self.time

    def pipeline(self, shape: tuple[int, ...], settings: Settings) -> Pipeline:
        """Return splines and projected steps on the finer grid."""
        factors = self.factors
        spacings = tuple(h / f for h, f in zip(settings.spacings, factors, strict=True))
        finer = tuple(n * f for n, f in zip(shape, factors, strict=True))
        # Also for factor 1, so that all options are checked.
        prepared = replace(settings, spacings=spacings, scheme=FSI(_CYCLES)).prepare(self.model, finer)
        if max(factors) == 1:
            return Pipeline(shape, ())
        cycles = prepared.plan(self.time)
        steps = (DiffuseProjected(prepared, factors, cycle.steps) for cycle in cycles)
        return Pipeline(shape, (Refine(factors), *steps, FinishProjected(factors)), scale=factors)


@takes_arrays(dask=None, labelled=UNKNOWN_COORDINATES)
def upsample(
    image: npt.ArrayLike,
    factor: Annotated[int | Sequence[int] | None, _FACTOR] = None,
    *,
    contrast: Annotated[float | Auto, replace(CONTRAST, auto="from the differences of neighbours")] = "auto",
    sigma: Annotated[float | Auto, replace(SIGMA, auto="0.45·√factor finer pixels")] = "auto",
    rho: Annotated[float | Auto, replace(RHO, auto="as σ")] = "auto",
    time: Annotated[float | Auto, _TIME] = "auto",
    isotropic: Annotated[bool, _ISOTROPIC] = False,
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
    frame_axis: int | None = None,
    engine: EngineName | None = None,
    threads: int | None = None,
    progress: Progress = None,
    return_info: bool = False,
) -> Any:
    """Increase the resolution of an image, with sharper and smoother edges than splines.

    Each pixel of the image is the mean of a block of factor × factor finer pixels (in a volume
    factor × factor × factor). The start is a cubic spline; then the finer image diffuses along its edges
    (:class:`aniso.models.EdgeContinuing` with the Charbonnier diffusivity), and each step is projected onto
    the images with these block means. In large images, the contrast is estimated on a few windows.

    Parameters
    ----------
    image : array
        A signal (N,), an image (H, W) or a volume (D, H, W), with any number of channels along
        `channel_axis`. Never modified.
    factor : int or one int per axis
        From 1 (a copy) to 8. One number applies to all axes; (3, 1, 1) divides slices of a volume into three.
    contrast : float or "auto"
        λ in grey values per unit length: stronger gradients are edges. "auto" takes 0.3·(mean of ∣d∣^¼)⁴ over
        the differences d of neighbours in the image, per unit length (for colours, their root mean square),
        and 0.003 of the standard deviation of the image at least. So the result scales with the image.
    sigma, rho : float or "auto"
        Standard deviations of the Gaussians for presmoothing and integration, in the units of `spacing`; by
        default 0.45·√factor times the geometric mean of the spacing of the finer pixels (for several factors,
        with their geometric mean).
    time : float or "auto"
        The diffusion time; by default 8 times the squared geometric mean of the spacing of the image.
    isotropic : bool
        Instead of `factor`: choose the factor along each axis so that the finer pixels are as isotropic as
        whole numbers allow, given the `spacing` of the image, which is required. The axis of least spacing
        has the factor 1.
    channel_axis : int, optional
        The axis of the channels. They share one diffusion tensor, so that their edges agree.
    spacing, frame_axis, engine, threads, progress, return_info
        As for :func:`aniso.denoise`.

    Returns
    -------
    array
        An array of the same kind, `factor` times as long along all axes except those of channels and frames;
        also the chunks of Dask arrays. float32 and float64 are kept; integers and float16 are converted to
        float32, without rescaling.
    aniso.plans.UpsamplePlan
        Only with ``return_info=True``.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> coarse = aniso.samples.shapes(size=32, noise=0).truth
    >>> fine, plan = aniso.upsample(coarse, 4, return_info=True)
    >>> fine.shape, plan.time
    ((128, 128), 8.0)
    >>> bool(np.allclose(fine.reshape(32, 4, 32, 4).mean(axis=(1, 3)), coarse))
    True
    >>> slices = aniso.samples.balls(24, noise=0).truth[::4]
    >>> aniso.upsample(slices, isotropic=True, spacing=(4, 1, 1)).shape
    (24, 24, 24)
    """
    source = ImageSource.check(image, channel_axis, progress, frame_axis)
    if isotropic is True and factor is None and spacing is None:
        raise ValueError("isotropic=True needs the pixel spacing. Give e.g. spacing=(4, 1, 1).")
    settings = Settings.check(len(source.shape), spacing=spacing, engine=engine, threads=threads)
    plan = choose(
        source,
        settings,
        factor=factor,
        contrast=contrast,
        sigma=sigma,
        rho=rho,
        time=time,
        isotropic=isotropic,
    )
    result = plan.filter(source, replace(settings, stencil=plan.stencil), progress)
    return (result, plan) if return_info else result


def choose(
    source: ImageSource,
    settings: Settings,
    *,
    factor: int | Sequence[int] | None = None,
    contrast: float | Auto = "auto",
    sigma: float | Auto = "auto",
    rho: float | Auto = "auto",
    time: float | Auto = "auto",
    isotropic: bool = False,
) -> UpsamplePlan:
    """Return the contrast of windows of the image, and what follows from the factor."""
    settings, spacings = replace(settings, stencil=_STENCIL), settings.spacings
    factors = choose_factors(spacings, factor, isotropic)
    wanted = edge_contrast.check_contrast(contrast)
    duration = checks.number_or_auto("time", time, "the diffusion time", open_low=False)
    pixel = pixel_size(spacings)
    scale = 0.45 * pixel / math.sqrt(math.prod(factors) ** (1 / len(factors)))
    sigma, rho = edge_contrast.choose_scales((scale, scale), sigma=sigma, rho=rho)
    for pixels in [] if source.is_lazy else source.images:
        edge_contrast.check_sums(pixels.astype(source.dtype, copy=False))
    if wanted is None:
        windows = source.sample()
        for window in windows:
            edge_contrast.check_sums(window)
        spread = max(edge_contrast.spread_of(windows))
        wanted = edge_contrast.choose_contrast(
            _SHARE * edge_contrast.usual_difference(windows, spacings), _LEAST * spread / pixel
        )
    plan = UpsamplePlan(
        **source.plan_fields(settings),
        factor=factors[0] if len(set(factors)) == 1 else factors,
        contrast=wanted,
        sigma=sigma,
        rho=rho,
        time=8 * pixel**2 if duration is None else duration,
        steps=0,
    )
    stages = plan.pipeline(source.shape, settings).stages
    return replace(plan, steps=sum(stage.ticks for stage in stages))


def choose_factors(
    spacings: tuple[float, ...], factor: int | Sequence[int] | None = None, isotropic: bool = False
) -> tuple[int, ...]:
    """Return the given factors, or those of isotropic pixels."""
    checks.instance("isotropic", isotropic, (bool,), "True or False", "isotropic=True")
    if not isotropic:
        return _check_factors(factor, len(spacings))
    if factor is not None:
        raise ValueError(f"factor must be left out if isotropic is True, got factor={factor!r}.")
    ratios = [h / min(spacings) for h in spacings]
    # The whole number next to a ratio r is k or k + 1, whichever makes r/k or (k + 1)/r smaller.
    wholes = [math.floor(ratio) for ratio in ratios]
    factors = [k if ratio * ratio <= k * (k + 1) else k + 1 for k, ratio in zip(wholes, ratios, strict=True)]
    if max(factors) > _LARGEST:
        raise ValueError(
            f"isotropic pixels would need the factors {tuple(factors)} for the spacing {spacings}, and at "
            f"most {_LARGEST} is possible. Give the factor along each axis instead."
        )
    return tuple(factors)


def _check_factors(factor: Any, ndim: int) -> tuple[int, ...]:
    """Return one factor per axis, from a number or a sequence."""
    remedy = "Give a whole number from 1 to 8; for other sizes, resample the result."
    several = isinstance(factor, list | tuple | np.ndarray) and np.ndim(factor) > 0
    if several and len(factor) != ndim:
        raise ValueError(
            f"factor must be a number or have one value per axis: got {len(factor)} values, {factor}, for "
            f"{ndim} axes. Axis 0 comes first, and channels have none."
        )
    found = tuple(checks.whole("factor", one, remedy) for one in (factor if several else [factor] * ndim))
    if not all(1 <= one <= _LARGEST for one in found):
        raise ValueError(f"factor must lie in [1, {_LARGEST}], got {factor}. {remedy}")
    return found
