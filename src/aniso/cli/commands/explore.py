"""aniso explore."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aniso.cli.options.bundles import flag

NEEDS_ARGUMENTS = False
EXAMPLES = (
    "aniso explore",
    "aniso explore photo.jpg",
    "aniso explore volume.nii.gz --port 9000 --no-open",
)


def command(
    image: Annotated[
        Path | None,
        typer.Argument(
            metavar="IMAGE",
            help="An image or a volume to begin with; others can be dropped on the page. Default: a sample.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            help="Port of the page. Default: 8150, or the next one that is free.",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    no_open: Annotated[
        bool, flag("--no-open", help="Print the address of the page and do not open it in a browser.")
    ] = False,
    host: Annotated[
        str,
        typer.Option(
            help="Address to serve at. Any other than 127.0.0.1 also lets other machines in that know the "
            "token in the page's address.",
            metavar="HOST",
        ),
    ] = "127.0.0.1",
) -> None:
    """See diffusion happen: a page in the browser where the picture follows the sliders.

    Compare before and after, play the scale space, look at tensors and stencils, and copy what you found as
    Python or as a command. Nothing leaves this machine. Ctrl-C ends it.
    """
    try:
        from aniso.explorer import server
    except ImportError as error:
        missing = 'the page is made with NiceGUI, which is not installed: pip install "aniso[explorer]".'
        typer.echo(f"aniso explore: {missing}", err=True)
        raise typer.Exit(1) from error
    if image is not None and not image.is_file():
        typer.echo(f"aniso explore: {image} does not exist. Check the name and the folder.", err=True)
        raise typer.Exit(1)
    try:
        chosen = server.free_port(host, port)
    except OSError as error:
        typer.echo(f"aniso explore: {error}", err=True)
        raise typer.Exit(1) from error
    if not server.is_loopback(host):
        typer.echo(
            f"aniso explore: everybody who can reach {host} and knows the token in the address below can use "
            "this page, and with it this machine's time and memory. The connection is not encrypted.",
            err=True,
        )

    def tell(addresses: list[str]) -> None:
        here, *elsewhere = addresses
        typer.echo(f"The explorer is at {here}  (Ctrl-C ends it)")
        for address in elsewhere:
            typer.echo(f"From other machines: {address}")

    try:
        server.run(image, host, chosen, open_page=not no_open, tell=tell)
    except (KeyboardInterrupt, SystemExit):
        typer.echo("The explorer has ended.")
