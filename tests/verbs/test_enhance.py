"""enhance() takes noise off lines and closes their gaps."""

from typing import Any

import dask.array as da
import numpy as np
import pytest
from scipy import ndimage

import aniso
from aniso.verbs.corrections import FillGaps, PutBack
from aniso.verbs.line_scales import LineScales


def rms(difference):
    return np.sqrt(np.mean(difference**2))


def error(result, sample):
    return rms(result - sample.truth) / rms(sample.image - sample.truth)


def like_blurred(image, result, where=...):
    """Return the image after a Gaussian that leaves as much variation as the result has."""
    blurs = [ndimage.gaussian_filter(image, width) for width in np.arange(0, 3, 0.1)]
    return min(blurs, key=lambda one: abs(one[where].std() - result[where].std()))


@pytest.mark.parametrize("noise", [10.0, 40.0, 80.0])
@pytest.mark.parametrize(("size", "period"), [(112, 8.0), (144, 13.0)])
@pytest.mark.parametrize("make", [aniso.samples.rings, aniso.samples.fingerprint])
def test_lines_are_restored_and_gaps_closed(make, size, period, noise):
    sample = make(size, period=period, noise=noise, seed=77)
    result = aniso.enhance(sample.image)
    assert error(result, sample) < 0.35
    assert (result[sample.gaps] < 127.5).mean() > 0.9


def test_the_remedies_are_worth_it():
    sample = aniso.samples.fingerprint(128, noise=20.0, seed=5)
    plain = aniso.enhance(sample.image, refine=False)
    assert error(aniso.enhance(sample.image), sample) < 0.6 * error(plain, sample)


def test_bright_lines_are_lines_too():
    sample = aniso.samples.rings(112, seed=5)
    result = aniso.enhance(255 - sample.image)
    np.testing.assert_allclose(result, 255 - aniso.enhance(sample.image), atol=1e-8)


@pytest.mark.parametrize("turns", [1, 2, 3])
@pytest.mark.parametrize("make", [aniso.samples.rings, aniso.samples.fingerprint])
def test_quarter_turns_commute(make, turns):
    image = make(96, seed=2).image
    np.testing.assert_allclose(
        aniso.enhance(np.rot90(image, turns)), np.rot90(aniso.enhance(image), turns), atol=1e-8
    )


def test_it_can_be_cancelled_while_it_chooses(monkeypatch):
    events = []

    def note(owner, name):
        function = getattr(owner, name)

        def noted(*arguments, **options):
            events.append(name)
            return function(*arguments, **options)

        monkeypatch.setattr(owner, name, noted)

    for owner, name in (
        (LineScales, "estimate"),
        *((correction, name) for correction in (FillGaps, PutBack) for name in ("observe", "correct")),
    ):
        note(owner, name)
    frames = np.stack([aniso.samples.rings(48, seed=seed).image for seed in range(3)])
    monkeypatch.setattr(aniso.plans.EnhancePlan, "filter", lambda *_: events.append("chosen"))
    aniso.enhance(frames, frame_axis=0, progress=lambda done, total: events.append("asked"))
    assert {"estimate", "observe", "correct"} < set(events)
    long_ones = [place for place, event in enumerate(events) if event not in ("asked", "chosen")]
    assert all(events[place - 1] == "asked" for place in long_ones)


def test_mirroring_commutes():
    image = aniso.samples.fingerprint(80, seed=2).image
    np.testing.assert_allclose(aniso.enhance(image.T), aniso.enhance(image).T, atol=1e-8)
    np.testing.assert_allclose(aniso.enhance(image[::-1]), aniso.enhance(image)[::-1], atol=1e-8)


@pytest.mark.parametrize("factor", [2.0**-8, 2.0**7])
def test_the_result_scales_with_the_image(factor):
    image = aniso.samples.rings(80, seed=2).image
    np.testing.assert_allclose(aniso.enhance(factor * image), factor * aniso.enhance(image), rtol=1e-7)


