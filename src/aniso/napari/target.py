"""A layer as the library sees it: its axes, its scene for previews, and the layers of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from aniso.arrays import Array, is_dask
from aniso.explorer.choosing.choices import Call
from aniso.explorer.choosing.export import argument_words
from aniso.explorer.choosing.scene import Part, Scene, Source
from aniso.explorer.computing.workers import Ticket
from aniso.io.pages import voxel_shape
from aniso.io.picture import Picture
from aniso.verbs.plan import Plan

#: What the axes of a layer can be, by their number: names, and the number of axes of an image or volume.
KINDS = {2: {"image": 2}, 3: {"volume": 3, "frames": 2}, 4: {"series of volumes": 3}}
# Of layers that are not in memory: slices on both sides of the visible one that are read, and pixels along
# each side in the middle of what is visible.
_SLAB = 4
_WINDOW = 2048
# Attributes of layers that results have as well.
_KEPT = (
    "affine", "axis_labels", "rotate", "shear", "units", "blending", "colormap", "contrast_limits", "gamma",
    "interpolation2d", "interpolation3d", "opacity", "projection_mode", "rendering", "rgb",
)  # fmt: skip
_GEOMETRY = ("affine", "axis_labels", "rotate", "shear", "units")


@dataclass(frozen=True, eq=False)
class Shown(Scene):
    """What is shown of a layer: all of an image or volume in memory, or else the part that was read."""

    #: The part, the data of the layer that it is from, and the frame.
    where: tuple[slice, ...] = ()
    origin: Any = None
    frame: int | None = None

    @property
    def start(self) -> tuple[int, int]:
        """The first pixel that was read, along the two axes of the slice."""
        first = [part.start for part in self.where] or [0] * (3 if self.whole else 2)
        if self.whole:
            del first[self.axis]
        return first[0], first[1]


@dataclass(frozen=True, eq=False)
class Target:
    """An image layer of which the last axes are an image or a volume; those before it are frames."""

    layer: Any
    ndim: int

    @classmethod
    def of(cls, layer: Any, kind: str | None = None) -> Target:
        """Return a layer with axes of this kind; it is rejected if it is not an image."""
        if type(layer).__name__ != "Image":
            raise TypeError(
                f"{layer.name!r} is a layer of {type(layer).__name__.lower()}, which has no grey values. "
                "Choose a layer with an image."
            )
        if layer.ndim not in KINDS:
            raise ValueError(
                f"{layer.name!r} has {layer.ndim} axes: images, volumes, and series of them can be filtered. "
                "Split it first."
            )
        kinds = KINDS[layer.ndim]
        return cls(layer, kinds[kind] if kind in kinds else kinds[default_kind(layer)])

    @property
    def data(self) -> Any:
        """The pixels, of a multiscale layer those of the finest level; Zarr arrays as Dask arrays."""
        data = self._finest
        if self._is_store:
            import dask.array as da

            return da.from_array(data, chunks=data.chunks or "auto")
        return data if is_dask(data) else np.asarray(data)

    @property
    def _finest(self) -> Any:
        return self.layer.data[0] if self.layer.multiscale else self.layer.data

    @property
    def _is_store(self) -> bool:
        """Whether the pixels are in a Zarr array or similar, of which parts are read."""
        return not is_dask(self._finest) and hasattr(self._finest, "chunks")

    @property
    def has_frames(self) -> bool:
        """Whether there are several images or volumes."""
        return bool(self.layer.ndim > self.ndim)

    @property
    def channel_axis(self) -> int | None:
        """−1 for colours."""
        return -1 if self.layer.rgb else None

    @property
    def spacing(self) -> tuple[float, ...]:
        """Pixel spacing of an image or volume."""
        return tuple(float(abs(h)) for h in self.layer.scale[-self.ndim :])

    def options(self, use_scale: bool) -> dict[str, Any]:
        """Return the arguments that describe the image; as for files, volumes have the shape of voxels."""
        shape = self.spacing if use_scale else voxel_shape(self.spacing) if self.ndim == 3 else ()
        spacing = {} if all(h == 1 for h in shape) else {"spacing": shape}
        return spacing if self.channel_axis is None else {**spacing, "channel_axis": self.channel_axis}

    def scene(
        self, point: Sequence[float], displayed: Sequence[int], corners: Any, known: Shown | None = None
    ) -> Shown:
        """Return what is shown at a point (an index for each axis), with these axes on the screen.

        `corners` are the first and the last visible index along each axis. If the same part of a layer is
        `known` already, it is not read again.
        """
        index = [min(max(0, round(x)), n - 1) for x, n in zip(point, self.layer_shape, strict=True)]
        frame = index[0] if self.has_frames else None
        whole, axis, place = self.data, 0, 0
        data, where = whole if frame is None else whole[frame], ()
        if self.ndim == 3:
            hidden = [k for k in range(3) if k + self.has_frames not in displayed]
            axis = hidden[0] if hidden else 0
            place = index[axis + self.has_frames]
        if is_dask(data):
            where = self._window(place, axis, corners)
            data = data[where]
            place -= where[axis].start if self.ndim == 3 else 0
        origin = self.layer.data
        if known is not None and known.origin is origin and (known.frame, known.where) == (frame, where):
            moved = (known.axis, known.index) != (axis, place)
            return replace(known, axis=axis, index=place) if moved else known
        unit = str(self.layer.units[-1]) if getattr(self.layer, "units", None) else None
        pixels = np.asarray(data)
        if pixels.dtype.kind not in "iuf":
            raise ValueError(
                f"image must have a real numeric dtype, got {pixels.dtype}. Convert the layer, e.g. to "
                "float32."
            )
        picture = Picture(pixels, channel_axis=self.channel_axis, spacing=self.spacing, unit=unit)
        source = Source(picture, self.layer.name, "", False)
        return Shown(source, axis, place, self.ndim == 3, where, origin, frame)

    def _window(self, place: int, axis: int, corners: Any) -> tuple[slice, ...]:
        """Return the part to read of an image or volume that is not in memory."""
        lead, parts = int(self.has_frames), []
        for k, n in enumerate(self.layer_shape[lead:]):
            if self.ndim == 3 and k == axis:
                first, last = max(0, place - _SLAB), min(n, place + _SLAB + 1)
            else:
                middle = round((corners[0][k + lead] + corners[1][k + lead]) / 2)
                first = max(0, min(middle - _WINDOW // 2, n - _WINDOW))
                last = min(n, first + _WINDOW)
            parts.append(slice(first, last))
        return tuple(parts)

    @property
    def layer_shape(self) -> tuple[int, ...]:
        """The shape without colours."""
        return tuple(self.data.shape[: self.layer.ndim])

    def run(self, call: Call, mask: Array | None, ticket: Ticket) -> tuple[Any, Plan | None]:
        """Return the result for all frames, and what was chosen; a Dask array stays lazy."""
        data, options = self.data, dict(call.options)
        if mask is not None or call.verb.fills:
            options["mask"] = mask
        if not is_dask(data):
            options["progress"] = ticket.progress
        if not call.verb.takes("model"):
            frames = {"frame_axis": 0} if self.has_frames else {}
            result: tuple[Any, Plan] = call.verb.function(data, **options, **frames, return_info=True)
            return result
        if not self.has_frames:
            return call.verb.function(data, **options), None
        results = []
        for number, frame in enumerate(data):
            if "progress" in options:
                options["progress"] = partial(_report_frame, ticket, number, len(data))
            results.append(call.verb.function(frame, **options))
        return np.stack(results), None

    def python(self, call: Call, mask: str | None) -> str:
        """Return a program for napari's console that computes the same; `mask` is an expression."""
        words = argument_words(call, "mask" if mask else None)
        one_by_one = self.has_frames and call.verb.takes("model")
        if self.has_frames and not one_by_one:
            words.append("frame_axis=0")
        result = f"aniso.{call.verb.name}({', '.join(['frame' if one_by_one else 'image', *words])})"
        if one_by_one:
            result = f"np.stack([{result} for frame in image])"
        image = f"viewer.layers[{self.layer.name!r}].data{'[0]' if self.layer.multiscale else ''}"
        modules = ["aniso"]
        if self._is_store:
            image = f"da.from_array({image}, chunks={image}.chunks or 'auto')"
            modules.append("dask.array as da")
        if one_by_one or (mask and "np." in mask):
            modules.append("numpy as np")
        lines = [f"image = {image}", *([f"mask = {mask}"] if mask else []), f"result = {result}"]
        return "\n".join([*(f"import {name}" for name in modules), "", *lines]) + "\n"

    def result_layer(self, result: Any, name: str, about: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return data and options of a new layer that looks like this one, on its grid or a finer one."""
        layer = self.layer
        ratio = np.divide(self.layer_shape, result.shape[: layer.ndim])
        options = {key: getattr(layer, key) for key in _KEPT}
        options |= self.place([(h - 1) / 2 for h in ratio], ratio)
        options |= {"name": f"{layer.name} {name}", "metadata": {**layer.metadata, "aniso": about}}
        if not layer.multiscale:
            return result, options
        return _levels(result, [level.shape for level in layer.data], layer.ndim), {
            **options,
            "multiscale": True,
        }

    def place(self, first: Sequence[float], ratio: Sequence[float]) -> dict[str, Any]:
        """Return scale and translation of a grid whose pixels are `ratio` times as long.

        Its first pixel is at the index `first` of the layer.
        """
        from napari.utils.transforms import Affine

        layer = self.layer
        turn = Affine(scale=layer.scale, translate=layer.translate, rotate=layer.rotate, shear=layer.shear)
        return {"scale": layer.scale * ratio, "translate": turn(np.asarray(first, float))}

    def preview_layer(self, scene: Shown, part: Part, shown: Array) -> Any:
        """Return data and options of a layer that shows a part of a slice at its place."""
        f, refined = part.factor, shown.shape[0] / max(part.bottom - part.top, 1)
        step, offset = f / refined, (f / refined - 1) / 2
        top, left = scene.start
        first, ratio = [top + part.top * f + offset, left + part.left * f + offset], [step, step]
        pixels = shown
        if self.ndim == 3:
            before = scene.where[scene.axis].start if scene.where else 0
            first.insert(scene.axis, before + scene.index)
            ratio.insert(scene.axis, 1.0)
            pixels = np.expand_dims(pixels, scene.axis)
        if scene.frame is not None:
            first.insert(0, scene.frame)
            ratio.insert(0, 1.0)
            pixels = pixels[np.newaxis]
        looks = {key: getattr(self.layer, key) for key in ("colormap", "contrast_limits", "gamma", "rgb")}
        return pixels, {**self.geometry(), **looks, **self.place(first, ratio)}

    def geometry(self) -> dict[str, Any]:
        """Return where the layer is, as options of layers of other kinds."""
        kept = {key: getattr(self.layer, key) for key in _GEOMETRY}
        return {**kept, "scale": self.layer.scale, "translate": self.layer.translate}


def _report_frame(ticket: Ticket, number: int, count: int, done: float, total: float) -> None:
    """Report the progress within one of several frames."""
    ticket.progress(number + (done / total if total > 0 else 1.0), count)


def default_kind(layer: Any) -> str:
    """Return what the axes of a layer are: by their labels, or else by the number of slices."""
    kinds = list(KINDS[layer.ndim])
    label = str(layer.axis_labels[0]).lower() if getattr(layer, "axis_labels", None) else ""
    if "frames" not in kinds or label.startswith("z"):
        return kinds[0]
    data = layer.data[0] if layer.multiscale else layer.data
    return "frames" if label.startswith("t") or data.shape[0] < 8 else kinds[0]


def mask_of(layer: Any, target: Target) -> tuple[Array, str]:
    """Return the marked pixels of a layer of labels or shapes, and an expression for them."""
    name, shape = f"viewer.layers[{layer.name!r}]", target.layer_shape[-layer.ndim :]
    points = np.vstack([np.zeros(layer.ndim), np.eye(layer.ndim)])
    image_points = np.hstack([np.zeros((len(points), target.layer.ndim - layer.ndim)), points])
    places = np.array([layer.data_to_world(point) for point in points])
    expected = np.array([target.layer.data_to_world(point)[-layer.ndim :] for point in image_points])
    if not np.allclose(places, expected, atol=1e-6 * float(np.abs(layer.scale).max())):
        raise ValueError(
            f"the mask {layer.name!r} has another scale or place than {target.layer.name!r}. Set scale, "
            "translate, rotate, shear and affine of both layers alike."
        )
    if type(layer).__name__ == "Shapes":
        mask, line = layer.to_labels(labels_shape=shape) > 0, f"{name}.to_labels(labels_shape={shape}) > 0"
    else:
        data, level = (layer.data[0], ".data[0]") if layer.multiscale else (layer.data, ".data")
        mask, line = np.asarray(data) > 0, f"{name}{level} > 0"
    if mask.shape != shape:
        raise ValueError(
            f"the mask {layer.name!r} has shape {mask.shape}, and {target.layer.name!r} {shape}. Make a mask "
            "of the same shape."
        )
    whole = target.layer_shape[-max(target.ndim, layer.ndim) :]
    return np.broadcast_to(mask, whole), line if mask.shape == whole else f"np.broadcast_to({line}, {whole})"


def _levels(result: Any, shapes: Sequence[tuple[int, ...]], ndim: int) -> list[Any]:
    """Return a pyramid whose levels are coarser by the same factors as those of these shapes."""
    levels = [result]
    for shape in shapes[1:]:
        steps = [max(1, round(full / n)) for full, n in zip(shapes[0][:ndim], shape[:ndim], strict=True)]
        levels.append(result[tuple(slice(None, None, step) for step in steps)])
    return levels
