"""The matrix of a volume: its literal definitions, and what holds for all stencils."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

import aniso
from aniso.stencil import SplitStencil
from aniso.volumes import matrix
from oracles import volume_stencils as oracle
from tests.laws.problems import alphas, assert_close, delta_stencils, seeds
from tests.laws.volume_problems import (
    COLLAPSE,
    VolumeProblem,
    as_given,
    random_field,
    split_stencils,
    volume_fields,
    volume_problems,
    volume_shapes,
    volume_stencils,
)

CUBE = (1, 1, 1) / np.sqrt(3)
STENCILS = (
    *(aniso.DeltaStencil(alpha, gamma) for alpha in (0.0, 0.25, 0.4, 0.5) for gamma in (-1.0, 0.0, 1.0)),
    aniso.DeltaStencil(0.0, beta=1.0),
    aniso.DeltaStencil(0.1, beta=-0.8),
    *(SplitStencil(alpha) for alpha in (0.0, 0.25, 0.4, 0.5)),
)
every_stencil = pytest.mark.parametrize("stencil", STENCILS, ids=str)


def dense(field, stencil=None, spacing=1.0):
    return matrix(as_given(field), stencil, spacing).toarray()


def constant(tensor, shape):
    return np.broadcast_to(tensor, (*(n + 1 for n in shape), 3, 3))


# --- the definitions


@settings(max_examples=40)
@given(volume_problems(stencils=split_stencils))
def test_19_points_are_the_splitting_into_nine_diffusions(problem: VolumeProblem):
    assert_close(problem.dense, problem.expected, COLLAPSE * problem.scale)


@settings(max_examples=60)
@given(volume_problems(stencils=delta_stencils()))
def test_27_points_are_the_seven_modes_of_every_cell(problem: VolumeProblem):
    assert_close(problem.dense, problem.expected, COLLAPSE * problem.scale)


@settings(max_examples=30)
@given(volume_fields(volume_shapes(1, 2)), alphas)
def test_the_nine_directions_add_up_to_the_tensor(field, alpha):
    """w_i = d_ii − δ_ij − δ_ik and δ_ij ± d_ij along unit vectors; with this δ, w_i = (1 − 2α)d_ii."""
    d = field[0, 0, 0]
    total = np.zeros((3, 3))
    for i, j in oracle.PLANES:
        (k,) = {0, 1, 2} - {i, j}
        delta = alpha * (d[i, i] + d[j, j] - d[k, k])
        for axis in (i, j):
            total[axis, axis] -= delta
        for sign in (1, -1):
            diagonal = np.zeros(3)
            diagonal[[i, j]] = 1, sign
            total += 0.5 * (delta + sign * d[i, j]) * np.outer(diagonal, diagonal)
    total += np.diag(np.diag(d))
    assert_close(total, d)


def neighbours(stencil):
    tensor = random_field((3, 3, 3), 3)[1, 1, 1]
    row = dense(constant(tensor, (5, 5, 5)), stencil).reshape((5,) * 6)[2, 2, 2]
    return np.argwhere(abs(row) > 1e-12) - 2


def test_the_points_are_27_and_19():
    assert len(neighbours(aniso.DeltaStencil())) == 27
    points = neighbours(SplitStencil())
    assert len(points) == 19
    assert abs(points).sum(axis=1).max() == 2  # no corner of the cube


def test_the_default_is_the_default_stencil_on_a_unit_grid():
    field = random_field((3, 2, 4), 0)
    assert_close(dense(field), dense(field, aniso.DeltaStencil(0.4, 1.0), 1.0))


def test_laplacians_by_hand():
    """D = I: standard differences for α = 0; for the nine diffusions at α = ½ only diagonals remain."""
    identity = constant(np.eye(3), (5, 5, 5))
    middle = (2, 2, 2)

    def weights(stencil):
        row = dense(identity, stencil).reshape((5,) * 6)[middle]
        return [row[place] for place in (middle, (2, 2, 3), (2, 3, 3), (3, 3, 3))]

    # Centre, axes, face diagonals, corners: 6 + 12·0, and 12 diagonals of ½·½.
    assert_close(weights(SplitStencil(0.0)), [-6, 1, 0, 0])
    assert_close(weights(SplitStencil(0.5)), [-3, 0, 0.25, 0])
    # Cell-centred gradients: products of (¼, ½, ¼) and (1, −2, 1).
    assert_close(weights(aniso.DeltaStencil(0.5)), [-1.5, -0.25, 0.125, 0.1875])


# --- what holds for all of them


@settings(max_examples=100)
@given(volume_problems())
def test_symmetric_with_row_sums_zero_and_negative_semidefinite(problem: VolumeProblem):
    a = problem.dense
    assert_close(a, a.T, problem.scale)
    assert_close(a.sum(axis=0), 0, problem.scale)
    assert np.linalg.eigvalsh(a).max() <= 1e-12 * problem.scale


@every_stencil
@pytest.mark.parametrize("spacing", [1.0, (0.6, 1.0, 1.9)], ids=str)
def test_semidefinite_for_every_kind_of_tensor(stencil, spacing):
    shape = (3, 4, 3)
    rng = np.random.default_rng(8)
    fields = [
        constant(np.outer(CUBE, CUBE), shape),
        constant(np.outer(CUBE, CUBE) * [[1, -1, 1], [-1, 1, -1], [1, -1, 1]], shape),
        random_field(shape, 1, "rank one"),
        random_field(shape, 2, "rank one", exact=True),
        random_field(shape, 3, "plates"),
        random_field(shape, 4, "extreme", exact=True),
        # The diagonals of the cube, another one in every cell.
        (lambda v: v[..., :, None] * v[..., None, :] / 3)(rng.choice([-1.0, 1.0], (4, 5, 4, 3))),
    ]
    for field in fields:
        a = dense(field, stencil, spacing)
        assert_close(a, a.T, 10)
        assert_close(a.sum(axis=1), 0, 10)
        assert np.linalg.eigvalsh(a).max() <= 1e-13 * 10


@settings(max_examples=30)
@given(volume_fields(), volume_stencils)
def test_equal_spacing_divides_by_its_square(field, stencil):
    assert_close(dense(field, stencil, 0.5), 4 * dense(field, stencil), 4)


@settings(max_examples=30)
@given(volume_problems())
def test_spacing_belongs_to_the_axes_in_their_order(problem: VolumeProblem):
    stretched = dense(oracle.on_unit_grid(problem.field, problem.spacing), problem.stencil)
    assert_close(problem.dense, stretched, COLLAPSE * problem.scale)


def test_all_stencils_agree_where_no_hourglass_is():
    """On products of linear functions with nothing mixed, only the tensor acts."""
    field = constant(random_field((1, 1, 1), 6)[0, 0, 0], (5, 5, 5))
    z, y, x = np.indices((5, 5, 5)) - 2.0
    plane = (2 * x - y + 3 * z).ravel()
    for stencil in STENCILS:
        inside = (dense(field, stencil) @ plane).reshape(5, 5, 5)[1:-1, 1:-1, 1:-1]
        assert_close(inside, 0, 10)


@every_stencil
def test_quadratics_are_differentiated_exactly(stencil):
    """div(D ∇ xᵀQx/2) = tr(DQ), whatever the stencil: the check of the signs of all mixed entries."""
    rng = np.random.default_rng(11)
    tensor = random_field((1, 1, 1), 7)[0, 0, 0]
    position = np.indices((5, 5, 5)) - 2.0
    for _ in range(3):
        q = rng.normal(size=(3, 3))
        q = q + q.T
        u = 0.5 * np.einsum("ijkl,im,mjkl->jkl", position, q, position)
        rate = (dense(constant(tensor, u.shape), stencil) @ u.ravel()).reshape(u.shape)
        assert_close(rate[1:-1, 1:-1, 1:-1], np.trace(tensor @ q), 100)


# --- the engine


@settings(max_examples=25)
@given(volume_problems(), seeds)
def test_a_step_of_the_reference_engine_is_the_matrix(problem: VolumeProblem, seed):
    image = np.random.default_rng(seed).normal(size=problem.shape)
    model = aniso.FixedTensor(problem.tensor)
    step = min(0.9 * aniso.stability.stable_step(model, problem.stencil, problem.spacing, 3), 1.0)
    result = aniso.diffuse(
        image,
        model,
        step,
        stencil=problem.stencil,
        spacing=problem.spacing,
        scheme=aniso.Explicit(step),
        engine="reference",
    )
    expected = image + step * (problem.expected @ image.ravel()).reshape(image.shape)
    assert_close(result, expected, 10)


# --- planes within volumes


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("stencil", [s for s in STENCILS if isinstance(s, aniso.DeltaStencil)], ids=str)
def test_on_volumes_constant_along_an_axis_it_is_the_stencil_of_images(stencil, axis):
    """D block-diagonal and constant along the axis: every slice gets what the image of it gets."""
    rng = np.random.default_rng(axis)
    shape, depth, plane_spacing, own_spacing = (4, 5), 3, (0.8, 1.3), 0.7
    plane = random_field((*shape, 1), 4, "rank one")[:, :, 0, :2, :2]
    cells = np.zeros((*plane.shape[:2], 3, 3))
    inner = [k for k in range(3) if k != axis]
    cells[..., axis, axis] = rng.uniform(size=plane.shape[:2])
    for (i, p), (j, q) in itertools.product(enumerate(inner), repeat=2):
        cells[..., p, q] = plane[..., i, j]
    field = np.stack([cells] * (depth + 1), axis)
    image = rng.normal(size=shape)
    volume = np.stack([image] * depth, axis)
    spacing = list(plane_spacing)
    spacing.insert(axis, own_spacing)
    flat = aniso.stencil.matrix(plane[..., 1, 1], plane[..., 0, 1], plane[..., 0, 0], stencil, plane_spacing)
    expected = np.stack([(flat @ image.ravel()).reshape(shape)] * depth, axis)
    actual = (dense(field, stencil, tuple(spacing)) @ volume.ravel()).reshape(volume.shape)
    assert_close(actual, expected, 10)


# --- input


@pytest.mark.parametrize("dtype", [np.int64, np.float32, list])
def test_tensors_of_any_real_kind_are_computed_in_double_precision(dtype):
    tensor = constant(np.array([[2.0, -1, 0], [-1, 3, 1], [0, 1, 2]]), (2, 3, 2))
    given = tensor.astype(np.float64 if dtype is list else dtype)
    given = as_given(given).tolist() if dtype is list else as_given(given)
    result = matrix(given)
    assert result.dtype == np.float64
    assert_close(result.toarray(), dense(tensor))


def test_the_tensors_given_are_never_modified():
    tensor = as_given(random_field((2, 3, 2), 1)).copy()
    before = tensor.copy()
    matrix(tensor, SplitStencil(), (2.0, 0.5, 1.0))
    aniso.volumes.cell_bound(tensor)
    aniso.volumes.collapse_ghost_cells(tensor)
    np.testing.assert_array_equal(tensor, before)


@pytest.mark.parametrize("stencil", STENCILS[-4:], ids=str)
def test_the_cell_of_the_splitting_has_the_modes_of_the_proof(stencil):
    """½{0, λ(D), λ(R), κ}: the mean gradient sees D, the hourglasses R = (1 − 2α)(tr D·I − 2·diag D) + D."""
    d, slack = random_field((1, 1, 1), 12)[0, 0, 0], 1 - 2 * stencil.alpha
    r = slack * (np.trace(d) * np.eye(3) - 2 * np.diag(np.diag(d))) + d
    parts = [0.0, *np.linalg.eigvalsh(d), *np.linalg.eigvalsh(r), slack * np.trace(d)]
    expected = 0.5 * np.sort(parts)
    assert_close(np.linalg.eigvalsh(oracle.split_cell_matrix(d, stencil.alpha)), expected)
