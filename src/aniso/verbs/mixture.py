"""Mixtures of diffused images with the weights of least risk."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from aniso.arrays import Array, Field
from aniso.noise import measure_noise
from aniso.verbs.risk import Judge, Stop

# The gain of weights must exceed this many standard deviations of the estimate.
_CAUTION, _WEIGHT_ROUNDS = 6.0, 20
# The least noise of an axis of the channels that is mixed, as a part of the noise level.
_LEAST_NOISE = 0.8
# A mixture with a risk below minus this part of the noise variance is rejected.
_RISK_IN_DOUBT = 0.05
# Gradients, over the noise level, that count as edges where weights may differ from flat regions.
_EDGE_ENERGY = 0.05


def mix_stops(judge: Judge, best: Stop, helpers: list[Stop], ndim: int) -> tuple[Array, float, int]:
    """Return best + Σ (a_k + b_k·flatness)(image_k − best) with the weights of least risk, and its risk.

    Channels are first rotated to their principal axes, which keeps white noise white, and each axis has its
    own weights: brightness needs other ones than colour. The risk is a quadratic function of the weights;
    those without a significant gain are 0. The estimate holds for white noise of the given level: an axis
    with clearly less noise (channels with common noise, or a level that is too high) is not mixed. A mixture
    with a clearly negative risk, or with a larger distance from the best image than the noise level, is
    rejected.
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
    """Stops projected onto one axis of the channels, in parts: never all of them in double precision."""

    judge: Judge
    best: Stop
    stops: list[Stop]
    flats: tuple[Array, ...]
    axis: Array

    def parts(self) -> list[slice]:
        return [slice(low, low + 2**16) for low in range(0, self.flats[0].size, 2**16)]

    def project(self, image: Array, part: slice) -> Field:
        channels = image.reshape(len(self.axis), -1)[:, part]
        return self.axis.astype(np.float64) @ channels.astype(np.float64)

    def terms(self, part: slice, *, changed: bool = False) -> Field:
        """Return the terms that the weights multiply, one row each."""
        images = [stop.changed if changed else stop.image for stop in (self.best, *self.stops)]
        start, *others = (self.project(image, part) for image in images)
        differences = np.array([other - start for other in others])
        return np.concatenate([differences, self.flats[changed][part] * differences])

    def quadratic(self) -> tuple[Array, Array, Array]:
        """Return the Gram matrix of the terms, the gain of each, and the covariance of that estimate."""
        count, variance = 2 * len(self.stops), self.judge.level**2
        gram, doubt, gain = np.zeros((count, count)), np.zeros((count, count)), np.zeros(count)
        for part in self.parts():
            terms = self.terms(part)
            follows = (self.terms(part, changed=True) - terms) / self.judge.step
            residual = self.project(self.judge.image, part) - self.project(self.best.image, part)
            gram += _products(terms)
            doubt += _products(follows)
            gain += terms @ residual - variance * (follows @ self.project(self.judge.probe, part))
        return gram, gain, variance * gram + 2 * variance**2 * doubt


def _products(rows: Field) -> Field:
    """Return the scalar products of all pairs; not by BLAS, whose threads are slow on a busy machine."""
    return np.einsum("ik,jk->ij", rows, rows)


def _mean_square(image: Array) -> float:
    return float(np.vdot(image, image)) / image.size


def _has_noise(image: Array, level: float) -> bool:
    """Return whether an image with one channel can have noise of this level."""
    return min(float(image.std()), measure_noise(image[np.newaxis])) >= _LEAST_NOISE * level


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


def _principal_axes(image: Array) -> Array:
    """Return an orthonormal basis of the channels in which they are uncorrelated, one axis per row."""
    if len(image) == 1:
        return np.ones((1, 1), image.dtype)
    flat = image.reshape(len(image), -1).astype(np.float64)
    _, vectors = np.linalg.eigh(np.cov(flat).reshape(len(image), len(image)))
    return vectors.T.astype(image.dtype)


def _flatness(image: Array, level: float, ndim: int) -> Array:
    """Return values near 1 in flat regions and near 0 at edges, from the gradient over the noise level."""
    from scipy import ndimage

    energy = np.zeros(image.shape[1:], image.dtype)
    for channel in image:
        for axis in range(ndim):
            order = [int(axis == other) for other in range(ndim)]
            energy += ndimage.gaussian_filter(channel, 1.0, order=order) ** 2 / len(image)
    energy = ndimage.gaussian_filter(energy, 1.5)
    flat: Array = 1 / (1 + energy / (_EDGE_ENERGY * level**2))
    return flat
