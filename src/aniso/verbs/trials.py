"""Try diffusions on windows of an image, and keep those of least risk."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aniso.arrays import Array
from aniso.evolving import EvolvingImage
from aniso.models import ImageDriven
from aniso.noise.estimate import NoiseEstimate
from aniso.noise.models import Gaussian
from aniso.settings import Prepared, Settings
from aniso.verbs.mixture import Mixture, Weights, mix_stops
from aniso.verbs.risk import Judge, Stop


@dataclass(frozen=True)
class Path:
    """A diffusion that stops at these times, and the weights of the images at some of them."""

    model: ImageDriven
    times: tuple[float, ...]
    weights: tuple[Weights | None, ...]

    def __post_init__(self) -> None:
        if len(self.times) != len(self.weights) or not self.times:
            raise ValueError("a path of a plan must have weights, or None, for each of its times.")
        if any(after <= before for before, after in zip((0.0, *self.times), self.times, strict=False)):
            raise ValueError(f"the times of a path of a plan must increase, got {self.times}.")


@dataclass(frozen=True, eq=False)
class Outcome:
    """The best single diffusion, a mixture of several, and the risk of the mixture.

    The `crossed` risk does not benefit from weights that are fitted to the pixels on which it is estimated.
    """

    best: Stop
    mixture: Mixture
    risk: float
    crossed: float


@dataclass(frozen=True, eq=False)
class Candidates:
    """Diffusions to be tried, each at these times.

    With `leave`, leaving the image unchanged is a candidate too. `alive` is called between diffusions.
    """

    models: list[ImageDriven]
    times: list[float]
    settings: Settings
    alive: Callable[[], object]
    mixing: bool
    leave: bool

    def try_all(self, judge: Judge, noise: NoiseEstimate) -> Outcome:
        """Return the best one and the best mixture; the level of the judge may be lowered."""
        stops = [judge.start] if self.leave or not self.models else []
        helpers: list[Stop] = []
        for model in self.models:
            prepared = self.settings.prepare(model, judge.image[0].shape[1:])
            stop, others = self._follow(judge, model, prepared)
            stops.append(stop)
            helpers += others
        # Of a curve, too high a level in some parts of the image must not change that of others.
        if noise.certainty < 1 and all(isinstance(model, Gaussian) for model in noise.models):
            judge.lower_level([*stops[1:], *helpers])
        best = min(stops, key=judge.risk)
        mixture: Mixture = []
        risk = crossed = judge.risk(best)
        if helpers:
            sure = noise.certainty < 1 and not noise.compressed
            mixture, risk, crossed = mix_stops(judge, best, helpers, sure=sure)
        if len(mixture) < 2:
            mixture = [] if best.model is None else [(best, None)]
        return Outcome(best, mixture, risk, crossed)

    def _follow(self, judge: Judge, model: ImageDriven, prepared: Prepared) -> tuple[Stop, list[Stop]]:
        """Run a diffusion until its risk has passed the minimum twice, and keep only what may be needed.

        Return the stop of least risk and those before and after it, if they are mixed.
        """
        stops: list[Stop] = []
        lowest = 0
        with contextlib.ExitStack() as stack:

            def snapshots(windows: list[Array]) -> list[Any]:
                evolving = [EvolvingImage.of_channels(window, prepared) for window in windows]
                found = [one.snapshots(self.times) for one in evolving]
                return [stack.enter_context(contextlib.closing(one)) for one in found]

            images, changed_images = snapshots(judge.image), snapshots(judge.changed)
            for time in self.times:
                image = [next(one)[1] for one in images]
                changed = [next(one)[1] for one in changed_images]
                self.alive()
                stop = judge.stop(time, image, changed, model)
                stops.append(stop)
                if judge.risk(stop) < judge.risk(stops[lowest]):
                    lowest = len(stops) - 1
                    del stops[: lowest - 1]
                    lowest = min(lowest, 1)
                elif len(stops) > lowest + 2:
                    break
        neighbours = [stops[k] for k in (lowest - 1, lowest + 1) if 0 <= k < len(stops)]
        return stops[lowest], neighbours if self.mixing else []


def make_path(model: ImageDriven, times: list[float], mixture: Mixture) -> Path | None:
    """Return the way of a diffusion to the last of its images that is used, or None if none is."""
    used = {stop.time: weights for stop, weights in mixture if stop.model is model}
    if not used:
        return None
    visited = tuple(time for time in times if time <= max(used))
    return Path(model, visited, tuple(used.get(time) for time in visited))
