"""denoise() finds contrast and time by itself, and does well with them."""

import numpy as np
import pytest

import aniso


def psnr(result, truth):
    return 10 * np.log10(255**2 / np.mean((result - truth) ** 2))


def photograph(name, colour=False):
    image = aniso.samples.photograph(name)[:256:2, 100:356:2].astype(np.float64)
    return image if colour or image.ndim == 2 else image @ [0.299, 0.587, 0.114]


def noisy_version(truth, level, seed=3):
    return truth + np.random.default_rng(seed).normal(0, level, truth.shape)


def best_edge_enhancing(noisy, truth, level):
    """EED tuned with the truth, the same diffusivity and others."""
    times = [0.25 * 1.5**k for k in range(10)]
    values = []
    for kind in ("weickert", "perona-malik"):
        for factor in (0.2, 0.45, 0.9):
            model = aniso.EdgeEnhancing(contrast=factor * level, sigma=0.5, diffusivity=kind)
            values += [psnr(image, truth) for _, image in aniso.scale_space(noisy, model, times)]
    return max(values)


@pytest.mark.parametrize("level", [10.0, 25.0])
@pytest.mark.parametrize("name", ["camera", "moon", "text"])
def test_it_is_better_than_tuned_edge_enhancing_diffusion(name, level):
    truth = photograph(name)
    noisy = noisy_version(truth, level).astype(np.float32)
    assert psnr(aniso.denoise(noisy), truth) > best_edge_enhancing(noisy, truth, level)


@pytest.mark.parametrize("name", ["camera", "text"])
def test_the_single_best_diffusion_is_chosen_without_the_truth(name):
    truth = photograph(name)
    noisy = noisy_version(truth, 20.0).astype(np.float32)
    assert psnr(aniso.denoise(noisy, mix=False), truth) > best_edge_enhancing(noisy, truth, 20.0) - 0.5


def test_the_expected_error_is_near_the_true_one():
    truth = photograph("camera")
    noisy = noisy_version(truth, 20.0)
    result, info = aniso.denoise(noisy, noise=20.0, method="diffusion", return_info=True)
    assert info.expected_error == pytest.approx(np.sqrt(np.mean((result - truth) ** 2)), rel=0.05)
    assert info.expected_error < info.single_error < info.noise == 20.0


def test_colour_uses_what_the_channels_have_in_common():
    truth = photograph("astronaut", colour=True)
    noisy = noisy_version(truth, 20.0)
    together = aniso.denoise(noisy, channel_axis=-1)
    apart = np.stack([aniso.denoise(noisy[..., channel]) for channel in range(3)], axis=-1)
    assert psnr(together, truth) > psnr(apart, truth) + 1


def test_channels_may_be_anywhere_and_a_single_one_changes_nothing():
    noisy = noisy_version(photograph("astronaut", colour=True), 20.0)[:48, :40]
    last = aniso.denoise(noisy, channel_axis=-1, noise=20.0)
    assert last.shape == noisy.shape
    for axis in (0, 1):
        moved = aniso.denoise(np.moveaxis(noisy, -1, axis), channel_axis=axis, noise=20.0)
        # Principal axes come from sums in another order.
        np.testing.assert_allclose(np.moveaxis(moved, axis, -1), last, atol=1e-6)
    grey = noisy[..., 0]
    alone = aniso.denoise(grey, noise=20.0)
    np.testing.assert_allclose(
        aniso.denoise(grey[np.newaxis], channel_axis=0, noise=20.0)[0], alone, atol=1e-9
    )


@pytest.mark.parametrize("factor", [2.0**-8, 2.0**7])
def test_the_result_scales_with_the_image(factor):
    noisy = noisy_version(photograph("camera"), 15.0)[:64, :64]
    np.testing.assert_allclose(aniso.denoise(factor * noisy), factor * aniso.denoise(noisy), rtol=1e-9)


def test_a_shift_of_all_grey_values_shifts_the_result():
    noisy = noisy_version(photograph("camera"), 15.0)[:64, :64]
    np.testing.assert_allclose(aniso.denoise(noisy + 1000) - 1000, aniso.denoise(noisy), atol=1e-6)


def test_spacing_is_a_unit_of_length():
    noisy = noisy_version(photograph("camera"), 15.0)[:64, :64]
    for method in ("auto", "diffusion"):
        result, info = aniso.denoise(noisy, method=method, return_info=True)
        wide, wide_info = aniso.denoise(noisy, method=method, spacing=2.0, return_info=True)
        np.testing.assert_allclose(wide, result, atol=1e-8)
    assert wide_info.time == pytest.approx(4 * info.time)
    assert wide_info.contrast == pytest.approx(info.contrast / 2)


