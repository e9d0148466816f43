"""What the verbs have in common: they take PyTorch tensors too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from aniso import checks
from aniso.arrays import is_batch

_P = ParamSpec("_P")
_R = TypeVar("_R")


def takes_tensors(verb: Callable[_P, _R]) -> Callable[_P, _R]:
    """The verb for tensors as well: like an array, or a batch (N, C, H, W) or (N, C, D, H, W).

    Verbs look at an image to choose their parameters, and so are not differentiable. They compute on the CPU,
    one image of a batch after the other, and bring the result to the tensor's device. A mask may be given per
    image of a batch, (N, H, W) or (N, D, H, W). The info of a batch is a list.
    """
    call: Any = verb

    @functools.wraps(verb)
    def wrapped(image: Any, *arguments: Any, **options: Any) -> Any:
        arguments = tuple(_array("an argument", argument) for argument in arguments)
        options = {name: _array(name, option) for name, option in options.items()}
        if not checks.is_tensor(image):
            return call(image, *arguments, **options)
        checks.plain_tensor("image", image)
        if image.requires_grad:
            raise ValueError(
                f"{verb.__name__} chooses its parameters by looking at the image, through which no gradients "
                "flow. Give image.detach(), or use aniso.diffuse or aniso.nn, which are differentiable."
            )
        if not is_batch(image, options.get("channel_axis")):
            return _tensors(call(_array("image", image), *arguments, **options), image)
        if len(image) == 0:
            raise ValueError(f"image is empty, got shape {tuple(image.shape)}: there is nothing to do.")
        one_each = image.ndim - 1  # axes of masks of which each image has its own
        for mask in (*arguments, *options.values()):
            if isinstance(mask, np.ndarray) and mask.ndim == one_each and len(mask) != len(image):
                raise ValueError(
                    f"there are {len(mask)} masks for {len(image)} images. Give one for all, of the shape of "
                    "an image without channels, or one for each, with an axis more in front."
                )
        options["channel_axis"] = 0
        results = [
            call(
                one,
                *(_of_one(argument, number, one_each) for argument in arguments),
                **{name: _of_one(option, number, one_each) for name, option in options.items()},
            )
            for number, one in enumerate(_array("image", image))
        ]
        if options.get("return_info"):
            images, infos = zip(*results, strict=True)
            return _tensors(np.stack(images), image), list(infos)
        return _tensors(np.stack(results), image)

    accepting: Any = wrapped
    return cast(Callable[_P, _R], accepting)


def _array(name: str, value: Any) -> Any:
    """A tensor as a NumPy array; half precision, which NumPy has not in all forms, as float32."""
    if not checks.is_tensor(value):
        return value
    checks.plain_tensor(name, value)
    value = value.detach().cpu()
    return (value.float() if value.is_floating_point() and value.element_size() < 4 else value).numpy()


def _of_one(value: Any, number: int, one_each: int) -> Any:
    """What belongs to one image of a batch: masks with so many axes have one for each."""
    return value[number] if isinstance(value, np.ndarray) and value.ndim == one_each else value


def _tensors(result: Any, like: Any) -> Any:
    import torch

    if isinstance(result, tuple):
        return (_tensors(result[0], like), *result[1:])
    return torch.from_numpy(np.ascontiguousarray(result)).to(like.device)
