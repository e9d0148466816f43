"""Random problems for property tests: tensor fields, members of the stencil family, spacings."""

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import aniso
from oracles.printed_stencil import collapsed, on_unit_grid, paper_delta

#: Members at the ends of the ranges of α, γ and β, and between them.
MEMBERS_AT_THE_LIMITS = [
    aniso.DeltaStencil(0.0, 0.0),
    aniso.DeltaStencil(0.0, 1.0),
    aniso.DeltaStencil(0.0, -1.0),
    aniso.DeltaStencil(0.1, -0.6),
    aniso.DeltaStencil(0.4, 1.0),
    aniso.DeltaStencil(0.5, 0.0),
    aniso.DeltaStencil(0.0, beta=1.0),
    aniso.DeltaStencil(0.2, beta=-0.6),
]

Tensor = tuple[Any, Any, Any]  # a, b, c: numbers or arrays
Eigenvalues = tuple[float, float]  # λ1 ≥ λ2

# Exact directions, so that axis-parallel tensors have b = 0 and the diagonal ones |b| = a = c.
_LATTICE = np.array([(1, 0), (0, 1), (1, 1), (1, -1), (2, 1), (1, -2), (5, 2), (-2, 5)], float)

seeds = st.integers(0, 2**32 - 1)
alphas = st.floats(0, 0.5)
gammas = st.floats(-1, 1)
spacings = st.one_of(st.floats(0.4, 2.5), st.tuples(st.floats(0.4, 2.5), st.floats(0.4, 2.5)))


def image_shapes(smallest=1, largest=6):
    return st.tuples(st.integers(smallest, largest), st.integers(smallest, largest))


@st.composite
def delta_stencils(draw):
    """Any (α, γ), any (α, β), the ends of their ranges among them."""
    alpha = draw(alphas)
    if draw(st.booleans()):
        return aniso.DeltaStencil(alpha, draw(gammas))
    return aniso.DeltaStencil(alpha, beta=draw(gammas) * (1 - 2 * alpha))


@st.composite
def eigenvalue_pairs(draw):
    """λ1 ≥ λ2 ≥ 0, λ1 > 0."""
    lambda1 = draw(st.floats(0.01, 2))
    return lambda1, lambda1 * draw(st.floats(0, 1))


def tensors(l1, l2, direction_x, direction_y) -> Tensor:
    """a, b, c from eigenvalues and the (unnormalised) eigenvector of the first."""
    x, y = np.asarray(direction_x, float), np.asarray(direction_y, float)
    xx, xy, yy = np.array([x * x, x * y, y * y]) / (x * x + y * y)
    return l1 * xx + l2 * yy, (l1 - l2) * xy, l1 * yy + l2 * xx


def tensors_at(l1, l2, angle) -> Tensor:
    """The same, with the eigenvector at this angle from x (axis 1) towards y (axis 0)."""
    return tensors(l1, l2, np.cos(angle), np.sin(angle))


def constant_field(a, b, c, shape) -> Tensor:
    """One tensor in all cells of an image of this shape."""
    cells = np.add(shape, 1)
    return np.full(cells, a), np.full(cells, b), np.full(cells, c)


def single_cell(a, b, c) -> Tensor:
    """A tensor in the only interior cell of an image of 2×2 pixels, and 0 around it."""
    return np.pad([[a]], 1), np.pad([[b]], 1), np.pad([[c]], 1)


@st.composite
def tensor_fields(draw, shapes=None, bounds=(1.0, 1.0)):
    """a, b, c over the cells of an image; eigenvalues up to the bounds, often equal to them or 0."""
    height, width = draw(shapes if shapes is not None else image_shapes())
    cells = height + 1, width + 1
    rng = np.random.default_rng(draw(seeds))
    kind = draw(st.sampled_from(["spread", "extreme", "rank one", "largest"]))
    if kind == "spread":
        l1, l2 = bounds[0] * rng.uniform(size=cells), bounds[1] * rng.uniform(size=cells)
    elif kind == "extreme":
        l1, l2 = bounds[0] * rng.integers(0, 2, cells), bounds[1] * rng.integers(0, 2, cells)
    elif kind == "rank one":
        l1, l2 = bounds[0] * rng.uniform(size=cells), np.zeros(cells)
    else:
        l1, l2 = np.full(cells, bounds[0]), np.full(cells, bounds[1])
    l1 = np.maximum(l1, l2)
    if draw(st.booleans()):
        angle = rng.uniform(0, np.pi, cells)
        return tensors_at(l1, l2, angle)
    return tensors(l1, l2, *np.moveaxis(_LATTICE[rng.integers(0, len(_LATTICE), cells)], -1, 0))


class Problem(NamedTuple):
    """All that a matrix is made of."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    stencil: aniso.DeltaStencil | aniso.FreeStencil
    spacing: float | tuple[float, float]

    @property
    def matrix(self):
        return aniso.stencil.matrix(*self)

    @property
    def image_shape(self):
        return self.a.shape[0] - 1, self.a.shape[1] - 1

    @property
    def scale(self):
        """The size of the numbers that the matrix is computed from."""
        return max(abs(entry).max() for entry in self.unit_grid)

    @property
    def eigenvalue_bounds(self) -> Eigenvalues:
        """The largest λ1 and the largest λ2 over the field."""
        eigenvalues = np.linalg.eigvalsh(
            np.moveaxis(np.array([[self.a, self.b], [self.b, self.c]]), (0, 1), (2, 3))
        )
        smallest, largest = eigenvalues.max(axis=(0, 1)).clip(min=0)
        return float(largest), float(smallest)

    @property
    def unit_grid(self) -> tuple[Any, Any, Any, Any]:
        """a, b, c, δ as a grid of unit spacing sees them, collapsed, computed independently."""
        a, b, c = on_unit_grid(*collapsed(self.a, self.b, self.c), self.spacing)
        return a, b, c, expected_delta(a, b, c, self.stencil, self.spacing)


def expected_delta(a, b, c, stencil, spacing=1.0):
    """δ on the grid of unit spacing, from the definition of the member."""
    if isinstance(stencil, aniso.FreeStencil):
        return stencil.values / np.prod(np.broadcast_to(spacing, (2,)))
    if stencil.beta is not None:
        return stencil.alpha * a + stencil.beta * b + stencil.alpha * c
    return paper_delta(a, b, c, stencil.alpha, stencil.gamma)


@st.composite
def free_stencils(draw, a, b, c, spacing):
    """Any δ ≤ (a + c)/2, also far below 0 and exactly at the limit."""
    a, _, c = on_unit_grid(*collapsed(a, b, c), spacing)
    rng = np.random.default_rng(draw(seeds))
    slack = rng.uniform(0, 1.5, a.shape) * rng.integers(0, 2, a.shape)
    area = np.prod(np.broadcast_to(spacing, (2,)))
    return aniso.FreeStencil(area * (0.5 * (a + c) - slack))


@st.composite
def problems(draw, shapes=None, bounds=(1.0, 1.0)):
    a, b, c = draw(tensor_fields(shapes, bounds))
    spacing = draw(spacings)
    stencil = draw(st.one_of(delta_stencils(), free_stencils(a, b, c, spacing)))
    return Problem(a, b, c, stencil, spacing)


def assert_close(actual, expected, scale=1.0):
    """Equal to 1e-12 of the scale, the size of the numbers that both were computed from."""
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12 * scale)
