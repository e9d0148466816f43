"""Bad stencils, tensors and spacings are refused: the message names the value and what to do."""

import contextlib
import math

import numpy as np
import pytest

import aniso
from aniso.stability import (
    cell_bound,
    gershgorin_bound,
    image_bound,
    paper_bound,
    spectral_bound,
    stable_step,
)
from aniso.stencil import collapse_ghost_cells, entries, matrix

ONE, ZERO = np.ones((4, 5)), np.zeros((4, 5))


@contextlib.contextmanager
def refused(kind, *parts):
    """This exception, with all these parts in its message."""
    with pytest.raises(kind) as caught:
        yield
    for part in parts:
        assert part in str(caught.value)


def changed(field, index, value):
    result = np.array(field, dtype=float)
    result[index] = value
    return result


# --- parameters of the stencil


@pytest.mark.parametrize("alpha", [0.6, -0.1, 0.5000001, math.inf, -math.inf])
def test_alpha_outside_its_range(alpha):
    with refused(ValueError, "alpha must lie in [0, 0.5]", f"got {alpha}", "not stable", "alpha=0.4"):
        aniso.DeltaStencil(alpha)


@pytest.mark.parametrize("gamma", [1.01, -1.5, math.inf])
def test_gamma_outside_its_range(gamma):
    with refused(ValueError, "gamma must lie in [-1, 1]", f"got {gamma}", "not stable", "gamma=1.0"):
        aniso.DeltaStencil(0.4, gamma)


@pytest.mark.parametrize(
    ("alpha", "beta", "limits"), [(0.4, 0.3, "[-0.2, 0.2]"), (0.0, -1.1, "[-1, 1]"), (0.5, 1e-9, "[0, 0]")]
)
def test_beta_outside_its_range(alpha, beta, limits):
    remedy = "Take |beta| ≤ 1 − 2·alpha, or gamma"
    with refused(
        ValueError, f"beta must lie in {limits} for alpha={alpha:g}", f"got {beta}", "not stable", remedy
    ):
        aniso.DeltaStencil(alpha, beta=beta)


@pytest.mark.parametrize("name", ["alpha", "gamma", "beta"])
def test_a_parameter_that_is_nan(name):
    with refused(ValueError, f"{name} must be a number, got nan"):
        aniso.DeltaStencil(**{name: math.nan})


@pytest.mark.parametrize("value", ["0.4", True, 0.4 + 0j, [0.4], np.array([0.4])], ids=repr)
@pytest.mark.parametrize("name", ["alpha", "gamma", "beta"])
def test_a_parameter_that_is_no_number(name, value):
    with refused(TypeError, f"{name} must be a number", repr(value), type(value).__name__):
        aniso.DeltaStencil(**{name: value})


def test_gamma_and_beta_together():
    with refused(ValueError, "gamma=0.5", "beta=0.1", "Leave one of them out"):
        aniso.DeltaStencil(0.4, 0.5, 0.1)


@pytest.mark.parametrize(
    ("alpha", "beta"),
    [(0.0, 1.0), (0.1, 0.8), (0.2, 0.6), (0.3, 0.4), (1 / 3, 1 / 3), (0.4, 0.2), (0.45, 0.1)],
)
def test_the_ends_of_the_range_are_accepted_whatever_the_rounding(alpha, beta):
    """1 − 2·0.4 is a little less than 0.2 in floating point."""
    for end in (beta, -beta):
        assert aniso.DeltaStencil(alpha, beta=end).beta == end


def test_a_name_that_is_not_known():
    with refused(ValueError, "'rotated'", *aniso.DeltaStencil.names()):
        aniso.DeltaStencil.named("rotated")


# --- a free stencil


@pytest.mark.parametrize("shape", [(), (5,), (1, 5), (2, 3, 4)])
def test_a_free_delta_that_is_not_given_over_cells(shape):
    with refused(ValueError, "(H+1, W+1)", f"got shape {shape}", "use DeltaStencil"):
        aniso.FreeStencil(np.zeros(shape))


