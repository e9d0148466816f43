"""Zarr in, Zarr out: what is kept, what is computed, and what happens when a run is interrupted."""

import errno
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import dask
import numpy as np
import pytest
import zarr as zarr_package
from dask.distributed import Client, KilledWorker, LocalCluster, Security
from zarr.codecs import BloscCodec, BytesCodec

import aniso
from aniso.blocks.groups import StageGroup
from aniso.blocks.stages import Pipeline
from aniso.blocks.stores import budget, cluster, journal, passes
from aniso.blocks.stores.zarr_array import open_array
from aniso.evolve import DiffusePlan
from aniso.io.picture import stored
from aniso.settings import Settings
from tests.registry import SAMPLES, colours

MODEL = aniso.EdgeEnhancing(12.0, sigma=0.5)

# A group may hold groups and arrays, which types cannot tell apart.
zarr: Any = zarr_package


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            processes=False,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as local,
        Client(local) as connected,
    ):
        yield connected


def ome_group(path, image, axes, scale, version="0.5", units=None, **options):
    """An OME-Zarr group with two levels of resolution; `units` go from names of axes to theirs."""
    kinds = {"t": "time", "c": "channel"}
    units = {name: {"unit": unit} for name, unit in (units or {}).items()}
    multiscale = {
        "version": version,
        "name": "sample",
        "axes": [{"name": name, "type": kinds.get(name, "space"), **units.get(name, {})} for name in axes],
        "datasets": [
            {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": list(scale)}]},
            {"path": "1", "coordinateTransformations": [{"type": "scale", "scale": [2 * h for h in scale]}]},
        ],
    }
    new = version == "0.5"
    attributes = (
        {"ome": {"version": "0.5", "multiscales": [multiscale]}} if new else {"multiscales": [multiscale]}
    )
    group = zarr.open_group(str(path), mode="w", zarr_format=3 if new else 2, attributes=attributes)
    array = group.create_array("0", shape=image.shape, dtype=image.dtype, **options)
    array[:] = image
    group.create_array("1", shape=image.shape, dtype=image.dtype, **options)
    return path


def job(path, time=2.0, memory=None, block=None, together=None, model=MODEL, channel_axis=None):
    """A run in given blocks, with so many steps in a pass; or in those that suit the memory."""
    source = open_array(path, channel_axis)
    plan = DiffusePlan(
        spacings=source.spacing,
        channel_axis=channel_axis,
        channels=source.channels,
        stencil=aniso.DeltaStencil(),
        model=model,
        time=time,
        scheme=aniso.Explicit(),
    )
    pipeline = plan.pipeline(source.spatial_shape, plan.settings(threads=1))
    facts = json.loads(plan.to_json())
    if block is None:
        return passes.StoreRun.plan(source, pipeline, facts, memory or 1e9, 2)
    widest = max((max(stage.reach) for stage in pipeline.parts()), default=0)
    return passes.StoreRun(source, pipeline, facts, block, together * widest)


def run(client, path, target, **options):
    passes.carry_out(job(path, **options), target, client, lambda done, total: None)


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
        expected = stored(aniso.diffuse(image, MODEL, 2.0, spacing=(0.5, 0.8)), np.uint16)
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


class TestInterruptions:
    def half_done(self, client, source, target, **options):
        """A run that stops after some blocks."""

        class Stopped(Exception):
            pass

        def tell(done, total):
            if done > total / 2:
                raise Stopped

        with pytest.raises(Stopped):
            passes.carry_out(job(source, **options), target, client, tell)
        assert not target.exists()

    def test_a_run_goes_on_where_it_stopped(self, client, tmp_path):
        image = SAMPLES["edges"]((40, 30))
        source = ome_group(tmp_path / "in.zarr", image, "yx", (1, 1), chunks=(10, 10))
        options = {"block": (10, 10), "together": 1}
        run(client, source, tmp_path / "whole.zarr", **options)
        self.half_done(client, source, tmp_path / "out.zarr", **options)
        told = []
        passes.carry_out(
            job(source, **options),
            tmp_path / "out.zarr",
            client,
            lambda done, total: told.append(done / total),
        )
        whole, parts = (
            zarr.open_group(str(tmp_path / name), mode="r")["0"][:] for name in ("whole.zarr", "out.zarr")
        )
        np.testing.assert_array_equal(parts, whole)
        assert told[-1] == 1.0
        assert max(np.diff(told)) > 0.1  # what was complete is not done again

    def test_with_other_workers_it_keeps_its_blocks(self, client, tmp_path):
        source = ome_group(tmp_path / "in.zarr", SAMPLES["edges"]((40, 30)), "yx", (1, 1), chunks=(10, 10))
        run(client, source, tmp_path / "whole.zarr", block=(10, 10), together=1)
        self.half_done(client, source, tmp_path / "out.zarr", block=(10, 10), together=1)
        other = job(source, block=(20, 30), together=2)
        done = passes.carry_out(other, tmp_path / "out.zarr", client, lambda *_: None)
        assert done.block == (10, 10)
        assert {len(group.stages) for group in done.passes} == {1}
        assert {len(group.stages) for group in other.passes[:-1]} == {2}
        whole, parts = (
            zarr.open_group(str(tmp_path / name), mode="r")["0"][:] for name in ("whole.zarr", "out.zarr")
        )
        np.testing.assert_array_equal(parts, whole)

    def test_another_parameter_does_not_go_on(self, client, tmp_path):
        source = ome_group(tmp_path / "in.zarr", SAMPLES["edges"]((40, 30)), "yx", (1, 1), chunks=(10, 10))
        self.half_done(client, source, tmp_path / "out.zarr")
        with pytest.raises(ValueError, match="another model"):
            run(client, source, tmp_path / "out.zarr", model=aniso.EdgeEnhancing(13.0, sigma=0.5))

    def test_other_channels_do_not_go_on(self, client, tmp_path):
        zarr.create_array(str(tmp_path / "in.zarr"), data=SAMPLES["noise"]((20, 20, 20)), chunks=(10, 10, 10))
        options = {"block": (10, 10), "together": 1}
        self.half_done(client, tmp_path / "in.zarr", tmp_path / "out.zarr", channel_axis=0, **options)
        with pytest.raises(ValueError, match="another channel axis"):
            run(client, tmp_path / "in.zarr", tmp_path / "out.zarr", channel_axis=2, **options)

    def test_two_runs_at_once(self, client, tmp_path):
        source = ome_group(tmp_path / "in.zarr", SAMPLES["edges"]((40, 30)), "yx", (1, 1), chunks=(10, 10))
        target = tmp_path / "out.zarr"
        refused: list[float] = []

        def tell(done, total):
            if 0 < done < total and not refused:
                with pytest.raises(FileExistsError, match="another run is writing"):
                    run(client, source, target)
                refused.append(done)

        passes.carry_out(job(source, block=(10, 10), together=1), target, client, tell)
        assert refused
        whole = aniso.diffuse(SAMPLES["edges"]((40, 30)), MODEL, 2.0)
        np.testing.assert_allclose(zarr.open_group(str(target), mode="r")["0"][:], whole, atol=1e-9)

    def test_another_input_does_not_go_on(self, client, tmp_path):
        source = ome_group(tmp_path / "in.zarr", SAMPLES["edges"]((40, 30)), "yx", (1, 1), chunks=(10, 10))
        self.half_done(client, source, tmp_path / "out.zarr")
        zarr.open_group(str(source), mode="r+")["0"][3, 3] = 7.0
        with pytest.raises(ValueError, match="another input"):
            run(client, source, tmp_path / "out.zarr")

    def test_a_line_that_was_cut_off_does_not_count(self, tmp_path):
        (tmp_path / "pass-0000.done").write_text("0.0\n0.2\n0.1")  # of 0.12
        assert journal.complete_blocks(tmp_path, 0) == {"0.0", "0.2"}
        with journal.open_list(tmp_path, 0) as file:
            journal.record(file, "0.3")
        assert journal.complete_blocks(tmp_path, 0) == {"0.0", "0.2", "0.3"}

    def test_what_a_finished_run_left_is_no_interrupted_one(self, client, tmp_path, monkeypatch):
        source = ome_group(tmp_path / "in.zarr", SAMPLES["edges"]((20, 20)), "yx", (1, 1), chunks=(10, 10))
        target = tmp_path / "out.zarr"
        with monkeypatch.context() as patched:
            patched.setattr(shutil, "rmtree", lambda *_, **__: None)
            run(client, source, target, block=(10, 10), together=100)
        first = zarr.open_group(str(target), mode="r")["0"][:]
        os.rename(target, tmp_path / "elsewhere.zarr")
        assert journal.folder_of(target).exists()
        run(client, source, target, block=(10, 10), together=100)
        np.testing.assert_array_equal(zarr.open_group(str(target), mode="r")["0"][:], first)

    def test_remnants_of_chunks_do_not_reach_the_target(self, client, tmp_path):
        source = ome_group(tmp_path / "in.zarr", SAMPLES["edges"]((40, 30)), "yx", (1, 1), chunks=(10, 10))
        target = tmp_path / "out.zarr"
        self.half_done(client, source, target, block=(10, 10), together=100)
        (journal.store_of(journal.folder_of(target), 0) / "0" / "c" / "0" / "0.abc.partial").touch()
        run(client, source, target, block=(10, 10), together=100)
        assert not list(target.rglob("*.partial"))

    def test_a_nan_is_named_and_the_target_not_made(self, client, tmp_path):
        image = SAMPLES["edges"]((40, 30))
        image[33, 12] = np.nan
        source = ome_group(tmp_path / "in.zarr", image, "yx", (1, 1), chunks=(10, 10))
        with pytest.raises(ValueError, match=r"block \(3, 1\).*index \(33, 12\)"):
            run(client, source, tmp_path / "out.zarr", block=(10, 10), together=1)
        assert not (tmp_path / "out.zarr").exists()


_SCRIPT = """
    import sys
    from pathlib import Path
    from aniso.blocks.stores import cluster, passes
    from tests.blocks.test_stores import job

    if __name__ == "__main__":
        source, target = map(Path, sys.argv[1:])
        with cluster.connect(None, 2, "1GB") as client:
            pids = client.run(__import__("os").getpid)
            print(*pids.values(), flush=True)
            passes.carry_out(job(source, 6.0, block=(16, 16), together=1), target, client, lambda *done: None)
"""


class TestKilled:
    """Real processes, really killed."""

    def started(self, tmp_path, source, target):
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(_SCRIPT))
        folder = str(Path(__file__).parents[2])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, *sys.path])}
        return subprocess.Popen(
            [sys.executable, str(script), str(source), str(target)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for_blocks(self, target, count):
        folder, end = journal.folder_of(target), time.monotonic() + 120
        while sum(len(journal.complete_blocks(folder, number)) for number in range(100)) < count:
            assert time.monotonic() < end
            time.sleep(0.02)

    def test_a_worker_and_then_the_whole_run(self, tmp_path):
        image = SAMPLES["edges"]((80, 64))
        source = ome_group(tmp_path / "in.zarr", image, "yx", (1, 1), chunks=(16, 16))
        target = tmp_path / "out.zarr"
        with self.started(tmp_path, source, target) as process:
            assert process.stdout is not None
            workers = [int(pid) for pid in process.stdout.readline().split()]
            self.wait_for_blocks(target, 10)
            os.kill(workers[0], signal.SIGKILL)
            self.wait_for_blocks(target, 40)
            os.killpg(process.pid, signal.SIGKILL)
        assert not target.exists()
        with self.started(tmp_path, source, target) as again:
            again.communicate(timeout=240)
        assert again.returncode == 0
        result = zarr.open_group(str(target), mode="r")["0"][:]
        with cluster.connect(None, 1, "1GB") as client:
            run(client, source, tmp_path / "whole.zarr", time=6.0, block=(16, 16), together=1)
        np.testing.assert_array_equal(result, zarr.open_group(str(tmp_path / "whole.zarr"), mode="r")["0"][:])
        np.testing.assert_allclose(result, aniso.diffuse(image, MODEL, 6.0), atol=1e-9)


def _limit_of_files(bytes_):
    """On a worker: files may have this length, which cuts writes short as a full disk does."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most if bytes_ is None else bytes_, most))


class TestDisk:
    """A disk that is full, or that refuses: the target is not made, and the run can go on."""

    options: ClassVar[dict[str, Any]] = {"block": (16, 16), "together": 2}

    @pytest.fixture
    def source(self, tmp_path):
        return ome_group(tmp_path / "in.zarr", SAMPLES["noise"]((48, 40)), "yx", (1, 1), chunks=(16, 16))

    def test_it_fills_up_in_the_middle_of_a_run(self, tmp_path, source):
        target = tmp_path / "out.zarr"
        with cluster.connect(None, 1, "1GB") as client:
            run(client, source, tmp_path / "whole.zarr", **self.options)

            def tell(done, total):
                if done > total / 2:
                    client.run(_limit_of_files, 1000)

            plan = job(source, **self.options)
            with pytest.raises(OSError, match=r"cannot be written: file too large.*to continue"):
                passes.carry_out(plan, target, client, tell)
            assert not target.exists()
            complete = sum(
                len(journal.complete_blocks(journal.folder_of(target), k)) for k in range(len(plan.passes))
            )
            assert complete >= len(plan.passes) * 9 // 2

            client.run(_limit_of_files, None)
            told = []
            passes.carry_out(plan, target, client, lambda done, total: told.append(done))
            assert len(told) - len(plan.passes) == told[-1] - complete  # nothing complete is done again
        whole, parts = (
            zarr.open_group(str(path), mode="r")["0"][:] for path in (tmp_path / "whole.zarr", target)
        )
        np.testing.assert_array_equal(parts, whole)

    def test_there_is_no_room_for_the_list(self, client, tmp_path, source, monkeypatch):
        target = tmp_path / "out.zarr"

        lists = journal.folder_of(target)
        fsync = os.fsync

        def full(descriptor):
            status = os.fstat(descriptor)
            if any(os.path.samestat(status, path.stat()) for path in lists.glob("*.done")):
                raise OSError(errno.ENOSPC, "No space left on device")
            fsync(descriptor)

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="cannot be written: the disk is full"):
                run(client, source, target, **self.options)
        assert not target.exists()
        run(client, source, target, **self.options)
        assert target.exists()

    def test_a_file_where_a_folder_should_be(self, client, tmp_path, source):
        journal.folder_of(tmp_path / "out.zarr").touch()
        with pytest.raises(FileExistsError, match="is not a folder"):
            run(client, source, tmp_path / "out.zarr")

    def test_a_folder_that_may_not_be_written_to(self, client, tmp_path, source, monkeypatch):
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(PermissionError, match="may not write in"):
            run(client, source, tmp_path / "out.zarr")
        assert os.listdir(tmp_path) == ["in.zarr"]

    def test_a_refusal_that_nobody_foresaw(self, client, tmp_path, source, monkeypatch):
        def denied(*_, **__):
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(Path, "mkdir", denied)
        with pytest.raises(OSError, match="cannot be written: this user may not write there"):
            run(client, source, tmp_path / "out.zarr")
        assert os.listdir(tmp_path) == ["in.zarr"]


def explicit_steps(count, shape):
    """Explicit steps of edge-enhancing diffusion."""
    prepared = Settings(spacings=(1.0,) * len(shape)).prepare(aniso.EdgeEnhancing(3.0), shape)
    cycles = [aniso.schemes.Cycle(0.1, ((0.1, 1.0),))] * count
    return tuple(Pipeline.diffuse(shape, prepared, cycles).parts())


class TestBudget:
    shape = (1000, 2000, 3000)
    job = budget.Workload(shape, (64, 64, 64), (0, 0, 0), 1, 1, 4, explicit_steps(20, shape))

    @pytest.mark.parametrize("memory", [5e8, 1e9, 4e9])
    def test_blocks_fit_and_use_the_memory(self, memory):
        block, limit = budget.block_and_limit(self.job, memory, 1)
        assert all(n % 64 == 0 for n in block)
        assert 0.4 * memory < self.job.needed_bytes(block, limit) <= memory

    @pytest.mark.parametrize("workers", [1, 2, 3, 8])
    def test_nothing_that_fits_is_faster_by_estimate(self, workers):
        small = replace(self.job, shape=(200, 256, 320), stages=self.job.stages[:7])
        block, limit = budget.block_and_limit(small, 1e9, workers)
        sides = (range(64, n + 64, 64) for n in small.shape)
        cubes = [each for each in itertools.product(*sides) if max(each) - min(each) <= 64]
        for other, wide in itertools.product(cubes, small.costs):
            if small.needed_bytes(other, wide) <= 1e9:
                assert small.seconds(block, limit, workers) <= small.seconds(other, wide, workers)

    def test_workers_share_the_work(self):
        cube = replace(self.job, shape=(512, 512, 512))
        for workers in (2, 4):
            block, _ = budget.block_and_limit(cube, 64e9, workers)
            count = np.prod([-(-512 // n) for n in block])
            assert count % workers == 0
            assert all(512 % n == 0 for n in block)  # all are equal

    def test_no_block_fits(self):
        with pytest.raises(MemoryError, match="smaller chunks"):
            budget.block_and_limit(self.job, 3.4e8, 1)

    def test_the_size_of_the_array_does_not_matter(self):
        larger = replace(self.job, shape=(10_000, 20_000, 30_000))
        for memory in (1e9, 4e9):
            block, limit = budget.block_and_limit(larger, memory, 2)
            assert larger.needed_bytes(block, limit) <= memory

    def test_a_state_of_several_images_needs_more_memory(self):
        """That of a mixture: image, diffused image, mixture and flatness are read and written."""
        image, state = {"image": 1}, {"image": 1, "mixture": 1, "flat": 1, "diffused": 1}
        group = StageGroup(self.job.stages[:2], (10, 10, 10))
        few, many = (budget.PassCost.of(group, channels, 4) for channels in (image, state))
        assert (few.read, few.written, few.held) == (1, 1, 1 + 2)  # with the image and its successor
        assert (many.read, many.written, many.held) == (4, 4, 4 + 3 + 2)  # all but the image are copied

    def test_a_margin_counts_where_it_is_wider_than_the_halo(self):
        wide = replace(self.job, margins=(100, 0, 0))
        assert wide.with_halo((64, 64, 64), (5, 5, 5)) == (64 + 5 + 100) * 74 * 74
        assert wide.with_halo((1024, 64, 64), (5, 5, 5)) == (1024 + 105) * 74 * 74
        assert wide.with_halo((2000, 64, 64), (5, 5, 5)) == 1200 * 74 * 74


def test_threads_of_a_worker_share_its_memory():
    class Scheduler:
        def wait_for_workers(self, n_workers, timeout): ...

        def scheduler_info(self, n_workers):
            return {
                "workers": {
                    "one": {"memory_limit": 8e9, "nthreads": 4},
                    "other": {"memory_limit": 3e9, "nthreads": 1},
                }
            }

    assert cluster.capacity(Scheduler()) == (2e9, 5)


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
    def test_a_damaged_chunk_is_named(self, client, tmp_path):
        zarr.create_array(str(tmp_path / "in.zarr"), data=SAMPLES["noise"]((20, 20)), chunks=(10, 10))
        (tmp_path / "in.zarr" / "c" / "1" / "0").write_bytes(b"no chunk")
        # Whichever block fails first: halos of all of them reach into the chunk.
        with pytest.raises(OSError, match=r"chunk c/1/0 of .*in\.zarr cannot be read.*corrupt"):
            run(client, tmp_path / "in.zarr", tmp_path / "out.zarr", block=(10, 10), together=1)
        assert not (tmp_path / "out.zarr").exists()

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
                assert found.location == f"{tmp_path / 'in.zarr'}{elsewhere}"

    def test_no_numbers(self, tmp_path):
        zarr.create_array(str(tmp_path / "in.zarr"), shape=(4, 4), dtype="bool")
        with pytest.raises(TypeError, match="bool"):
            open_array(tmp_path / "in.zarr")

    def test_too_many_axes(self, tmp_path):
        zarr.create_array(str(tmp_path / "in.zarr"), shape=(4, 4, 4, 4), dtype="u1")
        with pytest.raises(ValueError, match="the axis of the channels"):
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

    def test_no_scheduler(self, monkeypatch):
        monkeypatch.setattr(cluster, "_PATIENCE", 1)
        with (
            pytest.raises(ConnectionError, match="no Dask scheduler"),
            cluster.connect("tcp://127.0.0.1:9", 1, None),
        ):
            pass

    @pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
    def test_a_scheduler_with_tls(self, tmp_path):
        certificate, key = str(tmp_path / "certificate.pem"), str(tmp_path / "key.pem")
        words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=aniso"]
        subprocess.run(
            ["openssl", *words, "-keyout", key, "-out", certificate], check=True, capture_output=True
        )
        tls = {"ca-file": certificate}
        for role in ("scheduler", "worker", "client"):
            tls |= {f"{role}.cert": certificate, f"{role}.key": key}
        with dask.config.set({f"distributed.comm.tls.{name}": path for name, path in tls.items()}):
            security = Security()
            local = LocalCluster(
                n_workers=1, threads_per_worker=1, processes=False, protocol="tls://", security=security,
                dashboard_address="127.0.0.1:0", silence_logs=50,
            )  # fmt: skip
            with local, cluster.connect(local.scheduler_address, 1, None) as client:
                assert local.scheduler_address.startswith("tls://")
                assert client.submit(int, "3").result() == 3
        with (
            pytest.raises(ConnectionError, match=r"no Dask scheduler at tls://.*TLS configuration"),
            cluster.connect("tls://127.0.0.1:9", 1, None),
        ):
            pass

    def test_somebody_who_does_not_answer(self, monkeypatch):
        monkeypatch.setattr(cluster, "_PATIENCE", 1)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
            with (
                pytest.raises(ConnectionError, match="no Dask scheduler"),
                cluster.connect(address, 1, None),
            ):
                pass

    def test_a_scheduler_without_workers(self):
        with (
            LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=50) as local,
            cluster.connect(local.scheduler_address, 1, None) as client,
            pytest.raises(ConnectionError, match="no workers"),
        ):
            cluster.capacity(client)

    def test_a_scheduler_that_goes_away(self, tmp_path):
        source = ome_group(tmp_path / "in.zarr", SAMPLES["edges"]((40, 30)), "yx", (1, 1), chunks=(10, 10))
        with (
            LocalCluster(
                n_workers=1, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50
            ) as local,
            cluster.connect(local.scheduler_address, 1, None) as client,
        ):

            def tell(done, total):
                if done > total / 2:
                    local.close()

            with pytest.raises(ConnectionError, match="scheduler is gone"):
                passes.carry_out(job(source, block=(10, 10), together=1), tmp_path / "out.zarr", client, tell)
        assert not (tmp_path / "out.zarr").exists()

    def test_a_block_that_kills_its_workers(self):
        class Future:
            def result(self):
                worker: Any = None
                raise KilledWorker("block", worker, 3)

        with pytest.raises(ConnectionError, match="too little memory"):
            passes._result(Future())
