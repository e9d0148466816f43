"""Noise, contrast and wavelength: near the truth, proportional to the image, undisturbed by noise."""

import numpy as np
import pytest

import aniso
from aniso import estimates


def noise(shape=(128, 128), level=1.0):
    return np.random.default_rng(3).normal(0, level, shape)  # the same in any order of the tests


@pytest.mark.parametrize("name", ["camera", "moon", "text", "coins"])
@pytest.mark.parametrize("level", [5.0, 20.0, 50.0])
def test_the_noise_level_is_found_in_photographs(name, level):
    photograph = aniso.samples.photograph(name)[:256, :256]
    assert estimates.noise_level(photograph + noise(photograph.shape, level)) == pytest.approx(level, rel=0.1)


def test_the_noise_level_of_an_image_without_noise_is_nearly_nothing():
    assert estimates.noise_level(aniso.samples.rings(noise=0.0).image) < 1
    assert estimates.noise_level(np.full((32, 32), 7.0)) == 0


def test_clipping_does_not_hide_the_noise():
    dark_half = np.where(np.arange(128) < 64, 0.0, 120.0)
    assert estimates.noise_level(np.clip(dark_half + noise(level=20.0), 0, 255)) == pytest.approx(
        20, rel=0.15
    )
    empty_background = np.where(np.arange(128) < 90, 0.0, 120 + noise(level=20.0))
    assert estimates.noise_level(empty_background) == pytest.approx(20, rel=0.15)


def test_the_noise_levels_of_channels_are_averaged_as_variances():
    channels = np.stack([noise(level=level) for level in (3.0, 4.0)], axis=-1)
    assert estimates.noise_level(channels, channel_axis=-1) == pytest.approx(np.sqrt(12.5), rel=0.1)


def test_signals_have_noise_too():
    assert estimates.noise_level(noise((4096,), 2.0)) == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("level", [0.0, 20.0, 80.0])
@pytest.mark.parametrize("period", [7.0, 12.0, 20.0])
def test_the_wavelength_is_found_at_any_noise(period, level):
    sample = aniso.samples.rings(160, period=period, noise=level)
    assert estimates.wavelength(sample.image) == pytest.approx(period, rel=0.08)


def test_the_wavelength_has_a_value_where_there_is_none():
    assert estimates.wavelength(np.zeros((16, 16))) == 8
    assert 4 <= estimates.wavelength(noise()) <= 128
    assert estimates.wavelength(np.zeros((16, 16)), spacing=0.5) == 4


def test_the_wavelength_is_a_length():
    image = aniso.samples.rings(128).image
    assert estimates.wavelength(image, spacing=2.5) == pytest.approx(2.5 * estimates.wavelength(image))


def test_the_contrast_of_a_ramp_is_its_slope():
    ramp = 3.0 * np.arange(64) + np.zeros((64, 1))
    assert estimates.contrast(ramp, sigma=1.0) == pytest.approx(3)
    assert estimates.contrast(ramp, sigma=1.0, rho=2.0, spacing=0.5) == pytest.approx(6, rel=0.05)


@pytest.mark.parametrize(("sigma", "rho"), [(1.0, 0.0), (1.0, 3.0)])
def test_the_contrast_hardly_feels_noise(sigma, rho):
    clean = aniso.samples.rings(noise=0.0).truth
    noisy = clean + noise(clean.shape, 30.0)
    options = {"sigma": sigma, "rho": rho}
    assert estimates.contrast(noisy, **options) == pytest.approx(
        estimates.contrast(clean, **options), rel=0.15
    )


@pytest.mark.parametrize(("sigma", "rho"), [(0.5, 2.0), (1.0, 0.0), (1.0, 4.0), (2.0, 2.0)])
def test_pure_noise_has_a_contrast_of_its_own_strength(sigma, rho):
    image = noise((256, 256), 10.0)
    gap = np.hypot(*_gap_entries(image, sigma, rho))
    assert estimates.contrast(image, sigma=sigma, rho=rho) ** 2 == pytest.approx(gap.mean(), rel=0.3)


def _gap_entries(image, sigma, rho):
    tensor = estimates.structure_tensor(image[np.newaxis], sigma, rho, (1.0, 1.0))
    return tensor[0, 0] - tensor[1, 1], 2 * tensor[0, 1]


@pytest.mark.parametrize("estimate", [estimates.noise_level, estimates.contrast])
@pytest.mark.parametrize("factor", [1 / 255, 257.0])
def test_noise_and_contrast_are_proportional_to_the_image(estimate, factor):
    image = aniso.samples.photograph("camera")[::4, ::4] + noise(level=10.0)
    assert estimate(factor * image) == pytest.approx(factor * estimate(image), rel=1e-9)


def test_the_wavelength_does_not_depend_on_the_grey_scale():
    image = aniso.samples.fingerprint(128).image
    assert estimates.wavelength(image / 255 + 7) == pytest.approx(estimates.wavelength(image), rel=1e-9)


