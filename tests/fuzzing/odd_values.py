"""Ordinary, extreme and wrong values, drawn at random."""

import decimal
import fractions
import math
import random
from typing import Any

import numpy as np

_WRONG: tuple[Any, ...] = (
    *(None, "3", "", b"x", 1j, [], [1.0], (1, 2), {}, {"a": 1}, object(), int, len, True),
    *(np.array([1.0, 2.0]), np.array(2.0), np.array(None), np.datetime64("2020-01-01"), decimal.Decimal(2)),
)
_EXTREME = (
    *(0, -1, -0.0, 5e-324, 1e-310, 1e-160, 1e-30, 1e-9, 1e9, 1e16, 1e20, 1e30, 1e160, 1e300, 1.7e308),
    *(math.inf, -math.inf, math.nan, 2**31, 2**63, 2**64, 10**30, 10**400, -(10**400)),
    *(np.float32(2), np.float16(0.5), np.int8(1), np.uint64(3), np.longdouble("1e4000"), np.float64("nan")),
    *(fractions.Fraction(1, 3), np.bool_(True), np.float32("inf")),
)
_SHAPES = (
    *((1,), (2,), (7,), (33,), (1, 1), (1, 9), (9, 1), (2, 2), (3, 3), (5, 7), (12, 11), (24, 17), (16, 16)),
    *((1, 1, 1), (3, 4, 5), (6, 7, 3), (2, 1, 9), (4, 9, 8), (1, 5, 5)),
)
_ODD_SHAPES = ((), (0,), (0, 5), (4, 0), (3, 0, 2), (2, 3, 4, 5), (3, 4, 5, 3), (1,) * 5, (2,) * 6, (1,) * 20)
_TYPES = ("float32", "float64", "float32", "float64", "uint8", "int16", "uint16", "int32", "float16")
_ODD_TYPES = (
    *("int8", "int64", "uint64", "longdouble", ">f4", ">f8", ">u2", "bool", "complex64", "object", "U4"),
    *("S3", "datetime64[s]", "timedelta64[s]", [("r", "f4"), ("g", "f4")], "V4"),
)
_SCALES = (1.0, 1.0, 255.0, 255.0, 1000.0)
_ODD_SCALES = (0.0, 5e-324, 1e-310, 1e-160, 1e-45, 1e-38, 1e-30, 1e-20, 1e15, 1e20, 1e30, 3e38, 1e160, 1e307)


