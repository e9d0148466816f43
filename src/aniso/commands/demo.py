"""aniso demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aniso.commands.bundles import Reporting

NEEDS_ARGUMENTS = False
EXAMPLES = ("aniso demo", "aniso demo -o first-impression.png")


def command(
    reporting: Reporting,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the picture.", metavar="FILE")
    ] = Path("aniso-demo.png"),
) -> None:
    """Diffuse a few images that come with aniso and write one picture of the results.

    An existing picture is kept: the new one then has a number in its name.
    """
    from aniso import demo as show
    from aniso.commands.reporting import Report
    from aniso.picture import FileError

    if output.suffix.lower() != ".png":
        raise typer.BadParameter(
            f"the picture is written as PNG, got {output}. Give a name that ends in .png."
        )
    report = Report("demo", reporting)
    with report.attempt(""):
        if not output.parent.is_dir():
            raise FileError(f"the folder {output.parent} does not exist. Make it first.")
        path = show.free_path(output)
        show.picture(show.rows()).save(path)
        report.results.append({"output": path})
        report.say(f"Wrote {path}: what diffusion along, and not across, structures does.")
    report.finish()
