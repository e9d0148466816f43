"""Plans: what a verb chose, as data that filters further arrays alike."""

import dataclasses
import functools
import json
import math
import subprocess
import sys
import textwrap
from typing import Any

import dask.array as da
import numpy as np
import pytest

import aniso
from aniso import checks
from aniso.blocks import groups, sample
from aniso.verbs.table import VERBS


def picture(shape, dtype="float32", channel_axis=None):
    """A part of a picture with noise that several diffusions together remove best."""
    if channel_axis is None and len(shape) == 3:
        whole = aniso.samples.balls(max(shape), noise=25.0).image
    else:
        whole = aniso.samples.lighthouse(max(shape), noise=25.0).image
        whole = whole if channel_axis is not None else whole.mean(axis=-1)
    part = whole[tuple(slice(0, n) for n in shape)] - min(whole.min(), 0)
    return part.astype(dtype)


def choosing():
    """Verbs whose `return_info` is a plan and that need no further argument."""
    return [name for name in VERBS if name in ("denoise", "enhance")]


CASES: dict[str, Any] = {
    "grey": {"shape": (70, 90)},
    "doubles": {"shape": (64, 83), "dtype": "float64"},
    "integers": {"shape": (64, 83), "dtype": "uint16"},
    "colour": {"shape": (60, 68, 3), "channel_axis": -1},
    "volume": {"shape": (26, 34, 38)},
}


def plan_of(verb, case, method="diffusion"):
    image, result, plan = _plan_of(verb, case, method)
    return image.copy(), result.copy(), plan


@functools.cache
def _plan_of(verb, case, method):
    given = CASES[case]
    image, axis = picture(**given), given.get("channel_axis")
    options = {"method": method} if verb == "denoise" else {}
    result, plan = getattr(aniso, verb)(image, channel_axis=axis, return_info=True, **options)
    return image, result, plan


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("verb", choosing())
def test_plans_filter_alike_after_json(verb, case):
    image, result, plan = plan_of(verb, case)
    if verb == "denoise":
        assert plan.mixed > 5  # else only a part of a plan would be tried
    again = aniso.Plan.from_json(plan.to_json())
    assert again == plan
    assert hash(again) == hash(plan)
    assert again.apply(image).tobytes() == result.tobytes()
    assert again.apply(image).dtype == result.dtype
    assert str(again) == str(plan)


@pytest.mark.parametrize("verb", choosing())
def test_a_plan_does_not_look_at_the_image(verb):
    image, _, plan = plan_of(verb, "grey")
    other = 3 * picture((81, 40)) + 10
    assert not np.array_equal(plan.apply(other), getattr(aniso, verb)(other))
    assert np.array_equal(plan.apply(other), aniso.Plan.from_json(plan.to_json()).apply(other))
    assert image.tobytes() == picture((70, 90)).tobytes()  # never modified


@pytest.mark.parametrize("chunks", [(33, 90), (16, 23), (70, 31)])
@pytest.mark.parametrize("verb", choosing())
def test_dask_arrays_give_the_same_plan_and_bits(verb, chunks):
    image, result, plan = plan_of(verb, "grey")
    options = {"method": "diffusion"} if verb == "denoise" else {}
    lazy, lazy_plan = getattr(aniso, verb)(da.from_array(image, chunks=chunks), return_info=True, **options)
    assert lazy_plan == plan
    assert lazy.chunks == da.from_array(image, chunks=chunks).chunks
    assert lazy.compute().tobytes() == result.tobytes()


@pytest.mark.parametrize("limit", [1, 20, 1000])
def test_results_do_not_depend_on_the_width_of_halos(monkeypatch, limit):
    image, result, plan = plan_of("denoise", "grey")
    monkeypatch.setattr("aniso.blocks.lazy.group_stages", lambda stages, *_: groups.cut_stages(stages, limit))
    lazy = plan.apply(da.from_array(image, chunks=(24, 31)))
    assert lazy.compute(scheduler="synchronous").tobytes() == result.tobytes()


