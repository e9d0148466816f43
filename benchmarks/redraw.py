"""Redraw the pictures in benchmarks/results from the JSON files, without measuring.

    python -m benchmarks.redraw          # all of them
    python -m benchmarks.redraw eed paper

Those of `quality` show images, which are computed again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import eed, matrix, paper, peers_page, scaling
from benchmarks.quality import SECTIONS, section
from benchmarks.report import Report

RESULTS = Path(__file__).parent / "results"
NAMES = ("eed", "scaling", "matrix", "paper", "peers", *(f"quality_{name}" for name in SECTIONS))


def redraw(name: str) -> None:
    """The picture of this benchmark, from its last figures."""
    found, path = Report.load(RESULTS / f"{name}.json"), RESULTS / f"{name}.png"
    if name == "paper":
        paper.picture(found, paper.cases(paper.SIDES, paper.BATCHES, paper.BATCHED), path)
    elif name.startswith("quality_"):
        section(name.removeprefix("quality_")).picture(found, path)
    else:
        {"eed": eed, "scaling": scaling, "matrix": matrix, "peers": peers_page}[name].picture(found, path)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}; all by default")
    names = parser.parse_args().names
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        parser.error(f"no picture {unknown[0]!r}; the pictures are {', '.join(NAMES)}")
    for name in names or NAMES:
        redraw(name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
