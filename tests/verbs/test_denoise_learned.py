"""denoise() with the learned diffusion: better where it is used, and the same wherever it runs."""

import json
import re

import dask.array as da
import numpy as np
import pytest
import torch

import aniso
from aniso.blocks.stages import whole_region
from aniso.settings import Settings
from aniso.verbs.learned import Learned, RunNet, spread_parts
from aniso.verbs.risk import Judge


def rms(error):
    return float(np.sqrt(np.mean(np.square(error, dtype=float))))


def photograph(name, size=192):
    pixels = aniso.samples.photograph(name)[: 2 * size : 2, : 2 * size : 2].astype(np.float64)
    return pixels.mean(axis=-1) if pixels.ndim == 3 else pixels


def noisy_version(truth, level, seed=3):
    return (truth + np.random.default_rng(seed).normal(0, level, truth.shape)).astype(np.float32)


@pytest.mark.parametrize("name", ["camera", "astronaut", "coffee"])
@pytest.mark.parametrize("level", [10.0, 40.0])
def test_photographs_are_better_than_by_diffusions(name, level):
    truth = photograph(name)
    noisy = noisy_version(truth, level)
    result, plan = aniso.denoise(noisy, noise=level, return_info=True)
    assert plan.learned is not None
    assert "learned diffusion" in str(plan)
    assert "best single diffusion" not in str(plan)
    assert rms(result - truth) < rms(aniso.denoise(noisy, noise=level, method="diffusion") - truth)
    assert plan.expected_error == pytest.approx(rms(result - truth), rel=0.2)


@pytest.mark.parametrize("maker", [aniso.samples.rings, aniso.samples.fingerprint])
def test_lines_are_left_to_diffusions(maker):
    sample = maker(256, noise=40.0)
    result, plan = aniso.denoise(sample.image, return_info=True)
    assert plan.learned is None
    learned = aniso.denoise(sample.image, method="learned")
    assert rms(result - sample.truth) < 0.9 * rms(learned - sample.truth)


@pytest.mark.parametrize("level", [10.0, 25.0])
def test_smooth_images_are_left_to_diffusions(level):
    """Both errors are small, and their estimates wrong by more than that, but not their difference."""
    truth = np.tile(np.arange(256.0), (256, 1))
    noisy = noisy_version(truth, level)
    result, plan = aniso.denoise(noisy, noise=level, return_info=True)
    assert plan.learned is None
    learned = aniso.denoise(noisy, noise=level, method="learned")
    assert rms(result - truth) < 0.9 * rms(learned - truth)


@pytest.mark.parametrize("slope", [0.0, 5.0])
def test_mixtures_of_small_images_may_be_good_by_chance(slope):
    truth = np.tile(90.0 + slope * np.arange(48), (48, 1))
    auto, diffusion = 0.0, 0.0
    for seed in range(5):
        noisy = noisy_version(truth, 20.0, seed)
        auto += rms(aniso.denoise(noisy, noise=20.0) - truth) ** 2
        diffusion += rms(aniso.denoise(noisy, noise=20.0, method="diffusion") - truth) ** 2
    assert auto < 0.7 * diffusion


@pytest.mark.parametrize("factor", [1 / 255, 100.0])
def test_the_result_scales_with_the_image(factor):
    noisy = noisy_version(photograph("camera", 96), 15.0).astype(np.float64)
    result = aniso.denoise(noisy, method="learned")
    scaled = aniso.denoise(factor * noisy + 7, method="learned")
    np.testing.assert_allclose((scaled - 7) / factor, result, atol=1e-4)


def test_noise_whose_level_depends_on_the_grey_value():
    truth = photograph("camera")
    model = aniso.noise.PoissonGaussian(gain=4.0, read_noise=2.0)
    noisy = model.sample(truth, np.random.default_rng(0))
    result, plan = aniso.denoise(noisy, noise=model, return_info=True)
    assert plan.learned is not None
    assert rms(result - truth) < 0.95 * rms(aniso.denoise(noisy, noise=model, method="diffusion") - truth)


