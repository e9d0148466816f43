"""Run all benchmarks in order, and write a dated report.

    python -m benchmarks.all [--quick] [--folder FOLDER] [NAME…]

Figures, pictures and pages replace those in benchmarks/results and docs; with --quick or --apart, they go to
the folder of the report. A benchmark that fails does not stop the others. The exit code is 1 if one failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import timing
from benchmarks.report import Report, figure
from benchmarks.table import BENCHMARKS

ROOT = Path(__file__).resolve().parents[1]
#: A benchmark that takes longer is stopped.
HOURS = 4.0
PACKAGES = ("aniso", "numpy", "scipy", "numba", "torch", "triton", "scikit-image", "dask", "zarr")
_MOST_FIGURES = 4


@dataclass(frozen=True)
class Outcome:
    """What came of a benchmark."""

    command: str
    load: float | None
    seconds: float
    code: int | None
    figures: str

    @property
    def ended(self) -> str:
        """The exit code, or that there is none."""
        return f"stopped after {HOURS:g} hours" if self.code is None else str(self.code)


def main_figures(path: Path | None, output: str, since: float) -> str:
    """Return the targets and the first figures of aniso in a report, else the last line of the output."""
    if path is not None and path.is_file() and path.stat().st_mtime >= since:
        try:
            found = Report.load(path)
        except (KeyError, TypeError, json.JSONDecodeError):
            pass  # figures in a form of their own
        else:
            met = sum(target.met for target in found.targets)
            targets = [f"{met} of {len(found.targets)} targets met"] if found.targets else []
            ours = [(name, one) for name, one in found.measurements.items() if one.kind == "ours"]
            named = [f"{name}: {figure(one.value)} {one.unit}" for name, one in ours[:_MOST_FIGURES]]
            return "; ".join([*targets, *named])
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "no output")


def run(command: str, log: Path) -> Outcome:
    """Run a command in a process of its own; its output goes to the log."""
    words = shlex.split(command)
    figures = Path(words[words.index("--json") + 1]) if "--json" in words else None
    load, begin, since = timing.environment()["load before"], time.monotonic(), time.time()
    with log.open("wb") as written:
        try:
            code: int | None = subprocess.run(
                [sys.executable, "-m", *words], cwd=ROOT, stdout=written, stderr=subprocess.STDOUT,
                timeout=3600 * HOURS, env={**os.environ, "NO_COLOR": "1"},
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            code = None
    seconds = time.monotonic() - begin
    output = log.read_text("utf-8", errors="replace")
    where = None if figures is None else ROOT / figures
    return Outcome(f"python -m {command}", load, seconds, code, main_figures(where, output, since - 1))


def commit() -> str:
    """Return the commit of this checkout, and whether files differ from it."""
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        return "unknown: git is not installed"
    return answer.stdout.strip() or "unknown: not a git checkout"


def page(conditions: dict[str, object], outcomes: list[Outcome]) -> Iterator[str]:
    """Yield the lines of the report."""
    failed = [one for one in outcomes if one.code != 0]
    yield f"# Benchmarks, {conditions['date']}"
    yield ""
    for name, value in conditions.items():
        text = ", ".join(f"{key} {item}" for key, item in value.items()) if isinstance(value, dict) else value
        yield f"- {name}: {text}"
    minutes = sum(one.seconds for one in outcomes) / 60
    yield f"- {len(outcomes)} benchmarks in {minutes:.0f} minutes, {len(failed)} of them failed"
    yield ""
    yield "| command | load before | seconds | exit code | main figures |"
    yield "|---|---|---|---|---|"
    for one in outcomes:
        ended = one.ended if one.code == 0 else f"**{one.ended}**"
        shown = one.figures.replace("|", "/")
        yield f"| `{one.command}` | {one.load} | {one.seconds:.0f} | {ended} | {shown} |"


def main(arguments: list[str] | None = None) -> int:
    names = [one.name for one in BENCHMARKS]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.all", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("names", nargs="*", help=f"of {', '.join(names)}; all by default")
    parser.add_argument("--quick", action="store_true", help="short runs, to see that they work")
    parser.add_argument("--apart", action="store_true", help="write no results but those in the folder")
    parser.add_argument("--folder", type=Path, help="of the report and all output")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - set(names))
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(names)}")
    conditions: dict[str, object] = {**timing.environment(PACKAGES), "commit": commit()}
    folder = (given.folder or Path(f"benchmark-report-{conditions['date']}")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    apart = given.quick or given.apart
    results, pages = (folder, folder) if apart else (Path("benchmarks/results"), Path("docs"))
    outcomes: list[Outcome] = []
    for one in BENCHMARKS:
        if given.names and one.name not in given.names:
            continue
        timing.CONSOLE.print(f"{one.name} …", highlight=False)
        outcomes.append(run(one.command(results, pages, quick=given.quick), folder / f"{one.name}.txt"))
        text = "\n".join(page(conditions, outcomes)) + "\n"
        (folder / "report.md").write_text(text, "utf-8")  # after each, so that an interrupted run has one
        latest = outcomes[-1]
        timing.CONSOLE.print(
            f"  exit code {latest.ended}, {latest.seconds:.0f} s, {latest.figures}",
            highlight=False,
            markup=False,
        )
    timing.CONSOLE.print(f"wrote {folder / 'report.md'}", highlight=False)
    return int(any(one.code != 0 for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
