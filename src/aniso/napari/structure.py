"""The widget of the structure tensor: coherence and orientation as layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from qtpy.QtWidgets import QCheckBox

import aniso
from aniso.arrays import Array
from aniso.explorer.choosing.controls import Control
from aniso.explorer.computing.workers import Ticket
from aniso.napari.base import LayerWidget
from aniso.napari.controls import ParameterRow
from aniso.napari.target import Target
from aniso.parameters import of_function

# Vectors along each side of an image.
_VECTORS = 40
# Maps that are shown as images, their ranges and colours.
_MAPS = (("coherence", (0, 1), "viridis"), ("orientation", (-np.pi / 2, np.pi / 2), "hsv"))


class Structure(LayerWidget):
    """Coherence and orientation of the structure at each pixel, as layers."""

    title = "Structure"
    summary = "Compute how clearly the structure at each pixel has a direction, and which."

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.rows: dict[str, ParameterRow] = {}
        self.wanted = {name: QCheckBox(name) for name in ("coherence", "orientation", "vectors")}
        for name, parameter in of_function(aniso.orientation).items():
            control = Control.of(parameter, unit="px", high=12.0)
            self.rows[name] = ParameterRow(control)
            self.form.addRow(f"{control.label} {control.symbol}", self.rows[name])
        for box in self.wanted.values():
            self.form.addRow(box)
        self.wanted["coherence"].setChecked(True)
        self.wanted["orientation"].setChecked(True)

    def run(self) -> None:
        """Compute the maps in a thread."""
        try:
            target = self.target()
        except Exception as error:
            self._fail(error)
            return
        scales = {name: row.value() for name, row in self.rows.items()}
        options = {**scales, **target.options(self.use_scale.isChecked())}
        wanted = [name for name, box in self.wanted.items() if box.isChecked()]

        def each(function: Callable[..., Any], ticket: Ticket) -> Any:
            frames = list(target.data) if target.has_frames else [target.data]
            found = []
            for number, frame in enumerate(frames):
                ticket.progress(number, len(frames))
                found.append(function(frame, **options))
            return np.stack(found) if target.has_frames else found[0]

        def compute(ticket: Ticket) -> Any:
            maps = {"coherence": each(aniso.coherence, ticket)} if "coherence" in wanted else {}
            if {"orientation", "vectors"} & set(wanted):
                directions = each(aniso.orientation, ticket)
                if "orientation" in wanted and target.ndim == 2:
                    maps["orientation"] = directions
                if "vectors" in wanted or target.ndim == 3:
                    maps["directions"] = _vectors(np.asarray(directions), target)
            return target, maps

        self._start(compute, self._add_maps)

    def _add_maps(self, found: Any) -> None:
        target, maps = found
        place, name = target.geometry(), target.layer.name
        for what, limits, colours in _MAPS:
            if what in maps:
                looks = {"contrast_limits": limits, "colormap": colours}
                self.viewer.add_image(maps[what], name=f"{name} {what}", **looks, **place)
        if "directions" in maps:
            lines = maps["directions"]
            self.viewer.add_vectors(lines, name=f"{name} directions", vector_style="line", **place)


def _vectors(directions: Array, target: Target) -> Array:
    """Return short lines along the structure on a coarse grid, (n, 2, axes of the layer)."""
    axes, lead = target.ndim, int(target.has_frames)
    # In images, angles from x towards y.
    parts = np.stack([np.sin(directions), np.cos(directions)], lead) if axes == 2 else directions
    parts = np.moveaxis(parts, lead, -1)
    shape = parts.shape[:-1]
    step = max(1, round(max(shape[lead:]) / _VECTORS))
    grid = np.meshgrid(
        *[np.arange(n) if k < lead else np.arange(step // 2, n, step) for k, n in enumerate(shape)],
        indexing="ij",
    )
    places = np.stack([axis.ravel() for axis in grid], -1)
    lines = np.zeros((len(places), 2, len(shape)))
    along = parts[tuple(places.T)] * 0.8 * step
    lines[:, 0], lines[:, 1, lead:] = places, along
    lines[:, 0, lead:] -= along / 2
    return lines
