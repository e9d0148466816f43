"""The properties of a stencil as text."""

from __future__ import annotations

from typing import Any

from aniso.cli.jobs.reporting import columns
from aniso.verbs.plan import format_value as show


def stencil_lines(facts: dict[str, Any]) -> list[str]:
    """Return the properties from :func:`aniso.stability.stencil_properties` as lines of text."""
    member = facts["stencil"]
    (a, b), (_, c) = facts["tensor"]
    larger, smaller = facts["eigenvalues"]
    w = [show(weight + 0.0) for weight in facts["directional_weights"]]
    second = f"γ = {show(member.gamma)}" if member.beta is None else f"β = {show(member.beta)}"
    rows = [
        ("stencil", f"α = {show(member.alpha)}, {second}"),
        (
            "tensor",
            f"a = {show(a)}, b = {show(b)}, c = {show(c)}  (a along x, c along y downwards)",
        ),
        ("eigenvalues", f"{show(larger)} and {show(smaller)}"),
        ("δ", show(facts["delta"])),
        ("hourglass weight ζ", show(facts["hourglass_weight"])),
        ("directional weights", f"x {w[0]},  ↘ {w[1]},  y {w[2]},  ↙ {w[3]}"),
        (
            "maximum principle",
            "holds: no neighbour has a negative weight"
            if facts["nonnegative"]
            else "not guaranteed: a neighbour has a negative weight",
        ),
        (
            "largest stable step",
            f"{show(facts['stable_step'])}  (sharp, for all tensors up to these eigenvalues)",
        ),
    ]
    if facts["paper_step"] is not None:
        rows.append(("by the paper's theorem", show(facts["paper_step"])))
    words = [[f"{entry + 0.0:.4f}".replace("-0.0000", "0.0000") for entry in row] for row in facts["entries"]]
    width = max(len(word) for row in words for word in row)
    table = ["    " + "  ".join(f"{word:>{width}}" for word in row) for row in words]
    return [columns(rows), "  entries (y downwards)", *table]
