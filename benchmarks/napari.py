"""How long the preview in napari takes after a slider rests, and how soon a computation stops.

A layer of 2048² pixels in a real viewer, shown as a whole. The clock starts when the slider of a widget gets
a new value, and stops when the layer of the preview has the new pixels: so it contains the delay after which
a slider counts as resting, computing, and the way back to the window. A cancelled computation has stopped
when its thread waits for the next one. Needs Xvfb and the extra `napari`.

python -m benchmarks.napari --json benchmarks/results/napari.json
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import aniso
from benchmarks import timing
from benchmarks.report import Report, Target
from benchmarks.timing import CONSOLE
from benchmarks.virtual_display import start_display

#: Milliseconds within which the preview should follow, at the median.
TARGET = 150.0
#: Milliseconds within which a computation should have stopped.
STOP = 500.0
SLIDERS = {
    "Diffuse": "contrast",
    "Denoise": "noise",
    "Enhance": "contrast",
    "Inpaint": "contrast",
    "Upsample": "contrast",
}


def wait(condition: Callable[[], bool], seconds: float = 120.0) -> float:
    """Let Qt work until a condition holds; return the milliseconds it took."""
    from qtpy.QtWidgets import QApplication

    start = time.perf_counter()
    while not condition() and time.perf_counter() - start < seconds:
        QApplication.processEvents()
        time.sleep(0.001)
    return 1e3 * (time.perf_counter() - start)


def follow(widget: Any, name: str, rounds: int) -> list[float]:
    """Return the milliseconds from a new value to the new picture."""
    row, times = widget.rows[name], []
    for number in range(rounds + 3):
        before = widget.preview_layer.data
        middle = 400 + 37 * (number % 7)
        start = time.perf_counter()
        row._slider.setValue(middle)
        wait(lambda before=before: widget.preview_layer.data is not before)  # type: ignore[misc]
        if number >= 3:  # the first ones compile, and find out how fast the machine is
            times.append(1e3 * (time.perf_counter() - start))
        wait(lambda: False, 0.1)
    return times


def measured(size: int, rounds: int) -> Report:
    """Return the report."""
    os.environ["DISPLAY"] = start_display() or os.environ.get("DISPLAY", "")
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    import napari

    from aniso.napari import widgets

    environment = timing.environment(["napari", "PyQt6", "numba", "numpy"])
    report = Report("previews in napari", {"size": size, "rounds": rounds}, environment)
    viewer = napari.Viewer(show=False)
    image = np.tile(aniso.samples.shapes(256, noise=20.0).image, (size // 256, size // 256)).astype("float32")
    viewer.add_labels(np.random.default_rng(0).integers(0, 2, image.shape), name="mask", visible=False)
    viewer.add_image(image, name="scene")
    for title, name in SLIDERS.items():
        widget = getattr(widgets, title)(viewer)
        viewer.window.add_dock_widget(widget)
        if title == "Inpaint":
            widget.masks.setCurrentText("mask")
        wait(lambda widget=widget: widget.preview_layer is not None)  # type: ignore[misc]
        times = sorted(follow(widget, name, rounds))
        note = f"{size}², {len(times)} previews, 90 % within {times[int(0.9 * (len(times) - 1))]:.0f} ms"
        row = f"{title.lower()}: {name}"
        report.add(row, statistics.median(times), "ms", "ours", note)
        report.targets.append(Target(row, statistics.median(times), TARGET, "at most", "ms"))
        widget.preview_box.setChecked(False)
        stops = []
        for delay in np.linspace(0.3, 3.0, max(rounds // 2, 1)):  # while it chooses, and later
            widget.run()
            wait(lambda: False, delay)
            start = time.perf_counter()
            widget.cancel()
            wait(lambda widget=widget: widget._worker._running is None)  # type: ignore[misc]
            stops.append(1e3 * (time.perf_counter() - start))
        report.add(
            f"{title.lower()}: cancel", statistics.median(stops), "ms", "ours", f"at most {max(stops):.0f} ms"
        )
        report.targets.append(Target(f"{title.lower()}: cancel", max(stops), STOP, "at most", "ms"))
        viewer.window.remove_dock_widget("all")
    viewer.close()
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20, help="previews of each slider (default 20)")
    parser.add_argument("--size", type=int, default=2048, help="pixels along each side (default 2048)")
    parser.add_argument("--quick", action="store_true", help="a small image, to see that it works")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    arguments = parser.parse_args()
    size, rounds = (512, 4) if arguments.quick else (arguments.size, arguments.repeats)
    report = measured(size, rounds)
    report.show()
    if arguments.json is not None:
        report.save(arguments.json)
        CONSOLE.print(f"wrote {arguments.json}", highlight=False)


if __name__ == "__main__":
    main()
