"""Section 2: Weickert et al. are contained, their two parameters are one, known stencils are members."""

from __future__ import annotations

from typing import Any

import numpy as np

import aniso
from aniso.stencil import ImageStencil
from benchmarks.claims.claim import Claim, Figure, Finding, Table, Verdict, at_most, shown
from benchmarks.claims.fields import ROUNDING, Tensors, difference, random_field, slope, tensors_at
from oracles.manufactured import MIRRORED, samples
from oracles.printed_stencil import collapsed, constant_stencil
from oracles.quadrature import RULES, energy_matrix

NINE_POINTS = np.array([[1, 4, 1], [4, -20, 4], [1, 4, 1]]) / 6
WORDS = {
    "standard": "mixed differences, central",
    "nonnegativity": "one-sided mixed differences, chosen by the sign of b",
    "forward-forward": "mixed differences, forward–forward and backward–backward",
    "forward-backward": "mixed differences, forward–backward and backward–forward",
    "finite-elements": "bilinear finite elements, integrated exactly",
    "cell-centred": "gradients at the centres of the cells (bilinear, one quadrature point)",
    "nine-point": "nine-point Laplacian",
}


def matrix(field: Tensors, stencil: ImageStencil) -> Any:
    return aniso.stencil.matrix(*field, stencil).toarray()


def single_cell(a: float, b: float, c: float) -> Tensors:
    """A tensor in the only inner cell of 2×2 pixels, and none around it."""
    return np.pad([[a]], 1), np.pad([[b]], 1), np.pad([[c]], 1)


def containment(quick: bool) -> Finding:
    rng = np.random.default_rng(1)
    by_delta, by_gamma, of_both_signs = [], [], []
    for _ in range(5 if quick else 100):
        a, b, c = collapsed(*random_field(rng, 6))
        alpha, gamma = rng.uniform(0, 0.5), rng.uniform(-1, 1)
        beta = gamma * (1 - 2 * alpha)
        fixed = aniso.DeltaStencil(alpha, beta=beta)
        delta = (alpha * a + beta * b + alpha * c).clip(max=0.5 * (a + c))
        by_delta.append(difference(matrix((a, b, c), fixed), matrix((a, b, c), aniso.FreeStencil(delta))))
        one_sign, rule = (a, abs(b), c), aniso.DeltaStencil(alpha, gamma)
        by_gamma.append(difference(matrix(one_sign, fixed), matrix(one_sign, rule)))
        of_both_signs.append(difference(matrix((a, b, c), fixed), matrix((a, b, c), rule)))
    return Finding(
        [
            at_most("(α, β) against δ = αa + βb + αc", max(by_delta), ROUNDING),
            at_most("(α, β) against (α, γ), b of one sign", max(by_gamma), ROUNDING),
            shown("(α, β) against (α, γ), b of both signs", max(of_both_signs)),
        ],
        [
            "β = γ(1 − 2α) sgn(b) ties the two parametrisations together. A fixed β is therefore an (α, γ) "
            "rule only where b keeps its sign; where it does not, the library offers both "
            "(`DeltaStencil(alpha, beta=...)`)."
        ],
    )


def redundancy(quick: bool) -> Finding:
    rng = np.random.default_rng(2)
    on_a_line, in_a_field = [], []
    for _ in range(10 if quick else 200):
        a, b, c = tensors_at(1.0, rng.uniform(0, 0.9), rng.uniform(0.1, np.pi / 2 - 0.1))
        # Two pairs with the same δ in this cell: (α, 0) and a smaller α with some β.
        alpha, slant = rng.uniform(0.05, 0.45), (a + c) / b
        shift = 0.9 * min(alpha, (1 - 2 * alpha) / max(slant - 2, 1e-9))
        pairs = aniso.DeltaStencil(alpha, beta=0.0), aniso.DeltaStencil(alpha - shift, beta=shift * slant)
        cell = single_cell(a, b, c)
        on_a_line.append(difference(*(matrix(cell, stencil) for stencil in pairs)))
        field = random_field(rng, 4)
        in_a_field.append(difference(*(matrix(field, stencil) for stencil in pairs)))
    grid = [(alpha, fraction * (1 - 2 * alpha)) for alpha in (0, 0.2, 0.4) for fraction in (-1, -0.3, 0.5, 1)]
    cell = single_cell(*tensors_at(1.0, 0.2, 0.4))
    all_of_them = np.array([matrix(cell, aniso.DeltaStencil(al, beta=be)).ravel() for al, be in grid])
    rank = np.linalg.matrix_rank(all_of_them - all_of_them[0], tol=1e-10)
    return Finding(
        [
            at_most("two pairs with one δ in a cell: difference of their matrices", max(on_a_line), ROUNDING),
            Figure(f"dimension of what {len(grid)} pairs (α, β) do in a cell", float(rank), 1, 1),
            at_most(
                "the same two pairs over a field of tensors: largest difference",
                max(in_a_field),
                ROUNDING,
                "restricting",
            ),
        ]
    )


