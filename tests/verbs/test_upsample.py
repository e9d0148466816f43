"""Upsampling: quality on photographs, block means, what it chooses, what it refuses."""

import dask.array as da
import numpy as np
import pytest
from scipy import ndimage

import aniso
from aniso.verbs import projection
from benchmarks.quality_inpaint import photograph, psnr
from benchmarks.quality_upsample import METHODS, block_means, full_size
from tests.registry import ENGINES


@pytest.fixture(scope="module")
def camera():
    return full_size("camera")[100:260, 150:310].astype(np.float32)


@pytest.fixture(scope="module")
def coarse(camera):
    return block_means(camera, 4).astype(np.float32)


class TestQuality:
    @pytest.mark.parametrize("factor", [2, 4])
    def test_better_than_splines_on_the_mean(self, factor):
        gains = []
        for name in ("camera", "coins", "astronaut", "brick", "coffee"):
            truth = full_size(name)[60:220, 140:300]
            coarse = block_means(truth, factor).astype(np.float32)
            ours, splines, projected = (psnr(method(coarse, factor), truth) for method in METHODS.values())
            gains.append((ours - splines, ours - projected))
        over_splines, over_projected = np.mean(gains, axis=0)
        assert over_splines > 0.8
        assert over_projected > 0.5

    def test_a_slanted_edge_has_no_stairs(self):
        x, y = np.meshgrid(np.arange(128.0), np.arange(128.0))
        truth = 200 * np.clip(0.5 + (0.93 * x - 0.37 * y - 35), 0, 1)
        coarse = block_means(truth, 4)
        errors = [np.sqrt(np.mean((method(coarse, 4) - truth) ** 2)) for method in METHODS.values()]
        assert errors[0] < 0.75 * min(errors[1:])


class TestResult:
    @pytest.mark.parametrize("factor", range(2, 9))
    @pytest.mark.parametrize(("dtype", "digits"), [(np.float32, 7e-8), (np.float64, 1e-15)])
    def test_block_means_are_the_image(self, coarse, factor, dtype, digits):
        image = coarse[:20, :24].astype(dtype)
        fine = aniso.upsample(image, factor)
        assert fine.dtype == dtype
        assert fine.shape == (20 * factor, 24 * factor)
        errors = abs(block_means(fine, factor) - image)
        assert errors.max() <= digits * abs(fine).max()

    def test_block_means_in_colour(self):
        image = photograph("astronaut", 64)
        for axis in (0, 1, 2):
            given = np.moveaxis(image, -1, axis)
            untouched = given.copy()
            fine = aniso.upsample(given, 2, channel_axis=axis)
            np.testing.assert_array_equal(given, untouched)
            means = block_means(np.moveaxis(fine, axis, -1), 2)
            np.testing.assert_allclose(means, image, atol=5e-5)

    @pytest.mark.parametrize(("dtype", "expected"), [(np.uint8, np.float32), (np.float16, np.float32)])
    def test_types(self, coarse, dtype, expected):
        assert aniso.upsample(coarse.astype(dtype), 2).dtype == expected

    def test_factor_one_is_a_copy(self, coarse):
        fine, info = aniso.upsample(coarse, 1, return_info=True)
        np.testing.assert_array_equal(fine, coarse)
        assert not np.shares_memory(fine, coarse)
        assert info.steps == 0

    @pytest.mark.parametrize("factor", [1 / 256, 0.01, 300.0])
    def test_it_scales_with_the_image(self, coarse, factor):
        image = coarse.astype(np.float64)
        np.testing.assert_allclose(
            aniso.upsample(factor * image, 3),
            factor * aniso.upsample(image, 3),
            rtol=1e-9,
            atol=1e-7 * factor,
        )

    def test_lengths_may_be_in_any_unit(self, coarse):
        image = coarse.astype(np.float64)
        first, second = (
            aniso.upsample(image, 2, spacing=spacing, return_info=True) for spacing in ((1, 2), (0.01, 0.02))
        )
        np.testing.assert_allclose(first[0], second[0], atol=1e-6)
        assert second[1].contrast == pytest.approx(100 * first[1].contrast)
        assert second[1].time == pytest.approx(1e-4 * first[1].time)

    def test_transposing_the_image_transposes_the_result(self, coarse):
        np.testing.assert_allclose(aniso.upsample(coarse.T, 3), aniso.upsample(coarse, 3).T, atol=1e-2)

    def test_three_equal_channels_give_the_grey_result(self, coarse):
        grey = aniso.upsample(coarse, 2)
        colour = aniso.upsample(np.stack([coarse] * 3, -1), 2, channel_axis=-1)
        for channel in np.moveaxis(colour, -1, 0):
            np.testing.assert_allclose(channel, grey, atol=0.05)

    def test_engines_agree(self, coarse):
        image = coarse[:20, :20].astype(np.float64)
        results = [aniso.upsample(image, 3, engine=engine.name) for engine in ENGINES]
        for result in results[1:]:
            np.testing.assert_allclose(result, results[0], atol=1e-7)

    def test_the_number_of_threads_does_not_matter(self, camera):
        one, two = (aniso.upsample(camera, 2, threads=threads) for threads in (1, 2))
        np.testing.assert_array_equal(one, two)

    def test_a_constant_image_stays_constant(self):
        np.testing.assert_allclose(aniso.upsample(np.full((5, 6), 9.0), 4), 9.0)

    @pytest.mark.parametrize("shape", [(1,), (12,), (1, 1), (1, 9), (7, 2)])
    def test_signals_and_tiny_images(self, shape):
        image = np.random.default_rng(0).random(shape)
        fine = aniso.upsample(image, 3)
        assert fine.shape == tuple(3 * n for n in shape)
        means = fine.reshape(*(k for n in shape for k in (n, 3))).mean(
            axis=tuple(range(1, 2 * len(shape), 2))
        )
        np.testing.assert_allclose(means, image, atol=1e-13)


