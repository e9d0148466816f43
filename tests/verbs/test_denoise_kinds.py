"""denoise() on noise that is not white and Gaussian: counted photons, magnitudes, speckle, blur, impulses."""

import dataclasses
import io

import dask.array as da
import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage
from skimage import data, transform

import aniso
from aniso import noise
from aniso.noise.correlation import blur_noise
from aniso.noise.impulses import look_for_impulses

TRUTH = aniso.samples.shapes(160, noise=0.0).truth


def salt_and_pepper(truth, random):
    image, chance = truth.copy(), random.random(truth.shape)
    image[chance < 0.025], image[chance > 0.975] = 0.0, 255.0
    return image


#: Noisy images by the kind of noise, and the model that made it.
KINDS = {
    "poisson": noise.PoissonGaussian(12.0),
    "camera": noise.PoissonGaussian(4.0, offset=100.0, read_noise=6.0),
    "rician": noise.Rician(20.0),
    "speckle": noise.Speckle(0.25, floor=2.0),
    "correlated": noise.Gaussian(20.0, correlation=0.8),
}


def noisy_image(kind, truth=TRUTH, seed=0):
    random = np.random.default_rng(seed)
    if kind == "impulses":
        return salt_and_pepper(truth, random).astype(np.float32)
    offset = getattr(KINDS[kind], "offset", 0.0)
    return KINDS[kind].sample(truth + offset, random).astype(np.float32)


def rms(image, truth=TRUTH):
    return float(np.sqrt(np.mean((np.asarray(image, np.float64) - truth) ** 2)))


ALL = [*KINDS, "impulses"]


@pytest.mark.parametrize("kind", KINDS)
class TestKinds:
    def test_nothing_given_is_about_as_good_as_the_model(self, kind):
        image = noisy_image(kind)
        offset = getattr(KINDS[kind], "offset", 0.0)
        result, plan = aniso.denoise(image, return_info=True)
        known = aniso.denoise(image, noise=KINDS[kind])
        assert plan.noise_models[0].kind == KINDS[kind].kind
        assert rms(result - offset) < 1.1 * rms(known - offset)
        assert rms(result - offset) < 0.45 * rms(image - offset)

    def test_the_expected_error_is_near_the_true_one(self, kind):
        image = noisy_image(kind)
        offset = getattr(KINDS[kind], "offset", 0.0)
        result, plan = aniso.denoise(image, noise=KINDS[kind], return_info=True)
        assert plan.expected_error == pytest.approx(rms(result - offset), rel=0.35)

    def test_a_kind_is_enough(self, kind):
        name = KINDS[kind].kind
        _, plan = aniso.denoise(noisy_image(kind), noise=name, return_info=True)
        assert {model.kind for model in plan.noise_models} <= {name, "gaussian"}


@pytest.mark.parametrize("kind", ALL)
class TestSameResult:
    def test_for_dask_arrays_and_from_json(self, kind):
        image = noisy_image(kind)
        result, plan = aniso.denoise(image, return_info=True)
        lazy = aniso.denoise(da.from_array(image, chunks=(60, 90)))
        np.testing.assert_array_equal(lazy.compute(), result)
        again = aniso.Plan.from_json(plan.to_json())
        assert again == plan
        np.testing.assert_array_equal(again.apply(image), result)

    def test_for_tensors(self, kind):
        image = noisy_image(kind)
        result, plan = aniso.denoise(image, return_info=True)
        tensor = plan.apply(torch.from_numpy(image))
        np.testing.assert_allclose(tensor.numpy(), result, atol=0.02 * np.ptp(TRUTH))

    def test_after_a_turn(self, kind):
        image = noisy_image(kind)
        turned = aniso.denoise(np.rot90(image).copy())
        assert rms(np.rot90(turned, -1), aniso.denoise(image)) < 0.1 * rms(image, TRUTH)


