"""Kinds of arrays: one table says what the public functions do with each of them.

Functions are written for NumPy arrays. The decorator :func:`takes_arrays` adds the other kinds: the first row
of `KINDS` that matches an image decides, unless a function says otherwise, as in ``takes_arrays(dask=…)``.
A new kind is a new row.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from aniso.arrays import check_tensor, is_batch, is_dask, is_tensor

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True)
class ArrayCall:
    """A call of a public function.

    `special` maps names of kinds to functions that take the place of this one, to None if the function itself
    takes that kind, or to the remedy in the error if it does not.
    """

    function: Callable[..., Any]
    special: dict[str, Callable[..., Any] | str | None]
    image: Any
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def run(self) -> Any:
        """Choose the kind of the image, and call what is responsible for it."""
        kind = next(kind for kind in KINDS if kind.matches(self.image))
        if kind.name not in self.special:
            return kind.handle(self)
        special = self.special[kind.name]
        if isinstance(special, str):
            raise self.rejection(special)
        return self.direct() if special is None else self._with_defaults(special)

    def direct(self) -> Any:
        """Call the function itself."""
        return self.function(self.image, *self.arguments, **self.options)

    def convert(self, function: Callable[[Any], Any]) -> ArrayCall:
        """Return the call with other arguments, of which the image is one."""
        return replace(
            self,
            image=function(self.image),
            arguments=tuple(map(function, self.arguments)),
            options={name: function(option) for name, option in self.options.items()},
        )

    def rejection(self, remedy: str) -> TypeError:
        """Return the error for a kind that is not supported."""
        given = type(self.image)
        return TypeError(
            f"aniso.{self.function.__name__} does not accept {given.__module__}.{given.__qualname__} "
            f"objects. Give {remedy}."
        )

    def _with_defaults(self, function: Callable[..., Any]) -> Any:
        bound = inspect.signature(self.function).bind(self.image, *self.arguments, **self.options)
        bound.apply_defaults()
        return function(*bound.args, **bound.kwargs)


@dataclass(frozen=True)
class Kind:
    """A row of the table: which arrays it is about, and what happens to a call with one."""

    name: str
    matches: Callable[[Any], bool]
    handle: Callable[[ArrayCall], Any]


def takes_arrays(
    **special: Callable[..., Any] | str | None,
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Let a function for NumPy arrays take all kinds of arrays as its first argument.

    Keywords are names of kinds, see :class:`ArrayCall`.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def dispatched(image: Any, *arguments: Any, **options: Any) -> Any:
            return ArrayCall(function, special, image, arguments, options).run()

        return cast(Callable[_P, _R], dispatched)

    return decorate


def handle_as_arrays(
    unwrap: Callable[[Any], Any], wrap: Callable[[Any, Any], Any], is_kind: Callable[[Any], bool]
) -> Callable[[ArrayCall], Any]:
    """Return a handler that converts arguments with `unwrap`, and results with `wrap(result, image)`."""

    def handle(call: ArrayCall) -> Any:
        result = call.convert(lambda value: unwrap(value) if is_kind(value) else value).run()
        return _map_images(result, lambda image: wrap(image, call.image))

    return handle


def _map_images(result: Any, wrap: Callable[[Any], Any]) -> Any:
    """Convert an image, the first of a tuple, or the images of a scale space."""
    if isinstance(result, tuple):
        return (wrap(result[0]), *result[1:])
    if isinstance(result, Iterator):
        return ((time, wrap(image)) for time, image in result)
    return wrap(result)


def _handle_tensor(call: ArrayCall) -> Any:
    """Compute on the CPU, one image of a batch after the other.

    Verbs choose their parameters from the image, and are not differentiable. A mask may be given per image of
    a batch, (N, H, W) or (N, D, H, W). The info of a batch is a list.
    """
    image = call.image
    check_tensor("image", image)
    if image.requires_grad:
        raise ValueError(
            f"{call.function.__name__} chooses its parameters from the image, and no gradients flow through "
            "it. Give image.detach(), or use aniso.diffuse or aniso.nn, which are differentiable."
        )
    pixels = image.detach().cpu()
    if pixels.is_floating_point() and pixels.element_size() < 4:  # which NumPy does not fully support
        pixels = pixels.float()
    arrays = replace(call, image=pixels.numpy())
    if call.options.get("frame_axis") is not None or not is_batch(image, call.options.get("channel_axis")):
        return _map_images(arrays.run(), lambda result: _as_tensor(result, image))
    if len(image) == 0:
        raise ValueError(f"image is empty, got shape {tuple(image.shape)}: there is nothing to do.")

    def part(value: Any, number: int) -> Any:
        """Return what belongs to one image: the image itself, its own mask, or a common argument."""
        if value is arrays.image:
            return value[number]
        if not (isinstance(value, np.ndarray) or is_tensor(value)) or value.ndim != image.ndim - 1:
            return value
        if len(value) != len(image):
            raise ValueError(
                f"there are {len(value)} masks for {len(image)} images. Give one for all, of the shape of an "
                "image without channels, or one for each, with an additional first axis."
            )
        return value[number]

    each = replace(arrays, options={**call.options, "channel_axis": 0})
    results = [
        each.convert(lambda value, n=number: part(value, n)).run()  # type: ignore[misc]
        for number in range(len(image))
    ]
    if call.options.get("return_info"):
        images, infos = zip(*results, strict=True)
        return _as_tensor(np.stack(images), image), list(infos)
    return _as_tensor(np.stack(results), image)


def _as_tensor(result: Any, like: Any) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(result)).to(like.device)


def _comes_from(package: str, name: str | None = None) -> Callable[[Any], bool]:
    """Return a test for classes of a package, which is not imported."""

    def matches(image: Any) -> bool:
        return any(
            base.__module__.partition(".")[0] == package and name in (None, base.__name__)
            for base in type(image).__mro__
        )

    return matches


def _reject(remedy: str) -> Callable[[ArrayCall], Any]:
    def handle(call: ArrayCall) -> Any:
        raise call.rejection(remedy)

    return handle


def _is_other_array(image: Any) -> bool:
    """Return whether an object claims to be an array."""
    return any(hasattr(type(image), name) for name in ("__array__", "__dlpack__", "__array_interface__"))


_is_labelled = _comes_from("xarray", "DataArray")
_REMEDIES = {
    "cupy": "cupy.asnumpy(image), or torch.from_dlpack(image) to compute on the GPU",
    "h5py": "image[...] to load it, or dask.array.from_array(image) to filter it in blocks",
    "jax": "numpy.asarray(image)",
    "jaxlib": "numpy.asarray(image)",
    "pandas": "image.to_numpy()",
    "polars": "image.to_numpy()",
    "xarray": "one of its variables, such as dataset['name']",
    "zarr": "dask.array.from_zarr(image) to filter it in blocks, or image[...] to load it",
}

#: The kinds of arrays; the first one that matches decides.
KINDS = [
    Kind("numpy", lambda image: isinstance(image, np.ndarray | np.generic), ArrayCall.direct),
    Kind("torch", is_tensor, _handle_tensor),
    Kind("dask", is_dask, _reject("image.compute(), if it fits in memory")),
    Kind(
        "labelled",
        _is_labelled,
        handle_as_arrays(
            lambda image: image.data, lambda result, image: image.copy(data=result), _is_labelled
        ),
    ),
    *(Kind(package, _comes_from(package), _reject(remedy)) for package, remedy in _REMEDIES.items()),
    Kind("other", _is_other_array, _reject("numpy.asarray(image)")),
    Kind("sequence", lambda image: True, ArrayCall.direct),
]
