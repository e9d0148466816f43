"""Mixtures of diffused images: the weights of least risk, and the stages that apply them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from aniso.arrays import Array, Field, is_tensor
from aniso.blocks.halo import Region
from aniso.blocks.stages import Channels, Flow, Stage, State
from aniso.memory import return_freed_memory
from aniso.noise import correlation
from aniso.verbs.flatness import REACH, flat_bands, tensor_flatness
from aniso.verbs.risk import Judge, Stop

# The gain of weights must exceed this many standard deviations of the estimate.
_CAUTION, _WEIGHT_ROUNDS = 6.0, 20
# The least noise of an axis of the channels that is mixed, as a part of the noise level.
_LEAST_NOISE = 0.8
# A mixture with a risk below minus this part of the noise variance is rejected: where the noise has one
# level, and where it has several, which are less certain.
_RISK_IN_DOUBT, _RISK_OF_SEVERAL = 0.05, 0.02
# Pixels that are computed at a time, so that they stay in the cache; and the least number of such parts, of
# which every second one is in the other half.
_AT_ONCE, _PARTS = 2**13, 8

#: Weights from channels to channels.
Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Weights:
    """The weights of one image in a mixture, and those that are added where the image is flat."""

    everywhere: Matrix
    flat: Matrix


#: Images that are mixed, and their weights; None for one that is taken alone.
Mixture = list[tuple[Stop, Weights | None]]


def check_sums(weights: list[Weights], channels: int) -> None:
    """Reject weights of a plan that are not for this number of channels, or do not add up to 1."""
    square = {(channels, channels)}
    for matrix in (matrix for one in weights for matrix in (one.everywhere, one.flat)):
        if {(len(matrix), len(row)) for row in matrix} != square:
            raise ValueError(f"the weights of a plan for {channels} channels must be square matrices.")
    sums = [np.sum([getattr(one, name) for one in weights], axis=0) for name in ("everywhere", "flat")]
    if not np.allclose(sums, [np.eye(channels), np.zeros((channels,) * 2)], rtol=0, atol=1e-9):
        raise ValueError("the weights of a plan must add up to 1.")


# -- choosing -----------------------------------------------------------------------------------------------


def mix_stops(
    judge: Judge, best: Stop, helpers: list[Stop], *, sure: bool = False
) -> tuple[Mixture, float, float]:
    """Return the images to mix with the weights of least risk, the risk of the mixture, and a crossed one.

    The risk is too low, since the weights are fitted to the same pixels. The crossed one is rather too high:
    that of mixtures in one half of the pixels, with weights that are fitted to the other half.

    The mixture is best + Σ (a_k + b_k·flatness)(image_k − best). Channels are first rotated to their
    principal axes, which keeps white noise white, and each axis has its own weights: brightness needs other
    ones than colour. The risk is a quadratic function of the weights; those without a significant gain are
    0. The estimate holds for white noise of the given level: an axis with clearly less noise (channels with
    common noise, or a level that is too high) is not mixed, unless one is `sure` of the level of a single
    channel. A mixture with a clearly negative risk, or with a larger distance from the best image than the
    noise level, is rejected, and the list is empty.
    """
    stops = [stop for stop in (judge.start, *helpers) if stop is not best]
    flats = tuple(np.concatenate([one.ravel() for one in windows]) for windows in best.flat)
    axes = judge.axes
    weights, risk, change = np.zeros((len(axes), 2, len(stops))), judge.risk(best), 0.0
    crossed = risk
    for number, axis in enumerate(axes):
        if not (sure and len(axes) == 1) and not _has_noise(judge, number):
            continue
        halves = _View(judge, best, stops, flats, axis).quadratic()
        gram, gain, doubt = (one + other for one, other in zip(*halves, strict=True))
        chosen = _cautious_weights(gram, gain, doubt)
        weights[number] = chosen.reshape(2, -1)
        square = float(chosen @ gram @ chosen)
        risk += (square - 2 * float(chosen @ gain)) / judge.size
        change += square / judge.size
        for half, (gram, gain, _) in zip(halves, halves[::-1], strict=True):
            chosen = _cautious_weights(*half)
            crossed += float(chosen @ gram @ chosen - 2 * chosen @ gain) / judge.size
    doubtful = _RISK_OF_SEVERAL if judge.uneven else _RISK_IN_DOUBT
    if risk < -doubtful * judge.level**2 or change > judge.level**2:
        return [], judge.risk(best), max(judge.risk(best), crossed)
    doubles = axes.astype(np.float64)
    # Vᵀ·diag(w)·V for each stop; the best image has the rest.
    matrices = np.einsum("nc,nfk,nd->kfcd", doubles, weights, doubles)
    rest = np.stack([np.eye(len(axes)), np.zeros((len(axes), len(axes)))]) - matrices.sum(axis=0)
    pairs = zip((*stops, best), (*matrices, rest), strict=True)
    return [(stop, Weights(*map(_as_matrix, both))) for stop, both in pairs if both.any()], risk, crossed


def mixed_windows(mixture: Mixture, best: Stop) -> tuple[list[Array], list[Array]]:
    """Return the windows of a mixture, and the changed ones; weights depend on the flatness of `best`."""

    def mix(number: int, *, changed: bool) -> Array:
        flat, total = best.flat[changed][number], None
        for stop, weights in mixture:
            if weights is not None:
                window = (stop.changed if changed else stop.image)[number]
                total = _add(total, window, weights.everywhere, weights.flat, flat)
        assert total is not None
        return total

    count = range(len(best.image))
    return [mix(k, changed=False) for k in count], [mix(k, changed=True) for k in count]


def _as_matrix(array: Field) -> Matrix:
    return tuple(tuple(float(entry) for entry in row) for row in array)


@dataclass(frozen=True, eq=False)
class _View:
    """Stops projected onto one axis of the channels, in parts: never all of them in double precision."""

    judge: Judge
    best: Stop
    stops: list[Stop]
    flats: tuple[Array, ...]
    axis: Array

    def quadratic(self) -> list[tuple[Array, Array, Array]]:
        """Return, for both halves of the pixels, what determines the weights.

        It is the Gram matrix of the terms, the gain of each, and the covariance of that estimate.
        """
        count, variance = 2 * len(self.stops), self.judge.level**2
        gram, doubt, gain = np.zeros((2, count, count)), np.zeros((2, count, count)), np.zeros((2, count))
        first = half = 0
        at_once = min(_AT_ONCE, math.ceil(sum(window[0].size for window in self.judge.image) / _PARTS))
        for number, window in enumerate(self.judge.image):
            size = window[0].size
            for low in range(0, size, at_once):
                part = slice(low, min(low + at_once, size))
                flats = [flat[first + part.start : first + part.stop] for flat in self.flats]
                terms = self._terms(number, part, flats[0], changed=False)
                follows = (self._terms(number, part, flats[1], changed=True) - terms) / self.judge.step
                residual = self._project(window, part) - self._project(self.best.image[number], part)
                gram[half] += _products(terms)
                doubt[half] += _products(follows)
                probe = self._project(self.judge.probe[number], part)
                gain[half] += terms @ residual - variance * (follows @ probe)
                half = 1 - half
            first += size
        # Correlated noise has less independent values.
        power = correlation.power_at_zero(self.judge.correlation, self.judge.image[0].ndim - 1)
        return list(zip(gram, gain, power * (variance * gram + 2 * variance**2 * doubt), strict=True))

    def _project(self, image: Array, part: slice) -> Field:
        channels = image.reshape(len(self.axis), -1)[:, part]
        return self.axis.astype(np.float64) @ channels.astype(np.float64)

    def _terms(self, number: int, part: slice, flat: Array, *, changed: bool) -> Field:
        """Return the terms that the weights multiply, one row each."""
        images = [(stop.changed if changed else stop.image)[number] for stop in (self.best, *self.stops)]
        start, *others = (self._project(image, part) for image in images)
        differences = np.array([other - start for other in others])
        return np.concatenate([differences, flat * differences])


def _products(rows: Field) -> Field:
    """Return the scalar products of all pairs."""
    # One by one, since matrix products use threads of BLAS, which are slow on a busy machine.
    products = np.empty((len(rows), len(rows)))
    for i, row in enumerate(rows):
        for j in range(i + 1):
            products[i, j] = products[j, i] = row @ rows[j]
    return products


def _has_noise(judge: Judge, number: int) -> bool:
    """Return whether the image along one of the axes can have the noise of the judge."""
    spread, noise = judge.along_axes[number]
    # As it is seen by second differences.
    seen = math.sqrt(correlation.gain(judge.correlation, (2, 1), judge.image[0].ndim - 1))
    return spread >= _LEAST_NOISE * judge.level and noise >= _LEAST_NOISE * seen * judge.level


def _cautious_weights(gram: Array, gain: Array, doubt: Array) -> Array:
    """Return the weights w that minimise w·gram·w − 2 w·gain + caution·√(w·doubt·w).

    `gain` is an estimate whose covariance is about `doubt`: the root is the standard deviation of w·gain. If
    no gain is significant, the weights are 0. The root is a square divided by a number, which a few rounds
    determine.
    """
    scale = math.sqrt(float(np.trace(doubt)))
    for _ in range(_WEIGHT_ROUNDS):
        if scale == 0:
            break
        weights = np.linalg.lstsq(gram + 0.5 * _CAUTION / scale * doubt, gain, rcond=1e-12)[0]
        scale = math.sqrt(max(float(weights @ doubt @ weights), 0.0))
    return weights if scale > 0 else np.zeros_like(gain)


# -- applying -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AddWeighted(Stage):
    """Add an image of the state to the mixture, with its weights.

    Until the flatness is known, what it multiplies is added up in an image of its own.
    """

    name: str
    weights: Weights
    ndim: int

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Add the image to "mixture", and perhaps to "flat_mixture"."""
        image, weights = state[self.name], self.weights
        add = _add_tensors if is_tensor(image) else _add
        if "flat" in state:
            state["mixture"] = add(
                state.get("mixture"), image, weights.everywhere, weights.flat, state["flat"]
            )
            return
        for name, matrix in (("mixture", weights.everywhere), ("flat_mixture", weights.flat)):
            state[name] = add(state.get(name), image, matrix)

    def flow(self, before: Channels) -> Flow:
        """Make the mixture and, until the flatness is known, the image that it multiplies."""
        made = ("mixture",) if "flat" in before else ("mixture", "flat_mixture")
        read = {self.name, "mixture", "flat", "flat_mixture"} & before.keys()
        return Flow(read, dict.fromkeys(made, before[self.name]))

    def working(self, channels: Channels, ndim: int) -> int:
        """Work in place, part by part."""
        return 0

    def seconds(self, channels: Channels, itemsize: int) -> float:
        """Estimate the time per pixel: from each channel to each."""
        return self.cost * channels[self.name] ** 2 * itemsize / 4


