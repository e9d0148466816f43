"""The caller's arrays and the engines' ones: which axis is which, which type, and the way back.

Engines work on NumPy arrays (channels, H, W) or on PyTorch tensors (images, channels, H, W); volumes have
one axis more, (channels, D, H, W) or (images, channels, D, H, W).
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from aniso import checks, engines

if TYPE_CHECKING:
    import torch

# Three or four slices of at least so many pixels along each side look like the colours of an image.
_LARGE_IMAGE = 32


class Layout(Protocol):
    """An image as an engine takes it, and the way back to the caller's."""

    shape: tuple[int, ...]  # without images and channels
    start: Any  # never the caller's own memory
    dtype: str

    def restored(self, evolved: Any) -> Any:
        """A result of the engine, as the caller knows the image; a new array."""
        ...

    def is_finite(self, evolved: Any) -> bool:
        """Whether every value of a result is a number."""
        ...


def checked_result(layout: Layout, evolved: Any) -> Any:
    """A result of the engine, as the caller knows the image; a new array of ordinary numbers."""
    image = layout.restored(evolved)
    if not layout.is_finite(image):
        raise ArithmeticError(
            f"the result left the range of {layout.dtype}: grey values, contrast or spacing are too "
            "large or too small for it. Scale the image to ordinary numbers, or convert it to float64."
        )
    return image


def is_batch(image: torch.Tensor, channel_axis: int | None) -> bool:
    """Whether a tensor is a batch (images, channels, H, W) or (images, channels, D, H, W)."""
    along_channels = channel_axis in (None, 1, 1 - image.ndim)
    if image.ndim == 5 and not along_channels:
        raise ValueError(
            f"a tensor of shape {tuple(image.shape)} is a batch (images, channels, D, H, W), whose channels "
            f"lie along axis 1, got channel_axis={channel_axis}. Leave channel_axis out."
        )
    return image.ndim in (4, 5) and along_channels


def layout(image: Any, channel_axis: int | None, engine: str | None) -> tuple[Layout, str]:
    """The layout of an image, and the name of the engine that is to work on it."""
    if checks.is_tensor(image):
        name = engines.default("torch") if engine is None else engine
        return TensorLayout(image, channel_axis, name), name
    name = engines.default("numpy") if engine is None else engine
    return ArrayLayout(image, channel_axis, name), name


class ArrayLayout:
    """A NumPy array: a signal (N,), an image (H, W) or a volume (D, H, W), with channels along any axis.

    `finite`: whether it is known already that there is no NaN in it.
    """

    def __init__(
        self, image: npt.ArrayLike, channel_axis: int | None, engine: str, *, finite: bool = False
    ) -> None:
        array = np.asarray(image) if finite else checked_image(image, channel_axis)
        self.dtype = result_type(array.dtype).name
        self._channel_axis, self._tensors = channel_axis, engines.ENGINES[engine].arrays == "torch"
        start = channels_first(array, channel_axis)
        self.shape = start.shape[1:]
        self.start: Any = start.astype(self.dtype)
        if self._tensors:
            import torch

            self.start = torch.from_numpy(np.ascontiguousarray(self.start))[None]

    def restored(self, evolved: Any) -> npt.NDArray[Any]:
        """In the caller's order of axes."""
        image = evolved[0].numpy() if self._tensors else evolved
        image = image.astype(self.dtype).reshape(-1, *self.shape)
        return channels_back(image, self._channel_axis)

    def is_finite(self, evolved: Any) -> bool:
        """Whether every value of a result is a number."""
        return bool(np.isfinite(evolved.max()) and np.isfinite(evolved.min()))


class TensorLayout:
    """A PyTorch tensor: like an array, or a batch (images, channels, H, W) or (images, channels, D, H, W).

    Four axes are a batch of images, unless `channel_axis` is another one than 1: then they are a volume with
    channels, as in arrays. The device stays.
    """

    def __init__(self, image: torch.Tensor, channel_axis: int | None, engine: str) -> None:
        import torch

        checks.plain_tensor("image", image)
        if image.is_complex() or image.dtype == torch.bool:
            raise TypeError(
                f"image must be a tensor of real numbers, got {image.dtype}: diffusion is for grey values. "
                "Give e.g. image.float()."
            )
        shape = tuple(image.shape)
        self._batch = is_batch(image, channel_axis)
        self._channel_axis, self._engine = channel_axis, engine
        if self._batch:
            if image.numel() == 0:
                raise ValueError(f"image is empty, got shape {shape}: there is nothing to diffuse.")
        else:
            check_axes(shape, channel_axis, "channel_axis=0, or image[None] for (1, C, H, W)", (-1, 0))
        if image.is_floating_point():
            _check_finite(image)
        wide = torch.float64 if image.dtype == torch.float64 else torch.float32
        self.dtype = str(wide).removeprefix("torch.")
        start = image.to(wide)
        if not self._batch:
            start = start[None] if channel_axis is None else start.movedim(channel_axis, 0)
            start = start[None]
        self.shape = tuple(start.shape[2:])
        self.start: Any = start.clone(memory_format=torch.contiguous_format)
        if engines.ENGINES[engine].arrays != "torch":
            self.start = self._as_array(self.start)

    def _as_array(self, start: torch.Tensor) -> npt.NDArray[Any]:
        """For the engines that know NumPy arrays only."""
        if start.device.type != "cpu" or start.requires_grad or len(start) > 1:
            raise ValueError(
                f"the engine {self._engine!r} takes one image on the CPU without gradients, got a tensor of "
                f"{len(start)} images on {start.device}, requires_grad={start.requires_grad}. Leave engine "
                "out, or give e.g. image[0].detach().cpu()."
            )
        return start[0].numpy()

    def restored(self, evolved: Any) -> torch.Tensor:
        """In the caller's order of axes, on the device it came from."""
        import torch

        image = (
            evolved if engines.ENGINES[self._engine].arrays == "torch" else torch.from_numpy(evolved)[None]
        )
        image = image.to(getattr(torch, self.dtype)).clone().reshape(*image.shape[:2], *self.shape)
        if self._batch:
            return image
        image = image.reshape(-1, *self.shape)
        return image[0] if self._channel_axis is None else image.movedim(0, self._channel_axis).contiguous()

    def is_finite(self, evolved: Any) -> bool:
        """Whether every value of a result is a number."""
        return bool(abs(evolved).max() < float("inf"))


