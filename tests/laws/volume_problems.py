"""Random problems in volumes for property tests: tensor fields, stencils, spacings."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

import aniso
from aniso.stencil import SplitStencil
from oracles import volume_stencils as oracle
from tests.laws.problems import alphas, delta_stencils, seeds

# Exact directions: along the axes, the diagonals of faces and of the cube, and some between.
LATTICE = np.array(
    [(0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 1, 1), (1, 0, -1), (1, 1, 1), (1, -1, 1), (1, 2, 0), (3, -1, 2)],
    float,
)

#: How much of the rounding error grows where the ghost cells' normal entries are small.
COLLAPSE = 1e4

volume_spacings = st.one_of(st.just(1.0), st.tuples(*[st.floats(0.4, 2.5)] * 3))
split_stencils = st.builds(SplitStencil, alphas)
volume_stencils = st.one_of(delta_stencils(), split_stencils)


def volume_shapes(smallest=1, largest=4):
    return st.tuples(*[st.integers(smallest, largest)] * 3)


def rotations(rng, count):
    """Random rotations (count, 3, 3), columns orthonormal."""
    matrices, _ = np.linalg.qr(rng.normal(size=(count, 3, 3)))
    return matrices


def lattice_frames(rng, count):
    """The same, with the first column along one of the exact directions."""
    first = LATTICE[rng.integers(0, len(LATTICE), count)]
    first = first / np.linalg.norm(first, axis=1, keepdims=True)
    frames = rng.normal(size=(count, 3, 3))
    frames[:, :, 0] = first
    for column in (1, 2):
        for before in range(column):
            overlap = (frames[:, :, before] * frames[:, :, column]).sum(1, keepdims=True)
            frames[:, :, column] -= overlap * frames[:, :, before]
        frames[:, :, column] /= np.linalg.norm(frames[:, :, column], axis=1, keepdims=True)
    return frames


def assembled(values, vectors):
    """Σ λ v vᵀ, exactly symmetric."""
    tensor = np.einsum("nik,nk,njk->nij", vectors, values, vectors)
    return 0.5 * (tensor + tensor.swapaxes(1, 2))


def random_field(shape, seed, kind="spread", bounds=(1.0, 1.0), exact=False):
    """Tensors (D+1, H+1, W+1, 3, 3); the largest eigenvalue is at most bounds[0], the others bounds[1]."""
    rng = np.random.default_rng(seed)
    cells = tuple(n + 1 for n in shape)
    count = int(np.prod(cells))
    limits = np.array([bounds[0], bounds[1], bounds[1]])
    fractions = {
        "spread": rng.uniform(size=(count, 3)),
        "extreme": rng.integers(0, 2, (count, 3)).astype(float),
        "rank one": rng.uniform(size=(count, 1)) * np.array([1.0, 0.0, 0.0]),
        "plates": np.broadcast_to([1.0, 1.0, 0.0], (count, 3)),
        "largest": np.ones((count, 3)),
    }[kind]
    values = limits * fractions
    values[:, 0] = values.max(axis=1)
    frames = lattice_frames(rng, count) if exact else rotations(rng, count)
    return assembled(values, frames).reshape(*cells, 3, 3)


KINDS = ("spread", "extreme", "rank one", "plates", "largest")


@st.composite
def volume_fields(draw, shapes=None, bounds=(1.0, 1.0)):
    shape = draw(shapes if shapes is not None else volume_shapes())
    return random_field(shape, draw(seeds), draw(st.sampled_from(KINDS)), bounds, draw(st.booleans()))


class VolumeProblem(NamedTuple):
    """All that a matrix is made of; the tensors as (D+1, H+1, W+1, 3, 3)."""

    field: np.ndarray
    stencil: aniso.DeltaStencil | SplitStencil
    spacing: float | tuple[float, float, float]

    @property
    def tensor(self):
        """As the library takes it."""
        return as_given(self.field)

    @property
    def dense(self):
        return aniso.volumes.matrix(self.tensor, self.stencil, self.spacing).toarray()

    @property
    def expected(self):
        return literal_matrix(oracle.on_unit_grid(oracle.collapsed(self.field), self.spacing), self.stencil)

    @property
    def shape(self):
        return tuple(n - 1 for n in self.field.shape[:3])

    @property
    def scale(self):
        """The size of the numbers that the matrix is computed from."""
        return max(abs(oracle.on_unit_grid(self.field, self.spacing)).max(), 1e-300)

    @property
    def eigenvalue_bounds(self) -> tuple[float, float]:
        """The largest λ1 and the largest λ2 over the field."""
        values = np.linalg.eigvalsh(self.field).reshape(-1, 3).max(axis=0).clip(min=0)
        return float(values[2]), float(values[1])


def as_given(field):
    """(D+1, H+1, W+1, 3, 3) as (3, 3, D+1, H+1, W+1)."""
    return np.moveaxis(field, (3, 4), (0, 1))


def literal_matrix(field, stencil):
    """The dense matrix as the definition of the stencil reads, on a grid of unit spacing."""
    if isinstance(stencil, SplitStencil):
        return oracle.split_matrix(field, stencil.alpha)
    return oracle.delta_matrix(field, stencil.alpha, stencil.gamma, stencil.beta)


def literal_cell(tensor, stencil):
    """The 8×8 matrix of one cell, as the definition of the stencil reads."""
    if isinstance(stencil, SplitStencil):
        return oracle.split_cell_matrix(tensor, stencil.alpha)
    return oracle.cell_matrix(tensor, stencil.alpha, stencil.gamma, stencil.beta)


@st.composite
def volume_problems(draw, shapes=None, bounds=(1.0, 1.0), stencils=volume_stencils):
    return VolumeProblem(draw(volume_fields(shapes, bounds)), draw(stencils), draw(volume_spacings))
