"""Trained nets as data, and their parameters for one noise level."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from aniso.formulas.learned import bounded, level_polynomials
from aniso.formulas.operations import logistic
from aniso.nets import design
from aniso.nets.folds import Field, Folds


@dataclass(frozen=True, eq=False)
class LevelStage:
    """One stage for one noise level, in the form in which engines use it.

    Numbers of kernels are those of brightness (or of all channels), followed by those of colours; `steps` and
    `backs` have one number for each channel.
    """

    dilation: int
    groups: tuple[int, ...]
    forward: Field
    backward: Field
    own_mixing: Field
    mean_mixing: Field
    log_units: Field
    gains: Field
    biases: Field
    steps: Field
    backs: Field

    @property
    def smoothing(self) -> Field:
        """The weights of the smoothing that goes with the dilation, from the centre outwards."""
        if self.dilation == 1:
            return np.ones(1)
        weights = design.hat(self.dilation)
        pairs = max(2, len(weights) - 1 + (len(weights) - 1) % 2)  # as the loops over rows need it
        return np.pad(weights, (0, pairs + 1 - len(weights)))

    def units(self, dtype: np.dtype[Any]) -> Field:
        """Return c/σ, limited so that squares of responses stay finite."""
        most = 0.24 * math.log(float(np.finfo(dtype).max))
        units: Field = np.exp(np.minimum(self.log_units, most)).astype(dtype)
        return units


@dataclass(frozen=True, eq=False)
class StageParameters:
    """Kernels of a stage, mixing matrices and polynomials of the noise level, for brightness and colours.

    `correlation` has what is added to the polynomials for correlated noise, if the net is for that.
    """

    dilation: int
    kernels: Field
    mixing: tuple[Field, ...]
    levels: tuple[Field, ...]
    correlation: Field | None = None


@dataclass(frozen=True, eq=False)
class Net:
    """A trained `aniso.nn.KernelDiffusionNet`, without PyTorch."""

    folds: Folds
    stages: tuple[StageParameters, ...]

    @property
    def largest_dilation(self) -> int:
        """The largest dilation of all stages."""
        return max(stage.dilation for stage in self.stages)

    @property
    def reaches(self) -> tuple[int, ...]:
        """The distance in pixels, for each stage, within which its result depends on the image before."""
        dilations = (stage.dilation for stage in self.stages)
        return tuple(2 * (d * self.folds.radius + d - 1) + d for d in dilations)

    def takes_colours(self, channels: int) -> bool:
        """Return whether the channels of an image are separated into brightness and colours."""
        return channels == 3 and len(self.stages[0].mixing) > 1

    @property
    def takes_correlation(self) -> bool:
        """Whether the net is for correlated noise too."""
        return self.stages[0].correlation is not None

    @functools.lru_cache(maxsize=16)  # noqa: B019 (the blocks of a store ask for the same ones of a few nets)
    def at_level(self, level: float, channels: int = 1, correlation: float = 0.0) -> tuple[LevelStage, ...]:
        """Return the stages for noise of this level, in grey values from 0 to 255, and this correlation."""
        coloured = self.takes_colours(channels)
        groups = (0, 1, 3) if coloured else (0, channels)
        level = max(level / 3**0.5 if coloured else level, design.LEAST_NOISE)
        polynomials = np.array(level_polynomials(design.level_position(level)))
        found = []
        for stage in self.stages:
            added = 0.0
            if stage.correlation is not None:
                added = stage.correlation @ design.correlation_powers(correlation)
            values = [levels @ polynomials + added for levels in stage.levels[: len(groups) - 1]]
            mixing = stage.mixing[: len(values)]
            contrasts, gains, biases = np.concatenate([one[:-2].reshape(3, -1) for one in values], axis=1)
            ends = logistic(np.array([one[-2:] for one in values]))
            steps, backs = np.repeat(ends, np.diff(groups), axis=0).T
            forward, backward = self.folds.numbers(stage.kernels)
            own = np.concatenate([design.characters(one[0]).ravel() for one in mixing])
            # Rows of N, and for colours then those of P.
            averaged = [
                np.concatenate([design.characters(part) for part in one[1:]], axis=2) for one in mixing
            ]
            means = np.concatenate([one.ravel() for one in averaged])
            of_kernels = (contrasts - math.log(level), gains, biases)
            matrices = (forward, backward, own, means)
            found.append(LevelStage(stage.dilation, groups, *matrices, *of_kernels, steps, backs))
        return tuple(found)


def net_names() -> tuple[str, ...]:
    """Return the names of the nets that run without PyTorch."""
    return ("denoise-2-75",)


@functools.cache
def load_net(name: str) -> Net:
    """Return a trained net by its name."""
    text = (files("aniso") / "nn" / "trained" / f"{name}.json").read_text("utf-8")
    content = json.loads(text)
    return make_net(content["options"], content["parameters"])


def make_net(options: Mapping[str, Any], parameters: Mapping[str, Any]) -> Net:
    """Return the net with these options and parameters of a `KernelDiffusionNet`."""
    side = options["side"]
    branches = ("", "colour_") if options.get("colour") else ("",)
    stages = []
    for number, dilation in enumerate(options["dilations"]):

        def read(name: str, number: int = number) -> Field:
            return bounded(np.array(parameters[f"stages.{number}.{name}"]))

        stages.append(
            StageParameters(
                dilation,
                design.normalised_kernels(read("coefficients"), side, dilation),
                tuple(read(f"{branch}mixing") for branch in branches),
                tuple(read(f"{branch}levels") for branch in branches),
                read("correlation") if options.get("correlated") else None,
            )
        )
    return Net(Folds(side // 2, options["kernels"]), tuple(stages))
