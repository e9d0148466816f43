"""Zarr volumes on a Dask cluster: one worker against two, memory, and how well the cost model predicts.

    python -m benchmarks.tiled --json benchmarks/results/tiled.json --picture benchmarks/results/tiled.png

Workers are processes with one thread each. Their peak memory is what the system says of them at the end.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from aniso.blocks.costs import (
    NETWORK_BYTES_PER_SECOND,
    RATES,
    STORE_BYTES_PER_SECOND,
    STORE_TASK_SECONDS,
)
from benchmarks import block_plan, report, timing
from benchmarks.block_rates import measured_rates
from benchmarks.block_runs import CHUNK, MODEL, STEPS, Run, job, make, measured, predicted
from benchmarks.report import Report, Target

#: Of the main run: memory of a worker, and how much larger the array is than that of all workers.
MEMORY, TIMES_LARGER = 500e6, 5
ENOUGH = 3e9
SIDES, CYCLES = (32, 64, 128, 256), (1, 2, 4)

#: Predicted and measured, in nanoseconds per voxel and step.
Pairs = list[tuple[float, float, str]]


def rates(found: Report) -> None:
    """What the constants of the cost model are on this machine."""
    for ndim, used in RATES.items():
        here = asdict(measured_rates(ndim))
        for name, seconds in asdict(used).items():
            label = f"{ndim}-D, {name.replace('_', ' ')}"
            found.add(label, 1e9 * here[name], "ns", "machine", f"the model takes {1e9 * seconds:.2g}")


def speed(found: Report, folder: Path, size: int, rounds: int) -> None:
    """One worker and two, in turn."""
    source = folder / "cube.zarr"
    make(source, (size,) * 3)
    runs: dict[int, list[Run]] = {1: [], 2: []}
    for _ in range(rounds):
        for count, list_of_runs in runs.items():
            list_of_runs.append(measured(folder, job(source, ENOUGH, count), count, ENOUGH))
    best = {count: min(run.seconds for run in list_of_runs) for count, list_of_runs in runs.items()}
    for count, seconds in best.items():
        name = f"{size}³, {STEPS} steps, {count} worker{'s' if count > 1 else ''}"
        found.add(name, seconds, "s", "ours", f"predicted {predicted(runs[count][0]):.1f} s")
    found.targets.append(Target("two workers over one", best[1] / best[2], 1.4))
    shutil.rmtree(source)


def memory(found: Report, folder: Path, size: int) -> None:
    """Larger than memory; and what the peak depends on."""
    voxels = TIMES_LARGER * MEMORY / 4
    depth = int(np.ceil(voxels / size**2 / CHUNK)) * CHUNK
    source = folder / "large.zarr"
    make(source, (depth, size, size))
    run = measured(folder, job(source, MEMORY, 1), 1, MEMORY)
    peak, array = max(run.peaks) / 1e6, 4 * depth * size**2 / 1e6
    name = f"{depth} × {size} × {size}, 1 worker with {MEMORY / 1e6:.0f} MB"
    found.add(f"{name}: peak", peak, "MB", "memory", f"the array has {array:.0f} MB")
    found.targets.append(Target("peak of the memory given", max(run.peaks) / MEMORY, 1.0, "at most"))
    shutil.rmtree(source)
    for length in (256, 512):
        source = folder / f"{length}.zarr"
        make(source, (length,) * 3)
        for side in (64, 128, 256):
            run = measured(folder, job(source, ENOUGH, 1, (side,) * 3, 2), 1, ENOUGH)
            found.add(f"array {length}³, blocks {side}³: peak", max(run.peaks) / 1e6, "MB", "memory")
        shutil.rmtree(source)


def cost_model(found: Report, folder: Path, size: int) -> Pairs:
    """Predicted and measured, for several blocks and steps per pass."""
    source = folder / "cube.zarr"
    make(source, (size,) * 3, chunk=min(SIDES))
    pairs: Pairs = []
    for side in SIDES:
        for cycles in CYCLES:
            run = measured(folder, job(source, ENOUGH, 1, (side,) * 3, cycles), 1, ENOUGH)
            name = f"blocks {side}³, {cycles} step{'s' if cycles > 1 else ''} per pass"
            expected = 1e9 * predicted(run) / (size**3 * STEPS)
            found.add(name, run.per_voxel, "ns per voxel and step", "ours", f"predicted {expected:.1f}")
            pairs.append((expected, run.per_voxel, name))
    shutil.rmtree(source)
    best, foretold = min(pairs, key=lambda pair: pair[1]), min(pairs)
    found.add("the best of these", best[1], "ns per voxel and step", "ours", best[2])
    found.add("the one the model chooses", foretold[1], "ns per voxel and step", "ours", foretold[2])
    return pairs


def draw(found: Report, pairs: Pairs, path: Path) -> None:
    picture, (left, right) = report.figure_of(1, 2, (10, 4.2))
    peaks = {name: entry for name, entry in found.measurements.items() if name.endswith("peak")}
    short = {name.removesuffix(": peak"): entry for name, entry in peaks.items()}
    report.bars(left, short, "MB", log=False, title="Peak memory of a worker")
    for (expected, actual, name), marker in zip(pairs, len(SIDES) * "osD", strict=False):
        side = SIDES.index(int(name.split("³")[0].removeprefix("blocks ")))
        right.loglog(expected, actual, marker, color=f"C{side}")
    for side, length in enumerate(SIDES):
        right.plot([], [], "o", color=f"C{side}", label=f"blocks {length}³")
    for cycles, marker in zip(CYCLES, "osD", strict=True):
        right.plot(
            [], [], marker, color="#9a9a9a", label=f"{cycles} step{'s' if cycles > 1 else ''} per pass"
        )
    every = [value for pair in pairs for value in pair[:2]]
    ends = [0.8 * min(every), 1.25 * max(every)]
    right.plot(ends, ends, color="#9a9a9a", linewidth=1)
    right.set(xlabel="predicted, ns per voxel and step", ylabel="measured", xlim=ends, ylim=ends)
    right.set_title("The cost model", loc="left", fontweight="bold")
    right.legend(frameon=False, fontsize=8)
    report.plain(right)
    report.save_picture(picture, path)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=512, help="of the cube that one and two workers filter")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--model-size", type=int, default=256, help="of the cube for the cost model")
    report.add_places(parser)
    chosen = parser.parse_args(arguments)
    found = Report(
        "tiled",
        {
            "model": repr(MODEL),
            "steps": STEPS,
            "chunks": CHUNK,
            "rounds": chosen.rounds,
            "task ms": 1e3 * STORE_TASK_SECONDS,
            "store MB/s": STORE_BYTES_PER_SECOND / 1e6,
            "network MB/s": NETWORK_BYTES_PER_SECOND / 1e6,
        },
        timing.environment(("aniso", "numpy", "numba", "dask", "distributed", "zarr")),
    )
    rates(found)
    with tempfile.TemporaryDirectory(prefix="aniso-") as folder:
        speed(found, Path(folder), chosen.size, chosen.rounds)
        memory(found, Path(folder), chosen.size)
        pairs = cost_model(found, Path(folder), chosen.model_size)
    block_plan.plan(found)
    block_plan.sides(found)
    found.show()
    if chosen.json:
        found.save(chosen.json)
    if chosen.picture:
        draw(found, pairs, chosen.picture)


if __name__ == "__main__":
    main(sys.argv[1:])
