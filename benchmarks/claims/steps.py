"""Section 3: which steps are stable, for which tensors, in which norm."""

from __future__ import annotations

from typing import Any

import numpy as np

import aniso
from aniso.stability import paper_bound, spectral_bound, stable_step
from benchmarks.claims.bound import largest_norm
from benchmarks.claims.claim import Claim, Finding, at_least, at_most, close_to, shown
from benchmarks.claims.fields import (
    ANISOTROPIES,
    MEMBERS,
    ROUNDING,
    constant_field,
    difference,
    eigenvalues,
    tensors_at,
    turning_field,
)

FIVE_POINTS = np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]])


def criterion(quick: bool) -> Finding:
    rng = np.random.default_rng(8)
    within, beyond = [], []
    for _ in range(1 if quick else 10):
        for stencil in MEMBERS:
            values = eigenvalues(turning_field(rng, 8), stencil)
            limit = 2 / -values[0]
            within.append(abs(1 + limit * values).max() - 1)
            beyond.append(abs(1 + 1.001 * limit * values).max() - 1)
    return Finding(
        [
            at_most(f"largest ‖I + τA‖₂ − 1 at τ = 2/ρ(A), {len(within)} fields", max(within), ROUNDING),
            at_least("smallest ‖I + τA‖₂ − 1 at 1.001 of it", min(beyond), 1e-4),
        ]
    )


def homogeneous(quick: bool) -> Finding:
    alphas = np.linspace(0, 0.5, 11)
    printed = [
        abs(2 / paper_bound(aniso.DeltaStencil(alpha), 1.0, 1.0) - 1 / (4 * (1 - alpha))) for alpha in alphas
    ]
    standard, one = aniso.DeltaStencil.named("standard"), np.ones((4, 4))
    entries = aniso.stencil.entries(one, 0 * one, one, standard)[:, :, 1, 1]
    needed = [2 / largest_norm(aniso.DeltaStencil(alpha), (1.0, 1.0)) * (4 * (1 - alpha)) for alpha in alphas]
    return Finding(
        [
            close_to("α = 0: largest step that Fourier modes allow", needed[0] / 4, 0.25, 1e-9),
            at_most("Corollary 1 against h²/(4(1 − α)), largest difference", max(printed), ROUNDING),
            at_most(
                "α = 0: stencil against the five-point Laplacian", difference(entries, FIVE_POINTS), ROUNDING
            ),
            at_least("all α: allowed step over h²/(4(1 − α)), smallest", min(needed), 1 - ROUNDING),
            shown("the same, largest: what the paper gives away", max(needed)),
        ]
    )


def one_direction(quick: bool) -> Finding:
    alphas = np.linspace(0, 0.5, 11)
    stencils = [aniso.DeltaStencil(alpha, 1.0) for alpha in alphas]
    printed = [abs(2 / paper_bound(stencil, 1.0, 0.0) - 0.5) for stencil in stencils]
    allowed = [2 / largest_norm(stencil, (1.0, 0.0)) for stencil in stencils]
    signal = stable_step(aniso.Homogeneous(), ndim=1)
    return Finding(
        [
            close_to("largest step at the worst angle, smallest over α", min(allowed), 0.5, 1e-9),
            close_to("the same, largest over α", max(allowed), 0.5, 1e-9),
            at_most("Corollary 1 against h²/2, largest difference over α", max(printed), ROUNDING),
            shown("limit for a signal in the library", signal),
        ]
    )


