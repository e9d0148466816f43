"""Edge-enhancing diffusion: aniso compared with a plain C program, PyTorch and other packages.

    python -m benchmarks.eed --json benchmarks/results/eed.json --picture benchmarks/results/eed.png

All that compute edge-enhancing diffusion get the same image, σ, radius, diffusivity, stencil and steps, and
must agree before any time is taken. Other packages have no such filter and run what comes closest.
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
from benchmarks import other_packages, report, timing
from benchmarks.baselines import plain
from benchmarks.report import YARDSTICK, Measurement, Report, Target
from benchmarks.timing import CONSOLE, Contestant

Image = npt.NDArray[np.float32]

SIGMA, CONTRAST, STEP, ALPHA, GAMMA = 1.0, 3.0, 0.2, 0.41, 1.0
PARAMETERS = {"sigma": SIGMA, "contrast": CONTRAST, "step": STEP, "alpha": ALPHA, "gamma": GAMMA}
GREY_RANGE = 255.0
#: Single precision, and ten steps that may amplify its rounding where the tensor turns quickly.
AGREEMENT = 1e-4

FAST_MATH = f"{YARDSTICK} -ffast-math"
PYTORCH = "PyTorch, six channels, eager"
PERONA_MALIK = "aniso Perona–Malik"
COHERENCE = "aniso CED"

#: What the paper reports for 10 steps on 2048² pixels, in seconds.
PAPER = {"paper: C, Ryzen 5800X": 1.6, "paper: PyTorch, RTX 3090": 0.15}


def eed_name(threads: int) -> str:
    """How aniso's edge-enhancing diffusion is called in the tables."""
    return f"aniso EED, {threads} thread{'s' if threads > 1 else ''}"


def evolved(image: Any, steps: int, threads: int, model: Any = None, engine: Any = "cpu") -> npt.NDArray[Any]:
    """The image after explicit steps with aniso."""
    return aniso.diffuse(
        image,
        model or aniso.EdgeEnhancing(contrast=CONTRAST, sigma=SIGMA),
        steps * STEP,
        stencil=aniso.DeltaStencil(alpha=ALPHA, gamma=GAMMA),
        scheme=aniso.Explicit(step=STEP),
        engine=engine,
        threads=threads,
    )


def eed_programs(threads: int, found: Report) -> dict[str, Callable[[Image, int], Any]]:
    """All that compute edge-enhancing diffusion, as functions of image and steps."""
    programs: dict[str, Callable[[Image, int], Any]] = {
        eed_name(threads): lambda image, steps: evolved(image, steps, threads),
        eed_name(1): lambda image, steps: evolved(image, steps, 1),
    }
    try:
        ordinary, fast = plain.edge_enhancing(), plain.edge_enhancing(fast_math=True)
        programs[YARDSTICK] = lambda image, steps: ordinary(image, steps, **PARAMETERS)
        programs[FAST_MATH] = lambda image, steps: fast(image, steps, **PARAMETERS)
    except plain.NoCompilerError as error:
        found.skip(YARDSTICK, str(error))
    try:
        import torch

        from benchmarks.baselines import six_channel

        torch.set_num_threads(threads)
        programs[PYTORCH] = lambda image, steps: six_channel.edge_enhancing(
            torch.from_numpy(image), steps, **PARAMETERS
        ).numpy()
    except ImportError as error:
        found.skip(PYTORCH, f"{error} (pip install torch)")
    return programs


def check_agreement(programs: dict[str, Callable[[Image, int], Any]], image: Image, steps: int) -> None:
    """All programs give the same image: on a part of it that of the reference engine, too."""
    part = np.ascontiguousarray(image[:200, :256])
    truth = evolved(part.astype(np.float64), steps, 1, engine="reference")
    name, first = next(iter(programs.items()))
    whole = first(image, steps)
    CONSOLE.print(
        f"largest difference after {steps} steps, grey values 0 to {GREY_RANGE:g}:", highlight=False
    )
    for other, program in programs.items():
        on_part = float(np.abs(program(part, steps) - truth).max())
        on_whole = float(np.abs(program(image, steps) - whole).max())
        CONSOLE.print(
            f"  {other}: {on_part:.1e} from the reference engine in double precision"
            + ("" if other == name else f", {on_whole:.1e} from {name} on the whole image"),
            highlight=False,
        )
        assert on_part < AGREEMENT * GREY_RANGE, f"{other} differs from the reference engine"
        assert on_whole < AGREEMENT * GREY_RANGE, f"{other} differs from {name}"


