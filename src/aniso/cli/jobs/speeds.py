"""Measure the speed of an engine on this machine."""

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


def measure_speeds(
    size: int, threads: int | None, engine: Any, rounds: int, tell: Tell
) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of threads, and milliseconds per step and megapixels per second of each task."""
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
    speeds = [
        {
            "work": name,
            "milliseconds_per_step": 1e3 * seconds / _STEPS,
            "megapixels_per_second": 1e-6 * image.size * _STEPS / seconds,
        }
        for name, seconds in best.items()
    ]
    return threads or default_threads(), speeds


def _tasks(image: Any, engine: Any, threads: int | None) -> dict[str, Callable[[], Any]]:
    run = partial(diffuse, image, engine=engine, threads=threads)
    edges, lines = EdgeEnhancing(contrast=5.0), CoherenceEnhancing(contrast=5.0, rho=3.0)
    limit = stability.stable_step(edges)
    reach = limit * _STEPS * (_STEPS + 1) / 3  # of a FED cycle of as many steps
    return {
        "EED, explicit steps": partial(run, edges, _STEPS * 0.9 * limit, scheme=Explicit(0.9 * limit)),
        "CED, explicit steps": partial(run, lines, _STEPS * 0.9 * limit, scheme=Explicit(0.9 * limit)),
        "EED, one FED cycle": partial(run, edges, reach, scheme=FED(1)),
    }


def format_speeds(facts: dict[str, Any], speeds: list[dict[str, Any]]) -> str:
    """Return the speeds as lines of text."""
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
