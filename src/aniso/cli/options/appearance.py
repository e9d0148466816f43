"""How commands appear in help and error messages."""

from __future__ import annotations

import os
from typing import Any

import typer
from typer.core import TyperCommand


def hide_types(parameters: list[Any]) -> list[Any]:
    """Remove the names of Python types, such as <bool>, from the help of parameters."""
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = lambda ctx: None
        elif parameter.is_flag:
            parameter.metavar = ""
    return parameters


class Command(TyperCommand):
    """A command with plain help and error messages."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all options and arguments."""
        return hide_types(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage line without the braces around required arguments."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, with plain error messages and a hint for file names that look like options."""
        try:
            return super().parse_args(ctx, list(args))
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise
        except Exception as error:
            file = next((arg for arg in args if arg.startswith("-") and os.path.isfile(arg)), None)
            if hasattr(error, "option_name") and file is not None:
                error.message = f"{file} looks like an option. For the file of this name, write ./{file}"  # type: ignore[attr-defined]
            raise
