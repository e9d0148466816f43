"""The command line.

The modules of `aniso.cli.commands` are imported when a command is called, so that help is fast.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from aniso.cli import commands
from aniso.cli.options.appearance import PlainHelp


class _Commands(PlainHelp, TyperGroup):
    """The commands of `aniso.cli.commands`, loaded one by one when they are needed."""

    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(commands.summaries())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        summaries = commands.summaries()
        if cmd_name not in summaries:
            names: Any = dict.fromkeys(summaries)
            self.commands = names  # where typer looks for suggestions
            return None
        if self._listing:  # a name and a line are enough
            return TyperCommand(cmd_name, help=summaries[cmd_name])
        return commands.load(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True  # of this group, which is made for each call
        super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        self._listing = True
        return super().shell_complete(ctx, incomplete)


app = typer.Typer(
    cls=_Commands,
    help="Tensor-driven anisotropic diffusion: smooth images along structures, not across edges.",
    epilog="A first try: [bold]aniso demo[/bold], or [bold]aniso denoise photo.jpg[/bold], which writes "
    "photo_denoised.jpg. Options of a command: [bold]aniso denoise --help[/bold].",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=commands.CONTEXT,
)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        import aniso

        typer.echo(f"aniso {aniso.__version__}")
        raise typer.Exit
