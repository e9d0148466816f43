"""The noise that is given to a verb: a number, a kind, a model, or one for each channel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from aniso import checks
from aniso.arrays import Array, Mask, result_type
from aniso.noise.estimate import NoiseEstimate, estimate_windows
from aniso.noise.level import check_level
from aniso.noise.models import MODELS, Gaussian, NoiseModel

#: What describes noise, as an argument.
Noise = Any
_USAGE = (
    'Give the standard deviation in grey values, a kind such as "poisson" or "rician:12", a model of '
    "aniso.noise, or a list with one of them for each channel"
)


def find_noise(noise: Noise, windows: Sequence[Array], masks: Sequence[Mask] | None = None) -> NoiseEstimate:
    """Return the given noise, or what is not given from windows (channels, …) of the image.

    Given models are certain. Pixels that are True in masks do not count.
    """
    count = len(windows[0])
    each = _given(noise)
    if isinstance(each, list):
        if len(each) != count:
            raise ValueError(
                f"noise must have one entry for each of {count} channels, got {len(each)}. {_USAGE}."
            )
        found = [_find([window[k : k + 1] for window in windows], one, masks) for k, one in enumerate(each)]
        level = math.sqrt(sum(one.level**2 for one in found) / count)
        return NoiseEstimate(
            tuple(one.models[0] for one in found), min(one.certainty for one in found), level
        )
    return _find(windows, each, masks)


def _find(windows: Sequence[Array], noise: str | NoiseModel, masks: Sequence[Mask] | None) -> NoiseEstimate:
    if isinstance(noise, str):
        return estimate_windows(windows, noise, masks)
    for window in windows:
        if isinstance(noise, Gaussian):
            check_level(noise.level, result_type(window.dtype))
    greys = [
        np.median(np.concatenate([window[k].ravel() for window in windows])) for k in range(len(windows[0]))
    ]
    level = math.sqrt(sum(noise.std_at(float(grey)) ** 2 for grey in greys) / len(greys))
    return NoiseEstimate((noise,), 1.0, level)


def check_noise(noise: Noise) -> None:
    """Reject what does not describe noise."""
    _given(noise)


def _given(noise: Noise) -> str | NoiseModel | list[str | NoiseModel]:
    """Return a kind to estimate, a model, or a list with one of them for each channel."""
    if isinstance(noise, list | tuple) or (isinstance(noise, np.ndarray) and noise.ndim == 1):
        return [_one(entry) for entry in noise]
    return _one(noise)


def _one(noise: Any) -> str | NoiseModel:
    if noise is None:
        return "auto"
    if isinstance(noise, NoiseModel):
        return noise
    if isinstance(noise, str):
        return parse_noise(noise)
    meaning = "the standard deviation of the noise in grey values, a kind of noise, or a model of it"
    level = checks.number_or_auto("noise", noise, meaning, open_low=False)
    assert level is not None
    return Gaussian(level)


def parse_noise(text: str) -> str | NoiseModel:
    """Return the kind or the model of a text such as "poisson" or "rician:12".

    Examples
    --------
    >>> from aniso.noise.given import parse_noise
    >>> parse_noise("poisson"), parse_noise("rician:12"), parse_noise("4.5")
    ('poisson', Rician(level=12.0, correlation=0.0), Gaussian(level=4.5, correlation=0.0))
    """
    kind, colon, rest = text.strip().lower().partition(":")
    if kind == "auto" and not colon:
        return "auto"
    if not colon and kind in MODELS:
        return kind
    name, number = (kind, rest) if colon else ("gaussian", kind)
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if name not in MODELS or not value >= 0 or math.isinf(value):
        raise ValueError(
            f'noise must be "auto", one of the kinds {", ".join(MODELS)} (also with a parameter, as in '
            f'"rician:12"), or a standard deviation in grey values, at least 0 and finite, got {text!r}.'
        )
    return MODELS[name](value)  # type: ignore[call-arg]
