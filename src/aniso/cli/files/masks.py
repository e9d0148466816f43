"""Which pixels are unknown."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from aniso.cli.files.reading import as_stored
from aniso.cli.options.bundles import Reading, flag, number_option
from aniso.io.formats import origin
from aniso.io.picture import FileError, Picture

if TYPE_CHECKING:
    from aniso.cli.jobs.reporting import Report

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Unknown:
    """Options that say which pixels are unknown."""

    mask_file: Annotated[
        Path | None,
        typer.Option(
            "--mask",
            help="An image of the same size: pixels are unknown where it is not 0, in any channel.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None
    invert: Annotated[
        bool, flag("--invert", help="The mask marks the known pixels: unknown is where it is 0.")
    ] = False
    mask_value: Annotated[
        float | None, number_option("Pixels are unknown where all channels have this value.")
    ] = None

    def check(self) -> None:
        """Reject options that contradict each other."""
        if self.mask_file is not None and self.mask_value is not None:
            raise typer.BadParameter("--mask and --mask-value both say what is unknown. Give one of them.")
        if self.invert and self.mask_file is None:
            raise typer.BadParameter("--invert needs a mask. Give --mask FILE.")

    def mask(self, picture: Picture, reading: Reading, report: Report) -> Mask:
        """Return True where a pixel is unknown, (H, W) or one for each page; at least one pixel is."""
        if self.mask_file is not None:
            mask = _from_file(self.mask_file, reading, report)
            mask = ~mask if self.invert else mask
            if mask.shape not in (picture.shape, picture.shape[1:] if len(picture.shape) == 3 else ()):
                sizes = " × ".join(map(str, mask.shape)), " × ".join(map(str, picture.shape))
                raise FileError(
                    f"{self.mask_file} has {sizes[0]} pixels, {picture.source} has {sizes[1]}: a mask "
                    "must be of the same size. Resize it."
                )
            why = f"{self.mask_file} marks no pixel of it as unknown"
        elif self.mask_value is not None:
            mask = _over_channels(picture, picture.pixels == self.mask_value, np.all)
            why = f"no pixel of it has the value {self.mask_value:g}"
        else:
            mask = _over_channels(picture, ~np.isfinite(picture.pixels), np.any)
            why = "it holds no NaN. Give --mask or --mask-value"
        if not mask.any():
            raise FileError(f"{picture.source} has nothing to fill in: {why}.")
        return mask


@lru_cache(maxsize=1)  # one mask serves many files
def _from_file(file: Path, reading: Reading, report: Report) -> Mask:
    picture = as_stored(file, reading)
    if origin(picture).lossy:
        report.note(
            "mask",
            f"{file} is a {picture.format} file, whose compression leaves traces that are not 0 next to what "
            "was drawn: these pixels count as marked, too. Save masks as PNG.",
        )
    return _over_channels(picture, picture.pixels != 0, np.any)


def _over_channels(picture: Picture, marked: Any, combined: Any) -> Mask:
    axis = picture.channel_axis
    result: Mask = marked if axis is None else combined(marked, axis=axis)
    return result
