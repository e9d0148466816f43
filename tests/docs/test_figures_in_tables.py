"""A table of measured figures comes after a paragraph that names the command that produces it, and a date.

The paragraph stands before the table, under the same heading or one above it; a block of commands belongs to
the paragraph before it and after it.
"""

import re
from itertools import groupby
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

COMMAND = re.compile(
    r"python -m benchmarks\.\w+|(examples|docs/figures|docs/images)/\w+\.py|pytest tests/\w+"
)
DATE = re.compile(
    r"\b20\d\d-\d\d-\d\d\b|\b\d\d?\s(January|February|March|April|May|June|July|August|September|October|"
    r"November|December)\s20\d\d\b"
)
FIGURE = re.compile(r"[^\w(]*\d")

#: First lines of tables whose figures are not measured: choices, formulas, and values of a formula.
NOT_MEASURED = {
    "| parameter | default | typical |",
    "| parameter | value |",
    "| name | $g(r)$ | $\\psi(r) = (1 - g)/r$ | flux $\\sqrt r\\,g(r)$ |",
    "| stencil | step | $\\alpha = 0$ | $\\alpha = \\frac14$ | $\\alpha = 0.4$ | $\\alpha = \\frac12$ |",
}


def blocks(page):
    """(kind, text) of headings, tables and paragraphs, in order; blocks of code are joined to paragraphs."""
    fenced, kinds = False, []
    for line in page.splitlines():
        if line.startswith(("```", ":::")):
            kinds.append(("text", line))
            fenced = not fenced
        elif fenced:
            kinds.append(("text", line))
        elif re.match(r"#+ ", line):
            kinds.append((f"heading {len(kinds)}", line))
        elif line.startswith("|") and line.endswith("|"):
            kinds.append(("table", line))
        else:
            kinds.append(("text" if line.strip() else "empty", line))
    found = [
        (kind.split()[0], "\n".join(line for _, line in lines))
        for kind, lines in groupby(kinds, lambda x: x[0])
    ]
    joined: list[tuple[str, str]] = []
    for kind, text in found:
        if kind == "empty":
            continue
        fence = "```" in text
        if joined and kind == "text" and joined[-1][0] == "text" and (fence or joined[-1][1].endswith("```")):
            joined[-1] = ("text", joined[-1][1] + "\n" + text)
        else:
            joined.append((kind, text))
    return joined


def is_measured(table):
    """Whether a third of the cells, without the first column, begin with a number."""
    first, _, *rows = table.splitlines()
    cells = [cell.strip() for row in rows for cell in row.strip().strip("|").split("|")[1:]]
    return first not in NOT_MEASURED and 3 * sum(bool(FIGURE.match(cell)) for cell in cells) >= max(
        len(cells), 1
    )


def undocumented(page):
    """The first lines of tables of figures without a command and a date."""
    missing: list[str] = []
    named: set[int] = set()  # levels of headings under which a source was named
    level = 0
    for kind, text in blocks(page):
        if kind == "heading":
            level = len(text) - len(text.lstrip("#"))
            named = {above for above in named if above < level}
        elif kind == "text" and COMMAND.search(text) and DATE.search(text):
            named.add(level)
        elif kind == "table" and not named and is_measured(text):
            missing.append(text.splitlines()[0])
    return missing


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_tables_of_figures_name_their_command_and_date(page):
    assert undocumented(page.read_text("utf-8")) == []


def test_every_exception_is_needed():
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    assert all(f"\n{first}\n" in text for first in NOT_MEASURED)


TABLE = "| a | b |\n|---|---|\n| x | 1.5 |\n"
SOURCE = "`python -m benchmarks.eed` (2026-11-18):\n\n"


@pytest.mark.parametrize(
    ("page", "count"),
    [
        (f"# T\n\n{SOURCE}{TABLE}", 0),
        (f"# T\n\n{SOURCE}## Section\n\n{TABLE}\ntext\n\n{TABLE}", 0),
        ("# T\n\nOn 18 November 2026:\n\n```sh\npython -m benchmarks.eed\n```\n\n" + TABLE, 0),
        ("# T\n\n```sh\npython -m benchmarks.eed\n```\n\nmeasures (2026-11-18):\n\n" + TABLE, 0),
        (f"# T\n\n{TABLE}", 1),
        (f"# T\n\n{TABLE}\n{SOURCE}", 1),
        (f"# T\n\n## One\n\n{SOURCE}## Two\n\n{TABLE}\n{TABLE}", 2),
        (f"# T\n\nOf 2026-11-18.\n\nBy `python -m benchmarks.eed`.\n\n{TABLE}", 1),
        ("# T\n\n| a | b |\n|---|---|\n| x | words |\n", 0),
        (f"# T\n\n```text\n{TABLE}```\n", 0),
    ],
)
def test_sources_are_found_where_they_belong(page, count):
    assert len(undocumented(page)) == count
