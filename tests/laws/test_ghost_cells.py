"""The outer ring of cells, and images that have hardly any other cells."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import aniso
from aniso.stencil import collapse_ghost_cells, matrix
from oracles.printed_stencil import collapsed, paper_delta, printed_matrix
from tests.laws.problems import (
    Problem,
    Tensor,
    assert_close,
    delta_stencils,
    problems,
    tensor_fields,
    tensors_at,
)

# --- collapsing


@given(tensor_fields())
def test_collapsing_follows_its_formulas_and_leaves_the_inside_alone(field: Tensor):
    for actual, expected, before in zip(collapse_ghost_cells(*field), collapsed(*field), field, strict=True):
        assert_close(actual, expected)
        np.testing.assert_array_equal(actual[1:-1, 1:-1], before[1:-1, 1:-1])


@given(tensor_fields())
def test_collapsed_tensors_are_semidefinite_and_stay_as_they_are(field: Tensor):
    once = collapse_ghost_cells(*field)
    a, b, c = once
    assert (a >= 0).all()
    assert (c >= 0).all()
    ring = np.ones(a.shape, bool)
    ring[1:-1, 1:-1] = False
    assert (b[ring] == 0).all()
    for again, before in zip(collapse_ghost_cells(*once), once, strict=True):
        np.testing.assert_array_equal(again, before)


def test_without_collapse_the_printed_stencil_is_neither_symmetric_nor_conservative():
    a, b, c = tensors_at(1.0, 0.3, np.random.default_rng(0).uniform(0, np.pi, (7, 7)))
    raw = printed_matrix(a, b, c, paper_delta(a, b, c, 0.4, 1.0))
    assert abs(raw - raw.T).max() > 0.1
    assert abs(raw.sum(axis=0)).max() > 0.1
    assert_close(matrix(a, b, c).toarray(), matrix(a, b, c).toarray().T)


def test_a_tensor_that_is_tangential_up_to_rounding_is_kept():
    """cos(90°) is 6e-17 in floating point: b²/a is then made of rounding alone."""
    along_y = tensors_at(1.0, 0.0, np.full((6, 6), np.pi / 2))
    exactly = (np.zeros((6, 6)), np.zeros((6, 6)), np.ones((6, 6)))
    assert 0 < along_y[0][0, 0] < 1e-30
    assert_close(matrix(*along_y).toarray(), matrix(*exactly).toarray())


def test_single_precision_tensors_of_rank_one_are_accepted_and_stable():
    angle = np.random.default_rng(2).uniform(0, np.pi, (9, 9))
    a, b, c = (entry.astype(np.float32) for entry in tensors_at(1.0, 0.0, angle))
    for stencil in (aniso.DeltaStencil(), aniso.DeltaStencil(0.0, 1.0), aniso.DeltaStencil(0.5)):
        assert np.linalg.eigvalsh(matrix(a, b, c, stencil).toarray()).max() < 1e-6


# --- degenerate sizes


@given(tensor_fields(st.just((1, 1))), delta_stencils())
def test_a_single_pixel_never_changes(field: Tensor, stencil):
    np.testing.assert_array_equal(matrix(*field, stencil).toarray(), [[0.0]])


def line_matrix(midpoints):
    """1-D diffusion (w u')' with reflecting ends, w at the midpoints between neighbours."""
    size = len(midpoints) + 1
    result = np.zeros((size, size))
    for i, w in enumerate(midpoints):
        result[i : i + 2, i : i + 2] += w * np.array([[-1.0, 1.0], [1.0, -1.0]])
    return result


@given(tensor_fields(st.tuples(st.just(1), st.integers(2, 8))), delta_stencils(), st.floats(0.4, 2))
def test_one_row_is_exact_one_dimensional_diffusion(field: Tensor, stencil, h):
    a, b, c = field
    along = a - np.divide(b**2, c, where=c != 0, out=np.zeros_like(c))
    expected = line_matrix(0.5 * (along[0] + along[1])[1:-1]) / h**2
    assert_close(matrix(a, b, c, stencil, (7.0, h)).toarray(), expected, h**-2)


@given(tensor_fields(st.tuples(st.integers(2, 8), st.just(1))), delta_stencils(), st.floats(0.4, 2))
def test_one_column_is_exact_one_dimensional_diffusion(field: Tensor, stencil, h):
    a, b, c = field
    along = c - np.divide(b**2, a, where=a != 0, out=np.zeros_like(a))
    expected = line_matrix(0.5 * (along[:, 0] + along[:, 1])[1:-1]) / h**2
    assert_close(matrix(a, b, c, stencil, (h, 7.0)).toarray(), expected, h**-2)


def test_two_by_two_pixels_by_hand():
    """One interior cell: its six differences. Four sides with collapsed tensors: one each."""
    a, b, c = (np.full((3, 3), entry) for entry in (2.0, 1.0, 1.0))
    stencil = aniso.DeltaStencil.named("nonnegativity")  # δ = 1: w = 1, 2, 0, 0
    # top and bottom: a − b²/c = 1; left and right: c − b²/a = ½; each enters with the factor ½
    x, y, falling = 0.5 * (1.0 + 1.0), 0.5 * (0.0 + 0.5), 0.5 * 2.0
    expected = np.zeros((4, 4))
    for weight, pairs in ((x, [(0, 1), (2, 3)]), (y, [(0, 2), (1, 3)]), (falling, [(0, 3)])):
        for p, q in pairs:
            expected[[p, q], [q, p]] += weight
            expected[[p, q], [p, q]] -= weight
    assert_close(matrix(a, b, c, stencil).toarray(), expected)


@given(problems(st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 2), (1, 5), (5, 1), (2, 5)])))
def test_small_images_obey_the_laws(problem: Problem):
    dense = problem.matrix.toarray()
    assert dense.shape == (np.prod(problem.image_shape),) * 2
    assert np.isfinite(dense).all()
    assert_close(dense, printed_matrix(*problem.unit_grid), problem.scale)
    assert_close(dense.sum(axis=0), 0, problem.scale)
