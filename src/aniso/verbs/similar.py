"""Averages of similar voxels and a net on slices, which denoise() adds to diffusions of a volume.

Each voxel becomes the mean of all voxels nearby, weighted by how similar they are to it: one step of a
diffusion that is not restricted to neighbours. Similarity is seen in the mixture, which has little noise,
and the voxels that are averaged are those of the noisy volume.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aniso.arrays import is_tensor
from aniso.blocks.halo import Region
from aniso.blocks.stages import Channels, Flow, Stage, State
from aniso.formulas.gaussian import edge_fold
from aniso.formulas.similarity import similarity, squared_difference
from aniso.memory import return_freed_memory
from aniso.settings import Settings
from aniso.verbs.learned import Learned, RunNet, SliceNet, refuse_engine
from aniso.verbs.mixture import (
    AddWeighted,
    MeasureFlatness,
    Mixture,
    Weights,
    check_sums,
    mix_stops,
    mixed_windows,
)
from aniso.verbs.risk import Judge, Stop

# Voxels up to this distance along each axis are averaged; and the mean squared difference of what lies around
# them, over the noise variance, from which on they are not similar.
_RADIUS, _LIMITS = 3, (1.08, 4.3)
# Voxels on each side that are compared, and all of them.
_AROUND = 1
_COMPARED = (2 * _AROUND + 1) ** 3
_OFFSETS = np.stack(np.meshgrid(*[np.arange(-_RADIUS, _RADIUS + 1)] * 3, indexing="ij"), -1).reshape(-1, 3)
_NAMES = tuple(f"similar {limit:g}" for limit in _LIMITS)


@dataclass(frozen=True)
class Similar:
    """The weights of the unfiltered image, of the mixture, and of averages of similar voxels.

    With `learned`, slices along `axis` after a net are mixed too, and `slices` are their weights.
    """

    start: Weights | None
    mixture: Weights | None
    averages: tuple[Weights | None, ...]
    slices: Weights | None = None
    learned: Learned | None = None
    axis: int = 0

    def __post_init__(self) -> None:
        if (self.slices is None) != (self.learned is None) or self.axis not in range(3):
            raise ValueError("a plan has weights of slices if it has a net for them, and one of three axes.")
        if len(self.averages) != len(_LIMITS):
            raise ValueError(
                f"a plan has weights, or None, for {len(_LIMITS)} averages of similar voxels, got "
                f"{len(self.averages)}."
            )

    def check(self, channels: int) -> None:
        """Reject weights that do not add up to 1, or are not for this number of channels."""
        everything = (self.start, self.mixture, *self.averages, self.slices)
        check_sums([one for one in everything if one is not None], channels)

    def stages(self, level: float, settings: Settings, *, turned: bool) -> list[Stage]:
        """Return what turns a mixture into another one; `turned` as for `RunNet`."""
        stages: list[Stage] = [Keep("mixture", "guide"), MeasureFlatness("guide", level, 3)]
        parts = {"image": self.start, "guide": self.mixture}
        stages += [AddWeighted(name, one, 3) for name, one in parts.items() if one is not None]
        if self.learned is not None and self.slices is not None:
            if (reason := refuse_engine(settings)) is not None:
                raise ValueError(f"this plan has a net for slices, which cannot be used: {reason}.")
            net = RunNet(self.learned, settings, turned, self.axis)
            stages += [net, AddWeighted("learned", self.slices, 3)]
        used = tuple(k for k, one in enumerate(self.averages) if one is not None)
        stages.append(AverageSimilar(level, settings, used))
        return stages + [AddWeighted(_NAMES[k], one, 3) for k in used if (one := self.averages[k])]


def choose_similar(
    judge: Judge,
    best: Stop,
    mixture: Mixture,
    net: SliceNet | None,
    *,
    sure: bool,
    settings: Settings,
) -> tuple[Similar | None, float]:
    """Return the weights of least risk for averages of similar voxels, and the risk of the result.

    The mixture has the flatness of the image `best`, and loses its windows. `net` is tried on slices. Without
    a gain, the weights are None.
    """
    images, changed = mixed_windows(mixture, best)
    before = judge.stop(0.0, images, changed, None)
    # They are not needed any more, and take more memory than all that follows.
    mixture[:] = [(replace(stop, image=[], changed=[]), weights) for stop, weights in mixture]
    return_freed_memory()
    everything = tuple(range(len(_LIMITS)))
    averaged, averaged_changed = (
        [average_similar(*pair, judge.unit, everything, settings) for pair in zip(start, guides, strict=True)]
        for start, guides in ((judge.image, images), (judge.changed, changed))
    )
    averages = [
        judge.stop(0.0, [one[k] for one in averaged], [one[k] for one in averaged_changed], None)
        for k in everything
    ]
    stage, sliced = (None if net is None else net.judge_windows(judge, [before, *averages])) or (None, None)
    helpers = averages if sliced is None else [*averages, sliced]
    found, risk, _ = mix_stops(judge, before, helpers, sure=sure)
    weights = {id(stop): one for stop, one in found}
    if not any(id(one) in weights for one in helpers):
        return None, risk
    start, own, *others = (weights.get(id(stop)) for stop in (judge.start, before, *averages))
    slices = weights.get(id(sliced))
    if stage is None or slices is None:
        return Similar(start, own, tuple(others)), risk
    return Similar(start, own, tuple(others), slices, stage.learned, stage.axis or 0), risk


def average_similar(image: Any, guide: Any, level: float, which: tuple[int, ...], settings: Settings) -> Any:
    """Return means of similar voxels of a volume (channels, D, H, W), one volume for each of the limits.

    Similar are voxels around which the guide is similar, in relation to the noise level. Tensors may have
    further axes before the channels.
    """
    unit = 1 / (level * math.sqrt(_COMPARED * image.shape[-4]))
    scales = [1 / _LIMITS[k] for k in which]
    if not is_tensor(image) and settings.engine == "cpu":
        from aniso.engines.cpu.similar import average_similar as average_by_loops

        return average_by_loops(image, guide, _OFFSETS, unit, scales, settings.threads)
    pixels, seen = _extend(image, _RADIUS), _extend(guide * unit, _RADIUS + _AROUND)
    centre = _shifted(seen, (0, 0, 0), _RADIUS)
    sums, totals = [0 * image for _ in which], [0 * image[..., :1, :, :, :] for _ in which]
    for offset in _OFFSETS:
        distance = squared_difference(_shifted(seen, offset, _RADIUS), centre).sum(-4)[..., None, :, :, :]
        for axis in (-1, -2, -3):
            distance = _sum_of_three(distance, axis)
        there = _shifted(pixels, offset, _RADIUS)
        for k, scale in enumerate(scales):
            weight = similarity(distance, scale)
            sums[k] = sums[k] + weight * there
            totals[k] = totals[k] + weight
    return [one / total for one, total in zip(sums, totals, strict=True)]


def _extend(volume: Any, reach: int) -> Any:
    """Return a volume with mirrored voxels on all sides."""
    extended: Any = volume
    for axis in (-3, -2, -1):
        fold = edge_fold(volume.shape[axis], reach)
        if is_tensor(volume):
            extended = extended.index_select(axis, volume.new_tensor(fold).long())
        else:
            extended = np.take(extended, fold, axis)
    return extended


def _shifted(extended: Any, offset: Any, reach: int) -> Any:
    """Return the part of an extended volume that begins at an offset."""
    parts = (slice(reach + k, n - reach + k) for k, n in zip(offset, extended.shape[-3:], strict=True))
    return extended[(..., *parts)]


def _sum_of_three(volume: Any, axis: int) -> Any:
    """Return sums over three voxels along an axis, where all three exist."""
    parts = [[slice(None)] * 3 for _ in range(3)]
    for k, part in enumerate(parts):
        part[axis] = slice(k, volume.shape[axis] - 2 + k)
    first, second, third = (volume[(..., *part)] for part in parts)
    return first + second + third


@dataclass(frozen=True)
class Keep(Stage):
    """Rename an image of the state; the flatness that was measured is not that of what follows."""

    name: str
    new: str
    ndim: int = 3

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Rename the image, and forget the flatness."""
        state[self.new] = state.pop(self.name)
        state.pop("flat", None)

    def flow(self, before: Channels) -> Flow:
        """Read one name and make the other, without the flatness."""
        return Flow({self.name}, {self.new: before[self.name]}, {self.name, "flat"})

    def working(self, channels: Channels, ndim: int) -> int:
        """Copy nothing."""
        return 0


@dataclass(frozen=True)
class AverageSimilar(Stage):
    """Average similar voxels of the image, where similar is what is similar in the guide."""

    level: float
    settings: Settings
    which: tuple[int, ...]
    ndim: int = 3

    cost = 4e-7

    @property
    def reach(self) -> tuple[int, ...]:
        """The voxels that are averaged, and those around them that are compared."""
        return (_RADIUS + _AROUND,) * 3

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Compute the averages."""
        found = average_similar(state["image"], state["guide"], self.level, self.which, self.settings)
        state |= {_NAMES[k]: one for k, one in zip(self.which, found, strict=True)}
        del state["guide"]

    def flow(self, before: Channels) -> Flow:
        """Read the image and the guide, and make the averages."""
        made = {_NAMES[k]: before["image"] for k in self.which}
        return Flow({"image", "guide"}, made, {"guide"})

    def working(self, channels: Channels, ndim: int) -> int:
        """Work tile by tile; plain arrays need some for all channels."""
        return 0 if self.settings.engine == "cpu" else 6 * channels["image"]

    def seconds(self, channels: Channels, itemsize: int) -> float:
        """Estimate the time per voxel."""
        return self.cost * channels["image"] * itemsize / 4
