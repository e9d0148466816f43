"""What the choice of flat blocks changes, and estimates that depend on it."""

import numpy as np
import pytest

import aniso
from aniso import noise
from aniso.noise.curve_models import make_model
from aniso.noise.fitting import Curve, fit_curve
from aniso.noise.selection import kept_part, steepness_gain
from aniso.noise.statistics import collect_blocks

SHAPES = {1: (30000,), 2: (384, 384), 3: (56, 56, 56)}


@pytest.mark.parametrize("correlation", [0.0, 0.4, 0.9, 1.4])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_blocks_up_to_a_steepness_keep_this_part_of_the_noise(ndim, correlation):
    random = np.random.default_rng(7)
    noisy = noise.Gaussian(1.0, correlation).sample(np.zeros(SHAPES[ndim]), random)
    blocks = collect_blocks([noisy])
    assert blocks is not None
    steepness = blocks.steepness / steepness_gain(correlation, ndim)
    # Blocks that look like lines by chance are infinitely steep; wide grains are few in a volume.
    mean = np.mean(steepness[np.isfinite(steepness)])
    assert mean == pytest.approx(1.0, abs=0.2 if ndim == 3 else 0.1)
    for limit in (1.0, 1.5):
        chosen = steepness <= limit * mean
        for probe, energies in blocks.energies.items():
            part = energies[chosen].mean() / energies.mean()
            error = energies.std() / np.sqrt(0.1 * chosen.sum()) / energies.mean()
            assert part == pytest.approx(kept_part(correlation, probe, ndim, limit), abs=max(0.04, 2 * error))


def test_all_blocks_keep_everything():
    assert kept_part(0.9, (2, 6), 2, np.inf) == 1.0
    assert kept_part(0.9, (2, 6), 2, 5.0) == pytest.approx(1.0, abs=1e-3)
    assert kept_part(0.9, (2, 6), 2, 0.5) < 0.7


@pytest.mark.parametrize("correlation", [0.4, 0.6, 0.9, 1.1, 1.4])
def test_correlated_noise_on_a_slope(correlation):
    truth = 100 + np.linspace(-60, 60, 320) + np.zeros((320, 1))
    model = noise.Gaussian(10.0, correlation)
    found = [noise.estimate(model.sample(truth, np.random.default_rng(seed))) for seed in range(4)]
    assert np.mean([one.correlation for one in found]) == pytest.approx(correlation, abs=0.03)
    assert np.mean([one.level for one in found]) == pytest.approx(10.0, rel=0.04)


def test_an_offset_that_is_too_high_is_lowered_at_the_same_mean_variance():
    means = np.linspace(60.0, 100.0, 50)
    variances = 2.0 * (means - 50.0)
    curve = Curve("poisson", (-100.0, 2.0), variances, 1.0, 0.0)
    flat = collect_blocks([np.random.default_rng(0).normal(0, 1, (64, 64))])
    assert flat is not None
    model = make_model(curve, 1.0, 0.0, flat, lowest=40.0, mean=80.0)
    assert isinstance(model, noise.PoissonGaussian)
    assert model.offset == 40.0
    assert float(model.variance(80.0)) == pytest.approx(60.0)
    exact = make_model(curve, 1.0, 0.0, flat, lowest=55.0, mean=80.0)
    assert isinstance(exact, noise.PoissonGaussian)
    assert (exact.gain, exact.offset) == (2.0, 50.0)


def _shapes(side, low, high, seed):
    """Disks of other grey values on a slope."""
    random = np.random.default_rng(seed)
    y, x = np.indices((side, side)) / side
    scene = low + (high - low) * x
    for _ in range(12):
        at, radius = random.uniform(0, 1, 2), random.uniform(0.05, 0.2)
        scene[np.hypot(y - at[0], x - at[1]) < radius] = random.uniform(low, high)
    return scene