def _add(
    total: Array | None, image: Array, weights: Matrix, flat_weights: Matrix = (), flat: Array | None = None
) -> Array:
    """Add weighted channels to `total`, part by part, and return it; None is a new array of zeros."""
    total = np.zeros(image.shape, image.dtype) if total is None else total
    pixels, rows = (each.reshape(len(image), -1) for each in (image, total))
    flat = None if flat is None else flat.reshape(-1)
    for low in range(0, pixels.shape[1], _AT_ONCE):
        part = slice(low, low + _AT_ONCE)
        for i, row in enumerate(rows):
            for j, channel in enumerate(pixels):
                factor = weights[i][j] if flat is None else weights[i][j] + flat_weights[i][j] * flat[part]
                row[part] += factor * channel[part]
    return total


def _add_tensors(
    total: Any, image: Any, weights: Matrix, flat_weights: Matrix = (), flat: Any | None = None
) -> Any:
    """Return the sum of `total`, or 0, and the weighted channels of a tensor (images, channels, …)."""
    import torch

    def weighted(matrix: Matrix) -> Any:
        return torch.einsum("ij,nj...->ni...", image.new_tensor(matrix), image)

    total = weighted(weights) + (0 if total is None else total)
    return total if flat is None else total + flat * weighted(flat_weights)


