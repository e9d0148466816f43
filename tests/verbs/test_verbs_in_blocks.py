"""The verbs on Dask arrays: what they choose, and that blocks do not show."""

from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import aniso
from aniso.blocks import sample
from aniso.verbs import chunked_inpaint as in_blocks

NOISY = aniso.samples.shapes(96, noise=20.0)


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def blocks(image, size=40):
    return da.from_array(image, chunks=size)


class TestDenoise:
    def test_it_removes_noise(self):
        result, info = aniso.denoise(blocks(NOISY.image), return_info=True)
        assert isinstance(result, da.Array)
        assert 18 < info.noise < 22
        assert ((result.compute() - NOISY.truth) ** 2).mean() < 0.1 * 20**2

    def test_chunks_do_not_matter(self):
        results = [aniso.denoise(blocks(NOISY.image, size)).compute() for size in (96, 50, 17)]
        for result in results[1:]:
            np.testing.assert_allclose(result, results[0], atol=2e-5 * 255)

    def test_given_numbers_give_what_they_give_in_memory(self):
        options: dict[str, Any] = {"contrast": 9.0, "time": 2.0}
        expected = aniso.denoise(NOISY.image, **options)
        result = aniso.denoise(blocks(NOISY.image), **options).compute()
        np.testing.assert_allclose(result, expected, atol=2e-5 * 255)

    def test_the_choice_is_that_of_the_best_single_diffusion(self):
        _, alone = aniso.denoise(NOISY.image, mix=False, return_info=True)
        _, info = aniso.denoise(blocks(NOISY.image), return_info=True)
        assert (info.model, info.time) == (alone.model, alone.time)

    def test_nothing_is_done_without_noise(self):
        image = np.full((50, 50), 7.0)
        np.testing.assert_array_equal(aniso.denoise(blocks(image)).compute(), image)

    def test_colours_and_volumes(self):
        colour = np.stack([NOISY.image] * 2, -1) + np.random.default_rng(0).normal(0, 5, (96, 96, 2))
        result = aniso.denoise(da.from_array(colour, chunks=(40, 40, 1)), channel_axis=-1)
        assert result.chunks == ((40, 40, 16), (40, 40, 16), (1, 1))
        assert result.compute().std() < colour.std()
        balls = aniso.samples.balls(24, noise=20.0)
        quiet = aniso.denoise(blocks(balls.image, 10)).compute()
        assert ((quiet - balls.truth) ** 2).mean() < 0.3 * 20**2

    def test_a_mixture_is_refused(self):
        with pytest.raises(ValueError, match="Leave mix out"):
            aniso.denoise(blocks(NOISY.image), mix=True)


class TestInpaint:
    @pytest.mark.parametrize("in_one_piece", [2**20, 300, 50])
    @pytest.mark.parametrize(
        ("shape", "channel_axis"), [((61, 47), None), ((61, 47, 3), -1), ((20, 17, 23), None)]
    )
    def test_as_in_memory(self, monkeypatch, in_one_piece, shape, channel_axis):
        monkeypatch.setattr(in_blocks, "_SMALL", in_one_piece)
        rng = np.random.default_rng(0)
        image = rng.normal(100, 20, shape)
        spatial = shape if channel_axis is None else shape[:-1]
        unknown = rng.random(spatial) < 0.9
        options: dict[str, Any] = {"contrast": 5.0, "max_cycles": 3, "channel_axis": channel_axis}
        expected = aniso.inpaint(image, unknown, tolerance=1e-12, **options)
        for mask in (unknown, da.from_array(unknown, chunks=19)):
            result = aniso.inpaint(blocks(image, 16), mask, **options)
            np.testing.assert_allclose(result.compute(), expected, atol=1e-9 * np.ptp(image))

    def test_without_numbers_and_with_nan(self):
        image = NOISY.truth.astype(np.float32)
        image[np.random.default_rng(0).random(image.shape) < 0.7] = np.nan
        result = aniso.inpaint(blocks(image)).compute()
        assert ((result - NOISY.truth) ** 2).mean() < 0.05 * NOISY.truth.var()
        known = np.isfinite(image)
        np.testing.assert_array_equal(result[known], image[known])

    def test_nothing_known(self):
        with pytest.raises(ValueError, match="all pixels are unknown"):
            aniso.inpaint(blocks(np.ones((40, 40))), np.ones((40, 40), bool), contrast=1.0).compute()


class TestSample:
    def test_windows_lie_inside_and_differ(self):
        for shape in ((1000, 3000), (100, 2000), (500, 400, 300), (10, 5000, 5000)):
            found = sample.windows(shape)
            assert len({str(window) for window in found}) == len(found) == 9
            for window in found:
                assert all(0 <= part.start < part.stop <= n for part, n in zip(window, shape, strict=True))

    def test_a_small_array_is_its_own_sample(self):
        assert sample.windows((40, 50)) == [(slice(0, 40), slice(0, 50))]


@pytest.mark.parametrize(("mask", "kind"), [([[1]], ValueError), (1e-9, TypeError), ("all", TypeError)])
def test_inpaint_refuses_what_is_no_mask(mask, kind):
    with pytest.raises(kind, match="mask"):
        aniso.inpaint(da.ones((8, 9), chunks=4), mask)
