"""What is not noise: periodic structure, masked pixels, single photons."""

import numpy as np
import pytest

import aniso
from aniso import noise
from aniso.noise.correlation import blur_noise
from aniso.noise.impulses import look_for_impulses

Y, X = np.mgrid[:256, :256]
TRUTH = aniso.samples.shapes(256, noise=0.0).truth


def white(level, shape=(256, 256)):
    return np.random.default_rng(0).normal(0, level, shape)


PATTERNS = {
    "stripes": lambda period: 80 * np.sin(2 * np.pi * (0.8 * X + 0.6 * Y) / period),
    "lattice": lambda period: 60 * np.sin(2 * np.pi * X / period) * np.sin(2 * np.pi * Y / period),
}


@pytest.mark.parametrize("period", [8, 12, 20])
@pytest.mark.parametrize("name", PATTERNS)
def test_periodic_structure_is_not_correlated_noise(name, period):
    truth = 128 + PATTERNS[name](period)
    noisy = truth + white(10)
    found = noise.estimate(noisy)
    assert found.correlation == 0
    assert found.level < 12
    error = np.sqrt(np.mean((aniso.denoise(noisy) - truth) ** 2))
    assert error < 10


def coarse(correlation, strength=20.0):
    """Return a coarse pattern; its strength may be a number for each pixel."""
    return strength * blur_noise(white(1), correlation)


@pytest.mark.parametrize("correlation", [0.6, 1.0, 1.4])
def test_texture_is_stronger_in_some_regions_and_noise_is_not(correlation):
    image = 128 + coarse(correlation)
    assert noise.estimate(image).level == pytest.approx(20, rel=0.1)
    slow = blur_noise(np.random.default_rng(1).normal(size=image.shape), 10.0)
    texture = 128 + coarse(correlation, 20 * np.exp(0.7 * slow))
    found = noise.estimate(texture)
    assert found.certainty < 0.25 or found.level < 7
    result, plan = aniso.denoise(texture, return_info=True)
    assert np.sqrt(np.mean((result - texture) ** 2)) < 6
    assert found.certainty >= 0.25 or "in doubt" in plan.remark
    if correlation >= 1:  # it might be noise, though
        assert found.rejected is not None
        assert found.rejected.level > 7
        assert plan.expected_error > 0.6 * found.rejected.level
        assert "coarse noise of level" in plan.remark


@pytest.mark.parametrize("level", [5.0, 10.0])
def test_white_noise_on_coarse_texture_is_white(level):
    # Noise that was smoothed would have no white part.
    found = noise.estimate(128 + coarse(1.0, 15.0) + white(level))
    assert found.correlation == 0
    assert found.level == pytest.approx(level, rel=0.15)


@pytest.mark.parametrize("size", [32, 40, 64, 96])
def test_clean_rings_are_left_alone(size):
    rings = aniso.samples.rings(size, noise=0.0).image
    assert np.sqrt(np.mean((aniso.denoise(rings) - rings) ** 2)) < 3


@pytest.mark.parametrize("correlation", [0.5, 0.8, 1.2])
def test_correlated_noise_is_still_found(correlation):
    sampled = noise.Gaussian(20.0, correlation).sample(TRUTH, np.random.default_rng(0))
    assert noise.estimate(sampled).correlation == pytest.approx(correlation, abs=0.2)


@pytest.mark.parametrize("value", [0.0, -9999.0, 1e4, 1e20])
@pytest.mark.parametrize("share", [0.01, 0.05, 0.1, 0.3])
def test_scattered_masks(share, value):
    mask = np.random.default_rng(1).random(TRUTH.shape) < share
    noisy = np.where(mask, value, TRUTH + white(20))
    found = noise.estimate(noisy, mask=mask)
    assert found.level == pytest.approx(20, rel=0.12)
    assert found.certainty > 0.5


@pytest.mark.parametrize("shape", [(12, 24, 18), (13, 40)])
def test_scattered_masks_of_small_arrays(shape):
    random = np.random.default_rng(1)
    mask = random.random(shape) < 0.05
    found = noise.estimate(np.where(mask, 1000.0, 100 + random.normal(0, 10, shape)), mask=mask)
    assert 7.5 < found.level < 13


