"""denoise(): contrast and stopping time from the noise, by an estimate of the error that needs no truth."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from aniso import checks, estimates
from aniso.arrays import channels_back, channels_first, checked_image, result_type
from aniso.blocks.lazy import is_dask
from aniso.checks import Auto, Spacing
from aniso.evolve import (
    EngineName,
    Progress,
    check_progress,
    reporter,
    scale_space,
)
from aniso.models import CoherenceEnhancing, EdgeEnhancing, ImageDriven
from aniso.schemes import FED, Explicit, Scheme
from aniso.stencil import DeltaStencil, Stencil
from aniso.verbs.dispatch import takes_tensors
from aniso.verbs.edge_contrast import given_contrast
from aniso.verbs.info import DenoiseInfo

__all__ = ["denoise"]

Image = npt.NDArray[Any]

# The candidates, over the noise level and in pixels: contrast and noise scale of edge-enhancing diffusion;
# contrast, noise and integration scale of coherence-enhancing one, and whether it takes plates for structure.
_EDGES = {2: ((0.2, 0.5), (0.45, 0.5), (0.9, 0.5)), 3: ((0.1, 1.0), (0.25, 0.5), (0.7, 0.5))}
_COHERENCES = {
    2: ((0.2, 0.5, 2.0, True), (0.2, 1.0, 2.0, True)),
    3: ((0.1, 0.5, 1.0, True), (0.05, 0.7, 1.5, False)),
}
GIVEN_SIGMA = 0.5
# Times, in squared pixels, and how many of them before and after the best one help to mix.
TIMES = tuple(0.25 * 1.35**k for k in range(17))
_BEFORE, _AFTER = 5, 3
# The image is changed by this part of the noise to see how strongly the result follows.
_PROBE = 0.05
# Weights must pay by more than this many standard deviations of the estimate.
_CAUTION, _WEIGHT_ROUNDS = 6.0, 20
# Of the noise level, what an axis of the channels must have to be mixed.
_LEAST_NOISE = 0.8
# A mixture with a risk below minus this part of the noise's variance cannot be true.
_RISK_IN_DOUBT = 0.05
# Gradients, over the noise level, that count as edges where weights may differ from flat regions.
_EDGE_ENERGY = 0.05


# fmt: off
@overload
def denoise(
    image: npt.ArrayLike, *, noise: float | Auto = ..., contrast: float | Auto = ...,
    time: float | Auto = ..., mix: bool | None = ..., stencil: Stencil = ..., spacing: Spacing | None = ...,
    channel_axis: int | None = ..., engine: EngineName | None = ..., threads: int | None = ...,
    progress: Progress = ..., return_info: Literal[False] = ...,
) -> Any: ...
@overload
def denoise(
    image: npt.ArrayLike, *, noise: float | Auto = ..., contrast: float | Auto = ...,
    time: float | Auto = ..., mix: bool | None = ..., stencil: Stencil = ..., spacing: Spacing | None = ...,
    channel_axis: int | None = ..., engine: EngineName | None = ..., threads: int | None = ...,
    progress: Progress = ..., return_info: Literal[True],
) -> tuple[Any, DenoiseInfo]: ...
# fmt: on
@takes_tensors
def denoise(
    image: npt.ArrayLike,
    *,
    noise: float | Auto = "auto",
    contrast: float | Auto = "auto",
    time: float | Auto = "auto",
    mix: bool | None = None,
    stencil: Stencil = DeltaStencil(),  # noqa: B008 (frozen)
    spacing: Spacing | None = None,
    channel_axis: int | None = None,
    engine: EngineName | None = None,
    threads: int | None = None,
    progress: Progress = None,
    return_info: bool = False,
) -> Image | tuple[Image, DenoiseInfo]:
    """The image without its noise; no parameter has to be given.

    Several diffusions run, and Stein's unbiased estimate of the risk says how far each of them is from the
    image without noise, at each time, although that is not known: the squared change, minus the variance
    of the noise, plus twice that variance times the divergence, which says how strongly the result follows
    the noise and is found by changing the image slightly at random. The smallest estimate gives contrast
    and stopping time. Then all diffusions, each a while before and after its best time, are mixed with the
    weights that make the estimate smallest, one set of weights for edges and one for flat regions.

    The candidates are edge-enhancing diffusions with λ = 0.2, 0.45 and 0.9 of the noise level per pixel,
    and coherence-enhancing ones with 0.2 of it and two noise scales.

    Parameters
    ----------
    image : array
        A signal (N,), an image (H, W) or a volume (D, H, W), with any number of channels along
        `channel_axis`. Never modified.
    noise : float or "auto"
        Standard deviation of the noise in grey values, the same in all channels; by default
        :func:`aniso.estimates.noise_level`.
    contrast : float or "auto"
        λ in grey values per unit length: gradients above it are edges. A number leaves one candidate,
        edge-enhancing diffusion with this contrast.
    time : float or "auto"
        The stopping time, in squared units of length.
    mix : bool, optional
        False, or a number for `contrast` or `time`: the result is the best single diffusion. Dask arrays are
        not mixed; by default all others are.
    stencil : DeltaStencil or FreeStencil
        How the diffusion is discretised.
    spacing : float or one float per axis, optional
        Distance of the pixels, axis 0 first, without the channels.
    channel_axis : int, optional
        The axis of the channels.
    engine, threads
        As for :func:`aniso.diffuse`.
    progress : bool or callable, optional
        True shows a bar on the terminal; a function is called as progress(done, total), in diffusions.
    return_info : bool
        Whether to return also what was chosen.

    Returns
    -------
    array
        Of the shape of the image. float32 and float64 are kept; integers and float16 give float32, in the
        grey scale they have.
    aniso.verbs.info.DenoiseInfo
        Only with ``return_info=True``.

    Examples
    --------
    >>> import aniso
    >>> sample = aniso.samples.shapes(96, noise=20.0)
    >>> result, info = aniso.denoise(sample.image, return_info=True)
    >>> bool(((result - sample.truth) ** 2).mean() < 0.1 * 20**2)
    True
    >>> bool(19 < info.noise < 21)
    True
    """
    check_progress(progress)
    fixed_contrast = given_contrast(contrast)
    fixed_time = checks.number_or_auto("time", time, "the stopping time")
    if is_dask(image):
        from aniso.verbs import chunked

        numbers = noise, fixed_contrast, fixed_time
        computing = engine, threads, progress, return_info
        return chunked.denoise(image, *numbers, mix, stencil, spacing, channel_axis, *computing)
    array = checked_image(image, channel_axis)
    spacings = checks.axis_spacing(spacing, array.ndim - (channel_axis is not None))
    estimates.check_squares(array)
    level = estimates.given_noise(noise, array, channel_axis)
    channels = channels_first(array, channel_axis)
    channels = channels.astype(result_type(array.dtype))
    pixel = estimates.pixel_size(spacings)
    if fixed_contrast is not None:
        models: list[ImageDriven] = [edge_enhancing(fixed_contrast, GIVEN_SIGMA * pixel)]
    elif level > 0:
        models = candidates(level, pixel, len(spacings))
    else:
        models = []
    times = [t * pixel**2 for t in TIMES] if fixed_time is None else [fixed_time]
    # From one time of the list to the next one tensor is enough; to a time asked for it is not.
    scheme: Scheme = FED(1) if fixed_time is None else Explicit()
    mixing = mix is not False and fixed_contrast is None and fixed_time is None

    def evolved(start: Image, model: ImageDriven) -> Iterator[tuple[float, Image]]:
        return scale_space(
            start,
            model,
            times,
            stencil=stencil,
            scheme=scheme,
            spacing=spacings,
            channel_axis=0,
            engine=engine,
            threads=threads,
            # At every time, not only after a whole diffusion: whoever listens can break off soon.
            progress=lambda now, end: report(models.index(model) + now / end),
        )

    judge = Judge(channels, level)
    # To leave the image alone is a candidate too, unless a time was asked for.
    best = judge.start if fixed_time is None or not models else None
    helpers: list[_Stop] = []
    with reporter(progress, len(models)) as report:
        for number, model in enumerate(models, 1):
            stop, others = _followed(judge, model, evolved, full=mixing)
            helpers += others
            best = stop if best is None or stop.risk < best.risk else best
            report(number)
    assert best is not None
    result, risk, mixed = best.image, best.risk, 1
    if helpers:
        result, risk, mixed = _mixture(judge, best, helpers, len(spacings))
    result = channels_back(result, channel_axis)
    if not return_info:
        return result
    return result, DenoiseInfo(
        level,
        best.model,
        float(getattr(best.model, "contrast", math.nan)),
        best.time,
        math.sqrt(max(best.risk, 0.0)),
        math.sqrt(max(risk, 0.0)),
        len(models),
        mixed,
    )


def edge_enhancing(contrast: float, sigma: float) -> EdgeEnhancing:
    """The candidate with this contrast and noise scale."""
    return EdgeEnhancing(contrast=contrast, sigma=sigma, diffusivity="perona-malik")


def candidates(level: float, pixel: float, ndim: int) -> list[ImageDriven]:
    """The diffusions that are tried for this noise level."""
    strength, dimension = level / pixel, max(ndim, 2)
    models: list[ImageDriven] = [edge_enhancing(k * strength, s * pixel) for k, s in _EDGES[dimension]]
    if ndim > 1:  # a signal has no direction
        models += [
            CoherenceEnhancing(contrast=k * strength, sigma=s * pixel, rho=r * pixel, plates=plates)
            for k, s, r, plates in _COHERENCES[dimension]
        ]
    return models


@dataclass(frozen=True, eq=False)
class _Stop:
    """A diffused image, what became of the changed one, and the estimated mean squared error."""

    time: float
    image: Image
    changed: Image
    risk: float
    model: ImageDriven | None


class Judge:
    """Stein's unbiased risk estimate for images that were computed from the noisy one."""

    def __init__(self, image: Image, level: float) -> None:
        self.image = image
        self.level = level
        signs = np.random.default_rng(0).integers(0, 2, image.shape, dtype=np.int8)
        self.probe = (2 * signs - 1).astype(image.dtype)
        self.step = _PROBE * level
        self.changed = image + image.dtype.type(self.step) * self.probe
        self.start = _Stop(0.0, image, self.changed, level**2, None)

    def covariance(self, result: Image, changed: Image) -> float:
        """Σ of noise times result, over the pixels, as far as it can be expected: σ² times the divergence."""
        if self.step == 0:
            return 0.0
        return self.level**2 / self.step * float(np.vdot(self.probe, changed - result))

    def risk(self, result: Image, changed: Image) -> float:
        """The expected mean squared error."""
        difference = result - self.image
        square = float(np.vdot(difference, difference))
        return (square + 2 * self.covariance(result, changed)) / self.image.size - self.level**2


