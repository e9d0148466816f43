"""What holds for every verb: tensors are taken like arrays, the input stays, the info can be read."""

import inspect

import numpy as np
import pytest
import torch

import aniso
from tests.registry import RINGS, UNKNOWN, VERBS

SAMPLE, MASK = RINGS, UNKNOWN
every_verb = pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)


@every_verb
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_tensor_gives_what_the_array_gives(verb, dtype):
    image = torch.from_numpy(SAMPLE.image).to(dtype)
    before = image.clone()
    result = verb(image)
    assert isinstance(result, torch.Tensor)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.numpy(), verb(image.numpy()))
    assert torch.equal(image, before)


@every_verb
def test_a_batch_gives_what_its_images_give(verb):
    other = aniso.samples.fingerprint(48, noise=20.0).image
    batch = torch.tensor(np.stack([[SAMPLE.image, other], [other, SAMPLE.image]])).float()
    result, infos = verb(batch, return_info=True)
    assert result.shape[:2] == (2, 2)
    assert len(infos) == 2
    for one, image, info in zip(result, batch, infos, strict=True):
        expected, expected_info = verb(image.numpy(), channel_axis=0, return_info=True)
        np.testing.assert_array_equal(one.numpy(), expected)
        assert str(info) == str(expected_info)


@every_verb
def test_integers_and_half_precision_give_single_precision(verb):
    for dtype in (torch.uint8, torch.float16, torch.bfloat16):
        image = torch.from_numpy(SAMPLE.image.clip(0, 255)).to(dtype)
        result = verb(image)
        assert result.dtype == torch.float32
        assert result.max() > 50  # in the grey scale it has


@every_verb
def test_the_torch_engine_serves_the_verbs_too(verb):
    cpu, tensors = (verb(SAMPLE.image, engine=engine) for engine in ("cpu", "torch"))
    assert isinstance(tensors, np.ndarray)
    assert abs(cpu - tensors).max() < 1e-6 * abs(cpu).max()


@every_verb
def test_gradients_are_refused(verb):
    with pytest.raises(ValueError, match=r"no gradients.*image\.detach\(\)"):
        verb(torch.from_numpy(SAMPLE.image).requires_grad_())


@every_verb
def test_a_batch_has_its_channels_along_axis_1(verb):
    with pytest.raises(ValueError, match=r"batch \(images, channels, D, H, W\).*channel_axis=-1"):
        verb(torch.zeros(1, 4, 4, 4, 3), channel_axis=-1)
    with pytest.raises(ValueError, match="empty"):
        verb(torch.zeros(0, 1, 8, 8))


def test_each_image_of_a_batch_may_have_its_own_mask():
    batch = torch.from_numpy(SAMPLE.image)[None, None].repeat(2, 1, 1, 1)
    masks = torch.from_numpy(np.stack([MASK, ~MASK]))
    result = aniso.inpaint(batch, masks)
    for one, mask in zip(result, masks, strict=True):
        np.testing.assert_array_equal(one[0].numpy(), aniso.inpaint(SAMPLE.image, mask.numpy()))
        np.testing.assert_array_equal(one[0][~mask].numpy(), SAMPLE.image[~mask.numpy()])


@every_verb
def test_the_info_prints_as_a_summary(verb):
    _, info = verb(SAMPLE.image, return_info=True)
    lines = str(info).splitlines()
    assert len(lines) >= 4
    assert all(len(line) < 160 for line in lines)


@pytest.mark.parametrize("name", VERBS)
def test_the_info_is_named_after_the_verb(name):
    _, info = VERBS[name](SAMPLE.image, return_info=True)
    assert type(info) is getattr(aniso.plans, f"{name.capitalize()}Plan")
    assert isinstance(info, aniso.Plan)
    assert info.verb == name


def _keywords(name):
    parameters = inspect.signature(getattr(aniso, name)).parameters.values()
    return {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY}


@pytest.mark.parametrize("name", [*VERBS, "diffuse", "scale_space"])
def test_what_verbs_have_in_common_comes_last_and_in_one_order(name):
    common = ["stencil", "scheme", "spacing", "channel_axis", "frame_axis", "fixed", "engine"]
    common += ["threads", "progress", "return_info"]
    keywords = list(_keywords(name))
    expected = [keyword for keyword in common if keyword in keywords]
    assert keywords[-len(expected) :] == expected
    assert {"spacing", "channel_axis", "engine", "threads", "progress"} <= set(keywords)


