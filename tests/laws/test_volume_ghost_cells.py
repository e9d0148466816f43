"""The outer cells of a volume: faces, edges and corners; and volumes that have hardly any other cells."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aniso
from aniso.stencil import SplitStencil
from aniso.volumes import collapse_ghost_cells, matrix
from oracles import volume_stencils as oracle
from tests.laws.problems import assert_close
from tests.laws.test_ghost_cells import line_matrix
from tests.laws.volume_problems import (
    COLLAPSE,
    VolumeProblem,
    as_given,
    random_field,
    volume_fields,
    volume_problems,
    volume_shapes,
    volume_spacings,
    volume_stencils,
)

#: All shapes with sides of 1 to 3 voxels.
SMALL = tuple(itertools.product((1, 2, 3), repeat=3))


def collapsed(field):
    return np.moveaxis(collapse_ghost_cells(as_given(field)), (0, 1), (3, 4))


def normals(cells):
    """Number of normal axes in every cell: 0 inside, 1 on faces, 2 on edges, 3 in corners."""
    outer = [np.isin(np.arange(n), (0, n - 1)) for n in cells]
    return sum(np.meshgrid(*(o.astype(int) for o in outer), indexing="ij"))


# --- collapsing


@given(volume_fields(volume_shapes(1, 4)))
def test_collapsing_is_the_schur_complement_and_leaves_the_inside_alone(field):
    actual, count = collapsed(field), normals(field.shape[:3])
    expected = oracle.collapsed(field)
    assert_close(actual[count == 0], field[count == 0])  # not equal: negative eigenvalues become 0
    for cell in np.argwhere((count == 1) | (count == 2)):
        place = tuple(cell)
        inner = [k for k in range(3) if cell[k] not in (0, field.shape[k] - 1)]
        block = np.ix_(inner, inner)
        assert_close(actual[place][block], expected[place][block], COLLAPSE)


@given(volume_fields(volume_shapes(1, 4)))
def test_collapsed_tensors_are_semidefinite_without_mixed_normal_entries_and_stay_as_they_are(field):
    once = collapsed(field)
    assert np.linalg.eigvalsh(once).min() >= -1e-14
    for cell in np.ndindex(field.shape[:3]):
        for k in range(3):
            if cell[k] in (0, field.shape[k] - 1):
                assert all(once[cell][k, other] == 0 for other in range(3) if other != k)
    assert_close(collapsed(once), once)


@pytest.mark.parametrize("normal", [0, 1, 2])
@pytest.mark.parametrize("ratio", [1.0, 1e-2, 1e-5])
def test_a_direction_almost_along_a_face_leaves_semidefinite_tensors(normal, ratio):
    """Where the normal entry is about as small as rounding, either all three entries are reduced or none."""
    smallest = 0.0
    for exponent in np.linspace(-19, -13, 241):
        v = np.array([1.0, ratio])
        v = np.insert(v, normal, 10 ** (exponent / 2))
        field = np.broadcast_to(np.outer(v, v), (4, 4, 4, 3, 3))
        smallest = min(smallest, np.linalg.eigvalsh(collapsed(field)).min())
    assert smallest >= -1e-15


def test_without_collapse_the_stencil_is_neither_symmetric_nor_conservative():
    field = random_field((3, 3, 3), 5)
    for literal in (oracle.delta_matrix(field, 0.4, 1.0), oracle.split_matrix(field, 0.4)):
        assert abs(literal - literal.T).max() > 0.05
        assert abs(literal.sum(axis=0)).max() > 0.05


def test_a_tensor_that_is_tangential_up_to_rounding_is_kept():
    """cos(90°) is 6e-17 in floating point: what mixed entries are then is rounding alone."""
    nearly = np.array([np.cos(np.pi / 2), 0.6, 0.8])
    exactly = np.array([0.0, 0.6, 0.8])
    for v, w in zip(itertools.permutations(nearly), itertools.permutations(exactly), strict=True):
        rough, exact = (np.broadcast_to(np.outer(u, u), (5, 5, 5, 3, 3)) for u in (v, w))
        assert_close(matrix(as_given(rough)).toarray(), matrix(as_given(exact)).toarray())


def test_single_precision_tensors_of_rank_one_are_accepted_and_stable():
    field = random_field((4, 3, 4), 9, "rank one").astype(np.float32)
    for stencil in (aniso.DeltaStencil(), aniso.DeltaStencil(0.0, 1.0), SplitStencil(0.0), SplitStencil(0.5)):
        assert np.linalg.eigvalsh(matrix(as_given(field), stencil).toarray()).max() < 1e-6


# --- degenerate sizes


@pytest.mark.parametrize("shape", SMALL, ids=str)
@pytest.mark.parametrize("stencil", [aniso.DeltaStencil(0.1, -0.7), SplitStencil(0.3)], ids=str)
def test_small_volumes_obey_the_laws(shape, stencil):
    for seed, kind in enumerate(("spread", "rank one", "extreme")):
        problem = VolumeProblem(random_field(shape, seed, kind, exact=seed > 0), stencil, (0.7, 1.2, 1.9))
        a = problem.dense
        assert a.shape == (np.prod(shape),) * 2
        assert_close(a, problem.expected, COLLAPSE * problem.scale)
        assert_close(a, a.T, problem.scale)
        assert_close(a.sum(axis=0), 0, problem.scale)
        assert np.linalg.eigvalsh(a).max() <= 1e-12 * problem.scale


@settings(max_examples=30)
@given(volume_problems(st.just((1, 1, 1))))
def test_a_single_voxel_never_changes(problem: VolumeProblem):
    np.testing.assert_array_equal(problem.dense, [[0.0]])


@settings(max_examples=40)
@given(st.sampled_from([0, 1, 2]), st.integers(2, 7), st.integers(0, 999), volume_stencils, volume_spacings)
def test_a_row_of_voxels_is_exact_one_dimensional_diffusion(axis, length, seed, stencil, spacing):
    """With what is left of the tensors when nothing flows sideways, mean of the four cells around the row."""
    shape = tuple(length if k == axis else 1 for k in range(3))
    problem = VolumeProblem(random_field(shape, seed), stencil, spacing)
    along = oracle.collapsed(problem.field)[..., axis, axis]
    midpoints = along.mean(axis=tuple(k for k in range(3) if k != axis))[1:-1]
    h = np.broadcast_to(spacing, (3,))[axis]
    assert_close(problem.dense, line_matrix(midpoints / h**2), problem.scale)


@settings(max_examples=40)
@given(
    st.sampled_from([0, 1, 2]),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.integers(0, 999),
    st.floats(0, 0.5),
    st.floats(-1, 1),
    st.tuples(*[st.floats(0.4, 2.5)] * 3),
)
def test_a_single_layer_is_the_stencil_of_images(axis, plane, seed, alpha, gamma, spacing):
    """The mean of the images below and above it, with what is left when nothing flows across the layer."""
    stencil = aniso.DeltaStencil(alpha, gamma)
    shape = (*plane[:axis], 1, *plane[axis:])
    problem = VolumeProblem(random_field(shape, seed), stencil, spacing)
    flat_spacing = tuple(h for k, h in enumerate(spacing) if k != axis)
    first, second = (k for k in range(3) if k != axis)
    expected = 0.0
    for side in (0, 1):
        layer = np.take(problem.field, side, axis)
        mixed = layer[..., :, axis]
        left = layer - mixed[..., :, None] * mixed[..., None, :] / layer[..., axis, axis, None, None]
        entries = left[..., second, second], left[..., first, second], left[..., first, first]
        expected = expected + 0.5 * aniso.stencil.matrix(*entries, stencil, flat_spacing).toarray()
    assert_close(problem.dense, expected, 10 * problem.scale)


def test_two_by_two_by_two_voxels_by_hand():
    """One interior cell with D = I and α = 0: the twelve edges of the cube, each from four cells."""
    field = np.broadcast_to(np.eye(3), (3, 3, 3, 3, 3))
    expected = np.zeros((8, 8))
    for p, q in itertools.combinations(range(8), 2):
        if bin(p ^ q).count("1") == 1:
            expected[[p, q], [q, p]] += 1
            expected[[p, q], [p, q]] -= 1
    assert_close(matrix(as_given(field), SplitStencil(0.0)).toarray(), expected)
