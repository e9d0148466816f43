"""denoise() with a map of noise levels: one for each pixel."""

from typing import Any

import dask.array as da
import numpy as np
import pytest
import torch

import aniso

TRUTH = aniso.samples.shapes(128, noise=0.0).truth
MAP = np.linspace(4.0, 40.0, 128) * np.ones((128, 1))


def _noisy(truth=TRUTH, levels=MAP):
    return (truth + levels * np.random.default_rng(0).normal(0, 1, truth.shape)).astype(np.float32)


def _rms(image, truth=TRUTH):
    return float(np.sqrt(np.mean((np.asarray(image, np.float64) - truth) ** 2)))


def test_a_map_is_better_than_one_level():
    noisy = _noisy()
    result, plan = aniso.denoise(noisy, noise=MAP, return_info=True)
    level = float(np.sqrt(np.mean(MAP**2)))
    assert plan.noise == pytest.approx(level)
    assert _rms(result) < 0.85 * _rms(aniso.denoise(noisy, noise=level))
    assert _rms(result) == pytest.approx(plan.expected_error, rel=0.4)


def test_a_constant_map_is_a_level():
    noisy = _noisy(levels=10.0)
    expected = aniso.denoise(noisy, noise=10.0)
    np.testing.assert_allclose(aniso.denoise(noisy, noise=np.full((128, 128), 10.0)), expected, atol=1e-3)


def test_constants_stay_constant():
    result = aniso.denoise(np.full((128, 128), 90.0), noise=MAP)
    np.testing.assert_allclose(result, 90.0, rtol=1e-12)


def test_turning_image_and_map_turns_the_result():
    noisy = _noisy()
    given: Any = {"contrast": 8.0, "time": 3.0}  # those that are estimated depend on chance
    turned = aniso.denoise(np.rot90(noisy), noise=np.rot90(MAP), **given)
    np.testing.assert_allclose(turned, np.rot90(aniso.denoise(noisy, noise=MAP, **given)), atol=1e-2)


def test_arrays_in_blocks_and_tensors_give_the_same_bits():
    noisy = _noisy()
    expected = aniso.denoise(noisy, noise=MAP)
    for levels in (MAP, da.from_array(MAP, 50)):
        np.testing.assert_array_equal(
            aniso.denoise(da.from_array(noisy, 60), noise=levels).compute(), expected
        )
    found = aniso.denoise(torch.from_numpy(noisy), noise=torch.from_numpy(MAP))
    np.testing.assert_array_equal(found.numpy(), expected)


def test_channels_and_frames_share_a_map():
    noisy = _noisy()
    colour = np.stack([noisy, noisy[::-1]], -1)
    assert _rms(aniso.denoise(colour, noise=MAP, channel_axis=-1)[..., 0]) < 0.5 * _rms(noisy)
    frames = aniso.denoise(np.stack([noisy, noisy]), noise=MAP, frame_axis=0)
    assert _rms(frames[1]) < 0.5 * _rms(noisy)
    each = aniso.denoise(np.stack([noisy, noisy]), noise=np.stack([MAP, MAP]), frame_axis=0)
    np.testing.assert_allclose(each, frames, atol=1e-3)


def test_masks_and_nan():
    noisy = _noisy()
    noisy[20:24, 20:24] = np.nan
    assert not np.isnan(aniso.denoise(noisy, noise=MAP)).any()
    assert np.isnan(aniso.denoise(noisy, noise=MAP, keep_nan=True)).sum() == 16


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (
            MAP[:5],
            r"one level for each pixel, as an array of shape \(128, 128\), .* got an array of shape \(5, 128",
        ),
        (np.zeros_like(MAP), "noise must be positive and finite everywhere"),
        (np.full_like(MAP, np.nan), "noise must be positive and finite everywhere"),
        (MAP > 5, "noise must be an array of real numbers, got bool"),
    ],
)
def test_wrong_maps_are_rejected(levels, message):
    with pytest.raises(ValueError, match=message):
        aniso.denoise(_noisy(), noise=levels)


def test_a_plan_with_a_map_says_that_it_cannot_be_applied():
    noisy = _noisy()
    _, plan = aniso.denoise(noisy, noise=MAP, return_info=True)
    assert plan.mapped
    for one in (plan, aniso.plans.Plan.from_json(plan.to_json())):
        with pytest.raises(ValueError, match="map of noise levels"):
            one.apply(noisy)