def test_a_shift_of_all_grey_values_shifts_the_result():
    image = aniso.samples.rings(80, seed=2).image
    np.testing.assert_allclose(aniso.enhance(image + 1000) - 1000, aniso.enhance(image), atol=1e-6)


def test_spacing_is_a_unit_of_length():
    image = aniso.samples.rings(80, seed=2).image
    result, info = aniso.enhance(image, return_info=True)
    wide, wide_info = aniso.enhance(image, spacing=3.0, return_info=True)
    np.testing.assert_allclose(wide, result, atol=1e-6)
    assert wide_info.wavelength == pytest.approx(3 * info.wavelength)
    assert wide_info.time == pytest.approx(9 * info.time)


def test_pixels_may_be_longer_along_one_axis():
    sample = aniso.samples.rings(160, noise=20.0, seed=4)
    squeezed = aniso.samples.Sample(sample.image[::2], sample.truth[::2], sample.gaps[::2])
    assert error(aniso.enhance(squeezed.image, spacing=(2.0, 1.0)), squeezed) < 0.4


def test_colours_are_enhanced_together():
    sample = aniso.samples.fingerprint(96, noise=0.0, seed=2)
    noise = np.random.default_rng(3).normal(0, 40, (3, 96, 96))
    weights = np.reshape([1.0, 0.6, -0.4], (3, 1, 1))
    colours, truth = weights * sample.image + noise, weights * sample.truth
    result = aniso.enhance(colours, channel_axis=0)
    assert rms(result - truth) < 0.3 * rms(colours - truth)
    last = aniso.enhance(np.moveaxis(colours, 0, -1), channel_axis=-1)
    np.testing.assert_allclose(np.moveaxis(last, -1, 0), result, atol=1e-8)


def test_given_parameters_are_used():
    image = aniso.samples.rings(80, seed=2).image
    options: dict[str, Any] = {"noise": 35.0, "wavelength": 11.0, "contrast": 9.0, "time": 20.0}
    result, info = aniso.enhance(image, refine=False, return_info=True, **options)
    assert (info.noise, info.wavelength, info.contrast, info.time) == (35.0, 11.0, 9.0, 20.0)
    model = aniso.CoherenceEnhancing(contrast=9.0, sigma=info.sigma, rho=info.rho)
    stencil = aniso.DeltaStencil(alpha=0.45)
    np.testing.assert_array_equal(
        result, aniso.diffuse(image, model, 20.0, scheme=aniso.FED(4), stencil=stencil)
    )


def test_the_summary_says_what_was_found():
    sample = aniso.samples.rings(128, seed=2)
    _, info = aniso.enhance(sample.image, return_info=True)
    assert info.wavelength == pytest.approx(12, rel=0.1)
    assert info.noise == pytest.approx(40, rel=0.1)
    assert info.interrupted == pytest.approx(sample.gaps.mean(), abs=0.02)
    assert info.diffusions == 4
    assert "line spacing" in str(info)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
def test_types_and_the_callers_array_are_kept(dtype):
    image = aniso.samples.rings(64, seed=2).image.clip(0, 255).astype(dtype)
    before = image.copy()
    result = aniso.enhance(image)
    assert result.dtype == (np.float64 if dtype == np.float64 else np.float32)
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (2, 2), (3, 50)])
def test_small_images(shape):
    image = np.random.default_rng(0).normal(100, 5, shape)
    result = aniso.enhance(image)
    assert result.shape == shape
    assert np.isfinite(result).all()


def test_a_constant_image_stays():
    flat = np.full((24, 20), 0.1)
    result = aniso.enhance(flat)
    np.testing.assert_allclose(result, flat, rtol=1e-12)
    assert not np.shares_memory(result, flat)


