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
from aniso.checks import Spacing
from aniso.evolve import (
    EngineName,
    Progress,
    check_progress,
    reporter,
    scale_space,
)
from aniso.info import Info, told
from aniso.layouts import channels_back, channels_first, checked_image, result_type
from aniso.models import CoherenceEnhancing, EdgeEnhancing, ImageDriven
from aniso.schemes import FED, Explicit, Scheme
from aniso.stencil import DeltaStencil, Stencil
from aniso.verbs import takes_tensors

__all__ = ["DenoiseInfo", "denoise"]

Image = npt.NDArray[Any]
Auto = Literal["auto"]

# The candidates: contrasts of edge-enhancing diffusion, and of coherence-enhancing diffusion, over the noise
# level; lengths in pixels.
_EDGE_CONTRASTS, _EDGE_SIGMA = (0.2, 0.45, 0.9), 0.5
_COHERENCE_CONTRAST, _COHERENCE_SCALES = 0.2, ((0.5, 2.0), (1.0, 2.0))
# Times, in squared pixels, and how many of them before and after the best one help to mix.
_TIMES = tuple(0.25 * 1.35**k for k in range(17))
_BEFORE, _AFTER = 5, 3
# The image is changed by this part of the noise to see how strongly the result follows.
_PROBE = 0.05
# Weights must pay by more than this many standard deviations of the estimate.
_CAUTION, _WEIGHT_ROUNDS = 6.0, 20
# Of the noise level, what an axis of the channels must have to be mixed.
_LEAST_NOISE = 0.8
# Gradients, over the noise level, that count as edges where weights may differ from flat regions.
_EDGE_ENERGY = 0.05


@dataclass(frozen=True)
class DenoiseInfo(Info):
    """What :func:`denoise` chose, and the error it expects."""

    noise: float = told("noise level", "grey values")
    model: ImageDriven | None = told("best single diffusion")  # noqa: RUF009
    contrast: float = told("its contrast λ", "grey values per unit length")
    time: float = told("its time")
    single_error: float = told("its expected error (root mean square)", "grey values")
    expected_error: float = told("expected error of the result", "grey values")
    candidates: int = told("diffusions that were tried")
    mixed: int = told("images that were mixed")


