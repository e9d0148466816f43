"""A scheduler, workers and runs as processes, which are killed or cut off."""

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import aniso
from tests.blocks import s3
from tests.processes import PATIENCE, kill

IMAGE = aniso.samples.shapes(160, noise=20.0).image.astype(np.float32)
SOURCE, TARGET = f"s3://{s3.BUCKET}/in.zarr", f"s3://{s3.BUCKET}/out.zarr"
TIME = 4.0
MODEL = aniso.EdgeEnhancing(12.0, sigma=0.5)
# Workers that are killed may all have had the same block.
_FAILURES = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "20"}
#: Dask gives up connections after so long; by default it waits for minutes. Busy processes are late, too.
SOON = {
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "20s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "30s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "20s",
}
_RUN = """
import sys
import aniso
from aniso.blocks.stores import budget

budget.block_and_limit = lambda *_: ((32, 32), 8)

if __name__ == "__main__":
    aniso.filter_store(
        sys.argv[1], sys.argv[2], "diffuse", model=aniso.EdgeEnhancing(12.0, sigma=0.5),
        time=float(sys.argv[4]), scheduler=sys.argv[3], progress=lambda done, total: print(done, flush=True),
    )
"""


class Hosts:
    """Processes of a cluster and of a run; `prefix` are words before a command, by the name of its host."""

    def __init__(self, address, folder, prefix=None, scheduler="127.0.0.1", settings=None):
        self.environment = {
            **os.environ, **_FAILURES, **(settings or {}), **s3.environment(address),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }  # fmt: skip
        self.folder, self.prefix, self.host = Path(folder), prefix or {}, scheduler
        self.processes: dict[str, subprocess.Popen] = {}
        self.file = self.folder / "scheduler.json"

    def start(self, name, *words):
        """Start a process in a folder of its own, unless it runs."""
        if name in self.processes and self.processes[name].poll() is None:
            return
        place = self.folder / name
        place.mkdir(exist_ok=True)
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [*self.prefix.get(name, ()), *map(str, words)], cwd=place, env=self.environment,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def start_cluster(self, count=2):
        """Start what does not run of a scheduler and its workers."""
        dask = [sys.executable, "-m", "dask"]
        if "scheduler" not in self.processes or self.processes["scheduler"].poll() is not None:
            self.file.unlink(missing_ok=True)
        self.start(
            "scheduler", *dask, "scheduler", "--host", self.host, "--port", "0", "--no-dashboard",
            "--scheduler-file", self.file,
        )  # fmt: skip
        end = time.monotonic() + PATIENCE
        while not (self.file.exists() and self.file.read_text()):
            assert time.monotonic() < end, self.log()
            time.sleep(0.05)
        self.address = json.loads(self.file.read_text())["address"]
        for number in range(count):
            self.start(
                f"worker{number}", *dask, "worker", self.address, "--nthreads", "1", "--no-dashboard",
                "--no-nanny", "--death-timeout", "60", "--memory-limit", "2GB",
            )  # fmt: skip

    def start_run(self):
        """Start a run, or continue it."""
        script = self.folder / "script.py"
        script.write_text(_RUN)
        (self.folder / "run.log").write_bytes(b"")
        self.start("run", sys.executable, script, SOURCE, TARGET, self.address, TIME)

    def reported(self):
        """How much of the run is done, as it says."""
        lines = (self.folder / "run.log").read_text().split("\n")[:-1]
        numbers = [line for line in lines if line.replace(".", "", 1).isdigit()]
        return float(numbers[-1]) if numbers else None

    def kill(self, name):
        """Kill a process and its children at once."""
        process = self.processes.pop(name)
        kill(process)
        process.wait()

    def log(self):
        """What the processes said last."""
        return {path.name: path.read_text()[-2000:] for path in self.folder.glob("*.log")}

    @contextlib.contextmanager
    def all(self):
        """End all processes at the end."""
        try:
            yield self
        finally:
            for name in list(self.processes):
                self.kill(name)


def is_there(given):
    """Whether the result has appeared; if so, it must be right."""
    if "zarr.json" not in s3.names(TARGET, given):
        return False
    np.testing.assert_array_equal(s3.get_array(TARGET, given), aniso.diffuse(IMAGE, MODEL, TIME))
    return True


def kill_at_random(count, seed=0, report=lambda text: None):
    """Kill a run, a worker or the scheduler at random moments, and continue; return how often each."""
    chance, killed = random.Random(seed), dict.fromkeys(("run", "worker", "scheduler"), 0)
    with s3.s3_server() as address, tempfile.TemporaryDirectory() as folder:
        given = s3.options(address)
        s3.put_array(SOURCE, given, IMAGE, chunks=(16, 16))
        with Hosts(address, folder).all() as hosts:
            while sum(killed.values()) < count:
                hosts.start_cluster()
                hosts.start_run()
                kind = ("run", "worker", "scheduler")[sum(killed.values()) % 3]
                wait(lambda: hosts.reported() is not None or hosts.processes["run"].poll() is not None, hosts)
                time.sleep(chance.uniform(0, 3))
                done = hosts.reported()
                if hosts.processes["run"].poll() is not None:
                    assert is_there(given), hosts.log()  # it was faster: begin again
                    s3.remove(TARGET, given)
                    continue
                hosts.kill(f"worker{chance.randrange(2)}" if kind == "worker" else kind)
                killed[kind] += 1
                report(f"{kind} killed at {done:.2f}")
                if kind == "scheduler":
                    for name in ("worker0", "worker1", "run"):
                        hosts.kill(name)
                if is_there(given):
                    if kind == "worker":  # the run goes on, and clears its folder
                        wait(lambda: hosts.processes["run"].poll() is not None, hosts)
                    s3.remove(TARGET, given)
            hosts.start_cluster()
            hosts.start_run()
            wait(lambda: hosts.processes["run"].poll() is not None, hosts)
            assert hosts.processes["run"].returncode == 0, hosts.log()
            assert is_there(given)
            assert not s3.names(f"{TARGET}.unfinished", given)
    return killed


def wait(condition, hosts):
    """Wait until this is so."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, hosts.log()
        time.sleep(0.02)


if __name__ == "__main__":
    print(
        kill_at_random(
            int(sys.argv[1]) if len(sys.argv) > 1 else 30, report=lambda text: print(text, flush=True)
        )
    )
