"""Section 3: α close to ½ and γ close to 1 improve rotation invariance and reduce dissipation."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse.linalg import expm_multiply

import aniso
from benchmarks import report
from benchmarks.claims.claim import Claim, Finding, Picture, Table, at_least, at_most, shown
from benchmarks.claims.fields import constant_field, tensors_at

STENCILS = {
    "α = 0, γ = 0": aniso.DeltaStencil(0.0, 0.0),
    "α = 0, γ = 1": aniso.DeltaStencil(0.0, 1.0),
    "α = 0.25, γ = 1": aniso.DeltaStencil(0.25, 1.0),
    "α = 0.4, γ = 1": aniso.DeltaStencil(0.4, 1.0),
    "α = 0.44, γ = 0.98": aniso.DeltaStencil(0.44, 0.98),
    "α = 0.49, γ = 1": aniso.DeltaStencil(0.49, 1.0),
}
STANDARD, *_, SHARPEST = STENCILS
#: Those in the pictures.
SHOWN = (STANDARD, "α = 0, γ = 1", SHARPEST)
SIZE, RING_TIME = 129, 20.0
GAUSSIAN_TIME, LAMBDAS = 50.0, (1.0, 0.01)


@cache
def rings(stencil: aniso.DeltaStencil) -> Any:
    """The ring pattern after diffusion along the rings."""
    model = aniso.FixedTensor.from_entries(*aniso.samples.ring_tensor(SIZE))
    return aniso.diffuse(
        aniso.samples.ring_pattern(SIZE), model, RING_TIME, stencil=stencil, engine="reference"
    )


def ring_change(stencil: aniso.DeltaStencil) -> float:
    """How much of the rings changed, relatively, away from the centre and from where they fade out."""
    before, after = aniso.samples.ring_pattern(SIZE), rings(stencil)
    y, x = np.indices(before.shape) - SIZE // 2
    part = (np.hypot(x, y) > 12) & (np.hypot(x, y) < 50)
    return float(np.linalg.norm((after - before)[part]) / np.linalg.norm(before[part]))


def dissipation(quick: bool) -> Finding:
    changes = {name: ring_change(stencil) for name, stencil in STENCILS.items()}
    over_alpha = [ring_change(aniso.DeltaStencil(alpha, 1.0)) for alpha in (0.0, 0.1, 0.2, 0.3, 0.4, 0.49)]
    over_gamma = [ring_change(aniso.DeltaStencil(0.25, gamma)) for gamma in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    board = (-1.0) ** np.indices((16, 16)).sum(axis=0)
    field = constant_field(tensors_at(1.0, 0.3, 0.4), 16)
    rates = [
        -(aniso.stencil.matrix(*field, aniso.DeltaStencil(alpha)) @ board.ravel()).reshape(16, 16)[8, 8]
        * board[8, 8]
        for alpha in (0.4, 0.5)
    ]
    return Finding(
        [
            at_least(
                f"rings: change with {STANDARD} over {SHARPEST}", changes[STANDARD] / changes[SHARPEST], 5
            ),
            at_most("α from 0 to 0.49, γ = 1: largest ratio to the one before", worst_ratio(over_alpha), 1),
            at_most("γ from −1 to 1, α = ¼: largest ratio to the one before", worst_ratio(over_gamma), 1),
            shown("checkerboard, damping rate at α = 0.4", rates[0]),
            shown("and at α = ½", rates[1]),
        ],
        [
            "At α = ½, the checkerboard is not damped, so that noise of this frequency remains. The default "
            "of the library is α = 0.4, γ = 1."
        ],
        [Table(("stencil", "relative change of the rings"), [(n, f"{v:.4f}") for n, v in changes.items()])],
        [Picture("reproduction_rings.png", RINGS, draw_rings, photo=True)],
    )


def worst_ratio(values: list[float]) -> float:
    return max(after / before for before, after in pairwise(values))


RINGS = (
    "One quarter of the ring pattern, and the result of diffusion along the rings to time "
    f"{RING_TIME:g}. The pattern should not change."
)


def draw_rings() -> Any:
    pictures = {"pattern": aniso.samples.ring_pattern(SIZE)}
    pictures |= {name: rings(STENCILS[name]) for name in SHOWN}
    drawn, panels = report.figure_of(1, len(pictures), (12, 3.6))
    for axes, (name, picture) in zip(panels, pictures.items(), strict=True):
        quarter = picture[SIZE // 2 :, SIZE // 2 :]
        axes.imshow(quarter, cmap="gray", vmin=-1, vmax=1, interpolation="nearest")
        axes.set_title(name)
        axes.set_axis_off()
    return drawn


def gaussian(covariance: Any, size: int) -> Any:
    y, x = np.indices((size, size)) - (size - 1) / 2
    inverse = np.linalg.inv(covariance)
    exponent = inverse[0, 0] * x**2 + 2 * inverse[0, 1] * x * y + inverse[1, 1] * y**2
    return np.exp(-0.5 * exponent) / (2 * np.pi * math.sqrt(np.linalg.det(covariance)))


@cache
def spread(stencil: aniso.DeltaStencil, degrees: float, size: int) -> tuple[Any, Any]:
    """A Gaussian after diffusion with one tensor, exact in time, and the Gaussian that it should be."""
    a, b, c = tensors_at(*LAMBDAS, math.radians(degrees))
    start, truth = (
        gaussian(9 * np.eye(2) + 2 * time * np.array([[a, b], [b, c]]), size) for time in (0.0, GAUSSIAN_TIME)
    )
    generator = aniso.stencil.matrix(*constant_field((a, b, c), size), stencil)
    return expm_multiply(GAUSSIAN_TIME * generator, start.ravel()).reshape(size, size), truth


def spread_error(stencil: aniso.DeltaStencil, degrees: float, size: int) -> float:
    after, truth = spread(stencil, degrees, size)
    return float(np.linalg.norm(after - truth) / np.linalg.norm(truth))


def rotation(quick: bool) -> Finding:
    size = 81 if quick else 101
    angles = (0.0, 22.5, 45.0) if quick else (0.0, 7.5, 15.0, 22.5, 30.0, 37.5, 45.0)
    names = SHOWN if quick else tuple(STENCILS)
    errors = {name: [spread_error(STENCILS[name], angle, size) for angle in angles] for name in names}
    spans = {name: max(values) - min(values) for name, values in errors.items()}
    rows = [(name, *(f"{value:.4f}" for value in values)) for name, values in errors.items()]
    return Finding(
        [
            at_least(
                f"error at the worst angle, {STANDARD} over {SHARPEST}",
                max(errors[STANDARD]) / max(errors[SHARPEST]),
                3,
            ),
            at_least("spread of the error over the angles, likewise", spans[STANDARD] / spans[SHARPEST], 3),
            shown("error along the axis, likewise", errors[STANDARD][0] / errors[SHARPEST][0]),
        ],
        [
            "Along the axes the plain stencil is the one-dimensional scheme, which needs no rotation "
            "invariance. Relative errors in the Euclidean norm:"
        ],
        [Table(("stencil", *(f"{angle:g}°" for angle in angles)), rows)],
        [Picture("reproduction_gaussians.png", GAUSSIANS, lambda: draw_gaussians(size), photo=True)],
    )


GAUSSIANS = (
    "A Gaussian after diffusion along 22.5° and 45°: exact, and the errors of three stencils, on one scale "
    "(blue too low, red too high)."
)


def draw_gaussians(size: int) -> Any:
    drawn, panels = report.figure_of(2, 1 + len(SHOWN), (12, 6.9))
    for row, degrees in zip(panels, (22.5, 45.0), strict=True):
        middle = slice(size // 2 - 30, size // 2 + 31)
        pairs = {name: spread(STENCILS[name], degrees, size) for name in SHOWN}
        truth = pairs[STANDARD][1]
        row[0].imshow(truth[middle, middle], cmap="gray")
        row[0].set_title(f"exact, {degrees:g}°")
        for axes, (name, (after, _)) in zip(row[1:], pairs.items(), strict=True):
            reach = 0.06 * truth.max()
            axes.imshow((after - truth)[middle, middle], cmap="RdBu_r", vmin=-reach, vmax=reach)
            axes.set_title(name)
        for axes in row:
            axes.set_axis_off()
    return drawn


CLAIMS = [
    Claim(
        "dissipation",
        "Less dissipation for α → ½, γ → 1",
        "Choosing α close to ½ and γ close to 1 reduces dissipativity in experiments.",
        "Section 3, first paragraph (after Weickert et al. 2013)",
        "Rings of all directions whose frequency grows outwards, diffused along the rings only: nothing "
        "should change. The relative change in the Euclidean norm, over α and over γ.",
        dissipation,
    ),
    Claim(
        "rotation",
        "Better rotation invariance for α → ½, γ → 1",
        "Choosing α close to ½ and γ close to 1 improves rotation invariance in experiments.",
        "Section 3, first paragraph (after Weickert et al. 2013)",
        f"A Gaussian diffused to time {GAUSSIAN_TIME:g} with one tensor, λ = {LAMBDAS}, at several angles "
        "and exactly in time; it should become another known Gaussian, equally well at all angles.",
        rotation,
    ),
]
