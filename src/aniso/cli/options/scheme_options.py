"""How the diffusion time is cut into steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from aniso.cli.options import parsing
from aniso.cli.options.bundles import number_option

_PANEL = "Time stepping"


@dataclass(frozen=True)
class Scheme:
    """A scheme and its parameter."""

    scheme: Annotated[
        Literal["explicit", "fed", "fsi"],
        typer.Option(
            help="explicit (a tensor for every step); fed and fsi, cycles that reach long times sooner.",
            rich_help_panel=_PANEL,
            metavar="NAME",
        ),
    ] = "explicit"
    step: Annotated[
        float | None,
        number_option(
            "Longest step of the explicit scheme. Default: 0.9 of the largest stable one.",
            panel=_PANEL,
            low=0,
            open_low=True,
        ),
    ] = None
    cycles: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of cycles of fed and fsi, a tensor each. Default 5.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None

    def chosen(self) -> Any:
        """The scheme that the options describe."""
        from aniso import schemes

        if self.scheme == "explicit":
            if self.cycles is not None:
                raise typer.BadParameter("--cycles is for fed and fsi; add --scheme fed, or leave it out.")
            with parsing.usage():
                return schemes.Explicit(self.step)
        if self.step is not None:
            raise typer.BadParameter(f"--step is for the explicit scheme; {self.scheme} has --cycles.")
        kind = {"fed": schemes.FED, "fsi": schemes.FSI}[self.scheme]
        return kind() if self.cycles is None else kind(self.cycles)
