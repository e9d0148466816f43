"""Kind, level and correlation of the noise, found in images with known noise."""

from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from aniso import noise, samples
from aniso.noise import Gaussian, PoissonGaussian, Rician, Speckle


def _random():
    return np.random.default_rng(11)


def _scene(shape, seed=3):
    """A smooth background from 10 to 200, bright and dark disks with edges, and a textured part."""
    random = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij")).astype(float)
    scene = 10 + 130 * grid[-1] / shape[-1] + 20 * np.sin(grid[0] / 40)
    for _ in range(6):
        centre = random.uniform(0, shape)
        radius = random.uniform(0.08, 0.2) * min(shape)
        inside = sum((axis - at) ** 2 for axis, at in zip(grid, centre, strict=True)) < radius**2
        scene[inside] = random.uniform(10, 200)
    texture = ndimage.gaussian_filter(random.normal(0, 1, shape), 0.7)
    scene += 40 * texture * (grid[0] > 0.75 * shape[0])
    return np.clip(scene, 5, None)


SHAPE = (192, 208)
CASES = {
    "gaussian": Gaussian(5.0),
    "strong gaussian": Gaussian(25.0),
    "correlated by 0.5": Gaussian(8.0, 0.5),
    "correlated by 0.8": Gaussian(8.0, 0.8),
    "correlated by 1.2": Gaussian(30.0, 1.2),
    "few photons": PoissonGaussian(15.0),
    "photons": PoissonGaussian(1.0),
    "camera": PoissonGaussian(2.0, 0.0, 6.0),
    "correlated photons": PoissonGaussian(12.0, 0.0, 0.0, 0.8),
    "rician": Rician(12.0),
    "speckle": Speckle(0.2, 1.0),
}


def _sample(model, shape=SHAPE):
    truth = _scene(shape)
    # Magnitudes show their kind where there is hardly any signal.
    return model.sample(np.maximum(truth - 60, 0) if isinstance(model, Rician) else truth, _random())


def _assert_found(found, model, greys, tolerance=0.1):
    """The kind, the correlation within 0.2 pixels, and levels within a tolerance at these grey values."""
    assert found.kind == model.kind
    assert found.correlation == pytest.approx(model.correlation, abs=0.2)
    for one in found.models:
        ratios = np.sqrt(one.variance(greys) / model.variance(greys))
        assert abs(np.log(ratios)).max() < tolerance, ratios


def _greys(image):
    return np.quantile(ndimage.gaussian_filter(image, 2), [0.3, 0.5, 0.8])


@pytest.mark.parametrize("name", CASES)
def test_noise_is_found(name):
    noisy = _sample(CASES[name])
    found = noise.estimate(noisy)
    _assert_found(found, CASES[name], _greys(noisy), 0.12)
    assert found.certainty > 0.6


@pytest.mark.parametrize("shape", [(128, 128), (700, 300), (64, 64, 64), (40000,)], ids=str)
@pytest.mark.parametrize("model", [Gaussian(6.0), PoissonGaussian(3.0)], ids=str)
def test_noise_is_found_in_signals_images_and_volumes(shape, model):
    noisy = _sample(model, shape)
    _assert_found(noise.estimate(noisy), model, _greys(noisy))