def measure(size: int, steps: int, rounds: int, threads: int) -> Report:
    """Everything, in one contest."""
    found = Report(
        "eed",
        {"size": size, "steps": steps, "rounds": rounds, "threads": threads, **PARAMETERS},
        timing.environment(("aniso", "numpy", "numba", "torch", *other_packages.DISTRIBUTIONS)),
    )
    image = np.asarray(aniso.samples.shapes(size).image, dtype=np.float32)
    programs = eed_programs(threads, found)
    if YARDSTICK in programs:
        found.environment["compiler"] = plain.compiler_version()
    check_agreement(programs, image, steps)

    notes: dict[str, str] = {PYTORCH: f"{threads} threads", YARDSTICK: "one thread", FAST_MATH: "one thread"}
    entrants = [Contestant(name, partial(program, image, steps), steps) for name, program in programs.items()]
    scalar = aniso.PeronaMalik(contrast=10.0, sigma=0.0)
    coherence = aniso.CoherenceEnhancing(contrast=CONTRAST, sigma=1.0, rho=3.0)
    entrants.append(Contestant(PERONA_MALIK, lambda: evolved(image, steps, threads, scalar), steps))
    entrants.append(Contestant(COHERENCE, lambda: evolved(image, steps, threads, coherence), steps))
    notes |= {PERONA_MALIK: f"{threads} threads", COHERENCE: f"σ 1, ρ 3, {threads} threads"}
    for package, run in other_packages.installed(other_packages.PERONA_MALIK, image, threads, found.skip):
        entrants.append(Contestant(package.name, partial(run, steps), steps, rounds=3))
        notes[package.name] = package.note
    for package, run in other_packages.installed((other_packages.COHERENCE,), image, threads, found.skip):
        # Seconds per iteration: one call of two iterations is enough.
        entrants.append(Contestant(package.name, partial(run, 2), 2, rounds=1, warm_up=False))
        notes[package.name] = package.note

    for name, times in timing.contest(entrants, rounds).items():
        found.add_timing(name, times, "ours" if name.startswith("aniso") else "theirs", notes.get(name, ""))
    found.targets = targets(found, eed_name(threads))
    return found


def targets(found: Report, ours: str) -> list[Target]:
    """How many times faster than others aniso is wanted to be, and is."""
    wanted = [
        (ours, YARDSTICK, 18.0),
        (ours, FAST_MATH, 12.0),
        (ours, PYTORCH, 45.0),
        (ours, "OpenCV Perona–Malik", 2.0),
        (PERONA_MALIK, "OpenCV Perona–Malik", 2.0),
        (COHERENCE, other_packages.COHERENCE.name, 60.0),
    ]
    entries = found.measurements
    return [
        Target(f"{ours} against {theirs}", entries[theirs].value / entries[ours].value, bound)
        for ours, theirs, bound in wanted
        if theirs in entries
    ]


def picture(found: Report, path: Path) -> None:
    """Time per step of all, longer bars are slower."""
    entries = dict(sorted(found.measurements.items(), key=lambda item: item[1].value))
    coherence = (COHERENCE, other_packages.COHERENCE.name)
    ced = {name: entry for name, entry in entries.items() if name in coherence}
    scalar = {
        name: entry
        for name, entry in entries.items()
        if name == PERONA_MALIK or name in {package.name for package in other_packages.PERONA_MALIK}
    }
    eed = {name: entry for name, entry in entries.items() if name not in ced and name not in scalar}
    settings, machine = found.settings, found.environment
    if (settings["size"], settings["steps"]) == (2048, 10):
        eed |= {name: Measurement(1e3 * seconds / 10, "ms", "machine") for name, seconds in PAPER.items()}
        eed = dict(sorted(eed.items(), key=lambda item: item[1].value))
    drawing, panels = report.figure_of(
        3, 1, (10, 8), sharex=True, height_ratios=[len(eed) + 1.2, len(scalar) + 1.2, len(ced) + 1.2]
    )
    report.bars(
        panels[0],
        eed,
        "ms",
        title="edge-enhancing diffusion, same result for all (orange: from the paper)",
    )
    report.bars(panels[1], scalar, "ms", title="Perona–Malik and the like, each package's own")
    report.bars(panels[2], ced, "ms", title="coherence-enhancing diffusion, σ 1, ρ 3")
    values = [entry.value for entry in entries.values()]
    panels[2].set_xlim(0.6 * min(values), 5 * max(values))
    for axes in panels[:2]:
        axes.set_xlabel("")
    panels[2].set_xlabel("milliseconds per step (logarithmic)")
    drawing.suptitle(
        f"{settings['size']} × {settings['size']} pixels, float32, best of {settings['rounds']} rounds; "
        f"{machine['processor']}, {machine['cores']} cores",
        fontsize=11,
    )
    report.save_picture(drawing, path)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.eed", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--size", type=int, default=2048, help="pixels along each side")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5, help="rounds of the contest; the best one counts")
    parser.add_argument("--threads", type=int, default=min(2, timing.cores()))
    parser.add_argument("--quick", action="store_true", help="512 pixels and two rounds")
    report.add_places(parser)
    given = parser.parse_args(arguments)
    if given.quick:
        given.size, given.repeats = min(given.size, 512), min(given.repeats, 2)
    found = measure(given.size, given.steps, given.repeats, given.threads)
    report.deliver(found, given, picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
