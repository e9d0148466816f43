"""Calls of the PyTorch modules: how they are made, and what they are given."""

from typing import Any

import numpy as np
import torch

from tests.fuzzing.array_calls import MODELS, SCHEMES, SPACINGS, STENCILS
from tests.fuzzing.judging import Case
from tests.fuzzing.odd_values import Draw, call_text

_LEARN = ((), ("contrast",), ("step", "alpha"), ["sigma"], ["diffusivity"], "contrast", ("beta",), [1], None)
_BLOCK: dict[str, tuple[Any, ...]] = {
    "learn": _LEARN,
    "step": (None, 0.1, 0.2),
    "spacing": SPACINGS,
    "ndim": (2, 3, 1),
    "max_sigma": (None, 2.0),
    "max_rho": (None, 3.0),
    "dtype": (None, torch.float64, torch.float16, torch.int32, "float32"),
    "device": (None, "cpu", "meta2"),
}
_NETS: dict[str, tuple[Any, ...]] = {
    "scheme": (None, *SCHEMES),
    "shared": (True, False),
    "checkpoint": (True, False),
}
_SHAPES = (
    *((1, 1, 5, 6), (2, 3, 7, 4), (1, 1, 1, 1), (1, 2, 1, 9), (1, 1, 3, 4, 5), (2, 1, 9), (5, 6), (3, 5, 6)),
    *((0, 1, 5, 5), (1, 0, 5, 5), (1, 1, 0, 5), (), (1, 1, 1, 1, 1, 1)),
)
_TYPES = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
_ODD_TYPES = (torch.uint8, torch.bool, torch.complex64, torch.int64)


def modules(draw: Draw) -> Case:
    from aniso import nn

    name = draw.choice(
        ("DiffusionBlock", "DirectionalBlock", "SixChannelBlock", "CellBlock", "StencilBlock", "Diffusion1d",
         "DiffusionNet", "TensorDiffusion", "TensorPredictor", "SteeredDiffusionNet", "KernelDiffusionNet",
         "LearnedDiffusivity", "Interval", "Positive", "pretrained")
    )  # fmt: skip
    positional: list[Any] = [draw.number(*MODELS, odd=0.1)]
    known: dict[str, tuple[Any, ...]] = _BLOCK
    if name == "DiffusionNet":
        known = _BLOCK | _NETS
        positional.append(draw.number(1, 2, 4, odd=0.1))
    elif name == "TensorDiffusion":
        known = {key: value for key, value in _BLOCK.items() if not key.startswith("max")} | {
            "scheme": _NETS["scheme"]
        }
        positional = [draw.number(1, 2, 4, odd=0.1)]
    elif name == "TensorPredictor":
        known = {"contrast": (20.0, 1e-3), "dtype": _BLOCK["dtype"], "device": _BLOCK["device"]}
        positional = [draw.number(1, 2, odd=0.2)]
    elif name == "SteeredDiffusionNet":
        known = {"steps": (1, 2), "kernels": (1, 2), "contrast": (20.0,), "dtype": _BLOCK["dtype"]}
        positional = [draw.number(1, 2, odd=0.2)]
    elif name == "KernelDiffusionNet":
        known = {"kernels": (2, 4), "side": (3, 5), "colour": (False, True), "correlated": (False, True)}
        known |= {key: _BLOCK[key] for key in ("dtype", "device")}
        positional = [draw.number([1], [2, 1], (4,), odd=0.2)]
    elif name in ("Interval", "Positive", "LearnedDiffusivity", "pretrained"):
        return _parts(draw, name)
    elif name != "Diffusion1d":
        positional.append(draw.number(*STENCILS, odd=0.05))
    options = draw.options(known, most=3, odd=0.1)
    given = [_tensor(draw)]
    if name == "TensorDiffusion":
        count = draw.choice((3, 4, 6, 2))
        shape = (given[0].shape[0], count, *given[0].shape[2:]) if given[0].ndim > 2 else (1, 3, 5, 6)
        given.append(torch.randn(shape))
    elif name == "KernelDiffusionNet":
        given.append(draw.number(20.0, torch.tensor(3.0), 0.0, odd=0.2))
        if draw.chance(0.3):
            given.append(draw.number(0.0, 0.7, torch.tensor(1.0), odd=0.2))

    def call() -> Any:
        module = getattr(nn, name)(*positional, **options)
        repr(module)
        return module(*given), given[0]

    return Case(
        call,
        call_text(name, positional, options) + f"({tuple(given[0].shape)}, {given[0].dtype})",
        _check,
        given,
    )


def _parts(draw: Draw, name: str) -> Case:
    from aniso import nn

    if name == "Interval":
        positional = [
            draw.number(0.5, 0.0, 1.0, odd=0.3),
            draw.number(0.0, odd=0.2),
            draw.number(1.0, odd=0.2),
        ]
    elif name == "Positive":
        positional = [draw.number(1.0, 1e-3, odd=0.4)]
    elif name == "pretrained":
        positional = [draw.number("denoise-20", "denoise", odd=0.3)]
    else:
        positional = [draw.number(lambda r: 1 / (1 + r), np.exp, odd=0.3), draw.number(2, 8, odd=0.3)]
    return Case(
        lambda: repr(getattr(nn, name)(*positional)),
        call_text(name, positional, {}),
    )


def _tensor(draw: Draw) -> Any:
    dtype = draw.choice(_ODD_TYPES if draw.chance(0.1) else _TYPES)
    generator = torch.Generator().manual_seed(draw.getrandbits(32))
    values = draw.choice((1.0, 255.0, 0.0)) * torch.rand(draw.choice(_SHAPES), generator=generator)
    return values.to(dtype)


def _check(result: Any) -> str | None:
    result, _ = result
    if not bool(torch.isfinite(result).all()):
        return "the result holds values that are not finite"
    return None if result.is_floating_point() else f"the result is of type {result.dtype}"