@pytest.mark.parametrize("kind", ["poisson", "camera", "rician", "speckle", "impulses"])
def test_grey_values_may_be_scaled(kind):
    image = noisy_image(kind)
    larger = aniso.denoise(image * np.float32(8))  # exact, so that nothing else is different
    np.testing.assert_allclose(larger / 8, aniso.denoise(image), atol=0.02 * np.ptp(TRUTH))


def test_impulses_are_counted_and_filled():
    image = noisy_image("impulses")
    result, plan = aniso.denoise(image, return_info=True)
    assert plan.impulses.share == pytest.approx(0.05, abs=0.01)
    assert rms(result) < 0.2 * rms(image)
    random = np.random.default_rng(1)
    hot = TRUTH + random.normal(0, 5, TRUTH.shape)
    hot[random.random(TRUTH.shape) < 0.002] += 150
    result, plan = aniso.denoise(hot, return_info=True)
    assert plan.impulses.hot
    assert np.abs(result - TRUTH).max() < 120
    assert aniso.denoise(TRUTH + random.normal(0, 5, TRUTH.shape), return_info=True)[1].impulses is None


@pytest.mark.parametrize(("name", "level"), [("camera", 0.0), ("coins", 0.0), ("coins", 10.0)])
def test_the_expected_error_of_an_image_with_impulses(name, level):
    truth = aniso.samples.photograph(name)[100:260, 100:260].astype(np.float64)
    random = np.random.default_rng(1)
    image = salt_and_pepper(truth + random.normal(0, level, truth.shape), random).astype(np.float32)
    result, plan = aniso.denoise(image, return_info=True)
    assert plan.expected_error == pytest.approx(rms(result, truth), rel=0.25)


def test_hot_pixels_of_a_camera_whose_pixels_have_noise_of_different_levels():
    random = np.random.default_rng(0)
    levels = np.exp(random.normal(np.log(3), 0.5, TRUTH.shape))
    image = TRUTH + levels * random.normal(size=TRUTH.shape)
    assert look_for_impulses([image[np.newaxis]]) is None
    hot = random.random(TRUTH.shape) < 5e-4
    found = look_for_impulses([np.where(hot, image + 250, image)[np.newaxis]])
    assert found is not None
    assert found.hot
    assert hot.mean() <= found.share < 4 * hot.mean()


@pytest.mark.parametrize("value", [0.0, 128.0])
def test_the_expected_error_of_an_image_with_constant_regions(value):
    image = TRUTH + np.random.default_rng(0).normal(0, 20, TRUTH.shape)
    y, x = np.indices(TRUTH.shape)
    outside = np.hypot(y - 80, x - 80) > 60
    truth = np.where(outside, value, TRUTH)
    result, plan = aniso.denoise(np.where(outside, value, image), return_info=True)
    assert plan.expected_error == pytest.approx(rms(result, truth), rel=0.35)


def test_thin_bright_structure_is_not_impulses():
    skull = transform.resize(data.shepp_logan_phantom(), (256, 256), anti_aliasing=True)
    camera = noise.PoissonGaussian(2.2, read_noise=3.0)
    image = np.rint(camera.sample(440 * skull, np.random.default_rng(0)))
    assert look_for_impulses([image[np.newaxis]]) is None


def test_lines_of_one_pixel_are_not_impulses():
    image = np.random.default_rng(0).normal(100, 2, (80, 80))
    image[::16] = 200.0
    image[:, 8::16] = 200.0
    _, plan = aniso.denoise(image, return_info=True)
    assert plan.impulses is None


@pytest.mark.parametrize(
    "model",
    [noise.Gaussian(20.0), noise.Gaussian(20.0, 1.0), noise.PoissonGaussian(10.0), noise.Speckle(0.3)],
    ids=lambda model: model.kind + str(model.correlation),
)
def test_pure_noise_comes_out_flat(model):
    image = model.sample(np.full((128, 128), 100.0), np.random.default_rng(0))
    result = aniso.denoise(image)
    assert result.std() < 0.25 * image.std()
    assert result.mean() == pytest.approx(100, rel=0.03)