def _followed(
    judge: Judge,
    model: ImageDriven,
    evolved: Callable[[Image, ImageDriven], Iterator[tuple[float, Image]]],
    *,
    full: bool,
) -> tuple[_Stop, list[_Stop]]:
    """Follow a diffusion until its risk has clearly passed the minimum, keeping only what may be needed.

    The stop of least risk and, in `full`, those before and after it that help to mix.
    """
    stops: list[_Stop] = []
    before, past, lowest = _BEFORE if full else 0, 0, 0
    with (
        contextlib.closing(evolved(judge.image, model)) as way,  # type: ignore[type-var]
        contextlib.closing(evolved(judge.changed, model)) as changed_way,  # type: ignore[type-var]
    ):
        for (time, image), (_, changed) in zip(way, changed_way, strict=True):
            stop = _Stop(time, image, changed, judge.risk(image, changed), model)
            if not stops or stop.risk < stops[lowest].risk:
                stops.append(stop)
                del stops[: -before - 1]
                past, lowest = 0, len(stops) - 1
                continue
            past += 1
            if full:
                stops.append(stop)
            if past > _AFTER:
                break
    wanted = {lowest - _BEFORE, lowest + _AFTER} if full else set()
    return stops[lowest], [stops[k] for k in sorted(wanted) if 0 <= k < len(stops)]