def test_a_free_delta_with_nan():
    with refused(ValueError, "delta holds 1 values that are NaN", "index (2, 1)", "(nan)", "Replace them"):
        aniso.FreeStencil(changed(ZERO, (2, 1), math.nan))


@pytest.mark.parametrize("function", [matrix, entries])
def test_a_free_delta_of_another_shape_than_the_tensors(function):
    with refused(ValueError, "(4, 4)", "(4, 5)", "same cells"):
        function(ONE, ZERO, ONE, aniso.FreeStencil(np.zeros((4, 4))))


def test_a_free_delta_beyond_the_limit_of_stability():
    stencil = aniso.FreeStencil(changed(0.5 * ONE, (2, 3), 1.25))
    with refused(ValueError, "delta = 1.25", "cell (2, 3)", "(a + c)/2 = 1", "Take a smaller delta"):
        matrix(ONE, ZERO, ONE, stencil)


def test_a_free_delta_beyond_the_limit_on_unequal_spacing():
    """With h = (1, 2) the tensor I becomes diag(¼, 1), whose limit for δ/2 is ⅝."""
    at_the_limit = aniso.FreeStencil(np.full((4, 5), 1.25))
    matrix(ONE, ZERO, ONE, at_the_limit, (1.0, 2.0))
    with refused(ValueError, "exceeds (a + c)/2 = 0.625", "Take a smaller delta"):
        matrix(ONE, ZERO, ONE, aniso.FreeStencil(np.full((4, 5), 1.26)), (1.0, 2.0))


# --- tensors

TAKES_TENSORS = [matrix, entries, collapse_ghost_cells, image_bound, cell_bound, gershgorin_bound]
takes_tensors = pytest.mark.parametrize(
    "function", [*TAKES_TENSORS, aniso.FixedTensor.from_entries], ids=lambda function: function.__name__
)


@takes_tensors
def test_entries_of_different_shapes(function):
    with refused(ValueError, "must have the same shape", "a (4, 5)", "b (5, 4)", "c (4, 5)", "from_matrix"):
        function(ONE, ZERO.T, ONE)


@takes_tensors
@pytest.mark.parametrize("shape", [(), (5,), (1, 5), (5, 1), (0, 0), (2, 4, 5)])
def test_entries_that_are_not_given_over_cells(function, shape):
    one = np.ones(shape)
    with refused(ValueError, "(H+1, W+1)", f"got {shape}", "from_matrix"):
        function(one, 0 * one, one)


@takes_tensors
def test_a_tensor_that_is_not_semidefinite(function):
    """[[1, 2], [2, 1]] has the eigenvalues 3 and −1."""
    b = changed(ZERO, (1, 3), 2.0)
    with refused(
        ValueError,
        "cell (1, 3) is not positive semidefinite",
        "eigenvalue is -1 ",
        "a=1, b=2, c=1",
        "set negative eigenvalues to 0",
    ):
        function(ONE, b, ONE)


def test_the_worst_of_several_bad_tensors_is_named():
    a = changed(changed(ONE, (0, 1), -0.25), (2, 2), -0.5)
    with refused(ValueError, "cell (2, 2)", "eigenvalue is -0.5 "):
        matrix(a, ZERO, ONE)


def test_slightly_negative_eigenvalues_are_not_mistaken_for_rounding():
    with refused(ValueError, "cell (1, 1)", "-1e-09"):
        matrix(changed(ONE, (1, 1), -1e-9), ZERO, ONE)