@pytest.mark.parametrize("seed", [1, 2, 3])  # with 0, the noise is taken for that of photons
def test_the_background_of_magnitudes_stays_dark(seed):
    truth = np.zeros((128, 128))
    truth[40:90, 40:90] = 150.0
    image = noise.Rician(12.0).sample(truth, np.random.default_rng(seed))
    result = aniso.denoise(image)
    dark = np.ones_like(truth, bool)
    dark[34:96, 34:96] = False
    assert result[dark].mean() < 0.1 * 12
    assert result[46:84, 46:84].mean() == pytest.approx(150, rel=0.02)


@pytest.mark.parametrize("seed", [1, 2])
def test_no_specks_remain_of_single_photons(seed):
    image = noise.PoissonGaussian(200.0).sample(TRUTH, np.random.default_rng(seed))
    result = aniso.denoise(image)
    specks = np.abs(result - ndimage.median_filter(result, 5)) > 60
    assert specks.mean() < 0.002


def test_channels_with_other_levels():
    random = np.random.default_rng(0)
    truth = np.stack([TRUTH, 0.5 * TRUTH + 40, 200 - TRUTH], -1)
    image = truth + random.normal(0, [5.0, 15.0, 30.0], truth.shape)
    result, plan = aniso.denoise(image, channel_axis=-1, return_info=True)
    assert [model.level for model in plan.noise_models] == pytest.approx([5, 15, 30], rel=0.1)
    for channel, level in enumerate((5, 15, 30)):
        assert rms(result[..., channel], truth[..., channel]) < 0.6 * level
    given = aniso.denoise(image, noise=[5.0, 15.0, 30.0], channel_axis=-1)
    assert rms(given, truth) == pytest.approx(rms(result, truth), rel=0.1)


def test_the_level_in_the_plan_is_the_root_mean_square():
    image = noisy_image("poisson")
    _, plan = aniso.denoise(image, return_info=True)
    assert plan.noise == pytest.approx(rms(image), rel=0.1)


def test_the_expected_error_where_only_bright_parts_have_details():
    # Errors are largest where the noise is strongest.
    random = np.random.default_rng(0)
    truth = np.full((192, 192), 30.0)
    details = noise.Gaussian(1.0, 0.8).sample(np.zeros((64, 64)), random) > 0.3
    truth[64:128, 64:128] = 20 + 200 * details
    model = noise.PoissonGaussian(12.0)
    result, plan = aniso.denoise(model.sample(truth, random), noise=model, return_info=True)
    assert plan.expected_error == pytest.approx(rms(result, truth), rel=0.2)