def test_large_images_are_sampled_and_small_ones_are_not(monkeypatch):
    (only,) = sample.windows((300, 400))
    assert only == (slice(0, 300), slice(0, 400))
    for shape, channels in [((5000, 7000), 1), ((40, 10**6), 1), ((3000, 3000), 3), ((512, 512, 512), 1)]:
        found = sample.windows(shape, channels)
        sizes = {tuple(part.stop - part.start for part in window) for window in found}
        assert len(sizes) == 1
        values = len(found) * channels * math.prod(next(iter(sizes)))
        assert 0.5 < values / sample._VALUES[len(shape)] <= 1.1
        assert all(
            0 <= part.start < part.stop <= n
            for window in found
            for part, n in zip(window, shape, strict=True)
        )
    # The choice costs the same whatever the size of the array.
    looked_at = []

    def look(windows, *noise):
        looked_at.append(windows)
        raise ZeroDivisionError

    monkeypatch.setattr("aniso.verbs.denoise.Judge", look)
    monkeypatch.setitem(sample._VALUES, 2, 9 * 20**2)
    with pytest.raises(ZeroDivisionError):
        aniso.denoise(picture((200, 300)), method="diffusion")
    assert [window.shape for window in looked_at[0]] == [(1, 20, 20)] * 9


@pytest.mark.parametrize("case", ["grey", "doubles", "colour", "volume"])
def test_tensors_are_filtered_by_pytorch(case):
    torch = pytest.importorskip("torch")
    image, result, plan = plan_of("denoise", case)
    filtered = plan.apply(torch.from_numpy(image))
    assert filtered.dtype == torch.from_numpy(result).dtype
    np.testing.assert_allclose(filtered, result, atol=2e-3 if image.dtype == np.float32 else 1e-9)
    np.testing.assert_array_equal(plan.apply(torch.from_numpy(image), engine="cpu"), result)
    with pytest.raises(ValueError, match=r"is for .* got a tensor of shape"):
        plan.apply(torch.zeros(2, 2, 20, 20))


def test_batches_of_tensors_are_filtered_at_once_and_with_gradients():
    torch = pytest.importorskip("torch")
    image, result, plan = plan_of("denoise", "grey")
    batch = torch.from_numpy(np.stack([image, 2 * image]))[:, np.newaxis].requires_grad_()
    filtered = plan.apply(batch)
    assert filtered.shape == batch.shape
    np.testing.assert_allclose(filtered[0, 0].detach(), result, atol=2e-3)
    np.testing.assert_array_equal(filtered[1, 0].detach(), plan.apply(batch[1, 0].detach()))
    filtered.mean().backward()
    assert batch.grad.sum() == pytest.approx(2 / 2, rel=1e-4)  # diffusion keeps the mean


def test_frames_share_one_plan():
    frames = np.stack([picture((50, 60)) + k for k in range(5)])
    result, plan = aniso.denoise(frames, frame_axis=0, return_info=True)
    for before, after in zip(frames, result, strict=True):
        assert plan.apply(before).tobytes() == after.tobytes()
    assert plan.apply(frames, frame_axis=0).tobytes() == result.tobytes()
    moved = aniso.denoise(np.moveaxis(frames, 0, 2), frame_axis=-1)
    assert np.array_equal(np.moveaxis(moved, 2, 0), result)
    lazy = aniso.denoise(da.from_array(frames, chunks=(1, 30, 30)), frame_axis=0)
    assert lazy.compute().tobytes() == result.tobytes()
    done = []
    aniso.denoise(frames, frame_axis=0, progress=lambda now, total: done.append((now, total)))
    assert done == sorted(done)
    assert done[-1] == (1.0, 1.0)


