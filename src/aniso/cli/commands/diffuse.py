"""aniso diffuse."""

from __future__ import annotations

from typing import Any

import typer

from aniso.cli.options.diffusion_options import ModelOptions, SchemeOptions, StencilOptions, TensorOptions
from aniso.cli.options.shared import (
    REQUIRED,
    ClusterOptions,
    ComputingOptions,
    Files,
    ReadingOptions,
    ReportingOptions,
    WritingOptions,
    describe,
    number,
)
from aniso.parameters import TIME
from aniso.verbs.table import DIFFUSE

EXAMPLES = DIFFUSE.examples


def command(
    files: Files,
    model: ModelOptions,
    tensor: TensorOptions,
    stencil: StencilOptions,
    scheme: SchemeOptions,
    reading: ReadingOptions,
    writing: WritingOptions,
    computing: ComputingOptions,
    cluster: ClusterOptions,
    reporting: ReportingOptions,
    time: float = number(describe(TIME), default=REQUIRED, low=0),
) -> None:
    """Diffuse images with any model, stencil and scheme.

    The model determines the diffusion tensor; a constant tensor can be given instead. The diffusion time is
    reached exactly, and unstable step sizes are rejected.

    The result of camera.png is camera_diffused.png. Zarr stores are filtered block by block.
    """
    from aniso.cli.jobs.diffusion_setup import DiffusionSetup
    from aniso.cli.jobs.file_job import FileJob
    from aniso.cli.jobs.filtering import Filter, filter_files
    from aniso.cli.jobs.reporting import Report, Tell
    from aniso.cli.jobs.zarrs import StoreFilter, are_stores
    from aniso.evolve import diffuse
    from aniso.io.pages import Page, Pages

    chosen = DiffusionSetup.of(model, tensor, stencil, scheme, computing, [time])

    if chosen.model is None and are_stores(files):
        raise typer.BadParameter("Zarr stores do not support a constant tensor. Give a model.")

    def filters(pages: Pages, report: Report) -> Filter:
        chosen.hint(report, pages.picture, "--contrast" in model.given())

        def filter_page(page: Page, tell: Tell) -> tuple[Any, Any]:
            options = chosen.options(page)
            return diffuse(page.image, chosen.model_of(page), time, progress=tell, **options), None

        return filter_page

    filter_files(
        FileJob(DIFFUSE.name, files, reading, writing, computing, reporting),
        DIFFUSE.output,
        filters,
        stores=StoreFilter(cluster, DIFFUSE, chosen.store_options(time)),
        facts={"time": time, **chosen.facts()},
        summary=[*chosen.summary(), ("time", f"{time:g}")],
    )
