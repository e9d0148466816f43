"""The tables of options in command_line.md, made from the commands themselves.

python -m docs.command_options writes them into the page; a test says when that is due.
"""

import re
from pathlib import Path

from aniso import commands

PAGE = Path(__file__).with_name("command_line.md")
OWN = "Options"


def options(name):
    """Panel → rows (option, meaning) of a command."""
    panels = {}
    for parameter in commands.loaded(name).params:
        if parameter.param_type_name != "option":
            continue
        flags = ", ".join(f"`{flag}`" for flag in (*parameter.opts, *parameter.secondary_opts))
        metavar = f" {parameter.metavar}" if parameter.metavar else ""
        default = "" if not parameter.show_default or parameter.default is None else parameter.default
        told = f" Default {default}." if default != "" and "efault" not in parameter.help else ""
        panel = getattr(parameter, "rich_help_panel", None) or OWN
        # A bar would end the cell; the texts of the commands have none.
        panels.setdefault(panel, []).append((flags + metavar, parameter.help + told))
    return panels


def table(rows):
    lines = ["| option | meaning |", "|---|---|", *(f"| {flags} | {meaning} |" for flags, meaning in rows)]
    return "\n".join(lines)


def tables():
    """Marker → table: one of its own for each command that has one, and one for each shared panel."""
    found, users = {}, {}
    for name in commands.SUMMARIES:
        for panel, rows in options(name).items():
            if panel == OWN:
                found[name] = table(rows)
            else:
                users.setdefault(panel, []).append(name)
                for row in rows:
                    shared = found.setdefault(panel, [])
                    if row not in shared:
                        shared.append(row)
    return {
        marker: content
        if isinstance(content, str)
        else f"Of {', '.join(f'`{name}`' for name in users[marker])}.\n\n{table(content)}"
        for marker, content in found.items()
    }


def filled(text):
    """The page with the tables of today."""

    def fill(match):
        return f"<!-- options: {match[1]} -->\n\n{tables()[match[1]]}\n\n<!-- end -->"

    return re.sub(r"<!-- options: ([^>]*?) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8")), "utf-8")