def test_given_parameters_are_used():
    noisy = noisy_version(photograph("camera"), 15.0)[:64, :64]
    result, info = aniso.denoise(noisy, contrast=9.0, time=2.5, return_info=True)
    model = aniso.EdgeEnhancing(contrast=9.0, sigma=0.5, diffusivity="perona-malik")
    np.testing.assert_array_equal(result, aniso.diffuse(noisy, model, 2.5))
    assert (info.contrast, info.time, info.candidates, info.mixed) == (9.0, 2.5, 1, 1)
    _, info = aniso.denoise(noisy, contrast=9.0, return_info=True)
    assert info.model == model
    _, info = aniso.denoise(noisy, time=2.5, return_info=True)
    assert info.time == 2.5
    assert info.mixed == 1
    assert info.candidates == 5


def test_what_has_no_noise_is_left_alone():
    flat = np.full((16, 20), 5.0)
    np.testing.assert_array_equal(aniso.denoise(flat), flat)
    image = photograph("camera")[:32, :32]
    result, info = aniso.denoise(image, noise=0.0, return_info=True)
    np.testing.assert_array_equal(result, image)
    assert info.candidates == 0
    np.testing.assert_array_equal(aniso.denoise(image, noise=0, contrast=5.0), image)


def test_the_result_is_an_array_of_its_own():
    flat = np.full((16, 20), 5.0)
    result = aniso.denoise(flat, noise=0.0)
    assert not np.shares_memory(result, flat)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.float32, np.float64])
def test_types_and_the_callers_array_are_kept(dtype):
    image = noisy_version(photograph("camera"), 10.0).clip(0, 255)[:48, :40].astype(dtype)
    before = image.copy()
    result = aniso.denoise(image)
    assert result.dtype == (np.float64 if dtype == np.float64 else np.float32)
    np.testing.assert_array_equal(image, before)
    assert abs(result.mean() - image.mean()) < 0.5


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (2, 2), (3, 50), (40,)])
def test_small_images_and_signals(shape):
    image = np.random.default_rng(0).normal(100, 5, shape)
    result = aniso.denoise(image)
    assert result.shape == shape
    assert np.isfinite(result).all()


def test_threads_and_engine_are_handed_through():
    noisy = noisy_version(photograph("camera"), 15.0)[:40, :48]
    np.testing.assert_array_equal(aniso.denoise(noisy, threads=1), aniso.denoise(noisy, threads=2))
    reference = aniso.denoise(noisy, engine="reference")  # which has no nets
    np.testing.assert_allclose(reference, aniso.denoise(noisy, method="diffusion"), atol=1e-6)
    with pytest.raises(ValueError, match="engine must be None or one of cpu"):
        aniso.denoise(noisy, engine="none")


def test_progress_is_told_and_the_summary_readable():
    told = []
    noisy = noisy_version(photograph("camera"), 15.0)[:32, :32]
    _, info = aniso.denoise(
        noisy, method="diffusion", progress=lambda *now: told.append(now), return_info=True
    )
    assert told == sorted(told)
    assert told[-1] == (1.0, 1.0)
    assert len([done for done, _ in told if done == 0]) > 20  # while choosing, so that it can be broken off
    assert len({done for done, _ in told}) > 20
    assert "noise level" in str(info)
    assert len(str(info).splitlines()) == 12


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"noise": -1}, ValueError, "noise must lie in"),
        ({"noise": "gausian"}, ValueError, "one of the kinds gaussian, poisson, .* got 'gausian'"),
        ({"noise": np.nan}, ValueError, "noise must be a number, got nan. It is"),
        ({"contrast": 0}, ValueError, "contrast must lie in"),
        ({"contrast": "high"}, ValueError, 'contrast must be a number or "auto"'),
        ({"time": -2.0}, ValueError, "time must lie in"),
        ({"time": np.inf}, ValueError, "time must be finite"),
        ({"spacing": -1}, ValueError, "spacing must be positive"),
        ({"progress": 3}, TypeError, "progress must be"),
        ({"channel_axis": 5}, ValueError, "channel_axis=5 does not exist"),
        ({"method": "magic"}, ValueError, "method must be one of auto, diffusion, learned"),
    ],
)
def test_bad_parameters_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        aniso.denoise(np.eye(8), **options)


def test_bad_images_are_refused():
    with pytest.raises(ValueError, match=r"1 infinite pixels, .*\(0, 1\).*Replace them by NaN"):
        aniso.denoise(np.array([[1.0, np.inf]]))
    with pytest.raises(ValueError, match=r"1 known pixels .*True in the mask"):
        aniso.denoise(np.array([[1.0, np.inf]]), mask=[[True, False]])
    with pytest.raises(TypeError, match="masked array"):
        aniso.denoise(np.ma.masked_array(np.eye(4), mask=np.eye(4) > 0))
    with pytest.raises(ValueError, match="empty"):
        aniso.denoise(np.zeros((0, 4)))


