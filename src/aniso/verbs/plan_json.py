"""Frozen dataclasses as JSON and back, checked field by field."""

from __future__ import annotations

import dataclasses
import json
import math
import reprlib
import sys
import types
import typing
from collections.abc import Iterable
from typing import Any

from aniso import checks, models, noise, schemes, stencil
from aniso.noise.models import MODELS


def _by_name(classes: Iterable[type]) -> dict[str, type]:
    return {one.__name__: one for one in classes}


# The types of fields that are one of several classes, and these classes by name.
_CLASSES: dict[Any, dict[str, type]] = {
    models.ImageDriven: _by_name(models.kinds().values()),
    noise.NoiseModel: _by_name(MODELS.values()),
    schemes.Scheme: _by_name(schemes.kinds().values()),
    stencil.Stencil: _by_name([stencil.DeltaStencil, stencil.SplitStencil]),
}


def encode(value: Any) -> Any:
    """Return a value as what JSON can hold; dataclasses become objects with their type."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if isinstance(value, stencil.FreeStencil):
            raise ValueError(
                "a plan with a FreeStencil cannot be saved, because its δ is an array. Use a DeltaStencil."
            )
        entries = {each.name: encode(getattr(value, each.name)) for each in dataclasses.fields(value)}
        return {"type": type(value).__name__, **entries}
    if isinstance(value, tuple):
        return [encode(entry) for entry in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ValueError(
        f"a plan with {value!r} cannot be saved: JSON holds finite numbers, strings and lists only."
    )


def load(text: str) -> dict[str, Any]:
    """Return the object in a JSON text."""
    if not isinstance(text, str):
        raise TypeError(f"text must be str, got {type(text).__name__}. Give what to_json returned.")
    try:
        values = json.loads(text, parse_constant=_reject_constant, object_pairs_hook=_reject_repeated)
    except ValueError as error:
        raise checks.make_error(
            ValueError,
            f"the plan is damaged: it is not valid JSON ({error}).",
            python="Give the text that to_json returned, not the name of a file.",
            command="Give a file of --save-plan.",
        ) from error
    except RecursionError:
        raise ValueError("the plan is damaged: it is nested too deeply.") from None
    if not isinstance(values, dict):
        raise ValueError(f"the text is not a plan: a JSON object was expected, got {type(values).__name__}.")
    return values


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a finite number")


def _reject_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is repeated")
    return values


def decode(cls: type, values: dict[str, Any], place: str) -> Any:
    """Return a dataclass from its encoded fields; wrong keys and types are named with their place."""
    hints = typing.get_type_hints(cls)
    known = {each.name for each in dataclasses.fields(cls)}
    for problem, keys in (("has the unknown", values.keys() - known), ("lacks the", known - values.keys())):
        if keys:
            raise ValueError(
                f"{place} {problem} key {min(keys)!r}: it is damaged, or not a plan of this version."
            )
    return cls(**{name: _decode(hints[name], values[name], f"{place}.{name}") for name in sorted(known)})


def _decode(hint: Any, value: Any, place: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        if isinstance(value, list):
            if arguments[-1] is Ellipsis:
                return tuple(_decode(arguments[0], entry, f"{place}[{k}]") for k, entry in enumerate(value))
            if len(value) == len(arguments):
                pairs = zip(arguments, value, strict=True)
                return tuple(_decode(one, entry, f"{place}[{k}]") for k, (one, entry) in enumerate(pairs))
    elif origin in (typing.Union, types.UnionType) and hint not in _CLASSES:
        if value is None and type(None) in arguments:
            return None
        options = [one for one in arguments if one is not type(None)]
        if len(options) == 1:
            return _decode(options[0], value, place)
        for option in options:
            try:
                return _decode(option, value, place)
            except ValueError:
                continue
    elif hint is float:
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and abs(value) <= sys.float_info.max
        ):
            return float(value)
    elif hint in (int, str, bool):
        if type(value) is hint and (hint is not int or abs(value) <= sys.maxsize):
            return value
    elif isinstance(value, dict):
        return _decode_class(hint, value, place)
    raise ValueError(f"{place} has the value {reprlib.repr(value)}, which does not fit: the plan is damaged.")


def _decode_class(hint: Any, value: dict[str, Any], place: str) -> Any:
    """Return a dataclass: the hinted one, or one of those that the hint stands for."""
    values = dict(value)
    name = str(values.pop("type", None))
    found = (_CLASSES[hint] if hint in _CLASSES else _by_name([hint])).get(name)
    if found is None:
        raise ValueError(
            f"{place} has the unknown type {name!r}: the plan is damaged, or of another version."
        )
    return decode(found, values, place)
