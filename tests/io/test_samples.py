"""Sample images: the same for everyone, and with the truth that they claim."""

import socket
import sys

import numpy as np
import pytest

import aniso
from aniso import samples

MAKERS = (samples.rings, samples.fingerprint, samples.shapes)
# Colours have an axis more, so that they have tests of their own below.
LINES = (samples.rings, samples.fingerprint)
every_maker = pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
every_line_maker = pytest.mark.parametrize("maker", LINES, ids=lambda maker: maker.__name__)


@every_maker
class TestSynthetic:
    def test_the_same_seed_gives_the_same_image(self, maker):
        first, second = maker(48, seed=3), maker(48, seed=3)
        np.testing.assert_array_equal(first.image, second.image)
        np.testing.assert_array_equal(first.truth, second.truth)
        np.testing.assert_array_equal(first.gaps, second.gaps)

    def test_another_seed_gives_another_image_of_the_same_truth(self, maker):
        first, second = maker(48, seed=3), maker(48, seed=4)
        assert (first.image != second.image).mean() > 0.9
        np.testing.assert_array_equal(first.truth, second.truth)

    def test_the_global_random_state_plays_no_role(self, maker):
        np.random.seed(0)  # noqa: NPY002 (the state that must not be used)
        first = maker(32).image
        np.random.seed(1)  # noqa: NPY002
        np.testing.assert_array_equal(maker(32).image, first)

    @pytest.mark.parametrize("size", [16, 33, 64])
    def test_shapes_and_types(self, maker, size):
        sample = maker(size)
        for array, dtype in ((sample.image, float), (sample.truth, float), (sample.gaps, bool)):
            assert array.shape == (size, size)
            assert array.dtype == dtype
        assert np.isfinite(sample.image).all()

    def test_the_truth_lies_between_black_and_white(self, maker):
        truth = maker(128).truth
        assert truth.min() >= 0
        assert truth.max() <= 255
        assert np.ptp(truth) > 100

    def test_the_noise_is_as_strong_as_asked_for(self, maker):
        clean, noisy = maker(128, noise=0.0), maker(128, noise=25.0)
        np.testing.assert_array_equal(clean.gaps, noisy.gaps)
        rest = (noisy.image - noisy.truth)[~noisy.gaps]
        assert rest.std() == pytest.approx(25.0, rel=0.05)
        assert abs(rest.mean()) < 1

    def test_without_noise_only_the_gaps_are_damaged(self, maker):
        sample = maker(96, noise=0.0)
        np.testing.assert_array_equal(sample.image[~sample.gaps], sample.truth[~sample.gaps])

    def test_the_default_size(self, maker):
        assert maker().image.shape == (256, 256)

    def test_it_can_be_diffused(self, maker):
        result = aniso.diffuse(maker(32).image, aniso.CoherenceEnhancing(), 1.0)
        assert np.isfinite(result).all()


@every_line_maker
class TestLines:
    def test_gaps_lie_on_dark_lines(self, maker):
        sample = maker(128, noise=0.0)
        assert sample.gaps.any()
        assert sample.gaps.mean() < 0.1
        assert (sample.truth[sample.gaps] < 127.5).all()
        assert sample.truth[sample.gaps].min() < 20

    def test_gaps_are_brighter_than_the_line_they_interrupt(self, maker):
        sample = maker(128, noise=0.0)
        assert (sample.image[sample.gaps] >= sample.truth[sample.gaps]).all()
        assert (sample.image - sample.truth)[sample.gaps].mean() > 50

    def test_a_longer_period_makes_fewer_lines(self, maker):
        def changes(truth):
            return (np.diff(truth > 127.5, axis=1) != 0).sum()

        assert changes(maker(128, period=6.0).truth) > 1.5 * changes(maker(128, period=12.0).truth)

    def test_as_much_bright_as_dark(self, maker):
        assert maker(128).truth.mean() == pytest.approx(127.5, abs=10)


