"""The commands of `aniso`: made from the table of verbs, or functions of the modules in this folder.

The signature of such a function is the options, and its docstring the help; `EXAMPLES` of its module has the
examples.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from aniso.verbs.table import DIFFUSE, VERBS

#: Commands that are not verbs: the module of each, and its summary.
OTHERS = {
    DIFFUSE.name: ("diffusion", DIFFUSE.summary),
    "scale-space": ("diffusion", "Write an image at several diffusion times."),
    "structure": ("structure", "Write the orientation, coherence or structure tensor at each pixel."),
    "status": ("tools", "Show what a run to a Zarr store has done."),
    "explore": ("tools", "Explore methods and parameters interactively in the browser."),
    "info": ("tools", "Show the contents of a file and its estimated noise, contrast and wavelength."),
    "stencil": ("diffusion", "Print weights, entries and step limits of a stencil."),
    "demo": ("tools", "Filter sample images and show the results in one picture."),
    "bench": ("tools", "Measure the speed on this machine, in a few seconds."),
}

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


def summaries() -> dict[str, str]:
    """Return the summaries of all commands by name, in the order of the overview."""
    verbs = {verb.name: verb.summary for verb in VERBS.values()}
    return verbs | {name: summary for name, (_, summary) in OTHERS.items()}


def examples(name: str) -> tuple[str, ...]:
    """Return the examples in the help of a command."""
    return VERBS[name].examples if name in VERBS else _module(name).EXAMPLES[name]


def load(name: str) -> Any:
    """Return the command of this name, ready to run."""
    import typer

    from aniso.cli.options.appearance import Command
    from aniso.cli.options.shared import expand

    if name in VERBS:
        from aniso.cli.commands.verbs import make_command

        command = make_command(VERBS[name])
    else:
        command = getattr(_module(name), name.replace("-", "_"))
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    epilog = "[bold]Examples[/bold]\n" + "\n".join(f"  {line}" for line in examples(name))
    # The terminal breaks the lines of a paragraph, not the source.
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    app.command(
        name,
        cls=Command,
        help="\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs),
        epilog=epilog,
        context_settings=CONTEXT,
        no_args_is_help="files" in inspect.signature(command).parameters,
    )(expand(command))
    return typer.main.get_command(app)


def _module(name: str) -> Any:
    return importlib.import_module(f"aniso.cli.commands.{OTHERS[name][0]}")
