"""Averages of similar voxels, which denoise() mixes with diffusions of volumes."""

import dataclasses

import dask
import dask.array as da
import numpy as np
import pytest

import aniso
from aniso.blocks.stages import whole_region
from aniso.settings import Settings
from aniso.verbs import learned
from aniso.verbs.learned import Learned, RunNet
from aniso.verbs.similar import average_similar

RNG = np.random.default_rng(0)
VOLUME = aniso.samples.layers((19, 21, 70), noise=20.0).image.astype(np.float32)


def averages(image, guide, level=20.0, **options):
    settings = Settings.check(3, **options)
    return np.array(average_similar(image, guide, level, (0, 1), settings))


@pytest.mark.parametrize("shape", [(1, 19, 21, 70), (2, 9, 17, 5), (1, 1, 2, 3)])
def test_engines_agree(shape):
    image, guide = RNG.normal(0, 20, shape), RNG.normal(0, 12, shape)
    np.testing.assert_allclose(averages(image, guide), averages(image, guide, engine="reference"), atol=1e-9)


def test_tensors_agree():
    torch = pytest.importorskip("torch")
    image, guide = RNG.normal(0, 20, (2, 1, 6, 7, 8)), RNG.normal(0, 12, (2, 1, 6, 7, 8))
    found = average_similar(torch.tensor(image), torch.tensor(guide), 20.0, (0, 1), Settings.check(3))
    for number in range(2):
        expected = averages(image[number], guide[number])
        np.testing.assert_allclose([one[number].numpy() for one in found], expected, atol=1e-9)


def test_constants_stay_and_dissimilar_voxels_do_not_count():
    steps = np.where(np.arange(12) < 6, 0.0, 200.0) * np.ones((1, 8, 8, 12))
    image = steps + RNG.normal(0, 10, steps.shape)
    np.testing.assert_allclose(averages(np.full_like(image, 7.0), image), 7.0)
    narrow, wide = averages(image, steps)
    for found in (narrow, wide):
        assert found[..., :5].max() < 20
        assert found[..., 7:].min() > 180
        assert (found - steps)[..., :5].std() < 0.25 * 10