def test_rings_are_round():
    truth = samples.rings(65, period=10.0).truth
    np.testing.assert_allclose(truth, truth.T)
    np.testing.assert_allclose(truth, truth[::-1])
    row = truth[32, 32:]
    expected = 127.5 + 127.5 * np.cos(2 * np.pi * np.arange(33) / 10.0)
    np.testing.assert_allclose(row, expected)


def test_shapes_have_sharp_edges_and_no_gaps():
    sample = samples.shapes(256)
    assert not sample.gaps.any()
    assert abs(np.diff(sample.truth, axis=1)).max() > 60


class TestRingPattern:
    def test_values_lie_between_minus_one_and_one(self):
        pattern = samples.ring_pattern()
        assert pattern.shape == (129, 129)
        assert abs(pattern).max() <= 1
        assert abs(pattern).max() > 0.95

    def test_it_fades_out_at_the_radius(self):
        assert abs(samples.ring_pattern(size=201, radius=60.0)[100, :30]).max() < 0.02

    def test_the_tensor_is_the_projector_on_the_tangent(self):
        a, b, c = samples.ring_tensor(32)
        assert a.shape == b.shape == c.shape == (33, 33)
        y, x = np.indices((33, 33)) - 16.0
        off_centre = np.hypot(x, y) > 0
        np.testing.assert_allclose((a + c)[off_centre], 1)
        np.testing.assert_allclose(a * c, b * b, atol=1e-15)
        np.testing.assert_allclose((a * x + b * y)[off_centre], 0, atol=1e-12)
        np.testing.assert_allclose((b * x + c * y)[off_centre], 0, atol=1e-12)

    def test_the_pattern_hardly_changes_under_its_tensor(self):
        """The known answer for the stencil's dissipation: 0.038 on 12 < r < 50 after a time of 20."""
        pattern = samples.ring_pattern()
        model = aniso.FixedTensor.from_entries(*samples.ring_tensor())
        y, x = np.indices(pattern.shape) - 64.0
        inside = (np.hypot(x, y) > 12) & (np.hypot(x, y) < 50)
        changes = {}
        for name, stencil in (("default", aniso.DeltaStencil()), ("δ = 0", aniso.DeltaStencil(0, 0))):
            result = aniso.diffuse(pattern, model, 20.0, stencil=stencil)
            change = np.linalg.norm((result - pattern)[inside])
            changes[name] = change / np.linalg.norm(pattern[inside])
        assert changes["default"] == pytest.approx(0.038, abs=2e-3)
        assert changes["δ = 0"] == pytest.approx(0.443, abs=1e-2)


class TestPhotographs:
    @pytest.fixture
    def no_network(self, monkeypatch):
        def refuse(*args, **kwargs):
            raise AssertionError("a photograph was looked for in the network")

        monkeypatch.setattr(socket.socket, "connect", refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)
        monkeypatch.setattr(socket, "create_connection", refuse)

    @pytest.mark.usefixtures("no_network")
    @pytest.mark.parametrize("name", samples.PHOTOGRAPHS)
    def test_every_name_loads(self, name):
        photograph = samples.photograph(name)
        assert type(photograph) is np.ndarray
        assert photograph.dtype == np.uint8
        assert photograph.ndim == 2 or photograph.shape[2:] == (3,)
        assert min(photograph.shape[:2]) > 100
        assert photograph.std() > 5

    @pytest.mark.parametrize("name", ["lena", "", "Camera", "_fetch", "data_dir"])
    def test_other_names_are_refused_with_those_that_exist(self, name):
        with pytest.raises(ValueError, match=f"there is no photograph {name!r}") as error:
            samples.photograph(name)
        for known in samples.PHOTOGRAPHS:
            assert known in str(error.value)

    def test_without_scikit_image_the_remedy_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "skimage", None)
        with pytest.raises(ImportError, match=r'pip install "aniso\[photos\]"'):
            samples.photograph("camera")


