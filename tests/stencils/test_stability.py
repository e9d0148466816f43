"""How large a step may be: the bounds hold, the sharp one is attained, steps within them are stable."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import aniso
from aniso.stability import (
    cell_bound,
    gershgorin_bound,
    image_bound,
    paper_bound,
    spectral_bound,
    stable_step,
)
from aniso.stencil import matrix
from oracles.printed_stencil import constant_stencil, on_unit_grid, periodic_norm
from tests.laws.problems import (
    MEMBERS_AT_THE_LIMITS,
    Eigenvalues,
    Problem,
    Tensor,
    alphas,
    delta_stencils,
    eigenvalue_pairs,
    expected_delta,
    gammas,
    image_shapes,
    problems,
    seeds,
    spacings,
    tensor_fields,
    tensors_at,
)

ROUNDING = 1 + 1e-12


def exact_norm(a, b, c, stencil, spacing=1.0, boundary="mirror"):
    """ρ(A) of a symmetric matrix, from all its eigenvalues."""
    dense = matrix(a, b, c, stencil, spacing, boundary).toarray()
    return abs(np.linalg.eigvalsh(dense)).max()


# --- the sharp bound


@given(problems(), st.sampled_from(["mirror", "natural"]))
def test_the_sharp_bound_is_never_exceeded(problem: Problem, boundary):
    bound = spectral_bound(problem.stencil, *problem.eigenvalue_bounds, problem.spacing)
    assert exact_norm(*problem, boundary) <= bound * ROUNDING


@given(st.data(), eigenvalue_pairs(), delta_stencils(), spacings)
def test_eigenvalues_below_the_bounds_are_covered(data, lambdas: Eigenvalues, stencil, spacing):
    """λ1 and λ2 bound the eigenvalues; no tensor has to attain them."""
    field: Tensor = data.draw(tensor_fields(bounds=lambdas))
    bound = spectral_bound(stencil, *lambdas, spacing)
    assert exact_norm(*field, stencil, spacing) <= bound * ROUNDING


def worst_field(stencil, lambdas: Eigenvalues, spacing, size=6):
    """Tensors that an adversary turns, cell by cell, against the fastest mode of the last ones."""
    rng = np.random.default_rng(0)
    angles = np.linspace(0, np.pi, 32, endpoint=False)
    angle = rng.choice(angles, (size + 1, size + 1))
    choices = on_unit_grid(*tensors_at(*lambdas, angles.reshape(-1, 1, 1)), spacing)
    zeta = choices[0] + choices[2] - 2 * expected_delta(*choices, stencil, spacing)
    largest = 0.0
    for _ in range(8):
        a, b, c = tensors_at(*lambdas, angle)
        values, vectors = np.linalg.eigh(matrix(a, b, c, stencil, spacing).toarray())
        largest = max(largest, -values[0])
        u = np.pad(vectors[:, 0].reshape(size, size), 1, mode="edge")
        u00, u01, u10, u11 = u[:-1, :-1], u[:-1, 1:], u[1:, :-1], u[1:, 1:]
        x, y, z = u01 - u00 + u11 - u10, u10 - u00 + u11 - u01, u11 - u10 - u01 + u00
        energy = choices[0] * x**2 + 2 * choices[1] * x * y + choices[2] * y**2 + zeta * z**2
        angle = angles[energy.argmax(axis=0)]
    return largest


@pytest.mark.parametrize("spacing", [1.0, (0.5, 1.25)])
@pytest.mark.parametrize("lambdas", [(1.0, 0.0), (1.0, 0.3), (1.0, 1.0)])
@pytest.mark.parametrize(
    "stencil",
    MEMBERS_AT_THE_LIMITS,
    ids=str,
)
def test_an_adversary_comes_close_to_the_bound_but_not_beyond(stencil, lambdas: Eigenvalues, spacing):
    bound = spectral_bound(stencil, *lambdas, spacing)
    largest = worst_field(stencil, lambdas, spacing)
    assert 0.8 * bound < largest <= bound * ROUNDING


def largest_periodic_norm(stencil, lambdas: Eigenvalues, spacing):
    """The largest ρ(A) of constant tensors on a periodic grid: a search over all angles."""

    def norm(angle):
        a, b, c = on_unit_grid(*tensors_at(*lambdas, angle), spacing)
        delta = expected_delta(a, b, c, stencil, spacing)
        return periodic_norm(constant_stencil(a, b, c, np.broadcast_to(delta, np.shape(a))))

    angles = np.linspace(0, np.pi, 64, endpoint=False)
    coarse = norm(angles)
    best = angles[coarse.argmax()]
    fine = minimize_scalar(
        lambda angle: -norm(np.array(angle)),
        bounds=(best - np.pi / 64, best + np.pi / 64),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return max(coarse.max(), -fine.fun)


@settings(max_examples=80)
@given(delta_stencils(), eigenvalue_pairs(), spacings)
def test_constant_tensors_on_periodic_grids_attain_the_sharp_bound(stencil, lambdas: Eigenvalues, spacing):
    bound = spectral_bound(stencil, *lambdas, spacing)
    assert largest_periodic_norm(stencil, lambdas, spacing) == pytest.approx(bound, rel=1e-6)


@settings(max_examples=30)
@given(st.floats(-1, 1), eigenvalue_pairs(), spacings)
def test_the_bound_of_a_free_stencil_is_attained_too(fraction, lambdas: Eigenvalues, spacing):
    h_y, h_x = np.broadcast_to(spacing, (2,))
    lambda1, lambda2 = lambdas
    # The largest constant δ that every tensor with these eigenvalues admits.
    long, short = max(h_y, h_x), min(h_y, h_x)
    limit = 0.5 * (lambda1 * short / long + lambda2 * long / short)
    delta = fraction * min(limit, 0.5 * (lambda1 + lambda2))
    bound = spectral_bound(aniso.FreeStencil(np.full((2, 2), delta)), *lambdas, spacing)
    a, b, c = on_unit_grid(*tensors_at(lambda1, lambda2, np.array([0.0, np.pi / 2])), spacing)
    delta = np.full(2, delta / (h_y * h_x))
    assert periodic_norm(constant_stencil(a, b, c, delta)).max() == pytest.approx(bound, rel=1e-6)


@given(delta_stencils(), eigenvalue_pairs(), st.floats(0.1, 10))
def test_the_sharp_bound_in_closed_form(stencil, lambdas: Eigenvalues, h):
    """4/h² · max(λ1, ζ_max), ζ_max = (1 − 2α)(λ1 + λ2 + max(0, −γ)(λ1 − λ2)), |β| in place of (1 − 2α)|γ|."""
    lambda1, lambda2 = lambdas
    slack = 1 - 2 * stencil.alpha
    oblique = max(0, -stencil.gamma) * slack if stencil.beta is None else abs(stencil.beta)
    zeta = slack * (lambda1 + lambda2) + oblique * (lambda1 - lambda2)
    assert spectral_bound(stencil, lambda1, lambda2, h) == pytest.approx(4 * max(lambda1, zeta) / h**2)


@given(st.floats(0.25, 0.5), st.floats(0, 1), eigenvalue_pairs())
def test_from_alpha_one_quarter_the_limit_is_that_of_one_dimension(alpha, gamma, lambdas: Eigenvalues):
    assert spectral_bound(aniso.DeltaStencil(alpha, gamma), *lambdas) == pytest.approx(4 * lambdas[0])


@given(delta_stencils(), st.floats(0.2, 5), st.floats(0.2, 5))
def test_isotropic_diffusion_on_unequal_spacing(stencil, h_y, h_x):
    """τ ≤ 1/(2·max(p1, (1 − 2α)(p1 + p2))) with p = 1/h², whatever γ and β."""
    p_y, p_x = h_y**-2, h_x**-2
    limit = 1 / (2 * max(p_y, p_x, (1 - 2 * stencil.alpha) * (p_y + p_x)))
    assert stable_step(aniso.Homogeneous(), stencil, (h_y, h_x)) == pytest.approx(limit)
    assert stable_step(aniso.EdgeEnhancing(), stencil, (h_y, h_x)) == pytest.approx(limit)


@given(alphas, gammas, eigenvalue_pairs(), st.floats(0.2, 5), st.floats(0.2, 5))
def test_the_sharp_bound_on_unequal_spacing(alpha, gamma, lambdas: Eigenvalues, h_y, h_x):
    (lambda1, lambda2), (p2, p1) = lambdas, sorted([h_y**-2, h_x**-2])
    if gamma >= 0:
        bracket = lambda1 * p1 + lambda2 * p2
    else:
        root = math.sqrt((p1 - p2) ** 2 + 4 * gamma**2 * p1 * p2)
        bracket = 0.5 * ((lambda1 + lambda2) * (p1 + p2) + (lambda1 - lambda2) * root)
    expected = 4 * max(lambda1 * p1, (1 - 2 * alpha) * bracket)
    stencil = aniso.DeltaStencil(alpha, gamma)
    assert spectral_bound(stencil, lambda1, lambda2, (h_y, h_x)) == pytest.approx(expected)


# --- the paper's theorem


@given(delta_stencils(), eigenvalue_pairs(), st.floats(0.2, 5))
def test_the_sharp_bound_never_exceeds_the_papers(stencil, lambdas: Eigenvalues, h):
    assert spectral_bound(stencil, *lambdas, h) <= paper_bound(stencil, *lambdas, h) * ROUNDING


@given(alphas, gammas, eigenvalue_pairs(), st.floats(0.2, 5))
def test_the_papers_corollary(alpha, gamma, lambdas: Eigenvalues, h):
    lambda1, lambda2 = lambdas
    divisor = 2 * (1 - alpha) * (lambda1 + lambda2)
    divisor += (1 - gamma * (1 - 2 * alpha)) * (lambda1 - lambda2)
    limit = h**2 / divisor
    assert 2 / paper_bound(aniso.DeltaStencil(alpha, gamma), *lambdas, h) == pytest.approx(limit)


@given(alphas, gammas, st.floats(0.2, 5))
def test_the_papers_homogeneous_case(alpha, gamma, h):
    stencil = aniso.DeltaStencil(alpha, gamma)
    assert 2 / paper_bound(stencil, 1.0, 1.0, h) == pytest.approx(h**2 / (4 * (1 - alpha)))


def test_the_well_known_limit_of_the_five_point_laplacian():
    stencil = aniso.DeltaStencil.named("standard")
    assert 2 / paper_bound(stencil, 1.0, 1.0) == 0.25
    assert 2 / spectral_bound(stencil, 1.0, 1.0) == 0.25


@given(alphas, st.floats(0.2, 5))
def test_the_papers_maximally_anisotropic_case_is_the_limit_of_one_dimension(alpha, h):
    stencil = aniso.DeltaStencil(alpha, 1.0)
    assert 2 / paper_bound(stencil, 1.0, 0.0, h) == pytest.approx(h**2 / 2)
    assert 2 / spectral_bound(stencil, 1.0, 0.0, h) == pytest.approx(h**2 / 2)


def test_the_papers_bound_is_not_strict_in_general():
    stencil = aniso.DeltaStencil(0.25, 1.0)
    assert 2 / spectral_bound(stencil, 1.0, 1.0) == pytest.approx(1 / 2)
    assert 2 / paper_bound(stencil, 1.0, 1.0) == pytest.approx(1 / 3)


@given(alphas, st.floats(0, 1), eigenvalue_pairs())
def test_the_paper_covers_a_fixed_beta_by_the_worse_sign(alpha, fraction, lambdas: Eigenvalues):
    beta = fraction * (1 - 2 * alpha)
    worse = paper_bound(aniso.DeltaStencil(alpha, -fraction), *lambdas)
    for sign in (1, -1):
        stencil = aniso.DeltaStencil(alpha, beta=sign * beta)
        assert paper_bound(stencil, *lambdas) == pytest.approx(worse)


def test_one_step_of_the_printed_proof_fails_but_the_theorem_holds():
    """The proof needs max M₊ = 2 max m₊. For λ = (1, 0), α = ½ it is 1 + √2 against 2."""
    angles = np.linspace(0, np.pi, 3601)
    a, b, c = tensors_at(1.0, 0.0, angles)
    delta = 0.5 * (a + c)

    def doubled_positive(*terms):
        return sum(term + abs(term) for term in terms)

    m_plus = 2 * (a + b + c - delta)
    big_plus = doubled_positive(a - delta, delta + b, c - delta)
    big_minus = doubled_positive(a - delta, delta - b, c - delta)
    assert m_plus.max() == pytest.approx(2, rel=1e-6)
    assert big_plus.max() == pytest.approx(1 + math.sqrt(2), rel=1e-6)
    assert big_minus.max() == pytest.approx(1 + math.sqrt(2), rel=1e-6)

    # A field that has both maxima around a pixel: there Gershgorin's value exceeds the theorem's.
    stencil = aniso.DeltaStencil(0.5)
    even = np.indices((10, 10)).sum(axis=0) % 2 == 0
    field = tensors_at(1.0, 0.0, np.where(even, np.pi / 8, -np.pi / 8))
    assert paper_bound(stencil, 1.0, 0.0) == pytest.approx(4.0)
    assert gershgorin_bound(*field, stencil) == pytest.approx(4.828, abs=5e-4)
    assert exact_norm(*field, stencil) <= spectral_bound(stencil, 1.0, 0.0) <= 4.0


# --- bounds for one image


@given(problems())
def test_the_bounds_of_an_image_are_never_exceeded(problem: Problem):
    norm = exact_norm(*problem)
    tolerance = 1e-12 * problem.scale
    assert norm <= cell_bound(*problem) + tolerance
    assert norm <= gershgorin_bound(*problem) + tolerance
    assert norm <= image_bound(*problem) + tolerance


@given(problems())
def test_the_bound_of_an_image_never_exceeds_that_of_its_eigenvalues(problem: Problem):
    general = spectral_bound(problem.stencil, *problem.eigenvalue_bounds, problem.spacing)
    tolerance = 1e-12 * problem.scale
    assert cell_bound(*problem) <= general + tolerance
    assert image_bound(*problem) <= general + tolerance
    smaller = min(cell_bound(*problem), gershgorin_bound(*problem))
    assert image_bound(*problem) == pytest.approx(smaller, rel=1e-12, abs=1e-14 * problem.scale)


@given(problems())
def test_gershgorins_value_is_the_largest_absolute_row_sum(problem: Problem):
    row_sums = abs(problem.matrix.toarray()).sum(axis=1)
    assert gershgorin_bound(*problem) == pytest.approx(row_sums.max(), abs=1e-11 * problem.scale)


@given(problems(image_shapes(2)))
def test_the_cell_bound_sums_the_norms_of_the_cells_alone(problem: Problem):
    """A cell alone: all others 0, its norm on its own corners from its eigenvalues."""
    a, b, c, delta = problem.unit_grid
    zeta = a + c - 2 * delta
    sums = np.zeros(problem.image_shape)
    height, width = problem.image_shape
    for y in range(height + 1):
        for x in range(width + 1):
            if 0 < y < height and 0 < x < width:
                tensor = [[a[y, x], b[y, x]], [b[y, x], c[y, x]]]
                norm = max(np.linalg.eigvalsh(tensor).max(), zeta[y, x])
            elif 0 < y < height:
                norm = c[y, x]
            else:
                norm = a[y, x] if 0 < x < width else 0.0
            sums[max(y - 1, 0) : y + 1, max(x - 1, 0) : x + 1] += norm
    assert cell_bound(*problem) == pytest.approx(sums.max(), abs=1e-11 * problem.scale)


def test_a_single_cell_attains_the_cell_bound():
    a = np.zeros((9, 9))
    a[4, 4] = 1.0
    assert image_bound(a, 0 * a, 0 * a) == pytest.approx(exact_norm(a, 0 * a, 0 * a, aniso.DeltaStencil()))


def test_the_bound_of_an_image_pays_where_strong_diffusion_is_rare():
    """One row of cells that diffuses along x: a pixel lies in two such cells, not in four."""
    a = np.zeros((9, 9))
    a[4] = 1.0
    field = a, 0 * a, 0 * a
    assert exact_norm(*field, aniso.DeltaStencil()) <= image_bound(*field)
    assert image_bound(*field) == pytest.approx(2.0)
    assert spectral_bound(aniso.DeltaStencil(), 1.0, 0.0) == pytest.approx(4.0)


# --- the step that follows


@settings(max_examples=50)
@given(problems(image_shapes(1, 7)), seeds)
def test_no_norm_grows_at_the_largest_stable_step(problem: Problem, seed):
    model = aniso.FixedTensor.from_entries(problem.a, problem.b, problem.c)
    tau = stable_step(model, problem.stencil, problem.spacing)
    if (
        tau * problem.scale > 1e12
    ):  # tensors without tangential part on the boundary: rounding is all there is
        assert abs(problem.matrix).max() <= 1e-12 * problem.scale
        return
    u = np.random.default_rng(seed).normal(size=np.prod(problem.image_shape))
    for _ in range(5):
        after = u + tau * (problem.matrix @ u)
        assert np.linalg.norm(after) <= np.linalg.norm(u) * ROUNDING
        u = after


@given(problems())
def test_the_step_of_given_tensors_follows_from_their_image_bound(problem: Problem):
    model = aniso.FixedTensor.from_entries(problem.a, problem.b, problem.c)
    bound = image_bound(*problem)
    step = stable_step(model, problem.stencil, problem.spacing)
    assert step == (pytest.approx(2 / bound) if bound > 0 else math.inf)


@pytest.mark.parametrize("spacing", [1.0, (0.5, 2.0)])
@pytest.mark.parametrize("name", aniso.DeltaStencil.names())
def test_beyond_the_largest_stable_step_homogeneous_diffusion_grows(name, spacing):
    stencil, one = aniso.DeltaStencil.named(name), np.ones((13, 13))
    norm = exact_norm(one, 0 * one, one, stencil, spacing)
    tau = stable_step(aniso.Homogeneous(), stencil, spacing)
    assert abs(1 - tau * norm) <= 1
    assert abs(1 - 1.05 * tau * norm) > 1


def test_nothing_diffuses_where_the_tensor_is_zero():
    still = aniso.FixedTensor.from_matrix(np.zeros((2, 2)), (5, 5))
    assert stable_step(still) == math.inf
    assert stable_step(still, aniso.DeltaStencil.named("standard"), (0.5, 2.0)) == math.inf
    assert stable_step(aniso.FixedTensor.from_matrix([[0.0]], (5,)), ndim=1) == math.inf
    assert spectral_bound(aniso.DeltaStencil(), 0.0, 0.0) == 0.0


@given(delta_stencils(), st.floats(0.2, 5), st.floats(0.01, 10))
def test_a_signal_has_the_limit_of_one_dimension(stencil, h, diffusivity):
    assert stable_step(aniso.Homogeneous(), stencil, h, ndim=1) == pytest.approx(h**2 / 2)
    model = aniso.FixedTensor.from_matrix([[diffusivity]], (6,))
    assert stable_step(model, stencil, h, ndim=1) == pytest.approx(h**2 / (2 * diffusivity))


def test_the_default_stencil_allows_the_step_of_one_dimension():
    assert stable_step(aniso.Homogeneous()) == 0.5
    assert stable_step(aniso.Homogeneous(), spacing=2.0) == 2.0


def test_the_bound_tests_are_not_vacuous():
    """Leaving ζ or λ1 out of the bound is noticed by problems like those above."""
    one = np.ones((9, 9))
    standard, centred = (aniso.DeltaStencil.named(name) for name in ("standard", "cell-centred"))
    assert exact_norm(one, 0 * one, one, standard) > 4.5
    along_x = Problem(one, 0 * one, 0 * one, centred, 1.0)
    assert exact_norm(*along_x) > 3.5