def test_progress_ends_at_the_total():
    told = []
    aniso.enhance(aniso.samples.rings(64).image, progress=lambda done, total: told.append((done, total)))
    times, totals = zip(*told, strict=True)
    assert len(set(totals)) == 1
    assert list(times) == sorted(times)
    assert times[-1] == pytest.approx(totals[0])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"noise": -1}, ValueError, "noise must lie in"),
        ({"contrast": -3}, ValueError, "contrast must lie in"),
        ({"wavelength": 0}, ValueError, "wavelength must lie in"),
        ({"time": "long"}, ValueError, 'time must be a number or "auto"'),
        ({"progress": 3}, TypeError, "progress must be"),
        ({"engine": "none"}, ValueError, "engine must be None or one of"),
    ],
)
def test_bad_parameters_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        aniso.enhance(aniso.samples.rings(32).image, **options)


def test_signals_are_refused():
    with pytest.raises(ValueError, match="a signal has no lines"):
        aniso.enhance(np.arange(10.0))


def test_a_wavelength_far_beyond_the_image_is_refused():
    with pytest.raises(ValueError, match=r"shorter side of the image, 32, got 1000"):
        aniso.enhance(np.eye(32), wavelength=1000.0)
    with pytest.raises(ValueError, match="wavelength must be at least the pixel spacing, 1, got 1e-300"):
        aniso.enhance(np.eye(32), wavelength=1e-300)


def test_the_wavelength_of_a_slope_stays_within_the_image():
    _, info = aniso.enhance(np.add.outer(np.arange(64.0), np.arange(64.0)), return_info=True)
    assert info.wavelength <= 16


class TestHonesty:
    """Nothing is drawn where there are no lines."""

    @pytest.mark.parametrize("blur", [0.0, 1.0, 2.0, 3.5])
    def test_noise_does_not_become_coherent(self, blur):
        noise = np.random.default_rng(4).normal(0, 10, (144, 144))
        noise = ndimage.gaussian_filter(noise, blur)
        result, plan = aniso.enhance(noise, return_info=True)
        assert aniso.coherence(result).mean() < aniso.coherence(like_blurred(noise, result)).mean() + 0.1
        assert plan.lines < 0.1

    @pytest.mark.parametrize("period", [5.0, 7.0, 9.0, 13.0, 20.0])
    @pytest.mark.parametrize("noise", [0.0, 0.5])
    def test_a_strong_background_does_not_hide_lines(self, noise, period):
        y, x = np.indices((160, 160), float)
        lines = np.cos(2 * np.pi * (0.8 * y + 0.6 * x) / period)
        background = 10 * np.sin(y / 40) * np.cos(x / 33)
        image = lines + background + np.random.default_rng(1).normal(0, noise, lines.shape)
        result, plan = aniso.enhance(image, return_info=True)
        assert plan.wavelength == pytest.approx(period, rel=1 / 6)
        assert plan.lines > 0.9
        inner = np.s_[10:-10, 10:-10]
        assert rms((result - background - lines)[inner]) < 0.45

    def test_lines_next_to_noise(self):
        sample = aniso.samples.rings(128, period=9.0, noise=0.0)
        noise = np.random.default_rng(2).normal(0, 30, (128, 256))
        image = np.hstack([sample.truth, np.full((128, 128), 127.5)]) + noise
        result = aniso.enhance(image)
        assert rms((result - image)[:, :96]) > 20
        noisy = aniso.coherence(result)[:, 160:]
        assert noisy.mean() < aniso.coherence(image)[:, 160:].mean() + 0.1

    def test_the_margin_of_a_picture_is_not_a_line(self):
        sample = aniso.samples.fingerprint(192, period=9.0, noise=0.0, seed=1)
        y, x = np.indices((192, 192)) - 95.5
        inside = np.hypot(y, x) < 80
        picture = np.where(inside, 0.1 * sample.truth - 0.01 * (y**2 + x**2), 100.0)
        picture += np.random.default_rng(2).normal(0, 3, picture.shape)
        assert aniso.estimates.wavelength(picture) == pytest.approx(9, abs=1.5)

    def test_single_lines_in_noise_are_lines_and_the_rest_is_smoothed(self):
        y, x = np.indices((160, 160), float)
        distance = np.minimum(abs(0.8 * y + 0.6 * x - 90), abs(y - 0.4 * x - 20))
        truth = 100 - 30 * np.exp(-((distance / 1.5) ** 2))
        noise = np.random.default_rng(3).normal(0, 6, truth.shape)
        result = aniso.enhance(truth + noise)
        near, far = distance < 2, distance > 20
        assert rms((result - truth)[near]) < 0.6 * rms(noise[near])
        assert rms((result - truth)[far]) < 0.6 * rms(noise[far])
        alike = like_blurred(truth + noise, result, far)
        assert aniso.coherence(result)[far].mean() < aniso.coherence(alike)[far].mean() + 0.1

    def test_lines_that_cross_are_not_gaps(self):
        y, x = np.indices((144, 144), float)
        strong, faint = abs(y - 72), abs(x - 72 - 0.3 * (y - 72))
        image = 100 - 60 * np.exp(-((strong / 3) ** 2)) - 20 * np.exp(-((faint / 2) ** 2))
        image += np.random.default_rng(3).normal(0, 1, image.shape)
        _, plan = aniso.enhance(image, return_info=True)
        assert plan.interrupted < 0.005

    def test_nothing_overflows_without_noise(self):
        stage = FillGaps((8.0, 8.0), 1, 0.0, last=True, patterns=True)
        image = np.random.default_rng(0).normal(0, 1e14, (1, 40, 40)).astype(np.float32)
        state = {"image": image, "diffused": np.zeros_like(image)}
        gaps = stage.correct(state, *stage.observe(state))
        assert np.isfinite(gaps).all()


