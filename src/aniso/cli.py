"""The command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Smooth images along their structures, not across them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False,
) -> None:
    if version:
        import aniso

        typer.echo(f"aniso {aniso.__version__}")
        raise typer.Exit


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the pictures.")] = Path(
        "aniso-demo"
    ),
) -> None:
    """Denoise, enhance, fill in and enlarge images that come with aniso: before and after in one picture."""
    from aniso import demo as show
    from aniso.io import FileError

    try:
        show.run(output, typer.echo)
    except FileError as error:
        typer.echo(f"aniso: {error}", err=True)
        raise typer.Exit(1) from None


def main() -> None:
    """Entry point of the `aniso` command."""
    app()