def test_colours():
    truth = aniso.samples.photograph("coffee")[:384:2, :384:2].astype(np.float64)
    noisy = noisy_version(truth, 25.0)
    result, plan = aniso.denoise(noisy, channel_axis=-1, return_info=True)
    assert plan.learned is not None
    diffused = aniso.denoise(noisy, channel_axis=-1, method="diffusion")
    assert rms(result - truth) < 0.95 * rms(diffused - truth)
    apart = [aniso.denoise(noisy[..., k], noise=25.0, method="learned") for k in range(3)]
    assert rms(result - truth) < 0.9 * rms(np.stack(apart, -1) - truth)
    first = np.moveaxis(noisy, -1, 0)
    assert np.array_equal(np.moveaxis(plan.apply(first, channel_axis=0), 0, -1), result)
    lazy = da.from_array(noisy, chunks=(70, 100, 3))
    assert np.array_equal(plan.apply(lazy).compute(), result)
    np.testing.assert_allclose(plan.apply(torch.from_numpy(noisy)), result, atol=5e-4)


def test_colours_with_common_noise():
    truth = aniso.samples.photograph("astronaut")[:384:2, :384:2].astype(np.float64)
    random = np.random.default_rng(0)
    noise = 20 * random.standard_normal((*truth.shape[:2], 1)) + 5 * random.standard_normal(truth.shape)
    noisy = (truth + noise).astype(np.float32)
    result, plan = aniso.denoise(noisy, channel_axis=-1, return_info=True)
    assert plan.axes is not None
    assert plan.learned is not None
    assert rms(result - truth) < 0.5 * rms(noise)
    assert rms(result - truth) < rms(aniso.denoise(noisy, channel_axis=-1, method="diffusion") - truth)
    np.testing.assert_allclose(plan.apply(torch.from_numpy(noisy)), result, atol=5e-4)


@pytest.mark.parametrize("part", [0.3, 0.6])
def test_unknown_pixels_do_not_change_the_level(part):
    truth = photograph("camera", 160)
    noisy = noisy_version(truth, 25.0)
    unknown = np.random.default_rng(1).random(truth.shape) < part
    _, plan = aniso.denoise(noisy, noise=25.0, mask=unknown, method="learned", return_info=True)
    assert plan.learned.level == pytest.approx(25.0 * plan.learned.scale, rel=1e-6)


def test_levels_that_are_too_high():
    truth = photograph("camera", 160)
    noisy = noisy_version(truth, 20.0)
    result, plan = aniso.denoise(noisy, noise=30.0, return_info=True)
    assert plan.learned is not None  # although both risks are negative
    assert rms(result - truth) < rms(aniso.denoise(noisy, noise=30.0, method="diffusion") - truth)


@pytest.mark.parametrize("method", ["auto", "diffusion", "learned"])
@pytest.mark.parametrize("name", ["camera", "coins"])
def test_the_plan_says_that_a_given_level_is_too_high(name, method):
    noisy = noisy_version(photograph(name, 160), 20.0)
    for level, warned in ((20.0, False), (18.0, False), ("auto", False), (30.0, True)):
        _, plan = aniso.denoise(noisy, noise=level, method=method, return_info=True)
        assert ("seems too high" in (plan.remark or "")) == warned, level
    again = aniso.Plan.from_json(plan.to_json())
    assert again == plan
    assert again.remark == plan.remark


