"""Qt elements of parameters, from the descriptions that the explorer shows."""

from __future__ import annotations

import math
from typing import Any

from qtpy.QtCore import QSignalBlocker, Qt, Signal
from qtpy.QtWidgets import QCheckBox, QComboBox, QDoubleSpinBox, QHBoxLayout, QSlider, QWidget

from aniso.explorer.choosing.choices import AUTO
from aniso.explorer.choosing.controls import LOG, ROOT, Control

_STEPS = 1000
_LARGEST = 1e9


class _Number(QDoubleSpinBox):
    """A number that is not shown as long as it is not known."""

    def __init__(self) -> None:
        super().__init__()
        self.known = True
        self.setButtonSymbols(QDoubleSpinBox.ButtonSymbols.NoButtons)  # the slider has more room without

    def textFromValue(self, value: float) -> str:
        """Return what is shown of a value."""
        return super().textFromValue(value) if self.known else ""

    def show_known(self, known: bool) -> None:
        """Show the value, or nothing."""
        self.known = known
        self.lineEdit().setText(self.textFromValue(self.value()))


class ParameterRow(QWidget):
    """The element of one parameter: a switch, a list, or a number with a slider and, if it can be, *auto*."""

    changed = Signal()

    def __init__(self, control: Control) -> None:
        super().__init__()
        self.control = control
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        self.setToolTip(f"{control.meaning} ({control.unit})" if control.unit else control.meaning)
        self._list, self._number, self._switch = QComboBox(), _Number(), QCheckBox()
        self._slider = QSlider(Qt.Orientation.Horizontal)
        if control.kind == "switch":
            self._switch.setChecked(bool(control.value))
            self._switch.toggled.connect(self.changed)
            row.addWidget(self._switch)
        elif control.kind == "choice":
            self._list.addItems(list(map(str, control.choices)))
            self._list.setCurrentText(str(control.value))
            self._list.currentTextChanged.connect(self.changed)
            row.addWidget(self._list)
        else:
            self._build_number(row)

    def _build_number(self, row: QHBoxLayout) -> None:
        control = self.control
        words = [*([AUTO] if control.automatic else []), *control.kinds]
        self._number.setDecimals(4 if control.high < 100 else 2)
        self._number.setRange(min(control.low, 0.0), _LARGEST)
        self._number.setKeyboardTracking(False)
        self._number.setMaximumWidth(80)
        self._list.setMaximumWidth(84)
        self._slider.setMinimumWidth(60)
        self._slider.setRange(0, _STEPS)
        if words:
            self._list.addItems([*words, "value"])
            self._list.currentTextChanged.connect(self._toggle)
            row.addWidget(self._list)
        row.addWidget(self._slider, 1)
        row.addWidget(self._number)
        self.set(control.value)
        if isinstance(control.value, str):
            middle = 0.5 * (control.low + control.high)
            self.show_chosen(middle if control.chosen is None else control.chosen)
            self._number.show_known(control.chosen is not None)
        self._slider.valueChanged.connect(self._slide)
        self._number.valueChanged.connect(self._type)

    def value(self) -> Any:
        """Return the chosen value; AUTO or a kind, if the number is estimated."""
        control = self.control
        if control.kind == "switch":
            return self._switch.isChecked()
        text = self._list.currentText()
        if control.kind == "choice":
            return next(choice for choice in control.choices if str(choice) == text)
        return self._number.value() if text in ("", "value") else text

    def set(self, value: Any) -> None:
        """Choose a value."""
        if self.control.kind == "switch":
            self._switch.setChecked(bool(value))
        elif isinstance(value, str) or self.control.kind == "choice":
            self._list.setCurrentText(str(value))
        else:
            self._list.setCurrentText("value")
            self._number.setValue(float(value))
            self._move_slider(float(value))
        self._enable()

    def show_chosen(self, value: float) -> None:
        """Show what was estimated, without choosing it."""
        with QSignalBlocker(self._number):
            self._number.setValue(value)
            self._number.show_known(True)
        self._move_slider(value)

    def _enable(self) -> None:
        own = self._list.count() == 0 or self._list.currentText() == "value"
        self._number.setEnabled(own)
        if own:
            self._number.show_known(True)

    def _toggle(self) -> None:
        self._enable()
        self.changed.emit()

    def _slide(self, position: int) -> None:
        low, high, share = self.control.low, self.control.high, position / _STEPS
        if self.control.scale == LOG and low > 0:
            value = low * (high / low) ** share
        else:
            value = low + (high - low) * (share**2 if self.control.scale == ROOT else share)
        with QSignalBlocker(self._number), QSignalBlocker(self._list):
            self._number.setValue(value)
            self._list.setCurrentText("value")
        self._enable()
        self.changed.emit()

    def _type(self, value: float) -> None:
        self._move_slider(value)
        self.changed.emit()

    def _move_slider(self, value: float) -> None:
        low, high = self.control.low, self.control.high
        if self.control.scale == LOG and low > 0:
            share = math.log(max(value, low) / low) / math.log(high / low)
        else:
            share = min(max((value - low) / (high - low or 1.0), 0.0), 1.0)
            share = math.sqrt(share) if self.control.scale == ROOT else share
        with QSignalBlocker(self._slider):
            self._slider.setValue(round(_STEPS * min(share, 1.0)))
