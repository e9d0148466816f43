"""The command line: which commands there are.

Each command is a module of `aniso.cli.commands`, which is imported when it is called: help takes no time.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from aniso.cli import commands
from aniso.cli.options.appearance import without_types


class _Commands(TyperGroup):
    """The commands of `aniso.cli.commands`, loaded one by one when they are needed."""

    _listing = False

    def get_params(self, ctx: Any) -> list[Any]:
        return without_types(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        return list(commands.SUMMARIES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in commands.SUMMARIES:
            names: Any = dict.fromkeys(commands.SUMMARIES)
            self.commands = names  # where typer looks for what may have been meant
            return None
        if self._listing:  # a name and a line are enough
            return TyperCommand(cmd_name, help=commands.SUMMARIES[cmd_name])
        return commands.loaded(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        self._listing = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._listing = False


app = typer.Typer(
    cls=_Commands,
    help="Smooth images along their structures, not across them.",
    epilog="A first try: [bold]aniso demo[/bold], or [bold]aniso denoise photo.jpg[/bold], which writes "
    "photo_denoised.jpg. Every command tells its options: [bold]aniso denoise --help[/bold].",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=commands.CONTEXT,
)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False,
) -> None:
    if version:
        import aniso

        typer.echo(f"aniso {aniso.__version__}")
        raise typer.Exit
