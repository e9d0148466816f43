"""Take the pictures of napari.md in a real window on a virtual display: python -m docs.images.napari."""

import os
import time
from pathlib import Path

from PIL import Image

import aniso
from benchmarks.virtual_display import start_display

FOLDER = Path(__file__).parent


def wait(condition, seconds: float = 120.0) -> None:
    """Let Qt work until a condition holds."""
    from qtpy.QtWidgets import QApplication

    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.005)


def take_picture(viewer, name: str) -> None:
    """Save a screenshot of the window with a small palette."""
    end = time.monotonic() + 1.5
    wait(lambda: time.monotonic() > end)
    pixels = viewer.screenshot(canvas_only=False, flash=False)
    picture = Image.fromarray(pixels).convert("RGB")
    small = picture.resize((1100, round(1100 * picture.height / picture.width)), Image.Resampling.LANCZOS)
    small.quantize(160, dither=Image.Dither.NONE).save(FOLDER / f"{name}.png", optimize=True)


def main() -> None:
    """Take the pictures."""
    os.environ["DISPLAY"] = start_display("1400x900") or os.environ.get("DISPLAY", "")
    import napari

    viewer = napari.Viewer(show=True)
    viewer.window._qt_window.resize(1300, 820)
    image = aniso.samples.lighthouse(384, noise=30.0).image.clip(0, 255).astype("uint8")
    layer = viewer.add_image(image, name="lighthouse", rgb=True)
    _, widget = viewer.window.add_plugin_dock_widget("aniso", "Denoise")
    wait(lambda: widget.rows)
    wait(lambda: widget.preview_layer is not None)
    widget.run()
    wait(lambda: widget.run_button.isEnabled())
    viewer.layers[-1].translate = (0, 400)
    layer.translate = (0, 0)
    viewer.reset_view()
    take_picture(viewer, "napari")

    viewer.window.remove_dock_widget("all")
    viewer.layers.clear()
    viewer.open_sample("aniso", "fingerprint")
    _, widget = viewer.window.add_plugin_dock_widget("aniso", "Structure")
    widget.wanted["vectors"].setChecked(True)
    widget.wanted["orientation"].setChecked(False)
    widget.run()
    wait(lambda: widget.run_button.isEnabled())
    viewer.layers["fingerprint coherence"].opacity = 0.5
    viewer.reset_view()
    take_picture(viewer, "napari_structure")
    viewer.close()


if __name__ == "__main__":
    main()
