"""inpaint(): unknown pixels from known ones, by diffusion that carries edges on."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from aniso import checks, engines
from aniso.arrays import channels_back, channels_first, checked_layout, result_type
from aniso.blocks.lazy import is_dask
from aniso.checks import Auto, Spacing
from aniso.estimates import pixel_size
from aniso.evolve import (
    EngineName,
    Image,
    Journey,
    Progress,
    check_progress,
    checked_threads,
    reporter,
)
from aniso.formulas.gaussian import gaussian_radius
from aniso.models import EdgeContinuing
from aniso.schemes import FSI, Cycle
from aniso.stencil import DeltaStencil
from aniso.verbs.dispatch import takes_tensors
from aniso.verbs.edge_contrast import (
    check_sums,
    estimated_contrast,
    given_contrast,
    given_scale,
    usual_difference,
)
from aniso.verbs.info import InpaintInfo

__all__ = ["inpaint"]

Mask = npt.NDArray[np.bool_]

# Sharper members of the family leave specks around lone known pixels.
STENCIL = DeltaStencil(alpha=0.0, gamma=0.0)
_MOST_CYCLES = 100
# Steps of a cycle, between two looks at the image; and cycles on each coarse grid.
_STEPS, COARSE_CYCLES = 8, 3
# Of what neighbours usually differ by, this is taken as contrast; it is at least so much of their spread.
SHARE, LEAST = 0.5, 0.005


@overload
def inpaint(
    image: npt.ArrayLike,
    mask: npt.ArrayLike | None = ...,
    *,
    contrast: float | Auto = ...,
    sigma: float | Auto = ...,
    rho: float | Auto = ...,
    tolerance: float = ...,
    max_cycles: int | None = ...,
    spacing: Spacing | None = ...,
    channel_axis: int | None = ...,
    engine: EngineName | None = ...,
    threads: int | None = ...,
    progress: Progress = ...,
    return_info: Literal[False] = ...,
) -> Image: ...


@overload
def inpaint(
    image: npt.ArrayLike,
    mask: npt.ArrayLike | None = ...,
    *,
    contrast: float | Auto = ...,
    sigma: float | Auto = ...,
    rho: float | Auto = ...,
    tolerance: float = ...,
    max_cycles: int | None = ...,
    spacing: Spacing | None = ...,
    channel_axis: int | None = ...,
    engine: EngineName | None = ...,
    threads: int | None = ...,
    progress: Progress = ...,
    return_info: Literal[True],
) -> tuple[Image, InpaintInfo]: ...


@takes_tensors
def inpaint(
    image: npt.ArrayLike,
    mask: npt.ArrayLike | None = None,
    *,
    contrast: float | Auto = "auto",
    sigma: float | Auto = "auto",
    rho: float | Auto = "auto",
    tolerance: float = 5e-3,
    max_cycles: int | None = None,
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
    engine: EngineName | None = None,
    threads: int | None = None,
    progress: Progress = None,
    return_info: bool = False,
) -> Image | tuple[Image, InpaintInfo]:
    """The image with its unknown pixels filled in; known pixels keep their values bit for bit.

    Diffusion along edges (:class:`aniso.models.EdgeContinuing` with the Charbonnier diffusivity) runs from
    the known pixels into the unknown ones until it comes to rest. It begins on a coarse grid, whose pixels
    are means of the known ones, and each grid gives the next finer one its start. No new extremes
    arise: what is filled in stays between the least and the greatest known value of its channel.

    Parameters
    ----------
    image : array
        A signal (N,), an image (H, W) or a volume (D, H, W), with any number of channels along
        `channel_axis`. What it holds in unknown pixels does not matter. Never modified.
    mask : array of bool, optional
        True (or 1) where a pixel is unknown, as in scikit-image; of the shape of the image without channels.
        By default those pixels are unknown that are NaN in at least one channel.
    contrast : float or "auto"
        λ in grey values per unit length: stronger gradients are edges. "auto" takes ½·(mean of ∣d∣^¼)⁴ over
        the differences d of known neighbours, per unit length (for colours, their root mean square), and
        0.005 of the standard deviation of the known values at least. So the result scales with the image.
        Where too few known pixels are neighbours, pairs s = 2, 4, 8, … pixels apart serve, with d/√s.
    sigma, rho : float or "auto"
        Noise scale and integration scale, in the units of `spacing`; by default 0.7 and 0.8 times the
        (geometric) mean distance of pixels.
    tolerance : float
        When to stop: once the unknown pixels change in a cycle of 8 FSI steps by no more than this, as root
        mean square and as a fraction of the standard deviation of the known values.
    max_cycles : int, optional
        When to stop at the latest, 100 by default. A Dask array has this number of cycles, 20 by default,
        whatever the tolerance: how far it has come is not known before it is computed.
    spacing : float or one float per axis, optional
        Distance of the pixels, axis 0 first, without the channels.
    channel_axis : int, optional
        The axis of the channels. They share one diffusion tensor, so that their edges agree.
    engine, threads
        As for :func:`aniso.diffuse`.
    progress : bool or callable, optional
        True shows a bar on the terminal; a function is called as progress(done, 1.0), where `done` says how
        far the residual has come down to the tolerance.
    return_info : bool
        Whether to return also what was chosen.

    Returns
    -------
    array
        Of the shape of the image. float32 and float64 are kept; integers and float16 give float32, in the
        grey scale they have.
    aniso.verbs.info.InpaintInfo
        Only with ``return_info=True``.

    Examples
    --------
    >>> import numpy as np, aniso
    >>> truth = aniso.samples.shapes(size=64, noise=0).truth
    >>> unknown = np.random.default_rng(0).random(truth.shape) > 0.2
    >>> filled, info = aniso.inpaint(truth, unknown, return_info=True)
    >>> bool((filled[~unknown] == truth[~unknown]).all()), info.converged
    (True, True)
    """
    wanted = given_contrast(contrast)
    tolerance = checks.within("tolerance", tolerance, 0.0, 1.0, "it is a fraction.", open_low=True)
    if max_cycles is not None:
        max_cycles = checks.whole("max_cycles", max_cycles, "A good choice is max_cycles=100.")
        if max_cycles < 1:
            raise ValueError(
                f"max_cycles must be at least 1, got {max_cycles}. A good choice is max_cycles=100."
            )
    check_progress(progress)
    engines.check_name(engine)
    checked_threads(threads)
    if is_dask(image):
        if return_info or progress:
            raise ValueError(
                "a Dask array is not computed before you say so: nothing is known to tell then. Leave "
                "return_info and progress out."
            )
        from aniso.verbs import chunked_inpaint as in_blocks

        lazy_image: Any = image
        return in_blocks.inpaint(
            lazy_image, mask, wanted, sigma, rho, max_cycles, spacing, channel_axis, engine, threads
        )
    if isinstance(image, np.ma.MaskedArray):
        raise TypeError(
            "image is a masked array; say which pixels are unknown by mask=, e.g. "
            "inpaint(image.filled(0), mask=numpy.ma.getmaskarray(image))."
        )
    given = checked_layout(checks.array_of("image", image), channel_axis)
    channels = channels_first(given, channel_axis)
    known = _known_pixels(channels, mask)
    spacings = checks.axis_spacing(spacing, known.ndim)
    pixel = pixel_size(spacings)

    filled = channels.astype(result_type(given.dtype))
    check_sums(filled[:, known])
    low, high, spread = _range_and_spread(filled, known)
    if wanted is None:
        usual = usual_difference(filled, spacings, known)
        wanted = estimated_contrast(SHARE * usual, LEAST * spread / pixel)
    model = edge_continuing(wanted, sigma, rho, pixel)
    course = _Course(0, 0, 0.0)
    if not known.all():
        window = _surroundings(known, model, spacings)
        part, known_part = filled[:, *window], known[window]
        solver = Solver(model, spacings, engine, threads, spread, tolerance, max_cycles or _MOST_CYCLES)
        with reporter(progress, 1.0) as report:
            solution, course = solver.solution(part, known_part, report)
        for channel, values, least, greatest in zip(part, solution, low, high, strict=True):
            np.copyto(channel, np.clip(values, least, greatest), where=~known_part)
    result = channels_back(filled, channel_axis)
    if not return_info:
        return result
    return result, InpaintInfo(
        unknown=int(known.size - np.count_nonzero(known)),
        contrast=model.contrast,
        sigma=model.sigma,
        rho=model.rho,
        grids=course.grids,
        cycles=course.cycles,
        steps=course.cycles * _STEPS,
        residual=course.residual,
        tolerance=tolerance,
    )


def edge_continuing(contrast: float, sigma: float | Auto, rho: float | Auto, pixel: float) -> EdgeContinuing:
    """The diffusion that fills in, for pixels of this size."""
    scales = given_scale("sigma", sigma, 0.7 * pixel), given_scale("rho", rho, 0.8 * pixel)
    return EdgeContinuing(contrast, *scales, "charbonnier")


@dataclass(frozen=True)
class _Course:
    """How a solution was reached."""

    grids: int
    cycles: int
    residual: float


@dataclass(frozen=True)
class Solver:
    """Images come channels first, shape (channels, H, W)."""

    model: EdgeContinuing
    spacings: tuple[float, ...]
    engine: EngineName | None
    threads: int | None
    spread: float
    tolerance: float
    max_cycles: int

    def solution(self, image: Image, known: Mask, report: Callable[[float], object]) -> tuple[Image, _Course]:
        """The image at rest, found from coarse to fine."""
        start, grids = self.start(image, known)
        journey = self._journey(start, known)
        del start
        with contextlib.closing(journey.evolution):
            cycles, residual = self._come_to_rest(journey, known, report)
        return journey.image(), _Course(grids + 1, cycles, residual)

    def start(self, image: Image, known: Mask, weights: Image | None = None) -> tuple[Image, int]:
        """Known pixels, and between them what coarser grids say; how many there are.

        `weights` say how many pixels of a finer grid each pixel stands for, if this is not the finest one.
        """
        grids = coarser_grids(image, known, weights)
        count = len(grids)
        start, _ = grids.pop()
        while grids:
            start = self.soon_at_rest(_on_finer_grid(start, *grids[-1]), grids[-1][1])
            grids.pop()  # what is not needed any more should not be in memory with the finest grid
        return _on_finer_grid(start, image, known), count

    def soon_at_rest(self, start: Image, covered: Mask) -> Image:
        """A coarse image after a few cycles."""
        journey = self._journey(start, covered)
        cycle = fsi_cycle(journey.limit)
        with contextlib.closing(journey.evolution) as evolution:
            for _ in range(COARSE_CYCLES):
                evolution.advance(cycle)
        return journey.image()

    def _journey(self, start: Image, known: Mask) -> Journey:
        return Journey.of(
            start, self.model, STENCIL, FSI(1), self.spacings, 0, known, self.engine, self.threads
        )

    def _come_to_rest(
        self, journey: Journey, known: Mask, report: Callable[[float], object]
    ) -> tuple[int, float]:
        """Cycles until the image changes no more, and by how much it changed in the last one."""
        cycle, first = fsi_cycle(journey.limit), 0.0
        scale = self.spread * math.sqrt(np.count_nonzero(~known) * len(journey.pixels()))
        cycles, residual = 0, math.inf
        while cycles < self.max_cycles and residual > self.tolerance:
            before = journey.pixels().copy()
            journey.evolution.advance(cycle)
            cycles += 1
            # If all known pixels agree, so does the start.
            residual = _distance(journey.pixels(), before) / scale if scale > 0 else 0.0
            first = first or residual
            report(_descent(first, residual, self.tolerance))
        return cycles, residual


def _known_pixels(channels: Image, mask: npt.ArrayLike | None) -> Mask:
    """True where a pixel is known; of the shape of the image without channels."""
    shape = channels.shape[1:]
    if mask is None:
        known = np.ones(shape, np.bool_)
        if channels.dtype.kind == "f":
            for channel in channels:
                known &= ~np.isnan(channel)
    else:
        unknown = np.asarray(mask)
        if unknown.dtype.kind not in "biu" or (
            unknown.dtype.kind != "b" and not np.isin(unknown, (0, 1)).all()
        ):
            raise TypeError(
                f"mask must hold True and False (or 1 and 0), got dtype {unknown.dtype} with other "
                "values: it is True where a pixel is unknown. Use e.g. mask > 0."
            )
        if unknown.shape != shape:
            raise ValueError(
                f"mask has shape {unknown.shape}, the image without channels {shape}: they must be equal. "
                "Colours need channel_axis, e.g. channel_axis=-1."
            )
        known = unknown == 0
    if not known.any():
        raise checks.refusal(
            ValueError,
            "all pixels are unknown: there is nothing to fill in from.",
            python="The mask is True where a pixel is unknown; perhaps ~mask was meant.",
            command="A mask marks the unknown pixels; perhaps --invert was meant.",
        )
    if channels.dtype.kind == "f":
        for number, channel in enumerate(channels):
            bad = known & ~np.isfinite(channel)
            if bad.any():
                first = tuple(int(i) for i in np.argwhere(bad)[0])
                raise checks.refusal(
                    ValueError,
                    f"image holds {int(bad.sum())} known pixels that are NaN or infinite, the first at index "
                    f"{first} of channel {number}: they would spread into the unknown ones.",
                    python="Make them True in the mask.",
                    command="Mark them in the mask, too.",
                )
    return known


def _range_and_spread(image: Image, known: Mask) -> tuple[Image, Image, float]:
    """Least and greatest known value of each channel; their standard deviation, mean over the channels."""
    values = [channel[known] for channel in image]
    low, high = (np.array([end(channel) for channel in values]) for end in (np.min, np.max))
    return low, high, spread_of(image, known)


def spread_of(image: Image, known: Mask) -> float:
    """Standard deviation of the known pixels, mean over the channels."""
    return math.sqrt(np.mean([np.var(channel[known], dtype=np.float64) for channel in image]))


def _surroundings(known: Mask, model: EdgeContinuing, spacings: tuple[float, ...]) -> tuple[slice, ...]:
    """The smallest box around all unknown pixels outside which nothing matters to them."""
    box = []
    for axis, h in enumerate(spacings):
        others = tuple(other for other in range(known.ndim) if other != axis)
        (places,) = np.nonzero(~known.all(axis=others))
        reach = gaussian_radius(model.sigma / h) + gaussian_radius(model.rho / h) + 2
        box.append(slice(max(0, int(places[0]) - reach), int(places[-1]) + 1 + reach))
    return tuple(box)


def coarser_grids(image: Image, known: Mask, weights: Image | None = None) -> list[tuple[Image, Mask]]:
    """Means of the known pixels over blocks of 2, 4, 8, … pixels per axis, and where there are any.

    The last grid is known everywhere. Pixels may have weights, shape (1, …).
    """
    counts = known.astype(image.dtype)[np.newaxis] if weights is None else weights
    sums = np.where(known, image * counts, 0) if weights is not None else np.where(known, image, 0)
    grids: list[tuple[Image, Mask]] = []
    while not grids or not grids[-1][1].all():
        for axis in range(1, image.ndim):
            sums, counts = pair_sums(sums, axis), pair_sums(counts, axis)
        grids.append((sums / np.maximum(counts, 1), counts[0] > 0))
    return grids


def pair_sums(array: Image, axis: int) -> Image:
    """Sums of two neighbours each; a last one without a neighbour stays alone."""
    along = np.moveaxis(array, axis, 0)
    sums = along[::2].copy()
    sums[: len(along) // 2] += along[1::2]
    return np.moveaxis(sums, 0, axis)


def _on_finer_grid(coarse: Image, image: Image, known: Mask) -> Image:
    """Known pixels of the finer grid, and between them the coarser one, interpolated linearly."""
    for axis in range(1, image.ndim):
        coarse = twice_as_fine(coarse, axis, image.shape[axis])
    np.copyto(coarse, image, where=known)
    return coarse


def twice_as_fine(array: Image, axis: int, length: int) -> Image:
    """Linear between the centres of pixels, constant beyond the last ones."""
    along = np.moveaxis(array, axis, 0)
    fine = np.repeat(0.75 * along, 2, axis=0)
    quarter = 0.25 * along
    fine[2::2] += quarter[:-1]
    fine[1:-1:2] += quarter[1:]
    fine[0] += quarter[0]
    fine[-1] += quarter[-1]
    return np.moveaxis(fine[:length], 0, axis)


def fsi_cycle(limit: float) -> Cycle:
    """An FSI cycle of the longest stable steps."""
    (cycle,) = FSI(1).plan(limit * _STEPS * (_STEPS + 1) / 3, limit)
    return cycle


def _distance(a: Image, b: Image, block: int = 2**16) -> float:
    """Euclidean norm of the difference, in blocks: without another image in memory."""
    a, b = a.reshape(-1), b.reshape(-1)
    parts = (
        np.subtract(a[i : i + block], b[i : i + block], dtype=np.float64) for i in range(0, a.size, block)
    )
    return math.sqrt(sum(float(np.square(part, out=part).sum()) for part in parts))


def _descent(first: float, residual: float, tolerance: float) -> float:
    """How far the residual has come from its first value to the tolerance, on a logarithmic scale."""
    if residual <= tolerance:
        return 1.0
    return max(0.0, math.log(first / residual) / math.log(first / tolerance))
