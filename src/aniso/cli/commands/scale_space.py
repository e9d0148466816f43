"""aniso scale-space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from aniso.cli.options import parsing
from aniso.cli.options.bundles import Computing, Files, Reading, Reporting, Stencil, Tensor, Writing, flag
from aniso.cli.options.model_options import model_options
from aniso.cli.options.scheme_options import Scheme

if TYPE_CHECKING:
    ModelOptions = Any
else:
    ModelOptions = model_options()

NEEDS_ARGUMENTS = True
EXAMPLES = (
    "aniso scale-space camera.png --times 1,4,16,64",
    "aniso scale-space camera.png --times 0,4,16,64,256 --scheme fed --figure",
    "aniso scale-space camera.png --times 1,10 -o 'scales/{stem}-{time}.png'",
)


def command(
    files: Files,
    times: Annotated[
        Any,
        typer.Option(
            help="Increasing diffusion times with commas between them, in squared units of length; 0 is the "
            "image itself.",
            parser=parsing.times,
            metavar="T,T,…",
            show_default=False,
        ),
    ],
    model: ModelOptions,
    tensor: Tensor,
    stencil: Stencil,
    scheme: Scheme,
    reading: Reading,
    writing: Writing,
    computing: Computing,
    reporting: Reporting,
    figure: Annotated[
        bool,
        flag("--figure", help="One PNG figure of all times, in place of a file for each."),
    ] = False,
) -> None:
    """Write an image at several diffusion times: a scale space.

    Each image is computed from the one before. In --output, {time} stands for the time.

    camera.png becomes camera_1.png, camera_4.png, …, or with --figure camera_scale-space.png.
    """
    from aniso.cli.jobs.diffusions import Diffusion
    from aniso.cli.jobs.scales import Scales, write_figures, write_scales
    from aniso.cli.jobs.work import Work

    chosen = Diffusion.of(model, tensor, stencil, scheme, computing, times)
    work = Work("scale-space", files, reading, writing, computing, reporting)
    scales = Scales(work, times, chosen, "--contrast" in model.given())
    (write_figures if figure else write_scales)(scales)
