"""What got slower since the last run: python -m benchmarks.compare NEW.json [OLD.json].

Times are compared as multiples of the plain C program in the same run, so that the machine's speed cancels;
memory is compared as it is. Without OLD, the figures kept in benchmarks/results are taken. The exit code is 1
if anything of aniso got more than 20 % slower or larger, and 2 if the runs cannot be compared.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.table import Table

from benchmarks.report import YARDSTICK, Report, figure
from benchmarks.timing import CONSOLE

RESULTS = Path(__file__).with_name("results")
TOLERANCE = 0.2


class IncomparableError(ValueError):
    """The runs did not measure the same, or without a yardstick."""


def changes(new: Report, old: Report) -> dict[str, float]:
    """New over old for every figure of aniso that both have: above 1 is worse."""
    if new.benchmark != old.benchmark:
        raise IncomparableError(f"one is a run of {new.benchmark}, the other of {old.benchmark}")
    differing = [
        name
        for name in sorted(new.settings.keys() | old.settings.keys())
        if name != "rounds" and new.settings.get(name) != old.settings.get(name)
    ]
    if differing:
        raise IncomparableError(
            "the settings differ: "
            + ", ".join(f"{name} {new.settings.get(name)} and {old.settings.get(name)}" for name in differing)
        )
    for run in (new, old):
        if YARDSTICK not in run.measurements:
            raise IncomparableError(f"{YARDSTICK} was not measured: a C compiler is needed")
    speed = old.measurements[YARDSTICK].value / new.measurements[YARDSTICK].value
    ratios = {}
    for name, before in old.measurements.items():
        after = new.measurements.get(name)
        if after is None or before.kind not in ("ours", "memory"):
            continue
        ratios[name] = after.value / before.value * (speed if before.kind == "ours" else 1.0)
    return ratios


def show(new: Report, old: Report, ratios: dict[str, float], tolerance: float) -> list[str]:
    """The table, worst first; returns the names of what got worse."""
    table = Table(
        title=f"{new.benchmark}: new over old, times as multiples of {YARDSTICK}", title_justify="left"
    )
    for column in ("what", "old", "new", "ratio", ""):
        table.add_column(column, justify="left" if column in ("what", "") else "right")
    worse = []
    for name, ratio in sorted(ratios.items(), key=lambda item: -item[1]):
        before, after = old.measurements[name], new.measurements[name]
        verdict = ""
        if ratio > 1 + tolerance:
            worse.append(name)
            verdict = "[red]larger[/]" if before.kind == "memory" else "[red]slower[/]"
        elif ratio < 1 / (1 + tolerance):
            verdict = "[green]better[/]"
        table.add_row(
            name,
            f"{figure(before.value)} {before.unit}",
            f"{figure(after.value)} {after.unit}",
            f"{ratio:.2f}",
            verdict,
        )
    CONSOLE.print(table)
    for word, run in (("old", old), ("new", new)):
        facts = run.environment
        CONSOLE.print(
            f"{word}: {facts['date']}, {facts['processor']}, {facts['cores']} cores, load before "
            f"{facts['load before']}, {YARDSTICK} {figure(run.measurements[YARDSTICK].value)} "
            f"{run.measurements[YARDSTICK].unit}",
            highlight=False,
        )
    gone = [name for name in old.measurements if name not in new.measurements]
    if gone:
        CONSOLE.print(f"no longer measured: {', '.join(gone)}", highlight=False)
    return worse


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("new", type=Path)
    parser.add_argument("old", type=Path, nargs="?", help="by default the figures kept in benchmarks/results")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="0.2 lets 20 %% pass")
    given = parser.parse_args(arguments)
    try:
        new = Report.load(given.new)
        old = Report.load(given.old or RESULTS / f"{new.benchmark}.json")
        ratios = changes(new, old)
    except (IncomparableError, OSError) as error:
        CONSOLE.print(f"cannot compare: {error}", highlight=False)
        return 2
    worse = show(new, old, ratios, given.tolerance)
    if worse:
        CONSOLE.print(f"more than {given.tolerance:.0%} worse: {', '.join(worse)}", highlight=False)
    else:
        CONSOLE.print(f"nothing got more than {given.tolerance:.0%} worse", highlight=False)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
