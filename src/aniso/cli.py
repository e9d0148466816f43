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
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the picture.")] = Path(
        "aniso-demo.png"
    ),
) -> None:
    """Diffuse a few images that come with aniso and write one picture of the results."""
    from aniso import demo as show

    if not output.parent.is_dir():
        typer.echo(f"aniso: the folder {output.parent} does not exist. Make it first.", err=True)
        raise typer.Exit(1)
    if output.suffix.lower() != ".png":
        typer.echo(
            f"aniso: the picture is written as PNG, got {output}. Give a name that ends in .png.", err=True
        )
        raise typer.Exit(2)
    path = show.free_path(output)
    show.picture(show.rows()).save(path)
    typer.echo(f"Wrote {path}: what diffusion along, and not across, structures does.")


def main() -> None:
    """Entry point of the `aniso` command."""
    app()
