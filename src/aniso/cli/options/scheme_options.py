"""Time stepping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from aniso import schemes
from aniso.cli.options import parsing
from aniso.cli.options.bundles import number_option

_PANEL = "Time stepping"
if TYPE_CHECKING:
    _Name = str
else:
    _Name = Literal[tuple(schemes.kinds())]


@dataclass(frozen=True)
class SchemeOptions:
    """A scheme and its parameter."""

    scheme: Annotated[
        _Name,
        typer.Option(
            help="Scheme: explicit computes a tensor for every step; the cycles of fed and fsi reach long "
            "times faster.",
            rich_help_panel=_PANEL,
            metavar="NAME",
        ),
    ] = "explicit"
    step: Annotated[
        float | None,
        number_option(
            "Largest step of the explicit scheme. Default: 0.9 times the largest stable step.",
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
            help="Number of cycles of fed and fsi, with one tensor each. Default: 5.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None

    def chosen(self) -> Any:
        """Return the scheme that the options describe."""
        kind = schemes.kinds()[self.scheme]
        given = {name: value for name in ("step", "cycles") if (value := getattr(self, name)) is not None}
        for name in given:
            if name not in kind.__dataclass_fields__:
                others = [key for key, each in schemes.kinds().items() if name in each.__dataclass_fields__]
                raise typer.BadParameter(
                    f"the scheme {self.scheme} has no --{name}. Remove it, or add --scheme {others[0]}."
                )
        with parsing.usage():
            return kind(**given)
