"""Section 2: a 2-D diffusion is the sum of four 1-D diffusions, and their sum is the printed stencil."""

from __future__ import annotations

import numpy as np

import aniso
from benchmarks.claims.claim import Claim, Finding, at_most
from benchmarks.claims.fields import ROUNDING, constant_field, difference, random_field, tensors_at
from oracles.printed_stencil import collapsed, printed_matrix

#: The four directions as (x, y), and the steps (rows, columns) that they make on the grid.
DIRECTIONS = np.array([(1, 0), (1, 1), (0, 1), (-1, 1)]) / np.sqrt([[1], [2], [1], [2]])
STEPS = ((0, 1), (1, 1), (1, 0), (1, -1))


def splitting(quick: bool) -> Finding:
    rng = np.random.default_rng(0)
    trials, size = (5, 6) if quick else (40, 10)
    tensor_error, stencil_error, direction_error = [], [], []
    for _ in range(trials):
        a, b, c = collapsed(*random_field(rng, size))
        delta = 0.5 * (a + c) - rng.uniform(0, 1, a.shape)
        four = np.array(aniso.stencil.directional_weights(a, b, c, delta))
        rebuilt = np.einsum("k...,ki,kj->ij...", four, DIRECTIONS, DIRECTIONS)
        tensor_error.append(difference(rebuilt, np.array([[a, b], [b, c]])))
        ours = aniso.stencil.matrix(a, b, c, aniso.FreeStencil(delta)).toarray()
        stencil_error.append(difference(ours, printed_matrix(a, b, c, delta)))
        weight = np.pad(rng.uniform(0, 1, (size - 1, size - 1)), 1)
        direction_error += [difference(*one_direction(k, weight)) for k in range(4)]
    return Finding(
        [
            at_most("largest entry of Σ wᵢ eᵢeᵢᵀ − D", max(tensor_error), ROUNDING),
            at_most("library's matrix against the printed stencil", max(stencil_error), ROUNDING),
            at_most("each direction against a 1-D scheme", max(direction_error), ROUNDING),
            at_most("second moments against 2TD, relative", moment_error(rng, trials), 1e-10),
        ]
    )


def one_direction(k, weight):
    """A with diffusion along the k-th direction only, and the same as 1-D schemes on lines of the grid."""
    half = 0.5 * weight
    a, b, c, delta = {
        0: (weight, 0 * weight, 0 * weight, 0 * weight),
        1: (half, half, half, half),
        2: (0 * weight, 0 * weight, weight, 0 * weight),
        3: (half, -half, half, half),
    }[k]
    ours = aniso.stencil.matrix(a, b, c, aniso.FreeStencil(delta)).toarray()
    size, (down, right) = len(weight) - 1, STEPS[k]
    scheme = np.zeros_like(ours)
    for y in range(size):
        for x in range(size):
            if not (0 <= y + down < size and 0 <= x + right < size):
                continue
            here, there = y * size + x, (y + down) * size + x + right
            if down and right:  # the cell between them; they are √2 apart
                w = 0.5 * weight[y + 1, x + max(right, 0)]
            else:  # the two cells beside the edge
                w = 0.5 * (weight[y + down, x + right] + weight[y + 1, x + 1])
            scheme[[here, there], [there, here]] += w
            scheme[[here, there], [here, there]] -= w
    return ours, scheme


def moment_error(rng, trials):
    """A bright pixel after some explicit steps: its second moments are twice the time times the tensor."""
    steps = 5
    size = 2 * steps + 3
    y, x = np.indices((size, size)) - size // 2
    errors = []
    for _ in range(trials):
        tensor = tensors_at(1.0, rng.uniform(), rng.uniform(0, np.pi))
        stencil = aniso.DeltaStencil(rng.uniform(0, 0.5), rng.uniform(-1, 1))
        u = np.zeros((size, size))
        u[size // 2, size // 2] = 1.0
        tau = 2 / aniso.stability.spectral_bound(stencil, 1.0, 1.0)
        model = aniso.FixedTensor.from_entries(*constant_field(tensor, size))
        u = aniso.diffuse(
            u, model, steps * tau, stencil=stencil, scheme=aniso.Explicit(tau), engine="reference"
        )
        moments = np.array([(x * x * u).sum(), (x * y * u).sum(), (y * y * u).sum()])
        errors.append(difference(moments / (2 * steps * tau), np.array(tensor)))
    return max(errors)


CLAIMS = [
    Claim(
        "splitting",
        "Four 1-D diffusions make one 2-D diffusion",
        "div(D ∇u) is the sum of four 1-D diffusions along the axes and the diagonals, with diffusivities "
        "a − δ, δ + b, c − δ and δ − b; discretised, they add up to the δ-stencil.",
        "Section 2, eqs. (5)–(10)",
        "Random tensors and random δ. The diffusivities must reproduce the tensor; the matrix of the library "
        "must equal the stencil printed in the paper, transcribed entry by entry; with three of the four "
        "diffusivities 0, it must equal 1-D schemes on the lines of the grid; and the second moments of a "
        "diffused bright pixel must be 2TD.",
        splitting,
    )
]
