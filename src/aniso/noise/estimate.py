"""Estimate kind, level and correlation of the noise in an image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aniso.arrays import (
    Array,
    Field,
    Mask,
    channels_first,
    check_tensor_image,
    is_batch,
    is_dask,
    is_tensor,
)
from aniso.blocks import lazy
from aniso.blocks.sample import orient, windows
from aniso.dispatch import takes_arrays
from aniso.noise.compression import has_blocks
from aniso.noise.constants import is_drawing
from aniso.noise.correlation import Probe, gain
from aniso.noise.curve_models import make_model
from aniso.noise.dependence import shared_spread
from aniso.noise.fitting import Curve
from aniso.noise.grains import find_correlation
from aniso.noise.kinds import COARSER, choose_curve, possible_kinds, remove_texture
from aniso.noise.level import check_channels, measure_noise
from aniso.noise.models import MODELS, Gaussian, NoiseModel, Speckle
from aniso.noise.selection import steepness_gain
from aniso.noise.spectrum import SEEN_PART, Spectrum
from aniso.noise.statistics import Blocks, average_blocks, collect_blocks, cover_masked
from aniso.noise.stripes import remove_stripes

# Share of the blocks, the flattest ones of each mean, that are looked at; and their least number.
_FLAT_SHARE, _LEAST_BLOCKS = 0.25, 100
# Then those not steeper than noise, by this factor, which grows with its correlation, are looked at; at least
# this share of all.
_NOISE_STEEPNESS, _MORE_OF_CORRELATED, _LEAST_SHARE = 1.5, 0.5, 0.08
# The most rounds of this, and the part by which the number of blocks may change in the last one.
_ROUNDS, _SAME_COUNT = 8, 0.05
# Share of the grey values that may lie below an offset, because of the noise of reading.
_BELOW_OFFSET = 0.02
# Variance over the squared range of grey values that is nothing but rounding in single precision.
_ROUNDING = 1e-13
# Part of the grey values that errors of computation may have.
_ROUND_OFF = 1e-12
# Least part of what differences see of correlated noise that is noise.
_LEAST_PART = 0.3
# Sides in pixels of cells whose means show low frequencies, by the number of axes; the least number of cells;
# and which part of the variance that correlated noise has there must be seen.
_CELL, _ENOUGH_CELLS, _SLOW_PART = {1: 64, 2: 16, 3: 8}, 16, 0.4
# Share of blocks that consist of lines from which on others are parts of them rather than correlated noise.
_MOST_LINES = 0.3
# The correlation of a second try, and the share of flat blocks that it needs.
_COARSE_START, _SURELY_COARSE = 1.0, 0.6
# The largest correlation of noise: wider grains are structure.
_WIDEST = 1.6
# Spread of the logarithm of energies that neighbouring blocks may have in common before they are texture
# rather than correlated noise, also after compression; and the largest certainty then.
_MOST_SHARED, _MOST_SHARED_IN_BLOCKS, _DOUBTED = 0.29, 0.5, 0.05
# The largest part of the variance of correlated noise that may be white, and an error of the correlation.
_MOST_WHITE, _CORRELATION_ERROR = 0.08, 0.05
# Share of flat blocks among the flattest ones from which on they show the noise. Otherwise its level is that
# of this share of all blocks, and of at least some, which have the least energy.
_SAFE, _LOWEST_SHARE, _LOWEST_BLOCKS = 0.1, 0.02, 20
# Levels of white noise in a volume: that from all voxels over that from blocks. The blocks of noise with the
# least energy have this part of its level.
_CLOSE, _LOWEST_OF_NOISE = (0.75, 1.1), 1.85


# Parameters of models that are grey values.
_IN_GREY_VALUES = {
    "gaussian": ("level",),
    "poisson": ("gain", "offset", "read_noise"),
    "rician": ("level",),
    "speckle": ("floor",),
}
# Ratio of noise levels up to which channels have the same noise.
_SAME_LEVEL = 1.15


@dataclass(frozen=True)
class NoiseEstimate:
    """The noise that was found in an image.

    Parameters
    ----------
    models : tuple of NoiseModel
        One for all channels, or one for each.
    certainty : float
        Share of the flattest parts of the image that contain only such noise: near 1, the estimate is
        reliable; near 0, it may be that of texture.
    level : float
        Standard deviation in grey values at the median grey value.
    compressed : bool
        True if the blocks of JPEG compression are visible, which has removed fine noise.
    rejected : Gaussian, optional
        Correlated noise that would explain the image, but was taken for texture.

    Examples
    --------
    >>> import aniso
    >>> found = aniso.noise.estimate(aniso.samples.shapes(128, noise=20.0).image)
    >>> found.kind, bool(18 < found.level < 22)
    ('gaussian', True)
    """

    models: tuple[NoiseModel, ...]
    certainty: float
    level: float
    compressed: bool = False
    rejected: Gaussian | None = None

    @property
    def kind(self) -> str:
        """The kind of noise, of the first channel if they differ."""
        return self.models[0].kind

    @property
    def correlation(self) -> float:
        """The largest correlation of all channels, in pixels."""
        return max(model.correlation for model in self.models)


def _estimate_tensor(
    image: Any, kind: str = "auto", *, channel_axis: int | None = None, mask: Any = None
) -> NoiseEstimate:
    """Return the noise of a PyTorch tensor; the images of a batch have the same noise."""
    check_tensor_image(image, channel_axis)
    pixels = image.detach().cpu()
    array = (pixels.float() if pixels.is_floating_point() and pixels.element_size() < 4 else pixels).numpy()
    given = None if mask is None else np.asarray(mask.cpu() if is_tensor(mask) else mask)
    if not is_batch(image, channel_axis):
        return estimate(array, kind, channel_axis=channel_axis, mask=given)
    _check_kind(kind)
    if given is not None:
        raise ValueError(
            f"mask must be None for a batch of images, got a mask of shape {given.shape}. Give one image."
        )
    chosen = windows(array.shape[2:], array.shape[0] * array.shape[1])
    return estimate_windows([one[(slice(None), *window)] for one in array for window in chosen], kind)


def _check_kind(kind: str) -> None:
    names = ("auto", *MODELS)
    if kind not in names:
        raise ValueError(f"kind must be one of {', '.join(names)}, got {kind!r}.")


@takes_arrays(torch=_estimate_tensor, dask=None, labelled="image.data")
def estimate(
    image: Any,
    kind: str = "auto",
    *,
    channel_axis: int | None = None,
    mask: Any = None,
) -> NoiseEstimate:
    """Find kind, level and correlation of the noise in an image.

    The image is cut into small blocks. In flat ones, differences over one to six pixels contain only
    noise, and their mean square has a known distribution; where there is texture, it is larger. The
    likeliest mixture of both gives the variance of the noise as a function of the mean. If the variance
    follows the mean clearly, the kind is not Gaussian. The correlation is the one for which differences over
    all distances give the same level. Clipped pixels, constant regions and blocks of lines are excluded.
    Where hardly any block is flat, the level is that of the finest differences in the blocks with the least
    energy, which is rather too low than too high.

    Of large arrays, windows are used: 524,288 pixels of an image or 320,000 voxels of a volume.

    Parameters
    ----------
    image : array
        A signal, an image or a volume: a NumPy array, a Dask array, a PyTorch tensor, or a batch of tensors
        with the same noise.
    kind : {"auto", "gaussian", "poisson", "rician", "speckle"}
        The kind of noise, if it is known.
    channel_axis : int, optional
        The axis of the channels.
    mask : array of bool, optional
        True at pixels that do not count, without the channels.

    Returns
    -------
    NoiseEstimate
        The models, how sure they are, and a typical level.

    Examples
    --------
    >>> import numpy as np
    >>> from aniso import noise
    >>> truth = np.tile(np.linspace(20.0, 200.0, 256), (256, 1))
    >>> camera = noise.PoissonGaussian(gain=2.0, read_noise=3.0)
    >>> found = noise.estimate(camera.sample(truth, np.random.default_rng(0)))
    >>> found.kind, bool(1.8 < found.models[0].gain < 2.2)
    ('poisson', True)
    """
    _check_kind(kind)
    if is_dask(image):
        lazy.check_chunks(image, channel_axis)
        channels = channels_first(image, channel_axis)
    else:
        channels = check_channels(image, channel_axis)
    shape = tuple(channels.shape[1:])
    chosen = windows(shape, len(channels))
    parts: Any = [channels[(slice(None), *window)] for window in chosen]
    masks: Any = None
    if mask is not None:
        given = mask if is_dask(mask) else np.asarray(mask)
        if given.dtype != bool or given.shape != shape:
            raise ValueError(
                f"mask must be an array of bool of shape {shape}, got {given.dtype} of shape {given.shape}."
            )
        masks = [given[window] for window in chosen]
    if is_dask(image) or is_dask(mask):
        from dask.base import compute

        parts, masks = compute(parts, masks)
    oriented, masks = orient([check_channels(part, 0) for part in parts], masks)
    return estimate_windows(oriented, kind, masks)


def estimate_windows(
    images: Sequence[Array],
    kind: str = "auto",
    masks: Sequence[Mask] | None = None,
    compressed: bool | None = None,
) -> NoiseEstimate:
    """Return the noise of images (channels, …), windows of one as a rule.

    `compressed` says whether they were stored as JPEG files; if it is None, traces of that are looked for.
    """
    if compressed is None:
        compressed = has_blocks(images)
    count = len(images[0])
    each = [[window[k].astype(np.float64) for window in images] for k in range(count)]
    found = [_estimate_channel(channel, kind, masks, compressed) for channel in each]
    greys = [float(np.median(np.concatenate([window.ravel() for window in channel]))) for channel in each]
    if count > 1:
        levels = [[model.std_at(grey) for grey in greys] for model, *_ in found]
        lowest, highest = np.min(levels, axis=0), np.max(levels, axis=0)
        if np.all(highest <= _SAME_LEVEL * lowest):
            pooled = [window for channel in each for window in channel]
            repeated = None if masks is None else [*masks] * count
            found = [_estimate_channel(pooled, kind, repeated, compressed)]
    models = tuple(model for model, *_ in found)
    certainty = min(share for _, share, _ in found)
    # Fine noise is still there, unless hardly any is seen.
    compressed = compressed and (certainty < _SAFE or any(model.correlation > 0 for model in models))
    if compressed:  # low frequencies have the noise that they had
        models = tuple(replace(model, correlation=0.0) for model in models)
    all_models = models if len(models) == count else models * count
    level = math.sqrt(
        sum(model.std_at(grey) ** 2 for model, grey in zip(all_models, greys, strict=True)) / count
    )
    rejected = max((one for *_, one in found if one is not None), key=lambda one: one.level, default=None)
    return NoiseEstimate(models, certainty, level, compressed, rejected)


def _estimate_channel(
    windows: Sequence[Field], kind: str, masks: Sequence[Mask] | None, compressed: bool
) -> tuple[Any, float, Gaussian | None]:
    """Return the noise of windows without channels, in double precision, how sure it is, and what it is not.

    The latter is correlated noise that was taken for texture.
    """
    if masks is not None:
        windows = [cover_masked(window, mask) for window, mask in zip(windows, masks, strict=True)]
    if all(window.min() == window.max() for window in windows):
        return Gaussian(0.0), 1.0, None
    largest = max(float(abs(window).max()) for window in windows)
    scale = 2.0 ** math.floor(math.log2(largest))  # so that nothing depends on the unit of grey values
    model, certainty, rejected = _estimate_scaled(
        [window / scale for window in windows], kind, masks, compressed
    )
    scaled = {name: scale * getattr(model, name) for name in _IN_GREY_VALUES[model.kind]}
    if rejected is not None:
        rejected = replace(rejected, level=scale * rejected.level)
    return replace(model, **scaled), certainty, rejected


def _estimate_scaled(
    windows: Sequence[Field], kind: str, masks: Sequence[Mask] | None, compressed: bool
) -> tuple[Any, float, Gaussian | None]:
    """Return the noise of windows whose grey values are not larger than 2."""
    original, windows = windows, [remove_stripes(window) for window in windows]
    striped = any(calm is not window for calm, window in zip(windows, original, strict=True))
    blocks = collect_blocks(original, masks, windows)
    if blocks is None:
        level = float(np.median([measure_noise(window[np.newaxis]) for window in windows]))
        return Gaussian(level), 0.0, None
    if (
        max(energies.max() for energies in blocks.energies.values())
        <= (_ROUND_OFF * abs(blocks.means).max()) ** 2
    ):
        return Gaussian(0.0), 0.0, None
    if kind == "auto" and is_drawing(original):
        return Gaussian(0.0), 1.0, None
    darker = (np.count_nonzero((one[..., 1:] <= 0) & (one[..., :-1] != one[..., 1:])) for one in windows)
    dark = float(sum(darker))
    quantum = _quantum(original)
    blocks = replace(blocks, dark=float(dark), quantum=quantum)
    kinds = possible_kinds(windows, striped) if kind == "auto" else (kind,)
    rounding = quantum**2 / 12
    flat = blocks.flattest(max(_FLAT_SHARE, min(1.0, _LEAST_BLOCKS / len(blocks))), np.ones(len(blocks)))
    extent = max(float(window.max()) for window in windows) - min(float(window.min()) for window in windows)
    finest = next(iter(blocks.energies))
    if float(np.median(flat.energies[finest])) <= _ROUNDING * extent**2:
        return Gaussian(0.0), 1.0, None
    found = _refine(blocks, flat, 0.0, kinds, rounding)
    lines = float(np.mean(np.isinf(blocks.steepness)))
    # Fine differences may see nothing of correlated noise.
    if found.curve.share < _SAFE and lines <= _MOST_LINES:
        coarse = _refine(blocks, flat, _COARSE_START, kinds, rounding)
        found = coarse if coarse.curve.share > _SURELY_COARSE and coarse.correlation > 0 else found
    lowest = float(np.quantile(np.concatenate([window.ravel() for window in windows]), _BELOW_OFFSET))
    mean = float(np.mean(blocks.means))
    model, texture, rejected = found.make_model(lowest, mean), False, None
    if found.correlation > 0:
        # The energy of speckle follows that of the image, which neighbouring blocks have in common.
        # What compression leaves of noise is different in each of its blocks, and may seem white.
        most = _MOST_SHARED_IN_BLOCKS if compressed else _MOST_SHARED
        texture = not isinstance(model, Speckle) and _is_texture(blocks, found, model, most)
        # Noise that was smoothed has no white part: this is white noise, and texture with that correlation.
        texture = texture or (found.white > _MOST_WHITE and not compressed)
        if texture or found.correlation > _WIDEST or not _varies_slowly(windows, found):
            rejected = Gaussian(model.std_at(mean), min(found.correlation, _WIDEST))
            white = _sharpest(flat, 0.0)
            found = _Fit(choose_curve(blocks, flat, white, 0.0, kinds, 0), 0.0, white, flat)
            model = found.make_model(lowest, mean)
            texture = texture and _is_texture(blocks, found, model, most)
    share = min(found.curve.share, _DOUBTED) if texture else found.curve.share
    accurate = blocks.ndim == 3 and masks is None and not striped
    if share < _SAFE and kind in ("auto", "gaussian"):
        level = _lowest_level(blocks)
        if accurate:
            level = _level_of_volume(windows, level, _LOWEST_OF_NOISE * level) or level
        return Gaussian(level), share, rejected
    if accurate and isinstance(model, Gaussian) and found.correlation == 0:
        low, high = (factor * model.level for factor in _CLOSE)
        model = Gaussian(_level_of_volume(windows, low, high) or model.level)
    return model, share, rejected


@dataclass(frozen=True)
class _Fit:
    """A curve, the correlation, the difference that sees the curve, and the flat blocks."""

    curve: Curve
    correlation: float
    probe: Probe
    flat: Blocks
    factor: float = 1.0  # from what the difference sees to the variance of the noise
    white: float = 0.0  # part of the variance that is white, beside correlated noise

    def make_model(self, lowest: float, mean: float) -> NoiseModel:
        """Return the model, with no offset above the lowest grey values, for an image with this mean."""
        return make_model(self.curve, self.factor, self.correlation, self.flat, lowest, mean)


def _refine(blocks: Blocks, flat: Blocks, correlation: float, kinds: Sequence[str], rounding: float) -> _Fit:
    """Return what is found from a first guess of flat blocks and of the correlation, in a few rounds."""
    probe, joined, original = _sharpest(flat, correlation), 0, blocks
    for _ in range(_ROUNDS):
        curve = choose_curve(blocks, flat, probe, correlation, kinds, joined)
        spectrum = find_correlation(flat, curve, correlation, rounding)
        settled = joined > 0 and spectrum.correlation == correlation
        count, correlation = len(flat), spectrum.correlation
        variances = curve.at(blocks.greys(curve.kind)) * _noise_factor(spectrum, probe, flat.ndim)
        blocks = original.steady(variances, correlation)
        flat = _flat_blocks(blocks, variances, correlation)
        probe, joined = _sharpest(flat, correlation), COARSER
        if settled and abs(len(flat) - count) <= _SAME_COUNT * count:
            break
    curve = choose_curve(blocks, flat, probe, correlation, kinds, joined)
    if correlation > 0:
        curve = remove_texture(curve, blocks, flat, probe, correlation, kinds, joined)
    factor = _noise_factor(spectrum, probe, flat.ndim)
    least = max(correlation - _CORRELATION_ERROR, 0.0)
    white = spectrum.finest / factor - gain(least, next(iter(flat.energies)), flat.ndim)
    return _Fit(curve, correlation, probe, flat, factor, white)


def _is_texture(blocks: Blocks, fit: _Fit, model: NoiseModel, most: float) -> bool:
    """Return whether neighbouring flat blocks have too much in common for noise."""
    blocks = blocks.steady(model.variance(blocks.greys(model.kind)), fit.correlation)
    variances = model.variance(blocks.greys(model.kind))
    limit = _steepest(fit.correlation) * steepness_gain(fit.correlation, blocks.ndim)
    flat = blocks.steepness <= limit * variances
    spread = shared_spread(blocks.take(flat), variances[flat] / fit.factor, fit.probe, fit.correlation)
    return spread > most


def _noise_factor(spectrum: Spectrum, probe: Probe, ndim: int) -> float:
    """Return the variance of the noise over what differences see.

    Of white noise, the finest see everything, and hardly anything else.
    """
    if spectrum.correlation == 0:
        return 1.0
    return max(spectrum.noise_part(probe, ndim), _LEAST_PART) / spectrum.seen(probe, ndim)


def _varies_slowly(windows: Sequence[Field], fit: _Fit) -> bool:
    """Return whether means over cells vary as those of correlated noise, which has all low frequencies.

    Those of stripes, lattices and rings do not.
    """
    ndim = windows[0].ndim
    side = _CELL[ndim]
    means = [average_blocks(one, side) for one in windows if min(one.shape) >= side]
    if sum(map(len, means)) < _ENOUGH_CELLS:
        return False
    variance = fit.factor * float(np.median(fit.curve.variances))
    # The integral of the autocorrelation of noise that was blurred by a Gaussian.
    area = (4 * math.pi * fit.correlation**2) ** (ndim / 2)
    expected = variance * min(1.0, area / side**ndim)
    return float(np.concatenate(means).var()) > _SLOW_PART * expected


def _sharpest(blocks: Blocks, correlation: float) -> Probe:
    """Return the finest differences that see enough of the noise."""
    seen = [one for one in blocks.energies if gain(correlation, one, blocks.ndim) >= SEEN_PART]
    return seen[0] if seen else next(iter(blocks.energies))


def _lowest_level(blocks: Blocks) -> float:
    """Return the least level that is plausible: what the finest differences see in the flattest blocks."""
    energies = next(iter(blocks.energies.values()))
    share = max(_LOWEST_SHARE, min(1.0, _LOWEST_BLOCKS / len(blocks)))
    return math.sqrt(float(np.quantile(energies, share)))


def _level_of_volume(windows: Sequence[Field], low: float, high: float) -> float | None:
    """Return the level of white noise in a volume from all of its voxels, if it lies between two others.

    Diffusion removes most of the noise of a volume. Its error can be estimated only from an accurate level,
    and blocks of few voxels are less accurate.
    """
    level = math.sqrt(float(np.mean([measure_noise(window[np.newaxis]) ** 2 for window in windows])))
    return level if low <= level <= high else None


def _flat_blocks(blocks: Blocks, variances: Field, correlation: float) -> Blocks:
    """Return the blocks that are hardly steeper than noise alone makes them; at least some of each mean."""
    unit = variances * steepness_gain(correlation, blocks.ndim)
    share = max(_LEAST_SHARE, min(1.0, _LEAST_BLOCKS / len(blocks)))
    return blocks.flattest(share, unit, _steepest(correlation))


def _steepest(correlation: float) -> float:
    """Return the largest steepness of flat blocks, over that of noise."""
    return _NOISE_STEEPNESS + _MORE_OF_CORRELATED * correlation


def _quantum(windows: Sequence[Field]) -> float:
    """Return the distance between neighbouring grey values, or 0 if there are as many values as pixels."""
    values = np.unique(
        np.concatenate([window.ravel()[:: max(window.size // 20000, 1)] for window in windows])
    )
    size = sum(window.size for window in windows)
    if len(values) < 2 or len(values) > min(size, 20000) / 2:
        return 0.0
    return float(np.diff(values).min())
