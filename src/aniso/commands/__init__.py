"""The commands of `aniso`: a module each, with a function that typer turns into a command.

A module holds `command`, whose signature is the options and whose docstring is the help, and `EXAMPLES`.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

#: What the overview says; in this order.
SUMMARIES = {
    "denoise": "Remove noise; all parameters are estimated.",
    "enhance": "Free lines and flow-like patterns from noise and close their gaps.",
    "inpaint": "Fill in unknown pixels.",
    "upsample": "Make an image up to 8 times finer.",
    "diffuse": "Diffuse with any model, stencil and scheme.",
    "scale-space": "Write an image at several diffusion times.",
    "explore": "See diffusion happen in the browser, while a slider moves.",
    "info": "Tell what a file holds, and its estimated noise, contrast and wavelength.",
    "stencil": "Print weights, entries and step limits of a stencil.",
    "demo": "Diffuse a few images that come with aniso and write one picture.",
    "bench": "Measure the speed on this machine, in a few seconds.",
}

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


class OutputClosed(Exception):
    """Standard output takes no more: it is closed, or full. The cause is the OSError."""


def loaded(name: str) -> Any:
    """The command of this name, ready to run."""
    import typer

    from aniso.commands.appearance import Command
    from aniso.commands.bundles import expanded

    module = importlib.import_module(f"aniso.commands.{name.replace('-', '_')}")
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    epilog = "[bold]Examples[/bold]\n" + "\n".join(f"  {line}" for line in module.EXAMPLES)
    # The terminal breaks the lines of a paragraph, not the source.
    paragraphs = inspect.cleandoc(module.command.__doc__).split("\n\n")
    app.command(
        name,
        cls=Command,
        help="\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs),
        epilog=epilog,
        context_settings=CONTEXT,
        no_args_is_help=module.NEEDS_ARGUMENTS,
    )(expanded(module.command))
    return typer.main.get_command(app)