def test_threads_give_the_same_bits():
    one, two = (averages(VOLUME[None], VOLUME[None], threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_mixtures_with_them_are_the_same_in_blocks_and_after_json():
    result, plan = aniso.denoise(VOLUME, noise=20.0, return_info=True)
    assert plan.similar is not None
    with dask.config.set(scheduler="synchronous"):
        blocks = aniso.denoise(da.from_array(VOLUME, chunks=(8, 21, 40)), noise=20.0).compute()
    np.testing.assert_array_equal(blocks, result)
    restored = aniso.Plan.from_json(plan.to_json())
    assert restored == plan
    np.testing.assert_array_equal(restored.apply(VOLUME), result)


def test_they_reduce_the_error_of_layers():
    sample = aniso.samples.layers(28, noise=20.0, seed=4)
    result, plan = aniso.denoise(sample.image, noise=20.0, return_info=True)
    without = dataclasses.replace(plan, similar=None).apply(sample.image)
    error, before = (np.sqrt(np.mean((one - sample.truth) ** 2)) for one in (result, without))
    assert error < 0.9 * before
    assert plan.expected_error == pytest.approx(error, rel=0.15)


def test_damaged_weights_are_rejected():
    _, plan = aniso.denoise(VOLUME, noise=20.0, return_info=True)
    with pytest.raises(ValueError, match="add up to 1"):
        dataclasses.replace(plan, similar=dataclasses.replace(plan.similar, averages=(None, None)))
    with pytest.raises(ValueError, match="2 averages"):
        dataclasses.replace(plan.similar, averages=(None,))


@pytest.mark.parametrize("name", ["fibres", "balls"])
def test_an_estimated_level_is_as_good_as_a_given_one(name):
    sample = getattr(aniso.samples, name)(48, noise=60.0, seed=5)
    errors = [
        ((aniso.denoise(sample.image, noise=noise) - sample.truth) ** 2).mean() for noise in ("auto", 60.0)
    ]
    assert errors[0] < 1.03 * errors[1]


def thick_slices(noise=20.0, axis=0):
    """Photographs as slices that have little in common, with noise."""
    photograph = aniso.samples.photograph("camera").astype(np.float32)
    truth = np.stack([photograph[60 + 8 * k :, 180:][:64, :60] for k in range(6)])
    truth = np.moveaxis(truth, 0, axis)
    return truth, truth + RNG.normal(0, noise, truth.shape).astype(np.float32)


class TestSlices:
    @pytest.mark.parametrize("axis", [0, 2])
    def test_a_net_on_thick_slices_is_mixed_in_and_is_better(self, axis):
        truth, noisy = thick_slices(axis=axis)
        spacing = [3.0 if k == axis else 1.0 for k in range(3)]
        result, plan = aniso.denoise(noisy, noise=20.0, spacing=spacing, return_info=True)
        assert plan.similar.learned is not None
        assert plan.similar.axis == axis
        assert plan.choice.startswith("diffusion, mixed with a net on slices, because")
        other, without = aniso.denoise(
            noisy, noise=20.0, spacing=spacing, method="diffusion", return_info=True
        )
        assert without.similar is None or without.similar.learned is None
        error, other_error = (np.mean((one - truth) ** 2) for one in (result, other))
        assert error < 0.95 * other_error
        assert plan.expected_error**2 == pytest.approx(error, rel=0.2)

    def test_the_same_bits_in_blocks_after_json_and_close_on_tensors(self):
        torch = pytest.importorskip("torch")
        _, noisy = thick_slices()
        result, plan = aniso.denoise(noisy, noise=20.0, return_info=True)
        assert plan.similar.learned is not None
        restored = aniso.Plan.from_json(plan.to_json())
        assert restored == plan
        np.testing.assert_array_equal(restored.apply(noisy), result)
        with dask.config.set(scheduler="synchronous"):
            blocks = plan.apply(da.from_array(noisy, chunks=(4, 25, 30))).compute()
        np.testing.assert_array_equal(blocks, result)
        found = plan.apply(torch.from_numpy(noisy)[None, None], channel_axis=1)
        np.testing.assert_allclose(found[0, 0].numpy(), result, atol=2e-3)

    def test_it_is_not_used_where_it_cannot_help_or_run(self):
        balls = aniso.samples.balls((19, 21, 40), noise=40.0).image.astype(np.float32)
        _, plan = aniso.denoise(balls, noise=40.0, return_info=True)
        assert plan.similar.learned is None
        _, noisy = thick_slices()
        for options in ({"engine": "reference"}, {"spacing": (3.0, 1.0, 2.0)}):
            _, plan = aniso.denoise(noisy, noise=20.0, return_info=True, **options)
            assert plan.similar is None or plan.similar.learned is None
        _, plan = aniso.denoise(noisy, noise=20.0, return_info=True)
        with pytest.raises(ValueError, match="a net for slices, which cannot be used"):
            plan.apply(noisy, engine="reference")

    @pytest.mark.parametrize("axis", [0, 2])
    def test_the_number_of_slices_at_a_time_does_not_show(self, axis, monkeypatch):
        _, noisy = thick_slices(axis=axis)
        net = RunNet(Learned("denoise-2-75", 20.0, 1.0, 0.0), Settings.check(3, threads=1), axis=axis)
        ticks, states = [0, 0], [{"image": noisy[None]} for _ in range(2)]
        for number, pixels in enumerate((10**6, 9000)):
            monkeypatch.setattr(learned, "_AT_ONCE", pixels)

            def tick(number=number):
                ticks[number] += 1

            net.run(states[number], whole_region(noisy.shape), tick)
        np.testing.assert_array_equal(states[1]["learned"], states[0]["learned"])
        assert ticks == [net.ticks, net.ticks]

    def test_whether_it_helps_is_judged_on_the_same_slices(self):
        """Most slices are empty, so that the error in the others is larger than that in all of them."""
        details, _ = thick_slices()
        truth = np.concatenate([np.full((48, 64, 60), 128.0), details])
        noisy = (truth + np.random.default_rng(1).normal(0, 20.0, truth.shape)).astype(np.float32)
        result, plan = aniso.denoise(noisy, noise=20.0, return_info=True)
        assert plan.similar.learned is not None
        other = aniso.denoise(noisy, noise=20.0, method="diffusion")
        error, other_error = (np.mean((one - truth) ** 2) for one in (result, other))
        assert error < 0.9 * other_error

    @pytest.mark.parametrize("change", [{"learned": None}, {"slices": None}, {"axis": 3}])
    def test_damaged_plans_are_rejected(self, change):
        _, plan = aniso.denoise(thick_slices()[1], noise=20.0, return_info=True)
        with pytest.raises(ValueError, match="weights of slices if it has a net"):
            dataclasses.replace(plan.similar, **change)
