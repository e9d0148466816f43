"""aniso explore."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aniso.cli.options.shared import option
from aniso.io import FileError, check_input

EXAMPLES = ("aniso explore", "aniso explore photo.jpg", "aniso explore volume.nii.gz --port 9000 --no-open")


def command(
    image: Annotated[
        Path | None,
        typer.Argument(
            metavar="IMAGE",
            help="Image or volume to open, or a folder with a DICOM series; more can be dropped on the page. "
            "Default: a sample.",
            show_default=False,
        ),
    ] = None,
    port: int | None = option("Port of the server. Default: 8150, or the next free one.", min=1, max=65535),
    no_open: bool = option("Print the address without opening a browser.", default=False),
    host: str = option(
        "Address to listen on. With any other than 127.0.0.1, other machines have access if they know the "
        "token in the address of the page.",
        default="127.0.0.1",
        metavar="HOST",
    ),
) -> None:
    """Explore methods and parameters interactively in the browser.

    Compare before and after, play the scale space, view tensors and stencils, and export the result as
    Python or as a command. No data leaves this machine. Press Ctrl-C to stop.
    """

    def warn(text: str) -> None:
        typer.echo(f"aniso explore: {text}", err=True)

    try:
        from aniso.explorer import server
    except ImportError as error:
        warn('the explorer needs NiceGUI. Install it with: pip install "aniso[explorer]".')
        raise typer.Exit(1) from error
    if image is not None and not image.exists():
        warn(f"{image} does not exist. Check the name and the folder.")
        raise typer.Exit(1)
    try:
        if image is not None and image.is_dir():  # with a DICOM series, or none that can be shown
            check_input(image)
    except FileError as error:
        warn(str(error))
        raise typer.Exit(1) from error
    try:
        chosen = server.free_port(host, port)
    except OSError as error:
        warn(str(error))
        raise typer.Exit(1) from error
    if not server.is_loopback(host):
        warn(
            f"anyone who can reach {host} and knows the token in the address below can use this page, and "
            "the computing time and memory of this machine. The connection is not encrypted."
        )

    def print_addresses(addresses: list[str]) -> None:
        here, *elsewhere = addresses
        typer.echo(f"The explorer is at {here}  (press Ctrl-C to stop)")
        for address in elsewhere:
            typer.echo(f"From other machines: {address}")

    try:
        server.run(image, host, chosen, open_page=not no_open, tell=print_addresses)
    except (KeyboardInterrupt, SystemExit):
        typer.echo("The explorer was stopped.")