def _mixture(judge: Judge, best: _Stop, helpers: list[_Stop], ndim: int) -> tuple[Image, float, int]:
    """Best + Σ (a_k + b_k·flatness)(image_k − best), with the weights of least risk.

    Channels are first turned to their principal axes, which leaves white noise as it is, and each axis has
    weights of its own: brightness needs other ones than colour. For each, the risk is a quadratic function
    of the weights; those whose gain is not significant stay out. The estimate holds for white noise of the
    given level: an axis that has visibly less of it (channels with common noise, or a level that is too
    high) is not mixed, and a mixture that cannot be true, with a clearly negative risk or further from the
    best image than the noise is strong, is not taken.
    """
    stops = [stop for stop in (judge.start, *helpers) if stop is not best]
    flats = tuple(_flatness(image, judge.level, ndim).ravel() for image in (best.image, best.changed))
    axes = _principal_axes(judge.image)
    turned, risk = np.zeros_like(best.image).reshape(len(axes), -1), best.risk
    for number, axis in enumerate(axes):
        if not _has_noise(np.tensordot(axis, judge.image, 1), judge.level):
            continue
        view = _View(judge, best, stops, flats, axis)
        gram, gain, doubt = view.quadratic()
        weights = _cautious_weights(gram, gain, doubt)
        for part in view.parts():
            turned[number, part] = weights @ view.terms(part)
        risk += float(weights @ gram @ weights - 2 * weights @ gain) / judge.image.size
    if risk < -_RISK_IN_DOUBT * judge.level**2 or _mean_square(turned) > judge.level**2:
        return best.image, best.risk, 1
    mixed = best.image + (axes.T @ turned).reshape(best.image.shape)
    return mixed, risk, len(stops) + 1


