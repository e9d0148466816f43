"""Workers and schedulers: memory, blocks, who is listened to, and who does not answer."""

import importlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import dask
import numpy as np
import pytest
from dask.distributed import Client, KilledWorker, LocalCluster, Security
from distributed import diskutils

import aniso
from aniso.blocks.groups import cut_stages
from aniso.blocks.stages import Pipeline
from aniso.blocks.stores import budget, cluster, journal, passes
from aniso.settings import Settings
from tests.blocks.stores import job, ome_group
from tests.cli.command_calls import PROGRAM, WIDE
from tests.processes import PATIENCE, started, wait_until
from tests.registry import SAMPLES

pytestmark = pytest.mark.slow

psutil: Any = importlib.import_module("psutil")  # comes with distributed, and has no types


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
        for other, wide in itertools.product(cubes, small.passes):
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

    def test_what_is_in_memory_at_the_same_time(self):
        """Counted by hand for two steps with a reach of 5."""
        (group,) = cut_stages(self.job.stages[:2], 10)

        def size(halo):
            return {10: 1000, 5: 100, 0: 1}[halo[0]]

        # The image that was read, and that of the evolution with its successor.
        assert group.numbers(size) == 1000 + 2 * 1000
        assert [step.numbers(group.before, size) for step in group.steps] == [3000, 300]

    def test_a_margin_counts_where_it_is_wider_than_the_halo(self):
        wide = replace(self.job, margins=(100, 0, 0))
        assert wide.with_halo((64, 64, 64), (5, 5, 5)) == (64 + 5 + 100) * 74 * 74
        assert wide.with_halo((1024, 64, 64), (5, 5, 5)) == (1024 + 105) * 74 * 74
        assert wide.with_halo((2000, 64, 64), (5, 5, 5)) == 1200 * 74 * 74


def test_threads_of_a_worker_share_its_memory():
    class Scheduler:
        cluster = None

        def wait_for_workers(self, n_workers, timeout): ...

        def scheduler_info(self, n_workers):
            return {
                "workers": {
                    "one": {"memory_limit": 8e9, "nthreads": 4},
                    "other": {"memory_limit": 3e9, "nthreads": 1},
                }
            }

    assert cluster.capacity(Scheduler()) == (2e9, 5)


def _listening():
    """Addresses and ports at which this process and its children can be reached."""
    this = psutil.Process()
    return {
        (connection.laddr.ip, connection.laddr.port)
        for process in (this, *this.children(recursive=True))
        for connection in _connections(process)
        if connection.status == psutil.CONN_LISTEN
    }


def _connections(process):
    """The connections of a process; it may be one of an earlier test that is just ending."""
    try:
        return process.net_connections(kind="inet")
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return []


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


def test_a_busy_disk_is_not_worth_a_warning(monkeypatch):
    """Dask warns if a folder is not there after a second, in this process and in its workers."""
    prepare = diskutils.WorkSpace.__init__

    def slow(*given):
        time.sleep(1.1)
        prepare(*given)

    monkeypatch.setattr(diskutils.WorkSpace, "__init__", slow)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with cluster.connect(None, 1, "1GB") as client:
            (rules,) = client.run(lambda: sys.warnoptions).values()
    assert "ignore:Creating scratch directories:UserWarning" in rules


class TestSchedulers:
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


def test_a_cluster_without_workers_is_reported(monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE", 0.5)
    with (
        LocalCluster(
            n_workers=0,
            processes=False,
            protocol="tcp://",
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as local,
        Client(local.scheduler_address) as client,
        pytest.raises(ConnectionError, match="the Dask cluster has no workers"),
    ):
        cluster.capacity(client)


def test_workers_that_come_late_are_waited_for(monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE", 0.1)  # for those of another scheduler
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50) as local,
        Client(local) as client,
    ):
        starting = threading.Timer(0.5, local.scale, [1])
        starting.start()
        _, count = cluster.capacity(client)
        starting.join()
        assert count >= 1


@contextmanager
def _started(folder, count):
    """A run of the command in a session of its own, as on a terminal, after the first of `count` images."""
    frames = np.stack([SAMPLES["noise"]((100, 100)).astype(np.float32)] * count)
    ome_group(folder / "in.zarr", frames, "tyx", (1, 1, 1), chunks=(1, 100, 100))
    words = ["diffuse", "in.zarr", "out.zarr", "--time", "100", "--workers", "2", "--memory", "1GB"]
    with started(
        [*PROGRAM, *words],
        cwd=folder,
        env=WIDE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        unfinished = journal.folder_of(folder / "out.zarr")
        wait_until(lambda: journal.complete_blocks(unfinished, 0), process)
        yield process


def _foreign(errors):
    """Lines that are not the command's own."""
    return [line for line in errors.splitlines() if not line.startswith(("note: ", "aniso: "))]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no groups of processes")
class TestStandardError:
    """Only the command's own lines, whatever Dask and asyncio have to say."""

    def test_interrupted_on_a_terminal(self, tmp_path):
        with _started(tmp_path, 600) as process:
            os.killpg(process.pid, signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert "interrupted" in errors
        assert not _foreign(errors)

    def test_a_worker_that_is_killed(self, tmp_path):
        with _started(tmp_path, 40) as process:
            children = psutil.Process(process.pid).children(recursive=True)
            worker = next(child for child in children if "spawn_main" in " ".join(child.cmdline()))
            worker.kill()
            _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert not _foreign(errors)
