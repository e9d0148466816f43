"""aniso enhance."""

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
    "aniso enhance fingerprint.png",
    "aniso enhance fingerprint.png --wavelength 9 --time 40 -o ridges.png",
    "aniso enhance 'slices/*.tif' -o enhanced/",
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
    wavelength: Annotated[
        float | None,
        number_option(
            "Distance from line to line; all scales follow from it. Default: estimated.",
            low=0,
            open_low=True,
            auto=True,
        ),
    ] = None,
    contrast: Annotated[
        float | None,
        number_option(
            "λ in grey values per unit length: structures that are more coherent are enhanced. Default: "
            "estimated.",
            low=0,
            open_low=True,
            auto=True,
        ),
    ] = None,
    time: Annotated[
        float | None,
        number_option(
            "Time of a diffusion in squared units of length. Default: from the wavelength and the noise.",
            low=0,
            open_low=True,
            auto=True,
        ),
    ] = None,
    plates: Annotated[
        bool,
        flag(
            "--plates/--no-plates", help="In volumes: enhance layers and lines (the default), or lines only."
        ),
    ] = True,
    refine: Annotated[
        bool,
        flag(
            "--refine/--no-refine",
            help="Close gaps and put back what was lost (the default), or diffuse only once.",
        ),
    ] = True,
) -> None:
    """Free lines and flow-like patterns from noise and close their gaps.

    Coherence-enhancing diffusion whose scales follow the distance of the lines: fingerprints, layers,
    fibres, wood.

    fingerprint.png becomes fingerprint_enhanced.png. Zarr stores are diffused once, block by block.
    """
    from aniso.cli.jobs.filtering import filter_files, with_verb
    from aniso.cli.jobs.work import Work
    from aniso.cli.jobs.zarrs import InStores
    from aniso.stencil import DeltaStencil
    from aniso.verbs import chunked_recipes
    from aniso.verbs.enhance import enhance

    def recipe(windows: Any, spacings: Any) -> chunked_recipes.Recipe:
        return chunked_recipes.enhancing(windows(), spacings, noise, wavelength, contrast, time, plates)

    chosen = with_verb(
        enhance,
        computing,
        noise=noise,
        wavelength=wavelength,
        contrast=contrast,
        time=time,
        plates=plates,
        refine=refine,
        stencil=stencil.chosen(),
    )
    stores = InStores(cluster, recipe, stencil.chosen() or DeltaStencil(alpha=0.45))
    work = Work("enhance", files, reading, writing, computing, reporting)
    filter_files(work, "{stem}_enhanced{suffix}", chosen, stores=stores)