def all_anisotropies(quick: bool) -> Finding:
    rng = np.random.default_rng(9)
    size, steps = (24, 60) if quick else (48, 400)
    growth, beyond = [], []
    for stencil in [aniso.DeltaStencil(0.0, 0.0), *(s for s in MEMBERS if s.gamma == 1)]:
        for lambdas in ANISOTROPIES:
            limit = 2 / spectral_bound(stencil, *lambdas)
            turning = aniso.stencil.matrix(*turning_field(rng, size, *lambdas), stencil)
            growth.append(worst_growth(turning, limit, steps // 4, rng))
            straight = aniso.stencil.matrix(*constant_field(tensors_at(*lambdas, 0.0), size), stencil)
            growth.append(worst_growth(straight, limit, steps // 4, rng))
            beyond.append(total_growth(straight, 1.02 * limit, steps, fastest_waves(size)))
    for model in (aniso.EdgeEnhancing(contrast=5.0), aniso.CoherenceEnhancing(contrast=2.0, rho=2.0)):
        growth.append(model_growth(model, 48, 10 if quick else 40))
    return Finding(
        [
            at_most(
                f"largest growth of the norm in a step at the limit, {len(growth)} runs",
                max(growth),
                1 + ROUNDING,
            ),
            at_least(f"{steps} steps of 1.02 of the limit, worst tensors: growth at least", min(beyond), 2.0),
            shown("and at most", max(beyond)),
        ]
    )


def worst_growth(matrix: Any, tau: float, steps: int, rng: np.random.Generator) -> float:
    """The largest factor by which a step lets the norm of noise grow."""
    u, worst = rng.normal(size=matrix.shape[0]), 0.0
    for _ in range(steps):
        before, u = np.linalg.norm(u), u + tau * (matrix @ u)
        worst = max(worst, float(np.linalg.norm(u) / before))
    return worst


def fastest_waves(size: int) -> Any:
    """The two modes of tensors along the axes of which one is damped most: stripes, and the checkerboard."""
    stripes = np.cos(np.pi * (size - 1) / size * (np.arange(size) + 0.5))
    return (np.outer(np.ones(size), stripes) + np.outer(stripes, stripes)).ravel()


def total_growth(matrix: Any, tau: float, steps: int, start: Any) -> float:
    u = start
    for _ in range(steps):
        u = u + tau * (matrix @ u)
    return float(np.linalg.norm(u) / np.linalg.norm(start))


def model_growth(model: Any, size: int, steps: int) -> float:
    """The same for a model whose tensor follows the image."""
    image = aniso.samples.shapes(size, noise=40.0).image - 128.0
    limit = stable_step(model)
    times = limit * np.arange(steps + 1)
    scheme = aniso.Explicit(step=limit)
    norms = [
        np.linalg.norm(u)
        for _, u in aniso.scale_space(image, model, times, scheme=scheme, engine="reference")
    ]
    return float(np.max(np.divide(norms[1:], norms[:-1])))


def maximum_norm(quick: bool) -> Finding:
    angle = np.linspace(0, np.pi, 4001)
    low, high = 1.0, 100.0
    for _ in range(60):
        ratio = 0.5 * (low + high)
        at_all_angles = aniso.DeltaStencil.named("nonnegativity").is_nonnegative(
            *tensors_at(1.0, 1 / ratio, angle)
        )
        low, high = (ratio, high) if at_all_angles.all() else (low, ratio)
    size = 33
    spot = np.zeros((size, size))
    spot[size // 2, size // 2] = 1.0
    undershoot = {
        lambda2: -aniso.diffuse(
            spot,
            aniso.FixedTensor.from_entries(*constant_field(tensors_at(1.0, lambda2, np.pi / 8), size)),
            0.2,
            stencil=aniso.DeltaStencil.named("nonnegativity"),
            scheme=aniso.Explicit(0.05),
            engine="reference",
        ).min()
        for lambda2 in (0.2, 0.01)
    }
    return Finding(
        [
            at_most("largest λ₁/λ₂ with a nonnegative stencil at all angles", low, 10),
            at_most("λ₁/λ₂ = 5, bright spot of 1: undershoot", undershoot[0.2], ROUNDING),
            at_least("λ₁/λ₂ = 100: undershoot", undershoot[0.01], 1e-4),
        ]
    )


CLAIMS = [
    Claim(
        "criterion",
        "Steps up to 2/ρ(A) are stable",
        "The explicit scheme does not let the Euclidean norm grow if τ ≤ 2/ρ(A).",
        "Section 3, eq. (11)",
        "The spectral norm of I + τA from all eigenvalues, at the limit and a thousandth beyond, with "
        "tensors of rank one at random angles.",
        criterion,
    ),
    Claim(
        "homogeneous",
        "Corollary 1, homogeneous diffusion",
        "For λ₁ = λ₂ = 1 the limit is τ ≤ h²/(4(1 − α)); α = 0 gives the five-point Laplacian and τ ≤ h²/4.",
        "Section 3, Corollary 1, case 1",
        "The corollary's formula, the entries of the stencil, and the largest step that no Fourier mode "
        "exceeds.",
        homogeneous,
    ),
    Claim(
        "one-direction",
        "Corollary 1, one direction",
        "For λ₁ = 1, λ₂ = 0 and γ = 1 the limit is that of one-dimensional diffusion, τ ≤ h²/2.",
        "Section 3, Corollary 1, case 2",
        "The corollary's formula for all α, and the largest step that no Fourier mode exceeds at the worst "
        "angle.",
        one_direction,
    ),
    Claim(
        "anisotropies",
        "Stable in the Euclidean norm for all anisotropies",
        "The stencils offer stability in the Euclidean norm for all anisotropies.",
        "Section 1, “Related Work”; Section 3",
        "λ₂/λ₁ from 1 to 0, tensors at random angles and along the axes, steps at the library's limit, "
        "which is never shorter than the paper's; likewise edge- and coherence-enhancing diffusion of a "
        "noisy image. For the worst tensors, steps 2 % longer.",
        all_anisotropies,
    ),
    Claim(
        "maximum-norm",
        "In the maximum norm only for mild anisotropies",
        "Splittings that are stable in the maximum norm are in general only possible for fairly mild "
        "anisotropies.",
        "Section 1, “Related Work”",
        "The largest λ₁/λ₂ for which the nonnegativity stencil has no negative weight at any angle, by "
        "bisection; a bright spot at 22.5° with a ratio below and one above.",
        maximum_norm,
    ),
]
