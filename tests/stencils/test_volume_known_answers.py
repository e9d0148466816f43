"""Volumes whose answer is known in closed form, and what the stencil choice is worth on shells."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aniso
from aniso.samples import shell_pattern, shell_tensor
from aniso.stencil import SplitStencil
from aniso.volumes import matrix
from tests.laws.problems import assert_close, seeds
from tests.laws.volume_problems import as_given, random_field, volume_shapes, volume_spacings, volume_stencils


def generator(tensor, shape, stencil, spacing=1.0):
    field = np.broadcast_to(tensor, (*(n + 1 for n in shape), 3, 3))
    return matrix(as_given(field), stencil, spacing)


@settings(max_examples=25)
@given(seeds, volume_stencils, volume_spacings, st.integers(1, 2), st.floats(0.1, 1))
def test_a_bright_voxel_spreads_with_second_moments_of_twice_the_time_times_the_tensor(
    seed, stencil, spacing, steps, fraction
):
    tensor = random_field((1, 1, 1), seed, "spread")[0, 0, 0]
    size = 2 * steps + 3  # nothing reaches the boundary
    lambdas = np.linalg.eigvalsh(tensor)
    tau = fraction * 2 / aniso.stability.spectral_bound(stencil, lambdas[2], lambdas[1], spacing, ndim=3)
    a = generator(tensor, (size,) * 3, stencil, spacing)
    u = np.zeros((size,) * 3)
    u[(size // 2,) * 3] = 1.0
    for _ in range(steps):
        u = u + tau * (a @ u.ravel()).reshape(u.shape)
    h = np.broadcast_to(spacing, (3,)).reshape(3, 1, 1, 1)
    position = (np.indices(u.shape) - size // 2) * h
    moments = np.einsum("izyx,jzyx,zyx->ij", position, position, u)
    np.testing.assert_allclose(moments, 2 * steps * tau * tensor, rtol=0, atol=1e-11 * steps * tau)


@settings(max_examples=60)
@given(volume_shapes(1, 5), st.tuples(*[st.floats(0, 1)] * 3), volume_stencils, volume_spacings, seeds)
def test_cosines_are_eigenvectors_of_axis_parallel_tensors(shape, diagonal, stencil, spacing, seed):
    """With s = sin²(θ/2), c = 1 − s per axis, the modes are products of these and of D, R and κ."""
    rng = np.random.default_rng(seed)
    theta = [math.pi * rng.integers(0, n) / n for n in shape]
    u = np.einsum(
        "i,j,k->ijk", *(np.cos(t * (np.arange(n) + 0.5)) for t, n in zip(theta, shape, strict=True))
    ).ravel()
    d = np.array(diagonal) / np.broadcast_to(spacing, (3,)) ** 2
    s = np.sin(np.array(theta) / 2) ** 2
    c = 1 - s
    slack, total = 1 - 2 * stencil.alpha, d.sum()
    # Without mixed entries R is diagonal: ζ_k for 27 points, slack·(tr D − 2d_kk) + d_kk for 19.
    if isinstance(stencil, SplitStencil):
        zeta, kappa = slack * (total - 2 * d) + d, slack * total
    else:
        zeta = slack * (total - d)
        kappa = zeta.mean()
    eigenvalue = 4 * kappa * s.prod()
    for k in range(3):
        i, j = (axis for axis in range(3) if axis != k)
        eigenvalue += 4 * (d[k] * s[k] * c[i] * c[j] + zeta[k] * c[k] * s[i] * s[j])
    a = generator(np.diag(diagonal), shape, stencil, spacing)
    assert_close(-(a @ u), eigenvalue * u, 10 * (1 + total))


@pytest.mark.parametrize("stencil", [aniso.DeltaStencil(0.1, 0.5), SplitStencil(0.2)], ids=str)
def test_checkerboards_are_damped_by_the_hourglass_weights_alone(stencil):
    tensor = random_field((1, 1, 1), 3)[0, 0, 0]
    d, slack = np.diag(tensor), 1 - 2 * stencil.alpha
    a = generator(tensor, (6, 6, 6), stencil)
    z, y, x = np.indices((6, 6, 6))
    if isinstance(stencil, SplitStencil):
        zeta, kappa = slack * (d.sum() - 2 * d) + d, slack * d.sum()
    else:
        mixed = np.array([tensor[1, 2], tensor[0, 2], tensor[0, 1]])
        zeta = slack * (d.sum() - d - 2 * 0.5 * abs(mixed))
        kappa = zeta.mean()
    boards = {0: y + x, 1: z + x, 2: z + y, None: z + y + x}
    for axis, sum_of_axes in boards.items():
        board = (-1.0) ** sum_of_axes
        rate = (a @ board.ravel()).reshape(board.shape)[1:-1, 1:-1, 1:-1]
        weight = kappa if axis is None else zeta[axis]
        assert_close(rate, -4 * weight * board[1:-1, 1:-1, 1:-1], 10)


def test_homogeneous_diffusion_spreads_like_a_gaussian():
    """Moments of the reference engine's result, in physical units."""
    u = np.zeros((15, 13, 17))
    u[7, 6, 8] = 1.0
    spacing = (1.0, 1.5, 0.8)
    result = aniso.diffuse(u, aniso.Homogeneous(), 0.5, spacing=spacing, engine="reference")
    position = (np.indices(u.shape) - np.array([7, 6, 8]).reshape(3, 1, 1, 1)) * np.reshape(
        spacing, (3, 1, 1, 1)
    )
    covariance = np.einsum("izyx,jzyx,zyx->ij", position, position, result)
    np.testing.assert_allclose(covariance, np.eye(3), rtol=0, atol=2e-3)  # the tails meet the boundary


# --- shells


def test_the_shell_tensor_projects_on_spheres():
    tensor = shell_tensor(9)
    position = np.indices((10, 10, 10)) - 4.5
    np.testing.assert_allclose(np.einsum("ijzyx,jzyx->izyx", tensor, position), 0, atol=1e-12)
    values = np.linalg.eigvalsh(np.moveaxis(tensor, (0, 1), (3, 4)))
    np.testing.assert_allclose(values, np.broadcast_to([0, 1, 1], values.shape), atol=1e-12)


def test_the_shell_pattern_is_the_one_of_the_formula():
    r = np.sqrt(((np.indices((49, 49, 49)) - 24.0) ** 2).sum(axis=0))
    expected = np.sin(0.5 * np.pi * r**2 / (2 * 24)) * (0.5 * np.tanh((24 - r) / 3) + 0.5)
    np.testing.assert_allclose(shell_pattern(49), expected, rtol=0, atol=1e-12)


def shell_change(stencil, steps):
    image = shell_pattern(49)
    a = matrix(shell_tensor(49), stencil)
    u = image.ravel()
    for _ in range(steps):
        u = u + 8.0 / steps * (a @ u)
    r = np.sqrt(((np.indices(image.shape) - 24.0) ** 2).sum(axis=0))
    shells = (r > 6) & (r < 19)
    return np.linalg.norm((u.reshape(image.shape) - image)[shells]) / np.linalg.norm(image[shells])


@pytest.mark.parametrize(
    ("stencil", "steps", "change"),
    [(aniso.DeltaStencil(0.4, 1.0), 18, "0.053"), (SplitStencil(0.4), 22, "0.268")],
    ids=str,
)
def test_shells_that_should_stay_change_by_the_dissipation_of_the_stencil(stencil, steps, change):
    """Time 8 in steps of 0.9 of the largest stable one; relative change where 6 < r < 19."""
    assert f"{shell_change(stencil, steps):.3f}" == change
