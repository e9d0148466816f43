"""Plans in files: read with --plan, and written with --save-plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from aniso import io
from aniso.io.picture import FileError
from aniso.verbs.plan import Plan

# A plan has some kilobytes.
_LIMIT = 10**7


@dataclass(frozen=True)
class PlanFile:
    """Where the plan of a command is written."""

    path: Path
    command: str
    force: bool
    #: Whether all pages have one plan.
    frames: bool = False

    def check(self, count: int = 1, pages: int = 1) -> None:
        """Reject a file that cannot be written, and several files or pages, before anything is computed."""
        if count > 1:
            raise typer.BadParameter(
                f"--save-plan writes one plan, but there are {count} inputs. Make it from one of them, e.g. "
                f"aniso {self.command} first.tif --save-plan {self.path}, then use --plan {self.path}."
            )
        if pages > 1 and not self.frames:
            raise FileError(
                f"--save-plan writes one plan, but there are {pages} pages, and each has its own. Add "
                "--frames to filter all pages alike, or --volume if they are slices of a volume."
            )
        io.check_text_output(self.path, force=self.force)

    def write(self, plan: Plan) -> None:
        """Write the plan as JSON."""
        io.write_text(self.path, plan.to_json() + "\n", force=self.force)


def read_plan(path: Path, command: str) -> Plan:
    """Return the plan in a file, which must be one of this command."""
    try:
        size = path.stat().st_size
        text = path.read_text("utf-8") if path.is_file() and size <= _LIMIT else None
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a null byte in the name
        why = io.reason(error) if isinstance(error, OSError) else str(error)
        raise FileError(f"{path} cannot be read as a plan: {why}. Give a file of --save-plan.") from error
    if text is None:
        raise FileError(f"{path} is not the file of a plan. Give a file of --save-plan.")
    try:
        plan = Plan.from_json(text)
    except (TypeError, ValueError) as error:
        raise FileError(f"{path}: {error}") from error
    if plan.verb != command:
        raise FileError(f"{path} is a plan of {plan.verb}, not of {command}. Use aniso {plan.verb}.")
    return plan


def reject_options(given: Sequence[str]) -> None:
    """Reject options next to a plan, which has all parameters."""
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise typer.BadParameter(
            f"a plan has all parameters, and cannot be combined with {names}. Remove them."
        )