@pytest.mark.parametrize("name", VERBS)
def test_what_is_estimated_is_called_auto_and_none_means_the_same(name):
    estimated = [keyword for keyword, default in _keywords(name).items() if default == "auto"]
    assert "contrast" in estimated
    expected, info = VERBS[name](SAMPLE.image, return_info=True)
    result, same = VERBS[name](SAMPLE.image, return_info=True, **dict.fromkeys(estimated))
    np.testing.assert_array_equal(result, expected)
    assert same == info
    numbers = [keyword for keyword in estimated if keyword != "method"]
    for keyword in numbers:
        with pytest.raises(ValueError, match=f"{keyword} must be .*\"auto\".*, got 'much'"):
            VERBS[name](SAMPLE.image, **{keyword: "much"})
        with pytest.raises(ValueError, match=f"{keyword} must lie in .0, inf., got -1: it is "):
            VERBS[name](SAMPLE.image, **{keyword: -1})
        with pytest.raises(ValueError, match=f"{keyword} must be finite, got inf: it is "):
            VERBS[name](SAMPLE.image, **{keyword: np.inf})
        with pytest.raises(ValueError, match=f"{keyword} must be a number, got nan. It is "):
            VERBS[name](SAMPLE.image, **{keyword: np.nan})


def test_there_is_one_mask_for_all_images_or_one_for_each():
    batch, masks = torch.zeros(2, 1, 48, 48), torch.from_numpy(np.stack([MASK] * 3))
    with pytest.raises(ValueError, match="3 masks for 2 images"):
        aniso.inpaint(batch, masks)


VOLUME = aniso.samples.layers((6, 12, 14), noise=15.0).image
every_plain_verb = pytest.mark.parametrize("name", ["denoise", "enhance", "upsample"])


def _called(name, volume, **options):
    return getattr(aniso, name)(volume, *([2] if name == "upsample" else []), **options)


@every_plain_verb
def test_tensors_may_be_volumes_and_batches_of_them(name):
    volume = torch.from_numpy(VOLUME)
    alone = _called(name, VOLUME)
    np.testing.assert_array_equal(_called(name, volume).numpy(), alone)
    batch, infos = _called(name, torch.stack([volume, 2 * volume])[:, None], return_info=True)
    assert batch.shape == (2, 1, *alone.shape)
    assert len(infos) == 2
    np.testing.assert_allclose(batch[0, 0].numpy(), alone, atol=1e-9)


@every_plain_verb
def test_a_volume_with_channels_is_no_batch(name):
    volume = torch.from_numpy(np.stack([VOLUME, VOLUME], axis=-1))
    expected = _called(name, volume.numpy(), channel_axis=-1)
    np.testing.assert_array_equal(_called(name, volume, channel_axis=-1).numpy(), expected)


def test_each_volume_of_a_batch_may_have_its_own_mask():
    masks = np.zeros((2, *VOLUME.shape), bool)
    masks[0, 2, 3:5], masks[1, :, 6] = True, True
    batch = torch.from_numpy(np.stack([VOLUME, VOLUME])[:, None])
    result = aniso.inpaint(batch, torch.from_numpy(masks))
    for one, mask in zip(result, masks, strict=True):
        np.testing.assert_array_equal(one[0].numpy(), aniso.inpaint(VOLUME, mask))


@pytest.mark.parametrize("shape", [(40, 40, 3), (32, 50, 4)])
def test_a_colour_image_without_channel_axis_is_warned_of(shape):
    image = np.random.default_rng(0).normal(100, 5, shape)
    with pytest.warns(UserWarning, match=r"treated as a volume.*channel_axis=-1"):
        aniso.diffuse(image, aniso.Homogeneous(), 0.1)
    with pytest.warns(UserWarning, match="treated as a volume"):
        aniso.denoise(image)
    with pytest.warns(UserWarning, match="channel_axis=0"):
        aniso.diffuse(torch.from_numpy(image).movedim(-1, 0), aniso.Homogeneous(), 0.1)


def test_volumes_are_not_warned_of():
    for shape in ((40, 40, 5), (3, 40, 40), (8, 8, 3), (40, 4, 3)):
        aniso.diffuse(np.zeros(shape), aniso.Homogeneous(), 0.1)
