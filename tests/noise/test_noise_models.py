"""Laws of the models of noise: variance, stabilisation, unbiased inverse, samples."""

import math

import numpy as np
import pytest
import scipy.stats

from aniso.noise import Gaussian, PoissonGaussian, Rician, Speckle
from aniso.noise.correlation import freedom, gain

MODELS = [
    Gaussian(5.0),
    PoissonGaussian(1.0),
    PoissonGaussian(6.0, offset=200.0, read_noise=12.0),
    PoissonGaussian(2.0, offset=-50.0, read_noise=1.0),
    Rician(10.0),
    Speckle(0.2, floor=2.0),
    Speckle(0.5, floor=1.0),
]
# Truths, in counts, noise levels or floors, from almost nothing to far above the noise.
BRIGHTNESS = [1.0, 3.0, 10.0, 50.0]


def _truth(model, brightness):
    if isinstance(model, PoissonGaussian):
        return model.offset + model.gain * brightness
    return brightness * (model.floor if isinstance(model, Speckle) else model.level)


def _random():
    return np.random.default_rng(7)


def _bias_limit(model, truth):
    """Return 0.5 % of the truth above the offset, or what the mean of a million samples can tell."""
    above = truth - getattr(model, "offset", 0.0)
    return max(0.005 * above, 5 * math.sqrt(float(model.variance(truth))) / 1000)


@pytest.mark.parametrize("brightness", BRIGHTNESS)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_inverse_is_unbiased(model, brightness):
    truth = _truth(model, brightness)
    stabilised = model.stabilise(model.sample(np.full(10**6, truth), _random()))
    restored = float(model.restore(np.array([stabilised.mean()]))[0])
    assert restored == pytest.approx(truth, abs=_bias_limit(model, truth))


@pytest.mark.parametrize("brightness", [10.0, 50.0, 200.0])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_stabilised_noise_has_the_level_unit(model, brightness):
    stabilised = model.stabilise(model.sample(np.full(10**5, _truth(model, brightness)), _random()))
    wide = isinstance(model, Speckle) and brightness * model.level < 20  # near the floor
    assert stabilised.std() == pytest.approx(model.unit, rel=0.15 if wide else 0.04)


@pytest.mark.parametrize("reading", [0.3, 1.0, 2.0])
def test_few_photons_with_read_noise_agree_with_a_fine_integral(reading):
    """The transform is constant below a threshold, which coarse quadrature does not see."""
    model = PoissonGaussian(1.0, read_noise=reading)
    photons, noise = np.arange(40), np.linspace(-8, 8, 20001)
    weights = np.exp(-0.5 * noise**2) / np.exp(-0.5 * noise**2).sum()
    stabilised = model.stabilise(photons + reading * noise[:, np.newaxis])
    for mean in (0.0, 0.5, 2.0, 6.0):
        chances = scipy.stats.poisson.pmf(photons, mean)
        first, second = (float(chances @ (weights @ stabilised**power)) for power in (1, 2))
        assert float(model.restore(np.array([first]))[0]) == pytest.approx(mean, abs=2e-3)
        variance = float(model.stabilised_variance(np.array([first]))[0])
        assert variance == pytest.approx(second - first**2, abs=6e-3)


def test_no_photons_have_no_noise():
    model = PoissonGaussian(5.0)
    variances = model.stabilised_variance(model.stabilise(np.linspace(0.0, 50.0, 101)))
    assert variances.min() == 0
    assert variances[-1] == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_stabilisation_and_inverse_increase(model):
    low = model.offset if isinstance(model, PoissonGaussian) else 0.0
    greys = low + np.linspace(0, 5000, 4001)
    stabilised = model.stabilise(greys)
    assert np.all(np.diff(stabilised) > 0)
    reached = stabilised[stabilised > model.table()[0][0]]  # below, there is no signal
    assert np.all(np.diff(model.restore(reached)) > 0)


