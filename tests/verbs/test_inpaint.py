"""Inpainting: quality on photographs, known pixels, what it chooses, what it refuses."""

import unittest.mock

import numpy as np
import pytest

import aniso
from aniso.verbs import inpaint_solver
from aniso.verbs.edge_contrast import usual_difference
from benchmarks.quality_inpaint import damage, lossy, photograph, psnr
from tests.registry import ENGINES


def lost(truth, share_known=0.2, seed=0):
    return damage(share_known, truth.shape[:2], seed)


@pytest.fixture(scope="module")
def camera():
    return photograph("camera", 128).astype(np.float32)


def biharmonic(image, mask, channel_axis=None):
    from skimage.restoration import inpaint_biharmonic

    # See benchmarks/quality_inpaint.py.
    with unittest.mock.patch("numpy.empty", np.zeros):
        return inpaint_biharmonic(image, mask, channel_axis=channel_axis)


class TestQuality:
    def test_better_than_biharmonic(self):
        gains = []
        for name in ("camera", "coins"):
            truth = photograph(name, 128)
            for kind in (0.05, 0.1, 0.2, "text", "scratches"):
                mask = damage(kind, truth.shape, seed=1)
                image = lossy(truth, mask)
                ours, theirs = aniso.inpaint(image, mask), 255 * biharmonic(image, mask)
                gains.append(psnr(ours, truth) - psnr(theirs, truth))
        assert np.mean(gains) > 0.6

    def test_better_than_biharmonic_in_colour(self):
        truth = photograph("astronaut", 128)
        mask = lost(truth, 0.1)
        theirs = 255 * biharmonic(lossy(truth, mask), mask, channel_axis=-1)
        ours = aniso.inpaint(lossy(truth, mask), mask, channel_axis=-1)
        assert psnr(ours, truth) > psnr(theirs, truth) + 0.3

    def test_an_edge_is_carried_across_a_gap(self):
        x, y = np.meshgrid(np.arange(64.0), np.arange(64.0))
        truth = 255 * np.clip(0.9 * x - 0.44 * y - 14, 0, 1)
        mask = abs(y - 32) < 5
        filled = aniso.inpaint(truth, mask)
        linear = np.where(mask, np.nan, truth)
        linear = [np.interp(y[:, 0], y[~mask[:, 0], 0], column[~mask[:, 0]]) for column in linear.T]
        rms = [np.sqrt(np.mean((image - truth)[mask] ** 2)) for image in (filled, np.transpose(linear))]
        assert rms[0] < 0.5 * rms[1]

    def test_a_plane_is_filled_in_almost_exactly(self):
        truth = np.add.outer(np.arange(40.0), 2 * np.arange(50.0))
        mask = np.zeros(truth.shape, bool)
        mask[10:30, 20:30] = True
        assert abs(aniso.inpaint(truth, mask, tolerance=1e-6) - truth).max() < 0.5


