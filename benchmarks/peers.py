"""aniso side by side with what people use now: speed, laws and quality.

    pip install -r benchmarks/peers-requirements.txt
    python -m benchmarks.peers --json benchmarks/results/peers.json \\
        --picture benchmarks/results/peers.png --markdown docs/peers.md

Packages that are not installed are left out, with a line that says so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import other_packages, peers_page, peers_quality, peers_speed, timing
from benchmarks.peers_contestants import Filter, contestants
from benchmarks.peers_laws import LAWS
from benchmarks.report import Measurement, Report, add_places, deliver

SECTIONS = ("speed", "laws", "quality")
VERSIONS = ("aniso", "numpy", "numba", "scipy", "scikit-image", *other_packages.DISTRIBUTIONS)


def judge(found: Report, filters: Iterable[Filter]) -> None:
    """Every law for every filter."""
    for filter in filters:
        for law in LAWS:
            finding = law.finding(filter)
            note = finding.verdict + (f": {finding.note}" if finding.note else "")
            found.measurements[f"law, {law.name}: {filter.name}"] = Measurement(
                finding.value, "of the range", filter.kind, note
            )


def section_of(measurement: str) -> str:
    """The section that a figure belongs to, by its name."""
    if measurement.startswith(("iteration, ", "time ")):
        return "speed"
    return "laws" if measurement.startswith("law, ") else "quality"


def merge(reports: Sequence[Report]) -> Report:
    """Return one report with each section as in the last report that has it, and when that was measured."""
    last, runs = reports[-1], dict[str, Any]()
    merged = Report(last.benchmark, {}, last.environment)
    for report in reports:
        sections = dict.fromkeys(map(section_of, report.measurements))
        facts = {
            "date": report.environment["date"],
            "aniso": report.environment["versions"]["aniso"],
            "load before": report.environment["load before"],
        }
        runs |= {section: report.settings.get("runs", {}).get(section, facts) for section in sections}
        kept = {
            name: entry for name, entry in merged.measurements.items() if section_of(name) not in sections
        }
        merged.measurements = kept | report.measurements
        merged.settings |= report.settings
        merged.skipped |= report.skipped
    merged.settings["runs"] = runs
    return merged


def measure(sections: Iterable[str], quick: bool, rounds: int, threads: int) -> Report:
    """The sections asked for, in one report."""
    image_size, volume_sizes = (256, (32,)) if quick else (2048, (128, 256))
    found = Report(
        "peers",
        {"image": image_size, "volumes": volume_sizes, "rounds": rounds, "threads": threads, "quick": quick},
        timing.environment(VERSIONS),
    )
    if "speed" in sections:
        peers_speed.measure(found, image_size, volume_sizes, rounds, threads)
    if "laws" in sections:
        filters = contestants(found.skip)
        judge(found, [entrant for entrant in filters if entrant.ndim == 2 or not quick])
    if "quality" in sections:
        peers_quality.measure(found, quick)
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all by default")
    parser.add_argument(
        "--quick", action="store_true", help="small images and few of them; no laws of volumes"
    )
    parser.add_argument("--repeats", type=int, default=5, help="rounds of the contest; the best one counts")
    parser.add_argument("--threads", type=int, default=min(2, timing.cores()))
    add_places(parser)
    parser.add_argument("--markdown", type=Path, help="where to write the page of the documentation")
    parser.add_argument(
        "--from",
        type=Path,
        nargs="+",
        dest="earlier",
        metavar="JSON",
        help="figures of earlier runs: measure nothing. Later ones replace the sections that they have",
    )
    given = parser.parse_args(arguments)
    unknown = [name for name in given.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {unknown[0]!r}; the sections are {', '.join(SECTIONS)}")
    if given.earlier:
        found = merge([Report.load(path) for path in given.earlier])
    else:
        rounds = min(given.repeats, 2) if given.quick else given.repeats
        found = measure(given.sections or SECTIONS, given.quick, rounds, given.threads)
    deliver(found, given, peers_page.picture)
    if given.markdown:
        given.markdown.write_text(peers_page.page(found), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
