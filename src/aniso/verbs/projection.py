"""Stages on a grid that is finer than the image: splines, and diffusion with given block means."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import ndimage

from aniso.arrays import Array, Field
from aniso.blocks.costs import cycle_seconds
from aniso.blocks.halo import Region, tensor_reach
from aniso.blocks.stages import Channels, Flow, Stage, State
from aniso.cancelling import check_cancelled
from aniso.evolving import EvolvingImage
from aniso.schemes import Cycle
from aniso.settings import Prepared

# Pixels to each side from which coefficients of splines are computed. Farther ones have weights below 1e-7.
_RADIUS = 12


@dataclass(frozen=True)
class Refine(Stage):
    """Interpolate by cubic splines, and shift each block so that its mean is the pixel of the image.

    Afterwards "image" is the finer image, and "coarse" has the given mean at each of its pixels.
    """

    factors: tuple[int, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """Coefficients of two neighbours to each side, in finer pixels."""
        return tuple((_RADIUS + 2) * f if f > 1 else 0 for f in self.factors)

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Replace the image by a finer one."""
        coarse = state["image"]
        fine = interpolate(coarse, self.factors)
        repeated = repeat_pixels(coarse, self.factors)
        project(fine, repeated, self.factors)
        state |= {"image": fine, "coarse": repeated}

    def flow(self, before: Channels) -> Flow:
        """Make both images."""
        return Flow({"image"}, {"image": before["image"], "coarse": before["image"]})


@dataclass(frozen=True)
class DiffuseProjected(Stage):
    """Run FSI steps within the images with these block means, with a new tensor for each step.

    The projection is orthogonal and does not increase eigenvalues, so that FSI is as stable as without it.
    `steps` are those of a cycle, or some of them: `starts` and `ends` say whether its first and last one are
    among them. Between the steps of a cycle, the state holds the image before.
    """

    prepared: Prepared
    factors: tuple[int, ...]
    steps: tuple[tuple[float, float], ...]
    starts: bool = True
    ends: bool = True

    @property
    def reach(self) -> tuple[int, ...]:
        """That of each step, to the end of a block of finer pixels."""
        problem = self.prepared.problem
        far = tensor_reach(problem.model, problem.spacings)[-len(self.factors) :]
        pairs = zip(far, self.factors, strict=True)
        return tuple(len(self.steps) * math.ceil((1 + r) / f) * f for r, f in pairs)

    @property
    def ticks(self) -> int:
        """One for each step."""
        return len(self.steps)

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Run all steps."""
        evolving = EvolvingImage.of_channels(state.pop("image"), self.prepared)
        before = None if self.starts else state.pop("before")
        with contextlib.closing(evolving.evolution):
            for weight, tau in self.steps:
                start = evolving.pixels().copy()
                evolving.evolution.advance(Cycle(tau, ((1.0, tau),)))
                image = evolving.pixels()
                np.multiply(image, weight, out=image)
                np.add(image, (1 - weight) * (start if before is None else before), out=image)
                # After extrapolation, which keeps block means except for rounding.
                project(image, state["coarse"], self.factors)
                before = start
                tick()
        state["image"] = evolving.image()
        if not self.ends:
            assert before is not None
            state["before"] = before

    def flow(self, before: Channels) -> Flow:
        """Make the image and, except at the end of a cycle, keep the one before."""
        made = dict.fromkeys(
            ("image", "coarse") if self.ends else ("image", "coarse", "before"), before["image"]
        )
        return Flow(set(before), made, {"before"})

    def parts(self) -> Iterator[DiffuseProjected]:
        """Yield the steps one by one."""
        last = len(self.steps) - 1
        for number, step in enumerate(self.steps):
            yield replace(
                self, steps=(step,), starts=self.starts and number == 0, ends=self.ends and number == last
            )

    def working(self, channels: Channels, ndim: int) -> int:
        """Return the numbers of the image, its successor, its tensors and shifts."""
        return channels["image"] * (12 if ndim == 3 else 9)

    def seconds(self, channels: Channels, itemsize: int) -> float:
        """Estimate the time per pixel."""
        problem, cycle = self.prepared.problem, Cycle(1.0, ((1.0, 1.0),))
        one = cycle_seconds(cycle, problem.model, channels["image"], problem.spacings, itemsize)
        return len(self.steps) * (one + self.cost * channels["image"] * itemsize / 4)


@dataclass(frozen=True)
class FinishProjected(Stage):
    """Shift each block once more: sums in single precision are not accurate enough for means of blocks."""

    factors: tuple[int, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """Within blocks."""
        return (0,) * len(self.factors)

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Leave the image only."""
        image = state["image"].copy()
        project(image, state.pop("coarse"), self.factors, np.float64)
        state["image"] = image

    def flow(self, before: Channels) -> Flow:
        """Leave the image only."""
        return Flow(set(before), {"image": before["image"]}, {"coarse"})


