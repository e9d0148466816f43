"""Zarr stores that are upsampled or filled in: the same bits as in memory, metadata, interruptions."""

import unittest.mock
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import aniso
from aniso.blocks.stores import holes as stored_holes
from aniso.blocks.stores import journal
from aniso.blocks.stores.zarr_array import open_array
from aniso.io.picture import as_dtype
from tests.blocks.stores import ome_group, result_of, zarr

pytestmark = pytest.mark.slow

IMAGE = aniso.samples.shapes(72, noise=5.0).image[:40, :33]
VOLUME = aniso.samples.balls(22, noise=5.0).image[:12, :11, :10]
COLOUR = np.stack([IMAGE, IMAGE[::-1]], -1)


class Stopped(Exception):
    pass


def stop(done, total):
    if done > total / 2:
        raise Stopped


class TestUpsample:
    @pytest.mark.parametrize(
        ("image", "dtype", "options", "chunks", "block", "limit"),
        [
            (IMAGE, "float32", {"factor": 2, "time": 1.0}, (16, 16), (32, 48), 6),
            (IMAGE, "float64", {"factor": 3, "time": 2.0}, (10, 7), (30, 42), 60),
            (IMAGE, "uint8", {"factor": 2}, (64, 64), (128, 128), 1000),
            (IMAGE, "float64", {"factor": (1, 4), "spacing": (1, 3), "time": 1.0}, (16, 32), (16, 64), 20),
            (COLOUR, "float32", {"factor": 2, "channel_axis": -1}, (20, 20, 1), (40, 40), 40),
            (COLOUR, "uint8", {"factor": 2, "channel_axis": -1}, (20, 20, 1), (40, 40), 40),
            (VOLUME, "float64", {"factor": 2, "time": 1.0}, (5, 6, 5), (10, 12, 20), 6),
            (VOLUME, "float32", {"isotropic": True, "spacing": (3, 1, 1)}, (4, 6, 5), (12, 6, 10), 50),
        ],
        ids=["narrow", "odd chunks", "one block", "one axis", "colour", "integers", "volume", "thick slices"],
    )
    def test_same_bits(self, tmp_path, scheduler, cut, dtype, image, options, chunks, block, limit):
        pixels = as_dtype(image, dtype)
        expected, plan = aniso.upsample(pixels, **options, return_info=True)
        zarr.create_array(str(tmp_path / "in.zarr"), data=pixels, chunks=chunks)
        cut(block, limit)
        done = aniso.filter_store(
            tmp_path / "in.zarr", tmp_path / "out.zarr", "upsample", **options, scheduler=scheduler
        )
        assert replace(done.plan, channel_axis=plan.channel_axis) == plan
        assert (done.passes == 1) == (limit == 1000)
        assert done.shape == expected.shape
        found = zarr.open_array(str(tmp_path / "out.zarr"), mode="r")
        assert (found.dtype, found.chunks) == (dtype, chunks)
        np.testing.assert_array_equal(found[:], as_dtype(expected, dtype))
        restored = aniso.Plan.from_json(plan.to_json())
        aniso.filter_store(
            tmp_path / "in.zarr",
            tmp_path / "again.zarr",
            restored,
            channel_axis=options.get("channel_axis"),
            scheduler=scheduler,
        )
        np.testing.assert_array_equal(result_of(tmp_path / "again.zarr"), found[:])

    def test_blocks_that_are_chosen(self, tmp_path, scheduler):
        zarr.create_array(str(tmp_path / "in.zarr"), data=IMAGE, chunks=(9, 10))
        done = aniso.filter_store(
            tmp_path / "in.zarr", tmp_path / "out.zarr", "upsample", factor=4, scheduler=scheduler
        )
        assert all(side % unit == 0 for side, unit in zip(done.block, (36, 20), strict=True))
        np.testing.assert_array_equal(result_of(tmp_path / "out.zarr"), aniso.upsample(IMAGE, 4))

    @pytest.mark.parametrize("version", ["0.4", "0.5"])
    def test_metadata_follow_the_finer_grid(self, tmp_path, scheduler, version):
        frames = np.stack([VOLUME, VOLUME[::-1]]).astype(np.float32)
        source = ome_group(
            tmp_path / "in.zarr", frames, "tzyx", (7.0, 3.0, 0.5, 1.0), version, chunks=(1, 5, 6, 7)
        )
        done = aniso.filter_store(
            source, tmp_path / "out.zarr", "upsample", isotropic=True, scheduler=scheduler
        )
        plan: Any = done.plan
        assert plan.factor == (6, 1, 2)
        found = open_array(tmp_path / "out.zarr")
        assert found.shape == done.shape == (2, 72, 11, 20)
        assert found.chunks == (1, 5, 6, 7)
        assert found.frame_axes == (0,)
        assert found.spacing == (0.5, 0.5, 0.5)
        assert found.ome is not None
        (level,) = found.ome["datasets"]
        scale, translation = level["coordinateTransformations"]
        assert scale == {"type": "scale", "scale": [7.0, 0.5, 0.5, 0.5]}
        # The centre of the first voxel.
        assert translation == {"type": "translation", "translation": [0.0, -1.25, 0.0, -0.25]}
        result = result_of(tmp_path / "out.zarr")
        for before, after in zip(frames, result, strict=True):
            np.testing.assert_array_equal(after, plan.apply(before))

    def test_an_interrupted_run_is_continued(self, tmp_path, scheduler, cut):
        zarr.create_array(str(tmp_path / "in.zarr"), data=IMAGE, chunks=(8, 8))
        cut((16, 16), 20)
        call: Any = (tmp_path / "in.zarr", tmp_path / "out.zarr", "upsample")
        with pytest.raises(Stopped):
            aniso.filter_store(*call, factor=2, scheduler=scheduler, progress=stop)
        assert journal.folder_of(tmp_path / "out.zarr").exists()
        with pytest.raises(ValueError, match=r"another factor \(2 there, 4 now\)"):
            aniso.filter_store(*call, factor=4, scheduler=scheduler)
        notes: dict[str, str] = {}
        aniso.filter_store(*call, factor=2, scheduler=scheduler, note=notes.__setitem__)
        assert "continued" in notes
        np.testing.assert_array_equal(result_of(tmp_path / "out.zarr"), aniso.upsample(IMAGE, 2))

    @pytest.mark.parametrize(
        ("options", "kind", "words"),
        [
            ({}, TypeError, "factor must be a whole number"),
            ({"factor": 9}, ValueError, r"factor must lie in \[1, 8\]"),
            ({"factor": (2, 2, 2)}, ValueError, "factor must be .* got 3 values"),
            ({"factor": 2, "isotropic": True}, ValueError, "factor must be left out"),
            ({"factor": 2, "noise": 1.0}, TypeError, "upsample has no parameter 'noise'"),
        ],
    )
    def test_refusals(self, tmp_path, options, kind, words):
        zarr.create_array(str(tmp_path / "in.zarr"), data=IMAGE, chunks=(8, 8))
        with pytest.raises(kind, match=words):
            aniso.filter_store(tmp_path / "in.zarr", tmp_path / "out.zarr", "upsample", **options)
        assert [path.name for path in tmp_path.iterdir()] == ["in.zarr"]


