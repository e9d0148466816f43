"""Figures of diffused images; they need matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso import arrays, checks
from aniso.evolve import scale_space
from aniso.models import FixedTensor, ImageDriven

__all__ = ["scale_space_figure"]


def scale_space_figure(
    image: npt.ArrayLike,
    model: ImageDriven | FixedTensor,
    times: Sequence[float] | npt.NDArray[Any],
    *,
    columns: int | None = None,
    channel_axis: int | None = None,
    **options: Any,
) -> Any:
    """Draw a scale space: the image at several times, with the time below each panel.

    For a volume, the middle slice is drawn. All panels have the same grey range, from the smallest to the
    largest value of the given image. Three or four channels are drawn as colours; unsigned integers then use
    the full range of their type.

    Parameters
    ----------
    image : array, shape (H, W) or (D, H, W), or with channels
        Never modified.
    model, times, channel_axis
        As for :func:`aniso.scale_space`; a time of 0 shows the image itself.
    columns : int, optional
        Panels per row; by default up to five.
    **options
        Passed to :func:`aniso.scale_space`, e.g. ``scheme`` or ``spacing``.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. It is not shown or saved, and has no window.

    Examples
    --------
    >>> import aniso
    >>> camera = aniso.samples.photograph("camera")[::4, ::4]
    >>> figure = aniso.scale_space_figure(camera, aniso.EdgeEnhancing(), [0, 4, 16])
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['t = 0', 't = 4', 't = 16']
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            'figures are drawn with matplotlib, which is not installed: pip install "aniso[plot]".'
        ) from error
    array = arrays.check_image(image, channel_axis)
    if columns is not None:
        columns = checks.whole("columns", columns, "", "a whole number or None")
    channels = 1 if channel_axis is None else array.shape[channel_axis]
    if array.ndim - (channel_axis is not None) not in (2, 3) or channels not in (1, 3, 4):
        raise checks.make_error(
            ValueError,
            f"a figure shows images (H, W) and the middle of volumes (D, H, W), grey or with three or four "
            f"colours, got shape {array.shape}.",
            python=f"Check channel_axis={channel_axis}, and draw other images slice by slice.",
            command="Leave --figure out.",
        )
    snapshots = scale_space(array, model, times, channel_axis=channel_axis, **options)
    count = len(times)
    across = min(count, 5) if columns is None else min(max(1, columns), count)
    down = math.ceil(count / across)
    height, width = _slice(array, channel_axis).shape[:2]
    side = 2.4
    figure = Figure(figsize=(side * across, (side * height / width + 0.35) * down), layout="constrained")
    panels = np.ravel(figure.subplots(down, across))
    for panel in panels[count:]:
        panel.remove()
    low, high = _grey_range(array, channels)
    for panel, (time, diffused) in zip(panels, snapshots, strict=False):
        shown = _slice(diffused, channel_axis)
        if channels == 1:
            panel.imshow(shown[..., 0], cmap="gray", vmin=low, vmax=high)
        else:
            panel.imshow(np.clip((shown - low) / (high - low), 0, 1))
        panel.set(xticks=[], yticks=[])
        panel.set_xlabel(f"t = {time:g}")
    return figure


def _slice(image: npt.NDArray[Any], channel_axis: int | None) -> npt.NDArray[Any]:
    """Return the image, or the middle slice of a volume, shape (H, W, channels)."""
    last = image[..., np.newaxis] if channel_axis is None else np.moveaxis(image, channel_axis, -1)
    return last if last.ndim == 3 else last[len(last) // 2]


def _grey_range(array: npt.NDArray[Any], channels: int) -> tuple[float, float]:
    if channels > 1 and array.dtype.kind == "u":
        return 0.0, float(np.iinfo(array.dtype).max)
    low, high = float(array.min()), float(array.max())
    return (low, high) if high > low else (low - 0.5, low + 0.5)
