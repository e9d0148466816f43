"""Questions asked of every tensor that enters a block: its kind, rank and device, never its values."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import is_autocast_available


def check_image(image: object, axes: str, module: nn.Module) -> None:
    """Refuse what is not a tensor of these axes, of floating point numbers, where the parameters are."""
    if not isinstance(image, Tensor):
        raise TypeError(
            f"{_name(module)} takes a PyTorch tensor ({axes}), got {type(image).__name__}. Use "
            "torch.from_numpy, or aniso.diffuse for arrays."
        )
    if image.ndim != axes.count(",") + 1:
        raise ValueError(
            f"{_name(module)} takes a tensor of shape ({axes}), got {tuple(image.shape)}. For one without "
            "channels give image[None, None]."
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


def check_prediction(prediction: object, image: Tensor, module: nn.Module) -> None:
    """Refuse predicted numbers that do not fit the image."""
    images, _, height, width = image.shape
    wanted = (
        f"({images}, 3 or 4, {height}, {width}), one set of numbers per pixel, or "
        f"({images}, 3 or 4, {height + 1}, {width + 1}), one per cell"
    )
    if not isinstance(prediction, Tensor):
        raise TypeError(
            f"the prediction must be a tensor of shape {wanted}, got {type(prediction).__name__}."
        )
    shape = tuple(prediction.shape)
    fits = prediction.ndim == 4 and shape[0] == images and shape[1] in (3, 4)
    if not fits or shape[2:] not in ((height, width), (height + 1, width + 1)):
        raise ValueError(
            f"the prediction must have shape {wanted}, got {shape}: three numbers are a tensor, a fourth the "
            "weight of the hourglass mode."
        )
    if not prediction.is_floating_point():
        raise TypeError(f"the prediction must hold floating point numbers, got {prediction.dtype}.")
    if prediction.device != image.device:
        raise ValueError(
            f"the prediction is on {prediction.device}, the image on {image.device}: they must be on "
            "one device."
        )


def working_precision(numbers: Tensor) -> Tensor:
    """The numbers in at least single precision: half precision would swallow the steps."""
    return numbers if numbers.dtype in (torch.float32, torch.float64) else numbers.float()


def full_precision(image: Tensor) -> contextlib.AbstractContextManager[Any]:
    """Autocast switched off, on devices that have it."""
    kind = image.device.type
    return torch.autocast(kind, enabled=False) if is_autocast_available(kind) else contextlib.nullcontext()


def _name(module: nn.Module) -> str:
    return type(module).__name__
