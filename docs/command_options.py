"""The tables of options in command_line.md, made from the commands themselves.

python -m docs.command_options writes them into the page; a test says when that is due.
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
    """Panel → rows (option, meaning) of a command."""
    panels: dict[str, list[Row]] = {}
    for parameter in commands.load(name).params:
        if parameter.param_type_name != "option":
            continue
        flags = ", ".join(f"`{flag}`" for flag in (*parameter.opts, *parameter.secondary_opts))
        metavar = f" {parameter.metavar}" if parameter.metavar else ""
        default = "" if not parameter.show_default or parameter.default is None else parameter.default
        told = f" Default {default}." if default != "" and "efault" not in parameter.help else ""
        panel = getattr(parameter, "rich_help_panel", None) or OWN
        panels.setdefault(panel, []).append((flags + metavar, parameter.help + told))
    return panels


def table(rows: Sequence[Row]) -> str:
    """In Markdown; a bar would end a cell, but the texts of the commands have none."""
    lines = ["| option | meaning |", "|---|---|", *(f"| {flags} | {meaning} |" for flags, meaning in rows)]
    return "\n".join(lines)


def tables() -> dict[str, str]:
    """Marker → table: one for the own options of each command, and one for each panel that several share."""
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
    """The page with the tables of today."""
    today = tables()

    def fill(match: re.Match[str]) -> str:
        return f"<!-- options: {match[1]} -->\n\n{today[match[1]]}\n\n<!-- end -->"

    return re.sub(r"<!-- options: ([^>]*?) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8")), "utf-8")
