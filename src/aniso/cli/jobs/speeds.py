"""How fast the engine is on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from aniso import stability
from aniso.cli.jobs.reporting import Tell, columns
from aniso.engines.cpu.threads import default_threads
from aniso.evolve import diffuse
from aniso.models import CoherenceEnhancing, EdgeEnhancing
from aniso.schemes import FED, Explicit

_STEPS = 10


def measured(
    size: int, threads: int | None, engine: Any, rounds: int, tell: Tell
) -> tuple[int, list[dict[str, Any]]]:
    """The number of threads, and for each kind of work seconds per step and pixels per second."""
    image = np.random.default_rng(0).normal(128, 30, (size, size)).astype(np.float32)
    works = _works(image, engine, threads)
    best = dict.fromkeys(works, float("inf"))
    for work in works.values():
        work()  # compiles
    for done in range(rounds):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - start)
        tell(done + 1, rounds)
    speeds = [
        {
            "work": name,
            "milliseconds_per_step": 1e3 * seconds / _STEPS,
            "megapixels_per_second": 1e-6 * image.size * _STEPS / seconds,
        }
        for name, seconds in best.items()
    ]
    return threads or default_threads(), speeds


def _works(image: Any, engine: Any, threads: int | None) -> dict[str, Callable[[], Any]]:
    run = partial(diffuse, image, engine=engine, threads=threads)
    edges, lines = EdgeEnhancing(contrast=5.0), CoherenceEnhancing(contrast=5.0, rho=3.0)
    limit = stability.stable_step(edges)
    reach = limit * _STEPS * (_STEPS + 1) / 3  # of a FED cycle of so many steps
    return {
        "EED, explicit steps": partial(run, edges, _STEPS * 0.9 * limit, scheme=Explicit(0.9 * limit)),
        "CED, explicit steps": partial(run, lines, _STEPS * 0.9 * limit, scheme=Explicit(0.9 * limit)),
        "EED, one FED cycle": partial(run, edges, reach, scheme=FED(1)),
    }


def tabulated(facts: dict[str, Any], speeds: list[dict[str, Any]]) -> str:
    """For people."""
    threads = facts["threads"]
    rows = [
        (
            speed["work"],
            f"{speed['milliseconds_per_step']:8.2f} ms per step"
            f"{speed['megapixels_per_second']:10.0f} Mpixel/s",
        )
        for speed in speeds
    ]
    title = f"{facts['size']} × {facts['size']} pixels, float32, engine {facts['engine']}, "
    return f"{title}{threads} thread{'s' if threads > 1 else ''}\n{columns(rows)}"
