"""Reflected and rotated images have the same noise and the same plan, and so the same result."""

import numpy as np
import pytest

import aniso
from aniso.blocks.sample import orient

REFLECTIONS = {
    "rows": lambda image: image[::-1],
    "columns": lambda image: image[:, ::-1],
    "transpose": lambda image: np.swapaxes(image, 0, 1),
    "quarter turn": lambda image: np.rot90(image),
    "half turn": lambda image: np.rot90(image, 2),
}
IMAGES = {
    "drawing": lambda: aniso.samples.shapes(89, noise=12.0).image[:76],
    "strong noise": lambda: aniso.samples.fingerprint(96, noise=60.0).image,
    "photons": lambda: aniso.noise.PoissonGaussian(4.0).sample(
        aniso.samples.shapes(128).truth + 8, np.random.default_rng(0)
    ),
    "colour": lambda: aniso.samples.lighthouse(noise=20.0).image[40:130, 60:140],
}


def compare(function, image, turn, *, tolerance=1e-3, **options):
    """Results and plans of an image and of the turned one must agree, as parts of the range of values."""
    result, plan = function(image, return_info=True, **options)
    turned, other = function(np.ascontiguousarray(turn(image)), return_info=True, **options)
    np.testing.assert_allclose(turned, turn(result), atol=tolerance * np.ptp(result))
    assert str(other).splitlines()[0] == str(plan).splitlines()[0]
    return plan, other


@pytest.mark.parametrize("turn", REFLECTIONS.values(), ids=REFLECTIONS)
@pytest.mark.parametrize("make", IMAGES.values(), ids=IMAGES)
def test_denoise(make, turn):
    image = make().astype(np.float32)
    options = {"channel_axis": 2} if image.ndim == 3 else {}
    plan, other = compare(aniso.denoise, image, turn, **options)
    assert other.expected_error == pytest.approx(plan.expected_error, rel=1e-3)
    assert other.choice == plan.choice


@pytest.mark.parametrize("method", ["diffusion", "learned"])
def test_methods(method):
    image = IMAGES["drawing"]().astype(np.float32)
    compare(aniso.denoise, image, np.rot90, method=method)


@pytest.mark.parametrize("turn", [*REFLECTIONS.values()][:2], ids=[*REFLECTIONS][:2])
def test_denoise_of_volumes(turn):
    volume = aniso.samples.balls((22, 26, 31), noise=12.0).image.astype(np.float32)
    compare(aniso.denoise, volume, turn)
    compare(aniso.denoise, volume, turn, spacing=(3.0, 1.0, 1.0))


@pytest.mark.parametrize("turn", REFLECTIONS.values(), ids=REFLECTIONS)
def test_enhance(turn):
    image = aniso.samples.fingerprint(90, noise=30.0).image[:80].astype(np.float64)
    compare(aniso.enhance, image, turn)


def test_with_unknown_pixels():
    image = IMAGES["drawing"]().astype(np.float32)
    image[10:20, 30:50] = np.nan
    # Unknown pixels are filled in on coarse grids, which begin at the first pixel.
    compare(aniso.denoise, image, np.rot90, tolerance=1e-2)


@pytest.mark.parametrize("turn", REFLECTIONS.values(), ids=REFLECTIONS)
def test_noise(turn):
    image = IMAGES["photons"]()
    mask = np.zeros(image.shape, bool)
    mask[5:40, 70:] = True
    found = aniso.noise.estimate(image, mask=mask)
    other = aniso.noise.estimate(turn(image), mask=turn(mask))
    assert other.kind == found.kind
    assert other.level == pytest.approx(found.level, rel=1e-9)


class TestOrient:
    def test_windows_of_turned_images_are_the_same(self):
        random = np.random.default_rng(1)
        image, mask = random.random((2, 7, 9)), random.random((7, 9)) > 0.5
        (first,), known = orient([image], [mask])
        for turn in REFLECTIONS.values():
            turned = np.stack([turn(channel) for channel in image])
            (other,), also = orient([turned], [turn(mask)])
            np.testing.assert_array_equal(other, first)
            np.testing.assert_array_equal(also, known)
            assert other.flags.c_contiguous

    def test_axes_of_other_spacings_are_not_exchanged(self):
        image = np.random.default_rng(2).random((1, 9, 7))
        assert orient([image], None, (2.0, 1.0))[0][0].shape == (1, 9, 7)
        assert orient([image], None, (2.0, 2.0))[0][0].shape == (1, 7, 9)

    def test_symmetric_images_are_left(self):
        image = np.full((1, 5, 5), 0.1)
        assert np.shares_memory(orient([image])[0][0], image)
