"""Section 2: consistency of order two, and what a kink of ∣b∣ does to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import eye_array
from scipy.sparse.linalg import spsolve

import aniso
from benchmarks import report
from benchmarks.claims.claim import Claim, Finding, Picture, Table, Verdict, at_least, shown
from benchmarks.claims.fields import slope
from oracles.manufactured import MIRRORED, TURNING, samples

#: A little below two, because grids are finite.
SECOND = 1.9

SMOOTH: dict[str, Any] = {
    "α = 0, γ = 0": aniso.DeltaStencil(0.0, 0.0),
    "α = ⅓, γ = 0": aniso.DeltaStencil(1 / 3, 0.0),
    "α = ½": aniso.DeltaStencil(0.5, 0.0),
    "α = 0.1, β = 0.8": aniso.DeltaStencil(0.1, beta=0.8),
    "a free δ": lambda x, y: aniso.FreeStencil(0.5 + 0.4 * np.sin(3 * x + y)),
}
KINKED: dict[str, Any] = {
    "α = 0, γ = 1": aniso.DeltaStencil(0.0, 1.0),
    "α = 0.25, γ = 1": aniso.DeltaStencil(0.25, 1.0),
    "α = 0.4, γ = 1": aniso.DeltaStencil(0.4, 1.0),
}


@dataclass(frozen=True)
class Errors:
    """Per grid, from the coarsest to the finest."""

    truncation: list[float]
    mean_square: list[float]
    solution: list[float]


def errors(solution: Any, member: Any, sizes: tuple[int, ...]) -> Errors:
    """Of A u against div(D ∇u), largest and root mean square; and of the solution of u − Au = f."""
    found = Errors([], [], [])
    for size in sizes:
        centres, corners = samples((size, size))
        stencil = member(*corners) if callable(member) else member
        a, b, c = solution.tensor(*corners)
        generator = aniso.stencil.matrix(a, b, c, stencil, 1 / size)
        u, divergence = solution.u(*centres).ravel(), solution.divergence(*centres).ravel()
        residual = generator @ u - divergence
        computed = spsolve((eye_array(u.size) - generator).tocsc(), u - divergence)
        found.truncation.append(abs(residual).max())
        found.mean_square.append(float(np.sqrt((residual**2).mean())))
        found.solution.append(abs(computed - u).max())
    return found


def order_two(quick: bool) -> Finding:
    sizes = (16, 32) if quick else (32, 64, 128, 256)
    smooth = {name: errors(MIRRORED, member, sizes) for name, member in SMOOTH.items()}
    kinked = {name: errors(TURNING, member, sizes) for name, member in KINKED.items()}
    both = {f"smooth δ: {name}": found for name, found in smooth.items()}
    both |= {f"kinked δ: {name}": found for name, found in kinked.items()}
    rows = [
        (name, *(f"{slope(part):.2f}" for part in (found.truncation, found.mean_square, found.solution)))
        for name, found in both.items()
    ]
    return Finding(
        [
            at_least(
                "lowest order, smooth δ, of the truncation error in the maximum norm",
                min(slope(found.truncation) for found in smooth.values()),
                SECOND,
            ),
            at_least(
                "lowest order of the solution, smooth or kinked δ",
                min(slope(found.solution) for found in both.values()),
                SECOND,
            ),
            at_least(
                "lowest order, δ with a kink, of the truncation error in the maximum norm",
                min(slope(found.truncation) for found in kinked.values()),
                SECOND,
                "restricting",
            ),
            shown(
                "the same in the root mean square", min(slope(found.mean_square) for found in kinked.values())
            ),
        ],
        [f"Orders between the two finest grids of {', '.join(f'{size}²' for size in sizes)} pixels:"],
        [Table(("", "truncation, maximum", "truncation, mean square", "solution, maximum"), rows)],
        [Picture("reproduction_order.png", CAPTION, lambda: drawing(sizes, smooth, kinked))],
    )


CAPTION = (
    "Errors over the number of pixels along a side. Left: largest difference between A applied to a smooth "
    "function and div(D ∇u). Right: the solution of u − div(D ∇u) = f. Dashed lines have slopes one and two."
)


def drawing(sizes: tuple[int, ...], smooth: dict[str, Errors], kinked: dict[str, Errors]) -> Any:
    drawn, panels = report.figure_of(1, 2, (10, 4.4))
    chosen = {
        "smooth δ, α = ⅓, γ = 0": (smooth["α = ⅓, γ = 0"], "#1f6fb4"),
        "kinked δ, α = 0, γ = 1": (kinked["α = 0, γ = 1"], "#d9661f"),
    }
    for axes, part in zip(panels, ("truncation", "solution"), strict=True):
        for name, (found, colour) in chosen.items():
            axes.plot(sizes, getattr(found, part), "o-", color=colour, label=name, linewidth=2)
        start = 0.7 * min(getattr(found, part)[0] for found, _ in chosen.values())
        for order in (1, 2) if part == "truncation" else (2,):
            line = [start * (sizes[0] / size) ** order for size in sizes]
            axes.plot(sizes, line, "--", color="0.6", linewidth=1)
        axes.set(xscale="log", yscale="log", xlabel="pixels along a side")
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.set_xticks([], minor=True)
        axes.set_title(part, loc="left", fontweight="bold")
        axes.grid(alpha=0.25)
    panels[0].set_ylabel("largest error")
    panels[0].legend(frameon=False)
    return drawn


CLAIMS = [
    Claim(
        "order",
        "Consistency of order two",
        "With the averages of eq. (10), the δ-stencil family has consistency order two.",
        "Section 2, below eq. (10)",
        "Manufactured solutions with smooth tensors on a square, whose flux through the boundary vanishes. "
        "In one of them b keeps its sign; in the other it changes sign obliquely to the grid, so that a δ "
        "made of ∣b∣ has a kink there.",
        order_two,
        Verdict.RESTRICTED,
        {
            Verdict.RESTRICTED: "It holds for smooth δ. The choice that the paper recommends, γ ≠ 0, takes "
            "∣b∣; where b changes its sign the largest truncation error is of lower order in a strip a few "
            "pixels wide. Solutions still converge with order two."
        },
    )
]