class TestLighthouse:
    def test_it_has_three_colours_and_the_noise_asked_for(self):
        sample = samples.lighthouse(96, noise=20.0, seed=1)
        assert sample.image.shape == sample.truth.shape == (96, 96, 3)
        assert sample.gaps.shape == (96, 96)
        assert not sample.gaps.any()
        assert (sample.image - sample.truth).std(axis=(0, 1)) == pytest.approx([20.0] * 3, rel=0.05)

    def test_the_truth_lies_between_black_and_white_and_is_coloured(self):
        truth = samples.lighthouse(128, noise=0.0).truth
        assert truth.min() >= 0
        assert truth.max() <= 255
        assert np.ptp(truth, axis=-1).mean() > 20

    def test_seeds_change_the_noise_alone(self):
        first, same, other = (samples.lighthouse(32, seed=seed) for seed in (0, 0, 1))
        np.testing.assert_array_equal(first.image, same.image)
        np.testing.assert_array_equal(first.truth, other.truth)
        assert (first.image != other.image).all()

    def test_a_finer_one_shows_the_same_scene(self):
        coarse, fine = (samples.lighthouse(size, noise=0.0).truth for size in (64, 256))
        means = fine.reshape(64, 4, 64, 4, 3).mean(axis=(1, 3))
        assert np.sqrt(np.mean((means - coarse) ** 2)) < 6


class TestVolumes:
    MAKERS = (samples.fibres, samples.layers, samples.balls)
    every_maker = pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)

    @every_maker
    def test_shape_noise_and_range(self, maker):
        sample = maker((20, 24, 28), noise=20.0, seed=1)
        assert sample.image.shape == sample.truth.shape == sample.gaps.shape == (20, 24, 28)
        assert (sample.image - sample.truth)[~sample.gaps].std() == pytest.approx(20, rel=0.05)
        assert 0 <= sample.truth.min() < sample.truth.max() <= 255
        assert sample.truth.std() > 10
        assert maker(16).image.shape == (16, 16, 16)

    @every_maker
    def test_seeds(self, maker):
        first, same, other = (maker(16, seed=seed) for seed in (0, 0, 1))
        np.testing.assert_array_equal(first.image, same.image)
        assert (first.image != other.image).any()

    @pytest.mark.parametrize("maker", [samples.fibres, samples.layers])
    def test_gaps_are_where_the_structure_was(self, maker):
        sample = maker(32, gaps=6, noise=0.0)
        assert 0 < sample.gaps.mean() < 0.1
        changed = sample.image != sample.truth
        assert (changed <= sample.gaps).all()
        assert abs(sample.image - sample.truth)[sample.gaps].mean() > 40
        assert not maker(16).gaps.any()

    def test_fibres_are_tubes(self):
        truth = samples.fibres(48, count=1, radius=3.0, noise=0.0).truth
        inside = truth > 130
        length = inside.sum() / (np.pi * 9)
        assert 20 < length < 120
        assert np.unique(truth).min() == 60
        assert truth.max() == 200

    def test_no_fibres_and_no_balls(self):
        assert (samples.fibres(8, count=0, noise=0.0).truth == 60).all()
        assert samples.balls(8, count=0, noise=0.0).truth.max() < 100

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: samples.fibres((4, 4)), "shape must be"),  # type: ignore[arg-type]
            (lambda: samples.balls(0), "shape must be"),
            (lambda: samples.fibres(8, radius=0), "radius must be positive"),
            (lambda: samples.fibres(8, count=-1), "count must be at least 0"),
            (lambda: samples.layers(8, period=0), "period must be positive"),
            (lambda: samples.layers(8, gaps=-1), "gaps must be at least 0"),
        ],
    )
    def test_bad_values_are_refused(self, make, message):
        with pytest.raises(ValueError, match=message):
            make()
