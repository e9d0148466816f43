"""aniso bench."""

from __future__ import annotations

from aniso.cli.options import parsing
from aniso.cli.options.shared import ReportingOptions, option

EXAMPLES = ("aniso bench", "aniso bench --size 2048 --threads 1 --json")


def command(
    reporting: ReportingOptions,
    size: int = option(
        "Image size along each side, in pixels.", default=1024, min=16, max=16384, metavar="N"
    ),
    threads: int | None = option("Number of threads. Default: all cores.", min=1, metavar="N"),
    engine: str = option(parsing.engine_help, default="cpu", parser=parsing.engine, metavar="NAME"),
    rounds: int = option("Number of rounds, of which the best counts.", default=3, min=1, metavar="N"),
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
