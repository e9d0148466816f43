"""Runs over stores that are interrupted, killed, or out of room on the disk, and power failures."""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import aniso
from aniso.blocks.stores import cluster, journal, passes, places
from aniso.blocks.stores.places import LocalPlace
from aniso.blocks.stores.zarr_array import chunks_at
from tests.blocks.stores import MODEL, job, ome_group, run, zarr
from tests.processes import PATIENCE, kill, started, wait_until
from tests.registry import SAMPLES

pytestmark = pytest.mark.slow


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
        progress = []
        passes.carry_out(
            job(source, **options),
            tmp_path / "out.zarr",
            client,
            lambda done, total: progress.append(done / total),
        )
        whole, parts = (
            zarr.open_group(str(tmp_path / name), mode="r")["0"][:] for name in ("whole.zarr", "out.zarr")
        )
        np.testing.assert_array_equal(parts, whole)
        assert progress[-1] == 1.0
        assert progress[0] > 0.5  # what was complete is not done again

    def test_with_other_workers_it_keeps_its_blocks(self, client, tmp_path):
        source = ome_group(tmp_path / "in.zarr", SAMPLES["edges"]((40, 30)), "yx", (1, 1), chunks=(10, 10))
        run(client, source, tmp_path / "whole.zarr", block=(10, 10), together=1)
        self.half_done(client, source, tmp_path / "out.zarr", block=(10, 10), together=1)
        other = job(source, block=(20, 30), together=2)
        done = passes.carry_out(other, tmp_path / "out.zarr", client, lambda *_: None)
        assert done.block == (10, 10)
        assert {len(group.steps) for group in done.passes} == {1}
        assert {len(group.steps) for group in other.passes[:-1]} == {2}
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
        folder = LocalPlace(tmp_path)
        assert journal.complete_blocks(folder, 0) == {"0.0", "0.2"}
        with journal.open_list(folder, 0) as record:
            record("0.3")
        assert journal.complete_blocks(folder, 0) == {"0.0", "0.2", "0.3"}

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

    def test_what_was_left_by_a_kill_while_clearing_is_not_continued(self, client, tmp_path):
        """Blocks without a description may be those of any run."""
        image, target = SAMPLES["edges"]((40, 30)), tmp_path / "out.zarr"
        source = ome_group(tmp_path / "in.zarr", image, "yx", (1, 1), chunks=(10, 10))
        self.half_done(client, source, target, block=(10, 10), together=1)
        (journal.folder_of(target) / "run.json").remove()
        other = aniso.EdgeEnhancing(40.0, sigma=0.5)
        run(client, source, target, block=(10, 10), together=1, model=other)
        found = zarr.open_group(str(target), mode="r")["0"][:]
        np.testing.assert_allclose(found, aniso.diffuse(image, other, 2.0), atol=1e-9)

    def test_a_result_of_a_run_that_ended_meanwhile_stays(self, client, tmp_path, monkeypatch):
        """The target is looked at again when the lock is there: the last run held it until it was done."""
        source = ome_group(tmp_path / "in.zarr", SAMPLES["edges"]((20, 20)), "yx", (1, 1), chunks=(10, 10))
        target, lock, progress = tmp_path / "out.zarr", LocalPlace.lock, []

        @contextlib.contextmanager
        def waited_for(folder):
            target.mkdir()
            with lock(folder):
                yield

        monkeypatch.setattr(LocalPlace, "lock", waited_for)
        with pytest.raises(FileExistsError, match=r"out\.zarr already exists"):
            passes.carry_out(job(source), target, client, lambda *done: progress.append(done))
        assert not progress
        assert not list(target.iterdir())

    def test_the_folder_is_cleared_before_another_run_may_use_it(self, client, tmp_path, monkeypatch):
        source = ome_group(tmp_path / "in.zarr", SAMPLES["edges"]((20, 20)), "yx", (1, 1), chunks=(10, 10))
        locked, clear = [], LocalPlace.remove

        def watched(folder, **options):
            if folder.name.endswith(".unfinished") and folder.exists():
                with pytest.raises(FileExistsError, match="another run"), folder.lock():
                    pass
                locked.append(folder)
            clear(folder, **options)

        monkeypatch.setattr(LocalPlace, "remove", watched)
        run(client, source, tmp_path / "out.zarr")
        assert locked == [journal.folder_of(tmp_path / "out.zarr")]
        assert not locked[0].exists()

    def test_a_result_within_its_source(self, client, tmp_path):
        """What a run writes there is not part of its input, so that it goes on."""
        image = SAMPLES["edges"]((40, 30))
        source = ome_group(tmp_path / "in.zarr", image, "yx", (1, 1), chunks=(10, 10))
        target, options = source / "out.zarr", {"block": (10, 10), "together": 1}
        self.half_done(client, source, target, **options)
        run(client, source, target, **options)
        found = zarr.open_group(str(target), mode="r")["0"][:]
        np.testing.assert_allclose(found, aniso.diffuse(image, MODEL, 2.0), atol=1e-9)

    def test_remnants_of_chunks_do_not_reach_the_target(self, client, tmp_path):
        source = ome_group(tmp_path / "in.zarr", SAMPLES["edges"]((40, 30)), "yx", (1, 1), chunks=(10, 10))
        target = tmp_path / "out.zarr"
        self.half_done(client, source, target, block=(10, 10), together=100)
        (
            Path(str(journal.store_of(journal.folder_of(target), 0))) / "0" / "c" / "0" / "0.abc.partial"
        ).touch()
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
    import sys, time
    from pathlib import Path
    from aniso.blocks.stores import cluster, passes
    from tests.blocks.stores import job

    source, target = map(Path, sys.argv[1:3])

    def stop(done, total):
        if done >= int(sys.argv[3]):
            time.sleep(1e4)

    if __name__ == "__main__":
        with cluster.connect(None, 2, "1GB") as client:
            pids = client.run(__import__("os").getpid)
            print(*pids.values(), flush=True)
            passes.carry_out(job(source, 3.0, block=(16, 16), together=1), target, client, stop)
