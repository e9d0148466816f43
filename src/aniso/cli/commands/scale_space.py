"""aniso scale-space."""

from __future__ import annotations

from typing import Any

from aniso.cli.options import parsing, shared
from aniso.cli.options.diffusion_options import DiffusionOptions

EXAMPLES = (
    "aniso scale-space camera.png --times 1,4,16,64",
    "aniso scale-space camera.png --times 0,4,16,64,256 --scheme fed --figure",
    "aniso scale-space camera.png --times 1,10 -o 'scales/{stem}-{time}.png'",
)


def command(
    files: shared.Files,
    diffusion: DiffusionOptions,
    reading: shared.ReadingOptions,
    writing: shared.WritingOptions,
    computing: shared.ComputingOptions,
    reporting: shared.ReportingOptions,
    times: Any = shared.option(
        "Increasing diffusion times, separated by commas, in squared units of length; 0 is the image itself.",
        default=shared.REQUIRED,
        parser=parsing.times,
        metavar="T,T,…",
    ),
    figure: bool = shared.option(
        "Write one PNG figure of all times instead of one file per time.", default=False
    ),
) -> None:
    """Write an image at several diffusion times (a scale space).

    Each image is computed from the previous one. In --output, {time} stands for the time.

    The results of camera.png are camera_1.png, camera_4.png, …, or with --figure camera_scale-space.png.
    """
    from aniso.cli.jobs.diffusing import DiffusionSetup, write_figures, write_scales
    from aniso.cli.jobs.file_job import FileJob

    chosen = DiffusionSetup.of(diffusion, computing, times[0])
    job = FileJob("scale-space", files, reading, writing, computing, reporting)
    (write_figures if figure else write_scales)(job, times, chosen)
