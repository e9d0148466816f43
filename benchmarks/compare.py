"""What got slower since the last run or another commit.

    python -m benchmarks.compare NEW.json [OLD.json]
    python -m benchmarks.compare --against COMMIT [--benchmark steps] [--rounds 3] [-- --size 1024 …]

Times are compared as multiples of the plain C program in the same run, so that the machine's speed cancels;
memory is compared as it is. Without OLD, the figures kept in benchmarks/results are taken. With a commit, its
package and this one run the benchmark in turns, and the best of each counts: slow changes of the machine then
hit both. The exit code is 1 if anything of aniso got more than 5 % slower or larger, and 2 if the runs cannot
be compared.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from rich.table import Table

from benchmarks.report import YARDSTICK, Report, figure
from benchmarks.timing import CONSOLE

RESULTS = Path(__file__).with_name("results")
ROOT = Path(__file__).resolve().parents[1]
TOLERANCE = 0.05


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


def extract(commit: str, folder: Path) -> None:
    """Write the package of a commit to a folder."""
    command = ["git", "-C", str(ROOT), "archive", commit, "src"]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")


def run(package: Path, benchmark: str, options: list[str]) -> Report:
    """Run a benchmark of this checkout in a new process, with the package in this folder."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        subprocess.run(
            [sys.executable, "-m", f"benchmarks.{benchmark}", "--json", str(result), *options],
            check=True, capture_output=True, text=True, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(package / "src")},
        )  # fmt: skip
        return Report.load(result)


def best(reports: list[Report]) -> Report:
    """Return the first report with the smallest figure of all for each measurement."""
    found = reports[0]
    for name in found.measurements:
        found.measurements[name] = min(
            (report.measurements[name] for report in reports), key=lambda entry: entry.value
        )
    return found


def run_in_turns(commit: str, benchmark: str, rounds: int, options: list[str]) -> tuple[Report, Report]:
    """Return the best figures of this checkout and of a commit, which take turns."""
    new, old = [], []
    with tempfile.TemporaryDirectory() as other:
        extract(commit, Path(other))
        for _ in range(rounds):
            old.append(run(Path(other), benchmark, options))
            new.append(run(ROOT, benchmark, options))
    return best(new), best(old)


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
    parser.add_argument("new", type=Path, nargs="?")
    parser.add_argument("old", type=Path, nargs="?", help="by default the figures kept in benchmarks/results")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="0.05 lets 5 %% pass")
    parser.add_argument("--against", metavar="COMMIT", help="run a benchmark with this commit and this one")
    parser.add_argument("--benchmark", default="steps", help="the benchmark to run")
    parser.add_argument("--rounds", type=int, default=3, help="how often each of the two runs it")
    given_arguments = sys.argv[1:] if arguments is None else arguments
    # What follows two dashes is for the benchmark.
    end = given_arguments.index("--") if "--" in given_arguments else len(given_arguments)
    given, options = parser.parse_args(given_arguments[:end]), given_arguments[end + 1 :]
    if (given.new is None) == (given.against is None):
        parser.error("give either a file or --against COMMIT")
    try:
        if given.against:
            new, old = run_in_turns(given.against, given.benchmark, given.rounds, options)
        else:
            new = Report.load(given.new)
            old = Report.load(given.old or RESULTS / f"{new.benchmark}.json")
        ratios = changes(new, old)
    except subprocess.CalledProcessError as error:
        CONSOLE.print(f"cannot compare: {error}\n{error.stderr}", highlight=False)
        return 2
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
