"""Arrays: types, checks, and conversion between the caller's arrays and those of the engines.

Engines work on NumPy arrays (channels, H, W) or on PyTorch tensors (images, channels, H, W); volumes have
one axis more, (channels, D, H, W) or (images, channels, D, H, W).
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from aniso import checks

if TYPE_CHECKING:
    import torch

#: A NumPy array of any type.
Array = npt.NDArray[Any]
#: A NumPy array, a PyTorch tensor or another array of the caller.
Image = Any
Mask = npt.NDArray[np.bool_]
Field = npt.NDArray[np.float64]

# Three or four slices with at least this many pixels along each side are probably colours.
_LARGE_IMAGE = 32


def is_tensor(value: Any) -> bool:
    """Return whether this is a PyTorch tensor, without importing PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_dask(value: Any) -> bool:
    """Return whether this is a Dask array, without importing Dask."""
    array = sys.modules.get("dask.array")
    return array is not None and isinstance(value, array.Array)


def as_array(name: str, value: Any) -> Array:
    """Return the value as a NumPy array; reject rows of different lengths."""
    if is_tensor(value):
        check_tensor(name, value)
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be an array, got a {type(value).__name__} that cannot be converted ({error}). "
            "Give rows of equal length."
        ) from error


def check_tensor(name: str, tensor: Any) -> None:
    """Reject tensors that are not dense, or whose type is not a standard one."""
    import torch

    # Those of NumPy, and bfloat16; others are for storage, and PyTorch supports few operations on them.
    known = (
        *(torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64),
        *(torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
    )
    if tensor.is_nested:
        fault, remedy = "a nested tensor", "Give its parts one by one, or pad them to one shape"
    elif tensor.is_quantized:
        fault, remedy = f"a quantized tensor ({tensor.dtype})", "Give tensor.dequantize()"
    elif tensor.layout != torch.strided:
        fault, remedy = f"a tensor of layout {tensor.layout}", "Give tensor.to_dense()"
    elif tensor.device.type == "meta":
        fault, remedy = "a tensor on the device meta, which has no values", "Load the values first"
    elif tensor.dtype not in known:
        fault, remedy = f"a tensor of dtype {tensor.dtype}", "Give tensor.float()"
    else:
        return
    raise TypeError(f"{name} must be a dense tensor of ordinary numbers, got {fault}. {remedy}.")


class NotFiniteError(ValueError):
    """An array has NaN or infinite values."""


def check_finite(name: str, array: Array, why: str, remedy: str = "Replace them first.") -> None:
    """Reject NaN and infinity; the error gives their number and the first index."""
    bad = ~np.isfinite(array)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise checks.make_error(
            NotFiniteError,
            f"{name} holds {int(bad.sum())} values that are NaN or infinite, the first at index {first} "
            f"({array[first]}): {why}.",
            python=remedy,
            command="Fill them in first, with aniso inpaint.",
        )


def limit_to_doubles(array: Array) -> Array:
    """Return the array, in double precision if it has more; larger values become infinite."""
    if array.dtype.itemsize <= 8:
        return array
    with np.errstate(over="ignore"):
        return array.astype(np.float64)


def check_image(image: npt.ArrayLike, channel_axis: int | None) -> Array:
    """Return the image as an array; reject masked, complex and non-finite ones, and wrong axes."""
    array = check_layout(image, channel_axis)
    if array.dtype.kind == "f":
        remedy = "Fill them in first: aniso.inpaint(image, ~numpy.isfinite(image))."
        check_finite("image", array, "a single one would spread over the whole image", remedy)
    return array


def check_layout(image: npt.ArrayLike, channel_axis: int | None) -> Array:
    """Return the image as an array with the type and axes of an image; values are not checked."""
    if isinstance(image, np.ma.MaskedArray):
        raise TypeError(
            "image is a masked array, and masks are not propagated. Give denoise and enhance the mask, "
            "aniso.denoise(image.filled(0), mask=numpy.ma.getmaskarray(image)), or fill the image first with "
            "aniso.inpaint, which takes the same arguments."
        )
    array = as_array("image", image)
    check_type(array.dtype)
    check_axes(array.shape, channel_axis)
    return limit_to_doubles(array)


def check_type(dtype: np.dtype[Any]) -> None:
    """Reject types that are not real numbers."""
    if dtype.kind not in "iuf":
        remedies = {
            "c": "Take e.g. its magnitude, numpy.abs(image).",
            "b": "Convert it first, e.g. image.astype(numpy.float32).",
            "U": "Give its pixels, e.g. aniso.io.read(name).pixels for a file.",
            "S": "Give its pixels, e.g. aniso.io.read(name).pixels for a file.",
        }
        raise checks.make_error(
            TypeError,
            f"image must have a real numeric dtype, got {dtype}.",
            python=remedies.get(dtype.kind, "Give an array of numbers."),
            command="Convert it to numbers first.",
        )


def check_axes(
    shape: tuple[int, ...],
    channel_axis: int | None,
    for_colours: str = "channel_axis=-1",
    colour_axes: tuple[int, ...] = (-1,),
) -> None:
    """Reject shapes other than those of signals, images and volumes, with or without channels."""
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
    _check_not_empty(shape)
    if channel_axis is None:
        _warn_of_colours(shape, colour_axes)


def check_mask(name: str, mask: Any, shape: tuple[int, ...], meaning: str) -> Any:
    """Return a mask as a new array of bool, or as a Dask array of bool if it is one.

    Masks are boolean, or integers that are 0 or 1; lists and tensors are converted. The values of integer
    Dask arrays are checked when they are computed.
    """
    if is_tensor(mask):
        check_tensor(name, mask)
        mask = (mask.float() if mask.is_floating_point() else mask).detach().cpu()
    if not is_dask(mask):
        mask = as_array(name, mask)
    if mask.dtype.kind not in "biu":
        raise _wrong_mask(name, meaning, f"dtype {mask.dtype}")
    if mask.shape != shape:
        remedy = "Colour images need channel_axis, e.g. channel_axis=-1."
        if mask.shape[-len(shape) :] == shape:
            remedy = f"Channels, and the images of a batch, share one {name}."
        raise ValueError(
            f"{name} has shape {mask.shape}, the image without channels {shape}: they must be equal. {remedy}"
        )
    if is_dask(mask):
        lazy_mask: Any = mask
        return mask if mask.dtype.kind == "b" else lazy_mask.map_blocks(_as_bool, name, meaning, dtype=bool)
    return mask.copy() if mask.dtype.kind == "b" else _as_bool(mask, name, meaning)


def _as_bool(mask: Array, name: str, meaning: str) -> Mask:
    if mask.size and not 0 <= mask.min() <= mask.max() <= 1:
        raise _wrong_mask(name, meaning, f"dtype {mask.dtype} with values from {mask.min()} to {mask.max()}")
    return mask == 1


def _wrong_mask(name: str, meaning: str, given: str) -> TypeError:
    return TypeError(
        f"{name} must be boolean, or integers that are 0 or 1, got {given}: True means that {meaning}. Use "
        f"e.g. {name} > 0."
    )


def result_type(given: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of results: double precision is kept, all other types become float32."""
    return np.dtype(np.float64 if given.kind == "f" and given.itemsize >= 8 else np.float32)


def channels_first(array: Any, channel_axis: int | None) -> Any:
    """Return a view (channels, …) of a NumPy or Dask array, with or without channels."""
    return array[np.newaxis] if channel_axis is None else np.moveaxis(array, channel_axis, 0)


def channels_back(array: Any, channel_axis: int | None) -> Any:
    """Invert `channels_first`; NumPy arrays become contiguous."""
    if channel_axis is None:
        return array[0]
    moved = np.moveaxis(array, 0, channel_axis)
    return moved if is_dask(moved) else np.ascontiguousarray(moved)


def is_batch(image: torch.Tensor, channel_axis: int | None) -> bool:
    """Return whether a tensor is a batch (images, channels, H, W) or (images, channels, D, H, W)."""
    along_channels = channel_axis in (None, 1, 1 - image.ndim)
    if image.ndim == 5 and not along_channels:
        raise ValueError(
            f"a tensor of shape {tuple(image.shape)} is a batch (images, channels, D, H, W), whose channels "
            f"lie along axis 1, got channel_axis={channel_axis}. Leave channel_axis out."
        )
    return image.ndim in (4, 5) and along_channels


def check_tensor_image(image: torch.Tensor, channel_axis: int | None) -> None:
    """Reject tensors that are not images, volumes or batches of finite real numbers."""
    import torch

    check_tensor("image", image)
    if image.is_complex() or image.dtype == torch.bool:
        raise TypeError(f"image must have a real numeric dtype, got {image.dtype}. Give e.g. image.float().")
    if is_batch(image, channel_axis):
        _check_not_empty(tuple(image.shape))
    else:
        colours = "channel_axis=0, or image[None] for (1, C, H, W)"
        check_axes(tuple(image.shape), channel_axis, colours, (-1, 0))
    if image.is_floating_point() and (bad := ~image.isfinite()).any():
        first = tuple(bad.nonzero()[0].tolist())
        raise ValueError(
            f"image holds {int(bad.sum())} values that are NaN or infinite, the first at index {first} "
            f"({image[first].item()}): a single one would spread over the whole image. Replace them first, "
            "e.g. with aniso.inpaint(image, ~image.isfinite())."
        )


def layout(image: Any, channel_axis: int | None, *, tensors: bool) -> Layout:
    """Return the layout of an unchecked image for an engine that works on tensors, or on NumPy arrays."""
    if is_tensor(image):
        check_tensor_image(image, channel_axis)
        return TensorLayout(image, channel_axis, tensors)
    return ArrayLayout(check_image(image, channel_axis), channel_axis, tensors)


def restore_image(layout: Layout, evolved: Any) -> Any:
    """Return a result of the engine as a new array of the caller's kind, after checking that it is finite."""
    image = layout.restore(evolved)
    check_range(image)
    return image


def check_range(result: Any) -> None:
    """Reject a result, an array or a tensor, that is beyond the range of its type."""
    if not (result.min() > -math.inf and result.max() < math.inf):
        raise ArithmeticError(
            f"the result left the range of {str(result.dtype).removeprefix('torch.')}: grey values, contrast "
            "or spacing are too large or too small. Rescale the image, or convert it to float64."
        )


class ArrayLayout:
    """A NumPy array: a signal (N,), an image (H, W) or a volume (D, H, W), with channels along any axis.

    `start` is what the engine takes, never the caller's own memory; `shape` has no images and channels.
    """

    def __init__(self, image: Array, channel_axis: int | None, tensors: bool = False) -> None:
        self.dtype = result_type(image.dtype).name
        self._channel_axis, self._tensors = channel_axis, tensors
        start = channels_first(image, channel_axis)
        self.shape = start.shape[1:]
        self.start: Any = start.astype(self.dtype)
        if self._tensors:
            import torch

            self.start = torch.from_numpy(np.ascontiguousarray(self.start))[None]

    def restore(self, evolved: Any) -> Array:
        """Return a result with the caller's order of axes."""
        image = evolved[0].numpy() if self._tensors else evolved
        image = image.astype(self.dtype).reshape(-1, *self.shape)
        return channels_back(image, self._channel_axis)


class TensorLayout:
    """A PyTorch tensor: like an array, or a batch (images, channels, H, W) or (images, channels, D, H, W).

    Four axes are a batch of images, unless `channel_axis` is given and not 1: then they are a volume with
    channels, as for arrays. Results are on the device of the image.
    """

    def __init__(self, image: torch.Tensor, channel_axis: int | None, tensors: bool = True) -> None:
        import torch

        self._batch = is_batch(image, channel_axis)
        self._channel_axis, self._tensors = channel_axis, tensors
        wide = torch.float64 if image.dtype == torch.float64 else torch.float32
        self.dtype = str(wide).removeprefix("torch.")
        start = image.to(wide)
        if not self._batch:
            start = start[None] if channel_axis is None else start.movedim(channel_axis, 0)
            start = start[None]
        self.shape = tuple(start.shape[2:])
        self.start: Any = start.clone(memory_format=torch.contiguous_format)
        if tensors:
            return
        if start.device.type != "cpu" or start.requires_grad or len(start) > 1:
            raise ValueError(
                "this engine takes one image on the CPU without gradients, got a tensor of "
                f"{len(start)} images on {start.device}, requires_grad={start.requires_grad}. Leave engine "
                "out, or give e.g. image[0].detach().cpu()."
            )
        self.start = self.start[0].numpy()

    def restore(self, evolved: Any) -> torch.Tensor:
        """Return a result with the caller's order of axes, on the device of the image."""
        import torch

        image = evolved if self._tensors else torch.from_numpy(evolved)[None]
        image = image.to(getattr(torch, self.dtype)).clone().reshape(*image.shape[:2], *self.shape)
        if self._batch:
            return image
        image = image.reshape(-1, *self.shape)
        return image[0] if self._channel_axis is None else image.movedim(0, self._channel_axis).contiguous()


#: An image in the form that an engine takes, and its conversion back. Images are checked before.
Layout = ArrayLayout | TensorLayout


def _check_not_empty(shape: tuple[int, ...]) -> None:
    if 0 in shape:
        raise ValueError(f"image is empty, got shape {shape}: there is nothing to diffuse.")


def _warn_of_colours(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Warn if an axis of a volume looks like colours, which would be smoothed into each other."""
    for axis in axes:
        others = shape[:-1] if axis == -1 else shape[1:]
        if len(shape) == 3 and shape[axis] in (3, 4) and min(others) >= _LARGE_IMAGE:
            checks.warn(
                f"an image of shape {shape} without channel_axis is treated as a volume (D, H, W). If its "
                f"axis {axis} holds colours, give channel_axis={axis}; if it is a volume, silence this with "
                'warnings.filterwarnings("ignore", "an image of shape").'
            )
            return
