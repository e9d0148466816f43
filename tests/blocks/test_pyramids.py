"""Lower resolutions, plates and wells, channels by themselves, and shards: on a disk and in object stores."""

import contextlib
import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

import aniso
from aniso.blocks.stores import journal
from aniso.blocks.stores.urls import place_of
from aniso.io.picture import as_dtype
from tests.blocks import s3
from tests.blocks.stores import ome_group, zarr

pytestmark = pytest.mark.slow

MODEL = aniso.EdgeEnhancing(12.0, sigma=0.5)
DIFFUSE: dict[str, Any] = {"model": MODEL, "time": 1.0}
IMAGE = aniso.samples.shapes(72, noise=20.0).image[:, :61].astype(np.float32)


@pytest.fixture(scope="module")
def given():
    with s3.s3_server() as address:
        yield s3.options(address)


@pytest.fixture(params=["local", "remote"])
def place(request, tmp_path, given):
    """A folder, on a disk or in an object store."""
    if request.param == "local":
        return place_of(tmp_path)
    return place_of(f"s3://{s3.BUCKET}/{request.node.name}", given)


def halved(image, shape):
    """Means of 2 × 2 pixels, of fewer at the border."""
    rows = [image[2 * i : 2 * i + 2].astype(float) for i in range(shape[0])]
    return np.array([[row[:, 2 * j : 2 * j + 2].mean() for j in range(shape[1])] for row in rows])


def pyramid_group(path, image, version, shapes, **options):
    """An OME-Zarr group whose lower levels have these shapes, with labels."""
    ome_group(path, image, "yx", (0.5, 0.5), version, **options)
    group = zarr.open_group(str(path), mode="r+")
    del group["1"]
    attributes = dict(group.attrs)
    holder = attributes.get("ome", attributes)
    datasets = holder["multiscales"][0]["datasets"][:1]
    for number, shape in enumerate(shapes, 1):
        group.create_array(str(number), shape=shape, dtype=image.dtype, chunks=(10, 10))
        scale = {"type": "scale", "scale": [0.5 * 2**number] * 2}
        datasets.append({"path": str(number), "coordinateTransformations": [scale]})
    holder["multiscales"][0]["datasets"] = datasets
    group.attrs.update(attributes)
    group.create_group("labels").create_array("cells", shape=image.shape, dtype="uint8")[:] = 1
    return path


