"""aniso bench."""

from __future__ import annotations

from typing import Annotated

import typer

from aniso.cli.options import parsing
from aniso.cli.options.bundles import Reporting

NEEDS_ARGUMENTS = False
EXAMPLES = ("aniso bench", "aniso bench --size 2048 --threads 1 --json")


def command(
    reporting: Reporting,
    size: Annotated[int, typer.Option(min=16, max=16384, help="Pixels along each side.", metavar="N")] = 1024,
    threads: Annotated[
        int | None, typer.Option(min=1, help="By default all cores.", metavar="N", show_default=False)
    ] = None,
    engine: Annotated[
        str,
        typer.Option(parser=parsing.engine, help=parsing.engine_help(), metavar="NAME", show_default=False),
    ] = "cpu",
    rounds: Annotated[int, typer.Option(min=1, help="The best of so many rounds counts.", metavar="N")] = 3,
) -> None:
    """Measure the speed on this machine, in a few seconds.

    Ten explicit steps of edge-enhancing and of coherence-enhancing diffusion, and a FED cycle of ten steps,
    on a grey image in single precision. The first call, which compiles, is not counted.
    """
    from aniso.cli.jobs.reporting import Report
    from aniso.cli.jobs.speeds import measured, tabulated

    report = Report("bench", reporting)
    facts = {"size": size, "engine": engine}
    with report.attempt(""):
        with report.progress("measuring") as tell:
            facts["threads"], speeds = measured(size, threads, engine, rounds, tell)
        report.results += speeds
        report.say(tabulated(facts, speeds))
    report.finish(**facts)
