"""Generate the tables of options in command_line.md from the commands.

`python -m docs.command_options` updates the page; a test fails if it is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from aniso.cli import commands

PAGE = Path(__file__).with_name("command_line.md")
OWN = "Options"

Row = tuple[str, str]


def options(name: str) -> dict[str, list[Row]]:
    """Return the rows (option, meaning) of a command, by panel."""
    panels: dict[str, list[Row]] = {}
    for parameter in commands.load(name).params:
        if parameter.param_type_name != "option":
            continue
        flags = ", ".join(f"`{flag}`" for flag in (*parameter.opts, *parameter.secondary_opts))
        metavar = f" {parameter.metavar}" if parameter.metavar else ""
        default = "" if not parameter.show_default or parameter.default is None else parameter.default
        suffix = f" Default {default}." if default != "" and "efault" not in parameter.help else ""
        panel = getattr(parameter, "rich_help_panel", None) or OWN
        panels.setdefault(panel, []).append((flags + metavar, parameter.help + suffix))
    return panels


def table(rows: Sequence[Row]) -> str:
    """Format rows as a Markdown table. The help texts do not contain bars, which would end a cell."""
    lines = ["| option | meaning |", "|---|---|", *(f"| {flags} | {meaning} |" for flags, meaning in rows)]
    return "\n".join(lines)


def tables() -> dict[str, str]:
    """Return the tables by marker: one for the own options of each command, one for each shared panel."""
    own: dict[str, str] = {}
    shared: dict[str, dict[Row, None]] = {}
    users: dict[str, list[str]] = {}
    for name in commands.summaries():
        for panel, rows in options(name).items():
            if panel == OWN:
                own[name] = table(rows)
            else:
                users.setdefault(panel, []).append(name)
                shared.setdefault(panel, {}).update(dict.fromkeys(rows))
    for panel, found in shared.items():
        names = ", ".join(f"`{name}`" for name in users[panel])
        own[panel] = f"Of {names}.\n\n{table(list(found))}"
    return own


def filled(text: str) -> str:
    """Return the page with up-to-date tables."""
    current = tables()

    def fill(match: re.Match[str]) -> str:
        return f"<!-- options: {match[1]} -->\n\n{current[match[1]]}\n\n<!-- end -->"

    return re.sub(r"<!-- options: ([^>]*?) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8")), "utf-8")
