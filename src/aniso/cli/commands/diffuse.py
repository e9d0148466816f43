"""aniso diffuse."""

from __future__ import annotations

from typing import Any

import typer

from aniso.cli.options import shared
from aniso.cli.options.diffusion_options import DiffusionOptions
from aniso.parameters import TIME
from aniso.verbs.table import DIFFUSE

EXAMPLES = DIFFUSE.examples


def command(
    files: shared.Files,
    diffusion: DiffusionOptions,
    reading: shared.ReadingOptions,
    writing: shared.WritingOptions,
    computing: shared.ComputingOptions,
    cluster: shared.ClusterOptions,
    reporting: shared.ReportingOptions,
    time: float = shared.number(shared.describe(TIME), default=shared.REQUIRED, low=0),
) -> None:
    """Diffuse images with any model, stencil and scheme.

    The model determines the diffusion tensor; a constant tensor can be given instead. The diffusion time is
    reached exactly, and unstable step sizes are rejected.

    The result of camera.png is camera_diffused.png. Zarr stores are filtered block by block.
    """
    from aniso.cli.jobs.diffusing import DiffusionSetup
    from aniso.cli.jobs.file_job import FileJob
    from aniso.cli.jobs.filtering import Filter, StoreFilter, are_stores, filter_files
    from aniso.cli.jobs.reporting import Report, Tell
    from aniso.evolve import diffuse
    from aniso.io.pages import Page, Pages

    chosen = DiffusionSetup.of(diffusion, computing, time)

    if chosen.model is None and are_stores(files):
        raise typer.BadParameter("Zarr stores do not support a constant tensor. Give a model.")

    def filters(pages: Pages, report: Report) -> Filter:
        chosen.hint(report, pages.picture)

        def filter_page(page: Page, tell: Tell) -> tuple[Any, Any]:
            return chosen.run(diffuse, page, time, tell), None

        return filter_page

    given = {"model": chosen.model, "time": time, "scheme": chosen.scheme, "stencil": chosen.stencil}
    filter_files(
        FileJob(DIFFUSE.name, files, reading, writing, computing, reporting, storage=cluster.storage),
        DIFFUSE.output,
        filters,
        stores=StoreFilter(cluster, DIFFUSE, given),
        facts={"time": time, **chosen.facts()},
        summary=[*chosen.summary(), ("time", f"{time:g}")],
    )
