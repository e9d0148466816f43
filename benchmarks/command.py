"""How long the command takes to answer: help and version, each in fresh processes, best of several.

python -m benchmarks.command --json benchmarks/results/command.json
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from benchmarks import timing
from benchmarks.report import Report, Target
from benchmarks.timing import CONSOLE, Contestant

_ROOT = Path(__file__).resolve().parents[1]

#: What people wait for, and how long they may have to.
CALLS = {
    "aniso --help": 0.5,
    "aniso denoise --help": 0.5,
    "aniso diffuse --help": None,
    "aniso --version": None,
}


def answer(call: str) -> None:
    """One call in a process of its own."""
    _, *words = call.split()
    subprocess.run(
        [sys.executable, "-m", "aniso", *words],
        capture_output=True, check=True, cwd=_ROOT, env={**os.environ, "COLUMNS": "100"},
    )  # fmt: skip


def measured(rounds: int) -> Report:
    """The best of several calls of each."""
    report = Report("the command", {"rounds": rounds}, timing.environment(["typer", "rich", "numpy"]))
    found = timing.contest([Contestant(call, partial(answer, call)) for call in CALLS], rounds)
    for call, bound in CALLS.items():
        report.add_timing(call, found[call], "ours", "with the start of Python")
        if bound is not None:
            report.targets.append(Target(call, found[call].best, bound, "at most", "s"))
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10, help="rounds (default 10)")
    parser.add_argument("--quick", action="store_true", help="two rounds, to see that it works")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    report = measured(2 if options.quick else options.repeats)
    report.show()
    if options.json is not None:
        report.save(options.json)
        CONSOLE.print(f"wrote {options.json}", highlight=False)


if __name__ == "__main__":
    main()