class TestResult:
    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float16, np.float32, np.float64])
    def test_known_pixels_keep_their_bits(self, camera, dtype):
        image, mask = camera.astype(dtype), lost(camera)
        untouched = image.copy(), mask.copy()
        filled = aniso.inpaint(image, mask)
        assert filled.dtype == (np.float64 if dtype == np.float64 else np.float32)
        np.testing.assert_array_equal(filled[~mask], image[~mask].astype(filled.dtype))
        np.testing.assert_array_equal(image, untouched[0])
        np.testing.assert_array_equal(mask, untouched[1])

    def test_nothing_leaves_the_range_of_the_known_values(self, camera):
        mask = lost(camera, 0.05)
        filled = aniso.inpaint(camera, mask)
        assert filled.min() >= camera[~mask].min()
        assert filled.max() <= camera[~mask].max()

    @pytest.mark.parametrize("factor", [1 / 256, 0.01, 300.0])
    @pytest.mark.parametrize("kind", [0.1, "text"])
    def test_it_scales_with_the_image(self, camera, factor, kind):
        image, mask = camera.astype(np.float64), damage(kind, camera.shape)
        np.testing.assert_allclose(
            aniso.inpaint(factor * image, mask),
            factor * aniso.inpaint(image, mask),
            rtol=1e-9,
            atol=1e-7 * factor,
        )

    def test_lengths_may_be_in_any_unit(self, camera):
        mask = lost(camera)
        first, second = (
            aniso.inpaint(camera, mask, spacing=spacing, return_info=True)
            for spacing in ((1, 2), (0.01, 0.02))
        )
        np.testing.assert_allclose(first[0], second[0], atol=0.05)
        assert second[1].contrast == pytest.approx(100 * first[1].contrast)

    def test_what_unknown_pixels_hold_does_not_matter(self, camera):
        mask = lost(camera)
        expected = aniso.inpaint(camera, mask)
        for nonsense in (np.nan, np.inf, -1e30):
            image = np.where(mask, np.float32(nonsense), camera)
            np.testing.assert_array_equal(aniso.inpaint(image, mask), expected)
        np.testing.assert_array_equal(aniso.inpaint(np.where(mask, np.float32(np.nan), camera)), expected)
        np.testing.assert_array_equal(aniso.inpaint(camera, mask.astype(np.uint8)), expected)

    def test_a_pixel_is_unknown_if_one_of_its_colours_is(self):
        image = photograph("astronaut", 64).astype(np.float32)
        mask = lost(image, 0.5)
        holes = image.copy()
        holes[mask, 1] = np.nan
        np.testing.assert_array_equal(
            aniso.inpaint(holes, channel_axis=-1), aniso.inpaint(image, mask, channel_axis=-1)
        )

    def test_three_equal_channels_give_the_grey_result(self, camera):
        mask = lost(camera)
        grey, info = aniso.inpaint(camera, mask, return_info=True)
        for axis in (0, -1):
            colour, about = aniso.inpaint(
                np.stack([camera] * 3, axis), mask, channel_axis=axis, return_info=True
            )
            assert about.contrast == pytest.approx(info.contrast)
            for channel in np.moveaxis(colour, axis, 0):
                np.testing.assert_allclose(channel, grey, atol=0.05)

    def test_engines_agree(self):
        truth = photograph("coins", 48).astype(np.float64)
        mask = lost(truth)
        results = [aniso.inpaint(truth, mask, engine=engine.name) for engine in ENGINES]
        for result in results[1:]:
            np.testing.assert_allclose(result, results[0], atol=1e-7)

    def test_the_number_of_threads_does_not_matter(self):
        truth = photograph("camera", 256)
        mask = lost(truth)
        one, two = (aniso.inpaint(truth, mask, threads=threads) for threads in (1, 2))
        np.testing.assert_array_equal(one, two)

    def test_a_small_hole_in_a_large_image_is_worked_on_alone(self, camera):
        mask = np.zeros(camera.shape, bool)
        mask[50:60, 70:76] = True
        part = np.s_[35:75, 55:95]
        whole, alone = (
            aniso.inpaint(camera, mask, contrast=2.0),
            aniso.inpaint(camera[part], mask[part], contrast=2.0),
        )
        rms = np.sqrt(np.mean((whole[part] - alone) ** 2))
        assert rms < 0.02 * camera.std()

    def test_signals(self):
        truth = np.sin(np.arange(80) / 9)
        mask = np.zeros(80, bool)
        mask[20:24] = mask[50:53] = True
        filled = aniso.inpaint(truth, mask)
        assert filled.shape == truth.shape
        assert abs(filled - truth).max() < 0.05

    @pytest.mark.parametrize("shape", [(1, 2), (2, 1), (3, 3), (1, 9), (2, 17)])
    def test_tiny_images(self, shape):
        image = np.arange(np.prod(shape), dtype=float).reshape(shape)
        mask = np.zeros(shape, bool)
        mask.flat[1] = True
        filled = aniso.inpaint(image, mask)
        assert np.isfinite(filled).all()
        np.testing.assert_array_equal(filled[~mask], image[~mask])

    def test_from_a_single_pixel_all_get_its_value(self):
        mask = np.ones((9, 14), bool)
        mask[4, 5] = False
        filled, info = aniso.inpaint(np.full((9, 14), 7.0), mask, return_info=True)
        np.testing.assert_allclose(filled, 7.0)
        assert info.converged

    def test_nothing_unknown_gives_a_copy(self, camera):
        for mask in (None, np.zeros(camera.shape, bool)):
            filled, info = aniso.inpaint(camera, mask, return_info=True)
            np.testing.assert_array_equal(filled, camera)
            assert not np.shares_memory(filled, camera)
            assert (info.unknown, info.cycles, info.residual) == (0.0, 0, 0.0)