def _border(image, value):
    found = np.full(image.shape, value, float)
    inside = tuple(slice(n // 7, -n // 7) for n in image.shape)
    found[inside] = image[inside]
    return found


def _hole(image, value):
    y, x = np.indices(image.shape)
    return np.where((y - 90) ** 2 + (x - 70) ** 2 < 45**2, value, image)


def _dead_rows(image, value):
    found = image.copy()
    found[[20, 21, 90]], found[:, 50] = value, value
    return found


SPOILED: dict[str, Any] = {
    "black border": lambda image: _border(image, 0.0),
    "grey border": lambda image: _border(image, 100.0),
    "hole": lambda image: _hole(image, 60.0),
    "dead rows": lambda image: _dead_rows(image, 0.0),
    "saturation": lambda image: np.minimum(image, 170.0),
    "rounding": np.rint,
    "coarse grey values": lambda image: 8 * np.rint(image / 8),
    "bytes": lambda image: np.clip(np.rint(image), 0, 255).astype(np.uint8),
}


@pytest.mark.parametrize("spoiled", SPOILED)
@pytest.mark.parametrize("model", [Gaussian(10.0), PoissonGaussian(4.0)], ids=str)
def test_spoiled_pixels_do_not_mislead(model, spoiled):
    noisy = _sample(model)
    _assert_found(noise.estimate(SPOILED[spoiled](noisy)), model, _greys(noisy), 0.12)


def test_small_noise_in_bytes():
    flat = np.tile(np.linspace(20, 200, 256), (256, 1))
    found = noise.estimate(np.rint(Gaussian(0.7).sample(flat, _random())).astype(np.uint8))
    _assert_found(found, Gaussian(np.sqrt(0.49 + 1 / 12)), np.array([100.0]))


def test_black_parts_that_are_clipped():
    truth = np.tile(np.linspace(40, 200, 256), (256, 1))
    truth[:150] = 1.0
    clipped = np.maximum(Gaussian(10.0).sample(truth, _random()), 0)
    _assert_found(noise.estimate(clipped), Gaussian(10.0), np.array([100.0]))


def test_rounding_does_not_hide_the_correlation():
    flat = np.tile(np.linspace(20, 200, 256), (256, 1))
    found = noise.estimate(np.rint(Gaussian(1.5, 1.2).sample(flat, _random())))
    _assert_found(found, Gaussian(1.5, 1.2), np.array([100.0]))


def test_masked_volume_with_zeros_outside():
    noisy = _sample(Gaussian(6.0), (72, 72, 72))
    z, y, x = np.indices(noisy.shape) - 36
    _assert_found(
        noise.estimate(np.where(z**2 + y**2 + x**2 < 30**2, noisy, 0.0)), Gaussian(6.0), _greys(noisy)
    )


@pytest.mark.parametrize("kind", ["gaussian", "poisson", "speckle"])
def test_a_small_correlation_is_found(kind):
    model = {"gaussian": Gaussian(9.0, 0.4), "poisson": PoissonGaussian(6.0, 0.0, 0.0, 0.4)}.get(
        kind, Speckle(0.3, 1.0, 0.4)
    )
    noisy = _sample(model, (256, 256))
    _assert_found(noise.estimate(noisy), model, _greys(noisy), 0.12)


@pytest.mark.parametrize("level", [8.0, 25.0])
def test_the_background_of_magnitudes_gives_their_level(level):
    truth = np.zeros((160, 160))
    truth[50:110, 50:110] = 120.0
    found = noise.estimate(Rician(level).sample(truth, _random()))
    assert found.kind == "rician"
    assert vars(found.models[0])["level"] == pytest.approx(level, rel=0.02)


def test_speckle_over_a_wide_range():
    y, x = np.indices((160, 160))
    truth = 2 + 100 * (1 + np.sin(y / 25) * np.sin(x / 21)) ** 2
    found = noise.estimate(Speckle(0.35, 1.0).sample(truth, _random()))
    assert found.kind == "speckle"
    assert vars(found.models[0])["level"] == pytest.approx(0.35, rel=0.15)


def test_zero_mean_data_with_muted_part():
    random = _random()
    waves = 30 * np.sin(np.arange(400) / 15) * np.ones((200, 1))
    gather = waves + random.normal(0, 4, waves.shape)
    gather[:80] = 0
    _assert_found(noise.estimate(gather), Gaussian(4.0), np.array([0.0]))


def test_masked_pixels_do_not_count():
    noisy = _sample(Gaussian(5.0))
    mask = np.zeros(SHAPE, bool)
    mask[:, :100] = True
    spoiled = np.where(mask, Gaussian(1.0).sample(np.full(SHAPE, 90.0), _random()), noisy)
    _assert_found(noise.estimate(spoiled, mask=mask), Gaussian(5.0), _greys(noisy))


def test_equal_channels_are_pooled_and_different_ones_are_not():
    random = _random()
    truth = np.stack([_scene(SHAPE)] * 3, axis=-1)
    equal = noise.estimate(truth + random.normal(0, 5, truth.shape), channel_axis=-1)
    assert len(equal.models) == 1
    _assert_found(equal, Gaussian(5.0), np.array([100.0]))
    levels = [3.0, 6.0, 12.0]
    different = noise.estimate(truth + random.normal(0, 1, truth.shape) * levels, channel_axis=-1)
    assert [model.std_at(100.0) for model in different.models] == pytest.approx(levels, rel=0.1)
    assert different.level == pytest.approx(np.sqrt(np.mean(np.square(levels))), rel=0.1)


@pytest.mark.parametrize("model", [CASES[name] for name in ("gaussian", "camera", "speckle")], ids=str)
@pytest.mark.parametrize("factor", [1e-3, 300.0, 1e60])
def test_estimates_follow_the_scale_of_grey_values(model, factor):
    noisy = _sample(model)
    one, scaled = noise.estimate(noisy).models[0], noise.estimate(factor * noisy).models[0]
    greys = _greys(noisy)
    assert scaled.kind == one.kind
    np.testing.assert_allclose(scaled.variance(factor * greys), factor**2 * one.variance(greys), rtol=1e-3)


@pytest.mark.parametrize("offset", [-500.0, 1000.0])
@pytest.mark.parametrize("model", [CASES["gaussian"], CASES["camera"]], ids=str)
def test_estimates_follow_an_offset(model, offset):
    noisy = _sample(model)
    one, shifted = noise.estimate(noisy).models[0], noise.estimate(noisy + offset).models[0]
    greys = _greys(noisy)
    assert shifted.kind == one.kind
    np.testing.assert_allclose(shifted.variance(greys + offset), one.variance(greys), rtol=0.02)


def _lines():
    y, x = np.indices((260, 240))
    return 127 + 100 * np.sin(0.7 * (np.hypot(x - 120, y - 300)))


def test_lines_are_not_noise():
    found = noise.estimate(_lines())
    assert found.level < 5
    noisy = noise.estimate(Gaussian(10.0).sample(_lines(), _random()))
    assert noisy.kind == "gaussian"
    assert noisy.level < 20


def test_texture_is_not_certain():
    random = np.random.default_rng(5)
    texture = ndimage.gaussian_filter(random.normal(0, 1, SHAPE), 1.0) * np.exp(
        3 * ndimage.gaussian_filter(random.normal(0, 1, SHAPE), 5.0) * 12
    )
    found = noise.estimate(1000 * texture)
    assert found.certainty < 0.5
    assert found.level < 0.1 * (1000 * texture).std()


@pytest.mark.parametrize("shape", [(1,), (2, 3), (5, 5), (12, 12), (20, 20, 20), (3, 400)], ids=str)
@pytest.mark.parametrize("kind", ["auto", "gaussian", "poisson", "rician", "speckle"])
def test_tiny_and_constant_arrays(shape, kind):
    assert noise.estimate(np.full(shape, 3.3), kind).level == 0
    found = noise.estimate(abs(_random().normal(10, 2, shape)), kind)
    assert 0 <= found.certainty <= 1
    assert 0 <= found.level < 20


@pytest.mark.parametrize("kind", ["gaussian", "poisson", "rician", "speckle"])
def test_a_kind_that_is_given_is_kept(kind):
    assert noise.estimate(_sample(CASES["photons"]), kind).kind == kind


class TestArrays:
    def test_dask_arrays(self):
        array = pytest.importorskip("dask.array")
        noisy = _sample(Gaussian(6.0), (900, 1100))
        mask = np.zeros(noisy.shape, bool)
        mask[:300] = True
        expected = noise.estimate(noisy, mask=mask)
        found = noise.estimate(array.from_array(noisy, 200), mask=array.from_array(mask, 300))
        assert found == expected
        assert found.level == pytest.approx(6.0, rel=0.1)

    def test_tensors_and_batches(self):
        torch = pytest.importorskip("torch")
        noisy = _sample(Gaussian(6.0)).astype(np.float32)
        assert noise.estimate(torch.from_numpy(noisy)) == noise.estimate(noisy)
        batch = torch.from_numpy(np.stack([noisy, noisy[::-1]])[:, np.newaxis].copy())
        assert noise.estimate(batch).level == pytest.approx(6.0, rel=0.1)
        with pytest.raises(ValueError, match="mask must be None for a batch"):
            noise.estimate(batch, mask=np.zeros(SHAPE, bool))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "salt"}, "kind must be one of auto, gaussian, poisson, rician, speckle, got 'salt'"),
        ({"mask": np.zeros((3, 3), bool)}, r"mask must be an array of bool of shape \(40, 40\)"),
        ({"mask": np.zeros((40, 40))}, "got float64 of shape"),
    ],
)
def test_wrong_options_are_rejected(options, message):
    with pytest.raises(ValueError, match=message):
        noise.estimate(np.zeros((40, 40)), **options)


@pytest.mark.parametrize("name", ["fibres", "layers", "balls"])
@pytest.mark.parametrize("level", [15.0, 60.0])
def test_levels_of_volumes_are_accurate(name, level):
    sample = getattr(samples, name)(48, noise=level, seed=5)
    true_level = float((sample.image - sample.truth).std())
    hardly_flat = name == "layers" and level == 15
    assert noise.estimate(sample.image).level == pytest.approx(true_level, rel=0.06 if hardly_flat else 0.02)