def checked_image(image: npt.ArrayLike, channel_axis: int | None) -> npt.NDArray[Any]:
    """The image as an array, if it can diffuse: not masked, real and finite, with the right axes."""
    if isinstance(image, np.ma.MaskedArray):
        raise TypeError(
            "image is a masked array, whose mask diffusion does not know. Fill it first, e.g. with "
            "aniso.inpaint(image.filled(0), mask=numpy.ma.getmaskarray(image))."
        )
    array = checked_layout(checks.array_of("image", image), channel_axis)
    if array.dtype.kind == "f":
        checks.finite("image", array, "a single one would spread over the whole image")
    return array


def checked_layout(array: npt.NDArray[Any], channel_axis: int | None) -> npt.NDArray[Any]:
    """The array, if it has the type and the axes of an image; its values may be anything."""
    check_type(array.dtype)
    check_axes(array.shape, channel_axis)
    return checks.doubles_at_most(array)


def check_type(dtype: np.dtype[Any]) -> None:
    """Refuse what does not hold real numbers."""
    if dtype.kind not in "iuf":
        file = ", or aniso.io.read(name).pixels for a file" if dtype.kind in "US" else ""
        raise checks.refusal(
            TypeError,
            f"image must hold real numbers, got dtype {dtype}: diffusion is for grey values.",
            python=f"Give an array of numbers, e.g. image.astype(numpy.float32){file}.",
            command="Save it as numbers first.",
        )


def result_type(given: np.dtype[Any]) -> np.dtype[Any]:
    """Double precision is kept, everything else becomes float32."""
    return np.dtype(np.float64 if given.kind == "f" and given.itemsize >= 8 else np.float32)


def channels_first(array: Any, channel_axis: int | None) -> Any:
    """A NumPy or Dask array as (channels, …), whether it has channels or not; a view."""
    return array[np.newaxis] if channel_axis is None else np.moveaxis(array, channel_axis, 0)


def channels_back(array: npt.NDArray[Any], channel_axis: int | None) -> npt.NDArray[Any]:
    """The way back from `channels_first`."""
    return array[0] if channel_axis is None else np.ascontiguousarray(np.moveaxis(array, 0, channel_axis))


def check_axes(
    shape: tuple[int, ...],
    channel_axis: int | None,
    for_colours: str = "channel_axis=-1",
    colour_axes: tuple[int, ...] = (-1,),
) -> None:
    """Refuse what is no signal, image or volume, with or without channels."""
    if channel_axis is not None:
        checks.whole("channel_axis", channel_axis, "", "a whole number or None")
        if not -len(shape) <= channel_axis < len(shape):
            raise ValueError(
                f"channel_axis={channel_axis} does not exist in an image of shape {shape}. Give the "
                "axis of the channels, e.g. -1, or None."
            )
    spatial = len(shape) - (channel_axis is not None)
    if spatial not in (1, 2, 3):
        remedy = f"If one axis holds colours, give e.g. {for_colours}." if spatial == 4 else ""
        raise ValueError(
            f"image must be a signal (N,), an image (H, W) or a volume (D, H, W), with channels only along "
            f"channel_axis, got shape {shape} with channel_axis={channel_axis}. {remedy}".strip()
        )
    if 0 in shape:
        raise ValueError(f"image is empty, got shape {shape}: there is nothing to diffuse.")
    if channel_axis is None:
        _warn_of_colours(shape, colour_axes)


def _warn_of_colours(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Colours whose axis was not named are smoothed into each other like the slices of a volume."""
    for axis in axes:
        others = shape[:-1] if axis == -1 else shape[1:]
        if len(shape) == 3 and shape[axis] in (3, 4) and min(others) >= _LARGE_IMAGE:
            warnings.warn(
                f"an image of shape {shape} without channel_axis is taken for a volume (D, H, W). If its "
                f"axis {axis} holds colours, give channel_axis={axis}; if it is a volume, silence this with "
                'warnings.filterwarnings("ignore", "an image of shape").',
                stacklevel=5,
            )
            return


def _check_finite(image: torch.Tensor) -> None:
    bad = ~image.isfinite()
    if bad.any():
        first = tuple(bad.nonzero()[0].tolist())
        raise ValueError(
            f"image holds {int(bad.sum())} values that are NaN or infinite, the first at index {first} "
            f"({image[first].item()}): a single one would spread over the whole image. Replace them first, "
            "e.g. with torch.nan_to_num."
        )
