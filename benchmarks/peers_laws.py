"""Invariants that users expect of a filter; each function measures by how much one is violated.

A law returns the figure and the bound up to which it counts as kept. Differences are in parts of the range of
the grey values, so that 1 is black for white.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import ndimage

import aniso
from benchmarks.peers_contestants import Filter

Array = npt.NDArray[Any]
Verdict = Literal["kept", "broken", "refused", "not offered"]

RANGE = 255.0
#: Single precision: ten steps of sums of some ten numbers of 24 bits, and a tensor that turns with them.
ROUNDING = 1e-4


@dataclass(frozen=True)
class Finding:
    """What a law found of a filter; without a figure where the filter refuses or does not offer it."""

    verdict: Verdict
    value: float = 0.0
    note: str = ""


class NotOfferedError(Exception):
    """The filter has no parameter for this."""


@cache
def scene(ndim: int) -> Array:
    """Bytes as float32: all sides differ, so that no filter can mix up its axes unseen."""
    volume = ndim == 3
    sample = aniso.samples.balls((22, 26, 31), noise=12.0) if volume else aniso.samples.shapes(89, noise=12.0)
    image = sample.image if volume else sample.image[:76]
    return np.rint(image.clip(0, RANGE)).astype(np.float32)


@cache
def two_tones(ndim: int) -> Array:
    """The same scene in black and white, where every overshoot shows."""
    smooth = ndimage.gaussian_filter(scene(ndim), 1.0)
    return np.where(smooth > np.median(smooth), np.float32(RANGE), np.float32(0))


def given(filter: Filter) -> Array:
    """A copy of the scene in a type that the filter takes."""
    return scene(filter.ndim).astype(np.uint8 if filter.only_bytes else np.float32)


def largest(difference: Array) -> float:
    """Over the range of grey values; infinite where a filter gave no number."""
    size = float(np.abs(difference).max()) / RANGE
    return size if np.isfinite(size) else float("inf")


def mean(filter: Filter) -> float:
    """The mean grey value is preserved."""
    image = given(filter)
    return abs(float(filter(image).mean() - image.mean(dtype=np.float64))) / RANGE


def range_of_values(filter: Filter) -> float:
    """No value leaves the range of a black and white image."""
    result = filter(two_tones(filter.ndim).astype(given(filter).dtype))
    return max(0.0, float(result.max()) - RANGE, -float(result.min())) / RANGE


def transposition(filter: Filter) -> float:
    """The transposed image gives the transposed result (first and last axis exchanged)."""
    image = given(filter)
    turned = np.ascontiguousarray(np.swapaxes(image, 0, -1))
    return largest(filter(turned) - np.swapaxes(filter(image), 0, -1))


def quarter_turn(filter: Filter) -> float:
    """The image rotated by 90° gives the rotated result."""
    image = given(filter)
    turned = np.ascontiguousarray(np.rot90(image, axes=(-2, -1)))
    return largest(filter(turned) - np.rot90(filter(image), axes=(-2, -1)))


def integers(filter: Filter) -> float:
    """Integers give the same result as floats of the same values, without clipping, wrapping or rescaling."""
    if filter.only_bytes:
        raise NotOfferedError("takes bytes only")
    image = given(filter)
    return largest(filter(image.astype(np.uint8)) - filter(image))


def same_again(filter: Filter) -> float:
    """Identical calls give bit-identical results, also after filtering another image."""
    image = given(filter)
    # Small images show what is left in memory, large ones several threads that do not wait for each other.
    tiled = np.tile(image, (8, 8) if filter.ndim == 2 else (1, 2, 2))
    white = np.full_like(image, RANGE)
    white.flat[0] = 0  # DIPlib's CED refuses constant images
    return max(_changed(filter, image, white), _changed(filter, image), _changed(filter, tiled))


def _changed(filter: Filter, image: Array, other: Array | None = None) -> float:
    first = filter(image)
    filter(np.ascontiguousarray((image.max() - image).T) if other is None else other)
    return largest(filter(image) - first)


def untouched(filter: Filter) -> float:
    """The input array is not modified."""
    image = given(filter)
    before = image.copy()
    filter(image)
    return largest(image.astype(np.float64) - before)


def shift(filter: Filter) -> float:
    """A constant added to the image is added to the result."""
    if filter.only_bytes:
        raise NotOfferedError("takes bytes only")
    image = given(filter)
    return largest(filter(image + np.float32(1024)) - 1024 - filter(image))


def scaling(filter: Filter) -> float:
    """The result scales with the image and the parameters, for factors of 1000 and 0.001."""
    if filter.only_bytes:
        raise NotOfferedError("takes bytes only")
    image, result = given(filter), filter(given(filter))
    return max(
        largest(filter(image * np.float32(factor), grey=factor) / factor - result) for factor in (1e3, 1e-3)
    )


def voxels(filter: Filter) -> float:
    """Every second row, with twice the spacing, gives approximately every second row of the result.

    The value is the error divided by that without the spacing: 0 is perfect, 1 means that the spacing has no
    effect, and 1/3 results from dividing once by the spacing where the second derivative needs it twice.
    """
    if not filter.takes_spacing:
        raise NotOfferedError("no parameter for the pixel spacing")
    image = ndimage.gaussian_filter(given(filter), 3.0)
    expected = filter(image)[::2]
    coarse = np.ascontiguousarray(image[::2])
    spacing = (2.0, *(1.0,) * (filter.ndim - 1))
    error, blind = (filter(coarse, spacing=used) - expected for used in (spacing, None))
    return float(np.sqrt(np.mean(error**2) / np.mean(blind**2))) if error.any() else 0.0


@dataclass(frozen=True)
class Law:
    """A measure, what it says, and up to where it is kept."""

    name: str
    measure: Callable[[Filter], float]
    bound: float

    @property
    def text(self) -> str:
        """The first line of the measure's docstring."""
        return (self.measure.__doc__ or "").split("\n")[0]

    def finding(self, filter: Filter) -> Finding:
        """How this filter stands to the law."""
        try:
            value = self.measure(filter)
        except NotOfferedError as reason:
            return Finding("not offered", note=str(reason))
        except Exception as reason:
            # Whatever a package raises is its way of saying no.
            return Finding("refused", note=str(reason).strip().splitlines()[-1] if str(reason) else "")
        return Finding("kept" if value <= self.bound else "broken", value)


LAWS = (
    Law("mean", mean, 1e-5),
    Law("range", range_of_values, 1e-5),
    Law("transposition", transposition, ROUNDING),
    Law("90° rotation", quarter_turn, ROUNDING),
    Law("integers", integers, ROUNDING),
    Law("deterministic", same_again, 0.0),
    Law("input unchanged", untouched, 0.0),
    Law("grey shift", shift, ROUNDING),
    Law("grey units", scaling, ROUNDING),
    Law("spacing", voxels, 0.25),
)
