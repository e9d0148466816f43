"""How commands appear in help and error messages."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from types import ModuleType
from typing import Any

import typer
from typer.core import TyperCommand


class _Later(type):
    """A class that stands for one of another module, which is imported when it is used."""

    def __new__(cls, module: str, name: str) -> Any:
        return super().__new__(cls, name, (), {"__module__": module})

    def __init__(cls, module: str, name: str) -> None: ...

    def __getattr__(cls, name: str) -> Any:
        return getattr(getattr(importlib.import_module(cls.__module__), cls.__name__), name)

    def __call__(cls, *args: Any, **settings: Any) -> Any:
        return getattr(importlib.import_module(cls.__module__), cls.__name__)(*args, **settings)


def load_formatter() -> None:
    """Import typer's formatter of help without two slow modules, which it needs for other programs only."""
    slow = {"rich.markdown": "Markdown", "rich.traceback": "Traceback"}
    missing = [name for name in slow if name not in sys.modules]
    for name in missing:
        sys.modules[name] = ModuleType(name)
        setattr(sys.modules[name], slow[name], _Later(name, slow[name]))
    with contextlib.suppress(ImportError):  # of another version, which typer imports again by itself
        importlib.import_module("typer.rich_utils")
    for name in missing:
        del sys.modules[name]


class PlainHelp:
    """Help without the names of Python types, such as <bool>; for a command or a group of commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        load_formatter()
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all options and arguments."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if parameter.param_type_name == "argument":
                parameter.display_type_rich = lambda ctx: None
            elif parameter.is_flag:
                parameter.metavar = ""
        return parameters


class Command(PlainHelp, TyperCommand):
    """A command with plain help and error messages."""

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
