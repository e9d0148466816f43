"""aniso upsample."""

from __future__ import annotations

from typing import Annotated

import typer

from aniso.cli.options import parsing
from aniso.cli.options.bundles import Computing, Files, Reading, Reporting, Writing, number_option

NEEDS_ARGUMENTS = True
EXAMPLES = (
    "aniso upsample 2 photo.jpg",
    "aniso upsample 4 camera.png -o large.png",
    "aniso upsample 3 'scans/*.tif' -o fine/",
)


def command(
    factor: Annotated[
        int,
        typer.Argument(
            parser=parsing.factor, help="How many times finer, 1 to 8.", metavar="FACTOR", show_default=False
        ),
    ],
    files: Files,
    reading: Reading,
    writing: Writing,
    computing: Computing,
    reporting: Reporting,
    contrast: Annotated[
        float | None,
        number_option(
            "λ in grey values per unit length: stronger gradients are edges. Default: from the differences "
            "of neighbours.",
            low=0,
            open_low=True,
            auto=True,
        ),
    ] = None,
    sigma: Annotated[
        float | None, number_option("Noise scale σ. Default: 0.45 · √FACTOR finer pixels.", low=0, auto=True)
    ] = None,
    rho: Annotated[
        float | None, number_option("Integration scale ρ. Default: as σ.", low=0, auto=True)
    ] = None,
    time: Annotated[
        float | None,
        number_option(
            "Diffusion time. Default: 8 times the squared size of a pixel of the input.", low=0, auto=True
        ),
    ] = None,
) -> None:
    """Make an image up to 8 times finer, with sharp and smooth edges.

    The mean of every block of FACTOR × FACTOR new pixels is the old pixel. Transparency is enlarged
    in blocks.

    photo.jpg becomes photo_x2.jpg.
    """
    from aniso.cli.jobs.filtering import filter_files, with_verb
    from aniso.cli.jobs.work import Work
    from aniso.verbs.upsample import upsample

    chosen = with_verb(
        upsample,
        computing,
        factor,
        contrast=contrast,
        sigma=sigma,
        rho=rho,
        time=time,
    )
    usual = f"{{stem}}_x{factor}{{suffix}}"
    work = Work("upsample", files, reading, writing, computing, reporting)
    filter_files(work, usual, chosen, factor=factor)