@pytest.mark.parametrize(
    ("image", "options", "said"),
    [
        ("shapes", {}, r"^learned, .*expected errors.*: learned [\d.]+, diffusion [\d.]+ grey values$"),
        ("rings", {}, "^diffusion, by expected errors: diffusion .*, learned .*"),
        ("shapes", {"method": "learned"}, "^learned, as given$"),
        ("shapes", {"method": "diffusion"}, "^diffusion, as given$"),
        ("shapes", {"time": 1.0}, "^diffusion, because contrast, time or mix is given$"),
        ("shapes", {"spacing": (2, 1)}, "^diffusion, because nets are for square pixels"),
        ("balls", {}, "^diffusion,.* because there is no trained net for signals and volumes$"),
        ("shapes", {"noise": 0.0}, "^none, because the noise level is 0$"),
    ],
)
def test_the_plan_says_which_method_is_used_and_why(image, options, said):
    size = 16 if image == "balls" else 96
    noisy = getattr(aniso.samples, image)(size, noise=20.0).image.astype(np.float32)
    _, plan = aniso.denoise(noisy, return_info=True, **options)
    assert re.search(said, plan.choice), plan.choice
    assert plan.choice in str(plan)
    assert plan.choice.startswith("learned") == (plan.learned is not None)


def test_the_plan_says_that_an_image_is_not_for_the_net():
    truth = photograph("camera", 128)
    photons = aniso.noise.PoissonGaussian(gain=1.0, read_noise=0.0).sample(
        truth / 300, np.random.default_rng(0)
    )
    _, plan = aniso.denoise(photons, noise="poisson:1", method="learned", return_info=True)
    assert plan.learned is not None
    assert "not trained for images of single photons" in plan.remark
    _, plan = aniso.denoise(photons, noise="poisson:1", return_info=True)
    assert plan.learned is None
    assert "not trained" not in (plan.remark or "")


@pytest.mark.parametrize("engine", ["cpu", "torch"])
def test_windows_of_different_shapes(engine):
    windows = [noisy_version(photograph("camera", 64), 20.0)[None, :rows] for rows in (40, 64, 40, 9)]
    stage = RunNet(Learned("denoise-2-75", 20.0, 1.0, 0.0), Settings.check(2, engine=engine))
    judge = Judge(windows, 20.0)
    stop = stage.judge_windows(judge)
    for found, starts in ((stop.image, judge.image), (stop.changed, judge.changed)):
        for one, start in zip(found, starts, strict=True):
            state = {"image": start}
            stage.run(state, whole_region(start.shape[1:]), lambda: None)
            np.testing.assert_allclose(one, state["learned"], rtol=0, atol=0 if engine == "cpu" else 1e-4)


def test_other_engines(case):
    noisy, _, plan = case
    with pytest.raises(ValueError, match="this plan has a learned diffusion, which cannot be used: nets run"):
        plan.apply(noisy, engine="reference")
    still = noisy[:50, :60].copy()
    still.flags.writeable = False
    np.testing.assert_allclose(plan.apply(still, engine="torch"), plan.apply(still), atol=5e-4)


def test_mean_and_norm():
    noisy = noisy_version(photograph("coins", 120), 30.0).astype(np.float64)
    result = aniso.denoise(noisy, method="learned", noise=30.0)
    assert result.mean() == pytest.approx(noisy.mean(), rel=1e-12)
    assert np.linalg.norm(result) < np.linalg.norm(noisy)


@pytest.fixture(scope="module", params=["float32", "float64"])
def case(request):
    noisy = noisy_version(photograph("camera", 250), 20.0).astype(request.param)
    result, plan = aniso.denoise(noisy, method="learned", return_info=True)
    return noisy, result, plan


@pytest.mark.parametrize("chunks", [250, (61, 97)])
def test_bits_of_dask_arrays(case, chunks):
    noisy, result, plan = case
    lazy = da.from_array(noisy, chunks=chunks)
    assert np.array_equal(plan.apply(lazy).compute(), result)
    assert np.array_equal(aniso.denoise(lazy, method="learned").compute(), result)