class TestCommonNoise:
    """Noise that three channels have in common, as in photographs."""

    COLOURS = np.stack([TRUTH, 0.6 * TRUTH + 40, 200 - 0.7 * TRUTH], -1)

    def image(self):
        random = np.random.default_rng(3)
        common = random.normal(0, 14, TRUTH.shape)[..., np.newaxis]
        return (self.COLOURS + common + random.normal(0, 5, self.COLOURS.shape)).astype(np.float32)

    def test_it_is_removed(self):
        image = self.image()
        result, plan = aniso.denoise(image, channel_axis=-1, return_info=True)
        assert plan.axes is not None
        assert [model.level for model in plan.noise_models] == pytest.approx([24.8, 5, 5], rel=0.1)
        # These levels are not those of red, green and blue, and the summary says so.
        (row,) = (line for line in str(plan).splitlines() if line.startswith("model of the noise"))
        assert row.count("Gaussian(") == 3
        assert "brightness: Gaussian(level=2" in row
        assert row.count("difference of colours: Gaussian(level=") == 2
        assert rms(result, self.COLOURS) < 0.75 * rms(
            aniso.denoise(image, noise=14.9, channel_axis=-1), self.COLOURS
        )
        assert rms(result, self.COLOURS) < 1.3 * plan.expected_error

    def test_it_is_removed_if_differences_of_colours_have_coarser_noise(self):
        # As in files that store colours at half of the resolution.
        random = np.random.default_rng(3)
        common = random.normal(0, 14, TRUTH.shape)[..., np.newaxis]
        coarse = noise.Gaussian(5.0, 0.9)
        own = np.stack([coarse.sample(np.zeros(TRUTH.shape), random) for _ in range(3)], -1)
        image = self.COLOURS + common + own - own.mean(axis=-1, keepdims=True)
        result, plan = aniso.denoise(image, channel_axis=-1, return_info=True)
        assert plan.axes is not None
        assert rms(result, self.COLOURS) < 0.5 * rms(image, self.COLOURS)

    @pytest.mark.parametrize("quality", [75, 50])
    def test_compressed_colours_have_lost_their_fine_noise(self, quality):
        truth = data.rocket()[100:260, 200:360].astype(np.float64)
        noisy = truth + np.random.default_rng(0).normal(0, 15, truth.shape)
        file = io.BytesIO()
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=quality)
        image = np.asarray(Image.open(file)).astype(np.float32)
        result, plan = aniso.denoise(image, channel_axis=-1, return_info=True)
        assert plan.axes is not None
        assert plan.certainty > 0.5
        assert "stored as a JPEG file" in plan.remark
        assert rms(result, truth) < 1.25 * plan.expected_error
        assert rms(result, truth) < 1.25 * rms(aniso.denoise(image, noise=15.0, channel_axis=-1), truth)

    def test_same_bits_in_blocks_and_from_a_saved_plan(self):
        image = self.image()
        result, plan = aniso.denoise(image, channel_axis=-1, return_info=True)
        blocks = aniso.denoise(da.from_array(image, (70, 60, 3)), channel_axis=-1)
        np.testing.assert_array_equal(blocks.compute(), result)
        again = aniso.Plan.from_json(plan.to_json())
        assert again == plan
        np.testing.assert_array_equal(again.apply(image), result)
        tensor = torch.from_numpy(np.moveaxis(image, -1, 0).copy())[np.newaxis]
        np.testing.assert_allclose(np.moveaxis(plan.apply(tensor)[0].numpy(), 0, -1), result, atol=0.01)

    def test_independent_noise_needs_no_axes(self):
        image = self.COLOURS + np.random.default_rng(3).normal(0, 14, self.COLOURS.shape)
        plan = aniso.denoise(image, channel_axis=-1, return_info=True)[1]
        assert plan.axes is None
        assert "brightness" not in str(plan)

    def test_wrong_axes_are_rejected(self):
        _, plan = aniso.denoise(self.image(), channel_axis=-1, return_info=True)
        for axes in (((1.0, 0.0), (0.0, 1.0)), ((1.0, 0.0, 0.0),) * 3):
            with pytest.raises(ValueError, match="axes of a plan for 3 channels must be orthonormal"):
                dataclasses.replace(plan, axes=axes)


class TestRemarks:
    def test_nothing_to_do(self):
        result, plan = aniso.denoise(np.full((64, 64), 7.0), return_info=True)
        np.testing.assert_array_equal(result, np.full((64, 64), 7.0))
        assert plan.remark.startswith("the image is left unchanged: no noise was found")
        assert plan.remark in str(plan)

    def test_something_to_do(self):
        _, plan = aniso.denoise(noisy_image("poisson"), return_info=True)
        assert plan.remark is None
        assert "note" not in str(plan)


@pytest.mark.parametrize("given", ["gamma", "poisson:", "rician:-2", "poisson:nan", [5.0, 5.0], {"level": 3}])
def test_noise_that_cannot_be_understood(given):
    with pytest.raises((ValueError, TypeError), match="noise must"):
        aniso.denoise(TRUTH, noise=given)