@pytest.mark.parametrize("brightness", [2.0, 20.0])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_samples_have_the_variance_at_their_mean(model, brightness):
    noisy = model.sample(np.full(10**6, _truth(model, brightness)), _random())
    assert noisy.var() == pytest.approx(float(model.variance(noisy.mean())), rel=0.02)


@pytest.mark.parametrize(
    ("model", "scaled"),
    [
        (Gaussian(5.0), Gaussian(15.0)),
        (PoissonGaussian(2.0, 10.0, 3.0), PoissonGaussian(6.0, 30.0, 9.0)),
        (Rician(4.0), Rician(12.0)),
        (Speckle(0.3, 2.0), Speckle(0.3, 6.0)),
    ],
    ids=str,
)
def test_models_follow_the_scale_of_grey_values(model, scaled):
    greys = np.linspace(20.0, 200.0, 50)
    np.testing.assert_allclose(scaled.variance(3 * greys), 9 * model.variance(greys), rtol=1e-12)
    stabilised = model.stabilise(greys)
    factor = 3.0 if isinstance(model, Gaussian) else 1.0
    np.testing.assert_allclose(scaled.stabilise(3 * greys), factor * stabilised, rtol=1e-12)
    np.testing.assert_allclose(scaled.restore(factor * stabilised), 3 * model.restore(stabilised), rtol=1e-9)


@pytest.mark.parametrize("correlation", [0.5, 0.8, 1.2])
@pytest.mark.parametrize(
    "model", [Gaussian, lambda level, correlation: Rician(level, correlation)], ids=["gaussian", "rician"]
)
def test_correlated_samples_keep_the_variance_and_have_the_correlation(model, correlation):
    noisy = model(2.0, correlation=correlation).sample(np.full((600, 600), 200.0), _random())
    noisy -= noisy.mean()
    assert noisy.std() == pytest.approx(2.0, rel=0.02)
    weights = np.exp(-0.5 * np.square(np.arange(-9, 10) / correlation))  # of a sampled Gaussian
    neighbours = float(np.mean(noisy[1:] * noisy[:-1]) / np.mean(noisy**2))
    assert neighbours == pytest.approx(float(weights[1:] @ weights[:-1] / (weights @ weights)), abs=0.02)


@pytest.mark.parametrize("probe", [(4, 1), (2, 1), (4, 2), (2, 3)])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
def test_differences_see_the_stated_part_of_the_noise(probe, correlation):
    order, step = probe
    noisy = Gaussian(1.0, correlation).sample(np.zeros((800, 800)), _random())
    weights = np.zeros(order * step + 1)
    weights[::step] = {2: [1, -2, 1], 4: [1, -4, 6, -4, 1]}[order] / np.sqrt({2: 6, 4: 70}[order])
    seen = noisy
    for axis in (0, 1):
        seen = np.apply_along_axis(np.convolve, axis, seen, weights, "valid")
    assert np.mean(seen**2) == pytest.approx(gain(correlation, probe, 2), rel=0.05)
    size = 8 * (min(seen.shape) // 8)
    energies = np.square(seen[:size, :size]).reshape(size // 8, 8, size // 8, 8).mean(axis=(1, 3))
    measured = 2 * energies.mean() ** 2 / energies.var()
    assert measured == pytest.approx(freedom(correlation, probe, 8, 2), rel=0.12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(-1.0), "level of Gaussian must be at least 0"),
        (lambda: Gaussian(1.0, float("nan")), "correlation of Gaussian"),
        (lambda: PoissonGaussian(0.0), "gain of PoissonGaussian must be positive"),
        (lambda: Rician(0.0), "level of Rician must be positive"),
        (lambda: Speckle(0.2, 0.0), "level and floor of Speckle must be positive"),
    ],
)
def test_impossible_parameters_are_rejected(make, message):
    with pytest.raises(ValueError, match=message):
        make()
