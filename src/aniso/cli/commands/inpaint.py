"""aniso inpaint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from aniso.cli.options import parsing
from aniso.cli.options.bundles import Computing, Files, Reading, Reporting, Writing, flag, number_option

NEEDS_ARGUMENTS = True
EXAMPLES = (
    "aniso inpaint photo.jpg --mask mask.png",
    "aniso inpaint scan.tif --mask-value 0 -o filled.tif",
    "aniso inpaint heights.npy",
)


def command(
    files: Files,
    reading: Reading,
    writing: Writing,
    computing: Computing,
    reporting: Reporting,
    mask: Annotated[
        Path | None,
        typer.Option(
            help="An image of the same size: pixels are unknown where it is not 0, in any channel.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    invert: Annotated[
        bool, flag("--invert", help="The mask marks the known pixels: unknown is where it is 0.")
    ] = False,
    mask_value: Annotated[
        float | None,
        number_option("Pixels are unknown where all channels have this value."),
    ] = None,
    contrast: Annotated[
        float | None,
        number_option(
            "λ in grey values per unit length: stronger gradients are edges. Default: from the differences "
            "of known neighbours.",
            low=0,
            open_low=True,
            auto=True,
        ),
    ] = None,
    sigma: Annotated[
        float | None, number_option("Noise scale σ. Default: 0.7 pixels.", low=0, auto=True)
    ] = None,
    rho: Annotated[
        float | None, number_option("Integration scale ρ. Default: 0.8 pixels.", low=0, auto=True)
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            help="Stop once a cycle changes less than this share of the spread of known values.",
            parser=parsing.number(0, 1, open_low=True),
            metavar="NUMBER",
        ),
    ] = 5e-3,
    max_cycles: Annotated[
        int, typer.Option(min=1, help="Stop at the latest after so many cycles.", metavar="N")
    ] = 100,
) -> None:
    """Fill in unknown pixels; known ones keep their values.

    Unknown is what a mask says, or what has a certain value, or by default what is NaN or infinite. Edges are
    carried on into the gaps.

    photo.jpg becomes photo_inpainted.jpg.
    """
    from aniso.cli.files import masks
    from aniso.cli.files.pages import Page, Pages
    from aniso.cli.jobs.filtering import Filter, filter_files, with_verb
    from aniso.cli.jobs.reporting import Report, Tell
    from aniso.cli.jobs.work import Work
    from aniso.verbs.inpaint import inpaint

    if mask is not None and mask_value is not None:
        raise typer.BadParameter("--mask and --mask-value both say what is unknown. Give one of them.")
    if invert and mask is None:
        raise typer.BadParameter("--invert needs a mask. Give --mask FILE.")

    def chosen(pages: Pages, report: Report) -> Filter:
        unknown = masks.unknown(pages.picture, mask, mask_value, invert, reading, report)

        def filtered(page: Page, tell: Tell) -> tuple[Any, Any]:
            verb = with_verb(
                inpaint,
                computing,
                mask=masks.of_page(unknown, pages, page),
                contrast=contrast,
                sigma=sigma,
                rho=rho,
                tolerance=tolerance,
                max_cycles=max_cycles,
            )
            return verb(pages, report)(page, tell)

        return filtered

    usual = "{stem}_inpainted{suffix}"
    work = Work("inpaint", files, reading, writing, computing, reporting)
    filter_files(work, usual, chosen, unknown=True)
