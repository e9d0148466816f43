"""Section 3: A is symmetric and negative semidefinite, and in which range of the parameters."""

from __future__ import annotations

import numpy as np

import aniso
from benchmarks.claims.claim import Claim, Finding, Verdict, at_least, at_most, shown
from benchmarks.claims.fields import MEMBERS, ROUNDING, constant_field, difference, random_field, tensors_at
from oracles.printed_stencil import paper_delta, printed_matrix

#: Just outside the range: what is out, α and β over (1 − 2α) of the sign of b. Inside is α ≤ ½, |β| ≤ 1 − 2α.
OUTSIDE = (
    ("α = 0.51", 0.51, 0.0),
    ("β = 1.02 (1 − 2α), α = 0", 0.0, 1.02),
    ("β = 1.02 (1 − 2α), α = 0.3", 0.3, 1.02),
)


def definiteness(quick: bool) -> Finding:
    rng = np.random.default_rng(4)
    largest, asymmetry, printed = [], [], []
    for _ in range(2 if quick else 30):
        for stencil in MEMBERS:
            field = random_field(rng, 8)
            dense = aniso.stencil.matrix(*field, stencil).toarray()
            largest.append(np.linalg.eigvalsh(dense)[-1])
            asymmetry.append(difference(dense, dense.T))
        a, b, c = random_field(rng, 6)
        literal = printed_matrix(a, b, c, paper_delta(a, b, c, 0.4, 1.0))
        printed.append(difference(literal, literal.T))
    outside = [largest_eigenvalue(alpha, gamma) for _, alpha, gamma in OUTSIDE]
    growth = (1 + 0.5 * max(outside)) ** 1000
    return Finding(
        [
            at_most(f"largest eigenvalue of A, {len(largest)} fields and members", max(largest), ROUNDING),
            at_most("largest asymmetry", max(asymmetry), ROUNDING),
            at_least(
                f"just outside the range, {len(OUTSIDE)} cases: largest eigenvalue, at least",
                min(outside),
                1e-3,
            ),
            at_most(
                "asymmetry of the printed stencil if b ≠ 0 on the boundary",
                max(printed),
                ROUNDING,
                "restricting",
            ),
            shown("growth of that mode in 1000 steps of ½, outside the range", growth),
        ],
        [
            "Just outside the range: "
            + ", ".join(
                f"{name} gives an eigenvalue of {value:.2g}"
                for (name, _, _), value in zip(OUTSIDE, outside, strict=True)
            )
            + ". The library rejects such parameters."
        ],
    )


def largest_eigenvalue(alpha: float, gamma: float, size: int = 12) -> float:
    """Of A for tensors along the diagonal, where the range ends; the boundary is left out."""
    field = constant_field(tensors_at(1.0, 0.0, np.pi / 4), size)
    a, b, c = (np.pad(entry[1:-1, 1:-1], 1) for entry in field)
    return float(np.linalg.eigvalsh(printed_matrix(a, b, c, paper_delta(a, b, c, alpha, gamma)))[-1])


CLAIMS = [
    Claim(
        "definiteness",
        "A is symmetric and negative semidefinite",
        "The matrix A is symmetric, and negative semidefinite for α ≤ ½ and ∣β∣ ≤ 1 − 2α.",
        "Section 3, first paragraph (after Weickert et al. 2013)",
        "All eigenvalues of A for random tensors, some of rank one or zero, and members over the whole "
        "range; then tensors along the diagonal with parameters just outside the range. Last, the stencil "
        "exactly as printed with mirrored pixels outside, and tensors that are not parallel to the "
        "boundary there.",
        definiteness,
        Verdict.RESTRICTED,
        {
            Verdict.RESTRICTED: "The range is correct and cannot be enlarged. The restriction concerns the "
            "boundary, which the paper does not treat: with mirrored pixels, b must vanish in the outermost "
            "cells. This holds automatically if the tensor is computed from the mirrored image; for given "
            "tensors, the library modifies these cells so that there is no flux through the boundary "
            "(`aniso.stencil.collapse_ghost_cells`)."
        },
    )
]
