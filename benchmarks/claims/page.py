"""The page of the documentation, from claims and findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.claims.claim import Claim, Finding, Table, Verdict
from benchmarks.claims.registry import GROUPS

Findings = dict[str, Finding]

PAPER = (
    "[*Anisotropic Diffusion Stencils: From Simple Derivations over Stability Estimates to ResNet "
    "Implementations*](https://arxiv.org/abs/2309.05575)"
)

INTRODUCTION = f"""\
# Reproduction of the paper

This page tests the claims of Schrader, Weickert and Krause (2023), {PAPER}.
For each claim, it describes the test, the measurements and the verdict. Equation numbers follow the order
in the paper; [theory](theory.md) contains the derivations. The measurements were made on {{date}} by

```sh
python -m benchmarks.reproduce
```

which also writes the pictures and `benchmarks/results/reproduction.json`. Verdicts follow from the measured
values: each relevant value has bounds, and a value outside its bounds changes the verdict. The exit code is 1
if a verdict is not the expected one.

- *holds*: all values are within the bounds required by the claim.
- *holds with a restriction*: they are, but the wording claims more, and that is not satisfied.
- *does not hold*: a value required by the claim is outside its bounds.
- *not testable here*: the required hardware was not available.

Statements that cannot be measured are not included: that the derivation is simpler and the program concise,
and the outlook. The last group contains claims of this library that extend those of the paper.
"""

#: What goes beyond the paper: claim, beginning of the figure's name, and what it says.
BEYOND = (
    (
        "sharpness",
        "largest ratio of Theorem 1",
        "a bound that is attained: steps up to {} times as long as those of Theorem 1",
    ),
    ("gpu", "C over the library's", "the same steps {} times as fast as plain C on the same processor"),
    (
        "acceleration",
        "explicit steps over steps of FED",
        "cycles of FED or FSI, which reach an error of 1 % in {} times fewer steps than the explicit scheme",
    ),
    (
        "completeness",
        "constant D",
        "for constant tensors the family is complete: all 3×3 stencils of order two have {} free parameter",
    ),
)


def page(findings: Findings, environment: dict[str, Any], minutes: float, quick: bool) -> str:
    """The whole text."""
    parts = [
        INTRODUCTION.format(date=environment["date"]),
        "## Summary\n",
        summary(findings),
        machine(environment, minutes, quick),
    ]
    number = 0
    for title, claims in GROUPS.items():
        measured = [claim for claim in claims if claim.key in findings]
        if measured:
            parts.append(f"## {title}\n")
        for claim in measured:
            number += 1
            parts.append(section(number, claim, findings[claim.key]))
    return "\n".join(parts).rstrip() + "\n"


def summary(findings: Findings) -> str:
    counts = Counter(finding.verdict for finding in findings.values())
    sentence = ", ".join(f"{counts[verdict]} × *{verdict}*" for verdict in Verdict if counts[verdict])
    known = [claim for claims in GROUPS.values() for claim in claims if claim.key in findings]
    rows = [
        (
            str(number),
            claim.title,
            claim.place,
            f"**{findings[claim.key].verdict}**",
            findings[claim.key].headline,
        )
        for number, claim in enumerate(known, 1)
    ]
    table = markdown(Table(("", "claim", "place", "verdict", "result"), rows))
    return f"{len(findings)} claims: {sentence}.\n\n{table}\n{beyond(findings)}"


def beyond(findings: Findings) -> str:
    """What is better than in the paper, with its figures."""
    items = [
        f"- {text.format(figure.measured)}"
        for key, name, text in BEYOND
        if key in findings
        for figure in findings[key].figures
        if figure.name.startswith(name)
    ]
    return "\n".join(["Beyond the paper, in the library:", "", *items, ""]) if items else ""


def machine(environment: dict[str, Any], minutes: float, quick: bool) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in environment["versions"].items())
    facts = [
        f"{environment['processor']}, {environment['cores']} cores, {environment['system']}",
        *([environment["device"]] if "device" in environment else []),
        versions,
        f"load before: {environment['load before']}",
        f"{environment['date']}; the run took {minutes:.0f} minutes",
    ]
    note = ["**This was a quick run: its results are not meaningful.**\n"] if quick else []
    if "earlier" in environment:
        earlier = environment["earlier"]
        note.append(
            f"All claims but these are those of an earlier run ({earlier['date']}, load before: "
            f"{earlier['load before']}): {'; '.join(earlier['measured now'])}.\n"
        )
    elif (environment["load before"] or 0) > 0.5 * environment["cores"]:
        note.append("**The machine was busy: the timings are not meaningful.**\n")
    return "\n".join([*note, "Measured on: " + "; ".join(facts) + ".\n"])


def section(number: int, claim: Claim, finding: Finding) -> str:
    """One claim."""
    meaning = claim.meaning.get(finding.verdict, "")
    blocks = [
        f"### {number}. {claim.title}",
        f"**Claim** ({claim.place}). {claim.says}",
        f"**Test.** {claim.how}",
        f"**Verdict: {finding.verdict}.** {meaning or finding.untestable}".rstrip(),
        markdown(figure_table(finding)).rstrip(),
        *interleaved(finding),
    ]
    for picture in finding.pictures:
        blocks.append(f"![{picture.caption}](images/{picture.name})")
        blocks.append(f"*{picture.caption}*")
    return "\n\n".join(blocks) + "\n"


def interleaved(finding: Finding) -> Iterator[str]:
    yield from finding.notes
    for table in finding.tables:
        yield markdown(table).rstrip()


def figure_table(finding: Finding) -> Table:
    answers = {True: "yes", False: "no"}
    rows = [
        (figure.name, figure.measured, figure.wanted, answers[figure.within] if figure.wanted else "")
        for figure in finding.figures
    ]
    return Table(("quantity", "measured", "required", "satisfied"), rows)


def markdown(table: Table) -> str:
    """A table of Markdown; vertical bars would end a cell."""
    return (
        "\n".join([line(table.head), line("---" for _ in table.head), *(line(row) for row in table.rows)])
        + "\n"
    )


def line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "∣") for cell in cells) + " |"