class TestInfo:
    def test_it_tells_what_was_chosen(self, coarse):
        _, info = aniso.upsample(coarse, 4, return_info=True)
        assert isinstance(info, aniso.plans.UpsamplePlan)
        assert info.factor == 4
        assert info.sigma == info.rho == pytest.approx(0.225)
        assert info.time == 8.0
        assert 0.1 < info.contrast < 20
        assert "contrast" in str(info)

    def test_parameters_may_be_given(self, coarse):
        fine, info = aniso.upsample(coarse, 2, contrast=3, sigma=0.5, rho=0, time=2, return_info=True)
        assert (info.contrast, info.sigma, info.rho, info.time) == (3.0, 0.5, 0.0, 2.0)
        assert abs(fine - aniso.upsample(coarse, 2)).max() > 0.1

    def test_time_zero_is_the_projected_start(self, coarse):
        fine, info = aniso.upsample(coarse, 2, time=0, return_info=True)
        assert info.steps == 0
        np.testing.assert_allclose(block_means(fine, 2), coarse, atol=1e-4)

    def test_progress_ends_at_one(self, coarse):
        calls: list[tuple[float, float]] = []
        aniso.upsample(coarse, 2, progress=lambda done, total: calls.append((done, total)))
        assert calls[-1] == (1.0, 1.0)
        assert [done for done, _ in calls] == sorted(done for done, _ in calls)


