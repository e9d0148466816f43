"""What is lost when a result is written to a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from aniso.io import units
from aniso.io.formats import format_of
from aniso.io.picture import Picture

_SHARE = 0.01  # of the values; fewer are clipped without a note


def losses(target: Path, picture: Picture, *, retyped: bool) -> Iterator[tuple[str, str]]:
    """Yield kinds and texts of what is lost when a picture is written; `retyped`: its data type is new.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from aniso.cli.files.losses import losses
    >>> from aniso.io.picture import Picture
    >>> dark = Picture(np.linspace(0, 1, 12).reshape(3, 4), dtype="uint8")
    >>> for _, text in losses(Path("dark.png"), dark, retyped=True):
    ...     print(text)
    values of dark.png range from 0 to 1 and are rounded to integers, which leaves almost nothing. ...
    """
    if retyped and picture.dtype.kind in "iu":
        yield from _of_type(target, picture)
    lengthless = picture.spacing is not None and units.metres(picture.unit) is None
    if lengthless and format_of(target).name == "MRC":
        why = f"is in {picture.unit}, which is not a known unit of length" if picture.unit else "has no unit"
        yield "unit", f"{target} is written without voxel size, because that of the input {why}."


def _of_type(target: Path, picture: Picture) -> Iterator[tuple[str, str]]:
    """Yield notes about clipped values, and about pictures that become flat."""
    limits = np.iinfo(picture.dtype)
    values = picture.pixels
    least, largest = float(values.min()), float(values.max())
    # Halves beyond the limits are rounded to them.
    share = float(np.mean((values < limits.min - 0.5) | (values > limits.max + 0.5)))
    if share > _SHARE:
        yield (
            "clipped",
            f"{100 * share:.0f} % of the values of {target} are clipped: they range from {least:.4g} to "
            f"{largest:.4g}, and {picture.dtype} from {limits.min} to {limits.max}. Scale them first, or "
            "choose another --dtype.",
        )
    elif least < largest <= least + 1:
        yield (
            "flat",
            f"values of {target} range from {least:.4g} to {largest:.4g} and are rounded to integers, which "
            "leaves almost nothing. Scale them first, or write floats as .tif or .npy.",
        )
