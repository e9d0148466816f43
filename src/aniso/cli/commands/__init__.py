"""The commands of `aniso`: made from the table of verbs, or a module each.

A module holds `command`, whose signature is the options and whose docstring is the help, and `EXAMPLES`.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from aniso.verbs.table import VERBS

#: What the overview says; in this order.
SUMMARIES = {
    **{verb.name: verb.summary for verb in VERBS.values()},
    "diffuse": "Diffuse with any model, stencil and scheme.",
    "scale-space": "Write an image at several diffusion times.",
    "structure": "Write the orientation, coherence or structure tensor at each pixel.",
    "explore": "See diffusion happen in the browser, while a slider moves.",
    "info": "Show what a file holds, and its estimated noise, contrast and wavelength.",
    "stencil": "Print weights, entries and step limits of a stencil.",
    "demo": "Diffuse a few images that come with aniso and write one picture.",
    "bench": "Measure the speed on this machine, in a few seconds.",
}

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


def loaded(name: str) -> Any:
    """The command of this name, ready to run."""
    import typer

    from aniso.cli.options.appearance import Command
    from aniso.cli.options.bundles import expanded

    if name in VERBS:
        from aniso.cli.commands.verb import command_of

        command, examples, needs_arguments = command_of(VERBS[name]), VERBS[name].examples, True
    else:
        module = importlib.import_module(f"aniso.cli.commands.{name.replace('-', '_')}")
        command, examples, needs_arguments = module.command, module.EXAMPLES, module.NEEDS_ARGUMENTS
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    epilog = "[bold]Examples[/bold]\n" + "\n".join(f"  {line}" for line in examples)
    # The terminal breaks the lines of a paragraph, not the source.
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    app.command(
        name,
        cls=Command,
        help="\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs),
        epilog=epilog,
        context_settings=CONTEXT,
        no_args_is_help=needs_arguments,
    )(expanded(command))
    return typer.main.get_command(app)
