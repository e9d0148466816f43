"""Problems whose answer is known in closed form, and two tables of what the stencil choice is worth."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import expm_multiply

import aniso
from aniso.samples import ring_pattern, ring_tensor
from aniso.stencil import matrix
from tests.laws.problems import (
    Eigenvalues,
    alphas,
    constant_field,
    delta_stencils,
    eigenvalue_pairs,
    image_shapes,
    spacings,
    tensors_at,
)

# --- second moments


def second_moments(image, spacing):
    """Σ x²u, Σ xyu and Σ y²u about the centre of the image; x along axis 1, y along axis 0."""
    h_y, h_x = np.broadcast_to(spacing, (2,))
    y, x = np.indices(image.shape) - np.array(image.shape).reshape(2, 1, 1) // 2
    y, x = y * h_y, x * h_x
    return (x * x * image).sum(), (x * y * image).sum(), (y * y * image).sum()


@settings(max_examples=50)
@given(
    eigenvalue_pairs(), st.floats(0, np.pi), delta_stencils(), spacings, st.integers(1, 6), st.floats(0.1, 1)
)
def test_a_bright_pixel_spreads_with_second_moments_of_twice_the_time_times_the_tensor(
    lambdas: Eigenvalues, angle, stencil, spacing, steps, fraction
):
    tensor = tensors_at(*lambdas, angle)
    size = 2 * steps + 3  # nothing reaches the boundary
    tau = fraction * 2 / aniso.stability.spectral_bound(stencil, *lambdas, spacing)
    generator = matrix(*constant_field(*tensor, (size, size)), stencil, spacing)
    image = np.zeros((size, size))
    image[size // 2, size // 2] = 1.0
    u = image.ravel()
    for _ in range(steps):
        u = u + tau * (generator @ u)
    moments = second_moments(u.reshape(size, size), spacing)
    expected = 2 * steps * tau * np.array(tensor)
    np.testing.assert_allclose(moments, expected, rtol=0, atol=1e-11 * abs(expected).max())


def test_a_bright_pixel_spreads_along_the_positive_diagonal_if_b_is_positive():
    generator = matrix(*constant_field(1.0, 0.9, 1.0, (5, 5)))
    image = np.zeros((5, 5))
    image[2, 2] = 1.0
    rate = (generator @ image.ravel()).reshape(5, 5)
    assert rate[1, 1] == rate[3, 3] > 0.5  # row and column grow together
    assert rate[1, 3] == rate[3, 1] < 0.2


# --- cosines


@given(
    image_shapes(1, 8),
    st.floats(0, 1),
    st.floats(0, 1),
    delta_stencils(),
    spacings,
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 1, exclude_max=True),
)
def test_cosines_are_eigenvectors_of_axis_parallel_tensors(shape, a, c, stencil, spacing, at_y, at_x):
    """Eigenvalue of −A: 4(aX + cY) − 8δXY with X = sin²(θx/2), Y = sin²(θy/2), θ = πk/n."""
    (height, width), (h_y, h_x) = shape, np.broadcast_to(spacing, (2,))
    theta_y, theta_x = (math.pi * int(at * n) / n for at, n in ((at_y, height), (at_x, width)))
    cosine = np.outer(
        np.cos(theta_y * (np.arange(height) + 0.5)), np.cos(theta_x * (np.arange(width) + 0.5))
    ).ravel()
    generator = matrix(*constant_field(a, 0.0, c, shape), stencil, spacing)
    x, y = math.sin(theta_x / 2) ** 2, math.sin(theta_y / 2) ** 2
    a, c = a / h_x**2, c / h_y**2
    delta = stencil.alpha * (a + c)
    eigenvalue = 4 * (a * x + c * y) - 8 * delta * x * y
    np.testing.assert_allclose(-(generator @ cosine), eigenvalue * cosine, rtol=0, atol=1e-12 * (1 + a + c))


@given(alphas, st.integers(2, 8))
def test_the_checkerboard_is_damped_by_the_hourglass_weight_alone(alpha, size):
    """Away from the boundary, A applied to it is −4ζ times it; at α = ½ nothing happens to it."""
    a, b, c = tensors_at(1.0, 0.3, 0.4)
    stencil = aniso.DeltaStencil(alpha, 0.5)
    board = (-1.0) ** np.indices((size + 2, size + 2)).sum(axis=0)
    rate = matrix(*constant_field(a, b, c, board.shape), stencil) @ board.ravel()
    zeta = (1 - 2 * alpha) * (a + c - 2 * 0.5 * abs(b))
    inside = rate.reshape(board.shape)[1:-1, 1:-1]
    np.testing.assert_allclose(inside, -4 * zeta * board[1:-1, 1:-1], rtol=0, atol=1e-12)


# --- a rotated Gaussian


def gaussian(covariance, size):
    y, x = np.indices((size, size)) - (size - 1) / 2
    inverse = np.linalg.inv(covariance)
    exponent = inverse[0, 0] * x**2 + 2 * inverse[0, 1] * x * y + inverse[1, 1] * y**2
    return np.exp(-0.5 * exponent) / (2 * np.pi * math.sqrt(np.linalg.det(covariance)))


@pytest.mark.parametrize(
    ("stencil", "errors"),
    [
        (aniso.DeltaStencil(0.0, 0.0), (0.0014, 0.033, 0.057)),
        (aniso.DeltaStencil(0.25, 1.0), (0.0054, 0.0057, 0.0023)),
        (aniso.DeltaStencil(0.4, 1.0), (0.0081, 0.0064, 0.0027)),
        (aniso.DeltaStencil(0.49, 1.0), (0.0097, 0.0079, 0.0029)),
    ],
    ids=str,
)
def test_a_gaussian_widens_by_twice_the_time_times_the_tensor(stencil, errors):
    """λ = (1, 0.01), covariance 9I at the start, time 50, at 0°, 22.5° and 45°; relative L2 errors."""
    size, time = 101, 50.0
    for degrees, printed in zip((0.0, 22.5, 45.0), errors, strict=True):
        a, b, c = tensors_at(1.0, 0.01, math.radians(degrees))
        before = gaussian(9 * np.eye(2), size)
        truth = gaussian(9 * np.eye(2) + 2 * time * np.array([[a, b], [b, c]]), size)
        generator = matrix(*constant_field(a, b, c, before.shape), stencil)
        after = expm_multiply(time * generator, before.ravel()).reshape(size, size)
        error = np.linalg.norm(after - truth) / np.linalg.norm(truth)
        unit_in_the_last_digit = 1e-3 if printed > 0.01 else 1e-4
        assert error == pytest.approx(printed, abs=0.51 * unit_in_the_last_digit)


def test_the_sign_of_b_follows_the_axes_of_the_array():
    """The mirrored tensor is wrong by a hundred per cent."""
    size, time = 101, 50.0
    a, b, c = tensors_at(1.0, 0.01, math.radians(45))
    before = gaussian(9 * np.eye(2), size)
    truth = gaussian(9 * np.eye(2) + 2 * time * np.array([[a, b], [b, c]]), size)
    for sign, low, high in ((1, 0.0, 0.01), (-1, 0.5, 2.0)):
        generator = matrix(*constant_field(a, sign * b, c, before.shape))
        after = expm_multiply(time * generator, before.ravel()).reshape(size, size)
        assert low <= np.linalg.norm(after - truth) / np.linalg.norm(truth) <= high


# --- rings


def test_the_ring_tensor_projects_on_circles():
    a, b, c = ring_tensor(129)
    y, x = np.indices((130, 130)) - 64.5
    np.testing.assert_allclose(a * x + b * y, 0, atol=1e-12)  # nothing along the radius
    np.testing.assert_allclose(b * x + c * y, 0, atol=1e-12)
    np.testing.assert_allclose(a + c, 1, rtol=1e-12)
    np.testing.assert_allclose(a * c - b**2, 0, atol=1e-12)


def test_the_ring_pattern_is_the_one_of_the_formula():
    y, x = np.indices((129, 129)) - 64.0
    r = np.hypot(x, y)
    wave = np.sin(0.5 * np.pi * r**2 / (2 * 60))
    expected = wave * (0.5 * np.tanh((60 - r) / 6) + 0.5)
    np.testing.assert_allclose(ring_pattern(129), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("stencil", "change"),
    [
        (aniso.DeltaStencil(0.0, 0.0), "0.443"),
        (aniso.DeltaStencil(0.0, 1.0), "0.120"),
        (aniso.DeltaStencil(0.25, 1.0), "0.069"),
        (aniso.DeltaStencil(0.4, 1.0), "0.038"),
        (aniso.DeltaStencil(0.44, 0.98), "0.033"),
        (aniso.DeltaStencil(0.49, 1.0), "0.0275"),
    ],
    ids=str,
)
def test_rings_that_should_stay_change_by_the_dissipation_of_the_stencil(stencil, change):
    """Time 20 in steps of ½; relative change where 12 < r < 50."""
    image, tau = ring_pattern(129), 0.5
    generator = matrix(*ring_tensor(129), stencil)
    u = image.ravel()
    for _ in range(40):
        u = u + tau * (generator @ u)
    y, x = np.indices(image.shape) - 64.0
    rings = (np.hypot(x, y) > 12) & (np.hypot(x, y) < 50)
    difference = u.reshape(image.shape) - image
    relative = np.linalg.norm(difference[rings]) / np.linalg.norm(image[rings])
    digits = len(change) - len("0.")
    assert f"{relative:.{digits}f}" == change
