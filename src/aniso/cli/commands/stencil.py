"""aniso stencil."""

from __future__ import annotations

from typing import Any

from aniso.cli.options import parsing
from aniso.cli.options.diffusion_options import StencilOptions, TensorOptions
from aniso.cli.options.shared import ReportingOptions, option

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
    from aniso.stability import stencil_properties
    from aniso.stencil import DeltaStencil

    member = stencil.chosen() or DeltaStencil()
    entries = tensor.entries()
    report = Report("stencil", reporting)
    with report.attempt(""):
        facts = stencil_properties(member, *entries, spacing)
        report.results.append(facts)
        for line in _lines(facts):
            report.say(line)
    report.finish()


def _lines(facts: dict[str, Any]) -> list[str]:
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