class TestUnknownPixels:
    """Pixels that are not to be trusted have no influence."""

    SAMPLE = aniso.samples.rings(96, noise=20.0, seed=3)
    UNKNOWN = np.zeros((96, 96), bool)
    UNKNOWN[30:36, 50:60] = True
    UNKNOWN[70] = True

    def test_their_values_do_not_matter(self):
        image, unknown = self.SAMPLE.image, self.UNKNOWN
        result, plan = aniso.enhance(np.where(unknown, np.nan, image), return_info=True)
        assert plan.noise == pytest.approx(20, rel=0.15)
        assert error(result, self.SAMPLE) < 0.35
        for value in (0.0, 1e6):
            found = aniso.enhance(np.where(unknown, value, image), mask=unknown)
            np.testing.assert_array_equal(found, result)

    def test_they_may_stay_unknown(self):
        image = np.where(self.UNKNOWN, np.nan, self.SAMPLE.image)
        kept = aniso.enhance(image, keep_nan=True)
        np.testing.assert_array_equal(np.isnan(kept), self.UNKNOWN)
        np.testing.assert_array_equal(kept[~self.UNKNOWN], aniso.enhance(image)[~self.UNKNOWN])

    def test_dask_arrays_frames_and_channels(self):
        image, unknown = self.SAMPLE.image, self.UNKNOWN
        expected = aniso.enhance(image, mask=unknown, keep_nan=True)
        blocks = da.from_array(image, chunks=(50, 60))
        lazy = aniso.enhance(blocks, mask=unknown, keep_nan=True)
        np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), expected)
        frames = np.stack([image, 255 - image])
        result = aniso.enhance(frames, mask=unknown, frame_axis=0, keep_nan=True)
        np.testing.assert_array_equal(np.isnan(result), [unknown] * 2)
        colour = aniso.enhance(np.moveaxis(frames, 0, -1), mask=unknown, channel_axis=-1, keep_nan=True)
        np.testing.assert_array_equal(np.isnan(colour[..., 1]), unknown)


