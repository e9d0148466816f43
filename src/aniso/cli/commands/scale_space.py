"""aniso scale-space."""

from __future__ import annotations

from typing import Any

from aniso.cli.options import parsing
from aniso.cli.options.diffusion_options import ModelOptions, SchemeOptions, StencilOptions, TensorOptions
from aniso.cli.options.shared import (
    REQUIRED,
    ComputingOptions,
    Files,
    ReadingOptions,
    ReportingOptions,
    WritingOptions,
    option,
)

EXAMPLES = (
    "aniso scale-space camera.png --times 1,4,16,64",
    "aniso scale-space camera.png --times 0,4,16,64,256 --scheme fed --figure",
    "aniso scale-space camera.png --times 1,10 -o 'scales/{stem}-{time}.png'",
)


def command(
    files: Files,
    model: ModelOptions,
    tensor: TensorOptions,
    stencil: StencilOptions,
    scheme: SchemeOptions,
    reading: ReadingOptions,
    writing: WritingOptions,
    computing: ComputingOptions,
    reporting: ReportingOptions,
    times: Any = option(
        "Increasing diffusion times, separated by commas, in squared units of length; 0 is the image itself.",
        default=REQUIRED,
        parser=parsing.times,
        metavar="T,T,…",
    ),
    figure: bool = option(
        "Write one PNG figure of all times instead of one file per time.", "--figure", default=False
    ),
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
