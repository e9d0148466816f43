"""A contest between calls: interleaved, best of several rounds, so that a busy moment hits all alike."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

CONSOLE = Console(width=None if sys.stdout.isatty() else 120)


@dataclass(frozen=True)
class Contestant:
    """A call to be timed; `steps` is how many steps it makes, `rounds` how often it is called at most."""

    name: str
    call: Callable[[], object]
    steps: int = 1
    rounds: int | None = None
    warm_up: bool = True


@dataclass(frozen=True)
class Timing:
    """All times of one contestant, in seconds per call."""

    times: tuple[float, ...]
    steps: int = 1

    @property
    def best(self) -> float:
        """The least disturbed call."""
        return min(self.times)

    @property
    def per_step(self) -> float:
        """Seconds per step in the best call."""
        return self.best / self.steps

    @property
    def jitter(self) -> float:
        """How much longer than the best call the median one took, as a fraction."""
        return statistics.median(self.times) / self.best - 1


def contest(
    contestants: Iterable[Contestant],
    rounds: int,
    pause: float = 0.05,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Times by name. Each contestant has its turn in every round.

    The pause lets the threads of the one before go to sleep: OpenMP's wait actively for a while.
    """
    entrants = list(contestants)
    times: dict[str, list[float]] = {entrant.name: [] for entrant in entrants}
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=CONSOLE,
        transient=True,
        auto_refresh=False,
        disable=not CONSOLE.is_terminal,
    )
    # Redrawn between calls only: there may be no core to spare while one is timed.
    with bar:
        task = bar.add_task("warming up")
        for entrant in entrants:
            if entrant.warm_up:
                entrant.call()
        for number in range(rounds):
            for entrant in entrants:
                if entrant.rounds is not None and number >= entrant.rounds:
                    continue
                bar.update(task, description=f"round {number + 1} of {rounds}: {entrant.name}", refresh=True)
                time.sleep(pause)
                start = clock()
                entrant.call()
                times[entrant.name].append(clock() - start)
    return {entrant.name: Timing(tuple(times[entrant.name]), entrant.steps) for entrant in entrants}


def environment(packages: Iterable[str] = ()) -> dict[str, Any]:
    """What a reader has to know about the machine to judge the figures."""
    return {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "load before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "versions": {
            "python": platform.python_version(),
            **{name: version for name in packages if (version := _version(name)) is not None},
        },
    }


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """Return the name of the processor, if the system provides it."""
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
