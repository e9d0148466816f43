"""Functions of symmetric 3×3 matrices: as eigenvectors give them, also where eigenvalues are rounding."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from aniso.formulas import diffusivities
from aniso.formulas import volume_tensors as formulas
from aniso.formulas.predicted import squashed_volume
from aniso.formulas.symmetric import joined, reduced, split

tensors: Any = formulas

PLACES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
COUNT = 500
MINIMUM = 1e-3

#: Name → eigenvalues of matrices, largest about 1.
SPECTRA: dict[str, Any] = {
    "plate": (1.0, 0.0, 0.0),
    "line": (1.0, 1.0, 0.0),
    "ball": (1.0, 1.0, 1.0),
    "nearly a line": (1.0, 1.0 + 1e-6, 1e-7),
    "evenly spaced": (1.0, 0.5, 0.0),
    "nothing": (0.0, 0.0, 0.0),
    "any": None,
}
SCALES = (1e-20, 1e-9, 1e-3, 1.0, 30.0, 1e3, 1e6, 1e9, 1e17)


def spectrum(name, scale, seed):
    rng = np.random.default_rng(seed)
    given = SPECTRA[name]
    return scale * (rng.uniform(0, 1, (COUNT, 3)) if given is None else np.tile(given, (COUNT, 1)))


def rotations(seed, *, turned=True):
    random = np.random.default_rng(seed).normal(size=(COUNT, 3, 3))
    return np.linalg.qr(random)[0] if turned else np.broadcast_to(np.eye(3), (COUNT, 3, 3))


def assembled(values, vectors):
    return np.einsum("nij,nj,nkj->nik", vectors, values, vectors)


def entries(matrices, dtype=np.float64):
    return [matrices[:, i, j].astype(dtype) for i, j in PLACES]


def matrices(six):
    result = np.empty((COUNT, 3, 3))
    for (i, j), entry in zip(PLACES, six, strict=True):
        result[:, i, j] = result[:, j, i] = entry
    return result


def coherence(s):
    with np.errstate(divide="ignore"):
        return MINIMUM + (1 - MINIMUM) * np.exp(-((1 / s) ** 2))


#: Name → the formula with its parameters, and what it makes of eigenvalues in ascending order.
FORMULAS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    **{
        f"joint, {name}": (
            lambda *j, g=g, slope=slope: tensors.edge_enhancing_joint(*j, g, slope, 1.0),
            g,
        )
        for name, g, slope in (
            ("perona-malik", diffusivities.perona_malik_diffusivity, diffusivities.perona_malik_slope),
            ("charbonnier", diffusivities.charbonnier_diffusivity, diffusivities.charbonnier_slope),
            ("weickert", diffusivities.weickert_diffusivity, diffusivities.weickert_slope),
        )
    },
    "continuing": (
        lambda *j: tensors.edge_continuing(
            *j,
            diffusivities.charbonnier_diffusivity,
            diffusivities.charbonnier_slope,
            1.0,
        ),
        lambda mu: diffusivities.charbonnier_diffusivity(mu - mu[:, :1]),
    ),
    "coherence": (
        lambda *j: tensors.coherence_enhancing(*j, 1.0, MINIMUM),
        lambda mu: coherence(mu[:, -1:] - mu),
    ),
    "lines": (
        lambda *j: tensors.line_enhancing(*j, 1.0, MINIMUM),
        lambda mu: np.stack(
            [coherence(mu[:, 1] - mu[:, 0]), np.full(COUNT, MINIMUM), np.full(COUNT, MINIMUM)], 1
        ),
    ),
    "logistic": (squashed_volume, lambda mu: 1 / (1 + np.exp(-mu))),
}
every_formula = pytest.mark.parametrize("name", FORMULAS)
every_spectrum = pytest.mark.parametrize("kind", SPECTRA)


@pytest.mark.parametrize(
    ("name", "kind"),
    # Where the direction of least change is not unique, there is no line.
    [(n, k) for n in FORMULAS for k in SPECTRA if n != "lines" or k not in ("plate", "ball")],
)
@pytest.mark.parametrize("turned", [True, False], ids=["turned", "along the axes"])
def test_a_function_of_the_matrix(name, kind, turned):
    """By eigenvectors, in double precision."""
    formula, function = FORMULAS[name]
    for scale in (0.1, 1.0, 5.0):
        given = assembled(spectrum(kind, scale, 1), rotations(2, turned=turned))
        values, vectors = np.linalg.eigh(given)
        expected = assembled(function(values.clip(0)), vectors)
        np.testing.assert_allclose(matrices(formula(*entries(given))), expected, rtol=0, atol=2e-13)


@every_formula
@every_spectrum
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_eigenvalues_stay_within_0_and_1_whatever_is_rounding(name, kind, dtype):
    """Else the step size limit would not hold: rounding of 1e9, say, is far above a contrast of 1."""
    formula, _ = FORMULAS[name]
    for scale in SCALES[:5] if name == "logistic" else SCALES:
        for turned in (True, False):
            given = assembled(spectrum(kind, scale, 3), rotations(4, turned=turned))
            with np.errstate(all="raise", under="ignore"):
                result = matrices(formula(*entries(given, dtype)))
            eigenvalues = np.linalg.eigvalsh(result)
            slack = 300 * np.finfo(dtype).eps
            assert eigenvalues.min() >= -slack
            assert eigenvalues.max() <= 1 + slack


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4, 1e8, 1e16])
def test_edges_that_all_channels_share_are_no_structure_along_them(dtype, scale):
    """The two small eigenvalues are rounding of the large one, and count for nothing."""
    rng = np.random.default_rng(5)
    gradient = rng.normal(size=(COUNT, 3)) * np.sqrt(scale)
    gradient[:50, :2] = 0  # along an axis
    given = (gradient[:, :, None] * gradient[:, None, :]).astype(dtype)
    formula, _ = FORMULAS["joint, perona-malik"]
    eigenvalues = np.linalg.eigvalsh(matrices(formula(*entries(given, dtype))))
    assert abs(eigenvalues[:, 1:] - 1).max() < 20 * np.finfo(dtype).eps


@every_spectrum
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_parts_make_up_the_matrix(kind, dtype):
    for scale in SCALES[2:]:
        given = entries(assembled(spectrum(kind, scale, 6), rotations(7)), dtype)
        (isolated, pair, half_gap), p, c = split(*given)
        together = joined(isolated, pair, dtype(1), p, c)
        error = max(abs(a - b).max() for a, b in zip(together, given, strict=True))
        assert error <= 16 * np.finfo(dtype).eps * scale + 1e-16  # where eigenvalues coincide, x is set apart
        # C has the eigenvalues ± half gap, and 0 in the isolated direction.
        turning = np.linalg.eigvalsh(matrices(c)) / np.maximum(half_gap, 1e-30)[:, None].astype(float)
        if kind == "any":
            np.testing.assert_allclose(
                turning, np.tile([-1, 0, 1], (COUNT, 1)), atol=1e4 * np.finfo(dtype).eps
            )


def test_reduced_eigenvalues():
    pair, half_gap = np.array([5.0, 1.0, 0.2, 5.0]), np.array([1.0, 0.5, 0.1, 1e-18])
    apart, low, high, share = reduced(np.array([9.0, 0.5, 3.0, 0.0]), pair, half_gap, 1.0)
    np.testing.assert_allclose(apart, [8, 0, 2, 0])
    np.testing.assert_allclose(low, [3, 0, 0, 4])
    np.testing.assert_allclose(high, [5, 0.5, 0, 4])
    np.testing.assert_allclose(share, [1, 0.5, 0, 1])


JOINT = [name for name in FORMULAS if name.startswith("joint")]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("logistic", kind) for kind in SPECTRA),
        # Images have no structure that is equal in all directions, but where it is 0.
        *((name, kind) for name in JOINT for kind in SPECTRA if kind not in ("ball", "nothing")),
        # These look at the largest or least eigenvalue, which has a kink where it is double.
        *((name, "evenly spaced") for name in ("continuing", "coherence", "lines")),
    ],
)
@pytest.mark.parametrize("turned", [True, False], ids=["turned", "along the axes"])
def test_derivatives_where_eigenvalues_coincide_and_where_not(name, kind, turned):
    """Along random directions in the space of matrices, against difference quotients."""
    torch = pytest.importorskip("torch")
    formula, _ = FORMULAS[name]
    values = 0.5 + spectrum(kind, 1.0, 8)  # away from 0, where less would be no structure
    point = torch.tensor(np.array(entries(assembled(values, rotations(9, turned=turned)))))
    direction = torch.tensor(np.random.default_rng(10).normal(size=point.shape))
    weights = torch.tensor(np.random.default_rng(11).normal(size=point.shape))

    def weighted(six):
        return (weights * torch.stack(formula(*six))).sum(0)

    given = point.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(weighted(given).sum(), given)
    h = 1e-5
    quotient = (weighted(point + h * direction) - weighted(point - h * direction)) / (2 * h)
    torch.testing.assert_close((gradient * direction).sum(0), quotient, rtol=0, atol=1e-5)


class TestStrongStructures:
    """Single precision, structures 1e6 to 1e12 times the squared contrast: rounding must not steer."""

    SCALES = (1e6, 1e7, 1e8, 1e10, 1e12)

    @pytest.mark.parametrize("scale", SCALES)
    @pytest.mark.parametrize("kind", [(0.01, 0.8, 1.0), (0.01, 0.02, 1.0), (0.0, 0.999, 1.0)], ids=str)
    def test_across_them_the_least(self, scale, kind):
        vectors = rotations(5)
        given = assembled(np.tile(np.array(kind) * scale, (COUNT, 1)), vectors)
        result = matrices(tensors.coherence_enhancing(*entries(given, np.float32), 1.0, MINIMUM))
        across = vectors[:, :, -1]
        found = np.einsum("ni,nij,nj->n", across, result.astype(np.float64), across)
        assert abs(found - MINIMUM).max() < 1e-4

    @pytest.mark.parametrize("scale", SCALES)
    def test_a_plate_has_no_line(self, scale):
        given = assembled(np.tile(np.array([0.0, 0.0, scale]), (COUNT, 1)), rotations(6))
        result = matrices(tensors.line_enhancing(*entries(given, np.float32), 1.0, MINIMUM))
        assert abs(result - MINIMUM * np.eye(3)).max() < 1e-3
