"""What the cost model says about arrays that no machine here holds: 10¹² voxels on a hundred nodes."""

from __future__ import annotations

from dataclasses import dataclass

import aniso
from aniso.blocks import costs, halo
from aniso.blocks.stores import budget
from aniso.schemes import Cycle
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
    cycle, model = evolution.cycles[0], evolution.model
    return budget.Workload(
        SHAPE,
        (CHUNK,) * 3,
        frames=1,
        pixel_bytes=4,
        reach=halo.reach(cycle, model, (1.0,) * 3),
        cycles=len(evolution.cycles),
        cycle_seconds=costs.cycle_seconds(cycle, model, 1, (1.0,) * 3, 4),
        stored_tensors=costs.stores_tensors(cycle, model, 1),
        bytes_per_second=storage / (NODES * WORKERS_PER_NODE),
    )


def plan(found: Report) -> None:
    """The time that all of it takes, and the blocks that are best."""
    workers = NODES * WORKERS_PER_NODE
    for evolution in EVOLUTIONS:
        for storage, speed in STORAGE.items():
            known = job(evolution, speed)
            block, cycles = budget.blocks_and_cycles(known, WORKER_MEMORY, workers)
            minutes = known.seconds(block, cycles, workers) / 60
            halo_share = costs.with_halo(block, known.reach, cycles, SHAPE) / costs.with_halo(
                block, (0,) * 3, 0
            )
            note = (
                f"blocks {' × '.join(map(str, block))}, {cycles} of {known.cycles} cycles per pass, "
                f"{halo_share:.2f} times the voxels with halos"
            )
            found.add(f"10¹² voxels, {evolution.name}, {storage}", minutes, "min, predicted", "machine", note)


def sides(found: Report) -> None:
    """How the time depends on the side of the blocks, each with its best number of cycles per pass."""
    evolution, speed = EVOLUTIONS[0], next(iter(STORAGE.values()))
    known, workers = job(evolution, speed), NODES * WORKERS_PER_NODE
    for side in SIDES:
        block = (side,) * 3
        fitting = [n for n in range(1, known.cycles + 1) if known.needed_bytes(block, n) <= WORKER_MEMORY]
        seconds, cycles = min((known.seconds(block, n, workers), n) for n in fitting)
        memory = known.needed_bytes(block, cycles) / 1e9
        note = f"{cycles} cycles per pass, {memory:.1f} GB per worker"
        found.add(f"10¹² voxels, blocks {side}³", seconds / 60, "min, predicted", "machine", note)