def test_frames_of_colours_keep_their_axes():
    frames = np.stack([picture((40, 36, 3), channel_axis=-1) for _ in range(3)], axis=1)
    result, plan = aniso.denoise(frames, frame_axis=1, channel_axis=-1, return_info=True)
    assert result.shape == frames.shape
    assert plan.channels == 3
    assert plan.apply(frames, frame_axis=1).tobytes() == result.tobytes()
    assert np.array_equal(plan.apply(frames[:, 1]), result[:, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frame_axis": 3}, "frame_axis=3 does not exist"),
        ({"frame_axis": "0"}, "frame_axis must be a whole number"),
        ({"frame_axis": 0, "channel_axis": -3}, "are the same axis"),
    ],
)
def test_odd_axes_of_frames_are_rejected(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        aniso.denoise(np.zeros((4, 20, 20)), **options)


def test_arrays_that_do_not_fit_are_rejected():
    _, _, plan = plan_of("denoise", "grey")
    with pytest.raises(
        ValueError, match=r"got an array of shape .9, 9, 9.* 3 axes.*give frame_axis"
    ) as found:
        plan.apply(np.zeros((9, 9, 9)))
    assert "frame_axis" not in checks.on_command_line(found.value)
    assert "--frames or --slices" in checks.on_command_line(found.value)
    with pytest.raises(ValueError, match=r"is for one channel, got .* which has 3 channels"):
        plan.apply(np.zeros((20, 20, 3)), channel_axis=-1)
    _, _, volume = plan_of("denoise", "volume")
    with pytest.raises(ValueError, match=r"is for volumes, got .* which has 2 axes .* Make a plan"):
        volume.apply(np.zeros((20, 20)))
    _, _, colour = plan_of("denoise", "colour")
    with pytest.raises(ValueError, match="is for 3 channels"):
        colour.apply(np.zeros((20, 20)), channel_axis=None)
    with pytest.raises(ValueError, match=r"images with 3 channels, got .* which has one axis .* Make a plan"):
        colour.apply(np.zeros((20, 20)))
    with pytest.raises(ValueError, match="holds 400 infinite pixels"):
        plan.apply(np.full((20, 20), np.inf))
    with pytest.raises(ValueError, match="all pixels are unknown"):
        plan.apply(np.full((20, 20), np.nan))


def test_lines_far_apart_do_not_fit_small_images():
    _, _, plan = plan_of("enhance", "grey")
    sparse = dataclasses.replace(plan, wavelength=5000.0)
    with pytest.raises(ValueError, match=r"lines at a distance of 5000, got .*, whose longest side is 90"):
        sparse.apply(picture((70, 90)))


@pytest.mark.parametrize("verb", choosing())
def test_unknown_pixels_stay_unknown_on_request(verb):
    image = picture((60, 70))
    image[20:23, 30:34] = np.nan
    result, plan = getattr(aniso, verb)(image, keep_nan=True, return_info=True)
    assert np.isnan(result).sum() == 12
    np.testing.assert_array_equal(plan.apply(image, keep_nan=True), result)
    filled = plan.apply(image)
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(np.isnan(image), np.isnan(result))
    with pytest.raises(ValueError, match="a plan of upsample takes no keep_nan"):
        aniso.upsample(filled, 2, return_info=True)[1].apply(filled, keep_nan=True)


@pytest.mark.parametrize("verb", choosing())
def test_plans_take_masks_as_their_verbs_do(verb):
    image = picture((70, 90))
    mask = np.zeros(image.shape, bool)
    mask[20:24, 30:36] = True
    damaged = np.where(mask, np.float32(np.nan), image)
    result, plan = getattr(aniso, verb)(image, mask=mask, return_info=True)
    np.testing.assert_array_equal(plan.apply(image, mask), result)
    np.testing.assert_array_equal(plan.apply(damaged), result)
    chunks = da.from_array(damaged, chunks=40)
    np.testing.assert_array_equal(plan.apply(chunks, mask), result)
    np.testing.assert_array_equal(plan.apply(np.stack([image] * 2), mask, frame_axis=0), [result] * 2)


def test_plans_of_verbs_without_masks_take_none():
    image = picture((20, 24))
    _, plan = aniso.upsample(image, 2, return_info=True)
    with pytest.raises(ValueError, match="a plan of upsample takes no mask"):
        plan.apply(image, image > 0)


def changed(text, **changes):
    values = json.loads(text)
    for key, value in changes.items():
        *way, last = key.split("__")
        inner = values
        for name in way:
            inner = inner[int(name) if name.isdigit() else name]
        if value is ...:
            del inner[last]
        else:
            inner[last] = value
    return json.dumps(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"aniso": "9.0"}, "made by aniso 9.0, and this is"),
        ({"aniso": ...}, "not a plan of aniso"),
        ({"verb": "sharpen"}, "'sharpen', which is not one of"),
        ({"colour": 1}, "unknown key 'colour'"),
        ({"noise": ...}, "lacks the key 'noise'"),
        ({"noise": "much"}, "plan.noise has the value 'much'"),
        ({"noise": True}, "plan.noise has the value True"),
        ({"spacings": 1.0}, "plan.spacings has the value 1.0"),
        ({"model__type": "DeltaStencil"}, "plan.model has the unknown type 'DeltaStencil'"),
        ({"model__contrast": -1.0}, "contrast must"),
        ({"model__extra": 1}, "plan.model has the unknown key 'extra'"),
        ({"model__type": ["x"]}, "plan.model has the unknown type"),
        ({"verb": ["denoise"]}, "which is not one of"),
        ({"time": 10**400}, "plan.time has the value 1000"),
        ({"spacings": []}, "one to three positive spacings"),
        ({"channels": 0}, "at least one channel"),
        ({"paths__0__times": []}, "weights, or None, for each of its times"),
        ({"start": {"type": "Weights", "everywhere": [[1.0, 2.0]], "flat": [[0.0]]}}, "square matrices"),
        ({"start": {"type": "Weights", "everywhere": [[1.0]], "flat": [[0.0]]}}, "must add up to 1"),
        ({"start": None}, "has weights for"),
        ({"paths": []}, "has weights for"),
        ({"mixed": 1}, "mixes 1 images"),
        ({"noise_models__0__level": 0.0}, "must be positive"),
        ({"noise_models__0__type": "Uniform"}, "unknown type 'Uniform'"),
        ({"noise_models": []}, "one model of the noise, or one for each channel"),
        ({"time": 3.0}, "at one of their times"),
        ({"candidates": 10**400}, r"plan.candidates has the value 10+\.\.\.0+, which does not fit"),
    ],
)
def test_damaged_plans_are_rejected(change, message):
    _, _, plan = plan_of("denoise", "grey")
    with pytest.raises(ValueError, match=message):
        aniso.Plan.from_json(changed(plan.to_json(), **change))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[1, 2]", "a JSON object was expected, got list"),
        ('{"aniso": NaN}', "not valid JSON"),
        ('{"aniso": "0.1.0", "verb": "denoise", "verb": "enhance"}', "the key 'verb' is repeated"),
        ("[" * 100_000, "damaged"),
    ],
)
def test_texts_that_are_not_plans_are_rejected(text, message):
    with pytest.raises(ValueError, match=message):
        aniso.Plan.from_json(text)
    with pytest.raises(TypeError, match="text must be str, got bytes"):
        aniso.Plan.from_json(text.encode())


