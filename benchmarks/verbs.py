"""Cost of the verbs: time per pixel, choosing and applying, and peak memory, each in a fresh process.

    python -m benchmarks.verbs --json benchmarks/results/verbs.json

Images are photographs of scikit-image, and for enhance a synthetic fingerprint, repeated to the wanted size,
with noise; volumes are balls and rods.
All are float32. Times are the best of several calls, after one call that loads the kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import aniso
from benchmarks import timing
from benchmarks.fresh import forget_peak, peak, resident
from benchmarks.report import Report, Target
from benchmarks.timing import CONSOLE

_ROOT = Path(__file__).resolve().parents[1]
NOISE = 20.0

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Case:
    """A call, and what it may cost at most: microseconds per pixel, and arrays of memory or seconds."""

    verb: str
    shape: tuple[int, ...]
    colour: bool = False
    microseconds: float | None = None
    arrays: float | None = None
    seconds: float | None = None
    megabytes: float | None = None

    @property
    def name(self) -> str:
        """What is filtered."""
        size = " × ".join(map(str, self.shape))
        return f"{self.verb}, {size}{', colour' if self.colour else ''}"


CASES = (
    Case("denoise", (1024, 1024)),
    Case("denoise", (2048, 2048), microseconds=1.0, arrays=8),
    Case("denoise", (4096, 4096)),
    Case("denoise", (2048, 2048), colour=True, microseconds=2.5),
    Case("denoise", (128, 128, 128), microseconds=1.5, arrays=10),
    Case("denoise", (256, 256, 256), seconds=28, megabytes=1000),
    Case("enhance", (2048, 2048), microseconds=1.0),
    Case("inpaint", (2160, 3840), seconds=2),
)


def picture(shape: tuple[int, ...], colour: bool, lines: bool = False) -> Array:
    """A photograph, lines or a volume with noise."""
    rng = np.random.default_rng(0)
    if len(shape) == 3:
        from benchmarks.volumes import sample

        return sample(shape[0])
    from skimage import data

    photo: Any = data.astronaut() if colour else data.camera()
    if lines:
        photo = aniso.samples.fingerprint(512, noise=0).truth
    turns = [-(-n // side) for n, side in zip(shape, photo.shape, strict=False)]
    tiled = np.tile(photo, turns + [1] * colour)[: shape[0], : shape[1]]
    noise = rng.standard_normal(tiled.shape, dtype=np.float32)
    return (tiled + np.float32(NOISE) * noise).astype(np.float32)


def call(case: Case) -> Callable[[], Any]:
    """The call itself."""
    image = picture(case.shape, case.colour, lines=case.verb == "enhance")
    verb = getattr(aniso, case.verb)
    if case.verb == "inpaint":
        unknown = np.random.default_rng(1).random(case.shape) > 0.1
        return lambda: verb(image, unknown)
    return lambda: verb(image, channel_axis=-1 if case.colour else None)


def measure_here(case: Case, rounds: int) -> dict[str, float]:
    """Time and memory in this process."""
    side = {2: 128, 3: 24}[len(case.shape)]
    call(Case(case.verb, (side,) * len(case.shape), case.colour))()
    run = call(case)
    forget_peak()
    before = resident()
    seconds = []
    for number in range(rounds):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
        if number == 0:
            extra = peak() - before
    return {"seconds": min(seconds), "bytes": float(extra)}


def measure_fresh(number: int, rounds: int) -> dict[str, float]:
    """The same in a process of its own."""
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.verbs", "--case", str(number), "--repeats", str(rounds)],
        capture_output=True, text=True, check=True, cwd=_ROOT, env=dict(os.environ),
    )  # fmt: skip
    return dict(json.loads(answer.stdout.splitlines()[-1]))


def measure(cases: tuple[Case, ...], rounds: int) -> Report:
    """Costs of all cases, and targets."""
    found = Report("cost of the verbs", {"rounds": rounds}, timing.environment(["numpy", "scipy", "numba"]))
    per_pixel: dict[str, float] = {}
    for number, case in enumerate(cases):
        costs = measure_fresh(CASES.index(case), rounds)
        pixels = np.prod(case.shape)
        size = 4 * pixels * (3 if case.colour else 1)
        per_pixel[case.name] = 1e6 * costs["seconds"] / pixels
        arrays, megabytes = costs["bytes"] / size, costs["bytes"] / 1e6
        note = f"{costs['seconds']:.2f} s, {megabytes:.0f} MB besides the input"
        found.add(case.name, per_pixel[case.name], "µs", "ours", note)
        found.add(f"memory, {case.name}", arrays, "arrays", "memory", "besides the caller's")
        for bound, value, unit in (
            (case.microseconds, per_pixel[case.name], "µs per pixel"),
            (case.arrays, arrays, "arrays"),
            (case.seconds, costs["seconds"], "s"),
            (case.megabytes, megabytes, "MB"),
        ):
            if bound is not None:
                found.targets.append(Target(case.name, value, bound, "at most", unit))
        CONSOLE.print(f"{number + 1} of {len(cases)}: {case.name}: {note}", highlight=False)
    small, large = (f"denoise, {n} × {n}" for n in (1024, 4096))
    if small in per_pixel and large in per_pixel:
        ratio = per_pixel[large] / per_pixel[small]
        found.targets.append(Target("a pixel of 4096² against one of 1024²", ratio, 1.2, "at most"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="calls of each; the best one counts")
    parser.add_argument("--quick", action="store_true", help="the smallest case only, to see that it works")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--case", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case is not None:
        print(json.dumps(measure_here(CASES[options.case], options.repeats)))
        return
    found = measure(CASES[:1] if options.quick else CASES, 1 if options.quick else options.repeats)
    found.show()
    if options.json is not None:
        found.save(options.json)
        CONSOLE.print(f"wrote {options.json}", highlight=False)


if __name__ == "__main__":
    main()
