"""Symmetric 3×3 matrices: the split into an isolated eigenvalue and a pair, against numpy.linalg.eigh."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aniso.formulas.symmetric import isolated_root, joined, split
from oracles.eigenvector_volumes import cube_symmetries
from tests.laws.volume_problems import rotations

FRAMES = np.concatenate([rotations(np.random.default_rng(0), 200), np.array(cube_symmetries())])
SPECTRA = (
    (1.0, 1.0, 1.0),
    (1.0, 1.0, 0.0),
    (1.0, 0.0, 0.0),
    (0.0, 0.0, 0.0),
    (1.0, 0.5, 0.0),
    (3.0, 2.0, 1.0),
    (1.0, 1.0 - 1e-9, 0.0),
    (1.0, 1e-9, 0.0),
    (1.0, 1.0 - 1e-9, 1.0 - 2e-9),
    (1.0, 1e-12, 1e-24),
    (1.0, 1e-6, 1e-12),
    (5.0, -3.0, -4.0),
    (-1.0, -1.0, -2.0),
)
SCALES = (1e-12, 1e-6, 1.0, 1e6, 1e12)
#: By so little one eigenvalue is set apart where all three coincide, for the sake of derivatives.
APART = 1e-16


def entries(matrices):
    return [matrices[..., i, j] for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))]


def from_entries(xx, xy, yy, xz, yz, zz):
    return np.stack([np.stack(row, -1) for row in ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))], -2)


def matrices_with(spectrum, dtype=np.float64):
    made = np.einsum("nik,k,njk->nij", FRAMES, np.array(spectrum, float), FRAMES)
    return (0.5 * (made + made.swapaxes(1, 2))).astype(dtype)


def eigenvalues(matrices):
    """Descending, from the split."""
    (isolated, pair, half_gap), _, _ = split(*entries(matrices))
    return np.sort(np.stack([isolated, pair + half_gap, pair - half_gap], -1))[..., ::-1]


def test_the_root_of_the_cubic():
    r = np.linspace(0, 1, 1001)
    root, per_slope = isolated_root(r)
    np.testing.assert_allclose(root, 2 * np.cos(np.arccos(r) / 3), rtol=0, atol=1e-15)
    np.testing.assert_allclose(per_slope, 1 / (3 * root**2 - 3), rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("spectrum", SPECTRA, ids=str)
def test_eigenvalues_to_a_few_roundings_of_the_largest(spectrum, scale, dtype):
    matrices = matrices_with(scale * np.array(spectrum), dtype)
    exact = np.linalg.eigvalsh(matrices.astype(np.float64))[:, ::-1]
    norm = abs(exact).max()
    slack = 10 * np.finfo(dtype).eps * norm + APART
    found = eigenvalues(matrices)
    assert found.dtype == dtype
    assert abs(found - exact).max() <= slack


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("spectrum", SPECTRA, ids=str)
def test_the_parts_make_up_the_matrix(spectrum, scale):
    matrices = matrices_with(scale * np.array(spectrum))
    (isolated, pair, half_gap), p, c = split(*entries(matrices))
    again = from_entries(*joined(isolated, pair, 1.0, p, c))
    norm = abs(matrices).max() + 1e-18
    np.testing.assert_allclose(again, matrices, rtol=0, atol=1e-14 * norm + APART)
    projection, rest = from_entries(*p), from_entries(*c)
    if np.ptp(spectrum) > 1e-8:
        np.testing.assert_allclose(projection @ projection, projection, rtol=0, atol=1e-6)
        np.testing.assert_allclose(np.trace(projection, axis1=1, axis2=2), 1, rtol=0, atol=1e-14)
        np.testing.assert_allclose(rest @ projection, 0, rtol=0, atol=1e-6 * norm)
        size = np.sqrt((rest**2).sum(axis=(1, 2)) / 2)
        np.testing.assert_allclose(half_gap, size, rtol=0, atol=1e-14 * norm)


@pytest.mark.parametrize("spectrum", SPECTRA, ids=str)
def test_the_isolated_eigenvalue_is_no_closer_to_the_others_than_they_are_to_each_other(spectrum):
    (isolated, pair, half_gap), _, _ = split(*entries(matrices_with(spectrum)))
    assert (abs(isolated - pair) - half_gap >= 2 * half_gap - 1e-8).all()


FUNCTIONS = {
    "square": (lambda x: x * x, lambda s, r: s + r),
    "exponential": (lambda x: np.exp(-x), lambda s, r: -np.exp(-r) * relative_loss(s - r)),
    "inverse": (lambda x: 1 / (1 + x), lambda s, r: -1 / ((1 + s) * (1 + r))),
}


def relative_loss(x):
    return np.where(x > 0, -np.expm1(-x) / np.where(x > 0, x, 1), 1.0)


@settings(max_examples=100)
@given(st.lists(st.floats(0, 20), min_size=3, max_size=3), st.sampled_from(sorted(FUNCTIONS)), st.booleans())
def test_functions_of_matrices(spectrum, name, tied):
    """f(J) from f at the isolated eigenvalue, and from the mean and the slope of f over the pair."""
    if tied:
        spectrum = [spectrum[0], spectrum[0], spectrum[2]]
    f, slope = FUNCTIONS[name]
    matrices = matrices_with(spectrum)
    (isolated, pair, half_gap), p, c = split(*entries(matrices))
    high, low = pair + half_gap, pair - half_gap
    rise = slope(high, low)
    found = from_entries(*joined(f(isolated), 0.5 * (f(high) + f(low)), rise, p, c))
    expected = np.einsum("nik,k,njk->nij", FRAMES, f(np.array(spectrum)), FRAMES)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * max(1, abs(expected).max()))


@settings(max_examples=200)
@given(st.lists(st.floats(-1, 1), min_size=6, max_size=6), st.integers(-12, 12))
def test_any_matrix(values, exponent):
    matrix = 10.0**exponent * from_entries(*np.array(values))
    exact = np.linalg.eigvalsh(matrix)[::-1]
    slack = 10 * np.finfo(float).eps * abs(exact).max() + APART
    assert abs(eigenvalues(matrix) - exact).max() <= slack
