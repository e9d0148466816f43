"""aniso denoise."""

from __future__ import annotations

from typing import Annotated, Any

from aniso.cli.options.bundles import (
    Cluster,
    Computing,
    Files,
    Reading,
    Reporting,
    Stencil,
    Writing,
    flag,
    number_option,
)

NEEDS_ARGUMENTS = True
EXAMPLES = (
    "aniso denoise photo.jpg",
    "aniso denoise scan.tif --noise 12 -o clean.tif",
    "aniso denoise 'scans/*.tif' -o clean/ --json",
    "aniso denoise huge.zarr clean.zarr --workers 4 --memory 4GB",
)


def command(
    files: Files,
    stencil: Stencil,
    reading: Reading,
    writing: Writing,
    computing: Computing,
    cluster: Cluster,
    reporting: Reporting,
    noise: Annotated[
        float | None,
        number_option(
            "Standard deviation of the noise in grey values. Default: estimated.", low=0, auto=True
        ),
    ] = None,
    contrast: Annotated[
        float | None,
        number_option(
            "λ in grey values per unit length: gradients above it are edges. Default: found by the error "
            "expected from it.",
            low=0,
            open_low=True,
            auto=True,
        ),
    ] = None,
    time: Annotated[
        float | None,
        number_option(
            "Stopping time in squared units of length. Default: found likewise.",
            low=0,
            open_low=True,
            auto=True,
        ),
    ] = None,
    mix: Annotated[
        bool,
        flag("--mix/--no-mix", help="Mix several diffusions (the default), or take the best single one."),
    ] = True,
) -> None:
    """Remove noise from images; all parameters are estimated.

    Several diffusions run, an estimate of their error that needs no clean image picks contrast and
    stopping time, and the results are mixed. Noise should be about as strong everywhere in the image.

    photo.jpg becomes photo_denoised.jpg. Zarr stores, which may be larger than memory, are filtered block
    by block with the best single diffusion; the same command continues an interrupted run.
    """
    from aniso.cli.jobs.filtering import filter_files, with_verb
    from aniso.cli.jobs.work import Work
    from aniso.cli.jobs.zarrs import InStores
    from aniso.stencil import DeltaStencil
    from aniso.verbs import chunked_recipes
    from aniso.verbs.denoise import denoise

    used = stencil.chosen() or DeltaStencil()

    def recipe(windows: Any, spacings: Any) -> chunked_recipes.Recipe:
        return chunked_recipes.denoising(windows(), spacings, noise, contrast, time, used)

    chosen = with_verb(
        denoise,
        computing,
        noise=noise,
        contrast=contrast,
        time=time,
        mix=mix,
        stencil=stencil.chosen(),
    )
    work = Work("denoise", files, reading, writing, computing, reporting)
    filter_files(work, "{stem}_denoised{suffix}", chosen, stores=InStores(cluster, recipe, used))
