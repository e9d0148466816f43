"""Runs over Zarr stores on workers of this machine, for benchmarks.tiled."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import aniso
from aniso.blocks.stages import Pipeline
from aniso.blocks.stores import cluster, passes
from aniso.blocks.stores.zarr_array import open_array
from aniso.settings import Settings
from benchmarks.fresh import peak
from benchmarks.timing import CONSOLE

MODEL = aniso.EdgeEnhancing(contrast=10.0)
STEPS, CHUNK = 4, 64


@dataclass(frozen=True)
class Run:
    """What one run took."""

    job: passes.StoreRun
    workers: int
    seconds: float
    peaks: tuple[float, ...]  # of each worker, in bytes

    @property
    def per_voxel(self) -> float:
        """Nanoseconds per voxel and step, of the wall clock."""
        return 1e9 * self.seconds / (float(np.prod(self.job.source.shape)) * STEPS)


def make(path: Path, shape: tuple[int, ...], chunk: int = CHUNK) -> None:
    """A Zarr volume of noise around blobs, written layer by layer."""
    import zarr

    array: Any = zarr.create_array(
        str(path), shape=shape, chunks=(chunk,) * 3, dtype="float32", compressors=None
    )
    rng = np.random.default_rng(0)
    y, x = np.indices(shape[1:], dtype=np.float32)
    for start in range(0, shape[0], CHUNK):
        z = np.arange(start, min(start + CHUNK, shape[0]), dtype=np.float32)[:, None, None]
        blobs = 60 * (np.sin(z / 9) + np.sin(y / 11) + np.sin(x / 13) > 0.5)
        array[start : start + CHUNK] = blobs + 10 * rng.standard_normal(blobs.shape, dtype=np.float32)


def job(
    path: Path, memory: float, workers: int, block: tuple[int, ...] | None = None, cycles: int = STEPS
) -> passes.StoreRun:
    """Explicit steps over a store: in blocks that suit the workers, or in these."""
    source = open_array(path)
    settings = Settings(spacings=source.spacing, threads=1)
    prepared = settings.prepare(MODEL, source.spatial_shape)
    plan = aniso.Explicit(prepared.limit).plan(STEPS * prepared.limit, prepared.limit)
    pipeline = Pipeline.diffuse(source.spatial_shape, prepared, plan)
    if block is None:
        return passes.StoreRun.plan(source, pipeline, {}, memory, workers)
    return passes.StoreRun(source, pipeline, {}, block, cycles * max(pipeline.parts()[0].reach))


def predicted(run: Run) -> float:
    """Seconds that the cost model gives."""
    known = passes.estimate_workload(run.job.source, run.job.pipeline)
    known.passes[run.job.limit] = run.job.passes
    return known.seconds(run.job.block, run.job.limit, run.workers)


def measured(folder: Path, planned: passes.StoreRun, count: int, memory: float) -> Run:
    """One run by this number of new workers; the target is deleted."""
    with _workers(count, memory) as client:
        start = time.perf_counter()
        passes.carry_out(planned, folder / "out.zarr", client, lambda done, total: None)
        seconds = time.perf_counter() - start
        peaks = tuple(client.run(peak).values())
    shutil.rmtree(folder / "out.zarr")
    run = Run(planned, count, seconds, peaks)
    CONSOLE.print(
        f"{' × '.join(map(str, planned.source.shape))}, {count} workers, blocks "
        f"{' × '.join(map(str, planned.block))}, {len(planned.passes)} passes: {seconds:.1f} s "
        f"(predicted {predicted(run):.1f}), peak {max(peaks) / 1e6:.0f} MB per worker",
        highlight=False,
    )
    return run


@contextmanager
def _workers(count: int, memory: float) -> Iterator[Any]:
    """A client of this number of new processes, whose kernels are loaded."""
    with cluster.connect(None, count, int(memory)) as client:
        client.run(_warm)
        yield client


def _warm() -> None:
    volume = np.zeros((8, 8, 8), np.float32)
    aniso.diffuse(volume, MODEL, 0.1, threads=1)
