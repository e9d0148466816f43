"""aniso bench."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from aniso.cli.options.bundles import ReportingOptions

NEEDS_ARGUMENTS = False
EXAMPLES = ("aniso bench", "aniso bench --size 2048 --threads 1 --json")


def command(
    reporting: ReportingOptions,
    size: Annotated[
        int, typer.Option(min=16, max=16384, help="Image size along each side, in pixels.", metavar="N")
    ] = 1024,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Number of threads. Default: all cores.", metavar="N", show_default=False),
    ] = None,
    engine: Annotated[
        Literal["cpu", "torch", "reference"],
        typer.Option(help="Engine: cpu, torch or reference.", metavar="NAME"),
    ] = "cpu",
    rounds: Annotated[
        int, typer.Option(min=1, help="Number of rounds, of which the best counts.", metavar="N")
    ] = 3,
) -> None:
    """Measure the speed on this machine, in a few seconds.

    Runs ten explicit steps of edge-enhancing and of coherence-enhancing diffusion, and a FED cycle of ten
    steps, on a grey-value image in single precision. The first call, which compiles, is not counted.
    """
    from aniso.cli.jobs.reporting import Report
    from aniso.cli.jobs.speeds import format_speeds, measure_speeds

    report = Report("bench", reporting)
    facts = {"size": size, "engine": engine}
    with report.attempt(""):
        with report.progress("measuring") as tell:
            facts["threads"], speeds = measure_speeds(size, threads, engine, rounds, tell)
        report.results += speeds
        report.say(format_speeds(facts, speeds))
    report.finish(**facts)