def test_a_free_stencil_cannot_be_saved():
    image = picture((20, 24))
    stencil = aniso.FreeStencil(np.zeros((21, 25)))
    _, plan = aniso.denoise(image, stencil=stencil, time=1.0, contrast=5.0, return_info=True)
    with pytest.raises(ValueError, match="FreeStencil cannot be saved"):
        plan.to_json()


@pytest.mark.parametrize("verb", ["denoise", "enhance", "upsample", "inpaint"])
@pytest.mark.parametrize("case", ["grey", "colour", "volume"])
def test_the_order_in_memory_does_not_matter(verb, case):
    given = CASES[case]
    image, axis = picture(**given), given.get("channel_axis")
    rest = ((2,) if verb == "upsample" else ()) if verb != "inpaint" else (_holes(image, axis),)
    expected = getattr(aniso, verb)(image, *rest, channel_axis=axis)
    turned = np.asfortranarray(image)
    np.testing.assert_array_equal(getattr(aniso, verb)(turned, *rest, channel_axis=axis), expected)
    if axis is not None:
        middle = np.ascontiguousarray(np.moveaxis(image, -1, 1))
        result = getattr(aniso, verb)(middle, *rest, channel_axis=1)
        np.testing.assert_array_equal(np.moveaxis(result, 1, -1), expected)