class TestInfo:
    def test_it_tells_what_was_chosen_and_reached(self, camera):
        mask = lost(camera)
        _, info = aniso.inpaint(camera, mask, return_info=True)
        assert isinstance(info, aniso.plans.InpaintPlan)
        assert info.unknown == mask.mean()
        assert 0.1 < info.contrast < 20
        assert info.residual is not None
        assert 0 < info.residual <= info.tolerance == 5e-3
        assert "contrast" in str(info)
        assert "change in the last cycle" in str(info)

    def test_the_residual_is_the_change_in_the_last_cycle(self, camera):
        mask = lost(camera)
        one, two = (
            aniso.inpaint(camera, mask, tolerance=1e-9, max_cycles=count, return_info=True)
            for count in (5, 6)
        )
        change = np.sqrt(np.mean((two[0] - one[0])[mask].astype(float) ** 2)) / camera[~mask].std()
        assert two[1].residual == pytest.approx(change, rel=0.02)  # but for clipping
        assert not two[1].converged
        assert two[1].cycles == 6

    def test_a_smaller_tolerance_is_met_too(self, camera):
        mask = damage("text", camera.shape)
        _, info = aniso.inpaint(camera, mask, tolerance=1e-4, return_info=True)
        assert info.converged

    def test_progress_ends_at_one(self, camera):
        calls: list[tuple[float, float]] = []
        aniso.inpaint(camera, lost(camera), progress=lambda done, total: calls.append((done, total)))
        assert calls[-1] == (1.0, 1.0)
        assert all(0 <= done <= 1 for done, _ in calls)


class TestContrast:
    def test_a_number_is_taken_as_it_is(self, camera):
        _, info = aniso.inpaint(camera, lost(camera), contrast=4, sigma=1, rho=0, return_info=True)
        assert (info.contrast, info.sigma, info.rho) == (4.0, 1.0, 0.0)

    def test_the_usual_difference_of_a_ramp_is_its_slope(self):
        ramp = 3.0 * np.add.outer(np.arange(40), np.arange(40))[np.newaxis]
        assert usual_difference([ramp], (1.0, 1.0)) == pytest.approx(3.0)
        assert usual_difference([ramp], (0.5, 0.5)) == pytest.approx(6.0)

    def test_pairs_further_apart_serve_where_there_are_no_neighbours(self):
        known = np.zeros((64, 64), bool)
        known[::4, ::4] = True
        ramp = np.add.outer(np.arange(64.0), np.arange(64.0))[np.newaxis]
        assert usual_difference([ramp], (1.0, 1.0), [known]) == pytest.approx(4 / np.sqrt(4))

    def test_large_images_are_looked_at_in_part(self):
        noise = np.random.default_rng(0).normal(0, 1, (1, 700, 700))
        part, whole = (usual_difference([one], (1.0, 1.0)) for one in (noise, noise[:, :250, :250]))
        assert part == pytest.approx(whole, rel=0.05)

    def test_images_of_two_values_have_one(self):
        truth = np.zeros((40, 40))
        truth[:, 20:] = 100.0
        filled = aniso.inpaint(truth, lost(truth, 0.3))
        assert np.mean(abs(filled - truth)) < 3


def test_a_window_that_is_all_of_the_image_is_solved_once(camera):
    starts = []
    original = inpaint_solver.Solver.start

    def start(*given):
        starts.append(given)
        return original(*given)

    with unittest.mock.patch.object(inpaint_solver.Solver, "start", start):
        aniso.inpaint(camera, lost(camera))
    assert len(starts) == 1