@pytest.mark.slow
def test_bits_of_stores(case, tmp_path):
    zarr = pytest.importorskip("zarr")
    noisy, result, plan = case
    zarr.create_array(str(tmp_path / "in.zarr"), data=noisy, chunks=(64, 64))
    aniso.filter_store(tmp_path / "in.zarr", tmp_path / "out.zarr", plan, workers=1)
    assert np.array_equal(zarr.open_array(str(tmp_path / "out.zarr"))[:], result)


def test_plans_are_data_and_tensors_are_filtered_by_pytorch(case):
    noisy, result, plan = case
    again = aniso.Plan.from_json(plan.to_json())
    assert again == plan
    assert np.array_equal(again.apply(noisy), result)
    tolerance = 2e-4 if noisy.dtype == np.float32 else 1e-5  # the module has parameters in single precision
    np.testing.assert_allclose(plan.apply(torch.from_numpy(noisy)), result, atol=tolerance)
    batch = torch.from_numpy(np.stack([noisy[:60, :70], noisy[60:120, :70]]))[:, np.newaxis].requires_grad_()
    filtered = plan.apply(batch)
    np.testing.assert_allclose(filtered[1, 0].detach(), plan.apply(noisy[60:120, :70]), atol=tolerance)
    filtered.mean().backward()
    assert batch.grad is not None
    assert float(batch.grad.sum()) == pytest.approx(1.0, rel=1e-4)
    assert np.array_equal(plan.apply(noisy, threads=1), result)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"net": "denoise-1"}, "needs one of the nets denoise-2-75"),
        ({"level": 1.0}, "a level from 2 to 75"),
        ({"scale": 0.0}, "positive scale"),
        ({"correlation": -1.0}, "a correlation of at least 0"),
        ({"level": "high"}, "has the value 'high'"),
    ],
)
def test_damaged_plans(case, change, message):
    values = json.loads(case[2].to_json())
    values["learned"] |= change
    with pytest.raises(ValueError, match=message):
        aniso.Plan.from_json(json.dumps(values))


@pytest.mark.parametrize(
    ("image", "options", "message"),
    [
        (np.eye(8), {"contrast": 3.0}, "contrast, time and mix are parameters of other diffusions"),
        (np.eye(8), {"mix": False}, "contrast, time and mix are parameters of other diffusions"),
        (np.eye(8), {"spacing": (1, 2)}, r"nets are for square pixels, but the spacing is \(1.0, 2.0\)"),
        (
            np.eye(8),
            {"engine": "reference"},
            "nets run on cpu, torch and triton, not on reference",
        ),
        (np.ones((5, 6, 7)), {}, "no trained net for signals and volumes"),
        (np.ones(9), {}, "no trained net for signals and volumes"),
    ],
)
def test_where_it_cannot_be_used(image, options, message):
    with pytest.raises(ValueError, match=message):
        aniso.denoise(image, method="learned", **options)
    aniso.denoise(image, **options)


def test_grey_values_beyond_the_range(case):
    noisy, _, plan = case
    if noisy.dtype == np.float32:
        with pytest.raises(ArithmeticError, match="left the range of float32"):
            plan.apply(noisy * np.float32(1e36))


def test_no_noise_and_tiny_images():
    for shape in ((1, 1), (1, 5), (3, 2)):
        assert aniso.denoise(np.full(shape, 3.0), method="learned").shape == shape
        assert np.isfinite(aniso.denoise(np.arange(6.0)[: shape[1]][None], method="learned", noise=2.0)).all()


@pytest.mark.parametrize("shape", [(1, 50, 60), (1, 130, 700), (3, 512, 512), (1, 2000, 2000)])
def test_parts_of_windows_are_few_and_inside(shape):
    parts = spread_parts([np.zeros(shape, np.float32)] * 2)
    assert len(parts) >= 2
    assert len(parts) * shape[0] <= 9  # the cost does not grow with the number of channels
    sizes = [(min(p.stop, n) - p.start) for _, part in parts for p, n in zip(part, shape[1:], strict=True)]
    assert min(sizes) == min(96, *shape[1:])