@takes_tensors
@pytest.mark.parametrize("name", ["a", "b", "c"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_tensor_with_nan_or_infinity(function, name, value):
    tensor = {"a": ONE, "b": ZERO, "c": ONE}
    tensor[name] = changed(changed(tensor[name], (1, 2), value), (3, 0), value)
    with refused(ValueError, f"{name} holds 2 values", f"index (1, 2) ({value})", "Replace them"):
        function(*tensor.values())


@takes_tensors
@pytest.mark.parametrize("dtype", [bool, complex, object, str])
def test_a_tensor_that_does_not_hold_real_numbers(function, dtype):
    bad = ZERO.astype(dtype)
    with refused(TypeError, "b must have a real numeric dtype", f"got {bad.dtype}", "dtype=float"):
        function(ONE, bad, ONE)


def test_a_tensor_that_is_not_symmetric():
    tensor = np.zeros((2, 2, 4, 5))
    tensor[0, 0] = tensor[1, 1] = 1.0
    tensor[0, 1, 2, 3] = 0.25
    with refused(
        ValueError, "cell (2, 3) is not symmetric", "0.25 against 0.0", "(D + D.swapaxes(0, 1)) / 2"
    ):
        aniso.FixedTensor(tensor)
    aniso.FixedTensor((tensor + tensor.swapaxes(0, 1)) / 2)


@pytest.mark.parametrize("shape", [(), (4, 5), (2, 2), (2, 3, 4, 5), (2, 2, 4), (3, 3, 4, 5)])
def test_given_tensors_of_a_wrong_shape(shape):
    with refused(ValueError, "(2, 2, H+1, W+1)", f"got {shape}", "FixedTensor.from_matrix(D, shape)"):
        aniso.FixedTensor(np.zeros(shape))


def test_given_tensors_that_are_not_semidefinite():
    tensor = np.zeros((2, 2, 4, 5))
    tensor[1, 1, 3, 1] = -2.0
    with refused(ValueError, "cell (3, 1) is not positive semidefinite", "eigenvalue is -2 ", "a=-2"):
        aniso.FixedTensor(tensor)


def test_given_tensors_with_nan():
    tensor = np.zeros((2, 2, 4, 5))
    tensor[0, 0, 3, 1] = math.nan
    with refused(ValueError, "tensor holds 1 values", "index (0, 0, 3, 1) (nan)", "Replace them"):
        aniso.FixedTensor(tensor)
    tensor = np.zeros((2, 2, 4, 5))
    tensor[[0, 1], [1, 0], 0, 2] = math.nan
    with refused(ValueError, "tensor holds 2 values", "index (0, 1, 0, 2) (nan)", "Replace them"):
        aniso.FixedTensor(tensor)


def test_nan_is_not_called_asymmetric():
    tensor = np.zeros((2, 2, 4, 5))
    tensor[[0, 1], [1, 0], 0, 0] = math.nan
    tensor[0, 1, 2, 3] = 0.25
    with pytest.raises(ValueError, match=r"cell \(2, 3\) is not symmetric|NaN"):
        aniso.FixedTensor(tensor)


def test_a_constant_tensor_that_does_not_fit_the_image():
    with refused(ValueError, "(8, 8)", "2 × 2 matrix", "got shape (3, 3)"):
        aniso.FixedTensor.from_matrix(np.eye(3), (8, 8))


@pytest.mark.parametrize("boundary", ["periodic", "", None, True])
def test_a_boundary_that_is_not_known(boundary):
    with refused(ValueError, 'must be "mirror" or "natural"', f"got {boundary!r}"):
        matrix(ONE, ZERO, ONE, boundary=boundary)


# --- spacing


def takes_spacing(spacing):
    """Every function that takes a spacing, called with it."""
    stencil = aniso.DeltaStencil()
    return [
        lambda: matrix(ONE, ZERO, ONE, stencil, spacing),
        lambda: entries(ONE, ZERO, ONE, stencil, spacing),
        lambda: stencil.is_nonnegative(1.0, 0.0, 1.0, spacing),
        lambda: spectral_bound(stencil, 1.0, 1.0, spacing),
        lambda: paper_bound(stencil, 1.0, 1.0, spacing),
        lambda: image_bound(ONE, ZERO, ONE, stencil, spacing),
        lambda: cell_bound(ONE, ZERO, ONE, stencil, spacing),
        lambda: gershgorin_bound(ONE, ZERO, ONE, stencil, spacing),
        lambda: stable_step(aniso.Homogeneous(), stencil, spacing),
    ]


@pytest.mark.parametrize("spacing", [0, -1.0, (1.0, 0.0), (-2.0, 1.0), math.inf, (1.0, math.inf)])
def test_a_spacing_that_is_not_positive_and_finite(spacing):
    for call in takes_spacing(spacing):
        with refused(ValueError, "spacing must be positive and finite", f"got {spacing}", "spacing=1.0"):
            call()


@pytest.mark.parametrize("spacing", [math.nan, (1.0, math.nan)])
def test_a_spacing_that_is_nan(spacing):
    for call in takes_spacing(spacing):
        with refused(ValueError, "spacing must be a number, got nan", "spacing=1.0"):
            call()


@pytest.mark.parametrize("spacing", ["1.0", True, 1j, ("1", "2"), [None, 1.0]])
def test_a_spacing_that_is_no_number(spacing):
    for call in takes_spacing(spacing):
        with refused(TypeError, "spacing must be a number", "spacing=1.0"):
            call()


@pytest.mark.parametrize("spacing", [(1.0,), (1.0, 1.0, 1.0), ()])
def test_a_spacing_for_another_number_of_axes(spacing):
    for call in takes_spacing(spacing):
        with refused(ValueError, f"got {len(spacing)} values", f"{spacing}", "one value per axis"):
            call()


# --- bounds


@pytest.mark.parametrize("bound", [spectral_bound, paper_bound])
@pytest.mark.parametrize("lambdas", [(0.5, 1.0), (1.0, -0.1), (-1.0, -1.0), (math.inf, 1.0)])
def test_eigenvalues_that_are_no_bounds(bound, lambdas):
    first, second = lambdas
    with refused(
        ValueError, "lambda1 ≥ lambda2 ≥ 0", f"lambda1={first}", f"lambda2={second}", "Give upper bounds"
    ):
        bound(aniso.DeltaStencil(), *lambdas)


@pytest.mark.parametrize("bound", [spectral_bound, paper_bound])
def test_eigenvalues_that_are_no_numbers(bound):
    with refused(ValueError, "lambda1 must be a number, got nan", "largest eigenvalue"):
        bound(aniso.DeltaStencil(), math.nan, 0.0)
    with refused(TypeError, "lambda2 must be a number, got '0'", "smaller eigenvalue"):
        bound(aniso.DeltaStencil(), 1.0, "0")


def test_the_papers_theorem_does_not_cover_a_free_stencil():
    with refused(TypeError, "FreeStencil", "Use spectral_bound"):
        paper_bound(aniso.FreeStencil(ZERO), 1.0, 1.0)  # type: ignore[arg-type]


def test_the_papers_theorem_does_not_cover_unequal_spacing():
    with refused(ValueError, "equal spacing, got (1.0, 2.0)", "Use spectral_bound"):
        paper_bound(aniso.DeltaStencil(), 1.0, 1.0, (1.0, 2.0))  # type: ignore[arg-type]


@pytest.mark.parametrize("ndim", [0, 4, "2"])
def test_a_stable_step_for_other_than_signals_images_and_volumes(ndim):
    with refused(ValueError, "ndim must be 1 (a signal), 2 (an image) or 3 (a volume)", f"got {ndim!r}"):
        stable_step(aniso.Homogeneous(), ndim=ndim)


def test_tensors_symmetric_up_to_rounding_are_taken():
    for angle in np.linspace(0, 3, 50):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        tensor = aniso.FixedTensor.from_matrix(turn @ np.diag([1.0, 0.7]) @ turn.T, (4, 4)).tensor
        np.testing.assert_array_equal(tensor[0, 1], tensor[1, 0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: aniso.stability.stable_step("eed"),  # type: ignore[arg-type]
        lambda: aniso.stability.stable_step(aniso.EdgeEnhancing),  # type: ignore[arg-type]
        lambda: aniso.stability.stable_step(aniso.Homogeneous(), "standard"),  # type: ignore[arg-type]
        lambda: aniso.stability.spectral_bound("x", 1, 0),  # type: ignore[arg-type]
        lambda: aniso.stencil.matrix(np.eye(3), 0 * np.eye(3), np.eye(3), "standard"),  # type: ignore[arg-type]
        lambda: aniso.FreeStencil([["a"] * 3] * 3),
    ],
)
def test_what_is_no_model_or_stencil_is_called_so(call):
    with pytest.raises(TypeError, match=r"must (be|hold) .*got"):
        call()
