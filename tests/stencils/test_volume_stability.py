"""How large a step may be in volumes: bounds hold, are attained, and steps within them are stable."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aniso
from aniso.formulas.bounds import largest_split_weight
from aniso.stability import spectral_bound, stable_step
from aniso.stencil import SplitStencil
from aniso.volumes import cell_bound, matrix
from oracles import volume_stencils as oracle
from tests.laws.problems import (
    MEMBERS_AT_THE_LIMITS,
    Eigenvalues,
    alphas,
    delta_stencils,
    eigenvalue_pairs,
    gammas,
    seeds,
)
from tests.laws.volume_problems import (
    LATTICE,
    VolumeProblem,
    as_given,
    assembled,
    lattice_frames,
    literal_cell,
    rotations,
    split_stencils,
    volume_fields,
    volume_problems,
    volume_shapes,
    volume_spacings,
    volume_stencils,
)

ROUNDING = 1 + 1e-12
ENDS = tuple(itertools.product((0.0, np.pi), repeat=3))


def exact_norm(field, stencil, spacing=1.0):
    """ρ(A) from all eigenvalues."""
    return abs(np.linalg.eigvalsh(matrix(as_given(field), stencil, spacing).toarray())).max()


def periodic_norm(tensor, stencil, waves=ENDS):
    """The largest eigenvalue of −A over some waves on a periodic grid of unit spacing, D constant."""
    return oracle.symbol(oracle.constant_kernel(literal_cell(tensor, stencil)), waves).max()


# --- never exceeded


@settings(max_examples=100)
@given(volume_problems())
def test_the_bounds_are_never_exceeded_and_ordered(problem: VolumeProblem):
    norm = abs(np.linalg.eigvalsh(problem.dense)).max()
    by_cells = cell_bound(problem.tensor, problem.stencil, problem.spacing)
    for_all = spectral_bound(problem.stencil, *problem.eigenvalue_bounds, problem.spacing, ndim=3)
    assert norm <= by_cells + 1e-12 * problem.scale
    assert by_cells <= for_all + 1e-12 * problem.scale


@settings(max_examples=50)
@given(st.data(), eigenvalue_pairs(), volume_stencils, volume_spacings)
def test_eigenvalues_below_the_bounds_are_covered(data, lambdas: Eigenvalues, stencil, spacing):
    field = data.draw(volume_fields(volume_shapes(2, 4), bounds=lambdas))
    bound = spectral_bound(stencil, *lambdas, spacing, ndim=3)
    assert exact_norm(field, stencil, spacing) <= bound * ROUNDING


def worst_field(stencil, lambdas, spacing, size=4):
    """Tensors that an adversary turns, cell by cell, against the fastest mode of the last ones."""
    rng = np.random.default_rng(0)
    frames = np.concatenate([rotations(rng, 80), lattice_frames(rng, 80)])
    values = np.broadcast_to([lambdas[0], lambdas[1], lambdas[1]], (len(frames), 3))
    choices = assembled(values, frames)
    energy = np.array([literal_cell(oracle.on_unit_grid(tensor, spacing), stencil) for tensor in choices])
    chosen = rng.integers(0, len(choices), (size + 1,) * 3)
    largest = 0.0
    for _ in range(5):
        values, vectors = np.linalg.eigh(matrix(as_given(choices[chosen]), stencil, spacing).toarray())
        largest = max(largest, -values[0])
        u = np.pad(vectors[:, 0].reshape((size,) * 3), 1, mode="edge")
        corners = np.stack(
            [
                u[a : a + size + 1, b : b + size + 1, c : c + size + 1]
                for a, b, c in itertools.product((0, 1), repeat=3)
            ],
            -1,
        )
        form = np.einsum("zyxp,npq,zyxq->nzyx", corners, energy, corners, optimize=True)
        chosen = form.argmax(axis=0)
    return largest


#: The spacings alternate: each meets every stencil and all eigenvalues.
ADVERSARIES = [
    (stencil, lambdas, (1.0, (0.5, 1.25, 0.8))[(row + column) % 2])
    for row, stencil in enumerate([*MEMBERS_AT_THE_LIMITS, *map(SplitStencil, (0.0, 0.4, 0.5))])
    for column, lambdas in enumerate([(1.0, 0.0), (1.0, 0.3), (1.0, 1.0)])
]


@pytest.mark.parametrize(("stencil", "lambdas", "spacing"), ADVERSARIES, ids=str)
def test_an_adversary_comes_close_to_the_bound_but_not_beyond(stencil, lambdas: Eigenvalues, spacing):
    bound = spectral_bound(stencil, *lambdas, spacing, ndim=3)
    largest = worst_field(stencil, lambdas, spacing)
    sharp = isinstance(stencil, aniso.DeltaStencil) or (spacing == 1.0 and lambdas == (1.0, 1.0))
    assert (0.7 if sharp else 0.4) * bound < largest <= bound * ROUNDING


# --- attained


@settings(max_examples=60)
@given(delta_stencils(), eigenvalue_pairs(), st.floats(0, 1), volume_spacings)
def test_constant_tensors_on_periodic_grids_attain_the_bound(stencil, lambdas: Eigenvalues, third, spacing):
    """λ1 and λ2 in the plane of the two finest axes, turned as in the proof; λ3 across it plays no role."""
    lambda1, lambda2 = lambdas
    h = np.broadcast_to(spacing, (3,))
    coarse, fine2, fine1 = np.argsort(h)[::-1]
    p1, p2 = h[fine1] ** -2, h[fine2] ** -2
    slack = 1 - 2 * stencil.alpha
    oblique = slack * max(-stencil.gamma, 0) if stencil.beta is None else abs(stencil.beta)
    turned = 0.5 * math.atan2(2 * oblique * math.sqrt(p1 * p2), slack * (p1 - p2))
    norms = []
    for angle in (0.0, turned, -turned):
        v, w = np.zeros(3), np.zeros(3)
        v[[fine1, fine2]] = math.cos(angle), math.sin(angle)
        w[[fine1, fine2]] = -math.sin(angle), math.cos(angle)
        tensor = lambda1 * np.outer(v, v) + lambda2 * np.outer(w, w)
        tensor[coarse, coarse] = third * lambda2
        norms.append(periodic_norm(oracle.on_unit_grid(tensor, spacing), stencil))
    assert max(norms) == pytest.approx(spectral_bound(stencil, *lambdas, spacing, ndim=3), rel=1e-9)


@settings(max_examples=25)
@given(volume_stencils, eigenvalue_pairs(), seeds)
def test_no_wave_exceeds_the_bound(stencil, lambdas: Eigenvalues, seed):
    rng = np.random.default_rng(seed)
    frame = np.concatenate([rotations(rng, 1), lattice_frames(rng, 1)])
    values = np.broadcast_to([lambdas[0], lambdas[1], lambdas[1]], (2, 3))
    waves = np.concatenate([rng.uniform(-np.pi, np.pi, (200, 3)), ENDS])
    bound = spectral_bound(stencil, *lambdas, ndim=3)
    for tensor in assembled(values, frame):
        assert periodic_norm(tensor, stencil, waves) <= bound * ROUNDING


@settings(max_examples=40)
@given(alphas, gammas)
def test_the_largest_steps_of_the_identity(alpha, gamma):
    """1/(2·max(1, 2 − 4α)) for 27 points, 1/(2·max(2 − 2α, 3 − 6α)) for 19, attained by D = I."""
    stencils: dict[Any, float] = {
        aniso.DeltaStencil(alpha, gamma): 1 / (2 * max(1, 2 - 4 * alpha)),
        SplitStencil(alpha): 1 / (2 * max(2 - 2 * alpha, 3 - 6 * alpha)),
    }
    for stencil, limit in stencils.items():
        for model in (aniso.Homogeneous(), aniso.EdgeEnhancing(), aniso.CoherenceEnhancing()):
            assert stable_step(model, stencil, ndim=3) == pytest.approx(limit)
        assert 2 / periodic_norm(np.eye(3), stencil) == pytest.approx(limit)


@settings(max_examples=40)
@given(delta_stencils(), st.tuples(*[st.floats(0.3, 3)] * 3))
def test_isotropic_diffusion_on_unequal_spacing(stencil, spacing):
    """τ ≤ 1/(2·max(p1, (1 − 2α)(p1 + p2))) with p1 ≥ p2 the largest of 1/h², whatever γ and β."""
    _, p2, p1 = sorted(h**-2 for h in spacing)
    limit = 1 / (2 * max(p1, (1 - 2 * stencil.alpha) * (p1 + p2)))
    assert stable_step(aniso.EdgeEnhancing(), stencil, spacing, 3) == pytest.approx(limit)
    tensor = oracle.on_unit_grid(np.eye(3), spacing)
    assert 2 / periodic_norm(tensor, stencil) == pytest.approx(limit)


@given(delta_stencils(), eigenvalue_pairs(), st.floats(0.3, 3))
def test_27_points_have_the_bound_of_images(stencil, lambdas: Eigenvalues, h):
    in_images = spectral_bound(stencil, *lambdas, h)
    assert spectral_bound(stencil, *lambdas, h, ndim=3) == pytest.approx(in_images)


@pytest.mark.parametrize(
    "stencil", [aniso.DeltaStencil(), aniso.DeltaStencil(0.0, 0.0), SplitStencil()], ids=str
)
def test_beyond_the_limit_the_fastest_wave_grows(stencil):
    """The bound belongs to mirror boundaries too: with more voxels the norm comes as close as one likes."""
    limit = stable_step(aniso.Homogeneous(), stencil, ndim=3)
    size = 12
    wave = np.cos(np.pi * (size - 1) / size * (np.arange(size) + 0.5))
    flat = np.ones(size)
    best: float = 0.0
    for factors in itertools.product((wave, flat), repeat=3):
        u = np.einsum("i,j,k->ijk", *factors)
        field = np.broadcast_to(np.eye(3), (size + 1,) * 3 + (3, 3))
        after = (matrix(as_given(field), stencil) @ u.ravel()).reshape(u.shape)
        best = max(best, float(np.linalg.norm(after) / np.linalg.norm(u)))
    assert 0.95 * 2 / limit < best <= 2 / limit


# --- the nine diffusions: R = (1 − 2α)(tr D·I − 2·diag D) + D


def coupling(tensor, alpha):
    """R from its definition, offdiag(D) + diag(d_ii + d_jj − 2δ_ij), δ_ij = α(d_ii + d_jj − d_kk)."""
    d = np.diag(tensor)
    result = tensor - np.diag(d)
    for k in range(3):
        i, j = (axis for axis in range(3) if axis != k)
        result[k, k] = d[i] + d[j] - 2 * alpha * (d[i] + d[j] - d[k])
    return result


@settings(max_examples=40)
@given(alphas, seeds)
def test_the_coupling_is_what_the_proof_says(alpha, seed):
    slack, rng = 1 - 2 * alpha, np.random.default_rng(seed)
    for frame in np.concatenate([rotations(rng, 5), lattice_frames(rng, 5)]):
        v = frame[:, 0]
        line = np.outer(v, v)
        for tensor in (line, np.eye(3) - line, assembled(rng.uniform(size=(1, 3)), frame[None])[0]):
            r = coupling(tensor, alpha)
            closed = slack * (np.trace(tensor) * np.eye(3) - 2 * np.diag(np.diag(tensor))) + tensor
            np.testing.assert_allclose(r, closed, rtol=0, atol=1e-14)
            assert np.linalg.eigvalsh(r).min() >= -1e-14
        assert np.linalg.eigvalsh(coupling(line, alpha)).max() <= 1 + slack / 3 + 1e-14
        assert np.linalg.eigvalsh(coupling(np.eye(3) - line, alpha)).max() <= 1 + slack + 1e-14


@given(alphas, eigenvalue_pairs())
def test_the_largest_coupling_is_that_of_a_line_along_the_diagonal_of_the_cube(alpha, lambdas: Eigenvalues):
    lambda1, lambda2 = lambdas
    v = np.ones(3) / math.sqrt(3)
    tensor = lambda2 * np.eye(3) + (lambda1 - lambda2) * np.outer(v, v)
    kappa = (1 - 2 * alpha) * np.trace(tensor)
    attained = max(np.linalg.eigvalsh(coupling(tensor, alpha)).max(), kappa)
    assert largest_split_weight(lambda1, lambda2, alpha) == pytest.approx(attained)
    # Plates whose normal is the diagonal of a face attain the bound of the identity.
    w = np.array([1, 1, 0]) / math.sqrt(2)
    plate = np.linalg.eigvalsh(coupling(np.eye(3) - np.outer(w, w), alpha)).max()
    assert plate == pytest.approx(2 - 2 * alpha)


@settings(max_examples=40)
@given(alphas, eigenvalue_pairs(), seeds)
def test_no_tensor_couples_more(alpha, lambdas: Eigenvalues, seed):
    rng = np.random.default_rng(seed)
    limit = largest_split_weight(*lambdas, alpha)
    frames = np.concatenate([rotations(rng, 20), lattice_frames(rng, len(LATTICE))])
    values = np.sort(rng.uniform(size=(len(frames), 3)), axis=1)[:, ::-1] ** 0.2
    values = values * [lambdas[0], lambdas[1], lambdas[1]]
    values[:, 0] = np.maximum(values[:, 0], values[:, 1])
    for tensor in assembled(values, frames):
        assert np.linalg.eigvalsh(coupling(tensor, alpha)).max() <= limit * ROUNDING


# --- what the bounds are for


@settings(max_examples=40)
@given(volume_problems(volume_shapes(1, 4)), seeds)
def test_no_norm_grows_at_the_largest_step(problem: VolumeProblem, seed):
    model = aniso.FixedTensor(problem.tensor)
    step = stable_step(model, problem.stencil, problem.spacing, 3)
    if step > 1e9:  # nothing but rounding diffuses
        return
    u = np.random.default_rng(seed).normal(size=int(np.prod(problem.shape)))
    a = problem.dense
    for _ in range(10):
        after = u + step * (a @ u)
        assert np.linalg.norm(after) <= np.linalg.norm(u) * ROUNDING
        u = after


def test_a_bound_for_given_tensors_pays_where_strong_diffusion_is_rare():
    field = np.broadcast_to(0.01 * np.eye(3), (9, 9, 9, 3, 3)).copy()
    field[4, 4, 4] = np.eye(3)
    assert cell_bound(as_given(field)) == pytest.approx(0.5 * (1 + 7 * 0.01))
    assert exact_norm(field, aniso.DeltaStencil()) <= cell_bound(as_given(field))
    assert spectral_bound(aniso.DeltaStencil(), 1.0, 1.0, ndim=3) == 4.0


@settings(max_examples=30)
@given(split_stencils, eigenvalue_pairs(), st.tuples(*[st.floats(0.3, 3)] * 3))
def test_the_bound_of_19_points_is_that_of_the_finest_axis(stencil, lambdas: Eigenvalues, spacing):
    finest = spectral_bound(stencil, *lambdas, min(spacing), ndim=3)
    assert spectral_bound(stencil, *lambdas, spacing, ndim=3) == pytest.approx(finest)
