"""What all widgets share: the layer, a thread for results with progress and cancel, and messages."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from napari.utils.notifications import show_error
from qtpy.QtCore import QEvent, QObject, QSignalBlocker, Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QGridLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from aniso.explorer.computing.workers import Stale, Ticket, Worker
from aniso.napari.target import KINDS, Target, default_kind

#: Marks the layers of previews, in their metadata.
PREVIEW = "aniso preview"


class _Bridge(QObject):
    """Runs functions in the thread of the window."""

    posted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.posted.connect(lambda function: function())

    def post(self, function: Callable[[], object]) -> None:
        """From any thread: call a function in the window's thread, if there still is one."""
        with contextlib.suppress(RuntimeError):
            self.posted.emit(function)

    def post_wanted(self, ticket: Ticket, function: Callable[..., object], *arguments: Any) -> None:
        """Do so unless the ticket has been withdrawn by then."""

        def call() -> None:
            if ticket.wanted:
                function(*arguments)

        self.post(call)


class LayerWidget(QWidget):
    """What all widgets share: the layer, a thread for results with progress and cancel, and messages."""

    title: ClassVar[str] = ""
    summary: ClassVar[str] = ""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.viewer = napari_viewer
        self._bridge = _Bridge()
        self._preview_worker = Worker("aniso preview", interrupts=True)
        self._last_error = ""
        self._follows = True
        self.layers, self.kind = QComboBox(), QComboBox()
        self.layers.setPlaceholderText("open an image first")
        self.use_scale = QCheckBox("use the scale of the layer")
        self.use_scale.setToolTip("Lengths and times are in the units of the layer instead of pixels.")
        self.run_button, self.cancel_button = QPushButton("Run"), QPushButton("Cancel")
        self.progress, self.report = QProgressBar(), QLabel()
        report = partial(_show_progress, self._bridge, self.progress)
        self._worker = Worker("aniso filter", interrupts=True, report=report)
        self.progress.setRange(0, 1000)
        self.report.setWordWrap(True)
        self.form, self.buttons = QFormLayout(), QGridLayout()
        self.form.addRow("Layer", self.layers)
        self.form.addRow("Axes", self.kind)
        self.buttons.addWidget(self.run_button, 0, 0)
        self.buttons.addWidget(self.cancel_button, 0, 1)
        whole = QVBoxLayout(self)
        text = QLabel(self.summary)
        text.setWordWrap(True)
        whole.addWidget(text)
        whole.addLayout(self.form)
        whole.addWidget(self.use_scale)
        whole.addLayout(self.buttons)
        whole.addWidget(self.progress)
        whole.addWidget(self.report)
        whole.addStretch(1)
        self._set_running(False)
        self.run_button.clicked.connect(self.run)
        self.cancel_button.clicked.connect(self.cancel)
        self._events = [
            (self.viewer.layers.events.inserted, self._list_layers),
            (self.viewer.layers.events.removed, self._list_layers),
            (self.viewer.layers.events.renamed, self._list_layers),
            (self.viewer.layers.selection.events.active, self._follow_selection),
        ]
        for event, function in self._events:
            event.connect(function)
        self._release = partial(_release, self._events, [self._worker, self._preview_worker])
        self.destroyed.connect(self._release)
        self._list_layers()
        self._follow_selection()
        self._choose_layer()
        self.layers.currentIndexChanged.connect(self._choose_layer)

    def changeEvent(self, event: Any) -> None:
        """Stop all computations when napari removes the widget from its window."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.ParentChange and self.parent() is None:
            self._leave()

    def _leave(self) -> None:
        """Stop all computations, and disconnect from the viewer."""
        self._release()

    # -- layers ---------------------------------------------------------------------------------------

    def _list_layers(self, event: Any = None) -> None:
        before = self._layer()
        with QSignalBlocker(self.layers):
            self.layers.clear()
            for layer in self.viewer.layers:
                if not layer.metadata.get(PREVIEW):
                    self.layers.addItem(layer.name, layer)
                    if layer is before:
                        self.layers.setCurrentIndex(self.layers.count() - 1)
            if self.layers.currentIndex() < 0 and self.layers.count():  # no first one, with a placeholder
                self.layers.setCurrentIndex(0)
        if self._layer() is not before:
            self._choose_layer()

    def _follow_selection(self, event: Any = None) -> None:
        if not self._follows:
            return
        active = self.viewer.layers.selection.active
        if active is not None and type(active).__name__ == "Image" and not active.metadata.get(PREVIEW):
            self.layers.setCurrentIndex(self.layers.findText(active.name))

    def _choose_layer(self) -> None:
        layer = self._layer()
        with QSignalBlocker(self.kind):
            self.kind.clear()
            if layer is not None and type(layer).__name__ == "Image" and layer.ndim in KINDS:
                self.kind.addItems(list(KINDS[layer.ndim]))
                self.kind.setCurrentText(default_kind(layer))
        self.form.setRowVisible(self.kind, self.kind.count() > 1)

    def _layer(self) -> Any:
        return self.layers.currentData()

    def target(self) -> Target:
        """Return the chosen layer, with the chosen axes."""
        layer = self._layer()
        if layer is None:
            raise ValueError("there is no layer. Open an image first.")
        return Target.of(layer, self.kind.currentText())

    # -- threads --------------------------------------------------------------------------------------

    def run(self) -> None:
        """Filter the whole layer in a thread."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Stop the computation."""
        self._worker.withdraw()
        self._set_running(False)

    def _start(self, compute: Callable[[Ticket], Any], finish: Callable[[Any], None]) -> None:
        """Compute in the thread, then finish in the window; errors are shown."""
        self._set_running(True)
        self._submit(self._worker, compute, partial(self._end, finish), partial(self._end, self._fail))

    def _submit(
        self, worker: Worker, compute: Callable[[Ticket], Any], finish: Callable[[Any], None],
        fail: Callable[[Exception], None], lane: str = "",
    ) -> None:  # fmt: skip
        """Compute in a thread, then finish, or fail with an error, in the window."""

        def job(ticket: Ticket) -> None:
            try:
                result = compute(ticket)
            except Stale:
                raise
            except Exception as error:
                self._bridge.post_wanted(ticket, fail, error)
            else:
                self._bridge.post_wanted(ticket, finish, result)

        worker.submit(job, lane)

    def _end(self, finish: Callable[[Any], None], found: Any) -> None:
        self._set_running(False)
        finish(found)

    def _fail(self, error: Exception) -> None:
        """Show an error as a notification."""
        text = " ".join(str(error).split()) or type(error).__name__
        show_error(f"{self.title}: {text}")

    def _set_running(self, running: bool) -> None:
        self.run_button.setEnabled(not running)
        self.cancel_button.setEnabled(running)
        self.progress.setVisible(running)
        self.progress.setValue(0)


def _show_progress(bridge: _Bridge, bar: QProgressBar, ticket: Ticket) -> None:
    bridge.post_wanted(ticket, bar.setValue, round(1000 * ticket.share))


def _release(events: list[Any], workers: list[Worker], *_: Any) -> None:
    """Disconnect from the viewer, and end the threads."""
    while events:
        event, function = events.pop()
        with contextlib.suppress(ValueError, RuntimeError):
            event.disconnect(function)
    for worker in workers:
        worker.withdraw()
        worker.close(wait=False)