def project(image: Array, coarse: Array, factors: tuple[int, ...], dtype: Any = None) -> None:
    """Shift each block so that its mean is right; `coarse` has it at each pixel."""
    first = (slice(None), *(slice(None, None, f) for f in factors))
    shift = coarse[first] - block_means(image, factors, dtype)
    np.add(image, repeat_pixels(shift, factors), out=image, casting="same_kind")


def repeat_pixels(coarse: Array, factors: tuple[int, ...]) -> Array:
    """Return blocks of equal pixels."""
    for axis, f in enumerate(factors, 1):
        check_cancelled()
        coarse = np.repeat(coarse, f, axis=axis)
    return coarse


def block_means(image: Array, factors: tuple[int, ...], dtype: Any = None) -> Array:
    """Return means over blocks; their order of summation does not depend on the shape of the image."""
    image = image.astype(dtype or image.dtype, copy=False)
    for axis, f in enumerate(factors, 1):
        if f > 1:
            check_cancelled()
            parts = [image[(slice(None),) * axis + (slice(j, None, f),)] for j in range(f)]
            total = parts[0] + parts[1]
            for part in parts[2:]:
                total += part
            image = np.divide(total, f, out=total)
    return image


def interpolate(coarse: Array, factors: tuple[int, ...]) -> Array:
    """Return cubic splines between the centres of pixels, mirrored at the edges of the image.

    Their coefficients are sums over nearby pixels, so that blocks give the same bits as the whole image.
    """
    refined = [(axis, f) for axis, f in enumerate(factors, 1) if f > 1]
    weights = _coefficient_weights()
    for axis, _ in refined:
        check_cancelled()
        coarse = ndimage.correlate1d(coarse, weights, axis, mode="reflect")
    for axis, f in refined:
        shape = list(coarse.shape)
        shape[axis] *= f
        fine = np.empty(shape, coarse.dtype)
        for j in range(f):
            check_cancelled()
            # The centre of finer pixel j lies this far from the centre of its pixel.
            offset = (j + 0.5) / f - 0.5
            place = (slice(None),) * axis + (slice(j, None, f),)
            fine[place] = ndimage.correlate1d(coarse, _spline_weights(offset), axis, mode="reflect")
        coarse = fine
    return coarse


def _coefficient_weights() -> Field:
    """Return the inverse of the filter (1, 4, 1)/6: √3·z^∣k∣ with z = √3 − 2, scaled to the sum 1."""
    weights = (math.sqrt(3) - 2) ** np.abs(np.arange(-_RADIUS, _RADIUS + 1))
    return weights / weights.sum()


def _spline_weights(offset: float) -> Field:
    """Return the cubic B-spline around this offset from the central pixel, at pixels −2 … 2."""
    x = np.abs(np.arange(-2, 3) - offset)
    weights: Field = np.where(x < 1, 2 / 3 - x**2 + 0.5 * x**3, np.clip(2 - x, 0, None) ** 3 / 6)
    return weights
