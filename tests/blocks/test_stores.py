"""Zarr in, Zarr out: what is kept, what is computed, and what is refused."""

import json
import os
from typing import Any

import numpy as np
import pytest
from zarr.codecs import BloscCodec, BytesCodec

import aniso
from aniso.blocks.stores import ends, journal, passes
from aniso.blocks.stores.zarr_array import chunks_at, open_array
from aniso.io.picture import as_dtype
from tests.blocks.stores import MODEL, job, ome_group, run, zarr
from tests.registry import SAMPLES, colours


class TestWhatIsKept:
    @pytest.mark.quick
    @pytest.mark.parametrize("version", ["0.4", "0.5"])
    def test_ome_metadata_and_spacing(self, client, tmp_path, version):
        image = SAMPLES["edges"]((40, 30)).astype(np.uint16)
        source = ome_group(tmp_path / "in.zarr", image, "yx", (0.5, 0.8), version, chunks=(16, 16))
        before = zarr.open_group(str(source), mode="r")
        run(client, source, tmp_path / "out.zarr", block=(16, 32), together=3)
        after = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")
        assert after.metadata.zarr_format == before.metadata.zarr_format
        listed = [dict(group.attrs) for group in (before, after)]
        old, new = (entry.get("ome", entry)["multiscales"][0] for entry in listed)
        assert new == {**old, "datasets": old["datasets"][:1]}
        assert list(after) == ["0"]
        assert after["0"].chunks == (16, 16)
        expected = as_dtype(aniso.diffuse(image, MODEL, 2.0, spacing=(0.5, 0.8)), np.uint16)
        np.testing.assert_array_equal(after["0"][:], expected)

    def test_shards_compression_names_and_attributes(self, client, tmp_path):
        image = SAMPLES["edges"]((40, 30)).astype(np.float32)
        options = {
            "shards": (20, 16),
            "chunks": (10, 8),
            "compressors": BloscCodec(cname="zstd"),
            "dimension_names": ("y", "x"),
            "attributes": {"made by": "a test"},
        }
        array = zarr.create_array(str(tmp_path / "in.zarr"), shape=image.shape, dtype=image.dtype, **options)
        array[:] = image
        run(client, tmp_path / "in.zarr", tmp_path / "out.zarr")
        after = zarr.open_array(str(tmp_path / "out.zarr"), mode="r")
        assert after.shards == (20, 16)
        assert after.compressors == array.compressors
        assert after.metadata.dimension_names == ("y", "x")
        assert dict(after.attrs) == {"made by": "a test"}
        np.testing.assert_allclose(after[:], aniso.diffuse(image, MODEL, 2.0), atol=1e-3)

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_odd_descriptions_are_the_same_files(self, client, tmp_path, zarr_format):
        """Fill value, order, byte order, place of a shard's index: nothing of it is our business."""
        image = SAMPLES["edges"]((40, 30))
        formats: dict[int, dict[str, Any]] = {
            2: {"order": "F", "filters": None, "fill_value": None, "dtype": ">f8"},
            3: {"fill_value": np.nan, "serializer": BytesCodec(endian="big"), "dtype": "float64"},
        }
        options = {
            "shape": image.shape,
            "chunks": (10, 8),
            "zarr_format": zarr_format,
            **formats[zarr_format],
        }
        zarr.create_array(str(tmp_path / "in.zarr"), **options)[:] = image
        run(client, tmp_path / "in.zarr", tmp_path / "out.zarr", block=(10, 16), together=2)
        name = {2: ".zarray", 3: "zarr.json"}[zarr_format]
        texts = [(tmp_path / store / name).read_text() for store in ("in.zarr", "out.zarr")]
        assert texts[0] == texts[1]
        found = zarr.open_array(str(tmp_path / "out.zarr"), mode="r")[:]
        np.testing.assert_allclose(found, aniso.diffuse(image, MODEL, 2.0), atol=1e-9)

    def test_an_array_deep_in_a_group(self, client, tmp_path):
        image = SAMPLES["edges"]((20, 16))
        source = ome_group(tmp_path / "in.zarr", image, "yx", (1, 1), chunks=(10, 10))
        os.makedirs(source / "levels")
        os.rename(source / "0", source / "levels" / "0")
        group = zarr.open_group(str(source), mode="r+")
        group.create_group("levels")
        ome = group.attrs["ome"]
        ome["multiscales"][0]["datasets"][0]["path"] = "levels/0"
        group.attrs["ome"] = ome
        run(client, source, tmp_path / "out.zarr", block=(10, 10), together=2)
        found = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")["levels/0"][:]
        np.testing.assert_allclose(found, aniso.diffuse(image, MODEL, 2.0), atol=1e-9)

    def test_time_and_channels(self, client, tmp_path):
        frames = np.stack([np.moveaxis(colours(SAMPLES[name], (20, 24)), -1, 0) for name in SAMPLES])
        source = ome_group(tmp_path / "in.zarr", frames, "tcyx", (1, 1, 1, 1), chunks=(1, 1, 10, 10))
        run(client, source, tmp_path / "out.zarr", block=(10, 20), together=2)
        after = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")["0"][:]
        for result, frame in zip(after, frames, strict=True):
            np.testing.assert_allclose(result, aniso.diffuse(frame, MODEL, 2.0, channel_axis=0), atol=1e-9)

    def test_time_points_that_share_chunks(self, client, tmp_path):
        """Workers that write into one chunk at once would undo one another's work."""
        frames = np.stack([SAMPLES["edges"]((20, 24)) + 10 * number for number in range(5)])
        source = ome_group(tmp_path / "in.zarr", frames, "tyx", (1, 1, 1), chunks=(3, 10, 10))
        run(client, source, tmp_path / "out.zarr", block=(10, 10), together=2)
        after = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")["0"]
        assert after.chunks == (3, 10, 10)
        plan = job(source, block=(10, 10), together=2)
        groups = {together for together, _ in plan.regions(plan.passes[0])}
        assert groups == {((0,), (1,), (2,)), ((3,), (4,))}
        for result, frame in zip(after[:], frames, strict=True):
            np.testing.assert_allclose(result, aniso.diffuse(frame, MODEL, 2.0), atol=1e-9)

    def test_without_cycles_all_is_kept(self, client, tmp_path):
        image = np.array([[2**31 - 5, -(2**31) + 3], [7, 16777217]], np.int32).repeat(8, 0).repeat(7, 1)
        source = ome_group(tmp_path / "in.zarr", image, "yx", (1, 1), chunks=(5, 5))
        passes.carry_out(job(source, time=0.0), tmp_path / "out.zarr", client, lambda *done: None)
        np.testing.assert_array_equal(zarr.open_group(str(tmp_path / "out.zarr"), mode="r")["0"][:], image)

    @pytest.mark.parametrize(
        ("units", "spacing"),
        [
            ({}, (200.0, 0.5, 0.25)),
            ({"z": "nanometer", "y": "micrometer", "x": "micrometer"}, (0.2, 0.5, 0.25)),
            ({"z": "nanometer", "y": "nanometer", "x": "millimeter"}, (2e-4, 5e-7, 0.25)),
        ],
    )
    def test_lengths_in_one_unit(self, tmp_path, units, spacing):
        image, scale = np.zeros((4, 5, 6)), (200.0, 0.5, 0.25)
        source = ome_group(tmp_path / "in.zarr", image, "zyx", scale, units=units, chunks=(4, 5, 6))
        found = open_array(source)
        assert found.spacing == pytest.approx(spacing)
        assert found.odd_units is None

    @pytest.mark.parametrize("other", ["furlong", None])
    def test_units_that_cannot_be_compared(self, tmp_path, other):
        units = {"y": "micrometer"} | ({} if other is None else {"x": other})
        image, scale = np.zeros((5, 6)), (0.5, 2.0)
        source = ome_group(tmp_path / "in.zarr", image, "yx", scale, units=units, chunks=(5, 6))
        found = open_array(source)
        assert found.spacing == (1.0, 1.0)
        assert found.odd_units is not None
        assert set(found.odd_units.split(" and ")) == {"micrometer", other or "none"}

    def test_the_input_is_not_touched(self, client, tmp_path):
        source = ome_group(tmp_path / "in.zarr", np.ones((20, 20)), "yx", (1, 1), chunks=(10, 10))
        before = journal.fingerprint(open_array(source))
        run(client, source, tmp_path / "out.zarr")
        assert journal.fingerprint(open_array(source)) == before
        assert sorted(os.listdir(tmp_path)) == ["in.zarr", "out.zarr"]


