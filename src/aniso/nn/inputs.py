"""Checks of the tensors that enter a module: their type, rank and device, never their values."""

from __future__ import annotations

import contextlib
import itertools
import numbers
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import is_autocast_available
from torch.utils.checkpoint import checkpoint

from aniso import arrays

#: The axes of signals, images and volumes.
AXES = {1: "N, C, L", 2: "N, C, H, W", 3: "N, C, D, H, W"}
#: How many numbers a predicted tensor has in images and in volumes, and what one more stands for.
_NUMBERS = {
    2: (3, "three numbers are a tensor, a fourth the weight of the hourglass mode"),
    3: (6, "six numbers are a tensor, a seventh the weight of the hourglass modes"),
}


def check_image(image: object, ndim: int, module: nn.Module) -> None:
    """Check that the image is a floating-point tensor with these axes, on the device of the parameters."""
    axes = AXES[ndim]
    if not isinstance(image, Tensor):
        raise TypeError(
            f"{_name(module)} takes a PyTorch tensor ({axes}), got {type(image).__name__}. Use "
            "torch.from_numpy, or aniso.diffuse for arrays."
        )
    arrays.check_tensor("the image", image)
    if image.ndim != ndim + 2:
        raise ValueError(
            f"{_name(module)} takes a tensor of shape ({axes}), got {tuple(image.shape)}. For one without "
            f"channels give image[None, None].{_other_dimension(image.ndim - 2, ndim, module)}"
        )
    if not image.is_floating_point():
        raise TypeError(
            f"{_name(module)} takes floating point numbers, got {image.dtype}: gradients need them. Give "
            "image.float(), in the grey scale it has."
        )
    if image.numel() == 0:
        raise ValueError(f"the image is empty, got shape {tuple(image.shape)}: there is nothing to diffuse.")
    for held in itertools.chain(module.parameters(), module.buffers()):
        if held.device != image.device:
            raise ValueError(
                f"the image is on {image.device}, the parameters of {_name(module)} on {held.device}: they "
                f"must be on one device. Use .to({str(image.device)!r}) on the module."
            )


def checked_factory(device: Any, dtype: Any) -> dict[str, Any]:
    """Return device and dtype as keyword arguments; raise if there can be no such parameters."""
    try:
        example = torch.empty(0, device=device, dtype=dtype)
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        first = str(error).splitlines()[0]
        raise ValueError(
            f"there can be no parameters with device={device!r} and dtype={dtype!r} ({first}). Leave them "
            'out, or give e.g. device="cpu" and dtype=torch.float32.'
        ) from error
    if not example.is_floating_point():
        raise TypeError(f"parameters must be floating point numbers, got dtype={dtype}: gradients need them.")
    return {"device": device, "dtype": dtype}


def check_prediction(prediction: object, image: Tensor) -> None:
    """Check that the predicted numbers fit the image."""
    images, _, *pixels = image.shape
    cells = [n + 1 for n in pixels]
    count, meaning = _NUMBERS[len(pixels)]
    of_pixels, of_cells = (
        f"({images}, {count} or {count + 1}, {', '.join(map(str, sizes))})" for sizes in (pixels, cells)
    )
    wanted = f"{of_pixels}, one set of numbers per pixel, or {of_cells}, one per cell"
    if not isinstance(prediction, Tensor):
        raise TypeError(
            f"the prediction must be a tensor of shape {wanted}, got {type(prediction).__name__}."
        )
    arrays.check_tensor("the prediction", prediction)
    shape = tuple(prediction.shape)
    fits = prediction.ndim == image.ndim and shape[0] == images and shape[1] in (count, count + 1)
    if not fits or list(shape[2:]) not in (pixels, cells):
        raise ValueError(f"the prediction must have shape {wanted}, got {shape}: {meaning}.")
    if not prediction.is_floating_point():
        raise TypeError(f"the prediction must hold floating point numbers, got {prediction.dtype}.")
    if prediction.device != image.device:
        raise ValueError(
            f"the prediction is on {prediction.device}, the image on {image.device}: they must be on "
            "one device."
        )


def working_precision(numbers: Tensor) -> Tensor:
    """Return the numbers in single precision at least: half precision would lose steps to rounding."""
    return numbers if numbers.dtype in (torch.float32, torch.float64) else numbers.float()


def full_precision(image: Tensor) -> contextlib.AbstractContextManager[Any]:
    """Return a context in which autocast is off, on devices that have it."""
    kind = image.device.type
    return torch.autocast(kind, enabled=False) if is_autocast_available(kind) else contextlib.nullcontext()


def run_stage(function: Callable[..., Tensor], u: Tensor, given: Any, *, recompute: bool) -> Tensor:
    """Return function(u, given), whose intermediate results may be recomputed in the backward pass."""
    if not recompute:
        return function(u, given)
    again: Tensor = checkpoint(function, u, given, use_reentrant=False, preserve_rng_state=False)
    return again


def check_dimension(ndim: object, known: tuple[int, ...], name: str) -> None:
    """Check that a module supports this number of dimensions."""
    if isinstance(ndim, bool) or not isinstance(ndim, numbers.Integral) or ndim not in known:
        forms = " or ".join(f"{dimension} for ({AXES[dimension]})" for dimension in known)
        remedy = "" if 3 in known else " For volumes use DiffusionBlock or CellBlock."
        raise ValueError(f"{name} has no form for ndim={ndim!r}: give {forms}.{remedy}")


def _other_dimension(given: int, ndim: int, module: nn.Module) -> str:
    """Return advice if a volume was given for an image, or the other way round."""
    if {given, ndim} != {2, 3}:
        return ""
    what = f"{'volumes' if given == 3 else 'images'} ({AXES[given]})"
    if 3 in getattr(module, "dimensions", ()):
        return f" For {what} make it with ndim={given}."
    return f" For {what} use DiffusionNet, CellBlock or TensorDiffusion, with ndim=3."


def _name(module: nn.Module) -> str:
    return type(module).__name__
