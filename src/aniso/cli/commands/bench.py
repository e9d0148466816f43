"""aniso bench."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from aniso.cli.options import parsing
from aniso.cli.options.shared import ReportingOptions, option

_STEPS = 10
EXAMPLES = ("aniso bench", "aniso bench --size 2048 --threads 1 --json")


def command(
    reporting: ReportingOptions,
    size: int = option("Image size along each side, in pixels.", default=1024, min=16, max=16384),
    threads: int | None = option("Number of threads. Default: all cores.", min=1),
    engine: str = option(parsing.engine_help, default="cpu", parser=parsing.engine, metavar="NAME"),
    rounds: int = option("Number of rounds; the best is reported.", default=3, min=1),
) -> None:
    """Measure the speed on this machine, in a few seconds.

    Runs ten explicit steps of edge-enhancing and of coherence-enhancing diffusion, and a FED cycle of ten
    steps, on a grey-value image in single precision. The first call, which compiles, is not counted.
    """
    from aniso.cli.jobs.reporting import Report, columns
    from aniso.engines.cpu.threads import default_threads

    report = Report("bench", reporting)
    facts = {"size": size, "engine": engine}
    with report.attempt(""):
        with report.progress("measuring") as tell:
            speeds = _speeds(size, threads, engine, rounds, tell)
        facts["threads"] = used = threads or default_threads()
        report.results += speeds
        pace = "{milliseconds_per_step:8.2f} ms per step{megapixels_per_second:10.0f} Mpixel/s"
        report.say(
            f"{size} × {size} pixels, float32, engine {engine}, {used} thread{'s' if used > 1 else ''}"
        )
        report.say(columns([(speed["work"], pace.format(**speed)) for speed in speeds]))
    report.finish(**facts)


def _speeds(size: int, threads: int | None, engine: str, rounds: int, tell: Any) -> list[dict[str, Any]]:
    """Return milliseconds per step and megapixels per second of each task."""
    import numpy as np

    image = np.random.default_rng(0).normal(128, 30, (size, size)).astype(np.float32)
    tasks = _tasks(image, engine, threads)
    best = dict.fromkeys(tasks, float("inf"))
    for task in tasks.values():
        task()  # compiles
    for done in range(rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            best[name] = min(best[name], time.perf_counter() - start)
        tell(done + 1, rounds)
    return [
        {
            "work": name,
            "milliseconds_per_step": 1e3 * seconds / _STEPS,
            "megapixels_per_second": 1e-6 * image.size * _STEPS / seconds,
        }
        for name, seconds in best.items()
    ]


def _tasks(image: Any, engine: Any, threads: int | None) -> dict[str, Callable[[], Any]]:
    from aniso.evolve import diffuse
    from aniso.models import CoherenceEnhancing, EdgeEnhancing
    from aniso.schemes import FED, Explicit
    from aniso.stability import stable_step

    run = partial(diffuse, image, engine=engine, threads=threads)
    edges, lines = EdgeEnhancing(contrast=5.0), CoherenceEnhancing(contrast=5.0, rho=3.0)
    limit = stable_step(edges)
    reach = limit * _STEPS * (_STEPS + 1) / 3  # of a FED cycle of as many steps
    return {
        "EED, explicit steps": partial(run, edges, _STEPS * 0.9 * limit, scheme=Explicit(0.9 * limit)),
        "CED, explicit steps": partial(run, lines, _STEPS * 0.9 * limit, scheme=Explicit(0.9 * limit)),
        "EED, one FED cycle": partial(run, edges, reach, scheme=FED(1)),
    }