class TestRefusals:
    @pytest.mark.parametrize("factor", [0, -2, 9, 100])
    def test_factors_out_of_range(self, factor):
        with pytest.raises(ValueError, match=r"factor must lie in \[1, 8\]"):
            aniso.upsample(np.eye(4), factor)

    @pytest.mark.parametrize("factor", [2.0, 1.5, "2", True, None, (2, 1.5), {2}])
    def test_factors_that_are_no_whole_numbers(self, factor):
        with pytest.raises(TypeError, match="factor must be a whole number"):
            aniso.upsample(np.eye(4), factor)

    @pytest.mark.parametrize("factor", [1, 2])
    def test_no_numbers(self, factor):
        image = np.ones((4, 4))
        image[1, 2] = np.nan
        with pytest.raises(ValueError, match=r"image holds 1 values.*\(1, 2\)"):
            aniso.upsample(image, factor)

    @pytest.mark.parametrize("image", [np.ones((4, 4), bool), np.ones((4, 4), complex), "image"])
    def test_what_is_no_image(self, image):
        with pytest.raises(TypeError, match="real numeric dtype"):
            aniso.upsample(image, 2)

    @pytest.mark.parametrize("shape", [(0, 4), (4, 4, 4, 4), ()])
    def test_shapes(self, shape):
        with pytest.raises(ValueError, match="image"):
            aniso.upsample(np.ones(shape), 2)

    def test_masked_arrays(self):
        with pytest.raises(TypeError, match="inpaint"):
            aniso.upsample(np.ma.masked_equal(np.eye(4), 0), 2)

    @pytest.mark.parametrize(
        ("options", "error"),
        [
            ({"contrast": 0}, ValueError),
            ({"contrast": "high"}, ValueError),
            ({"sigma": -1}, ValueError),
            ({"time": -1}, ValueError),
            ({"time": np.inf}, ValueError),
            ({"spacing": -1}, ValueError),
            ({"channel_axis": 2}, ValueError),
            ({"engine": "gpu"}, ValueError),
            ({"threads": 0}, ValueError),
            ({"progress": "yes"}, TypeError),
        ],
    )
    @pytest.mark.parametrize("factor", [1, 2])
    def test_options(self, options, error, factor):
        with pytest.raises(error):
            aniso.upsample(np.eye(6), factor, **options)


class TestVolumes:
    @pytest.mark.parametrize("factor", [2, 3])
    def test_block_means_are_kept_and_it_is_better_than_splines(self, factor):
        truth = aniso.samples.balls(36, noise=0.0, seed=4).truth
        n = 36 // factor
        coarse = truth.reshape(n, factor, n, factor, n, factor).mean(axis=(1, 3, 5))
        fine = aniso.upsample(coarse, factor)
        splines = ndimage.zoom(coarse, factor, order=3, mode="reflect", grid_mode=True)
        assert fine.shape == truth.shape
        means = fine.reshape(n, factor, n, factor, n, factor).mean(axis=(1, 3, 5))
        np.testing.assert_allclose(means, coarse, atol=1e-10)
        assert np.std(fine - truth) < 0.9 * np.std(splines - truth)

    def test_channels_and_small_ones(self):
        assert aniso.upsample(np.ones((2, 3, 4, 2)), 2, channel_axis=-1, spacing=(2, 1, 1)).shape == (
            4,
            6,
            8,
            2,
        )
        np.testing.assert_allclose(aniso.upsample(np.full((1, 1, 1), 3.0), 3), 3.0)

    @pytest.mark.parametrize("maker", ["balls", "fibres", "layers"])
    def test_thick_slices_become_thin_ones(self, maker):
        truth = getattr(aniso.samples, maker)(24, noise=0.0, seed=4).truth
        slices = truth.reshape(8, 3, 24, 24).mean(axis=1)
        fine, plan = aniso.upsample(slices, isotropic=True, spacing=(3, 1, 1), return_info=True)
        assert plan.factor == (3, 1, 1)
        np.testing.assert_allclose(fine.reshape(8, 3, 24, 24).mean(axis=1), slices, atol=1e-10)
        splines = ndimage.zoom(slices, (3, 1, 1), order=3, mode="reflect", grid_mode=True)
        assert np.std(fine - truth) < 0.95 * np.std(splines - truth)