# fmt: off
@overload
def denoise(
    image: npt.ArrayLike, *, noise: float | None = ..., contrast: float | Auto = ...,
    time: float | Auto = ..., mix: bool = ..., stencil: Stencil = ..., spacing: Spacing | None = ...,
    channel_axis: int | None = ..., engine: EngineName | None = ..., threads: int | None = ...,
    progress: Progress = ..., return_info: Literal[False] = ...,
) -> Image: ...
@overload
def denoise(
    image: npt.ArrayLike, *, noise: float | None = ..., contrast: float | Auto = ...,
    time: float | Auto = ..., mix: bool = ..., stencil: Stencil = ..., spacing: Spacing | None = ...,
    channel_axis: int | None = ..., engine: EngineName | None = ..., threads: int | None = ...,
    progress: Progress = ..., return_info: Literal[True],
) -> tuple[Image, DenoiseInfo]: ...
# fmt: on
@takes_tensors
def denoise(
    image: npt.ArrayLike,
    *,
    noise: float | None = None,
    contrast: float | Auto = "auto",
    time: float | Auto = "auto",
    mix: bool = True,
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
        A signal (N,) or an image (H, W), with any number of channels along `channel_axis`. Never modified.
    noise : float, optional
        Standard deviation of the noise in grey values, the same in all channels; by default
        :func:`aniso.estimates.noise_level`.
    contrast : float or "auto"
        λ in grey values per unit length: gradients above it are edges. A number leaves one candidate,
        edge-enhancing diffusion with this contrast.
    time : float or "auto"
        The stopping time, in squared units of length.
    mix : bool
        False, or a number for `contrast` or `time`: the result is the best single diffusion.
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
        True: also say what was chosen.

    Returns
    -------
    array, or (array, DenoiseInfo)
        Of the shape of the image. float32 and float64 are kept, other types give float32.

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
    array = checked_image(image, channel_axis)
    spacings = checks.axis_spacing(spacing, array.ndim - (channel_axis is not None))
    fixed_contrast = checks.positive_or_auto("contrast", contrast, "the gradient above which there are edges")
    fixed_time = checks.positive_or_auto("time", time, "the stopping time")
    level = estimates.given_noise(noise, array, channel_axis)
    channels = channels_first(array, channel_axis)
    channels = channels.astype(result_type(array.dtype))
    pixel = estimates.pixel_size(spacings)
    if fixed_contrast is not None:
        models: list[ImageDriven] = [_edge_enhancing(fixed_contrast, pixel)]
    elif level > 0:
        models = _candidates(level, pixel, len(spacings))
    else:
        models = []
    times = [t * pixel**2 for t in _TIMES] if fixed_time is None else [fixed_time]
    # From one time of the list to the next one tensor is enough; to a time asked for it is not.
    scheme: Scheme = FED(1) if fixed_time is None else Explicit()
    mixing = mix and fixed_contrast is None and fixed_time is None

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

    judge = _Judge(channels, level)
    with reporter(progress, len(models)) as report:
        paths = []
        for number, model in enumerate(models, 1):
            paths.append(_followed(judge, model, evolved, full=mixing))
            report(number)
    # To leave the image alone is a candidate too, unless a time was asked for.
    stops = [path.best for path in paths] + ([] if paths and fixed_time is not None else [judge.start])
    best = min(stops, key=lambda stop: stop.risk)
    result, risk, mixed = best.image, best.risk, 1
    if mixing and paths:
        result, risk, mixed = _mixture(
            judge, best, [stop for path in paths for stop in path.helpers], len(spacings)
        )
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


def _edge_enhancing(contrast: float, pixel: float) -> EdgeEnhancing:
    return EdgeEnhancing(contrast=contrast, sigma=_EDGE_SIGMA * pixel, diffusivity="perona-malik")


def _candidates(level: float, pixel: float, ndim: int) -> list[ImageDriven]:
    models: list[ImageDriven] = [_edge_enhancing(k * level / pixel, pixel) for k in _EDGE_CONTRASTS]
    if ndim > 1:  # a signal has no direction
        models += [
            CoherenceEnhancing(contrast=_COHERENCE_CONTRAST * level / pixel, sigma=s * pixel, rho=r * pixel)
            for s, r in _COHERENCE_SCALES
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


@dataclass(frozen=True, eq=False)
class _Path:
    """The best stop on the way of one diffusion, and those that help to mix."""

    best: _Stop
    helpers: list[_Stop]


class _Judge:
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
    judge: _Judge,
    model: ImageDriven,
    evolved: Callable[[Image, ImageDriven], Iterator[tuple[float, Image]]],
    *,
    full: bool,
) -> _Path:
    """Follow a diffusion until its risk has clearly passed the minimum, keeping only what may be needed."""
    stops: list[_Stop] = []
    with (
        contextlib.closing(evolved(judge.image, model)) as way,  # type: ignore[type-var]
        contextlib.closing(evolved(judge.changed, model)) as changed_way,  # type: ignore[type-var]
    ):
        for (time, image), (_, changed) in zip(way, changed_way, strict=True):
            stops.append(_Stop(time, image, changed, judge.risk(image, changed), model))
            lowest = min(range(len(stops)), key=lambda k: stops[k].risk)
            if lowest > _BEFORE:
                del stops[: lowest - _BEFORE]
                lowest = _BEFORE
            if len(stops) > lowest + _AFTER + 1:
                break
    wanted = {lowest - _BEFORE, lowest + _AFTER} if full else set()
    helpers = [stops[k] for k in sorted(wanted) if 0 <= k < len(stops)]
    return _Path(stops[lowest], helpers)


def _mixture(judge: _Judge, best: _Stop, helpers: list[_Stop], ndim: int) -> tuple[Image, float, int]:
    """Best + Σ (a_k + b_k·flatness)(image_k − best), with the weights of least risk.

    Channels are first turned to their principal axes, which leaves white noise as it is, and each axis has
    weights of its own: brightness needs other ones than colour. For each, the risk is a quadratic function
    of the weights; those whose gain is not significant stay out. The estimate holds for white noise of the
    given level: an axis that has visibly less of it (channels with common noise, or a level that is too
    high) is not mixed, and a mixture that cannot be true, with a negative risk or further from the best
    image than the noise is strong, is not taken.
    """
    stops = [stop for stop in (judge.start, *helpers) if stop is not best]
    flat, flat_changed = (_flatness(image, judge.level, ndim) for image in (best.image, best.changed))
    axes = _principal_axes(judge.image)
    turned, risk = np.zeros_like(best.image), best.risk
    for number, axis in enumerate(axes):

        def seen(image: Image, axis: Image = axis) -> Image:
            return np.tensordot(axis, image, 1).ravel()

        if not _has_noise(np.tensordot(axis, judge.image, 1), judge.level):
            continue
        start, probe = seen(best.image), seen(judge.probe)
        terms = _terms([seen(stop.image) - start for stop in stops], flat)
        start_changed = seen(best.changed)
        terms_changed = _terms([seen(stop.changed) - start_changed for stop in stops], flat_changed)
        gram = _products(terms, terms)
        follows = [(changed - term) / judge.step for changed, term in zip(terms_changed, terms, strict=True)]
        gain = _products(terms, [seen(judge.image) - start])[:, 0]
        gain -= judge.level**2 * _products(follows, [probe])[:, 0]
        doubt = judge.level**2 * gram + 2 * judge.level**4 * _products(follows, follows)
        weights = _cautious_weights(gram, gain, doubt)
        for weight, term in zip(weights, terms, strict=True):
            turned[number] += (weight.astype(term.dtype) * term).reshape(flat.shape)
        risk += float(weights @ gram @ weights - 2 * weights @ gain) / judge.image.size
    if risk < 0 or float(np.mean(turned * turned)) > judge.level**2:
        return best.image, best.risk, 1
    return best.image + np.tensordot(axes.T, turned, 1), risk, len(stops) + 1


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
    flat = image.reshape(len(image), -1).astype(np.float64)
    _, vectors = np.linalg.eigh(np.cov(flat).reshape(len(image), len(image)))
    return vectors.T.astype(image.dtype)


def _terms(differences: list[Image], flat: Image) -> list[Image]:
    """What the weights multiply."""
    return [term for difference in differences for term in (difference, flat.ravel() * difference)]


def _products(left: list[Image], right: list[Image]) -> npt.NDArray[np.float64]:
    """Scalar products of all pairs, summed in double precision without copies in it of whole images."""
    sums = np.zeros((len(left), len(right)))
    for low in range(0, left[0].size, 2**16):
        part = slice(low, low + 2**16)
        rows, columns = (np.array([term[part] for term in terms], np.float64) for terms in (left, right))
        sums += rows @ columns.T
    return sums


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