@pytest.mark.parametrize("axis", [0, 1])
def test_noise_that_is_correlated_along_one_axis(axis):
    white = np.random.default_rng(0).normal(0, 15, TRUTH.shape)
    coarse = 1.9 * ndimage.gaussian_filter1d(white, 1.0, axis, mode="wrap")
    _, plan = aniso.denoise(TRUTH + coarse, return_info=True)
    assert f"coarser along axis {axis}" in plan.remark
    for isotropic in (
        white,
        noise.Gaussian(15.0, 0.8).sample(np.zeros_like(TRUTH), np.random.default_rng(0)),
    ):
        _, plan = aniso.denoise(TRUTH + isotropic, return_info=True)
        assert "coarser along" not in (plan.remark or "")


def test_correlated_noise_has_its_own_scales():
    random = np.random.default_rng(0)
    image = TRUTH + 20 * blur_noise(random.normal(size=TRUTH.shape), 1.2)
    _, plan = aniso.denoise(image, method="diffusion", return_info=True)
    white_image = TRUTH + random.normal(0, 20, TRUTH.shape)
    _, white = aniso.denoise(white_image, method="diffusion", return_info=True)
    assert plan.noise_models[0].correlation == pytest.approx(1.2, abs=0.2)
    assert plan.model.sigma > 1.5 * white.model.sigma


class TestUnknownPixels:
    """Pixels that are not to be trusted have no influence."""

    UNKNOWN = np.zeros(TRUTH.shape, bool)
    UNKNOWN[40:70, 60:95] = True
    UNKNOWN[::9, 3::7] = True
    IMAGE = TRUTH + np.random.default_rng(0).normal(0, 20, TRUTH.shape)

    def test_their_values_do_not_matter(self):
        results = []
        for value in (np.nan, 0.0, 1e6):
            image = np.where(self.UNKNOWN, value, self.IMAGE)
            results.append(aniso.denoise(image, mask=self.UNKNOWN))
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])
        assert rms(results[0][~self.UNKNOWN], TRUTH[~self.UNKNOWN]) < 8

    def test_nan_is_a_mask(self):
        image = np.where(self.UNKNOWN, np.nan, self.IMAGE)
        result, plan = aniso.denoise(image, return_info=True)
        np.testing.assert_array_equal(result, aniso.denoise(self.IMAGE, mask=self.UNKNOWN))
        assert plan.noise == pytest.approx(20, rel=0.1)
        kept = aniso.denoise(image, keep_nan=True)
        np.testing.assert_array_equal(np.isnan(kept), self.UNKNOWN)
        np.testing.assert_array_equal(kept[~self.UNKNOWN], result[~self.UNKNOWN])

    def test_dask_arrays_frames_and_channels(self):
        blocks = da.from_array(self.IMAGE, chunks=(70, 90))
        lazy = aniso.denoise(blocks, mask=self.UNKNOWN, keep_nan=True)
        expected = aniso.denoise(self.IMAGE, mask=self.UNKNOWN, keep_nan=True)
        np.testing.assert_array_equal(lazy.compute(), expected)
        frames = np.stack([self.IMAGE, 255 - self.IMAGE])
        result = aniso.denoise(frames, mask=self.UNKNOWN, frame_axis=0, keep_nan=True)
        np.testing.assert_array_equal(np.isnan(result), [self.UNKNOWN] * 2)
        colour = np.moveaxis(frames, 0, -1)
        result = aniso.denoise(colour, mask=self.UNKNOWN, channel_axis=-1, keep_nan=True)
        np.testing.assert_array_equal(np.isnan(result[..., 0]), self.UNKNOWN)

    def test_nothing_known(self):
        with pytest.raises(ValueError, match="known"):
            aniso.denoise(np.full((32, 32), np.nan))