def members(quick: bool) -> Finding:
    rng = np.random.default_rng(3)
    worst = dict.fromkeys(RULES, 0.0)
    for _ in range(3 if quick else 30):
        field = random_field(rng, 5)
        for name, rule in RULES.items():
            member = aniso.DeltaStencil.named(name)
            ours = aniso.stencil.matrix(*field, member, boundary="natural").toarray()
            worst[name] = max(worst[name], difference(ours, energy_matrix(*field, rule)))
    one = np.ones((4, 4))
    laplacian = aniso.stencil.entries(one, 0 * one, one, aniso.DeltaStencil.named("nine-point"))
    worst["nine-point"] = difference(laplacian[:, :, 1, 1], NINE_POINTS)
    rows = [
        (f"`{name}`", WORDS[name], parameters(aniso.DeltaStencil.named(name)), f"{error:.1e}")
        for name, error in worst.items()
    ]
    return Finding(
        [
            at_most(
                "largest difference from a discretisation written independently",
                max(worst.values()),
                ROUNDING,
            ),
            Figure("discretisations recovered", float(sum(e <= ROUNDING for e in worst.values())), 7, 7),
        ],
        [
            "The paper counts seven and refers to Weickert et al. (2013) without listing them; these seven "
            "have names in the library and need not be the same."
        ],
        [Table(("name", "discretisation", "parameters", "difference"), rows)],
    )


def parameters(stencil: aniso.DeltaStencil) -> str:
    other = f"γ = {stencil.gamma:g}" if stencil.beta is None else f"β = {stencil.beta:g}"
    return f"α = {stencil.alpha:.3g}, {other}"


def completeness(quick: bool) -> Finding:
    # A stencil on {−1, 0, 1}² is of order two for constant tensors iff its moments up to the third are those
    # of the operator. What the moments leave free is the kernel of the matrix that takes them.
    y, x = (part.ravel() for part in np.indices((3, 3)) - 1)
    powers = [(i, j) for i in range(4) for j in range(4) if i + j <= 3]
    moments = np.array([x**i * y**j for i, j in powers], dtype=float)
    _, values, basis = np.linalg.svd(moments)
    free = 9 - int((values > 1e-10).sum())
    change = constant_stencil(1.0, 0.2, 1.0, 0.3) - constant_stencil(1.0, 0.2, 1.0, 0.0)
    cosine = abs(basis[-1] @ change.ravel()) / np.linalg.norm(change)
    errors, asymmetries = zip(*(without_divergence(size) for size in (64, 128, 256)), strict=True)
    order = slope(errors)
    # It is a counterexample only if it is of order two.
    excluded = max(asymmetries) if order > 1.9 else 0.0
    return Finding(
        [
            Figure("constant D: free parameters of all 3×3 stencils of order two", float(free), 1, 1),
            at_most("1 − cosine between that direction and the one of δ", 1 - cosine, ROUNDING),
            at_most("varying D: asymmetry of the equation multiplied out", excluded, ROUNDING, "restricting"),
            shown("its order in the maximum norm, inside", order),
        ]
    )