class TestLevels:
    @pytest.mark.parametrize(
        ("version", "shapes"), [("0.4", [(36, 31), (18, 16)]), ("0.5", [(36, 30), (18, 15)])]
    )
    def test_are_those_of_the_source(self, scheduler, place, tmp_path, cut, version, shapes):
        image = as_dtype(IMAGE, "uint16")
        source = pyramid_group(tmp_path / "source.zarr", image, version, shapes, chunks=(16, 16))
        before = sorted(place_of(source).files())
        cut((32, 32), 100)
        run: dict[str, Any] = {"scheduler": scheduler, "pyramid": True, "spacing": 1, **DIFFUSE}
        aniso.filter_store(source, place / "out.zarr", "diffuse", **run)
        found = zarr.open_group((place / "out.zarr").node, mode="r")
        old = zarr.open_group(str(source), mode="r")
        listed = [dict(group.attrs) for group in (old, found)]
        assert listed[0] == listed[1]
        finest = as_dtype(aniso.diffuse(image, **DIFFUSE), "uint16")
        np.testing.assert_array_equal(found["0"][:], finest)
        for number, shape in enumerate(shapes, 1):
            level = found[str(number)]
            assert (level.shape, level.chunks, level.dtype) == (shape, (10, 10), image.dtype)
            finest = as_dtype(halved(finest, shape), "uint16")
            np.testing.assert_array_equal(level[:], finest)
        assert sorted(place_of(source).files()) == before  # labels included
        assert "labels" not in (place / "out.zarr").children()
        assert not journal.folder_of(place / "out.zarr").exists()

    def test_are_halves_if_the_source_has_none(self, scheduler, tmp_path):
        image = np.zeros((600, 500), np.float32)
        image[100:300, 100:] = 50
        source = pyramid_group(tmp_path / "in.zarr", image, "0.5", [], chunks=(300, 300))
        run: dict[str, Any] = {"scheduler": scheduler, "pyramid": True, "factor": (1, 2)}
        aniso.filter_store(source, tmp_path / "out.zarr", "upsample", **run)
        group = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")
        datasets = group.attrs["ome"]["multiscales"][0]["datasets"]
        shapes = [group[one["path"]].shape for one in datasets]
        assert shapes == [(600, 1000), (300, 500), (150, 250)]
        scales = [one["coordinateTransformations"][0]["scale"] for one in datasets]
        moved = [one["coordinateTransformations"][1]["translation"] for one in datasets]
        assert scales == [[0.5, 0.25], [1.0, 0.5], [2.0, 1.0]]
        # The first pixels of all levels begin at the same place.
        assert [
            [x - h / 2 for x, h in zip(*one, strict=True)] for one in zip(moved, scales, strict=True)
        ] == [[-0.25, -0.25]] * 3
        np.testing.assert_allclose(group["1"][:], halved(group["0"][:], (300, 500)), rtol=1e-6)

    def test_an_interrupted_run_goes_on(self, scheduler, place, tmp_path, cut, monkeypatch):
        source = pyramid_group(tmp_path / "source.zarr", IMAGE, "0.5", [(36, 31)], chunks=(16, 16))
        cut((32, 32), 100)
        open_list = journal.open_list

        @contextlib.contextmanager
        def stop(folder, number):
            with open_list(folder, number) as record:
                names = []

                def watched(name):
                    names.append(name)
                    if number == 1 and len(names) == 5:
                        raise RuntimeError("stopped")
                    record(name)

                yield watched

        run: dict[str, Any] = {"scheduler": scheduler, "pyramid": True, "spacing": 1, **DIFFUSE}
        with monkeypatch.context() as patched:
            patched.setattr(journal, "open_list", stop)
            with pytest.raises(RuntimeError, match="stopped"):
                aniso.filter_store(source, place / "out.zarr", "diffuse", **run)
        assert not [name for name in (place / "out.zarr").children() if name == "zarr.json"]
        with pytest.raises(ValueError, match="another pyramid"):
            aniso.filter_store(source, place / "out.zarr", "diffuse", **{**run, "pyramid": False})
        about, events = journal.describe_run(place / "out.zarr"), list[Any]()
        aniso.filter_store(source, place / "out.zarr", "diffuse", watch=events.append, **run)
        # Blocks, and chunks of the lower resolution.
        assert about["blocks_total"] == 6 + 16
        assert 6 + 4 <= about["blocks"] <= events[0].before < 22
        assert [now.blocks for now in events] == list(range(events[0].before, 23))
        found = zarr.open_group((place / "out.zarr").node, mode="r")
        finest = aniso.diffuse(IMAGE, **DIFFUSE)
        np.testing.assert_array_equal(found["0"][:], finest)
        np.testing.assert_allclose(found["1"][:], halved(finest, (36, 31)), rtol=1e-6)

    def test_need_metadata(self, tmp_path, scheduler):
        zarr.create_array(str(tmp_path / "in.zarr"), data=IMAGE, chunks=(16, 16))
        with pytest.raises(ValueError, match="no OME-Zarr metadata, and so no lower resolutions"):
            aniso.filter_store(
                tmp_path / "in.zarr",
                tmp_path / "out.zarr",
                "diffuse",
                scheduler=scheduler,
                pyramid=True,
                **DIFFUSE,
            )


def plate_at(path, version):
    """A plate with two wells and three fields."""
    new = version == "0.5"
    fields = {"A/1": ["0", "1"], "B/2": ["0"]}
    plate = {"wells": [{"path": well} for well in fields], "rows": [], "columns": []}

    def describe(where, about):
        attributes = {"ome": {"version": "0.5", **about}} if new else about
        zarr.open_group(str(where), mode="a", zarr_format=3 if new else 2).attrs.update(attributes)

    describe(path, {"plate": plate})
    for well, names in fields.items():
        zarr.open_group(str(path / well.split("/")[0]), mode="a", zarr_format=3 if new else 2)
        describe(path / well, {"well": {"images": [{"path": name} for name in names]}})
        for number, name in enumerate(names):
            image = np.roll(IMAGE, 7 * number + len(well))
            ome_group(path / well / name, image, "yx", (1, 1), version, chunks=(32, 32))
    return path