def holes(shape, share=0.5, seed=0):
    """A mask of random pixels, and a larger hole."""
    mask = np.random.default_rng(seed).random(shape) < share
    mask[tuple(slice(n // 4, n // 2) for n in shape)] = True
    return mask


def with_holes(image, mask, channel_axis):
    pixels = np.array(image)
    pixels[(mask if channel_axis is None else (mask, 1))] = np.nan
    return pixels


class TestInpaint:
    @pytest.mark.parametrize(
        ("image", "dtype", "kind", "channel_axis", "chunks", "block", "limit"),
        [
            (IMAGE, "float32", "nan", None, (16, 16), (32, 16), 6),
            (IMAGE, "float64", "store", None, (10, 7), (20, 35), 30),
            (IMAGE, "float32", "array", None, (64, 64), (64, 64), 10000),
            (COLOUR, "float64", "nan", -1, (20, 20, 1), (40, 20), 40),
            (COLOUR, "float32", "store", -1, (20, 20, 1), (40, 20), 40),
            (VOLUME, "float32", "store", None, (5, 6, 5), (5, 12, 10), 20),
            (VOLUME, "float64", "array", None, (5, 6, 5), (5, 12, 10), 20),
            (VOLUME, "float64", "nan", None, (5, 6, 5), (5, 12, 10), 40),
        ],
    )
    def test_same_bits(
        self, tmp_path, scheduler, cut, kind, dtype, image, channel_axis, chunks, block, limit
    ):
        pixels = image.astype(dtype)
        mask = holes(image.shape if channel_axis is None else image.shape[:-1])
        given: Any = {"nan": None, "array": mask, "store": tmp_path / "mask.zarr"}[kind]
        if kind == "nan":
            pixels = with_holes(pixels, mask, channel_axis)
        if kind == "store":
            zarr.create_array(str(given), data=mask, chunks=(11,) * mask.ndim)
        expected, plan = aniso.inpaint(pixels, mask, channel_axis=channel_axis, return_info=True)
        zarr.create_array(str(tmp_path / "in.zarr"), data=pixels, chunks=chunks)
        cut(block, limit)
        options: Any = {"mask": given, "channel_axis": channel_axis, "scheduler": scheduler}
        done = aniso.filter_store(tmp_path / "in.zarr", tmp_path / "out.zarr", "inpaint", **options)
        assert replace(done.plan, channel_axis=channel_axis) == plan
        assert (done.passes == 1) == (limit == 10000)
        np.testing.assert_array_equal(result_of(tmp_path / "out.zarr"), expected)
        assert not journal.folder_of(tmp_path / "out.zarr").exists()
        restored = aniso.Plan.from_json(plan.to_json())
        aniso.filter_store(tmp_path / "in.zarr", tmp_path / "again.zarr", restored, **options)
        np.testing.assert_array_equal(result_of(tmp_path / "again.zarr"), expected)

    def test_integers(self, tmp_path, scheduler):
        pixels, mask = as_dtype(IMAGE, "uint8"), holes(IMAGE.shape)
        zarr.create_array(str(tmp_path / "in.zarr"), data=pixels, chunks=(16, 16))
        aniso.filter_store(
            tmp_path / "in.zarr", tmp_path / "out.zarr", "inpaint", mask=mask, scheduler=scheduler
        )
        found = result_of(tmp_path / "out.zarr")
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, as_dtype(aniso.inpaint(pixels, mask), "uint8"))
        np.testing.assert_array_equal(found[~mask], pixels[~mask])

    def test_large_coarse_grids_are_computed_in_blocks(self, tmp_path, scheduler, monkeypatch):
        monkeypatch.setattr("aniso.verbs.inpaint_solver._SMALL", 50)
        monkeypatch.setitem(stored_holes._SIDES, 2, 6)
        mask = holes(IMAGE.shape, 0.95)
        expected = aniso.inpaint(IMAGE, mask)
        zarr.create_array(str(tmp_path / "in.zarr"), data=IMAGE, chunks=(16, 16))
        aniso.filter_store(
            tmp_path / "in.zarr", tmp_path / "out.zarr", "inpaint", mask=mask, scheduler=scheduler
        )
        np.testing.assert_array_equal(result_of(tmp_path / "out.zarr"), expected)

    @pytest.mark.parametrize("shared", [True, False])
    def test_frames(self, tmp_path, scheduler, shared):
        frames = np.stack([IMAGE, 2 * IMAGE[::-1], IMAGE + 40]).astype(np.float32)
        mask = holes(IMAGE.shape) if shared else np.stack([holes(IMAGE.shape, 0.3, k) for k in range(3)])
        source = ome_group(tmp_path / "in.zarr", frames, "tyx", (1.0, 1.0, 1.0), chunks=(2, 16, 16))
        expected, plan = aniso.inpaint(frames, mask, frame_axis=0, return_info=True)
        done = aniso.filter_store(source, tmp_path / "out.zarr", "inpaint", mask=mask, scheduler=scheduler)
        assert done.plan == plan
        np.testing.assert_array_equal(result_of(tmp_path / "out.zarr"), expected)
        for number, frame in enumerate(frames):
            own = mask if shared else mask[number]
            np.testing.assert_array_equal(expected[number], plan.apply(frame, own))

    def test_an_interrupted_run_is_continued(self, tmp_path, scheduler, cut, monkeypatch):
        zarr.create_array(str(tmp_path / "in.zarr"), data=IMAGE, chunks=(8, 8))
        mask = holes(IMAGE.shape)
        cut((16, 16), 20)
        call: Any = (tmp_path / "in.zarr", tmp_path / "out.zarr", "inpaint")
        options: Any = {"contrast": 2.0, "scheduler": scheduler}
        with pytest.raises(Stopped):
            aniso.filter_store(*call, mask=mask, **options, progress=stop)
        assert not (tmp_path / "out.zarr").exists()
        _, plan = aniso.inpaint(IMAGE, mask, contrast=2.0, return_info=True)
        with pytest.raises(ValueError, match="interrupted run with another mask"):
            aniso.filter_store(call[0], call[1], plan, mask=mask[::-1], scheduler=scheduler)
        # The coarser grids are there.
        monkeypatch.setattr("aniso.verbs.inpaint_solver.Solver.coarse_lazily", None)
        aniso.filter_store(*call, mask=mask, **options)
        np.testing.assert_array_equal(
            result_of(tmp_path / "out.zarr"), aniso.inpaint(IMAGE, mask, contrast=2.0)
        )

    def test_values_stay_in_the_range_of_the_known_ones(self, tmp_path, scheduler):
        x, y = np.meshgrid(np.arange(33.0), np.arange(40.0))
        image, mask = 255.0 * (0.9 * x - 0.44 * y > 5), holes((40, 33))
        expected = aniso.inpaint(image, mask)
        with unittest.mock.patch("aniso.verbs.inpaint._clip"):
            assert aniso.inpaint(image, mask).max() > expected.max() + 5
        zarr.create_array(str(tmp_path / "in.zarr"), data=image, chunks=(16, 16))
        aniso.filter_store(
            tmp_path / "in.zarr", tmp_path / "out.zarr", "inpaint", mask=mask, scheduler=scheduler
        )
        np.testing.assert_array_equal(result_of(tmp_path / "out.zarr"), expected)

    def test_nothing_unknown_is_a_copy(self, tmp_path, scheduler):
        zarr.create_array(str(tmp_path / "in.zarr"), data=IMAGE, chunks=(16, 16))
        notes: dict[str, str] = {}
        aniso.filter_store(
            tmp_path / "in.zarr", tmp_path / "out.zarr", "inpaint", scheduler=scheduler,
            note=notes.__setitem__,
        )  # fmt: skip
        assert "is a copy" in notes["copy"]
        np.testing.assert_array_equal(result_of(tmp_path / "out.zarr"), IMAGE)

    @pytest.mark.parametrize(
        ("mask", "verb", "kind", "words"),
        [
            (np.ones((40, 33), bool), "inpaint", ValueError, "all pixels are unknown"),
            (np.zeros((40, 32), bool), "inpaint", ValueError, r"mask has shape \(40, 32\), but the image"),
            (np.zeros((40, 33)), "inpaint", TypeError, "mask must be boolean"),
            ("missing.zarr", "inpaint", FileNotFoundError, r"missing\.zarr does not exist"),
            (np.zeros((40, 33), bool), "denoise", ValueError, "denoise takes no mask for stores"),
        ],
    )
    def test_refusals(self, tmp_path, mask, verb, kind, words):
        zarr.create_array(str(tmp_path / "in.zarr"), data=IMAGE, chunks=(8, 8))
        with pytest.raises(kind, match=words):
            aniso.filter_store(tmp_path / "in.zarr", tmp_path / "out.zarr", verb, mask=mask)
        assert [path.name for path in tmp_path.iterdir()] == ["in.zarr"]

    def test_known_pixels_that_are_infinite(self, tmp_path, scheduler):
        image, mask = IMAGE.copy(), holes(IMAGE.shape, 0.1)
        place = np.argwhere(~mask)[7]
        image[tuple(place)] = np.inf
        zarr.create_array(str(tmp_path / "in.zarr"), data=image, chunks=(16, 16))
        with pytest.raises(ValueError, match="holds NaN or infinite values"):
            aniso.filter_store(
                tmp_path / "in.zarr", tmp_path / "out.zarr", "inpaint", mask=mask, scheduler=scheduler
            )
