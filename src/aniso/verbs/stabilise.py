"""Stages before and after diffusion: impulses are filled, and noise is made the same everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from aniso.arrays import Array, Mask, is_tensor
from aniso.blocks.halo import Region
from aniso.blocks.stages import Stage, State
from aniso.colours import OPPONENT, Axes
from aniso.noise import Gaussian, NoiseModel
from aniso.noise.compression import has_blocks
from aniso.noise.constants import find_noiseless
from aniso.noise.estimate import NoiseEstimate, estimate_windows
from aniso.noise.impulses import REACH, Impulses

# Width in pixels of the Gaussian that gives a local mean.
_LOCAL = 2.0
# Values that are transformed at a time, because transforms need several times their memory.
_AT_ONCE = 2**18

#: The noise of an image: one model for all channels, or one for each.
Models = tuple[NoiseModel, ...]

# Noise of brightness over that of colours from which on channels have common noise.
_COMMON = 1.3
# Noise of colours over that of brightness below which they were stored at a lower resolution, its least part
# that remains of white noise then, and the certainty below which their noise is not seen.
_REDUCED, _LEAST_OF_COLOURS, _UNSEEN = 0.4, 0.25, 0.25


def decorrelate(found: NoiseEstimate, windows: list[Array], masks: Any) -> tuple[Axes, NoiseEstimate] | None:
    """Return axes of three channels on which the noise is independent, and their noise, if it is common.

    The sensors of cameras, and what happens to their images, give colours common noise of Gaussian kind.
    """
    if len(windows[0]) != 3 or found.level == 0:
        return None
    turned = [mix_channels(OPPONENT, window) for window in windows]
    parts = [[one[k : k + 1] for one in turned] for k in range(3)]
    # Compression is stronger for colours, and its blocks are seen in them first.
    compressed = found.compressed or any(has_blocks(part) for part in parts)
    each = [estimate_windows(part, "gaussian", masks, compressed) for part in parts]
    levels = [one.level for one in each]
    if levels[0] < _COMMON * max(levels[1:]) or min(levels) == 0:
        return None
    if each[0].certainty < _UNSEEN <= found.certainty:  # that of the channels is known better
        return None
    if not is_gaussian(found.models) and max(levels[1:]) > _REDUCED * levels[0]:
        return None
    # Differences of colours are often stored at half of the resolution, and have coarser noise then. They are
    # filtered as if it had the correlation of that of brightness, which is what is seen. Compression may have
    # removed their fine noise, so that their level is not seen, but it is still a part of that of brightness.
    unseen = [compressed or one.certainty < _UNSEEN for one in each[1:]]
    for k, lost in enumerate(unseen, 1):
        levels[k] = max(levels[k], _LEAST_OF_COLOURS * levels[0]) if lost else levels[k]
    certainty = min(
        each[0].certainty, *(1.0 if lost else each[k].certainty for k, lost in enumerate(unseen, 1))
    )
    models = tuple(Gaussian(level, each[0].correlation) for level in levels)
    total = math.sqrt(sum(level**2 for level in levels) / 3)
    compressed = found.compressed or each[0].compressed
    return OPPONENT, NoiseEstimate(models, certainty, total, compressed, found.rejected)


def mix_channels(axes: Axes, image: Any, *, back: bool = False) -> Any:
    """Return the components of an image (channels, …), or tensor (images, channels, …), along axes."""
    matrix = np.array(axes).T if back else np.array(axes)
    channels = image.unbind(1) if is_tensor(image) else image
    rows = []
    for weights in matrix:
        total: Any = 0
        for weight, channel in zip(weights, channels, strict=True):
            total = total + float(weight) * channel
        rows.append(total)
    if is_tensor(image):
        import torch

        return torch.stack(rows, 1)
    return np.stack(rows).astype(image.dtype, copy=False)


def is_plain(models: Models) -> bool:
    """Return whether the noise has one level everywhere, so that grey values can stay as they are."""
    return len(models) == 1 and is_gaussian(models)


def is_gaussian(models: Models) -> bool:
    """Return whether the noise of no channel depends on the grey value."""
    return all(isinstance(one, Gaussian) for one in models)


def stabilised_level(models: Models) -> float:
    """Return the noise level of stabilised images."""
    return models[0].unit if is_plain(models) else 1.0


def mean_scale(models: Models, windows: list[Array]) -> float:
    """Return grey values per unit of a stabilised image: the root mean square of noise levels."""
    if is_plain(models):
        return 1.0
    total = 0.0
    for number in range(len(windows[0])):
        model = models[number % len(models)]
        total += sum(float(model.variance(window[number]).sum()) for window in windows)
    return math.sqrt(total / sum(window.size for window in windows))


def grey_weights(models: Models, windows: list[Array]) -> list[Array]:
    """Return what squared errors of stabilised windows are in grey values, over the mean of this."""
    from scipy import ndimage

    found = [np.empty_like(window) for window in windows]
    for window, target in zip(windows, found, strict=True):
        for (model, channel), each in zip(_pairs(models, window), target, strict=True):
            each[...] = model.variance(ndimage.gaussian_filter(channel, _LOCAL, mode="reflect"))
    mean = sum(float(one.sum()) for one in found) / sum(one.size for one in found)
    return [one / mean for one in found] if mean > 0 else found


def remaining_levels(models: Models, windows: list[Array]) -> list[Array] | None:
    """Return the noise levels that stabilised windows really have, or None if they are the same everywhere.

    They are less than 1 where there are few photons, or no signal.
    """
    from scipy import ndimage

    if is_plain(models):
        return None
    levels = []
    for window in windows:
        level = np.empty_like(window)
        for (model, channel), target in zip(_pairs(models, window), level, strict=True):
            mean = ndimage.gaussian_filter(channel * model.unit, _LOCAL, mode="reflect")
            target[...] = np.sqrt(model.stabilised_variance(mean)) / model.unit
        levels.append(level)
    return levels


def without_noise(
    levels: list[Array] | None, level: float, windows: list[Array], known: list[Mask] | None
) -> list[Array] | None:
    """Return noise levels that are 0 at pixels that were filled in, and in constant regions.

    None stands for one `level` everywhere. Pixels are `known` if they were not filled in. If there is
    nothing but constant regions, the levels are left as they are.
    """
    noisy = [np.stack([~find_noiseless(channel) for channel in window]) for window in windows]
    if known is not None:
        noisy = [each & inside for each, inside in zip(noisy, known, strict=True)]
    elif level == 0 or all(each.all() for each in noisy) or not any(each.any() for each in noisy):
        return levels
    everywhere = levels or [np.full_like(window, level) for window in windows]
    return [each * inside for each, inside in zip(everywhere, noisy, strict=True)]


def stabilise(models: Models, image: Any) -> Any:
    """Return an image (channels, …), or tensor (images, channels, …), with noise of level 1."""
    return _transform(models, image, lambda model, z: model.stabilise(z) / model.unit)


def restore(models: Models, image: Any) -> Any:
    """Return the image whose stabilised noisy versions have this mean."""
    return _transform(models, image, lambda model, u: model.restore(u * model.unit))


def _transform(models: Models, image: Any, function: Callable[[NoiseModel, Any], Any]) -> Any:
    if is_plain(models):
        return image
    if is_tensor(image):
        import torch

        channels = image.unbind(1)
        return torch.stack([function(model, one) for model, one in _pairs(models, channels)], 1)
    result = np.empty_like(image)
    for (model, channel), target in zip(_pairs(models, image), result, strict=True):
        flat, found = channel.reshape(-1), target.reshape(-1)
        for low in range(0, flat.size, _AT_ONCE):
            found[low : low + _AT_ONCE] = function(model, flat[low : low + _AT_ONCE])
    return result


def _pairs(models: Models, channels: Any) -> Iterator[tuple[NoiseModel, Array]]:
    for number, channel in enumerate(channels):
        yield models[number % len(models)], channel


@dataclass(frozen=True)
class _Transform(Stage):
    """A change of grey values, pixel by pixel."""

    models: Models
    ndim: int

    cost = 3e-8


@dataclass(frozen=True)
class Stabilise(_Transform):
    """Make the noise of the image the same everywhere."""

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Replace the image."""
        state["image"] = stabilise(self.models, state["image"])


@dataclass(frozen=True)
class Restore(_Transform):
    """Return from stabilised grey values to those of the image."""

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Replace the image."""
        state["image"] = restore(self.models, state["image"])


@dataclass(frozen=True)
class MixChannels(Stage):
    """Replace channels by their components along axes, or the other way round."""

    axes: Axes
    back: bool
    ndim: int

    cost = 1e-8

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Replace the image."""
        state["image"] = mix_channels(self.axes, state["image"], back=self.back)


@dataclass(frozen=True)
class FillImpulses(Stage):
    """Replace impulses by means of trusted neighbours."""

    impulses: Impulses
    ndim: int

    cost = 2e-7

    @property
    def reach(self) -> tuple[int, ...]:
        """That of the search for them and for neighbours."""
        return (REACH,) * self.ndim

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Replace the image."""
        image = state["image"]
        if not is_tensor(image):
            state["image"] = self.impulses.fill(image)
            return
        import torch

        # One by one and in NumPy: they are few, and searching is not differentiable.
        each = [self.impulses.fill(one.numpy(force=True)) for one in image]
        filled = torch.stack([torch.from_numpy(one) for one in each]).to(image)
        state["image"] = torch.where(filled == image, image, filled)  # other pixels have their gradients
