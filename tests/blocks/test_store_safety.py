"""Zarr stores after a power failure, with damaged chunks, and on workers that nobody else can reach."""

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr as zarr_package
from dask.distributed import Client, LocalCluster

from aniso.blocks.stores import cluster, ends, journal
from aniso.blocks.stores.zarr_array import chunks_at, open_array
from tests.blocks.test_stores import ome_group, run
from tests.cli.command_calls import PROGRAM, WIDE
from tests.registry import SAMPLES

# A group may hold groups and arrays, which types cannot tell apart.
zarr: Any = zarr_package
psutil: Any = importlib.import_module("psutil")  # comes with distributed, and has no types


@pytest.fixture(scope="module")
def client():
    """Workers in this process, where the calls of the operating system can be watched."""
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
        monkeypatch.setattr(journal, "clear", lambda folder: None)
        run(client, source, target, block=(20, 10), together=100)
        folder = journal.folder_of(target)
        store = journal.store_of(folder, 0)
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
        folder = journal.folder_of(target)
        paths = [path for path, _ in synced]
        first_line = paths.index(folder / "pass-0000.done")
        assert paths[:2] == [folder / "run.json.partial", folder]
        assert paths.index(journal.store_of(folder, 0) / "zarr.json") < first_line
        last = max(int(path.stem.split("-")[1]) for path in paths if path.suffix == ".done")
        described = journal.store_of(folder, last) / "0" / "zarr.json"
        assert paths.index(described) < paths.index(folder / f"pass-{last:04}.done")
        assert paths[-1] == target.parent

    def test_chunks_that_are_not_written(self, client, tmp_path):
        """Zarr leaves out chunks that hold the fill value only, and there is nothing to force."""
        source = ome_group(tmp_path / "in.zarr", np.zeros((20, 20)), "yx", (1, 1), chunks=(10, 10))
        run(client, source, tmp_path / "out.zarr", block=(10, 10), together=100)
        assert not (tmp_path / "out.zarr" / "0" / "c").exists()
        assert not zarr.open_group(str(tmp_path / "out.zarr"), mode="r")["0"][:].any()


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


def _listening():
    """Addresses and ports at which this process and its children can be reached."""
    this = psutil.Process()
    return {
        (connection.laddr.ip, connection.laddr.port)
        for process in (this, *this.children(recursive=True))
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }


def test_workers_listen_to_this_machine_only():
    """Processes of the scheduler, of nannies and of workers, with all their pages."""
    before = _listening()
    with cluster.connect(None, 2, "1GB") as client:
        new = _listening() - before
        workers = client.scheduler_info(n_workers=-1)["workers"]
        addresses = [*workers, *(worker["nanny"] for worker in workers.values()), client.scheduler.address]
    assert len(new) >= 6  # a scheduler and its page, two nannies, two workers at least
    assert {address for address, _ in new} == {"127.0.0.1"}
    assert all(address.startswith("tcp://127.0.0.1:") for address in addresses)


def _started(folder):
    """A run of the command in a session of its own, as on a terminal, after its first blocks."""
    data = SAMPLES["noise"]((600, 600)).astype(np.float32)
    zarr.create_array(str(folder / "in.zarr"), data=data, chunks=(50, 50))
    words = ["diffuse", "in.zarr", "out.zarr", "--time", "40", "--workers", "2", "--memory", "1GB"]
    process = subprocess.Popen(
        [*PROGRAM, *words],
        cwd=folder,
        env=WIDE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    unfinished, end = journal.folder_of(folder / "out.zarr"), time.monotonic() + 120
    while not journal.complete_blocks(unfinished, 0):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    return process


def _foreign(errors):
    """Lines that are not the command's own."""
    return [line for line in errors.splitlines() if not line.startswith(("note: ", "aniso: "))]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no groups of processes")
class TestStandardError:
    """Only the command's own lines, whatever Dask and asyncio have to say."""

    def test_interrupted_on_a_terminal(self, tmp_path):
        with _started(tmp_path) as process:
            os.killpg(process.pid, signal.SIGINT)
            _, errors = process.communicate(timeout=120)
        assert process.returncode == 130
        assert "interrupted" in errors
        assert not _foreign(errors)

    def test_a_worker_that_is_killed(self, tmp_path):
        with _started(tmp_path) as process:
            children = psutil.Process(process.pid).children(recursive=True)
            worker = next(child for child in children if "spawn_main" in " ".join(child.cmdline()))
            worker.kill()
            _, errors = process.communicate(timeout=240)
        assert process.returncode == 0
        assert not _foreign(errors)


def test_a_cluster_without_workers_is_reported(monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE", 0.5)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50) as local,
        Client(local) as client,
        pytest.raises(ConnectionError, match="the Dask cluster has no workers"),
    ):
        cluster.capacity(client)


def test_workers_that_come_late_are_waited_for():
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50) as local,
        Client(local) as client,
    ):
        starting = threading.Timer(0.5, local.scale, [1])
        starting.start()
        _, count = cluster.capacity(client)
        starting.join()
        assert count >= 1
