"""The widget of a verb: parameters from its table, a preview of what is visible, and results as layers."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from napari.utils.notifications import show_info
from qtpy.QtCore import QSignalBlocker, QTimer
from qtpy.QtWidgets import QApplication, QCheckBox, QComboBox, QFileDialog, QFormLayout, QPushButton

from aniso.arrays import Array, is_dask
from aniso.explorer.choosing.choices import Call, Choices
from aniso.explorer.choosing.controls import controls, estimated
from aniso.explorer.choosing.scene import View
from aniso.explorer.choosing.unknown_pixels import LazyMask
from aniso.explorer.computing import previews
from aniso.explorer.computing.workers import Ticket
from aniso.models import kinds
from aniso.napari.base import PREVIEW, LayerWidget
from aniso.napari.controls import ParameterRow
from aniso.napari.target import Shown, Target, mask_of
from aniso.verbs.plan import Plan, summary_rows
from aniso.verbs.table import Verb

# Milliseconds without a change after which a preview is computed.
REST = 30
_NO_MASK = "none"
_NEW_MASK = "To make one, select the image and press New labels layer above the list of layers."
_NOTHING_UNKNOWN = (
    "no pixel is unknown. Choose a mask, a layer of labels or shapes that marks the pixels to be filled in. "
    f"{_NEW_MASK}"
)


class VerbWidget(LayerWidget):
    """A widget for a verb, or for a diffusion with any model."""

    verb: ClassVar[Verb]

    def __init__(self, napari_viewer: Any) -> None:
        self.rows: dict[str, ParameterRow] = {}
        self.models, self.masks = QComboBox(), QComboBox()
        self.preview_box = QCheckBox("preview")
        self.preview_layer: Any = None
        self.scene: Shown | None = None
        self._pace = previews.Pace()
        self._timer = QTimer()
        self._place = QFormLayout()
        self._ready = False
        self._measure_error: Exception | None = None
        self._waiting: Callable[[], None] | None = None
        self._watched: weakref.WeakSet[Any] = weakref.WeakSet()
        self._values: dict[tuple[str, str], Any] = {}
        self._owner = ""
        super().__init__(napari_viewer)
        if self.verb.takes("model"):
            self.models.addItems(list(kinds()))
            self.models.setCurrentText(Choices().model)
            self.form.addRow("Model", self.models)
        if self.verb.takes("mask"):
            self.form.addRow("Mask", self.masks)
            self.masks.setToolTip(
                f"A layer of labels or shapes that marks unknown pixels; NaN are unknown too. {_NEW_MASK}"
            )
        self.form.addRow(self._place)
        self.form.addRow(self.preview_box)
        self.preview_box.setChecked(True)
        copy, store = QPushButton("Copy as Python"), QPushButton("Write to Zarr…")
        self.buttons.addWidget(copy, 1, 0)
        self.buttons.addWidget(store, 1, 1)
        copy.clicked.connect(self.copy_python)
        store.clicked.connect(lambda: self.write_zarr())
        self._timer.setSingleShot(True)
        self._timer.setInterval(REST)
        self._timer.timeout.connect(self.preview)
        for signal in (self.preview_box.toggled, self.masks.currentTextChanged, self.use_scale.toggled):
            signal.connect(self._request_preview)
        for signal in (self.kind.currentTextChanged, self.models.currentTextChanged):
            signal.connect(self._measure)
        for event in (self.viewer.dims.events.current_step, self._camera().events):
            event.connect(self._request_preview)
            self._events.append((event, self._request_preview))
        self._list_masks()
        self._ready = True
        self._measure()

    # -- choices --------------------------------------------------------------------------------------

    def _list_layers(self, event: Any = None) -> None:
        super()._list_layers(event)
        self._list_masks()

    def _list_masks(self) -> None:
        marked = [layer.name for layer in self.viewer.layers if type(layer).__name__ in ("Labels", "Shapes")]
        current = self.masks.currentText()
        with QSignalBlocker(self.masks):
            self.masks.clear()
            self.masks.addItems([_NO_MASK, *marked])
            self.masks.setCurrentText(current)
        for layer in self.viewer.layers:
            if layer.name in marked and layer not in self._watched:
                self._watched.add(layer)
                for name in ("data", "paint", "labels_update"):
                    if hasattr(layer.events, name):
                        event = getattr(layer.events, name)
                        event.connect(self._request_masked_preview)
                        self._events.append((event, self._request_masked_preview))

    def _request_masked_preview(self, event: Any = None) -> None:
        """Renew the preview while its mask is painted."""
        if event is not None and event.source.name == self.masks.currentText():
            self._request_preview()

    def _choose_layer(self) -> None:
        super()._choose_layer()
        self._measure()

    def _measure(self) -> None:
        """Measure the image in a thread, then build the controls for it."""
        if not self._ready:
            return
        self.scene, self._measure_error = None, None
        self.remove_preview()
        try:
            target = self.target()
        except (ValueError, TypeError):  # reported when it is to be filtered
            if self._waiting is not None:
                self.cancel()
            return
        layer = target.layer
        point, displayed = self._position(target)
        corners = _corners(layer)

        def measure(ticket: Ticket) -> Shown:
            scene = target.scene(point, displayed, corners)
            _ = scene.statistics.measures, scene.statistics.invalid_pixels, scene.source.grey_range
            return scene

        self._submit(self._preview_worker, measure, self._build, self._reject, "measure")

    def _reject(self, error: Exception) -> None:
        """Show why the layer cannot be measured; a run that waits for it ends."""
        self._measure_error = error
        if self._waiting is not None:
            self.cancel()
        self._fail(error)

    def _build(self, scene: Shown) -> None:
        """Build the elements of the parameters, and start a run that waits for them."""
        choices = self.choices()
        while self._place.rowCount():
            self._place.removeRow(0)
        self.scene, self.rows, self._owner = scene, {}, choices.owner
        for control in controls(choices, scene, {}):
            row = self.rows[control.name] = ParameterRow(control)
            self._place.addRow(f"{control.label} {control.symbol}".strip(), row)
            self._place.labelForField(row).setToolTip(row.toolTip())
            row.changed.connect(self._change)
        self._request_preview()
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            waiting()

    def _change(self) -> None:
        scene = self.scene
        if scene is not None and [each.name for each in controls(self.choices(), scene, {})] != [*self.rows]:
            # Which parameters there are depends on others; not while one of them sends a signal.
            QTimer.singleShot(0, partial(self._build, scene))
        self._request_preview()

    def choices(self) -> Choices:
        """Return what is chosen, without a mask."""
        model = self.models.currentText() or Choices().model
        chosen = Choices(self.verb.name, model, file_spacing=self.use_scale.isChecked(), random_pixels=None)
        # Each model keeps its own.
        self._values |= {(self._owner, name): row.value() for name, row in self.rows.items()}
        return replace(chosen, values=dict(self._values))

    def call(self) -> Call:
        """Return the call of the library for the layer."""
        if self.scene is None:
            raise ValueError("the layer is still being measured. Try again in a moment.")
        return self.choices().call(self.scene)

    def _mask(self, target: Target) -> tuple[Array, str] | None:
        name = self.masks.currentText()
        if not self.verb.takes("mask") or name not in self.viewer.layers:
            return None
        return mask_of(self.viewer.layers[name], target)

    # -- results --------------------------------------------------------------------------------------

    def run(self) -> None:
        """Filter the whole layer in a thread."""
        self._filter(self._add_result)

    def _filter(
        self,
        finish: Callable[[Any], None],
        then: Callable[[Any, Ticket], Any] = lambda result, ticket: result,
    ) -> None:
        """Filter the layer, and `then` do something with the result, in a thread."""
        try:
            target = self.target()
            if self._measure_error is not None:
                raise self._measure_error
            if self.scene is None:
                self._set_running(True)
                self._waiting = partial(self._filter, finish, then)
                return
            call = self.call()
            mask = self._mask(target)
            python = target.python(call, mask and mask[1])
        except Exception as error:
            self._set_running(False)
            self._fail(error)
            return

        def compute(ticket: Ticket) -> Any:
            known = None if mask is None else mask[0]
            result, plan = target.run(call, known, ticket)
            if self.verb.fills and not is_dask(result) and np.array_equal(result, target.data):
                raise ValueError(_NOTHING_UNKNOWN)
            return target, then(result, ticket), plan, python

        self._start(compute, finish)

    def _add_result(self, found: Any) -> None:
        target, result, plan, python = found
        about = {"python": python, **({} if plan is None else {"plan": plan.to_json()})}
        data, options = target.result_layer(result, self.verb.participle, about)
        self.remove_preview()
        self.preview_box.setChecked(False)
        self._follows = False
        self.viewer.add_image(data, **options)
        if target.layer in self.viewer.layers:
            self.viewer.layers.selection.active = target.layer  # to try other parameters
        self._follows = True
        rows = [] if plan is None else summary_rows([plan])
        self.report.setText("\n".join(f"{meaning}: {value}" for meaning, value in rows))
        self._show_chosen(plan)

    def _show_chosen(self, plan: Plan | None) -> None:
        """Show what was estimated next to *auto*."""
        for name, value in estimated(plan, self.rows).items():
            if isinstance(self.rows[name].value(), str):
                self.rows[name].show_chosen(value)

    def write_zarr(self, path: str = "") -> None:
        """Filter the layer block by block into a new Zarr store, and show that."""
        path = path or QFileDialog.getSaveFileName(self, "Write to Zarr", "result.zarr", "Zarr (*.zarr)")[0]
        if not path:
            return

        def store(result: Any, ticket: Ticket) -> Any:
            import dask.array as da

            from aniso.blocks.stores.dask_arrays import write_store
            from aniso.blocks.stores.urls import place_of

            place = place_of(path)
            place.check_writable()
            lazy = result if is_dask(result) else da.from_array(result)
            names = [f"axis_{k}" for k in range(lazy.ndim)]
            write_store(lazy, names, place, ticket.progress)
            return da.from_zarr(path)

        self._filter(self._add_result, store)

    def copy_python(self) -> str:
        """Copy the call to the clipboard."""
        try:
            target = self.target()
            mask = self._mask(target)
            text = target.python(self.call(), mask and mask[1])
        except Exception as error:
            self._fail(error)
            return ""
        QApplication.clipboard().setText(text)
        show_info("The call was copied.")
        return text

    def cancel(self) -> None:
        """Stop the computation, also one that waits for the layer to be measured."""
        self._waiting = None
        super().cancel()

    # -- preview --------------------------------------------------------------------------------------

    def _position(self, target: Target) -> tuple[list[float], list[int]]:
        """Return the shown index along each axis of the layer, and the axes on the screen."""
        layer, dims = target.layer, self.viewer.dims
        point = layer.world_to_data(dims.point[-layer.ndim :])
        return list(point), [axis - (dims.ndim - layer.ndim) for axis in dims.displayed]

    def _camera(self) -> Any:
        return getattr(self.viewer, "scene", self.viewer).camera  # napari 0.9, or before

    def _request_preview(self, event: Any = None) -> None:
        if self.preview_box.isChecked():
            self._timer.start()
        else:
            self.remove_preview()

    def _leave(self) -> None:
        super()._leave()
        self.remove_preview()

    def remove_preview(self) -> None:
        """Remove the layer of the preview."""
        self._timer.stop()
        layer, self.preview_layer = self.preview_layer, None
        if layer is not None and layer in self.viewer.layers:
            self.viewer.layers.remove(layer)

    def preview(self) -> None:
        """Filter the visible part of the visible slice in a thread, as fine as the time allows."""
        if self.scene is None or self.viewer.dims.ndisplay == 3 or not self.preview_box.isChecked():
            return
        try:
            target, choices, measured = self.target(), self.choices(), self.scene
            point, displayed = self._position(target)
            mask = self._mask(target)
        except Exception as error:
            self._fail_preview(error)
            return
        corners, zoom = _corners(target.layer), self._camera().zoom

        def compute(ticket: Ticket) -> Any:
            scene = target.scene(point, displayed, corners, measured)
            known = None if mask is None else _of_scene(mask[0], target, scene)
            return self._try(target, scene, replace(choices, drawn=known), corners, zoom, ticket)

        self._submit(self._preview_worker, compute, self._show_preview, self._fail_preview)

    def _try(
        self, target: Target, scene: Shown, choices: Choices, corners: Any, zoom: float, ticket: Ticket
    ) -> tuple[Shown, Plan | None, Array, dict[str, Any]]:
        """Return the scene, what was chosen if this is the final result, and the layer of the preview."""
        call, mask = choices.call(scene), choices.drawn
        quick = previews.rehearse(call, scene)
        if mask is not None and not call.verb.fills:
            lazy = LazyMask(lambda: mask, lambda: scene.shown(mask))
            quick = replace(quick, options={**quick.options, "mask": lazy})
        axes = [k for k in range(target.layer.ndim) if k >= target.has_frames]
        if target.ndim == 3:
            del axes[scene.axis]
        (top, bottom), (left, right) = (
            (corners[0][k] - start, corners[1][k] + 1 - start)
            for k, start in zip(axes, scene.start, strict=True)
        )
        view = View(left, top, right, bottom, zoom * abs(float(target.layer.scale[axes[1]])))
        part = previews.part(scene, view, quick, self._pace.affordable)
        trial = previews.coarsen(quick, scene, part)
        start = time.perf_counter()
        result, plan = trial.call(trial.slab.volume, ticket.progress)
        self._pace.record(quick, part.pixels, time.perf_counter() - start, part.factor)
        exact = previews.is_exact(call, part, scene) and not scene.where and scene.frame is None
        layer = target.preview_layer(scene, part, trial.slab.shown(result))
        return scene, plan if exact else None, *layer

    def _show_preview(self, found: tuple[Shown, Plan | None, Array, dict[str, Any]]) -> None:
        scene, plan, data, options = found
        self._last_error = ""
        if self.scene is not None:
            self.scene = scene
        if not self.preview_box.isChecked():
            return
        self._show_chosen(plan)
        if self.verb.fills:
            nothing = self.masks.currentText() == _NO_MASK and not scene.statistics.invalid_pixels[0]
            self.report.setText(_NOTHING_UNKNOWN[0].upper() + _NOTHING_UNKNOWN[1:] if nothing else "")
        layer = self.preview_layer
        if layer is None or layer not in self.viewer.layers or layer.data.ndim != data.ndim:
            self.remove_preview()
            active = self.viewer.layers.selection.active
            name = f"{self.verb.name} (preview)"
            self.preview_layer = self.viewer.add_image(data, name=name, metadata={PREVIEW: True}, **options)
            self.viewer.layers.selection.active = active
        else:
            layer.data = data
            layer.scale, layer.translate = options["scale"], options["translate"]

    def _fail_preview(self, error: Exception) -> None:
        if str(error) != self._last_error:
            self._last_error = str(error)
            self._fail(error)


def _corners(layer: Any) -> Any:
    """Return the first and the last visible index along each axis, in pixels of the finest level."""
    corners = np.array(layer.corner_pixels, float)
    if layer.multiscale:
        corners = corners * layer.downsample_factors[layer.data_level]
    return corners


def _of_scene(mask: Array, target: Target, scene: Shown) -> Array:
    """Return the part of a mask for what is shown."""
    return (mask[scene.frame] if mask.ndim > target.ndim else mask)[scene.where]
