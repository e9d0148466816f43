"""Zarr volumes on a Dask cluster: one worker against two, memory, and how well the cost model predicts.

    python -m benchmarks.tiled --json benchmarks/results/tiled.json --picture benchmarks/results/tiled.png

Workers are processes with one thread each. Their peak memory is what the system says of them at the end.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import aniso
from aniso.engines import Problem
from aniso.engines.tiled.blocks import Work
from aniso.stores import budget, cluster, passes
from aniso.stores.opened import opened
from benchmarks import report, timing
from benchmarks.report import Report, Target
from benchmarks.timing import CONSOLE

MODEL = aniso.EdgeEnhancing(contrast=10.0)
STEPS, CHUNK = 4, 64
#: Of the main run: memory of a worker, and how much larger the array is than that of all workers.
MEMORY, TIMES_LARGER = 500e6, 5


@dataclass(frozen=True)
class Run:
    """What one run took."""

    shape: tuple[int, ...]
    workers: int
    block: tuple[int, ...]
    cycles: int
    seconds: float
    peaks: tuple[float, ...]  # of each worker, in bytes

    @property
    def per_voxel(self) -> float:
        """Nanoseconds per voxel and step, of the wall clock."""
        return 1e9 * self.seconds / (float(np.prod(self.shape)) * STEPS)


def make(path: Path, shape: tuple[int, ...]) -> None:
    """A Zarr volume of noise around blobs, written layer by layer."""
    import zarr

    array: Any = zarr.create_array(
        str(path), shape=shape, chunks=(CHUNK,) * 3, dtype="float32", compressors=None
    )
    rng = np.random.default_rng(0)
    y, x = np.indices(shape[1:], dtype=np.float32)
    for start in range(0, shape[0], CHUNK):
        z = np.arange(start, min(start + CHUNK, shape[0]), dtype=np.float32)[:, None, None]
        blobs = 60 * (np.sin(z / 9) + np.sin(y / 11) + np.sin(x / 13) > 0.5)
        array[start : start + CHUNK] = blobs + 10 * rng.standard_normal(blobs.shape, dtype=np.float32)


@contextmanager
def workers(count: int, memory: float) -> Iterator[Any]:
    """A client of so many new processes, whose kernels are loaded."""
    with cluster.connected(None, count, int(memory)) as client:
        client.run(_warm)
        yield client


def _warm() -> None:
    volume = np.zeros((8, 8, 8), np.float32)
    aniso.diffuse(volume, MODEL, 0.1, threads=1)


def _peak() -> float:
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def job(path: Path, memory: float, block: tuple[int, ...] | None = None, cycles: int = STEPS) -> passes.Run:
    source = opened(path)
    limit = aniso.stability.stable_step(MODEL, ndim=3)
    work = Work(Problem(MODEL, aniso.DeltaStencil(), source.spacing, None, 1), "cpu")
    plan = tuple(aniso.Explicit(limit).plan(STEPS * limit, limit))
    if block is None:
        return passes.Run.of(source, work, plan, memory)
    return passes.Run(source, work, plan, block, cycles)


def measured(folder: Path, source: Path, count: int, memory: float, planned: passes.Run | None = None) -> Run:
    """One run over a store; the target is deleted."""
    with workers(count, memory) as client:
        planned = planned or job(source, memory)
        start = time.perf_counter()
        passes.run(planned, folder / "out.zarr", client, lambda done, total: None)
        seconds = time.perf_counter() - start
        peaks = tuple(client.run(_peak).values())
    _delete(folder / "out.zarr")
    done = Run(planned.source.shape, count, planned.block, planned.together, seconds, peaks)
    CONSOLE.print(
        f"{' × '.join(map(str, done.shape))}, {count} workers, blocks {' × '.join(map(str, done.block))}, "
        f"{done.cycles} steps per pass: {seconds:.1f} s, peak {max(peaks) / 1e6:.0f} MB per worker",
        highlight=False,
    )
    return done


def _delete(path: Path) -> None:
    import shutil

    shutil.rmtree(path)


def speed(found: Report, folder: Path, size: int, rounds: int) -> None:
    """One worker and two, in turn."""
    source = folder / "cube.zarr"
    make(source, (size,) * 3)
    runs: dict[int, list[Run]] = {1: [], 2: []}
    for _ in range(rounds):
        for count, list_of_runs in runs.items():
            list_of_runs.append(measured(folder, source, count, 2e9))
    best = {count: min(run.seconds for run in list_of_runs) for count, list_of_runs in runs.items()}
    for count, seconds in best.items():
        found.add(f"{size}³, {count} worker{'s' if count > 1 else ''}", seconds, "s", "ours")
    found.targets.append(Target("two workers over one", best[1] / best[2], 1.4))
    _delete(source)


def memory(found: Report, folder: Path, size: int) -> None:
    """Larger than memory; and what the peak depends on."""
    voxels = TIMES_LARGER * MEMORY / 4
    depth = int(np.ceil(voxels / size**2 / CHUNK)) * CHUNK
    source = folder / "large.zarr"
    make(source, (depth, size, size))
    run = measured(folder, source, 1, MEMORY)
    name = f"{depth} × {size} × {size}, 1 worker with {MEMORY / 1e6:.0f} MB"
    found.add(
        f"{name}: peak", max(run.peaks) / 1e6, "MB", "memory", f"array {4 * depth * size**2 / 1e6:.0f} MB"
    )
    found.targets.append(Target("peak of the memory given", max(run.peaks) / MEMORY, 1.0, "at most"))
    _delete(source)
    for length in (256, 512):
        source = folder / f"{length}.zarr"
        make(source, (length,) * 3)
        for side in (64, 128):
            planned = job(source, 2e9, (side,) * 3)
            run = measured(folder, source, 1, 2e9, planned)
            found.add(f"array {length}³, blocks {side}³: peak", max(run.peaks) / 1e6, "MB", "memory")
        _delete(source)


def cost_model(found: Report, folder: Path, size: int) -> list[tuple[float, float, str]]:
    """Predicted and measured nanoseconds per voxel and step, for several blocks and steps per pass."""
    source = folder / "cube.zarr"
    make(source, (size,) * 3)
    pairs = []
    for side in (64, 128, 256):
        for cycles in (1, 2, 4):
            planned = job(source, 2e9, (side,) * 3, cycles)
            model = budget.Job((size,) * 3, (CHUNK,) * 3, 1, 4, (5, 5, 5), 1, STEPS, stored_tensors=False)
            predicted = 1e9 * model.cost((side,) * 3, cycles)
            run = measured(folder, source, 1, 2e9, planned)
            name = f"blocks {side}³, {cycles} step{'s' if cycles > 1 else ''} per pass"
            found.add(name, run.per_voxel, "ns per voxel and step", "ours", f"predicted {predicted:.0f}")
            pairs.append((predicted, run.per_voxel, name))
    _delete(source)
    return pairs


def draw(found: Report, pairs: list[tuple[float, float, str]], path: Path) -> None:
    picture, (left, right) = report.figure_of(1, 2, (10, 4.2))
    peaks = {name: entry for name, entry in found.measurements.items() if name.endswith("peak")}
    short = {name.removesuffix(": peak"): entry for name, entry in peaks.items()}
    report.bars(left, short, "MB", log=False, title="Peak memory of a worker")
    for predicted, actual, name in pairs:
        right.plot(predicted, actual, "o", color=report.COLOURS["ours"])
        label = name.replace("blocks ", "").replace(" per pass", "")
        right.annotate(label, (predicted, actual), (5, -3), textcoords="offset points", fontsize=8)
    ends = [0, 1.25 * max(max(p, a) for p, a, _ in pairs)]
    right.plot(ends, ends, color="#9a9a9a", linewidth=1)
    right.set(xlabel="predicted, ns per voxel and step", ylabel="measured", xlim=ends, ylim=ends)
    right.set_title("The cost model", loc="left", fontweight="bold")
    report.plain(right)
    report.save_picture(picture, path)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=512, help="of the cube that one and two workers filter")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--model-size", type=int, default=256, help="of the cube for the cost model")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    chosen = parser.parse_args(arguments)
    found = Report(
        "tiled",
        {"model": repr(MODEL), "steps": STEPS, "chunks": CHUNK, "rounds": chosen.rounds},
        timing.environment(("aniso", "numpy", "numba", "dask", "distributed", "zarr")),
    )
    with tempfile.TemporaryDirectory(prefix="aniso-") as folder:
        speed(found, Path(folder), chosen.size, chosen.rounds)
        memory(found, Path(folder), chosen.size)
        pairs = cost_model(found, Path(folder), chosen.model_size)
    found.show()
    if chosen.json:
        found.save(chosen.json)
    if chosen.picture:
        draw(found, pairs, chosen.picture)


if __name__ == "__main__":
    main(sys.argv[1:])
