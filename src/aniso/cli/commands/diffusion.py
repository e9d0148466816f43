"""aniso diffuse, scale-space and stencil."""

from __future__ import annotations

from typing import Any

import typer

from aniso.cli.options import parsing, shared
from aniso.cli.options.diffusion_options import DiffusionOptions, StencilOptions, TensorOptions
from aniso.parameters import TIME
from aniso.verbs.table import DIFFUSE

EXAMPLES = {
    DIFFUSE.name: DIFFUSE.examples,
    "scale-space": (
        "aniso scale-space camera.png --times 1,4,16,64",
        "aniso scale-space camera.png --times 0,4,16,64,256 --scheme fed --figure",
        "aniso scale-space camera.png --times 1,10 -o 'scales/{stem}-{time}.png'",
    ),
    "stencil": (
        "aniso stencil --alpha 0.4 --gamma 1 --angle 30 --eigenvalues 1 0.1",
        "aniso stencil --stencil nonnegativity --tensor 1 0.25 0.5",
        "aniso stencil --alpha 0.25 --beta 0.5 --tensor 1 0.2 1 --json",
    ),
}


def diffuse(
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
    from aniso import evolve
    from aniso.cli.jobs.diffusing import DiffusionSetup
    from aniso.cli.jobs.file_job import FileJob
    from aniso.cli.jobs.filtering import Filter, StoreFilter, are_stores, filter_files
    from aniso.cli.jobs.reporting import Report, Tell
    from aniso.io.pages import Page, Pages

    chosen = DiffusionSetup.of(diffusion, computing, time)

    if chosen.model is None and are_stores(files):
        raise typer.BadParameter("Zarr stores do not support a constant tensor. Give a model.")

    def filters(pages: Pages) -> Filter:
        chosen.hint(job.report, pages.picture)

        def filter_page(page: Page, tell: Tell) -> tuple[Any, Any]:
            return chosen.run(evolve.diffuse, page, time, tell), None

        return filter_page

    report = Report(DIFFUSE.name, reporting)
    job = FileJob(report, files, reading, writing, computing, storage=cluster.storage)
    given = {"model": chosen.model, "time": time, "scheme": chosen.scheme, "stencil": chosen.stencil}
    filter_files(
        job,
        DIFFUSE.output,
        filters,
        stores=StoreFilter(cluster, DIFFUSE, given),
        facts={"time": time, **chosen.facts()},
        summary=[*chosen.summary(), ("time", f"{time:g}")],
    )


def scale_space(
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
    from aniso.cli.jobs.reporting import Report

    chosen = DiffusionSetup.of(diffusion, computing, times[0])
    job = FileJob(Report("scale-space", reporting), files, reading, writing, computing)
    (write_figures if figure else write_scales)(job, times, chosen)


def stencil(
    stencil: StencilOptions,
    tensor: TensorOptions,
    reporting: shared.ReportingOptions,
    spacing: Any = shared.option(
        "Pixel spacing: a number, or 'Y,X'. Default: 1.",
        default=1.0,
        parser=parsing.lengths,
        metavar="SPACING",
    ),
) -> None:
    """Print weights, entries and step limits of a stencil.

    The stencil is a member of the 3 × 3 family (default: α = 0.4, γ = 1), the diffusion tensor is constant
    (default: along x).
    """
    from aniso.cli.jobs.reporting import Report
    from aniso.stability import stencil_properties
    from aniso.stencil import DeltaStencil

    member = stencil.chosen() or DeltaStencil()
    entries = tensor.entries()
    report = Report("stencil", reporting)
    with report.attempt(""):
        facts = stencil_properties(member, *entries, spacing)
        report.results.append(facts)
        for line in _stencil_lines(facts):
            report.say(line)
    report.finish()


def _stencil_lines(facts: dict[str, Any]) -> list[str]:
    """Return the properties of a stencil as lines of text."""
    from aniso.cli.jobs.reporting import columns
    from aniso.verbs.plan import format_value as show

    member = facts["stencil"]
    (a, b), (_, c) = facts["tensor"]
    larger, smaller = facts["eigenvalues"]
    nonnegative, which = facts["nonnegative"], "neighbour has a negative weight"
    step = show(facts["stable_step"])
    w = [show(weight + 0.0) for weight in facts["directional_weights"]]
    second = f"γ = {show(member.gamma)}" if member.beta is None else f"β = {show(member.beta)}"
    rows = [
        ("stencil", f"α = {show(member.alpha)}, {second}"),
        ("tensor", f"a = {show(a)}, b = {show(b)}, c = {show(c)}  (a along x, c along y downwards)"),
        ("eigenvalues", f"{show(larger)} and {show(smaller)}"),
        ("δ", show(facts["delta"])),
        ("hourglass weight ζ", show(facts["hourglass_weight"])),
        ("directional weights", f"x {w[0]},  ↘ {w[1]},  y {w[2]},  ↙ {w[3]}"),
        ("maximum principle", f"{'holds: no' if nonnegative else 'not guaranteed: a'} {which}"),
        ("largest stable step", f"{step}  (sharp, for all tensors up to these eigenvalues)"),
    ]
    if facts["paper_step"] is not None:
        rows.append(("by the paper's theorem", show(facts["paper_step"])))
    words = [[f"{entry + 0.0:.4f}".replace("-0.0000", "0.0000") for entry in row] for row in facts["entries"]]
    width = max(len(word) for row in words for word in row)
    table = ["    " + "  ".join(f"{word:>{width}}" for word in row) for row in words]
    return [columns(rows), "  entries (y downwards)", *table]
