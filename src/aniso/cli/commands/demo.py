"""aniso demo."""

from __future__ import annotations

from pathlib import Path

from aniso.cli.options.shared import ReportingOptions, option

EXAMPLES = ("aniso demo", "aniso demo -o first-impression")


def command(
    reporting: ReportingOptions,
    output: Path = option(
        "Folder for the pictures.", "--output", "-o", default=Path("aniso-demo"), metavar="FOLDER"
    ),
) -> None:
    """Denoise, enhance, inpaint and upsample sample images, and show before and after in one picture.

    An existing folder is not changed: a number is added to the name of the new one.
    """
    from aniso.cli.jobs import demonstration
    from aniso.cli.jobs.reporting import Report

    report = Report("demo", reporting)
    with report.attempt(""):
        report.results.append({"output": demonstration.run(output, report.say)})
    report.finish()
