"""The learned diffusion as a candidate of denoise(): its noise level by least risk, and the stage."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from aniso import engines
from aniso.arrays import Array, check_range, is_tensor
from aniso.blocks.halo import Region
from aniso.blocks.stages import Channels, Flow, Stage, State, whole_region
from aniso.colours import OPPONENT
from aniso.engines.cpu.threads import default_threads
from aniso.nets.design import LEVELS, join, separate
from aniso.nets.net import load_net, net_names
from aniso.noise.estimate import NoiseEstimate
from aniso.parameters import About
from aniso.settings import Settings
from aniso.verbs.risk import Judge, Part, Stop
from aniso.verbs.stabilise import mix_channels

Method = Literal["auto", "diffusion", "learned"]
METHODS: tuple[Method, ...] = get_args(Method)
METHOD = About(
    choices=METHODS,
    meaning="remove noise by diffusions whose parameters are chosen, or by a learned diffusion",
    auto="the learned one, unless the expected error of the others is clearly smaller",
)
#: The net that is used.
NET = "denoise-2-75"
# Range of grey values, from one to the other share of pixels, of the photographs that the net was trained on;
# that of normal noise, in noise levels; and the ratio of noise levels that are tried.
_RANGE, _SHARES, _NOISE_RANGE, _RATIO = 200.0, (0.01, 0.99), 4.65, 2.0
# Sides of the parts of windows on which its noise level is chosen, and their number times that of channels:
# in images, and for slices of volumes.
_SIDE, _PARTS, _SLICES = 96, 8, 4
# By how much the risk of a net may exceed that of a mixture of diffusions: by this part of the doubt about
# the variance of noise whose level depends on the grey value.
_OF_DOUBT = 0.5
# The error of a net on slices, squared, over that of the best other image, up to which both are mixed; and
# the voxels of a volume up to which it is tried: in larger ones its reach would be costly.
_WORTH, LARGEST_SLICED = 1.25, 2**24
# Pixels of slices that each thread filters at a time.
_AT_ONCE = 2**17
_GOLDEN = 0.5 * (5**0.5 - 1)


@dataclass(frozen=True)
class Learned:
    """A net, and the noise with which it runs after the image is multiplied by `scale`."""

    net: str
    level: float
    scale: float
    correlation: float

    def __post_init__(self) -> None:
        if (
            self.net not in net_names()
            or not (LEVELS[0] <= self.level <= LEVELS[1] and self.scale > 0)
            or self.correlation < 0
        ):
            raise ValueError(
                f"a learned diffusion needs one of the nets {', '.join(net_names())}, a level from "
                f"{LEVELS[0]:g} to {LEVELS[1]:g}, a positive scale and a correlation of at least 0, got "
                f"{self!r}."
            )

    @property
    def summary(self) -> str:
        """The net, and how it is used."""
        correlation = f", correlation {self.correlation:.2g}" if self.correlation > 0 else ""
        noise = f"{self.level:.4g}{correlation}"
        return f"{self.net} for noise of {noise}; the image is multiplied by {self.scale:.4g}"


@dataclass(frozen=True)
class RunNet(Stage):
    """Run stages of a net on the image.

    The image that evolves is called "learned". It is that of the net until the last stage. `turned` means
    that three channels are brightness and colours. Slices of volumes along `axis` are filtered one by one.
    """

    learned: Learned
    settings: Settings
    turned: bool = False
    axis: int | None = None
    first: int = 0
    last: int | None = None

    cost = 6e-8

    @property
    def _stages(self) -> slice:
        return slice(self.first, self.last)

    @property
    def reach(self) -> tuple[int, ...]:
        """The sum over all stages, within slices."""
        reach = sum(load_net(self.learned.net).reaches[self._stages])
        return (reach,) * 2 if self.axis is None else tuple(reach * (k != self.axis) for k in range(3))

    @property
    def ticks(self) -> int:
        """One for each stage."""
        return len(load_net(self.learned.net).reaches[self._stages])

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        """Run the stages."""
        image, evolving = self._slices(state["image"]), state.pop("learned", None)
        on_tensors = engines.ENGINES[self.settings.engine].arrays == "torch"
        if is_tensor(image) or on_tensors:
            engine = self.settings.engine if on_tensors else None
            found = _run_on_tensors(image, self.learned, self.turned, engine)
            for _ in range(self.ticks):
                tick()
        else:
            found = self._run_on_arrays(image, None if evolving is None else self._slices(evolving), tick)
        check_range(found)
        state["learned"] = self._slices(found, back=True)

    def _slices(self, images: Any, *, back: bool = False) -> Any:
        """Return volumes (…, channels, D, H, W) as slices (…, slices, channels, H, W), or the other way."""
        if self.axis is None:
            return images
        places = (-4, self.axis - 3) if back else (self.axis - 3, -4)
        return images.movedim(*places) if is_tensor(images) else np.moveaxis(images, *places)

    def _run_on_arrays(self, image: Array, evolving: Array | None, tick: Callable[[], object]) -> Array:
        """Run the stages on arrays (…, channels, H, W), from an evolving image on that is that of the net."""
        if self.axis is None:
            return self._run_at_once(image, evolving, tick)
        # Slices do not depend on each other: some at a time need little memory, and stay in the cache.
        shape, found = (-1, *image.shape[-3:]), np.empty_like(image, order="C")
        slices, results = image.reshape(shape), found.reshape(shape)
        others = None if evolving is None else evolving.reshape(shape)
        many = -(-_AT_ONCE * (self.settings.threads or default_threads()) // slices[0].size)
        done = 0
        for low in range(0, len(slices), many):
            part = slice(low, low + many)
            results[part] = self._run_at_once(slices[part], None if others is None else others[part])
            due = self.ticks * min(low + many, len(slices)) // len(slices)
            for _ in range(due - done):
                tick()
            done = due
        return found

    def _run_at_once(
        self, image: Array, evolving: Array | None, tick: Callable[[], object] = lambda: None
    ) -> Array:
        """Run the stages on arrays (…, channels, H, W), which are in memory several times."""
        from aniso.engines.cpu.net import run_net

        net, channels = load_net(self.learned.net), image.shape[-3]
        scale = image.dtype.type(self.learned.scale)
        coloured = net.takes_colours(channels)
        f = separate(image * scale, turned=self.turned) if coloured else image * scale
        stages = net.at_level(self.learned.level, channels, self.learned.correlation)[self._stages]
        found = run_net(f if evolving is None else evolving, f, net, stages, self.settings.threads, tick)
        if self.last is None or self.last == len(net.reaches):
            found = (join(found, turned=self.turned) if coloured else found) / scale
        return found

    def judge_windows(self, judge: Judge) -> Stop:
        """Return the windows of a judge after the net."""
        found = self._run_alike([*judge.image, *judge.changed])
        return judge.stop(0.0, found[: len(judge.image)], found[len(judge.image) :], None)

    def _run_alike(self, windows: list[Array]) -> list[Array]:
        """Run the net on windows, all those of one shape together."""
        found = list(windows)
        for shape in {window.shape for window in windows}:
            places = [number for number, window in enumerate(windows) if window.shape == shape]
            state: State = {"image": np.stack([windows[number] for number in places])}
            self.run(state, whole_region(shape[1:]), lambda: None)
            for number, result in zip(places, state["learned"], strict=True):
                found[number] = result
        return found

    def parts(self) -> Iterator[Stage]:
        """Yield the stages one by one; those of PyTorch are not divided."""
        if engines.ENGINES[self.settings.engine].arrays == "torch":
            yield self
            return
        for number in range(len(load_net(self.learned.net).reaches))[self._stages]:
            yield replace(self, first=number, last=number + 1)

    def flow(self, before: Channels) -> Flow:
        """Read the image and, after the first stage, the evolving one, which changes."""
        return Flow({"image"} if self.first == 0 else {"image", "learned"}, {"learned": before["image"]})

    def working(self, channels: Channels, ndim: int) -> int:
        """Return the numbers of the scaled and the smoothed image, the change, and the result."""
        return 4 * channels["image"]

    def seconds(self, channels: Channels, itemsize: int) -> float:
        """Estimate the time per pixel."""
        return self.cost * self.ticks * channels["image"] * itemsize / 4


def _run_on_tensors(image: Any, learned: Learned, turned: bool, engine: str | None) -> Any:
    """Run a net on a tensor or, by PyTorch, on an array (…, channels, H, W)."""
    import torch

    from aniso.nn import pretrained

    tensor = (image if is_tensor(image) else torch.tensor(image)).reshape(-1, *image.shape[-3:])
    net = pretrained(learned.net, device=tensor.device, dtype=tensor.dtype).requires_grad_(False)
    if turned:
        tensor = mix_channels(OPPONENT, tensor, back=True)
    result = net(tensor * learned.scale, learned.level, learned.correlation, engine=engine) / learned.scale
    if turned:
        result = mix_channels(OPPONENT, result)
    result = result.reshape(image.shape)
    return result if is_tensor(image) else result.numpy()


def refuse_reason(settings: Settings) -> str | None:
    """Return why a net cannot be used, or None if it can."""
    if len(settings.spacings) != 2:
        return "there is no trained net for signals and volumes"
    if settings.spacings[0] != settings.spacings[1]:
        return f"nets are for square pixels, but the spacing is {settings.spacings}"
    return refuse_engine(settings)


def refuse_engine(settings: Settings) -> str | None:
    """Return why a net does not run on an engine, or None if it does."""
    if settings.engine != "cpu" and engines.ENGINES[settings.engine].arrays != "torch":
        return f"nets run on cpu, torch and triton, not on {settings.engine}"
    return None


def slice_axis(settings: Settings) -> int | None:
    """Return the axis of a volume along which its slices have square pixels; None if a net cannot be used.

    It is that of the largest spacing, such as that of thick slices, or the first one.
    """
    spacings = settings.spacings
    axis = max(range(3), key=spacings.__getitem__)
    others = {spacings[k] for k in range(3) if k != axis}
    return axis if len(others) == 1 and refuse_engine(settings) is None else None


def check_method(method: Any, settings: Settings, *, free: bool) -> Method:
    """Return the method; the learned one is rejected where it cannot be used. `free`: nothing is given."""
    method = "auto" if method is None else method
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
    reason = refuse_reason(settings)
    if not free:
        reason = "contrast, time and mix are parameters of other diffusions"
    if method == "learned" and reason is not None:
        raise ValueError(f"method='learned' cannot be used: {reason}. Give method='auto' or 'diffusion'.")
    found: Any = method
    return found


def is_better(judge: Judge, stop: Stop, best: Stop, crossed: float, doubt: float) -> bool:
    """Return whether a net is to be used instead of a mixture of diffusions with this crossed risk.

    The larger the `doubt` about the variance of the noise, the more is the risk of the mixture, which was
    fitted to it, too low. In small images it may also be low by chance: the standard deviation of the
    difference of two risks depends on how far apart the images are, here that of the net and the `best` one.
    """
    apart = sum(
        float(np.square(one - other).sum()) for one, other in zip(stop.image, best.image, strict=True)
    )
    chance = 2 * judge.level * math.sqrt(apart) / judge.size
    return judge.risk(stop) <= crossed + max(_OF_DOUBT * doubt, chance)


def is_known(noise: NoiseEstimate) -> bool:
    """Return whether the net has parameters for such noise."""
    return noise.correlation == 0 or load_net(NET).takes_correlation


def explain_method(
    method: Method,
    settings: Settings,
    noise: NoiseEstimate,
    errors: dict[str, float],
    *,
    free: bool,
    normal: bool,
    sliced: bool,
) -> str:
    """Return which method is used, and why.

    `errors` are the expected errors of methods that were compared, that of the used one first. `free` means
    that neither contrast, time nor mix are given, `normal` that the noise is not that of single photons, and
    `sliced` that a net on slices is a part of the mixture.
    """
    if noise.level == 0:
        return "none, because the noise level is 0"
    if method != "auto":
        return f"{method}, as given"
    if errors:
        numbers = ", ".join(f"{name} {error:.3g}" for name, error in errors.items())
        used, *others = errors
        if any(errors[other] < errors[used] for other in others):
            return (
                f"{used}, because the expected errors differ by less than their uncertainty: {numbers} grey "
                "values"
            )
        return f"{used}, by expected errors: {numbers} grey values"
    reason = refuse_reason(settings)
    if not free:
        reason = "contrast, time or mix is given"
    elif reason is None:
        reason = f"no net was trained for {'correlated noise' if normal else 'single photons'}"
    return f"diffusion{', mixed with a net on slices,' if sliced else ','} because {reason}"


def spread_parts(windows: list[Array], axis: int | None = None) -> list[Part]:
    """Return parts of windows (channels, H, W), or of slices of volumes along an axis, spread over all."""
    tiles = [
        (number, part)
        for number, window in enumerate(windows)
        for part in itertools.product(
            *(
                [slice(k, k + 1) for k in range(length)]
                if place == axis
                else [slice(k, k + _SIDE) for k in _starts(length)]
                for place, length in enumerate(window.shape[1:])
            )
        )
    ]
    # Multiples of the golden ratio are spread evenly, however many of them there are.
    order = sorted(range(len(tiles)), key=lambda k: k * _GOLDEN % 1.0)
    most = _PARTS if axis is None else _SLICES
    return [tiles[k] for k in sorted(order[: math.ceil(most / len(windows[0]))])]


def _starts(length: int) -> list[int]:
    """Return where parts begin; the last one may overlap with its neighbour."""
    return sorted({*range(0, max(length - _SIDE, 0), _SIDE), max(length - _SIDE, 0)})


@dataclass(frozen=True)
class SliceNet:
    """A net to be tried on slices of volumes, with `turned` as for `RunNet`; `alive` is called on the way."""

    settings: Settings
    alive: Callable[[], object]
    turned: bool = False

    def judge_windows(self, judge: Judge, others: list[Stop]) -> tuple[RunNet, Stop] | None:
        """Return the net and the windows of a judge after it, if it is worth mixing with others.

        It is not if its error in some slices is clearly larger than that of the best other one.
        """
        axis = slice_axis(self.settings)
        if axis is None:
            return None
        stage, stop = choose_level(judge, self.settings, self.alive, turned=self.turned, axis=axis)
        parts = spread_parts(judge.image, axis)
        if judge.risk(stop) > _WORTH * min(judge.risk_in_parts(other, parts) for other in others):
            return None
        return stage, stage.judge_windows(judge)


def choose_level(
    judge: Judge,
    settings: Settings,
    alive: Callable[[], object],
    *,
    turned: bool = False,
    axis: int | None = None,
) -> tuple[RunNet, Stop]:
    """Return the net with the noise level of least risk, and parts of the windows of a judge after it.

    A net takes images of the contrast of photographs with grey values from 0 to 255. An image of another
    range is multiplied by the scale at which the result has the least risk.
    """
    few = judge.part(spread_parts(judge.image, axis))
    values = np.concatenate([window.ravel() for window in judge.image])
    low, high = np.quantile(values, _SHARES)
    contrast = math.sqrt(max((high - low) ** 2 - (_NOISE_RANGE * judge.noise) ** 2, judge.noise**2))
    start = float(np.clip(judge.noise * _RANGE / contrast, *LEVELS))
    correlation = judge.correlation if load_net(NET).takes_correlation else 0.0
    tried: dict[int, tuple[RunNet, Stop]] = {}

    def risk(step: int) -> float:
        if step not in tried:
            level = float(np.clip(start * _RATIO**step, *LEVELS))
            stage = RunNet(Learned(NET, level, level / judge.noise, correlation), settings, turned, axis)
            alive()
            tried[step] = stage, stage.judge_windows(few)
        return judge.risk(tried[step][1])

    best = 0
    for direction in (1, -1):
        while LEVELS[0] < start * _RATIO ** (best + 0.5 * direction) < LEVELS[1]:
            if risk(best + direction) >= risk(best):
                break
            best += direction
        if best != 0:
            break
    risk(best)
    return tried[best]