def test_denoise_with_scattered_masks():
    noisy = TRUTH + white(20)
    mask = np.random.default_rng(1).random(TRUTH.shape) < 0.1
    error = np.sqrt(np.mean((aniso.denoise(noisy, mask=mask) - TRUTH) ** 2))
    assert error < 4


@pytest.mark.parametrize("ratio", [10.0, 29.0, 31.0, 300.0, 3000.0])
def test_strong_read_noise(ratio):
    """Tables of few counts, and normal noise for strong read noise, agree with samples."""
    model = noise.PoissonGaussian(gain=2.0, offset=10.0, read_noise=2.0 * ratio)
    truth = np.full(400_000, 500.0 + 20 * ratio)
    stabilised = model.stabilise(model.sample(truth, np.random.default_rng(0)))
    assert stabilised.std() == pytest.approx(1, rel=0.02)
    standard_error = float(np.sqrt(model.variance(truth[0]) / truth.size))
    assert model.restore(np.array([stabilised.mean()]))[0] == pytest.approx(truth[0], abs=5 * standard_error)


def test_a_kind_that_does_not_fit():
    """White noise that is called photons has a large read noise, in counts."""
    noisy = TRUTH + np.random.default_rng(3).normal(0, 20, TRUTH.shape)
    error = np.sqrt(np.mean((aniso.denoise(noisy, noise="poisson") - TRUTH) ** 2))
    assert error < 4


@pytest.mark.parametrize("brightness", [0.02, 0.05, 0.1])
def test_single_photons_are_not_impulses(brightness):
    photons = noise.PoissonGaussian(gain=20.0, read_noise=1.0)
    sampled = photons.sample(brightness * TRUTH, np.random.default_rng(0))
    assert look_for_impulses([sampled[np.newaxis]]) is None


class TestTextureLikeNoise:
    """Texture in one half of an image, as coarse as the noise in all of it."""

    @staticmethod
    def scene(random, strength):
        texture = noise.Gaussian(1.0, 1.0).sample(np.zeros((256, 256)), random)
        scene = 30 + 180 * (0.5 + 0.5 * np.sin(Y / 40) * np.cos(X / 50))
        scene[:, 128:] += strength * texture[:, 128:]
        return np.maximum(scene, 5.0)

    @pytest.mark.parametrize("seed", range(3))
    def test_it_does_not_raise_the_level(self, seed):
        random = np.random.default_rng(seed)
        noisy = noise.Gaussian(12.0, 1.1).sample(self.scene(random, 17.0), random)
        found = noise.estimate(noisy)
        assert found.level == pytest.approx(12.0, rel=0.12)
        assert found.correlation == pytest.approx(1.1, abs=0.2)

    @pytest.mark.parametrize("seed", range(3))
    def test_coarse_speckle_is_not_taken_for_photons(self, seed):
        # The means of single blocks vary by a tenth.
        random = np.random.default_rng(seed)
        model = noise.Speckle(0.4, 1.0, correlation=1.1)
        assert noise.estimate(model.sample(self.scene(random, 10.0), random)).kind == "speckle"


@pytest.mark.parametrize("seed", range(3))
def test_photons_with_an_offset_and_read_noise_are_not_taken_for_speckle(seed):
    random = np.random.default_rng(seed)
    scene = 500 + 4 * TestTextureLikeNoise.scene(random, 0.0)
    model = noise.PoissonGaussian(gain=24.0, offset=500.0, read_noise=72.0)
    assert noise.estimate(model.sample(scene, random)).kind == "poisson"


def test_few_photons_without_a_scene_come_out_flat():
    # Of one mean, nobody can tell the kind; but zeros must not remain as specks.
    image = noise.PoissonGaussian(30.0).sample(np.full((192, 192), 100.0), np.random.default_rng(61))
    assert aniso.denoise(image).std() < 0.1 * image.std()
