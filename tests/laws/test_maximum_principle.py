"""Where off-diagonals are nonnegative an explicit step creates no new extrema, elsewhere it does."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import aniso
from aniso.stencil import matrix
from oracles.printed_stencil import constant_stencil, on_unit_grid
from tests.laws.problems import (
    Tensor,
    alphas,
    delta_stencils,
    expected_delta,
    image_shapes,
    seeds,
    single_cell,
    spacings,
    tensor_fields,
    tensors_at,
)


def off_diagonals(a, b, c, stencil, spacing=1.0):
    """Entries between the corners of one cell that is alone in an image of 2×2 pixels."""
    dense = matrix(*single_cell(a, b, c), stencil, spacing).toarray()
    return dense[~np.eye(4, dtype=bool)]


@given(tensor_fields(st.just((1, 1))), delta_stencils(), spacings)
def test_is_nonnegative_where_no_off_diagonal_is_negative(field: Tensor, stencil, spacing):
    answer = stencil.is_nonnegative(*field, spacing)
    for index in np.ndindex(answer.shape):
        a, b, c = (float(entry[index]) for entry in field)
        smallest = off_diagonals(a, b, c, stencil, spacing).min()
        assert stencil.is_nonnegative(a, b, c, spacing) is bool(answer[index])
        if abs(smallest) > 1e-12:  # else the sign is rounding
            assert answer[index] == (smallest > 0)


@given(tensor_fields(st.just((1, 1))), delta_stencils(), spacings)
def test_is_nonnegative_matches_the_stencil_of_a_constant_tensor(field: Tensor, stencil, spacing):
    a, b, c = (entry[0, 0] for entry in field)
    unit = on_unit_grid(a, b, c, spacing)
    neighbours = np.delete(constant_stencil(*unit, expected_delta(*unit, stencil)).ravel(), 4)
    if abs(neighbours.min()) > 1e-12:
        assert stencil.is_nonnegative(a, b, c, spacing) == (neighbours.min() > 0)


def test_is_nonnegative_on_the_border_of_the_range():
    stencil = aniso.DeltaStencil.named("nonnegativity")
    assert stencil.is_nonnegative(1.0, 0.5, 0.5)
    assert stencil.is_nonnegative(1.0, -0.5, 0.5)
    assert not stencil.is_nonnegative(1.0, 0.5 + 1e-9, 0.5)
    assert stencil.is_nonnegative(0.1 + 0.2, 0.3, 0.3)
    assert stencil.is_nonnegative(0.0, 0.0, 0.0)


@given(alphas, st.floats(0.01, 100))
def test_is_nonnegative_along_a_diagonal_whatever_the_rounding(alpha, a):
    """With a = c = |b| and γ = 1 every α gives δ = a: the diagonal alone, nothing on the axes."""
    stencil = aniso.DeltaStencil(alpha, 1.0)
    assert stencil.is_nonnegative(a, a, a)
    assert stencil.is_nonnegative(a, -a, a)


@given(tensor_fields(image_shapes(2)), delta_stencils(), spacings, seeds)
def test_where_it_is_nonnegative_the_maximum_principle_holds(field: Tensor, stencil, spacing, seed):
    a, b, c = field
    fits = stencil.is_nonnegative(a, b, c, spacing)
    h_y, h_x = np.broadcast_to(spacing, (2,))
    # Elsewhere a tensor that is isotropic on this grid: δ = 2α ≤ 1, which every member with b = 0 has.
    field = np.where(fits, a, h_x**2), np.where(fits, b, 0), np.where(fits, c, h_y**2)
    assert stencil.is_nonnegative(*field, spacing).all()
    generator = matrix(*field, stencil, spacing)
    tau = 1 / max(abs(generator.diagonal()).max(), 1e-30)
    image = np.random.default_rng(seed).uniform(0, 1, generator.shape[0])
    after = image + tau * (generator @ image)
    assert image.min() - 1e-12 <= after.min()
    assert after.max() <= image.max() + 1e-12


def test_where_it_is_not_nonnegative_every_step_breaks_the_maximum_principle():
    a, b, c = (np.full((5, 5), entry) for entry in tensors_at(1.0, 0.0, np.pi / 8))
    stencil = aniso.DeltaStencil()
    assert not stencil.is_nonnegative(a, b, c).any()
    generator = matrix(a, b, c, stencil).toarray()
    row, column = np.unravel_index((generator - np.diag(np.diag(generator))).argmin(), generator.shape)
    spike = np.zeros(16)
    spike[column] = 1.0
    assert (spike + 1e-3 * generator @ spike)[row] < 0


LARGEST_RATIO = (1 + math.sqrt(2)) ** 2


@given(st.floats(1, LARGEST_RATIO - 1e-9), st.floats(0, np.pi))
def test_up_to_a_ratio_of_5_83_some_member_is_nonnegative_at_all_angles(ratio, angle):
    stencil = aniso.DeltaStencil.named("nonnegativity")
    assert stencil.is_nonnegative(*tensors_at(ratio, 1.0, angle))


@given(st.floats(LARGEST_RATIO + 1e-6, 1e3), delta_stencils())
def test_beyond_that_ratio_no_member_is_nonnegative_at_all_angles(ratio, stencil):
    assert not stencil.is_nonnegative(*tensors_at(ratio, 1.0, np.pi / 8))
    assert not stencil.is_nonnegative(*tensors_at(ratio, 1.0, 3 * np.pi / 8))
