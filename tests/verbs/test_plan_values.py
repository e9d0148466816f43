"""Values of plans: in their ranges, in the units of the image, and valid for all frames."""

import json
from typing import Any

import numpy as np
import pytest

import aniso
from aniso import noise

TRUTH = aniso.samples.shapes(96, noise=0.0).truth
UNKNOWN = np.random.default_rng(1).random(TRUTH.shape) > 0.5

PLANS = {
    "denoise": lambda: aniso.denoise(TRUTH + 9, noise=5.0, return_info=True)[1],
    "inpaint": lambda: aniso.inpaint(TRUTH, UNKNOWN, return_info=True)[1],
    "upsample": lambda: aniso.upsample(TRUTH, 2, return_info=True)[1],
}


@pytest.mark.parametrize(
    ("verb", "key", "value"),
    [
        ("denoise", "noise", -5),
        ("denoise", "certainty", 7),
        ("denoise", "expected_error", -1),
        ("denoise", "contrast", -1),
        ("inpaint", "contrast", -1),
        ("inpaint", "tolerance", -1),
        ("inpaint", "cycles", 10**12),
        ("inpaint", "unknown", 1.5),
        ("upsample", "time", -1),
        ("upsample", "sigma", -1),
    ],
)
def test_values_out_of_range_are_rejected(verb, key, value):
    values = json.loads(PLANS[verb]().to_json())
    assert key in values
    with pytest.raises(ValueError, match=f"{key} of a plan must lie in"):
        aniso.Plan.from_json(json.dumps(values | {key: value}))


def test_axes_of_channels_that_images_do_not_have_are_rejected():
    values = json.loads(PLANS["denoise"]().to_json())
    with pytest.raises(ValueError, match="channel_axis of a plan for 3 axes cannot be 7"):
        aniso.Plan.from_json(json.dumps(values | {"channel_axis": 7}))


@pytest.mark.parametrize("kind", ["Cycle", "_EqualCycles", "Scheme"])
def test_what_is_not_a_scheme_is_rejected(kind):
    values = json.loads(PLANS["denoise"]().to_json()) | {"scheme": {"type": kind}}
    with pytest.raises(ValueError, match=f"plan.scheme has the unknown type '{kind}'"):
        aniso.Plan.from_json(json.dumps(values))


def test_the_contrast_of_stabilised_images_is_in_grey_values():
    """Given back, it leads to the same diffusion."""
    photons = noise.PoissonGaussian(gain=8.0)
    noisy = photons.sample(TRUTH, np.random.default_rng(0))
    given: list[Any] = [{}, {"contrast": 30.0, "time": 4.0}]
    plan, again = (
        aniso.denoise(noisy, noise=photons, mix=False, return_info=True, **options)[1] for options in given
    )
    assert again.contrast == pytest.approx(30.0)
    assert again.model.contrast < 3.0  # noise has the level 1 there
    for each in (plan, again):
        model, _ = each.steering({})
        assert model.contrast == each.contrast > 10 * each.model.contrast


def test_holes_in_a_frame_that_is_not_sampled():
    frames = np.stack([TRUTH] * 10)
    frames[1, 40:60, 40:60] = np.nan
    filled, plan = aniso.inpaint(frames, frame_axis=0, return_info=True)
    assert plan.cycles > 0
    error, of_one = (
        np.sqrt(((result - TRUTH) ** 2).mean()) for result in (filled[1], aniso.inpaint(frames[1]))
    )
    assert error < 1.1 * of_one


def test_gradients_pass_impulses():
    torch = pytest.importorskip("torch")
    noisy = TRUTH + np.random.default_rng(0).normal(0, 10, TRUTH.shape)
    noisy[5::17, 3::19] = 255.0
    _, plan = aniso.denoise(noisy, return_info=True)
    assert plan.impulses is not None
    image = torch.from_numpy(noisy).requires_grad_()
    plan.apply(image).sum().backward()
    hot = torch.from_numpy(plan.impulses.find(noisy[np.newaxis]))
    assert hot.any()
    assert (image.grad[hot] == 0).all()
    assert image.grad[~hot].mean() > 0.5


def test_a_contrast_that_is_given_for_an_image_without_noise():
    _, plan = aniso.denoise(np.ones((20, 20)), contrast=3.0, time=1.0, return_info=True)
    assert plan.contrast == 3.0
    assert plan.steering({})[0].contrast == 3.0