"""


class TestKilled:
    """Real processes, really killed."""

    def filtering(self, tmp_path, source, target, last):
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(_SCRIPT))
        folder = str(Path(__file__).parents[2])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, *sys.path])}
        words = [sys.executable, script, source, target, last]
        return started(words, env=environment, stdout=subprocess.PIPE, text=True)

    def wait_for_blocks(self, process, target, count):
        folder = journal.folder_of(target)
        wait_until(
            lambda: sum(len(journal.complete_blocks(folder, number)) for number in range(100)) >= count,
            process,
        )

    def test_a_worker_and_then_the_whole_run(self, client, tmp_path):
        image = SAMPLES["edges"]((80, 64))
        source = ome_group(tmp_path / "in.zarr", image, "yx", (1, 1), chunks=(16, 16))
        target = tmp_path / "out.zarr"
        with self.filtering(tmp_path, source, target, last=40) as process:
            assert process.stdout is not None
            workers = [int(pid) for pid in process.stdout.readline().split()]
            self.wait_for_blocks(process, target, 10)
            os.kill(workers[0], signal.SIGKILL)
            self.wait_for_blocks(process, target, 40)
            kill(process)
        assert not target.exists()
        with self.filtering(tmp_path, source, target, last=1000) as again:
            again.communicate(timeout=PATIENCE)
        assert again.returncode == 0
        result = zarr.open_group(str(target), mode="r")["0"][:]
        run(client, source, tmp_path / "whole.zarr", time=3.0, block=(16, 16), together=1)
        np.testing.assert_array_equal(result, zarr.open_group(str(tmp_path / "whole.zarr"), mode="r")["0"][:])
        np.testing.assert_allclose(result, aniso.diffuse(image, MODEL, 3.0), atol=1e-9)


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
            progress = []
            passes.carry_out(plan, target, client, lambda done, total: progress.append(done))
            assert len(progress) - 1 == progress[-1] - complete  # nothing complete is done again
        whole, parts = (
            zarr.open_group(str(path), mode="r")["0"][:] for path in (tmp_path / "whole.zarr", target)
        )
        np.testing.assert_array_equal(parts, whole)

    def test_there_is_no_room_for_the_list(self, client, tmp_path, source, monkeypatch):
        target = tmp_path / "out.zarr"

        lists = Path(str(journal.folder_of(target)))
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
        Path(str(journal.folder_of(tmp_path / "out.zarr"))).touch()
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


@pytest.fixture
def synced(monkeypatch):
    """What was forced to the disk, in this order: its path, and how much of it there was."""
    events: list[tuple[Path, int]] = []
    fsync = os.fsync

    def watched(descriptor):
        fsync(descriptor)
        events.append((Path(os.readlink(f"/proc/self/fd/{descriptor}")), os.fstat(descriptor).st_size))

    monkeypatch.setattr(os, "fsync", watched)
    return events


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the names of open files are in /proc")
class TestPowerFailures:
    @pytest.mark.parametrize("version", ["0.4", "0.5"])
    def test_no_block_is_listed_before_its_chunks_are_on_the_disk(
        self, client, tmp_path, synced, monkeypatch, version
    ):
        image = SAMPLES["noise"]((40, 30))
        separator = {} if version == "0.5" else {"chunk_key_encoding": {"name": "v2", "separator": "/"}}
        source = ome_group(tmp_path / "in.zarr", image, "yx", (1, 1), version, chunks=(10, 10), **separator)
        target = tmp_path / "out.zarr"
        monkeypatch.setattr(LocalPlace, "remove", lambda place, **_: None)
        run(client, source, target, block=(20, 10), together=100)
        folder = Path(str(journal.folder_of(target)))
        store = folder / "pass-0000-image.zarr"
        listed = (folder / "pass-0000.done").read_text().split()
        assert len(listed) == 2 * 3
        array = zarr.open_group(str(target), mode="r")["0"]
        paths = [path for path, _ in synced]
        lines = [number for number, path in enumerate(paths) if path.suffix == ".done"]
        assert len(lines) == len(listed)
        for block, line in zip(listed, lines, strict=True):
            row, column = map(int, block.split("."))
            index = (slice(20 * row, 20 * row + 20), slice(10 * column, 10 * column + 10))
            keys = [key for key, _ in chunks_at(array, index)]
            assert len(keys) == 2
            for key in keys:
                size = (target / "0" / key).stat().st_size
                assert (store / "0" / key, size) in synced[:line]
                for parent in Path(key).parents:
                    assert store / "0" / parent in paths[:line]

    def test_descriptions_come_first_and_the_new_name_last(self, client, tmp_path, synced):
        source = ome_group(tmp_path / "in.zarr", SAMPLES["noise"]((20, 20)), "yx", (1, 1), chunks=(10, 10))
        target = tmp_path / "out.zarr"
        run(client, source, target, block=(10, 10), together=1)
        folder = Path(str(journal.folder_of(target)))
        paths = [path for path, _ in synced]
        first_line = paths.index(folder / "pass-0000.done")
        assert paths[:2] == [folder / "run.json.partial", folder]
        assert paths.index(folder / "pass-0000-image.zarr" / "zarr.json") < first_line
        last = max(int(path.stem.split("-")[1]) for path in paths if path.suffix == ".done")
        described = folder / f"pass-{last:04}-image.zarr" / "0" / "zarr.json"
        assert paths.index(described) < paths.index(folder / f"pass-{last:04}.done")
        assert paths[-1] == target.parent

    def test_the_name_of_a_list_is_on_the_disk_before_its_lines(self, tmp_path, monkeypatch):
        synced = []
        monkeypatch.setattr(places, "_sync", lambda path: synced.append((path, os.listdir(path))))
        with journal.open_list(LocalPlace(tmp_path), 0):
            assert synced == [(tmp_path, ["pass-0000.done"])]

    def test_chunks_that_are_not_written(self, client, tmp_path):
        """Zarr leaves out chunks that hold the fill value only, and there is nothing to force."""
        source = ome_group(tmp_path / "in.zarr", np.zeros((20, 20)), "yx", (1, 1), chunks=(10, 10))
        run(client, source, tmp_path / "out.zarr", block=(10, 10), together=100)
        assert not (tmp_path / "out.zarr" / "0" / "c").exists()
        assert not zarr.open_group(str(tmp_path / "out.zarr"), mode="r")["0"][:].any()
