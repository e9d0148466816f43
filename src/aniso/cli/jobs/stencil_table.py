"""A stencil in figures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aniso import stability
from aniso.cli.jobs.reporting import columns, worded
from aniso.formulas import weights
from aniso.stencil import DeltaStencil, directional_weights, entries


def stencil_facts(stencil: DeltaStencil, a: float, b: float, c: float, spacing: Any) -> dict[str, Any]:
    """All that can be said about a stencil for one constant tensor."""
    h_y, h_x = (spacing, spacing) if np.ndim(spacing) == 0 else spacing
    seen = weights.scaled(a, b, c, 1 / h_x, 1 / h_y)
    delta = float(stencil.delta(*seen))
    radius = math.hypot(0.5 * (a - c), b)
    eigenvalues = 0.5 * (a + c) + radius, max(0.5 * (a + c) - radius, 0.0)
    bound = stability.spectral_bound(stencil, *eigenvalues, (h_y, h_x))
    paper = stability.paper_bound(stencil, *eigenvalues, h_x) if h_x == h_y else None
    constant = np.ones((4, 4))
    return {
        "stencil": stencil,
        "tensor": [[a, b], [b, c]],
        "eigenvalues": eigenvalues,
        "spacing": [h_y, h_x],
        "delta": delta,
        "hourglass_weight": float(stencil.hourglass_weight(*seen)),
        "directional_weights": [float(w) for w in directional_weights(*seen, delta)],
        "entries": entries(a * constant, b * constant, c * constant, stencil, (h_y, h_x))[
            :, :, 1, 1
        ].tolist(),
        "nonnegative": stencil.is_nonnegative(a, b, c, (h_y, h_x)),
        "spectral_bound": bound,
        "stable_step": 2 / bound if bound > 0 else math.inf,
        "paper_bound": paper,
        "paper_step": 2 / paper if paper else None,
    }


def stencil_lines(facts: dict[str, Any]) -> list[str]:
    """The same for people."""
    member = facts["stencil"]
    (a, b), (_, c) = facts["tensor"]
    larger, smaller = facts["eigenvalues"]
    w = [worded(weight + 0.0) for weight in facts["directional_weights"]]
    second = f"γ = {worded(member.gamma)}" if member.beta is None else f"β = {worded(member.beta)}"
    rows = [
        ("stencil", f"α = {worded(member.alpha)}, {second}"),
        ("tensor", f"a = {worded(a)}, b = {worded(b)}, c = {worded(c)}  (a along x, c along y downwards)"),
        ("eigenvalues", f"{worded(larger)} and {worded(smaller)}"),
        ("δ", worded(facts["delta"])),
        ("hourglass weight ζ", worded(facts["hourglass_weight"])),
        ("directional weights", f"x {w[0]},  ↘ {w[1]},  y {w[2]},  ↙ {w[3]}"),
        (
            "maximum principle",
            "holds: no neighbour has a negative weight"
            if facts["nonnegative"]
            else "not guaranteed: a neighbour has a negative weight",
        ),
        (
            "largest stable step",
            f"{worded(facts['stable_step'])}  (sharp, for all tensors up to these eigenvalues)",
        ),
    ]
    if facts["paper_step"] is not None:
        rows.append(("by the paper's theorem", worded(facts["paper_step"])))
    words = [[f"{entry + 0.0:.4f}".replace("-0.0000", "0.0000") for entry in row] for row in facts["entries"]]
    width = max(len(word) for row in words for word in row)
    table = ["    " + "  ".join(f"{word:>{width}}" for word in row) for row in words]
    return [columns(rows), "  entries (y downwards)", *table]
