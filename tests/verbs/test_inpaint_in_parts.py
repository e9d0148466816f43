"""Inpainting in parts: Dask arrays, coarser grids, and the windows on which parameters are chosen."""

import unittest.mock
from typing import Any

import dask.array as da
import numpy as np
import pytest

import aniso
from aniso.blocks import sample
from aniso.verbs import inpaint_solver
from aniso.verbs.grids import halve
from aniso.verbs.holes import HoledSource
from benchmarks.quality_inpaint import photograph, psnr
from tests.verbs.test_inpaint import lost


@pytest.fixture(scope="module")
def camera():
    return photograph("camera", 128).astype(np.float32)


class TestGrids:
    def test_sums_of_pairs(self):
        image = np.arange(15.0).reshape(1, 3, 5)
        np.testing.assert_array_equal(halve(image), [[[12.0, 20.0, 13.0], [21.0, 25.0, 14.0]]])

    @pytest.mark.parametrize("shape", [(1, 9, 14), (2, 7, 6, 5)])
    def test_dask_arrays_have_the_same_sums(self, shape):
        image = np.random.default_rng(0).random(shape)
        for chunks in (3, 4, 100):
            found = halve(halve(da.from_array(image, chunks=chunks)))
            np.testing.assert_array_equal(found.compute(scheduler="synchronous"), halve(halve(image)))


class TestBlocks:
    @pytest.mark.parametrize("in_one_piece", [2**20, 50])
    @pytest.mark.parametrize(
        ("shape", "dtype", "chunks", "options"),
        [
            ((61, 47), "float32", 16, {}),
            ((61, 47), "float64", (61, 13), {"spacing": (1, 2), "tolerance": 1e-4}),
            ((40, 37, 3), "float32", (15, 37, 2), {"channel_axis": -1, "max_cycles": 2}),
            ((17, 15, 20), "float64", 8, {}),
            (
                (2, 9, 12, 11), "float32", (1, 9, 5, 7),
                {"channel_axis": 0, "spacing": (2, 1, 1), "contrast": 5.0},
            ),
        ],
    )  # fmt: skip
    def test_dask_arrays_give_the_bits_of_memory(
        self, monkeypatch, in_one_piece, shape, chunks, options, dtype
    ):
        monkeypatch.setattr(inpaint_solver, "_SMALL", in_one_piece)
        rng = np.random.default_rng(0)
        image = rng.normal(100, 20, shape).astype(dtype)
        axis = options.get("channel_axis")
        spatial = [n for k, n in enumerate(shape) if axis is None or k != axis % len(shape)]
        unknown = rng.random(spatial) < 0.9
        expected, plan = aniso.inpaint(image, unknown, **options, return_info=True)
        lazy_image = da.from_array(image, chunks=chunks)
        for mask in (unknown, da.from_array(unknown, chunks=7)):
            result, same = aniso.inpaint(lazy_image, mask, **options, return_info=True)
            assert same == plan
            assert (result.chunks, result.dtype) == (lazy_image.chunks, dtype)
            np.testing.assert_array_equal(result.compute(scheduler="synchronous"), expected)
        again: Any = aniso.Plan.from_json(plan.to_json())
        assert again == plan
        np.testing.assert_array_equal(again.apply(image, unknown), expected)
        lazily = again.apply(lazy_image, unknown)
        np.testing.assert_array_equal(lazily.compute(scheduler="synchronous"), expected)

    def test_nan_in_dask_arrays(self, camera):
        image = camera[:60, :70].copy()
        image[10:30, 20:45] = np.nan
        result = aniso.inpaint(da.from_array(image, chunks=25)).compute(scheduler="synchronous")
        np.testing.assert_array_equal(result, aniso.inpaint(image))

    def test_a_box_around_the_holes_gives_the_bits_of_the_whole(self, camera):
        mask = np.zeros(camera.shape, bool)
        mask[50:69, 70:76] = True
        expected, plan = aniso.inpaint(camera, mask, return_info=True)
        everything = slice(None), slice(None)
        with unittest.mock.patch.object(inpaint_solver.Solver, "_box", return_value=everything):
            np.testing.assert_array_equal(plan.apply(camera, mask), expected)