def without_divergence(size: int) -> tuple[float, float]:
    """a u_xx + 2b u_xy + c u_yy + (a_x + b_y) u_x + (b_x + c_y) u_y by central differences.

    The largest error inside, and how far the couplings of neighbours along x are from symmetric, relatively.
    """
    h, tiny = 1 / size, 1e-30
    (x, y), _ = samples((size, size))
    u, (a, b, c) = MIRRORED.u(x, y), MIRRORED.tensor(x, y)
    a_x, b_x, _ = (np.imag(entry) / tiny for entry in MIRRORED.tensor(x + 1j * tiny, y))
    _, b_y, c_y = (np.imag(entry) / tiny for entry in MIRRORED.tensor(x, y + 1j * tiny))
    drift_x, drift_y = a_x + b_y, b_x + c_y
    inside = np.s_[1:-1, 1:-1]
    east, west, south, north = u[1:-1, 2:], u[1:-1, :-2], u[2:, 1:-1], u[:-2, 1:-1]
    mixed = (u[2:, 2:] - u[2:, :-2] - u[:-2, 2:] + u[:-2, :-2]) / (4 * h**2)
    rate = (
        a[inside] * (east - 2 * u[inside] + west) / h**2 + c[inside] * (south - 2 * u[inside] + north) / h**2
    )
    rate += 2 * b[inside] * mixed
    rate += (drift_x[inside] * (east - west) + drift_y[inside] * (south - north)) / (2 * h)
    to_the_right, to_the_left = a / h**2 + drift_x / (2 * h), a / h**2 - drift_x / (2 * h)
    asymmetry = abs(to_the_right[:, :-1] - to_the_left[:, 1:]).max() / to_the_right.max()
    return abs(rate - MIRRORED.divergence(x, y)[inside]).max(), asymmetry


CLAIMS = [
    Claim(
        "containment",
        "The family of Weickert et al. is contained",
        "With δ = αa + βb + αc the δ-stencils comprise the family of Weickert et al. (2013) with its "
        "parameters α and β, also in the form β = γ(1 − 2α) sgn(b).",
        "Section 2, “Incorporation”; Section 3, first paragraph",
        "Random tensors and parameters: matrices of the members against those of a free δ.",
        containment,
    ),
    Claim(
        "redundancy",
        "Two parameters where one is enough",
        "The parameters α and β contain redundancy, which δ removes.",
        "Abstract; Section 2, “Incorporation”",
        "In one cell: two pairs (α, β) that give the same δ, and the rank of the differences between the "
        "matrices of many pairs. Then the same two pairs as rules for random tensors in many cells.",
        redundancy,
        Verdict.RESTRICTED,
        {
            Verdict.RESTRICTED: "In each cell, the stencil depends on one number. For a whole image, the "
            "pair is not redundant: two pairs that agree in one cell differ in others. The library therefore "
            "has the parameters α and γ, and `FreeStencil` for δ itself."
        },
    ),
    Claim(
        "members",
        "Seven known discretisations are members",
        "The family comprises seven discretisations from the literature.",
        "Section 1, “Related Work”; Section 2, “Incorporation”",
        "Each named member against the same discretisation written as a sum of energies over cells, by "
        "quadrature, with random tensors; the nine-point Laplacian against its entries.",
        members,
    ),
    Claim(
        "completeness",
        "No other second-order stencil is known",
        "The authors are not aware of any second-order discretisation on a 3×3 stencil that is not covered.",
        "Section 2, “Incorporation”, last sentence",
        "Constant tensors: consistency of order two fixes moments of the stencil; the dimension of the "
        "remaining freedom is compared with the direction in which δ changes a stencil. Varying tensors: "
        "central differences of the expanded equation, a u_xx + 2b u_xy + c u_yy + (a_x + b_y) u_x + "
        "(b_x + c_y) u_y; members of the family are symmetric, so an asymmetric stencil is not one.",
        completeness,
        Verdict.RESTRICTED,
        {
            Verdict.RESTRICTED: "For constant tensors, a stronger statement holds: the family is complete. "
            "For varying tensors, the discretisation of the expanded equation is of order two and not "
            "covered. It is not symmetric, so that the stability theory of the paper does not apply."
        },
    ),
]
