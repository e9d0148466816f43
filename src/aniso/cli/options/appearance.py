"""How commands appear in their help and in their complaints."""

from __future__ import annotations

import os
from typing import Any

import typer
from typer.core import TyperCommand


def without_types(parameters: list[Any]) -> list[Any]:
    """Parameters whose help names no types of Python, such as <bool>: they tell nobody anything."""
    for parameter in parameters:
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = lambda ctx: None
        elif parameter.is_flag:
            parameter.metavar = ""
    return parameters


class Command(TyperCommand):
    """A command as people see it."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All options and arguments."""
        return without_types(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Without the braces that mean 'required', which nobody types."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What is wrong, without words for programmers, and with a hint for files that look like options."""
        try:
            return super().parse_args(ctx, list(args))
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise
        except Exception as error:
            file = next((arg for arg in args if arg.startswith("-") and os.path.isfile(arg)), None)
            if hasattr(error, "option_name") and file is not None:
                error.message = f"{file} begins like an option. If the file is meant, write ./{file}"  # type: ignore[attr-defined]
            raise