class TestVolumes:
    @pytest.mark.parametrize("maker", [aniso.samples.fibres, aniso.samples.layers, aniso.samples.balls])
    @pytest.mark.parametrize("level", [5.0, 40.0])
    def test_the_noise_level(self, maker, level):
        # Layers are steep everywhere: what cannot be distinguished from noise is counted with it.
        truth = maker(48, noise=0.0).truth
        found = estimates.noise_level(truth + noise(truth.shape, level))
        assert found == pytest.approx(level, rel=0.1)

    @pytest.mark.parametrize("shape", [(40, 40, 40), (5, 90, 90), (2, 80, 80), (1, 90, 90)])
    def test_white_noise_is_found_without_bias_however_thin(self, shape):
        found = np.mean([estimates.noise_level(noise(shape, 10.0)) for _ in range(4)])
        assert found == pytest.approx(10, rel=0.04)

    def test_a_single_voxel_has_no_noise(self):
        assert estimates.noise_level(np.full((1, 1, 1), 7.0)) == 0

    @pytest.mark.parametrize("level", [0.0, 20.0, 60.0])
    def test_the_wavelength_of_waves(self, level):
        z, _, x = np.indices((40, 40, 40))
        wave = 100 * np.cos(2 * np.pi * (0.6 * z + 0.8 * x) / 9.0)
        assert estimates.wavelength(wave + noise(wave.shape, level)) == pytest.approx(9, rel=0.05)
        assert estimates.wavelength(wave, spacing=(2, 2, 2)) == pytest.approx(18, rel=0.05)

    def test_the_contrast_of_a_ramp_is_its_slope(self):
        z, _, x = np.indices((20, 20, 20))
        ramp = 3.0 * z + 4.0 * x
        assert estimates.contrast(ramp, quantile=0.9) == pytest.approx(5, rel=0.01)
        steep = estimates.contrast(ramp, spacing=(0.5, 1, 1), rho=1.0, quantile=0.9)
        assert steep == pytest.approx(np.hypot(6, 4), rel=0.05)

    @pytest.mark.parametrize(("sigma", "rho"), [(1.0, 0.0), (1.0, 3.0), (0.6, 2.0)])
    def test_the_contrast_hardly_feels_noise(self, sigma, rho):
        clean = aniso.samples.layers(40, noise=0.0).truth
        options = {"sigma": sigma, "rho": rho}
        noisy = estimates.contrast(clean + noise(clean.shape, 20.0), **options)
        assert noisy == pytest.approx(estimates.contrast(clean, **options), rel=0.15)

    @pytest.mark.parametrize(("sigma", "rho"), [(0.5, 2.0), (1.0, 0.0), (1.0, 2.0), (2.0, 2.0)])
    def test_pure_noise_has_a_contrast_of_its_own_strength(self, sigma, rho):
        volume = noise((48, 48, 48), 10.0)
        tensor = estimates.structure_tensor(volume[np.newaxis], sigma, rho, (1.0, 1.0, 1.0))
        values = np.linalg.eigvalsh(np.moveaxis(tensor, (0, 1), (-2, -1)))
        gap = (values[..., -1] - values[..., 0]).mean()
        assert estimates.contrast(volume, sigma=sigma, rho=rho) ** 2 == pytest.approx(gap, rel=0.3)

    def test_many_voxels_are_looked_at_in_part(self):
        clean = aniso.samples.layers(64, noise=0.0).truth
        quarter = estimates.contrast(clean[:32], rho=2.0, noise=0.0)
        assert estimates.contrast(clean, rho=2.0, noise=0.0) == pytest.approx(quarter, rel=0.1)


def test_bad_values_are_refused():
    image = np.zeros((8, 8))
    with pytest.raises(ValueError, match="noise must lie in"):
        estimates.contrast(image, noise=-1.0)
    with pytest.raises(ValueError, match="noise must be finite"):
        estimates.wavelength(image, noise=np.inf)
    with pytest.raises(ValueError, match="quantile must lie in"):
        estimates.contrast(image, quantile=1.5)
    with pytest.raises(ValueError, match="NaN"):
        estimates.noise_level(np.full((4, 4), np.nan))


@pytest.mark.parametrize("period", [5.0, 9.0, 16.0, 31.0])
def test_wavelengths_of_signals(period):
    places = np.arange(400.0)
    noise = np.random.default_rng(0).normal(0, 10, 400)
    signal = 50 * np.sin(2 * np.pi * places / period) + 0.5 * places + noise
    assert estimates.wavelength(signal) == pytest.approx(period, rel=0.1)
    assert estimates.wavelength(signal, spacing=0.5) == estimates.wavelength(signal) / 2
    assert estimates.wavelength(np.ones(6)) == estimates.wavelength(np.ones(60)) == 8.0
