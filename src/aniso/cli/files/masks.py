"""Which pixels are unknown."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aniso.cli.files import pages
from aniso.cli.files.pages import Page, Pages
from aniso.cli.jobs.reporting import Report
from aniso.cli.options.bundles import Reading
from aniso.io.picture import FileError, Picture

Mask = npt.NDArray[np.bool_]


def unknown(
    picture: Picture, file: Path | None, value: float | None, invert: bool, reading: Reading, report: Report
) -> Mask:
    """True where a pixel is unknown, (H, W) or one for each page; at least one pixel is."""
    if file is not None:
        mask = _from_file(file, reading, report)
        mask = ~mask if invert else mask
        if mask.shape not in (picture.shape, picture.shape[1:] if len(picture.shape) == 3 else ()):
            sizes = " × ".join(map(str, mask.shape)), " × ".join(map(str, picture.shape))
            raise FileError(
                f"{file} has {sizes[0]} pixels, {picture.source} has {sizes[1]}: a mask must be of the same "
                "size. Resize it."
            )
        why = f"{file} marks no pixel of it as unknown"
    elif value is not None:
        mask = _over_channels(picture, picture.pixels == value, np.all)
        why = f"no pixel of it has the value {value:g}"
    else:
        mask = _over_channels(picture, ~np.isfinite(picture.pixels), np.any)
        why = "it holds no NaN. Give --mask or --mask-value"
    if not mask.any():
        raise FileError(f"{picture.source} has nothing to fill in: {why}.")
    return mask


def of_page(mask: Mask, pages: Pages, page: Page) -> Mask:
    """The part of a mask that belongs to a page; a mask of one page serves all."""
    if pages.volume:
        return np.broadcast_to(mask, pages.picture.shape)
    return mask[page.number - 1] if mask.ndim == len(pages.picture.shape) == 3 else mask


@lru_cache(maxsize=1)  # one mask serves many files
def _from_file(file: Path, reading: Reading, report: Report) -> Mask:
    picture = pages.as_stored(file, reading)
    if picture.format == "JPEG":
        report.note(
            "mask",
            f"{file} is a JPEG file, whose compression leaves traces that are not 0 beside what was drawn: "
            "these pixels count as marked, too. Save masks as PNG.",
        )
    return _over_channels(picture, picture.pixels != 0, np.any)


def _over_channels(picture: Picture, marked: Any, combined: Any) -> Mask:
    axis = picture.channel_axis
    result: Mask = marked if axis is None else combined(marked, axis=axis)
    return result
