"""aniso demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aniso.cli.options.bundles import Reporting

NEEDS_ARGUMENTS = False
EXAMPLES = ("aniso demo", "aniso demo -o first-impression")


def command(
    reporting: Reporting,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the pictures.", metavar="FOLDER")
    ] = Path("aniso-demo"),
) -> None:
    """Denoise, enhance, fill in and enlarge images that come with aniso: before and after in one picture.

    An existing folder is left as it is: the new one then has a number in its name.
    """
    from aniso.cli.jobs import demonstration as show
    from aniso.cli.jobs.reporting import Report

    report = Report("demo", reporting)
    with report.attempt(""):
        report.results.append({"output": show.run(output, report.say)})
    report.finish()
