"""aniso diffuse."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from aniso.cli.options.bundles import (
    Cluster,
    Computing,
    Files,
    Reading,
    Reporting,
    Stencil,
    Tensor,
    Writing,
    number_option,
)
from aniso.cli.options.model_options import model_options
from aniso.cli.options.scheme_options import Scheme

if TYPE_CHECKING:
    ModelOptions = Any
else:
    ModelOptions = model_options()

NEEDS_ARGUMENTS = True
EXAMPLES = (
    "aniso diffuse camera.png --contrast 5 --sigma 1 --time 10",
    "aniso diffuse fingerprint.png -m coherence-enhancing --rho 4 --time 20",
    "aniso diffuse camera.png --angle 30 --eigenvalues 1 0.01 --time 20",
)


def command(
    files: Files,
    time: Annotated[
        float,
        number_option(
            "How long to diffuse, in squared units of length: homogeneous diffusion for a time t is a "
            "Gaussian of variance 2t.",
            low=0,
        ),
    ],
    model: ModelOptions,
    tensor: Tensor,
    stencil: Stencil,
    scheme: Scheme,
    reading: Reading,
    writing: Writing,
    computing: Computing,
    cluster: Cluster,
    reporting: Reporting,
) -> None:
    """Diffuse images with any model, stencil and scheme.

    The model says which tensor steers the diffusion; a constant tensor can be given instead. The time is
    reached exactly, and steps that are not stable are refused.

    camera.png becomes camera_diffused.png. Zarr stores are diffused block by block.
    """
    from aniso.cli.jobs.diffusions import Diffusion
    from aniso.cli.jobs.filtering import Filter, filter_files
    from aniso.cli.jobs.reporting import Report, Tell
    from aniso.cli.jobs.work import Work
    from aniso.cli.jobs.zarrs import InStores
    from aniso.evolve import diffuse
    from aniso.io.pages import Page, Pages

    chosen = Diffusion.of(model, tensor, stencil, scheme, computing, [time])

    def filters(pages: Pages, report: Report) -> Filter:
        chosen.hint(report, pages.picture, "--contrast" in model.given())

        def filtered(page: Page, tell: Tell) -> tuple[Any, Any]:
            options = chosen.options(page)
            return diffuse(page.image, chosen.model_of(page), time, progress=tell, **options), None

        return filtered

    filter_files(
        Work("diffuse", files, reading, writing, computing, reporting),
        "{stem}_diffused{suffix}",
        filters,
        stores=InStores(cluster, partial(chosen.recipe, time), chosen.stencil),
        facts={"time": time, **chosen.facts()},
        summary=[*chosen.summary(), ("time", f"{time:g}")],
    )
