"""The verbs on Dask arrays: they choose and give what they give in memory."""

import dask
import dask.array as da
import numpy as np
import pytest

import aniso
from aniso.blocks import sample

NOISY = aniso.samples.shapes(96, noise=20.0)


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def blocks(image, size=40):
    return da.from_array(image, chunks=size)


class TestDenoise:
    @pytest.mark.parametrize("options", [{}, {"mix": False}, {"contrast": 9.0, "time": 2.0}])
    def test_chunks_do_not_matter(self, options):
        expected, plan = aniso.denoise(NOISY.image, **options, return_info=True)
        for size in (96, 50, 17):
            result, same = aniso.denoise(blocks(NOISY.image, size), **options, return_info=True)
            assert isinstance(result, da.Array)
            assert same == plan
            np.testing.assert_array_equal(result.compute(), expected)

    def test_nothing_is_done_without_noise(self):
        image = np.full((50, 50), 7.0)
        np.testing.assert_array_equal(aniso.denoise(blocks(image)).compute(), image)

    def test_colours_and_volumes(self):
        colour = np.stack([NOISY.image] * 2, -1) + np.random.default_rng(0).normal(0, 5, (96, 96, 2))
        result = aniso.denoise(da.from_array(colour, chunks=(40, 40, 1)), channel_axis=-1)
        assert result.chunks == ((40, 40, 16), (40, 40, 16), (1, 1))
        np.testing.assert_array_equal(result.compute(), aniso.denoise(colour, channel_axis=-1))
        balls = aniso.samples.balls(24, noise=20.0).image
        np.testing.assert_array_equal(aniso.denoise(blocks(balls, 10)).compute(), aniso.denoise(balls))


class TestSample:
    def test_windows_lie_inside_and_differ(self):
        for shape in ((1000, 3000), (100, 20000), (500, 400, 300), (10, 5000, 5000)):
            found = sample.windows(shape)
            assert len({str(window) for window in found}) == len(found) == {2: 9, 3: 5}[len(shape)]
            for window in found:
                assert all(0 <= part.start < part.stop <= n for part, n in zip(window, shape, strict=True))

    def test_a_small_array_is_its_own_sample(self):
        assert sample.windows((40, 50)) == [(slice(0, 40), slice(0, 50))]


@pytest.mark.parametrize(("mask", "kind"), [([[1]], ValueError), (1e-9, TypeError), ("all", TypeError)])
def test_inpaint_rejects_wrong_masks(mask, kind):
    with pytest.raises(kind, match="mask"):
        aniso.inpaint(da.ones((8, 9), chunks=4), mask)
