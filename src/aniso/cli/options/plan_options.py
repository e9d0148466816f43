"""Options for plans: what a command chose, in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from aniso.cli.options.shared import option

_SUFFIX = ".json"


@dataclass(frozen=True)
class PlanOptions:
    """A plan to apply, or where to save the one that is made."""

    panel: ClassVar[str] = "Plans"
    plan: Path | None = option("Apply the plan in this file, and estimate nothing.", metavar="FILE")
    save_plan: Path | None = option(
        "Save the chosen parameters as a plan (JSON), to filter other images in the same way.", metavar="FILE"
    )

    frames: bool = option(
        "Filter all pages of a file alike, with one plan that is made from several of them.", "--frames"
    )

    def check(self) -> None:
        """Reject options that contradict each other, and names of other kinds of files."""
        if self.plan is not None and self.save_plan is not None:
            raise typer.BadParameter("--plan and --save-plan cannot be combined: copy the file of the plan.")
        if self.save_plan is not None and self.save_plan.suffix.lower() != _SUFFIX:
            raise typer.BadParameter(
                f"--save-plan {self.save_plan} must have the suffix {_SUFFIX}, e.g. "
                f"{self.save_plan.with_suffix(_SUFFIX) if self.save_plan.name else 'plan.json'}."
            )
