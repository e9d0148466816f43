"""aniso structure."""

from __future__ import annotations

from typing import Literal

import typer

from aniso.cli.options import shared
from aniso.cli.options.shared import number, option
from aniso.parameters import PLATES, RHO, SIGMA, of_function
from aniso.structure import coherence

_SIGMA, _RHO = (of_function(coherence)[name].default for name in ("sigma", "rho"))
EXAMPLES = {
    "structure": (
        "aniso structure fibres.tif",
        "aniso structure fibres.tif --what orientation --degrees --rho 6",
        "aniso structure scan.nii.gz --what coherence --lines -o scan_lines.nii.gz",
        "aniso structure in.zarr out.zarr --what tensor",
    )
}


def structure(
    files: shared.Files,
    reading: shared.ReadingOptions,
    placing: shared.PlacingOptions,
    measuring: shared.MeasuringOptions,
    stores: shared.StorageOptions,
    reporting: shared.ReportingOptions,
    what: Literal["coherence", "orientation", "tensor"] = option(
        "coherence: from 0 to 1, how strongly the structure is oriented. orientation: the direction of least "
        "change, in images as an angle in radians from x (right) towards y (down), in volumes as a vector z, "
        "y, x. tensor: the structure tensor yy, yx, xx, of volumes zz, zy, zx, yy, yx, xx.",
        default="coherence",
        metavar="NAME",
    ),
    sigma: float = number(f"σ, {SIGMA.meaning}. Default {_SIGMA:g}.", default=_SIGMA, low=0),
    rho: float = number(f"ρ, {RHO.meaning}. Default {_RHO:g}.", default=_RHO, low=0),
    plates: bool = option(
        f"For the coherence of volumes: {PLATES.meaning} (the default).", "--plates/--lines", default=True
    ),
    degrees: bool = option("Angles in degrees, from −90 to 90, in place of radians.", default=False),
) -> None:
    """Write the orientation, coherence or structure tensor at each pixel, as floating-point numbers.

    Vectors and tensors are written as channels, which TIFF and NPY files hold. Channels of the image have
    one structure together.

    fibres.png becomes fibres_coherence.tif. Zarr stores are computed block by block.
    """
    from aniso.cli.jobs.file_job import FileJob
    from aniso.cli.jobs.reporting import Report
    from aniso.cli.jobs.structures import Structures

    if degrees and what != "orientation":
        raise typer.BadParameter(f"--degrees is for --what orientation, got --what {what}. Leave it out.")
    writing = shared.WritingOptions(placing.output, placing.force)
    computing = shared.ComputingOptions(measuring.spacing)
    report = Report("structure", reporting)
    work = FileJob(report, files, reading, writing, computing, storage=stores.storage)
    Structures(work, what, sigma, rho, plates, degrees).write()
