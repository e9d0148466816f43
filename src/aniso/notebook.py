"""What notebooks show: small pictures, and progress."""

from __future__ import annotations

import base64
import contextlib
import html
import importlib
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from aniso.arrays import Array

# Pixels along the longer side of a picture.
_SIDE = 160
# Pictures in a row.
_MOST = 6


def thumbnail(image: Any, channel_axis: int | None) -> Array:
    """Return a small copy of an image, or of the middle slice of a volume, (H, W) or (H, W, 3)."""
    array = image if channel_axis is None else np.moveaxis(image, channel_axis, -1)
    axes = array.ndim - (channel_axis is not None)
    if axes == 1:
        array, axes = array[np.newaxis], 2
    while axes > 2:
        array, axes = array[len(array) // 2], axes - 1
    step = max(1, -(-max(array.shape[:2]) // _SIDE))
    small = np.array(array[::step, ::step], np.float32)
    if small.ndim == 3 and small.shape[-1] != 3:
        small = small[..., 0]
    return small


def pictures(images: Iterable[tuple[str, Array]]) -> str:
    """Return HTML that shows small images in a row, all in the grey range of the first."""
    found = list(images)
    known = found[0][1][np.isfinite(found[0][1])]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    cells = [
        '<figure style="margin: 4px">'
        f'<img src="data:image/png;base64,{_png(image, low, high)}" alt="{html.escape(name)}">'
        f'<figcaption style="font-size: 90%">{html.escape(name)}</figcaption></figure>'
        for name, image in found
    ]
    return f'<div style="display: flex; flex-wrap: wrap">{"".join(cells)}</div>'


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Return HTML with a row for each name and value."""
    cells = (f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>" for name, value in rows)
    return f"<table>{''.join(cells)}</table>"


def _png(image: Array, low: float, high: float) -> str:
    import imagecodecs

    scaled = np.nan_to_num((image - low) / ((high - low) or 1.0))
    pixels = np.rint(np.clip(scaled, 0, 1) * 255).astype(np.uint8)
    return base64.b64encode(imagecodecs.png_encode(pixels)).decode("ascii")


class Snapshots(Generator[tuple[float, Any], None, None]):
    """The images of a scale space, one after the other; in a notebook it shows some of them.

    To show them it computes them again, so that the images are still there to be asked for.
    """

    def __init__(
        self,
        make: Callable[[], Generator[tuple[float, Any], None, None]],
        times: Sequence[float],
        channel_axis: int | None,
    ):
        self._make, self._times, self._channel_axis = make, times, channel_axis
        self._running = make()  # nothing is computed before the first image is requested

    def send(self, value: None) -> tuple[float, Any]:
        """Return the next time and image."""
        return self._running.send(value)

    def throw(self, *error: Any) -> tuple[float, Any]:
        """Raise an error where the images are computed."""
        return self._running.throw(*error)

    def _repr_html_(self) -> str:
        count = len(self._times)
        wanted = {round(k * (count - 1) / max(min(count, _MOST) - 1, 1)) for k in range(min(count, _MOST))}
        shown = []
        for number, (time, image) in enumerate(self._make()):
            if number in wanted:
                shown.append((f"t = {time:g}", thumbnail(np.asarray(image), self._channel_axis)))
        return pictures(shown)


def in_notebook() -> bool:
    """Return whether the code runs in the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


@contextlib.contextmanager
def progress_bar(total: float) -> Iterator[Callable[[float], object]]:
    """Show a bar below the cell of a notebook until the end; yield a function that moves it."""
    display: Any = importlib.import_module("IPython.display")

    def bar(percent: int) -> Any:
        return display.HTML(f'<progress value="{percent}" max="100"></progress> {percent} %')

    handle, shown = display.display(bar(0), display_id=True), 0

    def update(done: float) -> None:
        nonlocal shown
        percent = int(100 * done / total) if total > 0 else 100
        if percent != shown:
            shown = percent
            handle.update(bar(percent))

    try:
        yield update
    finally:
        handle.update(display.HTML(""))
