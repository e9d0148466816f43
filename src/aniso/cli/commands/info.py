"""aniso info."""

from __future__ import annotations

from aniso.cli.options.shared import Files, ReadingOptions, ReportingOptions, option

EXAMPLES = ("aniso info photo.jpg", "aniso info scan.tif --json", "aniso info volume.npy --channel-axis none")


def command(
    files: Files,
    reading: ReadingOptions,
    reporting: ReportingOptions,
    estimate: bool = option(
        "Estimate noise, contrast and wavelength of the image, the volume, or the middle page of a stack.",
        "--estimate/--no-estimate",
        default=True,
    ),
) -> None:
    """Show the contents of a file and its estimated noise, contrast and wavelength.

    Lengths are in pixels, for volumes in units of the shortest side of a voxel. Noise and contrast are in
    grey values of the file.
    """
    from aniso.cli.files import inputs
    from aniso.cli.jobs.contents import describe_file
    from aniso.cli.jobs.file_job import each_file
    from aniso.cli.jobs.reporting import Report

    report = Report("info", reporting)
    each_file(report, inputs(files), lambda path, number, tell: describe_file(path, reading, estimate))
    report.finish()