@dataclass(frozen=True)
class MeasureFlatness(Stage):
    """Measure the flatness of an image of the state, and complete what was added to the mixture so far."""

    name: str
    level: float
    ndim: int

    cost = 6e-8

    @property
    def reach(self) -> tuple[int, ...]:
        """The radii of both Gaussians."""
        return (REACH,) * self.ndim

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Compute "flat"."""
        later = state.pop("flat_mixture", None)
        image = state[self.name]
        if is_tensor(image):
            state["flat"] = tensor_flatness(image, self.level)
            if later is not None:
                state["mixture"] = state["mixture"] + state["flat"] * later
            return
        # In the memory of what is added, if it has the same size.
        flat = later if later is not None and len(later) == 1 else np.empty_like(image[:1])
        for rows, band in flat_bands(image, self.level):
            for row, added in zip(state["mixture"], later, strict=True) if later is not None else ():
                row[rows] += band * added[rows]
            flat[0, rows] = band
        state["flat"] = flat
        if self.ndim == 3:
            return_freed_memory()  # of bands, into which whole volumes do not fit

    def flow(self, before: Channels) -> Flow:
        """Make the flatness, and complete the mixture by what the flatness multiplies."""
        read = {self.name, "mixture", "flat_mixture"} & before.keys()
        made = {name: before[name] for name in ("mixture",) if name in before} | {"flat": 1}
        return Flow(read, made, {"flat_mixture"})

    def seconds(self, channels: Channels, itemsize: int) -> float:
        """Estimate the time per pixel."""
        return self.cost * channels[self.name] * itemsize / 4