class TestBetweenPasses:
    """Stores between passes: neighbours of a block read parts of it only."""

    @pytest.mark.parametrize(
        ("block", "chunk", "side"), [(128, 64, 64), (256, 16, 64), (60, 10, 60), (40, 40, 40), (96, 1, 48)]
    )
    def test_chunks_are_parts_of_blocks(self, block, chunk, side):
        assert passes._part_of_block(block, chunk) == side
        assert block % side == 0
        assert side % chunk == 0


class TestBadInput:
    def test_a_group_without_metadata(self, tmp_path):
        zarr.open_group(str(tmp_path / "in.zarr"), mode="w").create_array("raw", shape=(4, 4), dtype="u1")
        with pytest.raises(ValueError, match="raw"):
            open_array(tmp_path / "in.zarr")

    def test_no_zarr_at_all(self, tmp_path):
        (tmp_path / "in.zarr").mkdir()
        (tmp_path / "in.zarr" / "zarr.json").write_text(json.dumps({"zarr_format": 9}))
        with pytest.raises(ValueError, match="cannot be read as a Zarr array"):
            open_array(tmp_path / "in.zarr")

    @pytest.mark.parametrize("place", ["filters", "compressor"])
    def test_pickles_are_not_loaded(self, tmp_path, place):
        path = tmp_path / "in.zarr"
        zarr.create_array(str(path), shape=(4, 4), chunks=(4, 4), dtype="f4", zarr_format=2)[:] = 1
        codec = {"id": "pickle"}
        described = json.loads((path / ".zarray").read_text("utf-8"))
        described[place] = [codec] if place == "filters" else codec
        (path / ".zarray").write_text(json.dumps(described), "utf-8")
        (path / "0.0").write_bytes(f"cpathlib\nPath\n(V{tmp_path / 'made'}\ntR.".encode())
        with pytest.raises(ValueError, match="cannot be read"):
            open_array(path)

    def test_metadata_do_not_lead_out_of_the_store(self, tmp_path):
        elsewhere = tmp_path / "elsewhere.zarr"
        zarr.create_array(str(elsewhere), shape=(5, 5), dtype="f4")
        group = zarr.create_group(str(tmp_path / "in.zarr"))
        group.create_array(str(elsewhere).strip("/"), shape=(4, 4), dtype="f4")
        for key in (str(elsewhere), "../elsewhere.zarr"):
            group.attrs["ome"] = {"multiscales": [{"axes": ["y", "x"], "datasets": [{"path": key}]}]}
            if key.startswith(".."):
                with pytest.raises(ValueError, match="invalid OME-Zarr metadata"):
                    open_array(tmp_path / "in.zarr")
            else:
                found = open_array(tmp_path / "in.zarr")
                assert found.shape == (4, 4)
                assert str(found.location) == f"{tmp_path / 'in.zarr'}{elsewhere}"

    def test_no_numbers(self, tmp_path):
        zarr.create_array(str(tmp_path / "in.zarr"), shape=(4, 4), dtype="bool")
        with pytest.raises(TypeError, match="bool"):
            open_array(tmp_path / "in.zarr")

    def test_too_many_axes(self, tmp_path):
        zarr.create_array(str(tmp_path / "in.zarr"), shape=(4, 4, 4, 4), dtype="u1")
        with pytest.raises(ValueError, match="Give their axes"):
            open_array(tmp_path / "in.zarr")
        assert open_array(tmp_path / "in.zarr", channel_axis=0).spatial_axes == (1, 2, 3)

    @pytest.mark.parametrize("dtype", ["U5", "complex64"])
    def test_no_real_numbers(self, tmp_path, dtype):
        zarr.create_array(str(tmp_path / "in.zarr"), shape=(4, 4), dtype=dtype, zarr_format=2)
        with pytest.raises(TypeError, match="real numeric dtype"):
            open_array(tmp_path / "in.zarr")

    def test_metadata_of_other_axes(self, tmp_path):
        source = ome_group(tmp_path / "in.zarr", np.zeros((4, 4)), "zyx", (1, 1, 1), chunks=(4, 4))
        with pytest.raises(ValueError, match="metadata for 3 axes"):
            open_array(source)

    def test_a_nan_in_a_frame(self, client, tmp_path):
        frames = np.zeros((3, 20, 30), np.float32)
        frames[2, 11, 25] = np.inf
        source = ome_group(tmp_path / "in.zarr", frames, "tyx", (1, 1, 1), chunks=(1, 10, 10))
        with pytest.raises(ValueError, match=r"block \(1, 2\).*index \(11, 25\).*frame 2"):
            run(client, source, tmp_path / "out.zarr", block=(20, 20), together=1)


