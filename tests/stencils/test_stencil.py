"""The matrix: the printed stencil, its equal forms, and what holds for every member."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aniso
from aniso.formulas import cell, views, weights
from aniso.stencil import collapse_ghost_cells, directional_weights, entries, matrix
from oracles.printed_stencil import (
    collapsed,
    mirrored_matrix,
    paper_delta,
    printed_matrix,
    printed_stencil,
)
from tests.laws.problems import (
    Problem,
    Tensor,
    alphas,
    assert_close,
    constant_field,
    delta_stencils,
    gammas,
    image_shapes,
    problems,
    seeds,
    tensor_fields,
    tensors_at,
)


def mirrored(image):
    return np.pad(image, 1, mode="edge")


def random_image(shape, seed):
    return np.random.default_rng(seed).normal(size=shape)


# --- the printed stencil


@given(problems())
def test_the_matrix_is_the_printed_stencil(problem: Problem):
    assert_close(problem.matrix.toarray(), printed_matrix(*problem.unit_grid), problem.scale)


@given(problems())
def test_the_entries_are_the_printed_ones(problem: Problem):
    assert_close(entries(*problem), printed_stencil(*problem.unit_grid), problem.scale)


@given(tensor_fields(), alphas, gammas, st.floats(0.2, 5))
def test_equal_spacing_divides_the_printed_stencil_by_its_square(field: Tensor, alpha, gamma, h):
    a, b, c = collapsed(*field)
    expected = printed_matrix(a, b, c, paper_delta(a, b, c, alpha, gamma), h)
    assert_close(matrix(a, b, c, aniso.DeltaStencil(alpha, gamma), h).toarray(), expected, h**-2)


@given(tensor_fields(), delta_stencils(), st.floats(0.3, 3), st.floats(0.3, 3))
def test_spacing_belongs_to_the_axes_in_their_order(field: Tensor, stencil, h_y, h_x):
    a, b, c = field
    stretched = matrix(a / h_x**2, b / (h_x * h_y), c / h_y**2, stencil).toarray()
    scale = min(h_y, h_x) ** -2
    assert_close(matrix(a, b, c, stencil, (h_y, h_x)).toarray(), stretched, scale)


@given(problems(image_shapes(2)))
def test_the_natural_boundary_leaves_the_ghost_cells_out(problem: Problem):
    interior = np.pad(np.ones(np.subtract(problem.image_shape, 1)), 1)
    expected = printed_matrix(*(entry * interior for entry in problem.unit_grid))
    assert_close(matrix(*problem, "natural").toarray(), expected, problem.scale)


def test_the_default_is_the_default_stencil_on_a_unit_grid_with_mirror_boundary():
    a, b, c = tensors_at(1.0, 0.2, np.random.default_rng(0).uniform(0, np.pi, (5, 6)))
    explicit = matrix(a, b, c, aniso.DeltaStencil(0.4, 1.0), 1.0, "mirror")
    assert_close(matrix(a, b, c).toarray(), explicit.toarray())
    assert_close(entries(a, b, c), entries(a, b, c, aniso.DeltaStencil(0.4, 1.0), 1.0))


@pytest.mark.parametrize("dtype", [np.int64, np.float32, list])
def test_entries_of_any_real_kind_are_computed_in_double_precision(dtype):
    given_as = (lambda entry: entry.tolist()) if dtype is list else (lambda x: x.astype(dtype))
    a, b, c = (np.full((4, 5), entry) for entry in (2.0, -1.0, 3.0))
    result = matrix(*map(given_as, (a, b, c)))
    assert result.dtype == np.float64
    assert_close(result.toarray(), matrix(a, b, c).toarray())


def test_the_tensors_given_are_never_modified():
    given_tensors = constant_field(2.0, 1.0, 3.0, (3, 4))
    copies = [entry.copy() for entry in given_tensors]
    matrix(*given_tensors, aniso.DeltaStencil(), (2.0, 0.5))
    entries(*given_tensors)
    collapse_ghost_cells(*given_tensors)
    for entry, copy in zip(given_tensors, copies, strict=True):
        np.testing.assert_array_equal(entry, copy)


# --- equal forms


@given(tensor_fields(), delta_stencils())
def test_the_four_directions_add_up_to_the_tensor(field: Tensor, stencil):
    a, b, c = field
    directions = np.array([(1, 0), (1, 1), (0, 1), (-1, 1)]) / np.array([1, 2**0.5, 1, 2**0.5])[:, None]
    w = directional_weights(a, b, c, stencil.delta(a, b, c))
    total = np.einsum("kyx,ki,kj->ijyx", np.array(w), directions, directions)
    assert_close(total, np.array([[a, b], [b, c]]))


def four_diffusions(image, w0, w1, w2, w3):
    """Along each direction (flux ahead − flux behind)/distance, with fluxes w ∂u at midpoints."""
    u = mirrored(image)
    here = u[1:-1, 1:-1]

    def one_diffusion(ahead, behind, w_ahead, w_behind, distance):
        return (w_ahead * (ahead - here) / distance - w_behind * (here - behind) / distance) / distance

    edges_x = 0.5 * (w0[:-1] + w0[1:])
    edges_y = 0.5 * (w2[:, :-1] + w2[:, 1:])
    diagonal = 2**0.5
    return (
        one_diffusion(u[1:-1, 2:], u[1:-1, :-2], edges_x[:, 1:], edges_x[:, :-1], 1.0)
        + one_diffusion(u[2:, 2:], u[:-2, :-2], w1[1:, 1:], w1[:-1, :-1], diagonal)
        + one_diffusion(u[2:, 1:-1], u[:-2, 1:-1], edges_y[1:], edges_y[:-1], 1.0)
        + one_diffusion(u[2:, :-2], u[:-2, 2:], w3[1:, :-1], w3[:-1, 1:], diagonal)
    )


def six_directional_shares(corners, w0, w1, w2, w3):
    """What a cell adds to A u at its corners, by its differences along edges (x, y) and diagonals (↘, ↙).

    The factor ½ is the average over two cells for the edges, and the squared length √2 of the diagonals,
    which lie in one cell alone.
    """
    u00, u01, u10, u11 = corners
    top, bottom = 0.5 * w0 * (u01 - u00), 0.5 * w0 * (u11 - u10)
    left, right = 0.5 * w2 * (u10 - u00), 0.5 * w2 * (u11 - u01)
    falling, rising = 0.5 * w1 * (u11 - u00), 0.5 * w3 * (u10 - u01)
    return top + left + falling, right + rising - top, bottom - left - rising, -bottom - right - falling


@given(problems(), seeds)
def test_directional_six_difference_and_cell_forms_agree(problem: Problem, seed):
    image = random_image(problem.image_shape, seed)
    a, b, c, delta = problem.unit_grid
    by_matrix = printed_matrix(a, b, c, delta) @ image.ravel()

    corners = views.corners(mirrored(image))
    w = directional_weights(a, b, c, delta)
    six = six_directional_shares(corners, *w)
    zeta = weights.free_hourglass_weight(a, c, delta)
    three = cell.corner_shares(*cell.fluxes(*cell.modes(*corners), a, b, c, zeta))
    for form in (
        four_diffusions(image, *w),
        views.pixel_sums(*six),
        views.pixel_sums(*three),
        (problem.matrix @ image.ravel()).reshape(image.shape),
    ):
        assert_close(form.ravel(), by_matrix, problem.scale * abs(image).max())


@given(problems(image_shapes(2)), seeds)
def test_the_energy_is_a_sum_of_squares_over_cells(problem: Problem, seed):
    image = random_image(problem.image_shape, seed)
    a, b, c, delta = problem.unit_grid
    padded = mirrored(image)
    u00, u01, u10, u11 = padded[:-1, :-1], padded[:-1, 1:], padded[1:, :-1], padded[1:, 1:]
    x, y, z = (u01 - u00 + u11 - u10) / 2, (u10 - u00 + u11 - u01) / 2, (u11 - u10 - u01 + u00) / 2
    share = np.full(a.shape, 0.5)
    share[1:-1, 1:-1] = 1.0
    squares = share * (a * x**2 + 2 * b * x * y + c * y**2 + (a + c - 2 * delta) * z**2)
    energy = -image.ravel() @ (problem.matrix @ image.ravel())
    assert energy == pytest.approx(squares.sum(), rel=1e-12, abs=1e-12 * abs(squares).sum())


def test_the_modes_of_a_cell_are_orthonormal():
    modes = np.array(cell.modes(*np.eye(4)))
    assert_close(modes @ modes.T, np.eye(3))


def test_the_normal_derivative_is_exactly_zero_in_ghost_cells():
    x, y, z = cell.modes(*views.corners(mirrored(1e3 * random_image((5, 7), 0))))
    for side in (0, -1):
        assert not x[:, side].any()
        assert not y[side, :].any()
        assert not z[:, side].any()
        assert not z[side, :].any()


# --- what holds for every member


@given(problems())
def test_the_matrix_is_symmetric(problem: Problem):
    dense = problem.matrix.toarray()
    assert_close(dense, dense.T, problem.scale)


@given(problems(), st.sampled_from(["mirror", "natural"]))
def test_a_constant_image_stays_and_the_mean_is_kept(problem: Problem, boundary):
    dense = matrix(*problem, boundary).toarray()
    assert_close(dense.sum(axis=1), 0, problem.scale)
    assert_close(dense.sum(axis=0), 0, problem.scale)


@given(problems(), st.sampled_from(["mirror", "natural"]))
def test_the_matrix_is_negative_semidefinite(problem: Problem, boundary):
    dense = matrix(*problem, boundary).toarray()
    assert np.linalg.eigvalsh(dense).max() <= 1e-12 * problem.scale


@given(tensor_fields(), delta_stencils())
def test_the_hourglass_weight_is_what_delta_leaves(field: Tensor, stencil):
    a, b, c = field
    zeta = stencil.hourglass_weight(a, b, c)
    assert (zeta >= 0).all()
    assert_close(zeta, a + c - 2 * stencil.delta(a, b, c))


def test_the_hourglass_weight_is_never_negative_by_rounding():
    beyond = np.nextafter(1.0, 2.0)
    assert aniso.DeltaStencil(0.0, 1.0).hourglass_weight(1.0, beyond, 1.0) == 0
    assert aniso.DeltaStencil(0.0, beta=-1.0).hourglass_weight(1.0, -beyond, 1.0) == 0
    delta = aniso.FreeStencil(np.full((2, 2), beyond))
    assert (delta.hourglass_weight(np.ones((2, 2)), np.zeros((2, 2)), np.ones((2, 2))) == 0).all()


@pytest.mark.parametrize("distance", [1e-3, 1e-8, 1e-13])
def test_the_hourglass_weight_keeps_its_digits_near_one_half(distance):
    from fractions import Fraction

    alpha, a, b, c = 0.5 - distance, 0.7, 0.3, 0.9
    zeta = aniso.DeltaStencil(alpha, 0.5).hourglass_weight(a, b, c)
    exact = (1 - 2 * Fraction(alpha)) * (Fraction(a) + Fraction(c) - Fraction(b))
    assert zeta == pytest.approx(float(exact), rel=1e-14, abs=0)


@given(tensor_fields(image_shapes(2)), alphas, gammas)
def test_mirroring_and_transposing_the_problem_does_so_to_the_matrix(field: Tensor, alpha, gamma):
    a, b, c = field
    stencil = aniso.DeltaStencil(alpha, gamma)
    pixels = np.arange((a.shape[0] - 1) * (a.shape[1] - 1)).reshape(np.subtract(a.shape, 1))
    original = matrix(a, b, c, stencil).toarray()
    for turned, numbers in (
        ((a[::-1], -b[::-1], c[::-1]), pixels[::-1]),
        ((a[:, ::-1], -b[:, ::-1], c[:, ::-1]), pixels[:, ::-1]),
        ((c.T, b.T, a.T), pixels.T),
    ):
        order = numbers.ravel()
        assert_close(matrix(*turned, stencil).toarray(), original[np.ix_(order, order)])


def test_a_fixed_beta_is_not_mirror_equivariant_but_changes_its_sign():
    a, b, c = tensors_at(1.0, 0.1, np.random.default_rng(1).uniform(0, np.pi, (5, 5)))
    order = np.arange(16).reshape(4, 4)[::-1].ravel()
    turned = (a[::-1], -b[::-1], c[::-1])
    original = matrix(a, b, c, aniso.DeltaStencil(0.1, beta=0.7)).toarray()[np.ix_(order, order)]
    same, opposite = (matrix(*turned, aniso.DeltaStencil(0.1, beta=s)).toarray() for s in (0.7, -0.7))
    assert_close(opposite, original)
    assert abs(same - original).max() > 0.1


def test_the_law_tests_are_not_vacuous():
    """A matrix with the wrong sign of b, or without the factor ½ on diagonals, is detected."""
    a, b, c = tensors_at(1.0, 0.2, np.random.default_rng(3).uniform(0, np.pi, (5, 5)))
    problem = Problem(a, b, c, aniso.DeltaStencil(), 1.0)
    a, b, c, delta = problem.unit_grid
    right = problem.matrix.toarray()
    assert abs(right - printed_matrix(a, -b, c, delta)).max() > 0.1
    doubled = printed_stencil(a, b, c, delta)
    doubled[::2, ::2] *= 2
    assert abs(right - mirrored_matrix(doubled)).max() > 0.1