class TestRefusals:
    @pytest.mark.parametrize(
        ("mask", "error", "words"),
        [
            (np.ones((8, 8), bool), ValueError, "all pixels are unknown"),
            (np.zeros((8, 7), bool), ValueError, "mask has shape"),
            (np.zeros((8, 8, 3), bool), ValueError, "mask has shape .* Colour images need channel_axis"),
            (np.zeros((2, 1, 8, 8), bool), ValueError, "images of a batch, share one mask"),
            (np.full((8, 8), 255, np.uint8), TypeError, "mask > 0"),
            (np.zeros((8, 8)), TypeError, "must be boolean"),
            ("mask", TypeError, "must be boolean"),
        ],
    )
    def test_masks(self, mask, error, words):
        with pytest.raises(error, match=words):
            aniso.inpaint(np.ones((8, 8)), mask)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_known_pixels_that_are_no_numbers(self, bad):
        image = np.ones((8, 8))
        image[2, 3] = bad
        mask = np.zeros((8, 8), bool)
        mask[0, 0] = True
        with pytest.raises(ValueError, match=r"1 known pixels.*\(2, 3\)"):
            aniso.inpaint(image, mask)

    def test_an_image_of_nothing_but_nan(self):
        with pytest.raises(ValueError, match="all pixels are unknown"):
            aniso.inpaint(np.full((4, 4), np.nan))

    @pytest.mark.parametrize("image", [np.ones((4, 4), bool), np.ones((4, 4), complex), "image", [["a"]]])
    def test_what_is_no_image(self, image):
        with pytest.raises(TypeError, match="real numeric dtype"):
            aniso.inpaint(image)

    @pytest.mark.parametrize("shape", [(0, 4), (4, 4, 4, 4), ()])
    def test_shapes(self, shape):
        with pytest.raises(ValueError, match="image"):
            aniso.inpaint(np.ones(shape))

    def test_masked_arrays(self):
        with pytest.raises(TypeError, match="getmaskarray"):
            aniso.inpaint(np.ma.masked_equal(np.eye(4), 0))

    @pytest.mark.parametrize(
        ("options", "error"),
        [
            ({"contrast": 0}, ValueError),
            ({"contrast": -1.0}, ValueError),
            ({"contrast": np.inf}, ValueError),
            ({"contrast": "high"}, ValueError),
            ({"sigma": -1}, ValueError),
            ({"rho": np.nan}, ValueError),
            ({"tolerance": 0}, ValueError),
            ({"tolerance": 2}, ValueError),
            ({"max_cycles": 0}, ValueError),
            ({"max_cycles": 1.5}, TypeError),
            ({"spacing": 0}, ValueError),
            ({"spacing": (1, 1, 1)}, ValueError),
            ({"channel_axis": 5}, ValueError),
            ({"engine": "gpu"}, ValueError),
            ({"threads": 0}, ValueError),
            ({"progress": 3}, TypeError),
        ],
    )
    @pytest.mark.parametrize("mask", [np.eye(6, dtype=bool), None])
    def test_options(self, options, error, mask):
        with pytest.raises(error):
            aniso.inpaint(np.eye(6), mask, **options)


class TestVolumes:
    @pytest.mark.parametrize(
        "maker", [aniso.samples.fibres, aniso.samples.balls], ids=lambda maker: maker.__name__
    )
    def test_all_three_directions_help(self, maker):
        truth = maker(32, noise=0.0, seed=4).truth
        unknown = np.random.default_rng(0).random(truth.shape) > 0.1
        filled, info = aniso.inpaint(truth, unknown, return_info=True)
        slices = np.stack([aniso.inpaint(*pair) for pair in zip(truth, unknown, strict=True)])

        def error(result):
            return np.std((result - truth)[unknown])

        np.testing.assert_array_equal(filled[~unknown], truth[~unknown])
        assert info.converged
        assert error(filled) < 0.9 * error(slices)
        assert truth.min() <= filled.min() <= filled.max() <= truth.max()

    def test_nan_channels_and_spacing(self):
        volume = aniso.samples.balls((8, 12, 14), noise=0.0).truth.astype(np.float32)
        volume[3:5, 4:7, 5:9] = np.nan
        filled = aniso.inpaint(np.stack([volume, volume / 2]), channel_axis=0, spacing=(3, 1, 1))
        assert filled.shape == (2, 8, 12, 14)
        assert np.isfinite(filled).all()
        known = np.isfinite(volume)
        np.testing.assert_array_equal(filled[0][known], volume[known])

    def test_a_ramp_is_continued(self):
        ramp = np.add.outer(np.arange(12.0), np.zeros((12, 12)))
        unknown = np.zeros(ramp.shape, bool)
        unknown[5:7, 3:9, 3:9] = True
        np.testing.assert_allclose(aniso.inpaint(ramp, unknown, tolerance=1e-5), ramp, atol=0.1)