class TestSamples:
    """Large images, in which contrast and cycles are chosen on windows."""

    @pytest.fixture(autouse=True)
    def _small_windows(self, monkeypatch):
        monkeypatch.setitem(sample._VALUES, 2, 9 * 24**2)

    def test_memory_and_dask_arrays_choose_the_same(self, camera):
        mask = lost(camera, 0.2)
        expected, plan = aniso.inpaint(camera, mask, return_info=True)
        lazily, same = aniso.inpaint(da.from_array(camera, chunks=50), mask, return_info=True)
        assert same == plan
        assert plan.cycles > 0
        assert 0.7 < plan.unknown < 0.9
        np.testing.assert_array_equal(lazily.compute(scheduler="synchronous"), expected)
        np.testing.assert_array_equal(plan.apply(camera, mask), expected)

    def test_it_is_as_good_as_with_one_window(self, camera, monkeypatch):
        mask = lost(camera, 0.1)
        sampled = aniso.inpaint(camera, mask)
        monkeypatch.setitem(sample._VALUES, 2, camera.size)
        assert psnr(sampled, camera) > psnr(aniso.inpaint(camera, mask), camera) - 0.1

    def test_holes_between_the_windows_are_found(self, camera):
        mask = np.zeros(camera.shape, bool)
        windows = HoledSource.check_holes(camera, mask, None, None).sample_holes()
        assert len(windows) == 9
        seen = np.zeros(camera.shape, bool)
        for window in sample.windows(camera.shape):
            seen[window] = True
        y, x = np.argwhere(~seen)[0]
        mask[y, x] = True
        filled, plan = aniso.inpaint(camera, mask, return_info=True)
        assert plan.cycles > 0
        assert plan.converged
        assert abs(filled[y, x] - camera[y, x]) < 30
        _, same = aniso.inpaint(da.from_array(camera, chunks=33), mask, return_info=True)
        assert same == plan

    def test_nothing_unknown_and_nothing_known(self, camera):
        filled, plan = aniso.inpaint(camera, return_info=True)
        assert (plan.cycles, plan.unknown) == (0, 0.0)
        np.testing.assert_array_equal(filled, camera)
        assert not np.shares_memory(filled, camera)
        mask = np.ones(camera.shape, bool)
        with pytest.raises(ValueError, match="all pixels are unknown"):
            aniso.inpaint(da.from_array(camera, chunks=50), mask)

    def test_windows_without_known_pixels(self, camera):
        mask = np.ones(camera.shape, bool)
        mask[0, 0] = False
        filled, plan = aniso.inpaint(camera, mask, return_info=True)
        np.testing.assert_array_equal(filled, camera[0, 0])
        assert plan.converged
        mask[:] = False
        for window in sample.windows(camera.shape):
            mask[window] = True
        _, plan = aniso.inpaint(camera, mask, return_info=True)
        _, usual = aniso.inpaint(camera, lost(camera, 0.7), return_info=True)
        assert plan.contrast == pytest.approx(usual.contrast, rel=0.5)
        assert plan.contrast != 1.0
        _, same = aniso.inpaint(da.from_array(camera, chunks=33), mask, return_info=True)
        assert same == plan

    def test_windows_that_are_known_or_unknown_as_a_whole(self, camera):
        mask = np.zeros(camera.shape, bool)
        mask[sample.windows(camera.shape)[0]] = True
        _, plan = aniso.inpaint(camera, mask, return_info=True)
        assert plan.converged
        with unittest.mock.patch.object(HoledSource, "_mixed_windows", return_value=[]):
            _, plan = aniso.inpaint(camera, mask, return_info=True)
        assert (plan.cycles, plan.residual, plan.converged) == (20, None, False)
        assert aniso.Plan.from_json(plan.to_json()) == plan
