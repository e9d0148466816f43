"""The paper's claims, tested one by one: writes docs/reproduction.md with figures, verdicts and pictures.

    python -m benchmarks.reproduce

`--quick` takes a minute, `--untimed` omits the timings; both write only to `--output` and `--json`. `--only`
measures some claims. With `--earlier`, claims that are not measured are those of an earlier run, and the page
says so. The exit code is 1 if a verdict is not the one that is expected.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from benchmarks import report, timing
from benchmarks.claims.claim import Claim, Figure, Finding, Picture, Table, Verdict
from benchmarks.claims.page import Findings, page
from benchmarks.claims.registry import CLAIMS
from benchmarks.timing import CONSOLE

ROOT = Path(__file__).parents[1]
PAGE, FIGURES = ROOT / "docs" / "reproduction.md", ROOT / "benchmarks" / "results" / "reproduction.json"
COLOURS = {
    Verdict.HOLDS: "green",
    Verdict.RESTRICTED: "yellow",
    Verdict.FAILS: "red",
    Verdict.UNTESTED: "dim",
}


def measured(claims: Iterable[Claim], quick: bool) -> Findings:
    """Measure each claim and print a line for it."""
    chosen, findings = list(claims), {}
    for number, claim in enumerate(chosen, 1):
        place = f"{number} of {len(chosen)}"
        start = time.perf_counter()
        if claim.timed:  # it has its own display, and nothing else may run at the same time
            CONSOLE.print(f"{place}: {claim.title}", highlight=False)
            finding = claim.measure(quick)
        else:
            with CONSOLE.status(f"{place}: {claim.title}"):
                finding = claim.measure(quick)
        findings[claim.key] = finding
        print_line(place, claim, finding, time.perf_counter() - start)
    return findings


def print_line(place: str, claim: Claim, finding: Finding, seconds: float) -> None:
    verdict = finding.verdict
    surprise = f" [bold red]expected: {claim.expected}[/]" if claim.surprising(verdict) else ""
    CONSOLE.print(
        f"{place}: {claim.title} ({seconds:.1f} s): [{COLOURS[verdict]}]{verdict}[/]{surprise}\n"
        f"    [dim]{finding.headline}[/]",
        highlight=False,
    )


def surprises(claims: Iterable[Claim], findings: Findings) -> list[Claim]:
    """Those whose verdict is another one than expected."""
    return [claim for claim in claims if claim.surprising(findings[claim.key].verdict)]


def as_data(claims: Iterable[Claim], findings: Findings) -> list[dict[str, Any]]:
    """What goes into the JSON file. An infinite bound is left out."""
    return [
        {
            "key": claim.key,
            "title": claim.title,
            "place": claim.place,
            "verdict": finding.verdict,
            "expected": claim.expected,
            "untestable": finding.untestable,
            "figures": [
                {name: value for name, value in asdict(figure).items() if value not in (math.inf, -math.inf)}
                for figure in finding.figures
            ],
            "notes": finding.notes,
            "tables": [asdict(table) for table in finding.tables],
            "pictures": [{"name": picture.name, "caption": picture.caption} for picture in finding.pictures],
        }
        for claim in claims
        for finding in [findings[claim.key]]
    ]


def from_data(entries: list[dict[str, Any]]) -> Findings:
    """What `as_data` was made of; pictures have been drawn before."""
    return {
        entry["key"]: Finding(
            [Figure(**figure) for figure in entry["figures"]],
            entry["notes"],
            [Table(tuple(table["head"]), [tuple(row) for row in table["rows"]]) for table in entry["tables"]],
            [Picture(**picture) for picture in entry["pictures"]],
            entry["untestable"],
        )
        for entry in entries
    }


def environment() -> dict[str, Any]:
    facts = timing.environment(("aniso", "numpy", "scipy", "numba", "torch"))
    if torch.cuda.is_available():
        facts["device"] = torch.cuda.get_device_name()
    return facts


def rewrite(output: Path, figures: Path) -> None:
    """The page with the texts of today and the figures of a run."""
    found = json.loads(figures.read_text("utf-8"))
    text = page(from_data(found["claims"]), found["environment"], found["minutes"], found["quick"])
    output.write_text(text, "utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reproduce", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, about a minute")
    parser.add_argument("--untimed", action="store_true", help="leave the timings out")
    parser.add_argument("--only", nargs="+", metavar="KEY", help="measure these claims")
    parser.add_argument(
        "--earlier", type=Path, metavar="JSON", help="take claims that are not measured from this run"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help=f"the page; pictures go to images/ in its folder (default {PAGE.name} in docs)",
    )
    parser.add_argument(
        "--json", type=Path, help=f"the figures (default {FIGURES.name} in benchmarks/results)"
    )
    parser.add_argument(
        "--rewrite", action="store_true", help="only regenerate the page from the last results"
    )
    given = parser.parse_args(arguments)
    known = [claim.key for claim in CLAIMS]
    if unknown := set(given.only or ()) - set(known):
        parser.error(f"no claim {', '.join(sorted(unknown))}; the claims are {', '.join(known)}")
    if given.rewrite:
        rewrite(given.output or PAGE, given.json or FIGURES)
        return 0
    if not (given.quick or given.untimed or given.only):
        given.output, given.json = given.output or PAGE, given.json or FIGURES
    facts, start = environment(), time.perf_counter()
    claims = [claim for claim in CLAIMS if not (given.untimed and claim.timed)]
    claims = [claim for claim in claims if not given.only or claim.key in given.only]
    findings = measured(claims, given.quick)
    minutes = (time.perf_counter() - start) / 60
    if given.earlier:
        earlier = json.loads(given.earlier.read_text("utf-8"))
        findings = from_data(earlier["claims"]) | findings
        facts["earlier"] = earlier["environment"] | {"measured now": [claim.title for claim in claims]}
        claims = [claim for claim in CLAIMS if claim.key in findings]
    if given.output:
        for finding in findings.values():
            for picture in finding.pictures:
                if (drawn := picture.draw()) is None:  # of an earlier run, and drawn then
                    continue
                dpi = report.PHOTO_DPI if picture.photo else report.LINE_DPI
                report.save_picture(drawn, given.output.parent / "images" / picture.name, dpi=dpi)
        given.output.parent.mkdir(parents=True, exist_ok=True)
        given.output.write_text(page(findings, facts, minutes, given.quick), "utf-8")
        CONSOLE.print(f"wrote {given.output}", highlight=False)
    if given.json:
        text = json.dumps(
            {
                "environment": facts,
                "minutes": minutes,
                "quick": given.quick,
                "claims": as_data(claims, findings),
            },
            indent=2,
            ensure_ascii=False,
        )
        given.json.write_text(text + "\n", "utf-8")
    unexpected = surprises(claims, findings)
    for claim in unexpected:
        CONSOLE.print(f"[bold red]not as expected:[/] {claim.title}", highlight=False)
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
