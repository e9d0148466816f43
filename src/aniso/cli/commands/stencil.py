"""aniso stencil."""

from __future__ import annotations

from typing import Any

from aniso.cli.options import parsing
from aniso.cli.options.diffusion_options import StencilOptions, TensorOptions
from aniso.cli.options.shared import ReportingOptions, option

NEEDS_ARGUMENTS = False
EXAMPLES = (
    "aniso stencil --alpha 0.4 --gamma 1 --angle 30 --eigenvalues 1 0.1",
    "aniso stencil --stencil nonnegativity --tensor 1 0.25 0.5",
    "aniso stencil --alpha 0.25 --beta 0.5 --tensor 1 0.2 1 --json",
)


def command(
    stencil: StencilOptions,
    tensor: TensorOptions,
    reporting: ReportingOptions,
    spacing: Any = option(
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
    from aniso.cli.jobs.stencil_lines import stencil_lines
    from aniso.stability import stencil_properties
    from aniso.stencil import DeltaStencil

    member = stencil.chosen() or DeltaStencil()
    entries = tensor.entries()
    report = Report("stencil", reporting)
    with report.attempt(""):
        facts = stencil_properties(member, *entries, spacing)
        report.results.append(facts)
        for line in stencil_lines(facts):
            report.say(line)
    report.finish()