def _holes(image, axis):
    return np.random.default_rng(0).random(image.shape[:-1] if axis is not None else image.shape) > 0.6


def test_grey_values_beyond_the_range_are_rejected():
    image, _, plan = plan_of("denoise", "grey")
    with pytest.raises(ArithmeticError, match="left the range of float32"):
        plan.apply(image * np.float32(1e36))
    with pytest.raises(ValueError, match="image"):
        aniso.denoise(np.stack([image, image * np.float32(1e30)]), frame_axis=0)


def test_a_plan_from_a_batch_fits_the_batch():
    torch = pytest.importorskip("torch")
    batch = torch.from_numpy(np.stack([picture((40, 36, 3), channel_axis=-1)] * 2)).movedim(-1, 1)
    result, plans = aniso.denoise(batch, return_info=True)
    np.testing.assert_allclose(plans[0].apply(batch), result, atol=2e-3)
    np.testing.assert_array_equal(plans[0].apply(batch, engine="cpu"), result)


def test_time_series_of_tensors():
    torch = pytest.importorskip("torch")
    frames = np.stack([picture((40, 36, 3), channel_axis=-1) for _ in range(3)])
    expected = aniso.denoise(frames, channel_axis=-1, frame_axis=0)
    series = torch.from_numpy(frames).movedim(-1, 1)
    result = aniso.denoise(series, channel_axis=1, frame_axis=0)
    np.testing.assert_array_equal(result.movedim(1, -1), expected)


def test_plans_are_frozen():
    _, _, plan = plan_of("denoise", "grey")
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.noise = 1.0


@pytest.mark.parametrize("verb", ["inpaint", "upsample"])
@pytest.mark.parametrize("lazy", [False, True])
def test_frames_that_are_filled_or_upsampled(verb, lazy):
    frames = np.stack([picture((40, 36)) + k for k in range(3)], axis=1)
    mask = np.random.default_rng(0).random(frames.shape) < 0.3
    options: dict[str, Any] = {"mask": mask} if verb == "inpaint" else {"factor": (2, 1)}
    given = da.from_array(frames, chunks=(20, 1, 20)) if lazy else frames
    result, plan = getattr(aniso, verb)(given, **options, frame_axis=1, return_info=True)
    assert isinstance(result, da.Array) == lazy
    for number in range(3):
        own = {"mask": mask[:, number]} if verb == "inpaint" else {}
        expected = plan.apply(frames[:, number], **own)
        np.testing.assert_array_equal(result[:, number], expected)
    masks = {"mask": mask} if verb == "inpaint" else {}
    np.testing.assert_array_equal(plan.apply(given, **masks, frame_axis=1), result)


def test_masks_of_frames():
    frames = np.stack([picture((30, 36, 3), channel_axis=-1) + k for k in range(3)])
    mask = np.random.default_rng(0).random((30, 36)) < 0.3
    done: list[float] = []
    shared, plan = aniso.inpaint(
        frames, mask, frame_axis=0, channel_axis=-1, return_info=True,
        progress=lambda now, total: done.append(now / total),
    )  # fmt: skip
    assert done[-1] == 1.0
    assert plan.channels == 3
    each = aniso.inpaint(frames, np.stack([mask] * 3), frame_axis=0, channel_axis=-1)
    np.testing.assert_array_equal(each, shared)
    np.testing.assert_array_equal(shared[:, ~mask], frames[:, ~mask])
    with pytest.raises(ValueError, match="mask has 2 frames along axis 0, but the image has 3"):
        aniso.inpaint(frames, np.stack([mask] * 2), frame_axis=0, channel_axis=-1)
    with pytest.raises(ValueError, match="mask has shape"):
        aniso.inpaint(frames, mask[:, :30], frame_axis=0, channel_axis=-1)


def test_the_error_about_an_unknown_verb_lists_all():
    program = textwrap.dedent(
        """
        import aniso
        try:
            aniso.Plan.from_json(f'{{"aniso": "{aniso.__version__}", "verb": "sharpen"}}')
        except ValueError as error:
            print(error)
        """
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    for name in (*VERBS, "diffuse"):
        assert name in answer.stdout
