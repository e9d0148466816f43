"""aniso scale-space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from aniso.cli.options import parsing
from aniso.cli.options.bundles import (
    ComputingOptions,
    Files,
    ReadingOptions,
    ReportingOptions,
    StencilOptions,
    TensorOptions,
    WritingOptions,
    flag,
)
from aniso.cli.options.model_options import model_options
from aniso.cli.options.scheme_options import SchemeOptions

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
            help="Increasing diffusion times, separated by commas, in squared units of length; 0 is the "
            "image itself.",
            parser=parsing.times,
            metavar="T,T,…",
            show_default=False,
        ),
    ],
    model: ModelOptions,
    tensor: TensorOptions,
    stencil: StencilOptions,
    scheme: SchemeOptions,
    reading: ReadingOptions,
    writing: WritingOptions,
    computing: ComputingOptions,
    reporting: ReportingOptions,
    figure: Annotated[
        bool,
        flag("--figure", help="Write one PNG figure of all times instead of one file per time."),
    ] = False,
) -> None:
    """Write an image at several diffusion times (a scale space).

    Each image is computed from the previous one. In --output, {time} stands for the time.

    The results of camera.png are camera_1.png, camera_4.png, …, or with --figure camera_scale-space.png.
    """
    from aniso.cli.jobs.diffusion_setup import DiffusionSetup
    from aniso.cli.jobs.file_job import FileJob
    from aniso.cli.jobs.scales import Scales, write_figures, write_scales

    chosen = DiffusionSetup.of(model, tensor, stencil, scheme, computing, times)
    job = FileJob("scale-space", files, reading, writing, computing, reporting)
    scales = Scales(job, times, chosen, "--contrast" in model.given())
    (write_figures if figure else write_scales)(scales)
