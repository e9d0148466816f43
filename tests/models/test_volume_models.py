"""Models in volumes: their tensors against eigenvectors, also where eigenvalues coincide."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aniso
from aniso import engines
from aniso.engines import reference
from oracles import eigenvector_volumes as oracle
from oracles.eigenvector_models import DIFFUSIVITIES
from tests.laws.volume_problems import rotations
from tests.registry import VOLUME_SAMPLES, colours, rational

SHAPE = (5, 4, 6)
SPACINGS = ((1.0, 1.0, 1.0), (1.5, 0.7, 1.0))
#: Where the mirrored volume is all boundary, and kernels are wider than the volume.
NARROW = ((1, 1, 1), (1, 1, 6), (1, 5, 4), (2, 3, 1), (2, 2, 2), (3, 1, 4))

every_spacing = pytest.mark.parametrize("spacing", SPACINGS, ids=str)
every_diffusivity = pytest.mark.parametrize("name", [*DIFFUSIVITIES, "callable"])
one_or_three = pytest.mark.parametrize("channels", [1, 3])


def volume(sample, channels=1, shape=SHAPE):
    return np.moveaxis(colours(VOLUME_SAMPLES[sample], shape, channels), -1, 0)


def as_matrices(entries):
    """xx, xy, yy, xz, yz, zz as (…, 3, 3) in the order z, y, x."""
    xx, xy, yy, xz, yz, zz = np.broadcast_arrays(*entries)
    return np.stack([np.stack(row, -1) for row in ((zz, yz, xz), (yz, yy, xy), (xz, xy, xx))], -2)


def as_entries(matrices):
    """The way back."""
    return [matrices[..., i, j] for i, j in ((2, 2), (2, 1), (1, 1), (2, 0), (1, 0), (0, 0))]


def assert_tensors_equal(model, image, spacing, expected, slack=1e-9):
    """Every cell, those on the boundary included."""
    problem = engines.Problem(model, aniso.DeltaStencil(), spacing)
    actual = as_matrices(reference.diffusion_tensor(image, problem))
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=slack)


# --- against eigenvectors


def functions(name):
    return (rational, rational) if name == "callable" else (name, DIFFUSIVITIES[name])


@every_spacing
@one_or_three
class TestAgainstEigenvectors:
    """On all samples."""

    @every_diffusivity
    @pytest.mark.parametrize(("contrast", "sigma"), [(8.0, 0.8), (20.0, 0.0)])
    def test_edge_enhancing(self, name, channels, spacing, contrast, sigma):
        own, g = functions(name)
        slack = 1e-6 if name == "callable" else 1e-9  # a difference quotient
        for sample in VOLUME_SAMPLES:
            image = volume(sample, channels)
            expected = oracle.edge_enhancing(image, spacing, contrast, sigma, g)
            assert np.ptp(expected[..., 0, 1]) > 0.01  # or the test would show little
            assert_tensors_equal(aniso.EdgeEnhancing(contrast, sigma, own), image, spacing, expected, slack)

    @every_diffusivity
    def test_edge_continuing(self, name, channels, spacing):
        own, g = functions(name)
        slack = 1e-4 if name == "callable" else 1e-9
        for sample in VOLUME_SAMPLES:
            image = volume(sample, channels)
            expected = oracle.edge_continuing(image, spacing, 8.0, 0.6, 0.9, g)
            assert_tensors_equal(aniso.EdgeContinuing(8.0, 0.6, 0.9, own), image, spacing, expected, slack)

    @pytest.mark.parametrize(("sigma", "rho", "eps"), [(0.5, 1.5, 1e-3), (0.0, 0.0, 0.1), (0.5, 2.0, 0.0)])
    @pytest.mark.parametrize("contrast", [4.0, 12.0])
    def test_coherence_enhancing(self, channels, spacing, contrast, sigma, rho, eps):
        for sample in VOLUME_SAMPLES:
            image = volume(sample, channels)
            model = aniso.CoherenceEnhancing(contrast, sigma, rho, eps)
            expected = oracle.coherence_enhancing(image, spacing, contrast, sigma, rho, eps)
            assert_tensors_equal(model, image, spacing, expected)
            model = aniso.CoherenceEnhancing(contrast, sigma, rho, eps, plates=False)
            expected = oracle.line_enhancing(image, spacing, contrast, sigma, rho, eps)
            assert_tensors_equal(model, image, spacing, expected)

    @every_diffusivity
    def test_perona_malik(self, channels, spacing, name):
        own, g = functions(name)
        for sample in VOLUME_SAMPLES:
            image = volume(sample, channels)
            expected = oracle.scalar(image, spacing, 9.0, 0.7, g)
            assert_tensors_equal(aniso.PeronaMalik(9.0, 0.7, own), image, spacing, expected)


@pytest.mark.parametrize("shape", NARROW, ids=str)
@pytest.mark.parametrize("sigma", [0.0, 1.5])
def test_narrow_volumes_against_eigenvectors(shape, sigma):
    image = volume("noise", 1, shape)
    spacing = (1.0, 1.2, 0.7)
    expected = oracle.edge_enhancing(image, spacing, 9.0, sigma, DIFFUSIVITIES["charbonnier"])
    assert_tensors_equal(aniso.EdgeEnhancing(9.0, sigma, "charbonnier"), image, spacing, expected)
    expected = oracle.coherence_enhancing(image, spacing, 6.0, sigma, 2.0, 0.01)
    assert_tensors_equal(aniso.CoherenceEnhancing(6.0, sigma, 2.0, 0.01), image, spacing, expected)


@pytest.mark.parametrize("shape", NARROW, ids=str)
def test_mixed_entries_vanish_exactly_on_the_boundary(shape):
    """On a face normal to an axis those with this axis; averaging over ρ keeps them 0."""
    for model in (aniso.EdgeEnhancing(9.0), aniso.CoherenceEnhancing(6.0, 0.5, 1.5)):
        structure = as_matrices(reference.structure_tensor(volume("noise", 2, shape), model, (1.0, 0.8, 1.3)))
        for axis in range(3):
            face = np.moveaxis(structure, axis, 0)[[0, -1]]
            for other in (k for k in range(3) if k != axis):
                assert (face[..., axis, other] == 0).all()


def test_edge_continuing_without_average_is_edge_enhancing():
    image = volume("edges")
    problem = [
        engines.Problem(model, aniso.DeltaStencil(), (1.0, 0.8, 1.2))
        for model in (
            aniso.EdgeContinuing(9.0, 0.5, 0.0, "perona-malik"),
            aniso.EdgeEnhancing(9.0, 0.5, "perona-malik"),
        )
    ]
    continuing, enhancing = (reference.diffusion_tensor(image, each) for each in problem)
    np.testing.assert_allclose(continuing, enhancing, rtol=0, atol=1e-12)


# --- eigenvalues that coincide, nearly or exactly

MODELS = {
    "edge, joint": (aniso.EdgeEnhancing(1.0, 0.0, "charbonnier"), 3),
    "edge, weickert, joint": (aniso.EdgeEnhancing(1.0), 3),
    "edge, continuing": (aniso.EdgeContinuing(1.0), 1),
    "coherence": (aniso.CoherenceEnhancing(1.0), 1),
    "coherence, lines only": (aniso.CoherenceEnhancing(1.0, plates=False), 1),
}
every_model = pytest.mark.parametrize("name", MODELS)


def rule(name):
    """What the model makes of μ1 ≥ μ2 ≥ μ3 in units of the contrast squared."""
    eps = 1e-3
    return {
        "edge, joint": lambda *mu: DIFFUSIVITIES["charbonnier"](np.array(mu)),
        "edge, weickert, joint": lambda *mu: DIFFUSIVITIES["weickert"](np.array(mu)),
        "edge, continuing": lambda *mu: DIFFUSIVITIES["charbonnier"](np.array(mu) - mu[2]),
        "coherence": lambda *mu: [oracle._coherence(mu[0] - m, 1.0, eps) for m in mu],
        "coherence, lines only": lambda a, b, c: [eps, eps, oracle._coherence(b - c, 1.0, eps)],
    }[name]


def diffusion(name, structure):
    model, channels = MODELS[name]
    return as_matrices(model.tensor_formula(channels, ndim=3)(*as_entries(structure)))


def structure_with(values, frames):
    return np.einsum("nik,k,njk->nij", frames, np.array(values, float), frames)


SPECTRA = (
    (2.0, 2.0, 2.0),
    (2.0, 2.0, 0.5),
    (2.0, 0.5, 0.5),
    (2.0, 0.0, 0.0),
    (2.0, 2.0, 0.0),
    (0.0, 0.0, 0.0),
    (3.0, 1.5, 0.0),
    (2.0, 2.0 - 1e-9, 0.5),
    (2.0, 0.5 + 1e-9, 0.5),
    (2.0, 1e-9, 0.0),
    (2.0, 2.0 - 1e-9, 2.0 - 2e-9),
    (40.0, 3.0, 1.0),
    (1e4, 1e4, 1.0),
    (1e4, 1.0, 1e-4),
)


@every_model
@pytest.mark.parametrize("spectrum", SPECTRA, ids=str)
def test_repeated_and_nearly_repeated_eigenvalues(name, spectrum):
    """Whatever the eigenvectors, D has them too, and the eigenvalues of the rule."""
    frames = np.concatenate([rotations(np.random.default_rng(1), 20), np.array(oracle.cube_symmetries())])
    structure = structure_with(spectrum, frames)
    expected = structure_with(rule(name)(*spectrum), frames)
    # Rounding of J itself is seen through the slope of the rule, at most about 1 per contrast squared.
    np.testing.assert_allclose(
        diffusion(name, structure), expected, rtol=0, atol=1e-12 + 1e-14 * max(spectrum)
    )


@every_model
def test_the_symmetries_of_the_cube_turn_tensors(name):
    rng = np.random.default_rng(5)
    structure = structure_with((4.0, 1.3, 0.2), rotations(rng, 10))
    straight = diffusion(name, structure)
    for matrix in oracle.cube_symmetries():
        turned = diffusion(name, matrix @ structure @ matrix.T)
        np.testing.assert_allclose(turned, matrix @ straight @ matrix.T, rtol=0, atol=1e-13)


@every_model
@pytest.mark.parametrize(
    "spectrum", [(2.0, 0.0, 0.0), (2.0, 2.0, 0.0), (2.0, 2.0, 2.0), (2.0, 0.4, 0.4)], ids=str
)
def test_noise_that_breaks_a_tie_changes_little(name, spectrum):
    """On a plate the two small eigenvalues coincide; which direction is least must not matter."""
    rng = np.random.default_rng(2)
    structure = structure_with(spectrum, rotations(rng, 200))
    noise = rng.normal(size=structure.shape)
    noisy = structure + 1e-9 * (noise + noise.swapaxes(1, 2))
    assert abs(diffusion(name, noisy) - diffusion(name, structure)).max() < 1e-6


@every_model
@settings(max_examples=60)
@given(st.lists(st.floats(0, 50), min_size=3, max_size=3), st.integers(0, 999))
def test_any_structure_against_eigenvectors(name, values, seed):
    spectrum = sorted(values, reverse=True)
    frames = rotations(np.random.default_rng(seed), 1)
    expected = structure_with(rule(name)(*spectrum), frames)
    actual = diffusion(name, structure_with(spectrum, frames))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-12)


@every_model
def test_no_tensor_exceeds_the_eigenvalues_that_the_step_limit_rests_on(name):
    model, _ = MODELS[name]
    rng = np.random.default_rng(9)
    frames = rotations(rng, 500)
    values = rng.uniform(size=(500, 3)) * 10.0 ** rng.integers(-3, 4, (500, 1))
    structure = np.einsum("nik,nk,njk->nij", frames, values, frames)
    eigenvalues = np.linalg.eigvalsh(diffusion(name, structure))
    lambda1, lambda2 = model.eigenvalue_bounds(3)
    assert eigenvalues.min() >= -1e-12
    assert eigenvalues[:, 2].max() <= lambda1 + 1e-12
    assert eigenvalues[:, 1].max() <= lambda2 + 1e-12


# --- what they do


def test_coherence_closes_a_hole_in_a_plate_and_a_gap_in_a_line():
    """Plates extend in both of their directions; the lines-only model leaves plates nearly alone."""
    plate = np.zeros((15, 15, 15))
    plate[6:9] = 100.0
    plate[6:9, 6:9, 6:9] = 0.0
    line = np.zeros((15, 15, 15))
    line[6:9, 6:9] = 100.0
    line[6:9, 6:9, 6:9] = 0.0

    def centre(image, plates):
        model = aniso.CoherenceEnhancing(contrast=3.0, sigma=0.7, rho=3.0, plates=plates)
        return aniso.diffuse(image, model, 8.0, engine="reference", scheme=aniso.FED(4))[7, 7, 7]

    assert centre(line, True) > 25
    assert centre(line, False) > 25
    assert centre(plate, True) > 25
    assert centre(plate, False) < 0.6 * centre(plate, True)


# --- rounding


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", DIFFUSIVITIES)
@pytest.mark.parametrize("strength", [10.0, 1e3, 1e5])
def test_rounding_does_not_pose_as_structure_along_a_strong_edge(name, dtype, strength):
    """Channels that agree have a J of rank one but for rounding, which must not slow diffusion."""
    gradient = (strength * np.random.default_rng(3).normal(size=(3, 20000))).astype(dtype)
    x, y, z = gradient
    entries = (x * x, x * y, y * y, x * z, y * z, z * z)
    grey = aniso.EdgeEnhancing(1.0, 0.0, name).tensor_formula(1, ndim=3)(*entries)
    joint = aniso.EdgeEnhancing(1.0, 0.0, name).tensor_formula(3, ndim=3)(*entries)
    continuing = aniso.EdgeContinuing(1.0, 0.0, 0.0, name).tensor_formula(1, ndim=3)(*entries)
    for actual in (joint, continuing):
        assert abs(np.array(actual) - np.array(grey)).max() <= 20 * np.finfo(dtype).eps


@pytest.mark.parametrize("name", ["edge, joint", "edge, weickert, joint", "edge, continuing"])
def test_in_single_precision_eigenvalues_stay_between_0_and_1(name):
    """Whatever the second eigenvalue is beside the largest, from rounding to its size."""
    rng = np.random.default_rng(4)
    count = 40000
    values = np.stack(
        [np.ones(count), 10.0 ** rng.uniform(-9, 0, count), 10.0 ** rng.uniform(-12, 0, count)], -1
    )
    values[:, 2] *= values[:, 1]
    values *= 10.0 ** rng.uniform(-2, 10, (count, 1))
    frames = rotations(rng, count)
    structure = np.einsum("nik,nk,njk->nij", frames, values, frames).astype(np.float32)
    eigenvalues = np.linalg.eigvalsh(diffusion(name, structure).astype(np.float64))
    assert eigenvalues.min() > -0.05
    assert eigenvalues.max() < 1.05
