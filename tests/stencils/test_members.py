"""Members of the family: δ is all that they decide, and the named ones are what they are called."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

import aniso
from aniso.stencil import entries, matrix
from oracles.printed_stencil import collapsed, constant_stencil, paper_delta
from oracles.quadrature import RULES, energy_matrix
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
    single_cell,
    tensor_fields,
    tensors_at,
)

named = aniso.DeltaStencil.named


# --- δ is all that a member decides


@given(tensor_fields(), alphas, gammas)
def test_a_free_stencil_with_the_delta_of_a_member_is_that_member(field: Tensor, alpha, gamma):
    a, b, c = collapsed(*field)
    free = aniso.FreeStencil(paper_delta(a, b, c, alpha, gamma).clip(max=0.5 * (a + c)))
    member = aniso.DeltaStencil(alpha, gamma)
    assert_close(matrix(a, b, c, free).toarray(), matrix(a, b, c, member).toarray())


@given(st.floats(0, 0.9), st.floats(0.05, np.pi / 2 - 0.05), st.floats(0.01, 0.5), st.floats(0, 1))
def test_alpha_and_beta_are_redundant_in_a_cell(anisotropy, angle, alpha, fraction):
    """Every pair on a line α(a + c) + βb = δ gives the same matrix, if one cell is all there is."""
    a, b, c = tensors_at(1.0, anisotropy, angle)
    field = single_cell(a, b, c)
    slope = (a + c) / b  # at least 2
    reach = (1 - 2 * alpha) / (slope - 2) if slope > 2 else np.inf
    shift = fraction * min(alpha, reach)
    one = aniso.DeltaStencil(alpha, beta=0.0)
    other = aniso.DeltaStencil(alpha - shift, beta=min(shift * slope, 1 - 2 * (alpha - shift)))
    assert one.delta(a, b, c) == pytest.approx(other.delta(a, b, c), rel=1e-12)
    assert_close(matrix(*field, one).toarray(), matrix(*field, other).toarray())


def test_as_rules_for_a_field_different_pairs_differ():
    """The pairs (¼, 0) and (0, ½) agree where a + c = 2b only."""
    one, other = aniso.DeltaStencil(0.25, beta=0.0), aniso.DeltaStencil(0.0, beta=0.5)
    same = tensors_at(1.0, 0.0, np.full((3, 3), np.pi / 4))
    assert_close(matrix(*same, one).toarray(), matrix(*same, other).toarray())
    different = tensors_at(1.0, 0.0, np.full((3, 3), np.pi / 8))
    assert abs(matrix(*different, one) - matrix(*different, other)).max() > 0.03


@given(tensor_fields(), st.floats(-1, 1))
def test_at_alpha_one_half_gamma_does_not_matter(field: Tensor, gamma):
    one, other = (matrix(*field, aniso.DeltaStencil(0.5, g)).toarray() for g in (0.0, gamma))
    assert_close(one, other)


@given(problems(), seeds)
def test_delta_in_ghost_cells_does_not_matter(problem: Problem, seed):
    a, _, c, delta = problem.unit_grid
    other = np.random.default_rng(seed).normal(size=delta.shape) * 10
    other[1:-1, 1:-1] = delta[1:-1, 1:-1]
    one, two = (aniso.FreeStencil(d.clip(max=0.5 * (a + c))) for d in (delta, other))
    unit = problem.unit_grid[:3]
    first, second = matrix(*unit, one).toarray(), matrix(*unit, two).toarray()
    assert_close(first, second, problem.scale + abs(other).max())


# --- the named members, against discretisations written down independently


@pytest.mark.parametrize("name", RULES)
@given(field=tensor_fields(image_shapes(2, 4)))
def test_a_named_member_is_the_energy_that_its_name_says(name, field: Tensor):
    """With tensors that vary from cell to cell; energies end at the outer pixels."""
    member = matrix(*field, named(name), boundary="natural")
    assert_close(member.toarray(), energy_matrix(*field, RULES[name]))


def test_every_name_is_known_and_tested():
    assert set(aniso.DeltaStencil.names()) == {*RULES, "nine-point", "quality"}


@pytest.mark.parametrize(
    ("name", "delta"),
    [
        ("standard", lambda a, b, c: 0 * a),
        ("nonnegativity", lambda a, b, c: abs(b)),
        ("forward-forward", lambda a, b, c: -b),
        ("forward-backward", lambda a, b, c: b),
        ("finite-elements", lambda a, b, c: (a + c) / 3),
        ("nine-point", lambda a, b, c: (a + c) / 6),
        ("cell-centred", lambda a, b, c: (a + c) / 2),
        ("quality", lambda a, b, c: 0.44 * (a + c) + 0.98 * 0.12 * abs(b)),
    ],
)
@given(field=tensor_fields())
def test_the_delta_of_a_named_member(name, delta, field: Tensor):
    assert_close(named(name).delta(*field), delta(*field))


def interior_stencil(a, b, c, stencil):
    """The 3×3 stencil of a constant tensor, read off the row of the middle pixel of 3×3 pixels."""
    return matrix(*constant_field(a, b, c, (3, 3)), stencil).toarray()[4].reshape(3, 3)


@given(tensor_fields(st.just((1, 1))), delta_stencils())
def test_a_constant_tensor_has_the_same_stencil_in_entries_matrix_and_print(field: Tensor, stencil):
    a, b, c = (entry[0, 0] for entry in field)
    expected = constant_stencil(a, b, c, stencil.delta(a, b, c))
    assert_close(interior_stencil(a, b, c, stencil), expected)
    assert_close(entries(*constant_field(a, b, c, (3, 3)), stencil)[:, :, 1, 1], expected)


def test_standard_is_central_mixed_differences():
    """a ∂xx + 2b ∂xy + c ∂yy with ∂xy = (u++ − u+− − u−+ + u−−)/4; rows are y, downwards."""
    a, b, c = 1.3, -0.4, 0.6
    xx = np.array([[0, 0, 0], [1, -2, 1], [0, 0, 0]])
    xy = np.array([[1, 0, -1], [0, 0, 0], [-1, 0, 1]]) / 4
    assert_close(interior_stencil(a, b, c, named("standard")), a * xx + 2 * b * xy + c * xx.T)


def test_finite_elements_have_the_bilinear_stencil_of_the_laplacian():
    expected = np.array([[1, 1, 1], [1, -8, 1], [1, 1, 1]]) / 3
    assert_close(interior_stencil(1.0, 0.0, 1.0, named("finite-elements")), expected)


def test_nine_point_is_the_nine_point_laplacian():
    expected = np.array([[1, 4, 1], [4, -20, 4], [1, 4, 1]]) / 6
    assert_close(interior_stencil(1.0, 0.0, 1.0, named("nine-point")), expected)


def test_cell_centred_is_the_rotated_laplacian():
    expected = np.array([[1, 0, 1], [0, -4, 0], [1, 0, 1]]) / 2
    assert_close(interior_stencil(1.0, 0.0, 1.0, named("cell-centred")), expected)


@given(st.floats(-1, 1))
def test_without_diagonals_homogeneous_diffusion_has_the_five_point_laplacian(gamma):
    expected = np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]])
    assert_close(interior_stencil(1.0, 0.0, 1.0, aniso.DeltaStencil(0.0, gamma)), expected)


@given(alphas, image_shapes(1, 9), seeds)
def test_homogeneous_diffusion_is_a_convolution_of_the_mirrored_image(alpha, shape, seed):
    """SciPy's mode "reflect" mirrors at the edges of the outer pixels."""
    image = np.random.default_rng(seed).normal(size=shape)
    one = np.ones(np.add(shape, 1))
    kernel = constant_stencil(1.0, 0.0, 1.0, 2 * alpha)
    result = matrix(one, 0 * one, one, aniso.DeltaStencil(alpha)) @ image.ravel()
    assert_close(result.reshape(shape), ndimage.convolve(image, kernel, mode="reflect"), 10)