class Draw(random.Random):
    """A source of arguments; the same seed, the same arguments."""

    def chance(self, share: float) -> bool:
        """True for this share of all calls."""
        return self.random() < share

    def array_source(self) -> np.random.Generator:
        """For whole arrays of numbers."""
        return np.random.default_rng(self.getrandbits(64))

    def number(self, *usual: Any, odd: float = 0.1) -> Any:
        """A usual value, or now and then an extreme or a wrong one."""
        if not self.chance(odd):
            return self.choice(usual)
        return self.choice(_EXTREME if self.chance(0.6) else _WRONG)

    def options(self, known: dict[str, tuple[Any, ...]], most: int = 4, odd: float = 0.15) -> dict[str, Any]:
        """Some of the options, with usual values of them or others."""
        names = self.sample(list(known), self.randint(0, min(most, len(known))))
        drawn = {name: self.number(*known[name], odd=odd) for name in names}
        # A function that fails when it is called is the caller's own fault.
        if drawn.get("progress") is int or drawn.get("progress") is len:
            del drawn["progress"]
        return drawn

    def shape(self, odd: float = 0.08) -> tuple[int, ...]:
        """Of an image."""
        return self.choice(_ODD_SHAPES if self.chance(odd) else _SHAPES)

    def array(self, odd: float = 0.15, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """An array of some type, shape and range, somehow in memory."""
        shape = self.shape(0.5 * odd) if shape is None else shape
        source = self.array_source()
        values = source.normal(0.5, 0.2, shape)
        if self.chance(0.3):
            values = np.full(shape, self.choice((0.0, 1.0, 0.3, -2.0)))
        elif self.chance(0.3):
            values = np.abs(values) + np.linspace(0, 1, shape[-1] if shape else 1)
        values = np.asarray(values * self.choice(_ODD_SCALES if self.chance(odd) else _SCALES))
        if values.size and self.chance(0.3 * odd):
            values.flat[source.integers(values.size)] = self.choice((math.nan, math.inf, -math.inf))
        dtype = self.choice(_ODD_TYPES if self.chance(0.5 * odd) else _TYPES)
        return self._in_memory(np.asarray(_typed(values, dtype)))

    def image(self, odd: float = 0.15) -> Any:
        """An array, or something else that may or may not be an image."""
        array = self.array(odd)
        if not self.chance(0.6 * odd):
            return array
        return self.choice(_DISGUISES)(array)

    def _in_memory(self, array: np.ndarray) -> np.ndarray:
        way = self.randint(0, 8)
        if way == 1:
            return np.asfortranarray(array)
        if way == 2:
            return np.ascontiguousarray(array[..., ::-1])[..., ::-1] if array.ndim else array
        if way == 3 and array.ndim:
            return np.repeat(array, 2, axis=0)[::2]
        if way == 4:
            array.flags.writeable = False
        if way == 5 and array.dtype.kind in "iuf":
            return array.astype(array.dtype.newbyteorder())
        if way == 6 and array.ndim:
            return np.broadcast_to(array[:1], array.shape)
        return array


class Grown(np.ndarray):
    """An array of somebody's own class."""


def _disguised_as_tensor(array: np.ndarray) -> Any:
    import torch

    try:
        return torch.from_numpy(np.array(array, order="C"))
    except (TypeError, ValueError):
        return torch.zeros(array.shape)


def _ragged(array: np.ndarray) -> Any:
    return [[1.0, 2.0], [3.0]]


_DISGUISES = (
    lambda array: array.tolist(),
    lambda array: tuple(array.tolist()) if array.ndim else (),
    lambda array: np.ma.masked_array(array, mask=np.zeros(array.shape, bool)),
    lambda array: array.view(Grown),
    lambda array: array.astype(np.float32).data if array.dtype.kind in "iu" else array,
    lambda array: None,
    lambda array: "image.png",
    lambda array: {"image": 1},
    lambda array: 3.0,
    lambda array: object(),
    _ragged,
    _disguised_as_tensor,
    _disguised_as_tensor,
)


def _typed(values: np.ndarray, dtype: Any) -> np.ndarray:
    dtype = np.dtype(dtype)
    with np.errstate(all="ignore"):
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            return np.clip(np.nan_to_num(values), float(limits.min), 0.99 * limits.max).astype(dtype)
        if dtype.kind in "mM":
            return np.nan_to_num(np.clip(values, -1e9, 1e9)).astype(np.int64).astype(dtype)
        if dtype.kind == "V":
            return np.zeros(values.shape, dtype)
        return np.asarray(values.astype(dtype))


def short(value: Any) -> str:
    """An argument in a few words."""
    if isinstance(value, np.ndarray):
        kind = type(value).__name__
        if value.dtype.kind not in "iuf" or not value.size:
            return f"{kind}{value.shape} of {value.dtype}"
        with np.errstate(all="ignore"):
            low, high = np.ma.getdata(value).min(), np.ma.getdata(value).max()
        return f"{kind}{value.shape} of {value.dtype} from {low:.3g} to {high:.3g}"
    if type(value).__module__.startswith("torch") and hasattr(value, "shape"):
        return f"Tensor{tuple(value.shape)} of {value.dtype}"
    text = repr(value)
    return text if len(text) < 160 else text[:157] + "…"


def call_text(name: str, positional: Any, options: dict[str, Any]) -> str:
    """A call in words."""
    inner = [short(value) for value in positional] + [
        f"{key}={short(value)}" for key, value in options.items()
    ]
    return f"{name}({', '.join(inner)})"