class TestVolumes:
    @pytest.mark.parametrize("plates", [True, False])
    @pytest.mark.parametrize("blur", [0.0, 1.0, 2.0])
    def test_noise_does_not_become_coherent(self, blur, plates):
        noise = ndimage.gaussian_filter(np.random.default_rng(4).normal(0, 10, (36, 40, 44)), blur)
        result, plan = aniso.enhance(noise, plates=plates, return_info=True)
        assert aniso.coherence(result).mean() < aniso.coherence(like_blurred(noise, result)).mean() + 0.1
        assert plan.lines < 0.1

    @pytest.mark.parametrize("plates", [True, False])
    def test_a_dark_background_stays_as_it_is(self, plates):
        # Two bright tubes in the noise of a magnitude image.
        z, y, x = np.indices((40, 48, 48), float)
        distance = np.minimum(
            np.hypot(y - 14 - 3 * np.sin(z / 8), x - 14), np.hypot(z - 20, y - 0.3 * x - 18)
        )
        tubes = 200 * np.exp(-((distance / 1.8) ** 4))
        rng = np.random.default_rng(5)
        image = np.hypot(tubes + rng.normal(0, 10, tubes.shape), rng.normal(0, 10, tubes.shape))
        result, plan = aniso.enhance(image, plates=plates, return_info=True)
        far = distance > 9
        alike = like_blurred(image, result, far)
        assert aniso.coherence(result)[far].mean() < aniso.coherence(alike)[far].mean() + 0.1
        assert 0.05 < plan.lines < 0.5
        assert result[tubes > 150].mean() > 0.9 * image[tubes > 150].mean()

    @pytest.mark.parametrize("noise", [10.0, 40.0])
    def test_gaps_in_layers_close(self, noise):
        sample = aniso.samples.layers(36, gaps=10, noise=noise, seed=3)
        result = aniso.enhance(sample.image)
        inner = sample.gaps & (abs(sample.truth - 127.5) > 40)
        same_side = (result > 127.5) == (sample.truth > 127.5)
        assert same_side[inner].mean() > 0.9
        assert np.std(result - sample.truth) < 0.8 * np.std(sample.image - sample.truth)

    def test_lines_only_is_better_for_fibres(self):
        sample = aniso.samples.fibres(36, gaps=8, noise=30.0, seed=3)
        lines, plates = (aniso.enhance(sample.image, plates=plates) for plates in (False, True))
        for result in (lines, plates):
            assert np.std(result - sample.truth) < np.std(sample.image - sample.truth)
        assert lines[sample.gaps].mean() > plates[sample.gaps].mean()
        assert lines[sample.gaps].mean() > sample.image[sample.gaps].mean() + 15

    def test_images_do_not_depend_on_plates(self):
        image = aniso.samples.rings(48).image
        np.testing.assert_array_equal(aniso.enhance(image, plates=False), aniso.enhance(image))

    def test_plates_is_true_or_false(self):
        with pytest.raises(TypeError, match="plates must be True or False, got 1"):
            aniso.enhance(np.eye(8), plates=1)  # type: ignore[arg-type]

    @pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4), (1, 12, 13), (3, 20, 20), (9, 1, 1)])
    def test_small_and_thin_ones(self, shape):
        volume = np.random.default_rng(0).normal(100, 5, shape)
        result = aniso.enhance(volume)
        assert result.shape == shape
        assert np.isfinite(result).all()

    def test_constant_ones_channels_and_spacing(self):
        np.testing.assert_allclose(aniso.enhance(np.full((6, 7, 8), 5.0)), 5.0)
        volume = aniso.samples.layers((12, 16, 16), noise=10.0).image
        result, info = aniso.enhance(volume, return_info=True)
        wide, wide_info = aniso.enhance(volume, spacing=2.0, return_info=True)
        np.testing.assert_allclose(wide, result, atol=1e-6)
        assert wide_info.wavelength == pytest.approx(2 * info.wavelength)
        both = np.stack([volume, volume], axis=-1)
        coloured = aniso.enhance(both, channel_axis=-1)
        assert coloured.shape == both.shape
        np.testing.assert_allclose(coloured[..., 0], coloured[..., 1], atol=1e-9)
