"""Time of a run over a Zarr store on the local disk and in an object store on this machine.

    python -m benchmarks.object_store --json benchmarks/results/object_store.json

Edge-enhancing diffusion of a volume by two workers, alternately from and to the disk and an S3 server (moto)
on the loopback interface, which is a process of its own. The ratio of the best times is the overhead; the
server is written in Python and shares the cores with the workers. Distant servers need less of these cores,
but answer later: `--delay 0.04`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

import aniso
from aniso.blocks.stores.cluster import connect
from aniso.blocks.stores.urls import place_of
from benchmarks import timing
from benchmarks.report import Report, Target

CHUNK, WORKERS, STEPS, STEP = 64, 2, 4, 0.1
OPTIONS = {"access_key_id": "x", "secret_access_key": "y", "region": "us-east-1"}
# Serves until its standard input is closed, so that it ends with the benchmark.
_SERVER = """
import logging, sys, time
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.server import ThreadedMotoServer

answer = DomainDispatcherApplication.__call__

def late(self, *request):
    time.sleep(float(sys.argv[1]))
    return answer(self, *request)

DomainDispatcherApplication.__call__ = late

logging.disable(logging.CRITICAL)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--side", type=int, default=512, help="voxels along each axis")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delay", type=float, default=0, help="seconds before each answer of the server")
    parser.add_argument("--memory", default="4GB", help="of a worker")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    chosen = parser.parse_args(arguments)
    found = Report(
        "object_store",
        {
            "side": chosen.side,
            "workers": WORKERS,
            "chunks": CHUNK,
            "steps": STEPS,
            "delay": chosen.delay,
        },
        timing.environment(("aniso", "numpy", "dask", "distributed", "zarr", "obstore", "moto")),
    )
    model = aniso.EdgeEnhancing(3.5, sigma=1.0)
    volume = np.random.default_rng(0).random((chosen.side,) * 3, np.float32)
    words = [sys.executable, "-c", _SERVER, str(chosen.delay)]
    with (
        tempfile.TemporaryDirectory(prefix="aniso-") as folder,
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server,
        connect(None, WORKERS, chosen.memory) as client,
    ):
        assert server.stdout is not None
        address = f"http://127.0.0.1:{int(server.stdout.readline())}"
        with urllib.request.urlopen(urllib.request.Request(f"{address}/bucket", method="PUT")):
            pass
        options = {**OPTIONS, "endpoint": address}
        places = {"disk": folder, "object store": "s3://bucket/run"}
        times: dict[str, list[float]] = {name: [] for name in places}
        for base in places.values():
            _write(f"{base}/in.zarr", options, volume)
        results: dict[str, Any] = {}
        for _ in range(chosen.rounds):
            for name, base in places.items():
                start = time.perf_counter()
                done = aniso.filter_store(
                    f"{base}/in.zarr",
                    f"{base}/out.zarr",
                    "diffuse",
                    model=model,
                    time=STEPS * STEP,
                    scheme=aniso.Explicit(STEP),
                    scheduler=client.scheduler.address,
                    storage_options=options,
                )
                times[name].append(time.perf_counter() - start)
                place = place_of(f"{base}/out.zarr", options)
                results[name] = _read(place)
                place.remove()
                print(f"{name}: {times[name][-1]:.1f} s, {done.passes} passes", flush=True)
        assert server.stdin is not None
        server.stdin.close()
    for name, values in times.items():
        found.add(f"{chosen.side}³, {name}: time", min(values), "s", "ours")
    ratio = min(times["object store"]) / min(times["disk"])
    if not chosen.delay:
        found.targets.append(Target("object store over disk", ratio, 1.5, "at most"))
    found.show()
    if chosen.json:
        found.save(chosen.json)
    if not np.array_equal(*results.values()):
        sys.exit("the results differ")


def _write(url: str, options: dict[str, Any], volume: Any) -> None:
    import zarr

    chunks = (min(CHUNK, len(volume)),) * 3
    array: Any = zarr.create_array(
        place_of(url, options).node, shape=volume.shape, dtype=volume.dtype, chunks=chunks, compressors=None
    )
    array[:] = volume


def _read(place: Any) -> Any:
    import zarr

    array: Any = zarr.open_array(place.node, mode="r")
    return np.asarray(array[:])


if __name__ == "__main__":
    main(sys.argv[1:])
