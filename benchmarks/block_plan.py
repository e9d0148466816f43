"""What the cost model says about arrays that no machine here holds: 10¹² voxels on a hundred nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import aniso
from aniso.blocks.groups import StageGroup
from aniso.blocks.stages import Pipeline
from aniso.blocks.stores import budget
from aniso.schemes import Cycle
from aniso.settings import Settings
from benchmarks.report import Report

SHAPE, CHUNK = (10_000, 10_000, 10_000), 64
NODES, WORKERS_PER_NODE, WORKER_MEMORY = 100, 32, 4e9
#: What all nodes together read or write.
STORAGE = {"disks of the nodes, 1 GB/s each": 1e9 * NODES, "a shared file system, 10 GB/s": 1e10}
SIDES = (64, 128, 192, 256, 320, 384, 448)


@dataclass(frozen=True)
class Evolution:
    """What is to be computed."""

    name: str
    model: aniso.models.ImageDriven
    scheme: aniso.schemes.Scheme
    time: float

    @property
    def cycles(self) -> list[Cycle]:
        return list(self.scheme.plan(self.time, aniso.stability.stable_step(self.model, ndim=3)))


_EDGES, _LINES = aniso.EdgeEnhancing(10.0), aniso.CoherenceEnhancing(5.0, rho=3.0)
_STEP = aniso.stability.stable_step(_EDGES, ndim=3)
EVOLUTIONS = (
    Evolution("EED, 10 explicit steps", _EDGES, aniso.Explicit(_STEP), 10 * _STEP),
    Evolution("CED with ρ 3, 2 cycles of FED to time 10", _LINES, aniso.FED(2), 10.0),
)


def job(evolution: Evolution, storage: float) -> budget.Workload:
    """The array, as the model sees it."""
    prepared = Settings(spacings=(1.0,) * 3).prepare(evolution.model, SHAPE)
    return budget.Workload(
        SHAPE,
        (CHUNK,) * 3,
        margins=(0,) * 3,
        frames=1,
        channels=1,
        itemsize=4,
        stages=tuple(Pipeline.diffuse(SHAPE, prepared, evolution.cycles).parts()),
        bytes_per_second=storage / (NODES * WORKERS_PER_NODE),
    )


def plan(found: Report) -> None:
    """The time that all of it takes, and the blocks that are best."""
    workers = NODES * WORKERS_PER_NODE
    for evolution in EVOLUTIONS:
        for storage, speed in STORAGE.items():
            known = job(evolution, speed)
            block, limit = budget.block_and_limit(known, WORKER_MEMORY, workers)
            minutes = known.seconds(block, limit, workers) / 60
            passes = known.passes[limit]
            halo_share = known.with_halo(block, passes[0].halo) / math.prod(block)
            note = (
                f"blocks {' × '.join(map(str, block))}, {_count(passes)} for {len(known.stages)} cycles, "
                f"{halo_share:.2f} times the voxels with halos"
            )
            found.add(f"10¹² voxels, {evolution.name}, {storage}", minutes, "min, predicted", "machine", note)


def sides(found: Report) -> None:
    """How the time depends on the side of the blocks, each with its best number of passes."""
    evolution, speed = EVOLUTIONS[0], next(iter(STORAGE.values()))
    known, workers = job(evolution, speed), NODES * WORKERS_PER_NODE
    for side in SIDES:
        block = (side,) * 3
        fitting = [limit for limit in known.passes if known.needed_bytes(block, limit) <= WORKER_MEMORY]
        seconds, limit = min((known.seconds(block, limit, workers), limit) for limit in fitting)
        memory = known.needed_bytes(block, limit) / 1e9
        note = f"{_count(known.passes[limit])}, {memory:.1f} GB per worker"
        found.add(f"10¹² voxels, blocks {side}³", seconds / 60, "min, predicted", "machine", note)


def _count(passes: list[StageGroup]) -> str:
    return "1 pass" if len(passes) == 1 else f"{len(passes)} passes"
