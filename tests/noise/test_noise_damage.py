"""estimate() on damaged images: saturation, stripes, weak signals, slopes and texture."""

import numpy as np
import pytest

from aniso import noise
from aniso.noise.clipping import judge_clipped
from aniso.noise.correlation import gain
from aniso.noise.models import Gaussian, PoissonGaussian, Rician, Speckle
from aniso.noise.spectrum import explain, texture_gain
from aniso.noise.statistics import PROBES
from aniso.noise.stripes import remove_stripes
from aniso.verbs.risk import expected_square

Y, X = np.indices((192, 192)) / 192


def _random(seed=0):
    return np.random.default_rng(seed)


def _levels(found, model, truth):
    return [float(np.sqrt(np.mean(one.variance(model._mean(truth))))) for one in (found.models[0], model)]


@pytest.mark.parametrize("model", [Gaussian(25.0), PoissonGaussian(8.0), Speckle(0.25, 1.0)])
@pytest.mark.parametrize("share", [0.75, 0.9])
def test_saturation_does_not_lower_the_level(model, share):
    truth = 40 + 160 * X
    noisy = model.sample(truth, _random())
    found = noise.estimate(np.minimum(noisy, np.quantile(noisy, share)))
    level, true_level = _levels(found, model, truth)
    assert level == pytest.approx(true_level, rel=0.1)
    assert found.kind == model.kind


def test_what_clipping_leaves_of_the_variance():
    values = _random().normal(0, 1, (4000, 64))
    clipped = np.minimum(values, 1.0)
    shares = (clipped == 1.0).mean(axis=1)
    bad, left = judge_clipped(clipped.mean(axis=1), (np.zeros(4000), shares))
    assert not bad.any()
    assert np.mean(clipped.var(axis=1, ddof=1) / left) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("model", [Gaussian(6.0), Rician(20.0), Gaussian(6.0, 0.8)])
def test_stripes_do_not_count(model):
    truth = 120 * np.maximum(X - 0.3, 0) + 0.0
    striped = model.sample(truth, _random()) + _random(1).normal(0, 8, (192, 1))
    found = noise.estimate(striped)
    level, true_level = _levels(found, model, truth)
    assert level == pytest.approx(true_level, rel=0.1)
    assert found.correlation == pytest.approx(model.correlation, abs=0.2)


def test_columns_are_like_rows():
    image = Gaussian(6.0).sample(100 * X, _random())
    offsets = _random(1).normal(0, 8, (192, 1))
    np.testing.assert_allclose(remove_stripes((image + offsets).T), remove_stripes(image + offsets).T, atol=2)
    assert np.std(remove_stripes(image + offsets) - image) < 4


@pytest.mark.parametrize("photons", [0.3, 2.0, 20.0])
def test_skewed_noise_has_no_stripes(photons):
    # Its median is below its mean in all rows.
    noisy = PoissonGaussian(1.0).sample(photons * (0.2 + X), _random())
    assert remove_stripes(noisy) is noisy


def test_weak_signals_do_not_raise_the_level_of_magnitudes():
    model, truth = Rician(30.0), 90 * (X + Y)
    found = noise.estimate(model.sample(truth, _random()))
    assert found.kind == "rician"
    assert vars(found.models[0])["level"] == pytest.approx(30.0, rel=0.05)


def test_slopes_are_flat():
    # No place is without a gradient.
    model, truth = PoissonGaussian(4.0), 100 + 60 * np.sin(Y * 25) * np.sin(X * 25)
    found = noise.estimate(model.sample(truth, _random()))
    level, true_level = _levels(found, model, truth)
    assert level == pytest.approx(true_level, rel=0.06)
    assert found.certainty > 0.8


@pytest.mark.parametrize("correlation", [0.0, 0.4, 0.6, 1.0])
@pytest.mark.parametrize("texture", [0.0, 0.05])
def test_texture_is_told_from_correlation(correlation, texture):
    levels = {p: gain(correlation, p, 2) + texture * texture_gain(0.7, p, 2) for p in PROBES}
    errors = dict.fromkeys(PROBES, 0.03)
    tried = [explain(levels, errors, each, 2) for each in (0.0, 0.4, 0.6, 1.0)]
    best = min(tried, key=lambda one: one.misfit)
    assert best.correlation == correlation
    assert best.variance == pytest.approx(1, abs=0.1)


def test_a_doubtful_level_makes_small_errors_larger():
    assert expected_square(3.0, 1.0, 0.0) == 3.0
    assert expected_square(-3.0, 1.0, 0.0) == 1.0
    samples = np.maximum(_random().normal(0.5, 2.0, 10**6), 0.2)
    assert expected_square(0.5, 0.2, 2.0) == pytest.approx(samples.mean(), rel=0.01)


def _chart(size=512, seed=3):
    """A drawing: squares of many grey values, with chessboards of little contrast in them."""
    random = _random(seed)
    drawing = np.empty((size, size))
    half = size // 4
    for y in range(0, size, half):
        for x in range(0, size, half):
            grey = random.uniform(30, 220)
            square = drawing[y : y + half, x : x + half]
            square[:] = grey
            for _ in range(6):
                side = int(random.integers(8, 40))
                top, left = random.integers(0, half - side, 2)
                rows, columns = np.indices((side, side)) // max(side // 4, 2)
                board = 12 * ((rows + columns) % 2) - 6
                square[top : top + side, left : left + side] = grey + random.choice([-20, 20]) + board
    return np.round(drawing)


def test_a_drawing_has_no_noise():
    found = noise.estimate(_chart())
    assert found.level == 0
    assert found.certainty == 1


def test_noise_in_a_drawing_is_found():
    chart = _chart()
    noisy = chart + _random().normal(0, 8, chart.shape)
    assert noise.estimate(noisy).level == pytest.approx(8, rel=0.1)
    # Constant borders and holes of three grey values do not make a drawing of it.
    noisy[:100], noisy[150:250, 150:350], noisy[-40:] = 70, 110, 150
    assert noise.estimate(noisy).level == pytest.approx(8, rel=0.1)
