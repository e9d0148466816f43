"""Denoise a Zarr volume larger than the memory of its workers, undisturbed and killed on the way.

    python -m benchmarks.large_store --json benchmarks/results/large_store.json

A volume of balls with noise, in uint16, is denoised twice by the same call in processes of its own: once
undisturbed, and once with SIGKILL to all its processes in the middle of a pass, after which the call is
repeated. Both results must have the same bits.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import timing
from benchmarks.report import Report, Target
from benchmarks.timing import CONSOLE

CHUNK = 64
WORKERS, NOISE = 2, 300.0
#: Parts of the run after which it is killed.
KILLS = (0.3, 0.75)

# The run itself: prints its progress, then blocks, passes and the summary of the plan.
_PROGRAM = """
import sys
import aniso

if __name__ == "__main__":
    done = aniso.filter_store(
        sys.argv[1], sys.argv[2], "denoise", workers=int(sys.argv[3]), memory=sys.argv[4],
        progress=lambda part, total: print("done", part / total, flush=True),
    )
    print("blocks", "×".join(map(str, done.block)), "passes", done.passes, flush=True)
    print(done.plan, flush=True)
"""


def make(path: Path, side: int) -> None:
    """Write balls of many sizes on a smooth background, with noise, layer by layer."""
    import zarr

    array: Any = zarr.create_array(
        str(path), shape=(side,) * 3, chunks=(CHUNK,) * 3, dtype="uint16", compressors=None
    )
    rng = np.random.default_rng(0)
    count = max(8, (side // 32) ** 3 // 4)
    centres, radii = rng.random((count, 3)) * side, rng.uniform(4, 24, count)
    heights = rng.uniform(-2500, 2500, count)
    for start in range(0, side, CHUNK):
        stop = min(start + CHUNK, side)
        y, x = np.ogrid[:side, :side]
        z = np.arange(start, stop)[:, None, None]
        layer = (8000 + 1500 * np.sin(z / 150) * np.sin(y / 190) + 1000 * np.cos(x / 170)).astype(np.float32)
        for centre, radius, height in zip(centres, radii, heights, strict=True):
            low = np.maximum(np.floor(centre - radius), (start, 0, 0)).astype(int)
            high = np.minimum(np.ceil(centre + radius) + 1, (stop, side, side)).astype(int)
            if (low < high).all():
                box = np.ogrid[tuple(slice(a, b) for a, b in zip(low, high, strict=True))]
                square = sum((axis - c) ** 2 for axis, c in zip(box, centre, strict=True))
                part = layer[low[0] - start : high[0] - start, low[1] : high[1], low[2] : high[2]]
                part[square < radius**2] += height
        layer += NOISE * rng.standard_normal(layer.shape, dtype=np.float32)
        array[start:stop] = layer.round().clip(0, 65535).astype(np.uint16)


def run(source: Path, target: Path, memory: str, kill_at: float | None) -> tuple[float, float, list[str]]:
    """Run the program; return seconds, the largest peak of a worker in bytes, and what it printed."""
    import psutil

    command = [sys.executable, "-c", _PROGRAM, str(source), str(target), str(WORKERS), memory]
    output = target.with_suffix(".txt")
    start, peak, code = time.perf_counter(), 0.0, None
    with output.open("w") as file:
        child = subprocess.Popen(command, stdout=file, start_new_session=True)
    parent = psutil.Process(child.pid)
    while code is None:
        time.sleep(0.2)
        code = child.poll()
        lines = output.read_text().splitlines()
        done = [float(line.split()[1]) for line in lines if line.startswith("done ")]
        if kill_at is not None and done and done[-1] >= kill_at:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            print(f"killed at {done[-1]:.3f}", flush=True)
            return time.perf_counter() - start, peak, []
        peak = max([peak, *_peaks(parent)])
    if code != 0 or kill_at is not None:
        sys.exit(f"the run ended with exit code {code}, before it could be killed: {kill_at is not None}")
    return time.perf_counter() - start, peak, [line for line in lines if not line.startswith("done ")]


def _peaks(parent: Any) -> list[float]:
    """Return the most memory that each child process, but not the parent, has had."""
    import psutil

    found = []
    try:
        children = parent.children(recursive=True)
    except psutil.Error:
        return []
    for child in children:
        try:
            text = Path(f"/proc/{child.pid}/status").read_text("utf-8")
        except OSError:
            continue
        found += [1024.0 * int(line.split()[1]) for line in text.splitlines() if line.startswith("VmHWM")]
    return found


def digest(store: Path) -> str:
    """Return a hash of all files of a store with their names."""
    whole = hashlib.sha256()
    for path in sorted(path for path in store.rglob("*") if path.is_file()):
        whole.update(str(path.relative_to(store)).encode())
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--side", type=int, default=1024, help="voxels along each axis")
    parser.add_argument("--memory", default="1.5GB", help="of a worker")
    parser.add_argument("--folder", type=Path, help="where to write; by default a temporary folder")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    chosen = parser.parse_args(arguments)
    found = Report(
        "large_store",
        {"side": chosen.side, "workers": WORKERS, "memory": chosen.memory, "chunks": CHUNK},
        timing.environment(("aniso", "numpy", "numba", "dask", "distributed", "zarr")),
    )
    with tempfile.TemporaryDirectory(prefix="aniso-", dir=chosen.folder) as name:
        folder = Path(name)
        source = folder / "in.zarr"
        make(source, chosen.side)
        voxels = chosen.side**3
        seconds, peak, lines = run(source, folder / "whole.zarr", chosen.memory, None)
        CONSOLE.print(*lines, sep="\n", highlight=False)
        label = f"{chosen.side}³ uint16, {WORKERS} workers of {chosen.memory}"
        found.add(f"{label}: time", seconds, "s", "ours", f"{1e6 * seconds / voxels:.2f} µs per voxel")
        found.add(f"{label}: peak of a worker", peak / 1e6, "MB", "memory", lines[0])
        print(f"undisturbed: {seconds:.0f} s, peak {peak / 1e6:.0f} MB", flush=True)
        expected = digest(folder / "whole.zarr")
        shutil.rmtree(folder / "whole.zarr")
        parts = [run(source, folder / "killed.zarr", chosen.memory, part) for part in (*KILLS, None)]
        total, peak = sum(part[0] for part in parts), max(part[1] for part in parts)
        found.add(f"{label}, killed twice: time", total, "s", "ours")
        found.add(f"{label}, killed twice: peak of a worker", peak / 1e6, "MB", "memory")
        same = digest(folder / "killed.zarr") == expected
        found.targets.append(Target("same bits as the undisturbed run", float(same), 1.0))
    found.show()
    if chosen.json:
        found.save(chosen.json)
    if not same:
        sys.exit("the results differ")


if __name__ == "__main__":
    main(sys.argv[1:])
