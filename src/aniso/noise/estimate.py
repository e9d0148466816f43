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
from aniso.blocks.sample import windows
from aniso.dispatch import takes_arrays
from aniso.noise.compression import has_blocks
from aniso.noise.correlation import Probe, freedom, gain, slope_gain
from aniso.noise.curve_models import make_model
from aniso.noise.fitting import Curve, fit_curve
from aniso.noise.level import check_channels, measure_noise
from aniso.noise.models import MODELS, Gaussian, NoiseModel
from aniso.noise.statistics import SEEN, Blocks, average_blocks, collect_blocks, cover_masked

# Share of the blocks, the flattest ones of each mean, that are looked at; and their least number.
_FLAT_SHARE, _LEAST_BLOCKS = 0.25, 100
# Then those not steeper than noise, by this factor, which grows with its correlation, are looked at; at least
# this share of all.
_NOISE_STEEPNESS, _MORE_OF_CORRELATED, _LEAST_SHARE, _ROUNDS = 1.5, 0.5, 0.08, 3
# Gain in log-likelihood over noise of one level that another kind needs: with flat blocks only, and for each
# textured block among a hundred.
_CLEAR_GAIN, _GAIN_PER_TEXTURE, _GAIN_OF_CORRELATED = 12.0, 0.2, 4.0
# Further gain that less common kinds need over photons; range of variances below which there is one level.
_RARE_GAIN, _LEAST_RANGE = 8.0, 1.1
# Share of flat blocks below which noise is Gaussian.
_SURE_KIND = 0.25
# Gain of magnitudes if this share of photons would be negative; offset over the median that is large.
_NO_NEGATIVE_GAIN, _NEGATIVE_OF_PHOTONS, _LARGE_OFFSET = 25.0, 0.002, 0.2
# Share of blocks that may have less energy than 95 in 100 flat ones, where a kind has more than one level.
# The second share holds for a large gain, since the energies of few photons vary more.
_LOW_QUANTILE, _LOW_SHARES, _LARGE_GAIN = 0.05, (0.065, 0.12), 80.0
# Share of pixels that may be negative in images of intensities.
_NEGATIVE_SHARE = 0.05
# Share of the grey values that may lie below an offset, because of the noise of reading.
_BELOW_OFFSET = 0.02
# Variance over the squared range of grey values that is nothing but rounding in single precision.
_ROUNDING = 1e-13
# Share of pixels that may be 0 next to another value in images of magnitudes.
_MOST_ZEROS = 0.004
# Correlations that are tried, in pixels.
_CORRELATIONS = (0.0, *(round(0.3 + 0.05 * k, 2) for k in range(35)))
# Errors of the logarithm of a variance: of all, and of those among textured blocks only.
_ERROR, _ERROR_OF_TEXTURE = 0.05, 0.8
# Logarithm of a variance beyond which it is rather texture.
_USUAL_EXCESS = 0.15
# Gain in squared errors that a correlation needs, below and above a least one; above, a gain in
# log-likelihood will do.
_CLEAR_MISFITS, _CLEAR_CORRELATION, _LEAST_CORRELATION = (15.0, 5.0), 10.0, 0.5
# Part of the variance of correlated noise that may be white.
_WHITE_PART = 0.01
# Part of the grey values that errors of computation may have.
_ROUND_OFF = 1e-12
# Variance over that of rounding from which on differences are seen.
_ABOVE_ROUNDING = 1.5
# How many coarser differences tell with the finest ones which blocks are flat.
_COARSER = 2
# Least part of the variance of correlated noise that differences must see.
_SEEN_PART = 0.3
# Sides in pixels of cells whose means show low frequencies, by the number of axes; the least number of cells;
# and which part of the variance that correlated noise has there must be seen.
_CELL, _ENOUGH_CELLS, _SLOW_PART = {1: 64, 2: 16, 3: 8}, 16, 0.4
# The correlation of a second try, and the share of flat blocks that it needs.
_COARSE_START, _SURELY_COARSE = 1.0, 0.6
# Share of flat blocks among the flattest ones from which on they show the noise. Otherwise its level is that
# of this share of all blocks, and of at least some, which have the least energy.
_SAFE, _LOWEST_SHARE, _LOWEST_BLOCKS = 0.1, 0.02, 20


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

    `models` has one entry for all channels, or one for each. `certainty` is the share of the flattest parts
    of the image in which there is nothing but such noise: near 1, the estimate is safe; near 0, it may be
    texture. `level` is the standard deviation in grey values at the median grey value. `compressed` means
    that the image was stored as a JPEG file after the noise came about: its blocks are seen, and fine noise
    is missing.
    """

    models: tuple[NoiseModel, ...]
    certainty: float
    level: float
    compressed: bool = False

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

    The image is cut into small blocks. In flat ones, differences over one to six pixels see nothing but
    noise, and their mean square has a known distribution; where there is texture, it is larger. The
    likeliest mixture of both gives the variance of the noise as a function of the mean. If the variance
    follows the mean clearly, the kind is not Gaussian. The correlation is the one with which differences over
    all distances see the same level. Clipped pixels and constant regions do not count, nor do blocks that
    consist of lines. Where hardly any block is flat, the level is what the finest differences see in those
    with the least energy: rather too low than too high.

    Windows of large arrays are looked at, 600,000 pixels of an image or 320,000 voxels of a volume.

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
    return estimate_windows([check_channels(part, 0) for part in parts], kind, masks)


def estimate_windows(
    images: Sequence[Array], kind: str = "auto", masks: Sequence[Mask] | None = None
) -> NoiseEstimate:
    """Return the noise of images (channels, …), windows of one as a rule."""
    count = len(images[0])
    each = [[window[k].astype(np.float64) for window in images] for k in range(count)]
    found = [_estimate_channel(channel, kind, masks) for channel in each]
    greys = [float(np.median(np.concatenate([window.ravel() for window in channel]))) for channel in each]
    if count > 1:
        levels = [[model.std_at(grey) for grey in greys] for model, _ in found]
        lowest, highest = np.min(levels, axis=0), np.max(levels, axis=0)
        if np.all(highest <= _SAME_LEVEL * lowest):
            pooled = [window for channel in each for window in channel]
            found = [_estimate_channel(pooled, kind, None if masks is None else [*masks] * count)]
    models = tuple(model for model, _ in found)
    compressed = any(model.correlation > 0 for model in models) and has_blocks(images)
    if compressed:  # low frequencies have the noise that they had
        models = tuple(replace(model, correlation=0.0) for model in models)
    all_models = models if len(models) == count else models * count
    level = math.sqrt(
        sum(model.std_at(grey) ** 2 for model, grey in zip(all_models, greys, strict=True)) / count
    )
    return NoiseEstimate(models, min(certainty for _, certainty in found), level, compressed)


def _estimate_channel(windows: Sequence[Field], kind: str, masks: Sequence[Mask] | None) -> tuple[Any, float]:
    """Return the noise of windows without channels, in double precision, and how sure it is."""
    if masks is not None:
        windows = [cover_masked(window, mask) for window, mask in zip(windows, masks, strict=True)]
    if all(window.min() == window.max() for window in windows):
        return Gaussian(0.0), 1.0
    largest = max(float(abs(window).max()) for window in windows)
    scale = 2.0 ** math.floor(math.log2(largest))  # so that nothing depends on the unit of grey values
    model, certainty = _estimate_scaled([window / scale for window in windows], kind, masks)
    scaled = {name: scale * getattr(model, name) for name in _IN_GREY_VALUES[model.kind]}
    return replace(model, **scaled), certainty


def _estimate_scaled(windows: Sequence[Field], kind: str, masks: Sequence[Mask] | None) -> tuple[Any, float]:
    """Return the noise of windows whose grey values are not larger than 2."""
    blocks = collect_blocks(windows, masks)
    if blocks is None:
        level = float(np.median([measure_noise(window[np.newaxis]) for window in windows]))
        return Gaussian(level), 0.0
    if (
        max(energies.max() for energies in blocks.energies.values())
        <= (_ROUND_OFF * abs(blocks.means).max()) ** 2
    ):
        return Gaussian(0.0), 0.0
    kinds = _possible_kinds(windows) if kind == "auto" else (kind,)
    rounding = _quantum(windows) ** 2 / 12
    flat = blocks.flattest(max(_FLAT_SHARE, min(1.0, _LEAST_BLOCKS / len(blocks))), blocks.steepness)
    extent = max(float(window.max()) for window in windows) - min(float(window.min()) for window in windows)
    finest = next(iter(blocks.energies))
    if float(np.median(flat.energies[finest])) <= _ROUNDING * extent**2:
        return Gaussian(0.0), 1.0
    found = _refine(blocks, flat, 0.0, kinds, rounding)
    if found.curve.share < _SAFE:  # fine differences may see nothing of correlated noise
        coarse = _refine(blocks, flat, _COARSE_START, kinds, rounding)
        found = coarse if coarse.curve.share > _SURELY_COARSE and coarse.correlation > 0 else found
    if found.correlation > 0 and not _varies_slowly(windows, found):
        white = _sharpest(flat, 0.0)
        found = _Fit(_choose_curve(blocks, flat, white, 0.0, kinds, 0), 0.0, white, flat)
    curve, correlation, probe, flat = found.curve, found.correlation, found.probe, found.flat
    if curve.share < _SAFE and kind in ("auto", "gaussian"):
        return Gaussian(_lowest_level(blocks)), curve.share
    lowest = float(np.quantile(np.concatenate([window.ravel() for window in windows]), _BELOW_OFFSET))
    model = make_model(curve, 1 / gain(correlation, probe, flat.ndim), correlation, flat, lowest)
    return model, curve.share


@dataclass(frozen=True)
class _Fit:
    """A curve, the correlation, the difference that sees the curve, and the flat blocks."""

    curve: Curve
    correlation: float
    probe: Probe
    flat: Blocks


def _refine(blocks: Blocks, flat: Blocks, correlation: float, kinds: Sequence[str], rounding: float) -> _Fit:
    """Return what is found from a first guess of flat blocks and of the correlation, in a few rounds."""
    probe, joined = _sharpest(flat, correlation), 0
    for _ in range(_ROUNDS):
        curve = _choose_curve(blocks, flat, probe, correlation, kinds, joined)
        correlation = _find_correlation(flat, curve, rounding)
        seen = gain(correlation, probe, flat.ndim)
        flat = _flat_blocks(blocks, curve.at(blocks.means) / seen, correlation)
        probe, joined = _sharpest(flat, correlation), _COARSER
    return _Fit(_choose_curve(blocks, flat, probe, correlation, kinds, joined), correlation, probe, flat)


def _varies_slowly(windows: Sequence[Field], fit: _Fit) -> bool:
    """Return whether means over cells vary as those of correlated noise, which has all low frequencies.

    Those of stripes, lattices and rings do not.
    """
    ndim = windows[0].ndim
    side = _CELL[ndim]
    means = [average_blocks(one, side) for one in windows if min(one.shape) >= side]
    if sum(map(len, means)) < _ENOUGH_CELLS:
        return False
    variance = float(np.median(fit.curve.variances)) / gain(fit.correlation, fit.probe, ndim)
    # The integral of the autocorrelation of noise that was blurred by a Gaussian.
    area = (4 * math.pi * fit.correlation**2) ** (ndim / 2)
    expected = variance * min(1.0, area / side**ndim)
    return float(np.concatenate(means).var()) > _SLOW_PART * expected


def _sharpest(blocks: Blocks, correlation: float) -> Probe:
    """Return the finest differences that see enough of the noise."""
    seen = [one for one in blocks.energies if gain(correlation, one, blocks.ndim) >= _SEEN_PART]
    return seen[0] if seen else next(iter(blocks.energies))


def _lowest_level(blocks: Blocks) -> float:
    """Return the least level that is plausible: what the finest differences see in the flattest blocks."""
    energies = next(iter(blocks.energies.values()))
    share = max(_LOWEST_SHARE, min(1.0, _LOWEST_BLOCKS / len(blocks)))
    return math.sqrt(float(np.quantile(energies, share)))


def _flat_blocks(blocks: Blocks, variances: Field, correlation: float) -> Blocks:
    """Return the blocks that are hardly steeper than noise alone makes them; at least some of each mean."""
    steepness = blocks.steepness / (variances * slope_gain(correlation, SEEN, blocks.ndim))
    share = max(_LEAST_SHARE, min(1.0, _LEAST_BLOCKS / len(blocks)))
    return blocks.flattest(share, steepness, _NOISE_STEEPNESS + _MORE_OF_CORRELATED * correlation)


def _possible_kinds(windows: Sequence[Field]) -> tuple[str, ...]:
    """Return the kinds that are possible: magnitudes are not negative, and intensities hardly ever."""
    low, least = np.quantile(np.concatenate([window.ravel() for window in windows]), [_NEGATIVE_SHARE, 0.0])
    found = ["gaussian", "poisson"]
    found += ["speckle"] if low >= 0 else []
    # Magnitudes of noise are hardly ever 0, unlike counts and clipped values; constant regions may be.
    zeros = np.mean([np.mean((window[..., 1:] == 0) & (window[..., :-1] != 0)) for window in windows])
    found += ["rician"] if least >= 0 and zeros < _MOST_ZEROS else []
    return tuple(found)


def _choose_curve(
    blocks: Blocks, flat: Blocks, probe: Probe, correlation: float, kinds: Sequence[str], joined: int
) -> Curve:
    """Return the likeliest curve; without a clear gain, that of one level.

    The number of coarser differences that are looked at as well is `joined`.
    """
    probes = _join(probe, tuple(flat.energies), joined)
    freedoms = [freedom(correlation, one, flat.side, flat.ndim) for one in probes]
    seen = gain(correlation, probe, flat.ndim)
    energies = np.stack([flat.energies[one] * (seen / gain(correlation, one, flat.ndim)) for one in probes])
    fits = {name: fit_curve(name, flat.means, energies, freedoms) for name in kinds}
    if "gaussian" not in fits or len(fits) == 1:
        return next(iter(fits.values()))
    plain = fits["gaussian"]
    best, most = plain, 0.0
    for name, curve in fits.items():
        low, high = np.quantile(curve.variances, [0.05, 0.95])
        wanted = _CLEAR_GAIN + _GAIN_PER_TEXTURE * 100 * (1 - curve.share)
        wanted *= 1 + _GAIN_OF_CORRELATED * correlation**2
        won = flat.weight * (curve.likelihood - plain.likelihood)
        if name != "gaussian" and (
            won < wanted
            or curve.share < _SURE_KIND
            or high < _LEAST_RANGE * low
            or _low_share(blocks, probe, freedoms[0], curve, plain) > _LOW_SHARES[won > _LARGE_GAIN]
        ):
            continue
        won -= _handicap(name, fits, blocks, seen)
        if won > most:
            best, most = curve, won
    return best


def _handicap(name: str, fits: dict[str, Curve], blocks: Blocks, seen: float) -> float:
    """Return the further gain that less common kinds need over photons, whose curve is similar.

    It is negative for magnitudes if photons with such a curve would often be negative: there are none.
    Speckle needs none over photons with a large offset.
    """
    photons = fits.get("poisson")
    if name not in ("speckle", "rician") or photons is None:
        return 0.0
    if name == "rician":
        from scipy import special

        below = special.ndtr(-blocks.means / np.sqrt(photons.at(blocks.means) / seen))
        return -_NO_NEGATIVE_GAIN if float(below.mean()) > _NEGATIVE_OF_PHOTONS else _RARE_GAIN
    first, slope = photons.coefficients
    return 0.0 if -first > _LARGE_OFFSET * slope * float(np.median(blocks.means)) else _RARE_GAIN


def _join(probe: Probe, probes: tuple[Probe, ...], count: int) -> tuple[Probe, ...]:
    """Return a probe, and coarser ones that see other frequencies, and with them more of texture."""
    coarser = [one for one in probes if one[0] == 2 and one[1] >= 2 * probe[1]]
    return (probe, *coarser[:count])


def _low_share(blocks: Blocks, probe: Probe, free: float, curve: Curve, plain: Curve) -> float:
    """Return the share of blocks with little energy for a curve, where it lies above one level.

    Texture can only add energy, so that this is seen in all blocks.
    """
    from scipy import stats

    variances = curve.at(blocks.means)
    above = variances > plain.at(blocks.means)
    limit = float(stats.chi2.ppf(_LOW_QUANTILE, free)) / free
    low = blocks.energies[probe] < limit * variances
    return float(low[above].mean()) if above.any() else 0.0


def _find_correlation(flat: Blocks, curve: Curve, rounding: float) -> float:
    """Return the correlation with which all second differences see the same level.

    Rounding to whole numbers adds white noise of the variance `rounding`.
    """
    added = rounding / float(np.median(curve.variances))
    relative = {probe: energies / curve.variances for probe, energies in flat.energies.items()}
    levels, shares = {}, {}
    for probe, energies in relative.items():
        fit = fit_curve(
            "gaussian", flat.means, energies[np.newaxis], [freedom(0.0, probe, flat.side, flat.ndim)]
        )
        if fit.level <= _ABOVE_ROUNDING * added:
            continue
        levels[probe], shares[probe] = fit.level - added, fit.share
    if len(levels) < 3:
        return 0.0
    # Of strongly correlated noise, fine differences see less than of a little white noise in addition.
    most = max((levels[probe] for probe in levels if shares[probe] > 0.5), default=0.0)
    errors = {
        probe: _ERROR + _ERROR_OF_TEXTURE * (1 - shares[probe]) + _WHITE_PART * most / levels[probe]
        for probe in levels
    }
    weights = np.array([errors[probe] ** -2 for probe in levels])
    misfits = {each: _misfit(levels, weights, each, flat.ndim) for each in _CORRELATIONS}
    best = min(misfits, key=misfits.__getitem__)
    clear = misfits[0.0] - 2 * misfits[best] > _CLEAR_MISFITS[best >= _LEAST_CORRELATION]
    if clear or best < _LEAST_CORRELATION:
        return best if clear else 0.0
    # Noise of this correlation, or white noise with more texture?
    seen = tuple(probe for probe in levels if levels[probe] >= 3 * _WHITE_PART * most)
    probes = _join(seen[0], seen, _COARSER)
    likelihoods = []
    for correlation in (0.0, best):
        logs = [math.log(levels[probe] / gain(correlation, probe, flat.ndim)) for probe in probes]
        variance = math.exp(min(logs))
        expected = [variance * gain(correlation, probe, flat.ndim) + added for probe in probes]
        energies = np.stack([relative[probe] / each for probe, each in zip(probes, expected, strict=True)])
        freedoms = [freedom(correlation, probe, flat.side, flat.ndim) for probe in probes]
        likelihoods.append(fit_curve("gaussian", flat.means, energies, freedoms).likelihood)
    return best if flat.weight * (likelihoods[1] - likelihoods[0]) > _CLEAR_CORRELATION else 0.0


def _misfit(levels: dict[Probe, float], weights: Field, correlation: float, ndim: int) -> float:
    """Return how much the levels differ that differences see of noise with this correlation.

    Texture adds to what coarse differences see, and may explain that they see more, but nothing makes them
    see less.
    """
    logs = np.array([math.log(level / gain(correlation, probe, ndim)) for probe, level in levels.items()])
    excess = logs - logs[:, np.newaxis]
    losses = np.where(excess > _USUAL_EXCESS, _USUAL_EXCESS * (2 * excess - _USUAL_EXCESS), np.square(excess))
    return float(np.min(losses @ weights))


def _quantum(windows: Sequence[Field]) -> float:
    """Return the distance between neighbouring grey values, or 0 if there are as many values as pixels."""
    values = np.unique(
        np.concatenate([window.ravel()[:: max(window.size // 20000, 1)] for window in windows])
    )
    size = sum(window.size for window in windows)
    if len(values) < 2 or len(values) > min(size, 20000) / 2:
        return 0.0
    return float(np.diff(values).min())
