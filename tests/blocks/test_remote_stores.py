"""Stores at URLs: the same bits as in memory on workers without a common path, faults, locks and secrets."""

import json
import os
import re
import time
from typing import Any

import numpy as np
import pytest
from dask.distributed import Client, LocalCluster
from zarr.core.sync import sync

import aniso
from aniso.blocks.groups import StageGroup
from aniso.blocks.stores import journal, lease, passes, remote
from aniso.blocks.stores.urls import place_of
from tests.blocks import s3
from tests.blocks.stores import ome_group, result_of, zarr
from tests.cli.command_calls import called
from tests.processes import PATIENCE

pytestmark = pytest.mark.slow

IMAGE = s3.IMAGE
HOLES = np.zeros(IMAGE.shape, bool)
HOLES[20:30, 15:40] = True
MODEL = aniso.EdgeEnhancing(12.0, sigma=0.5)
DIFFUSE: dict[str, Any] = {"model": MODEL, "time": 2.0}


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    """The scheduler of two processes that have no folder in common."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as local:
        with Client(local) as client:
            for number, worker in enumerate(client.scheduler_info(n_workers=-1)["workers"]):
                client.run(os.chdir, str(tmp_path_factory.mktemp(f"worker{number}")), workers=[worker])
        yield local.scheduler_address


class TestSameBits:
    @pytest.mark.parametrize("verb", ["denoise", "enhance", "inpaint", "upsample", "diffuse"])
    def test_on_two_workers(self, workers, given, source, target, cut, verb, monkeypatch):
        monkeypatch.setattr(passes, "_SIDE", 16)
        monkeypatch.setattr(StageGroup, "slab_length", lambda group, length, side: side)
        every: dict[str, Any] = {
            "inpaint": {"mask": HOLES},
            "upsample": {"factor": 2},
            "diffuse": DIFFUSE,
        }
        options = every.get(verb, {})
        cut((48, 32), {"denoise": 40, "diffuse": 8, "enhance": 8}.get(verb, 1000))
        expected = getattr(aniso, verb)(IMAGE, **options)
        if verb == "inpaint":
            mask = source.replace("in.zarr", "mask.zarr")
            s3.put_array(mask, given, HOLES, chunks=(32, 32))
            options = {"mask": mask}
        done = aniso.filter_store(source, target, verb, scheduler=workers, storage_options=given, **options)
        assert done.shape == expected.shape
        assert done.passes > 1 or verb not in ("denoise", "diffuse", "enhance")
        np.testing.assert_array_equal(s3.get_array(target, given), expected)
        assert not s3.names(f"{target}.unfinished", given)

    @pytest.mark.parametrize("version", ["0.4", "0.5"])
    def test_ome_groups_from_disk_and_back(self, scheduler, given, request, tmp_path, cut, version):
        local = ome_group(tmp_path / "in.zarr", IMAGE, "yx", (0.5, 0.8), version, chunks=(16, 16))
        url = f"s3://{s3.BUCKET}/{request.node.name}.zarr"
        cut((32, 32), 30)
        aniso.filter_store(local, url, "diffuse", scheduler=scheduler, storage_options=given, **DIFFUSE)
        again = url.replace(".zarr", "/in/a.zarr")  # from one group to another, in folders
        aniso.filter_store(url, again, "diffuse", scheduler=scheduler, storage_options=given, **DIFFUSE)
        twice = aniso.diffuse(s3.get_array(url, given), spacing=(1, 1.6), **DIFFUSE)
        np.testing.assert_array_equal(s3.get_array(again, given), twice)
        aniso.filter_store(local, tmp_path / "a.zarr", "diffuse", scheduler=scheduler, **DIFFUSE)
        np.testing.assert_array_equal(s3.get_array(url, given), result_of(tmp_path / "a.zarr"))
        remote_files = {name: (place_of(url, given) / name).read() for name in s3.names(url, given)}
        local_files = {
            str(path.relative_to(tmp_path / "a.zarr")): path.read_bytes()
            for path in (tmp_path / "a.zarr").rglob("*")
            if path.is_file()
        }
        assert remote_files == local_files

    def test_web_servers_are_read(self, scheduler, tmp_path):
        ome_group(tmp_path / "in.zarr", IMAGE, "yx", (1, 1), chunks=(16, 16))
        with s3.web_server(tmp_path) as address:
            aniso.filter_store(
                f"{address}/in.zarr", tmp_path / "out.zarr", "diffuse", scheduler=scheduler, **DIFFUSE
            )
            with pytest.raises(FileNotFoundError, match=r"http://.*lost\.zarr does not exist"):
                aniso.filter_store(f"{address}/lost.zarr", tmp_path / "b.zarr", "denoise")
        np.testing.assert_array_equal(result_of(tmp_path / "out.zarr"), aniso.diffuse(IMAGE, **DIFFUSE))

    def test_by_the_command_and_environment_variables(
        self, server, given, source, target, monkeypatch, tmp_path
    ):
        for address in ("http://127.0.0.1:9", server):  # nothing is at the first one
            for name, value in s3.environment(address).items():
                monkeypatch.setenv(name, value)
            if address != server:
                assert called(tmp_path, "structure", source, target).exit_code == 1
        answer = called(tmp_path, "structure", source, target, "--json")
        assert answer.exit_code == 0, answer.stdout + answer.stderr
        assert json.loads(answer.stdout)["results"][0]["output"] == target
        np.testing.assert_array_equal(s3.get_array(target, given), aniso.coherence(IMAGE))
        assert not s3.names(f"{target}.unfinished", given)
        assert not os.listdir(tmp_path)


class TestFaults:
    def test_each_operation_of_zarr_is_repeated(self, server, given, target):
        """Answers that end too early are not repeated by obstore, nor are conditional writes."""
        proxy = s3.FaultyProxy(server, share=0.5, seed=4)
        with proxy.started() as address:
            place: Any = place_of(target, s3.options(address))
            group = zarr.open_group(place.node, mode="w")
            group.create_array("deep/0", data=IMAGE)
            assert [name for name, _ in group.groups()] == ["deep"]
            store, key = group.store_path.store, f"{place.key}/zarr.json"
            assert sync(store.exists(key))
            assert sync(store.getsize(key)) == len(place_of(f"{target}/zarr.json", given).read() or b"")
            np.testing.assert_array_equal(group["deep/0"][:], IMAGE)
            for _ in range(10):
                with (place / "run").lock():
                    assert (place / "run").lock_holder() is not None
        assert proxy.faults["cut within"] > 3
        assert place_of(f"{target}/deep/zarr.json", given).read() is not None

    def test_requests_that_fail(self, workers, server, given, source, target, cut):
        """Nothing is lost, and the bits are the same."""
        proxy = s3.FaultyProxy(server, share=0.05, delays=0.005, seed=3)
        cut((16, 32), 8)
        with proxy.started() as address:
            aniso.filter_store(
                source, target, "diffuse", scheduler=workers, storage_options=s3.options(address), **DIFFUSE
            )
        assert sum(proxy.requests.values()) > 200
        assert {"500", "503", "cut before", "cut after", "cut within", "late"} <= set(proxy.faults)
        np.testing.assert_array_equal(s3.get_array(target, given), aniso.diffuse(IMAGE, **DIFFUSE))
        assert not s3.names(f"{target}.unfinished", given)

    def test_a_server_that_stays_away(self, workers, scheduler, server, given, source, target, cut):
        """The run ends with a clear error, and continues later, on other workers."""
        proxy = s3.FaultyProxy(server)
        cut((16, 16), 8)

        def leave(done, total):
            proxy.away = done > 0.5

        with proxy.started() as address:
            options = s3.options(address, retry_timeout=1)
            with pytest.raises(ConnectionError, match=r"s3://bucket does not answer.*[Rr]epeat the call"):
                aniso.filter_store(
                    source,
                    target,
                    "diffuse",
                    scheduler=workers,
                    storage_options=options,
                    progress=leave,
                    **DIFFUSE,
                )
        assert "zarr.json" not in s3.names(target, given)
        folder, notes, told = journal.folder_of(place_of(target, given)), [], []
        complete = sum(len(journal.complete_blocks(folder, number)) for number in range(9))
        assert complete > 5
        aniso.filter_store(
            source,
            target,
            "diffuse",
            scheduler=scheduler,
            storage_options=given,
            progress=lambda done, total: told.append(done),
            note=lambda kind, text: notes.append(kind),
            **DIFFUSE,
        )
        assert "continued" in notes
        assert told[0] > 0  # what was complete is not done again
        np.testing.assert_array_equal(s3.get_array(target, given), aniso.diffuse(IMAGE, **DIFFUSE))


class TestAppearance:
    def test_the_target_appears_at_the_end(self, scheduler, given, source, target, cut):
        seen = []

        def look(done, total):
            names = s3.names(target, given)
            seen.append((len(names), "zarr.json" in names))

        cut((32, 32), 30)
        aniso.filter_store(
            source, target, "diffuse", scheduler=scheduler, storage_options=given, progress=look, **DIFFUSE
        )
        assert max(count for count, _ in seen) > 10  # data are there,
        assert not any(there for _, there in seen)  # but no array

    @pytest.mark.parametrize("version", ["0.4", "0.5"])
    def test_what_makes_it_visible_comes_last(
        self, scheduler, given, request, tmp_path, monkeypatch, version
    ):
        source = ome_group(tmp_path / "in.zarr", IMAGE, "yx", (1, 1), version, chunks=(16, 16))
        url, written, write = f"s3://{s3.BUCKET}/{request.node.name}.zarr", [], remote.RemotePlace.write

        def watched(place, contents):
            written.append(str(place))
            write(place, contents)

        monkeypatch.setattr(remote.RemotePlace, "write", watched)
        aniso.filter_store(source, url, "diffuse", scheduler=scheduler, storage_options=given, **DIFFUSE)
        described = [place.removeprefix(f"{url}/") for place in written if place.startswith(f"{url}/")]
        old = ["0/.zattrs", "0/.zarray", ".zattrs", ".zgroup"]
        assert described == (old if version == "0.4" else ["0/zarr.json", "zarr.json"])

    def test_what_was_published_and_deleted_is_computed_again(
        self, scheduler, given, source, target, monkeypatch
    ):
        """The list of its blocks may have been left."""
        with monkeypatch.context() as patched:
            patched.setattr(remote.RemotePlace, "remove", lambda place, **_: None)
            run = {"scheduler": scheduler, "storage_options": given, **DIFFUSE}
            aniso.filter_store(source, target, "diffuse", **run)
        expected = s3.get_array(target, given)
        assert journal.folder_of(place_of(target, given)).exists()
        place_of(target, given).remove()
        aniso.filter_store(source, target, "diffuse", **run)
        np.testing.assert_array_equal(s3.get_array(target, given), expected)

    def test_nothing_is_written_beside_it(self, scheduler, given, source, target, cut):
        """Zarr would make groups of all folders around an array, up to the bucket."""
        cut((32, 32), 8)
        deep = target.replace("out.zarr", "a/b/out.zarr")
        run: dict[str, Any] = {"scheduler": scheduler, "storage_options": given, **DIFFUSE}
        assert aniso.filter_store(source, deep, "diffuse", **run).passes > 1
        folder = target.removesuffix("/out.zarr")
        assert all(name.startswith(("in.zarr/", "a/b/out.zarr/")) for name in s3.names(folder, given))
        assert place_of(f"s3://{s3.BUCKET}/zarr.json", given).read() is None

    def test_nothing_is_overwritten(self, scheduler, given, source, target):
        (place_of(target, given) / "notes.txt").write(b"mine")
        for kind in ("notes.txt", "zarr.json"):
            (place_of(target, given) / kind).write(b"mine")
            with pytest.raises(FileExistsError, match=r"out\.zarr (has objects|already exists)"):
                aniso.filter_store(
                    source, target, "diffuse", scheduler=scheduler, storage_options=given, **DIFFUSE
                )
        assert s3.names(target, given) == ["notes.txt", "zarr.json"]


class TestLocks:
    def test_two_runs_at_once(self, scheduler, given, source, target):
        run: dict[str, Any] = {"scheduler": scheduler, "storage_options": given, **DIFFUSE}
        rejected: list[float] = []

        def tell(done, total):
            if not rejected:
                began = time.monotonic()
                with pytest.raises(
                    FileExistsError, match=r"another run is writing to .*out\.zarr\.unfinished"
                ):
                    aniso.filter_store(source, target, "diffuse", **run)
                rejected.append(time.monotonic() - began)

        aniso.filter_store(source, target, "diffuse", progress=tell, **run)
        assert rejected
        np.testing.assert_array_equal(s3.get_array(target, given), aniso.diffuse(IMAGE, **DIFFUSE))

    def test_a_run_that_was_killed_elsewhere_is_taken_over_later(self, given, target, monkeypatch):
        folder: Any = journal.folder_of(place_of(target, given))
        first, second = lease.Lock(folder), lease.Lock(folder)
        monkeypatch.setattr(lease, "_machine", lambda: "there")
        first.acquire()
        monkeypatch.setattr(lease, "_machine", lambda: "here")
        with pytest.raises(FileExistsError, match="was killed ends after 60 s"):
            second.acquire()
        monkeypatch.setattr(lease, "LEASE", 0.0)
        second.acquire()
        second.lease.check()
        with pytest.raises(FileExistsError, match="another run has taken over"):
            first.lease.check()
        first.release()  # not its own any more
        second.lease.check()
        second.release()
        assert not folder.exists()

    def test_of_two_that_find_it_free_one_gets_it(self, given, target, monkeypatch):
        folder: Any = journal.folder_of(place_of(target, given))
        first, second, third = (lease.Lock(folder) for _ in range(3))
        found = second.check_free()
        first.acquire()
        monkeypatch.setattr(second, "check_free", lambda: found)
        with pytest.raises(FileExistsError, match="another run is writing"):
            second.acquire()
        # The same for a lock that has expired.
        monkeypatch.setattr(lease, "LEASE", 0.0)
        monkeypatch.setattr(lease, "_machine", lambda: None)
        found = third.check_free()
        fourth = lease.Lock(folder)
        fourth.acquire()
        monkeypatch.setattr(third, "check_free", lambda: found)
        with pytest.raises(FileExistsError, match="another run is writing"):
            third.acquire()
        fourth.release()
        first.release()

    def test_a_lock_is_renewed(self, given, target, monkeypatch):
        monkeypatch.setattr(lease, "_RENEWAL", 0.05)
        place = journal.folder_of(place_of(target, given)) / "lock"
        with journal.folder_of(place_of(target, given)).lock():
            before, end = place.read(), time.monotonic() + PATIENCE
            while place.read() == before:
                assert time.monotonic() < end
        assert place.read() is None

    def test_a_process_of_this_machine_that_has_ended_is_not_waited_for(self, given, target):
        folder = journal.folder_of(place_of(target, given))
        dead = {"owner": "x", "host": "h", "machine": lease._machine(), "process": 2**22 + 1}
        (folder / "lock").write(json.dumps(dead).encode())
        with folder.lock() as held:
            assert held is not None
            held.check()

    def test_workers_of_a_run_that_lost_its_lock_write_nothing(self, scheduler, given, source, target, cut):
        folder = journal.folder_of(place_of(target, given))
        cut((16, 16), 8)

        def steal(done, total):
            (folder / "lock").write(json.dumps({"owner": "another"}).encode())

        with pytest.raises(FileExistsError, match="another run has taken over"):
            aniso.filter_store(
                source,
                target,
                "diffuse",
                scheduler=scheduler,
                storage_options=given,
                progress=steal,
                **DIFFUSE,
            )
        assert not any(journal.complete_blocks(folder, number) for number in range(9))


class TestProgress:
    def status(self, tmp_path, url, *more):
        return json.loads(called(tmp_path, "status", url, "--json", *more).stdout)

    @pytest.mark.parametrize("kind", ["local", "remote"])
    def test_a_run_can_be_watched_from_elsewhere(self, scheduler, given, source, target, tmp_path, cut, kind):
        words = [f"--storage-option={name}={value}" for name, value in given.items()]
        goal = target if kind == "remote" else str(tmp_path / "out.zarr")
        seen, events = [], []

        def look(now):
            events.append(now)
            if now.blocks > 0:
                seen.append(self.status(tmp_path, goal, *words)["results"][0])
            if now.blocks == 7:
                raise KeyboardInterrupt

        cut((48, 32), 8)
        run: dict[str, Any] = {"scheduler": scheduler, "storage_options": given, **DIFFUSE}
        with pytest.raises(KeyboardInterrupt):
            aniso.filter_store(source, goal, "diffuse", watch=look, **run)
        told = [now.blocks for now in events if now.blocks > 0]
        counted = [entry["blocks"] for entry in seen]
        assert sorted(set(told)) == list(range(1, 8))
        if kind == "local":
            assert counted == told
        else:  # workers list their blocks themselves, before the run counts them
            assert all(n <= count <= -(-n // 4) * 4 for n, count in zip(told, counted, strict=True))
        assert {entry["state"] for entry in seen} == {"running"}
        assert (seen[-1]["blocks_total"], seen[-1]["passes"]) == (12, 3)
        assert seen[-1]["pass"] == (3 if counted[-1] == 8 else 2)
        assert [(now.blocks, now.total, now.before) for now in events][:2] == [(0, 12, 0), (1, 12, 0)]
        assert events[-1].rate > 0
        assert events[-1].seconds_left == pytest.approx((12 - 7) / events[-1].rate)
        after = self.status(tmp_path, goal, *words)["results"][0]
        assert (after["state"], after["verb"]) == ("interrupted", "diffuse")
        assert 7 <= after["blocks"] <= 7 + (kind == "remote")
        assert re.search(r"[78] of 12 \((58|67) %\)", called(tmp_path, "status", goal, *words).stdout)
        events.clear()
        aniso.filter_store(source, goal, "diffuse", watch=events.append, **run)
        assert events[0].before >= after["blocks"]
        assert events[-1].blocks == 12
        assert self.status(tmp_path, goal, *words)["results"] == [{"store": goal, "state": "complete"}]
        assert (
            "no run has been started for it"
            in self.status(tmp_path, goal + "x", *words)["errors"][0]["error"]
        )

    def test_events_as_lines_of_json(self, scheduler, source, target, given, tmp_path):
        words = [f"--storage-option={name}={value}" for name, value in given.items()]
        run = ("diffuse", source, target, "--time", "1", "--scheduler", scheduler, "--json", *words)
        answer = called(tmp_path, *run)
        assert json.loads(answer.stdout)["results"][0]["output"] == target
        found = [json.loads(line) for line in answer.stderr.splitlines() if line.startswith("{")]
        assert found[0]["event"] == "blocks"
        assert found[-1]["blocks"] == found[-1]["total"]
        assert "watch the workers at http://" in answer.stderr