class TestFactors:
    def test_one_per_axis(self, coarse):
        fine, plan = aniso.upsample(coarse, (3, 1), return_info=True)
        assert fine.shape == (3 * coarse.shape[0], coarse.shape[1])
        np.testing.assert_allclose(fine.reshape(-1, 3, coarse.shape[1]).mean(axis=1), coarse, atol=1e-4)
        assert plan.factor == (3, 1)
        np.testing.assert_array_equal(aniso.upsample(coarse, [2, 2]), aniso.upsample(coarse, 2))

    @pytest.mark.parametrize(
        ("spacing", "expected"),
        [((1, 1), (1, 1)), ((3, 1), (3, 1)), ((1, 2.9), (1, 3)), ((1.4, 1), (1, 1)), ((1.45, 1), (2, 1))],
    )
    def test_isotropic(self, spacing, expected):
        fine, plan = aniso.upsample(np.ones((4, 5)), isotropic=True, spacing=spacing, return_info=True)
        assert fine.shape == (4 * expected[0], 5 * expected[1])
        assert ("left unchanged" in str(plan)) == (expected == (1, 1))

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"factor": (2, 2, 2)}, "factor must be .* got 3 values"),
            ({"factor": (2, 9)}, r"factor must lie in \[1, 8\]"),
            ({"factor": 2, "isotropic": True}, "factor must be left out"),
            ({"isotropic": True, "spacing": (9, 1)}, r"factors \(9, 1\)"),
            ({"isotropic": True}, "isotropic=True needs the pixel spacing"),
        ],
    )
    def test_refusals(self, options, words):
        with pytest.raises(ValueError, match=words):
            aniso.upsample(np.eye(6), **options)


class TestSplines:
    @pytest.mark.parametrize("factors", [(2, 2), (3, 1), (8, 5)])
    def test_they_are_those_of_scipy(self, factors):
        image = np.random.default_rng(0).normal(100, 20, (31, 17))
        expected = ndimage.zoom(image, factors, order=3, mode="reflect", grid_mode=True)
        np.testing.assert_allclose(projection.interpolate(image[np.newaxis], factors)[0], expected, atol=2e-5)


class TestPlans:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize(
        ("shape", "chunks", "options"),
        [
            ((31, 40), 9, {"factor": 2}),
            ((31, 40), (31, 7), {"factor": 3, "time": 1.0}),
            ((31, 40), (16, 40), {"factor": (1, 4), "spacing": (1, 3), "rho": 0.0}),
            ((31, 40), 5, {"factor": 2, "sigma": 0.0, "rho": 0.0}),
            ((31, 30, 2), (10, 11, 1), {"factor": 2, "channel_axis": -1}),
            ((9, 10, 11), 4, {"factor": (3, 1, 2), "spacing": (3, 1, 2)}),
            ((2, 7, 8, 9), (2, 4, 8, 3), {"factor": 2, "channel_axis": 0}),
            ((12, 9), 4, {"factor": 1}),
        ],
    )
    def test_dask_arrays_give_the_bits_of_memory(self, shape, chunks, options, dtype):
        image = np.random.default_rng(0).normal(100, 20, shape).astype(dtype)
        expected, plan = aniso.upsample(image, **options, return_info=True)
        lazily, same = aniso.upsample(da.from_array(image, chunks=chunks), **options, return_info=True)
        assert same == plan
        assert isinstance(lazily, da.Array)
        assert lazily.shape == expected.shape
        assert lazily.dtype == dtype
        np.testing.assert_array_equal(lazily.compute(scheduler="synchronous"), expected)

    def test_a_saved_plan_gives_the_same_bits(self, coarse):
        expected, plan = aniso.upsample(coarse, (2, 3), return_info=True)
        again = aniso.Plan.from_json(plan.to_json())
        assert again == plan
        np.testing.assert_array_equal(again.apply(coarse), expected)
        lazily = again.apply(da.from_array(coarse, chunks=13))
        np.testing.assert_array_equal(lazily.compute(scheduler="synchronous"), expected)

    def test_large_images_are_sampled(self):
        image = np.random.default_rng(0).normal(100, 20, (1000, 900)).astype(np.float32)
        _, plan = aniso.upsample(image, 2, time=0, return_info=True)
        _, part = aniso.upsample(image[:500], 2, time=0, return_info=True)
        assert plan.contrast == pytest.approx(part.contrast, rel=0.03)

    def test_a_damaged_factor(self, coarse):
        _, plan = aniso.upsample(coarse, 2, return_info=True)
        with pytest.raises(ValueError, match="factor"):
            aniso.Plan.from_json(plan.to_json().replace('"factor": 2', '"factor": 12'))
