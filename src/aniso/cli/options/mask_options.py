"""Options that mark unknown pixels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from aniso.cli.files.reading import read_as_stored
from aniso.cli.options.bundles import ReadingOptions, flag, number_option
from aniso.io.picture import FileError, Picture

if TYPE_CHECKING:
    from aniso.cli.jobs.reporting import Report

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class MaskOptions:
    """Which pixels are unknown."""

    mask_file: Annotated[
        Path | None,
        typer.Option(
            "--mask",
            help="Mask image of the same size: pixels are unknown where any channel is not 0.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None
    invert: Annotated[bool, flag("--invert", help="Invert the mask: pixels are unknown where it is 0.")] = (
        False
    )
    mask_value: Annotated[
        float | None, number_option("Pixels are unknown where all channels have this value.")
    ] = None

    def check(self) -> None:
        """Reject options that contradict each other."""
        if self.mask_file is not None and self.mask_value is not None:
            raise typer.BadParameter("--mask and --mask-value cannot be combined. Give one of them.")
        if self.invert and self.mask_file is None:
            raise typer.BadParameter("--invert needs a mask. Add --mask FILE.")

    def mask(self, picture: Picture, reading: ReadingOptions, report: Report) -> Mask:
        """Return True where a pixel is unknown, (H, W) or one for each page; at least one pixel is."""
        if self.mask_file is not None:
            mask = _read_mask(self.mask_file, reading, report)
            mask = ~mask if self.invert else mask
            if mask.shape not in (picture.shape, picture.shape[1:] if len(picture.shape) == 3 else ()):
                sizes = " × ".join(map(str, mask.shape)), " × ".join(map(str, picture.shape))
                raise FileError(
                    f"{self.mask_file} has {sizes[0]} pixels, but {picture.source} has {sizes[1]}. Give a "
                    "mask of the same size."
                )
            why = f"{self.mask_file} marks no unknown pixels"
        elif self.mask_value is not None:
            mask = _over_channels(picture, picture.pixels == self.mask_value, np.all)
            why = f"no pixel has the value {self.mask_value:g}"
        else:
            mask = _over_channels(picture, ~np.isfinite(picture.pixels), np.any)
            why = "no pixel is NaN or infinite. Give --mask or --mask-value"
        if not mask.any():
            raise FileError(f"{picture.source} has nothing to fill in: {why}.")
        return mask


@lru_cache(maxsize=1)  # one mask serves many files
def _read_mask(file: Path, reading: ReadingOptions, report: Report) -> Mask:
    picture = read_as_stored(file, reading)
    if picture.format == "JPEG":
        report.note(
            "mask",
            f"{file} is a JPEG file. Its compression leaves nonzero pixels around the mask, which count as "
            "unknown too. Save masks as PNG.",
        )
    return _over_channels(picture, picture.pixels != 0, np.any)


def _over_channels(picture: Picture, marked: Any, combined: Any) -> Mask:
    axis = picture.channel_axis
    result: Mask = marked if axis is None else combined(marked, axis=axis)
    return result