@pytest.mark.parametrize("seed", range(4))
def test_speckle_is_not_photons_with_an_offset(seed):
    # It has hardly any negative pixels, although normal noise of this level would.
    truth = _shapes(256, 60.0, 140.0, seed)
    noisy = noise.Speckle(0.36).sample(truth, np.random.default_rng(seed))
    assert noise.estimate(noisy).kind == "speckle"


@pytest.mark.parametrize("seed", range(4))
def test_magnitudes_with_weak_stripes_are_magnitudes(seed):
    truth = np.maximum(_shapes(192, -60.0, 160.0, seed), 0)
    random = np.random.default_rng(seed)
    noisy = noise.Rician(30.0).sample(truth, random) + 5 * random.normal(0, 1, (192, 1))
    assert 0.002 < np.mean(noisy < 0) < 0.006
    assert noise.estimate(noisy).kind == "rician"


@pytest.mark.parametrize("seed", range(2))
def test_single_photons_do_not_remain_as_specks(seed):
    y, x = np.indices((192, 192))
    random = np.random.default_rng(seed)
    truth = np.full((192, 192), 0.05)
    for _ in range(20):
        at = random.uniform(0, 192, 2)
        truth += np.exp(-0.5 * ((y - at[0]) ** 2 + (x - at[1]) ** 2) / 3.0**2)
    photons = random.poisson(truth).astype(np.float32)
    result = aniso.denoise(photons, noise="poisson")
    assert np.sqrt(np.mean((result - truth) ** 2)) < 0.08
    assert result.max() < 3


def test_a_mixture_with_an_impossible_error_is_rejected():
    flat = np.random.default_rng(0).normal(100, 20, (192, 192)).astype(np.float32)
    _, plan = aniso.denoise(flat, noise=21.0, method="diffusion", return_info=True)
    assert plan.mixed == 1  # its risk would be negative: the level is too high


def test_levels_that_depend_on_the_grey_value_are_less_certain():
    photons = np.random.default_rng(0).poisson(8, (192, 192)).astype(np.float32)
    too_high = noise.PoissonGaussian(1.03)
    _, plan = aniso.denoise(photons, noise=too_high, method="diffusion", return_info=True)
    assert plan.mixed == 1


@pytest.mark.parametrize("seed", range(3))
def test_dark_parts_with_weak_signals_are_not_a_background(seed):
    # Means of magnitudes without signal are 1.25 levels; most of these are larger.
    truth = 20 * np.indices((256, 256))[0] / 256
    truth[:, 128:] = 150.0
    noisy = noise.Rician(20.0).sample(truth, np.random.default_rng(seed))
    found = noise.estimate(noisy, "rician").models[0]
    assert isinstance(found, noise.Rician)
    assert found.level == pytest.approx(20.0, rel=0.04)


def test_speckle_follows_the_mean_square_of_grey_values():
    # In a block on a slope, it is larger than the square of the mean.
    y, x = np.indices((256, 256)) % 32 - 16
    truth = 13 + 200 * np.exp(-(y**2 + x**2) / (2 * 6.4**2))
    noisy = [noise.Speckle(0.3).sample(truth, np.random.default_rng(seed)) for seed in range(4)]
    variances = [noise.estimate(one, "speckle").models[0].variance(100.0) for one in noisy]
    assert np.sqrt(np.mean(variances)) == pytest.approx(30, rel=0.05)


@pytest.mark.parametrize("dark", [0.5, 0.9])  # share of blocks without signal
def test_the_level_of_magnitudes_is_not_too_low(dark):
    model, found = noise.Rician(12.0), []
    for seed in range(4):
        random = np.random.default_rng(seed)
        means = np.where(random.random(1200) < dark, 12 * np.sqrt(np.pi / 2), 150.0)
        variances = model.variance(means)
        energies = variances * random.chisquare(40, len(means)) / 40
        means += random.normal(0, np.sqrt(variances) / 16)
        found.append(fit_curve("rician", means, energies[np.newaxis], [40.0]).level)
    assert np.mean(found) == pytest.approx(12, rel=0.01)