class TestFields:
    def test_of_a_plate(self, scheduler, place, tmp_path):
        version = "0.4" if place.moves else "0.5"
        source = plate_at(tmp_path / "plate.zarr", version)
        names = ["A/1/0", "A/1/1", "B/2/0"]
        images = np.stack([zarr.open_array(str(source / name / "0"), mode="r")[:] for name in names])
        run: dict[str, Any] = {"scheduler": scheduler, "fields": True}
        done = aniso.filter_store(source, place / "out.zarr", "denoise", method="diffusion", **run)
        assert done.fields == tuple(names)
        expected, plan = aniso.denoise(images, frame_axis=0, method="diffusion", return_info=True)
        assert done.plan == plan
        target = zarr.open_group((place / "out.zarr").node, mode="r")
        for name, image in zip(names, expected, strict=True):
            np.testing.assert_array_equal(target[name]["0"][:], image)
        for group in ("", "A/1", "B/2"):
            old = zarr.open_group(str(source / group), mode="r")
            new = zarr.open_group(
                (place / "out.zarr" / group if group else place / "out.zarr").node, mode="r"
            )
            assert dict(new.attrs) == dict(old.attrs)
        with pytest.raises(FileExistsError, match=r"out\.zarr already exists"):
            aniso.filter_store(source, place / "out.zarr", "denoise", **run)

    def test_complete_fields_are_left(self, scheduler, tmp_path):
        source = plate_at(tmp_path / "plate.zarr", "0.5")
        run: dict[str, Any] = {"scheduler": scheduler, "fields": True, **DIFFUSE}

        def stop(kind, text):
            if kind == "field B/2/0":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            aniso.filter_store(source, tmp_path / "out.zarr", "diffuse", note=stop, **run)
        assert not (tmp_path / "out.zarr" / "zarr.json").exists()
        goal = place_of(tmp_path / "out.zarr")
        assert journal.describe_run(goal) == {
            "state": "between fields", "field": "B/2/0", "fields": 2, "fields_total": 3,
        }  # fmt: skip
        chunk = tmp_path / "out.zarr" / "A" / "1" / "0" / "0" / "c" / "0" / "0"
        before = chunk.stat().st_mtime_ns
        aniso.filter_store(source, tmp_path / "out.zarr", "diffuse", **run)
        assert (tmp_path / "out.zarr" / "zarr.json").exists()
        assert chunk.stat().st_mtime_ns == before
        assert journal.describe_run(goal) == {"state": "complete"}
        assert not journal.folder_of(goal).exists()

    def test_status_of_the_field_under_way(self, scheduler, given, request, tmp_path):
        source = plate_at(tmp_path / "plate.zarr", "0.5")
        url, seen = f"s3://{s3.BUCKET}/{request.node.name}.zarr", []

        def look(now):
            seen.append(journal.describe_run(place_of(url, given)))

        run: dict[str, Any] = {"scheduler": scheduler, "storage_options": given, "fields": True, **DIFFUSE}
        aniso.filter_store(source, url, "diffuse", watch=look, **run)
        known = {(one["state"], one["field"], one["fields"], one["fields_total"]) for one in seen}
        assert known == {("running", name, k, 3) for k, name in enumerate(["A/1/0", "A/1/1", "B/2/0"])}
        assert journal.describe_run(place_of(url, given)) == {"state": "complete"}

    def test_what_is_no_plate(self, scheduler, tmp_path):
        source = ome_group(tmp_path / "in.zarr", IMAGE, "yx", (1, 1), chunks=(16, 16))
        with pytest.raises(ValueError, match="is not an OME-Zarr plate or well"):
            aniso.filter_store(source, tmp_path / "out.zarr", "denoise", scheduler=scheduler, fields=True)
        group = zarr.open_group(str(tmp_path / "bad.zarr"), mode="w")
        group.attrs["ome"] = {"plate": {"wells": [{"path": "../in.zarr"}]}}
        with pytest.raises(ValueError, match="does not name a group within"):
            aniso.filter_store(
                tmp_path / "bad.zarr", tmp_path / "o.zarr", "denoise", scheduler=scheduler, fields=True
            )


def test_channels_by_themselves(scheduler, tmp_path, cut):
    """They are distributed like time points, and each has its own tensors."""
    channels = np.stack([IMAGE, IMAGE[::-1] * 2, IMAGE[:, ::-1] + 3])
    source = ome_group(tmp_path / "in.zarr", channels, "cyx", (1, 1, 1), chunks=(1, 32, 32))
    cut((32, 32), 8)
    run: dict[str, Any] = {"scheduler": scheduler, "channel_axis": "none", **DIFFUSE}
    aniso.filter_store(source, tmp_path / "out.zarr", "diffuse", **run)
    found = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")["0"][:]
    np.testing.assert_array_equal(found, np.stack([aniso.diffuse(one, **DIFFUSE) for one in channels]))
    together = aniso.diffuse(channels, channel_axis=0, **DIFFUSE)
    assert np.abs(found - together).max() > 1e-3


def test_whole_shards_are_written_once(scheduler, given, request, cut):
    """Neighbouring blocks have no shard in common. Zarr asks for each before it writes it, in vain."""
    url = f"s3://{s3.BUCKET}/{request.node.name}/in.zarr"
    s3.put_array(url, given, IMAGE, shards=(32, 32), chunks=(8, 8))
    cut((64, 32), 100)
    proxy, written = s3.FaultyProxy(given["endpoint"]), Counter[str]()
    read: Counter[str] = Counter()

    def see(method, path):
        if "/out.zarr/c/" in path:
            (written if method == "PUT" else read)[path] += 1

    proxy.seen = see
    with proxy.started() as address:
        options = {**given, "endpoint": address}
        target = url.replace("in.zarr", "out.zarr")
        aniso.filter_store(url, target, "diffuse", scheduler=scheduler, storage_options=options, **DIFFUSE)
    assert len(written) == 3 * 2
    assert set(written.values()) == {1}
    assert set(read.values()) <= {1}
    about = json.loads((place_of(target, given) / "zarr.json").read() or b"{}")
    assert about["codecs"][0]["name"] == "sharding_indexed"
    np.testing.assert_array_equal(s3.get_array(target, given), aniso.diffuse(IMAGE, **DIFFUSE))