class TestKeysOfChunks:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"chunks": (1, 10, 10)}, {"c/1/0/1", "c/1/0/2", "c/1/1/1", "c/1/1/2"}),
            ({"chunks": (2, 5, 5), "shards": (2, 20, 20)}, {"c/0/0/0", "c/0/0/1"}),
            ({"chunks": (1, 10, 10), "zarr_format": 2}, {"1.0.1", "1.0.2", "1.1.1", "1.1.2"}),
        ],
    )
    def test_are_those_that_are_written(self, tmp_path, options, expected):
        array = zarr.create_array(str(tmp_path / "a.zarr"), shape=(3, 20, 35), dtype="uint8", **options)
        before = {path for path in (tmp_path / "a.zarr").rglob("*") if path.is_file()}
        index = (1, slice(5, 18), slice(12, 24))
        array[index] = 1
        after = {path for path in (tmp_path / "a.zarr").rglob("*") if path.is_file()} - before
        assert {str(path.relative_to(tmp_path / "a.zarr")) for path in after} == expected
        assert {key for key, _ in chunks_at(array, index)} == expected


class TestDamagedChunks:
    @pytest.mark.parametrize(
        ("options", "key"),
        [
            ({"chunks": (10, 10)}, "c/1/0"),
            ({"chunks": (10, 10), "zarr_format": 2}, "1.0"),
            ({"chunks": (5, 5), "shards": (10, 10)}, "c/1/0"),
        ],
    )
    @pytest.mark.parametrize("block", [(10, 10), (20, 20)])
    def test_are_named_by_their_keys(self, client, tmp_path, options, key, block):
        source = tmp_path / "in.zarr"
        zarr.create_array(str(source), data=SAMPLES["noise"]((20, 20)), **options)
        (source / key).write_bytes(b"no chunk")
        with pytest.raises(OSError, match=rf"^chunk {key} of .*in\.zarr cannot be read: .*copy it again"):
            run(client, source, tmp_path / "out.zarr", block=block, together=1)
        assert not (tmp_path / "out.zarr").exists()

    def test_all_are_named_if_they_can_be_read_by_themselves(self, tmp_path):
        class Tired:
            """An array that fails once."""

            def __init__(self, array):
                self.array, self.failures = array, 1

            def __getattr__(self, name):
                return getattr(self.array, name)

            def __getitem__(self, index):
                self.failures -= 1
                if self.failures == 0:
                    raise OSError("the network is down")
                return self.array[index]

        source = tmp_path / "in.zarr"
        zarr.create_array(str(source), data=SAMPLES["noise"]((20, 20)), chunks=(10, 10))
        array = Tired(zarr.open_array(str(source), mode="r"))
        with pytest.raises(OSError, match=r"a chunk among c/0/0, c/0/1 of .*the network is down"):
            ends.read_channels(array, open_array(source), (), (slice(0, 5), slice(0, 15)))
