"""What steps of all kinds cost, as multiples of an explicit step of edge-enhancing diffusion in the same run.

    python -m benchmarks.steps --json benchmarks/results/steps.json

Only steps are timed, of evolutions that have their memory and threads already: in a whole call, the first use
of fresh memory can take longer than a step. All take turns, and the shortest time of each counts.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import aniso
from aniso.engines import Problem
from aniso.schemes import Cycle
from benchmarks import counting, machine, timing
from benchmarks.baselines import plain
from benchmarks.eed import ALPHA, CONTRAST, GAMMA, PARAMETERS, SIGMA, STEP
from benchmarks.report import YARDSTICK, Report, Target
from benchmarks.scaling import picture_of
from benchmarks.timing import Contestant

STENCIL = aniso.DeltaStencil(alpha=ALPHA, gamma=GAMMA)
EED = aniso.EdgeEnhancing(contrast=CONTRAST, sigma=SIGMA)
CED = aniso.CoherenceEnhancing(contrast=CONTRAST, sigma=SIGMA, rho=3.0)
CLOCKS: dict[str, Callable[[], float]] = {"elapsed": time.perf_counter, "processor": time.process_time}
#: Steps of a cycle: some in one pass, which has up to eight steps in images and four in volumes, and some in
#: more than one, over stored tensors.
SHORT, LONG = {"2-D": (2, 8), "3-D": (2, 4)}, (16, 32)


#: Ratio to an EED step of the same dimension → the most that is wanted, for images and for volumes.
WANTED = {
    "EED, three channels": (2.5, None),
    "CED": (2.8, 3.6),
    "inner step": (0.2, 0.45),
}
FED_IN_STEPS, TIMES_PLAIN_C, SMALL = 8.0, 22.0, 0.5
#: Steps of a call of the plain C program, enough that the first use of fresh memory hardly counts.
C_STEPS = 10


def volume_of(size: int) -> Any:
    """Blocks and noise."""
    z, y, x = np.indices((size,) * 3)
    blocks = 128 + 100 * np.sign(np.sin(z / 9) * np.sin(y / 7 + x / 11))
    return (blocks + np.random.default_rng(1).normal(0, 10, blocks.shape)).astype(np.float32)


def cycle_of(steps: int) -> Cycle:
    """A cycle with steps far below the limit: it may be repeated for ever."""
    return Cycle(steps * 0.02, ((1.0, 0.02),) * steps)


def measure(size: int, volume_size: int, rounds: int, threads: int, clock: str) -> Report:
    """Everything, in one contest."""
    settings = {
        "size": size,
        "volume": volume_size,
        "rounds": rounds,
        "threads": threads,
        "clock": clock,
        "steps of plain C": C_STEPS,
        **PARAMETERS,
    }
    found = Report("steps", settings, timing.environment(("aniso", "numpy", "numba")))
    arrays = {"2-D": picture_of(size), "3-D": volume_of(volume_size)}
    small = picture_of(64)
    explicit = Cycle(STEP, ((1.0, STEP),))
    entrants = []

    def enter(name: str, image: Any, model: Any, cycles: list[Cycle]) -> None:
        spacings = (1.0,) * (image.ndim - 1)
        evolution = Problem(model, STENCIL, spacings, threads=threads).start(image.copy())

        def call() -> None:
            for cycle in cycles:
                evolution.advance(cycle)

        entrants.append(Contestant(name, call))

    for dimension, grey in arrays.items():
        enter(f"{dimension} EED", grey[None], EED, [explicit])
        colour = np.stack([grey, grey[::-1], grey[:, ::-1]])
        enter(f"{dimension} EED, three channels", colour, EED, [explicit])
        enter(f"{dimension} CED", grey[None], CED, [explicit])
        for count in (*SHORT[dimension], *LONG):
            enter(f"{dimension} {count}", grey[None], EED, [cycle_of(count)])
    limit = aniso.stability.stable_step(EED, STENCIL)
    enter("FED(5)", arrays["2-D"][None], EED, list(aniso.FED(5).plan(10.0, limit)))
    call = partial(aniso.diffuse, small, EED, 10 * STEP, stencil=STENCIL, scheme=aniso.Explicit(step=STEP))
    entrants.append(Contestant("64²", lambda: [call() for _ in range(50)], 50))
    try:
        program = plain.edge_enhancing()
        entrants.append(Contestant(YARDSTICK, lambda: program(arrays["2-D"], C_STEPS, **PARAMETERS), C_STEPS))
    except plain.NoCompilerError as error:
        found.skip(YARDSTICK, str(error))
    best = {
        name: times.per_step for name, times in timing.contest(entrants, rounds, clock=CLOCKS[clock]).items()
    }

    for column, (dimension, grey) in enumerate(arrays.items()):
        cost = {kind: best[f"{dimension} {kind}"] for kind in ("EED", "EED, three channels", "CED")}
        for kind, (few, many) in {"inner step": SHORT[dimension], "inner step of a long cycle": LONG}.items():
            cost[kind] = (best[f"{dimension} {many}"] - best[f"{dimension} {few}"]) / (many - few)
        for kind, seconds in cost.items():
            ratio = seconds / cost["EED"]
            note = f"{1e9 * seconds / grey.size:.2f} ns per pixel, {ratio:.2f} EED steps"
            found.add(f"{dimension}: {kind}", 1e3 * seconds, "ms", "ours", note)
            bound = WANTED.get(kind, (None, None))[column]
            if bound is not None:
                found.targets.append(Target(f"{dimension}: {kind} / EED step", ratio, bound, "at most"))
        if dimension == "2-D":
            cycles = best["FED(5)"] / cost["EED"]
            found.targets.append(Target("FED(5) to time 10 / EED step", cycles, FED_IN_STEPS, "at most"))
            if YARDSTICK in best:
                found.add(YARDSTICK, 1e3 * best[YARDSTICK], "ms", "theirs", "one thread")
                times = best[YARDSTICK] / cost["EED"]
                found.targets.append(Target("EED step against plain C", times, TIMES_PLAIN_C))
    found.add("ten steps at 64²", 1e3 * best["64²"], "ms", "ours", "the whole call")
    found.targets.append(Target("ten steps at 64²", 1e3 * best["64²"], SMALL, "at most", "ms"))
    return found


def add_limits(found: Report, threads: int, pixels_per_second: float) -> None:
    """Add what the machine can do, and how much of it an EED step on an image uses."""
    copy, peak = machine.memory_bandwidth(threads)["copy"], machine.peak_arithmetic(threads)
    operations = counting.operations_per_pixel(EED, STENCIL)
    found.add("copy", copy / 1e9, "GB/s", "machine", f"EED: {8 * pixels_per_second / copy:.0%} at 8 bytes")
    share = f"EED: {operations * pixels_per_second / peak:.0%} at {operations} operations per pixel"
    found.add("multiply-adds", peak / 1e9, "GFLOP/s", "machine", share)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.steps", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--size", type=int, default=2048, help="pixels along each side of the image")
    parser.add_argument("--volume", type=int, default=128, help="voxels along each side of the volume")
    parser.add_argument("--repeats", type=int, default=7, help="rounds of the contest; the best one counts")
    parser.add_argument("--threads", type=int, default=min(2, timing.cores()))
    parser.add_argument(
        "--clock",
        choices=list(CLOCKS),
        default="elapsed",
        help="processor time is that of all threads together, and hardly depends on other load",
    )
    parser.add_argument("--json", type=Path, help="where to write the figures")
    given = parser.parse_args(arguments)
    found = measure(given.size, given.volume, given.repeats, given.threads, given.clock)
    if given.clock == "elapsed":
        milliseconds = found.measurements["2-D: EED"].value
        add_limits(found, given.threads, 1e3 * given.size**2 / milliseconds)
    found.show()
    if given.json:
        found.save(given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