@dataclass(frozen=True, eq=False)
class _View:
    """Stops as one axis of the channels sees them, in parts: never all of them in double precision."""

    judge: Judge
    best: _Stop
    stops: list[_Stop]
    flats: tuple[Image, ...]
    axis: Image

    def parts(self) -> list[slice]:
        return [slice(low, low + 2**16) for low in range(0, self.flats[0].size, 2**16)]

    def seen(self, image: Image, part: slice) -> npt.NDArray[np.float64]:
        channels = image.reshape(len(self.axis), -1)[:, part]
        return self.axis.astype(np.float64) @ channels.astype(np.float64)

    def terms(self, part: slice, *, changed: bool = False) -> npt.NDArray[np.float64]:
        """What the weights multiply, one row each."""
        images = [stop.changed if changed else stop.image for stop in (self.best, *self.stops)]
        start, *others = (self.seen(image, part) for image in images)
        differences = np.array([other - start for other in others])
        return np.concatenate([differences, self.flats[changed][part] * differences])

    def quadratic(self) -> tuple[Image, Image, Image]:
        """Gram matrix of the terms, what each gains, and the covariance of that estimate."""
        count, variance = 2 * len(self.stops), self.judge.level**2
        gram, doubt, gain = np.zeros((count, count)), np.zeros((count, count)), np.zeros(count)
        for part in self.parts():
            terms = self.terms(part)
            follows = (self.terms(part, changed=True) - terms) / self.judge.step
            residual = self.seen(self.judge.image, part) - self.seen(self.best.image, part)
            gram += _products(terms)
            doubt += _products(follows)
            gain += terms @ residual - variance * (follows @ self.seen(self.judge.probe, part))
        return gram, gain, variance * gram + 2 * variance**2 * doubt


def _products(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Scalar products of all pairs; not by BLAS, whose threads wait for each other on a busy machine."""
    return np.einsum("ik,jk->ij", rows, rows)


def _mean_square(image: Image) -> float:
    return float(np.vdot(image, image)) / image.size


def _has_noise(image: Image, level: float) -> bool:
    """Whether there can be noise of this level in an image with one channel."""
    return min(float(image.std()), estimates.noise_level(image)) >= _LEAST_NOISE * level


def _cautious_weights(gram: Image, gain: Image, doubt: Image) -> Image:
    """The weights w that minimise w·gram·w − 2 w·gain + caution·√(w·doubt·w).

    `gain` is an estimate whose covariance is about `doubt`: w·gain is uncertain by the root. If no gain is
    significant, the weights are 0. The root is a square over a number, which a few rounds find.
    """
    scale = math.sqrt(float(np.trace(doubt)))
    for _ in range(_WEIGHT_ROUNDS):
        if scale == 0:
            break
        weights = np.linalg.lstsq(gram + 0.5 * _CAUTION / scale * doubt, gain, rcond=1e-12)[0]
        scale = math.sqrt(max(float(weights @ doubt @ weights), 0.0))
    return weights if scale > 0 else np.zeros_like(gain)


def _principal_axes(image: Image) -> Image:
    """An orthonormal basis of the channels in which they are uncorrelated, one axis per row."""
    if len(image) == 1:
        return np.ones((1, 1), image.dtype)
    flat = image.reshape(len(image), -1).astype(np.float64)
    _, vectors = np.linalg.eigh(np.cov(flat).reshape(len(image), len(image)))
    return vectors.T.astype(image.dtype)


def _flatness(image: Image, level: float, ndim: int) -> Image:
    """Near 1 in flat regions, towards 0 at edges, from the gradient over the noise level."""
    energy = np.zeros(image.shape[1:], image.dtype)
    for channel in image:
        for axis in range(ndim):
            order = [int(axis == other) for other in range(ndim)]
            energy += ndimage.gaussian_filter(channel, 1.0, order=order) ** 2 / len(image)
    energy = ndimage.gaussian_filter(energy, 1.5)
    flat: Image = 1 / (1 + energy / (_EDGE_ENERGY * level**2))
    return flat
