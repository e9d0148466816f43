"""aniso info."""

from __future__ import annotations

from typing import Annotated

from aniso.cli.options.bundles import Files, Reading, Reporting, flag

NEEDS_ARGUMENTS = True
EXAMPLES = ("aniso info photo.jpg", "aniso info scan.tif --json", "aniso info volume.npy --channel-axis none")


def command(
    files: Files,
    reading: Reading,
    reporting: Reporting,
    estimate: Annotated[
        bool,
        flag(
            "--estimate/--no-estimate",
            help="Estimate noise, contrast and wavelength (of a volume, or of the middle page of a stack).",
        ),
    ] = True,
) -> None:
    """Tell what a file holds, and its estimated noise, contrast and wavelength.

    All lengths are in pixels, in volumes in the shortest side of a voxel, all strengths in grey values of
    the file.
    """
    from aniso.cli.files.contents import contents
    from aniso.cli.files.places import inputs
    from aniso.cli.jobs.reporting import Report
    from aniso.cli.jobs.work import each_file

    report = Report("info", reporting)
    each_file(report, inputs(files), lambda path, number, tell: contents(path, reading, estimate))
    report.finish()