class TestNoiseThatIsNotWhatItShouldBe:
    """Mixing rests on white noise of the right level; else the best single diffusion is left."""

    TRUTH = aniso.samples.shapes(96, noise=0.0).truth
    NOISE = np.random.default_rng(4).normal(0, 15, (3, 96, 96))

    @pytest.mark.parametrize("common", [0.5, 0.9, 1.0])
    def test_noise_that_the_channels_have_in_common(self, common):
        noise = np.sqrt(common) * self.NOISE[0] + np.sqrt(1 - common) * self.NOISE
        result = aniso.denoise(self.TRUTH + noise, channel_axis=0)
        assert np.sqrt(np.mean((result - self.TRUTH) ** 2)) < 11.5

    def test_a_grey_image_in_three_channels(self):
        grey = (self.TRUTH + self.NOISE[0]).clip(0, 255).astype(np.uint8)
        result = aniso.denoise(np.dstack([grey] * 3), channel_axis=-1)
        assert result.min() > -30
        assert result.max() < 285

    @pytest.mark.parametrize("level", [60.0, 200.0])
    def test_a_level_that_is_far_too_high(self, level):
        result = aniso.denoise(self.TRUTH + self.NOISE[0], noise=level)
        assert np.sqrt(np.mean((result - self.TRUTH) ** 2)) < 60

    def test_a_checkerboard(self):
        result = aniso.denoise(255.0 * (np.indices((40, 40)).sum(axis=0) % 2))
        assert -1 <= result.min() <= result.max() <= 256


class TestVolumes:
    """One call for volumes, and all three directions count."""

    MAKERS = (aniso.samples.fibres, aniso.samples.layers, aniso.samples.balls)

    @pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
    def test_it_is_better_than_slice_by_slice(self, maker):
        sample = maker((24, 32, 32), noise=40.0, seed=2)
        volume = sample.image.astype(np.float32)
        result = aniso.denoise(volume, noise=40.0)
        slices = np.stack([aniso.denoise(image, noise=40.0) for image in volume])
        assert psnr(result, sample.truth) > psnr(slices, sample.truth) + 1
        assert psnr(result, sample.truth) > psnr(volume, sample.truth) + 7

    @pytest.mark.parametrize("maker", [aniso.samples.fibres, aniso.samples.balls])
    def test_the_level_is_found(self, maker):
        _, info = aniso.denoise(maker((24, 32, 32), noise=40.0, seed=2).image, return_info=True)
        assert info.noise == pytest.approx(40, rel=0.1)

    def test_the_expected_error_is_near_the_true_one(self):
        sample = aniso.samples.fibres(32, noise=30.0, seed=1)
        result, info = aniso.denoise(sample.image, noise=30.0, return_info=True)
        error = np.sqrt(np.mean((result - sample.truth) ** 2))
        assert info.expected_error == pytest.approx(error, rel=0.15)
        assert info.expected_error < info.single_error < 30

    @pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4), (1, 12, 12), (3, 40, 40), (30, 1, 1), (2, 2, 2)])
    def test_small_and_thin_ones(self, shape):
        volume = np.random.default_rng(0).normal(100, 5, shape)
        result = aniso.denoise(volume)
        assert result.shape == shape
        assert volume.min() - 1 < result.min() <= result.max() < volume.max() + 1

    def test_constant_ones_stay_and_noise_alone_becomes_flat(self):
        np.testing.assert_array_equal(aniso.denoise(np.full((6, 7, 8), 5.0)), 5.0)
        noise = np.random.default_rng(0).normal(100, 10, (24, 24, 24))
        assert aniso.denoise(noise).std() < 1.5

    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.float32, np.float64])
    def test_types(self, dtype):
        sample = aniso.samples.balls(20, noise=15.0)
        volume = sample.image.clip(0, 255).astype(dtype)
        before = volume.copy()
        result = aniso.denoise(volume)
        assert result.dtype == (np.float64 if dtype == np.float64 else np.float32)
        assert psnr(result, sample.truth) > 31
        np.testing.assert_array_equal(volume, before)

    def test_voxels_that_are_longer_than_wide(self):
        fine = aniso.samples.balls((36, 24, 24), noise=0.0, seed=1).truth
        truth = fine.reshape(12, 3, 24, 24).mean(axis=1)
        noisy = noisy_version(truth, 25.0)
        right = psnr(aniso.denoise(noisy, spacing=(3, 1, 1)), truth)
        assert right > psnr(aniso.denoise(noisy, spacing=(1, 1, 3)), truth)
        assert right > psnr(noisy, truth) + 8

    def test_channels(self):
        sample = aniso.samples.balls(20, noise=25.0)
        other = noisy_version(0.5 * sample.truth, 25.0)
        both = np.stack([sample.image, other], axis=-1)
        result = aniso.denoise(both, channel_axis=-1)
        assert result.shape == both.shape
        assert psnr(result[..., 0], sample.truth) > psnr(sample.image, sample.truth) + 9

    def test_engines_agree(self):
        volume = aniso.samples.fibres((10, 12, 14), noise=25.0).image
        cpu = aniso.denoise(volume, method="diffusion")  # nets do not run on the reference engine
        for engine in ("reference", "torch"):
            other = aniso.denoise(volume, method="diffusion", engine=engine)
            np.testing.assert_allclose(other, cpu, atol=1e-6)
