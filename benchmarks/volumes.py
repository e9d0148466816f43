"""Volumes: cost of a step per voxel, compared with images, SimpleITK and eager PyTorch.

    python -m benchmarks.volumes --json benchmarks/results/volumes.json

Images and volumes are filtered with the same model, σ, stencil and steps. PyTorch computes the same and must
agree before any time is taken; SimpleITK has no such filter and runs its scalar one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import aniso
from benchmarks import fresh, report, timing
from benchmarks.eed import ALPHA, CONTRAST, GAMMA, GREY_RANGE, PARAMETERS, SIGMA, evolved
from benchmarks.other_packages import GRADIENT
from benchmarks.report import Kind, Measurement, Report, Target
from benchmarks.timing import CONSOLE, Contestant, Timing

Volume = npt.NDArray[np.float32]

PYTORCH = "PyTorch, eager"
SIMPLEITK = GRADIENT.name
#: Peak memory besides the caller's volume, by what is measured.
MEMORY = {"explicit": "EED, explicit", "ced": "CED, explicit", "fsi": "EED, FSI cycle"}


def threaded(name: str, threads: int) -> str:
    """How a contestant of ours is called."""
    return f"{name}, {threads} thread{'s' if threads > 1 else ''}"


def sample(size: int) -> Volume:
    """Bright balls and rods, grey values 0 to 255, under noise."""
    rng = np.random.default_rng(0)
    z, y, x = np.ogrid[0:1:size * 1j, 0:1:size * 1j, 0:1:size * 1j]  # fmt: skip
    volume = np.full((size, size, size), 40, np.float32)
    for _ in range(12):
        (cz, cy, cx), radius = rng.uniform(0, 1, 3), rng.uniform(0.05, 0.2)
        inside = (z - cz) ** 2 + (y - cy) ** 2 + (x - cx) ** 2 < radius**2
        volume[inside] = rng.uniform(80, 250)
        rod = (y - cy + 0.4 * (z - cz)) ** 2 + (x - cx) ** 2 < 0.0005
        volume[rod] = rng.uniform(80, 250)
    for plane in volume:
        plane += 8 * rng.standard_normal(plane.shape, dtype=np.float32)
    return volume.clip(0, GREY_RANGE)


def cycle(volume: Volume, inner: int, threads: int) -> None:
    """One cycle of Fast Explicit Diffusion with this many inner steps."""
    model = aniso.EdgeEnhancing(contrast=CONTRAST, sigma=SIGMA)
    stencil = aniso.DeltaStencil(alpha=ALPHA, gamma=GAMMA)
    limit = aniso.stability.stable_step(model, stencil, ndim=3)
    # A little less than a cycle of n steps reaches, 0.9·limit·(n² + n)/3.
    reach = 0.89 * limit * (inner * inner + inner) / 3
    aniso.diffuse(volume, model, reach, stencil=stencil, scheme=aniso.FED(cycles=1), threads=threads)


def pytorch(threads: int) -> Callable[[Volume, int], Volume]:
    """The same diffusion, a function of volume and steps."""
    import torch

    from benchmarks.baselines import eager_volume

    torch.set_num_threads(threads)
    return lambda volume, steps: eager_volume.edge_enhancing(
        torch.from_numpy(volume), steps, **PARAMETERS
    ).numpy()


def check_agreement(programs: dict[str, Callable[[Volume, int], Any]], volume: Volume) -> None:
    """All give what the reference engine gives, on a part of the volume."""
    part = np.ascontiguousarray(volume[:40, :48, :56])
    truth = evolved(part.astype(np.float64), 3, 1, engine="reference")
    for name, program in programs.items():
        error = float(np.abs(program(part, 3) - truth).max())
        CONSOLE.print(f"{name}: {error:.1e} from the reference engine after 3 steps", highlight=False)
        assert error < 1e-4 * GREY_RANGE, f"{name} differs from the reference engine"


def measure(size: int, image_size: int, steps: int, rounds: int, threads: int) -> Report:
    """Everything, in one contest."""
    found = Report(
        "volumes",
        {"size": size, "image size": image_size, "steps": steps, "rounds": rounds, **PARAMETERS},
        timing.environment(("aniso", "numpy", "numba", "torch", "SimpleITK")),
    )
    volume = sample(size)
    image = np.asarray(aniso.samples.shapes(image_size).image, dtype=np.float32)
    coherence = aniso.CoherenceEnhancing(contrast=CONTRAST, sigma=1.0, rho=3.0)
    few = max(2, steps // 4)

    programs: dict[str, Callable[[Volume, int], Any]] = {
        "aniso": lambda part, count: evolved(part, count, threads)
    }
    try:
        programs[PYTORCH] = pytorch(threads)
    except ImportError as error:
        found.skip(PYTORCH, f"{error} (pip install torch)")
    check_agreement(programs, volume)

    def ours(name: str, count: int, pixels: Any, used: int, model: Any = None) -> Contestant:
        return Contestant(threaded(name, used), lambda: evolved(pixels, count, used, model), count)

    entrants = []
    for used in sorted({threads, 1}, reverse=True):
        entrants += [
            ours("aniso EED, image", steps, image, used),
            ours("aniso EED", steps, volume, used),
            ours("aniso CED", steps, volume, used, coherence),
        ]
    short, long = 4, 14
    entrants += [Contestant(str(count), partial(cycle, volume, count, threads)) for count in (short, long)]
    if PYTORCH in programs:
        # The first step of PyTorch asks for its memory; later ones use it again.
        entrants.append(
            Contestant(PYTORCH, lambda: programs[PYTORCH](volume, few), few, rounds=2, warm_up=False)
        )
    try:
        run = GRADIENT.loaded(volume, threads)
        entrants.append(Contestant(SIMPLEITK, lambda: run(few), few, rounds=2, warm_up=False))
    except ImportError as error:
        found.skip(SIMPLEITK, f"{error} ({GRADIENT.install})")

    times = timing.contest(entrants, rounds)
    inner = (times.pop(str(long)).best - times.pop(str(short)).best) / (long - short)
    notes = {PYTORCH: f"{threads} threads, same result", SIMPLEITK: f"{threads} threads, a scalar filter"}
    for name, taken in times.items():
        pixels = image.size if name.startswith("aniso EED, image") else volume.size
        kind: Kind = "ours" if name.startswith("aniso") else "theirs"
        found.measurements[name] = per_voxel(taken, pixels, kind, notes.get(name, ""))
    name = threaded("aniso FED, inner step", threads)
    found.add(name, 1e9 * inner / volume.size, "ns", "ours", f"a cycle of {long} steps minus one of {short}")
    for what, title in MEMORY.items():
        extra = fresh.run("volume", what, str(size))["volumes"]
        found.add(f"memory, {title}", extra, "volumes", "memory", "besides the caller's")
    found.targets = targets(found, threads)
    return found


def per_voxel(taken: Timing, pixels: int, kind: Kind, note: str) -> Measurement:
    """Nanoseconds per step and pixel or voxel."""
    return Measurement(1e9 * taken.per_step / pixels, "ns", kind, note, taken.jitter)


def targets(found: Report, threads: int) -> list[Target]:
    """What is wanted, and what is."""
    values = {name: entry.value for name, entry in found.measurements.items()}
    volume, image = values[threaded("aniso EED", threads)], values[threaded("aniso EED, image", threads)]
    coherence = values[threaded("aniso CED", threads)]
    wanted = [
        Target("EED, a voxel against a pixel", volume / image, 4.0, "at most"),
        Target("CED against EED", coherence / volume, 8.0, "at most"),
        Target("memory of explicit EED", values[f"memory, {MEMORY['explicit']}"], 3.0, "at most", "volumes"),
    ]
    for theirs, bound in ((SIMPLEITK, 3.0), (PYTORCH, 20.0)):
        if theirs in values:
            wanted.append(Target(f"EED against {theirs}", values[theirs] / volume, bound))
    return wanted


def picture(found: Report, path: Path) -> None:
    """Time per voxel of all, longer bars are slower; and memory."""
    entries = dict(sorted(found.measurements.items(), key=lambda item: item[1].value))
    times = {name: entry for name, entry in entries.items() if entry.unit == "ns"}
    memory = {
        name.removeprefix("memory, "): entry for name, entry in entries.items() if entry.unit == "volumes"
    }
    settings, machine = found.settings, found.environment
    drawing, panels = report.figure_of(2, 1, (10, 6.5), height_ratios=[len(times) + 1.2, len(memory) + 1.2])
    report.bars(panels[0], times, "ns", title="time per step and voxel (image: per pixel)")
    panels[0].set_xlabel("nanoseconds (logarithmic)")
    report.bars(panels[1], memory, "volumes", log=False, title="peak extra memory, in float32 volumes")
    drawing.suptitle(
        f"{settings['size']}³ voxels, float32, best of {settings['rounds']} rounds; "
        f"{machine['processor']}, {machine['cores']} cores",
        fontsize=11,
    )
    report.save_picture(drawing, path)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.volumes", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--size", type=int, default=256, help="voxels along each side")
    parser.add_argument("--image-size", type=int, default=2048, help="pixels along each side of the image")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5, help="rounds of the contest; the best one counts")
    parser.add_argument("--threads", type=int, default=min(2, timing.cores()))
    parser.add_argument("--quick", action="store_true", help="96 voxels, 512 pixels and two rounds")
    report.add_places(parser)
    given = parser.parse_args(arguments)
    if given.quick:
        given.size, given.image_size = min(given.size, 96), min(given.image_size, 512)
        given.repeats = min(given.repeats, 2)
    found = measure(given.size, given.image_size, given.steps, given.repeats, given.threads)
    report.deliver(found, given, picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
