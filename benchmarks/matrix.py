"""What the slow and obvious ways cost: assembling the sparse matrix, and steps of the reference engine.

python -m benchmarks.matrix --json benchmarks/results/matrix.json --picture benchmarks/results/matrix.png
"""

from __future__ import annotations

import argparse
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import aniso
from benchmarks import report, timing
from benchmarks.baselines import plain
from benchmarks.eed import ALPHA, GAMMA, PARAMETERS, evolved
from benchmarks.report import YARDSTICK, Report
from benchmarks.timing import Contestant

Field = npt.NDArray[np.float64]

SIZES = (64, 128, 256, 512)
STEPS = 4


def tensors(size: int) -> tuple[Field, Field, Field]:
    """Tensors that turn from cell to cell, with eigenvalues 1 and 0.1."""
    angle = np.add.outer(np.linspace(0, 3, size + 1), np.linspace(0, 5, size + 1))
    cosine, sine = np.cos(angle), np.sin(angle)
    return cosine**2 + 0.1 * sine**2, 0.9 * cosine * sine, sine**2 + 0.1 * cosine**2


def peak_megabytes(call: Callable[[], Any]) -> float:
    """What NumPy and SciPy allocate at most during a call, its result included."""
    tracemalloc.start()
    try:
        result = call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result is not None
    return peak / 2**20


def measure(sizes: tuple[int, ...], rounds: int) -> Report:
    found = Report(
        "matrix",
        {"sizes": list(sizes), "rounds": rounds, **PARAMETERS},
        timing.environment(("aniso", "numpy", "scipy")),
    )
    stencil = aniso.DeltaStencil(alpha=ALPHA, gamma=GAMMA)
    calls: dict[str, tuple[Callable[[], Any], int, int]] = {}
    for size in sizes:
        image = np.asarray(aniso.samples.shapes(size).image)
        cells = tensors(size)
        matrix = aniso.stencil.matrix(*cells, stencil)
        calls[f"assemble {size}²"] = (partial(aniso.stencil.matrix, *cells, stencil), 1, size)
        calls[f"apply {size}²"] = (partial(matrix.dot, image.ravel()), 1, size)
        reference = partial(evolved, image, STEPS, 1, engine="reference")
        calls[f"reference step {size}²"] = (reference, STEPS, size)
    entrants = [Contestant(name, call, steps) for name, (call, steps, _) in calls.items()]
    try:
        program, image = plain.edge_enhancing(), np.asarray(aniso.samples.shapes(512).image, np.float32)
        entrants.append(Contestant(YARDSTICK, lambda: program(image, STEPS, **PARAMETERS), STEPS))
    except plain.NoCompilerError as error:
        found.skip(YARDSTICK, str(error))
    times = timing.contest(entrants, rounds)
    for name, (call, _, size) in calls.items():
        per_pixel = f"{1e9 * times[name].per_step / size**2:.0f} ns per pixel"
        found.add_timing(name, times[name], "ours", per_pixel)
        if not name.startswith("apply"):
            peak = peak_megabytes(call)
            found.add(
                f"memory, {name}", peak, "MB", "memory", f"{peak * 2**20 / size**2:.0f} bytes per pixel"
            )
    if YARDSTICK in times:
        found.add_timing(YARDSTICK, times[YARDSTICK], "theirs", "per step at 512², one thread")
    return found


def picture(found: Report, path: Path) -> None:
    """Time and memory over size, both logarithmic."""
    sizes = found.settings["sizes"]
    drawing, panels = report.figure_of(1, 2, (12, 4.8))
    parts = (
        ("assemble", "assemble the matrix", "o-", "#1f77b4"),
        ("reference step", "reference step", "^-", "#2ca02c"),
        ("apply", "apply the matrix", "s-", "#ff7f0e"),
    )
    for axes, prefix, unit, title in (
        (panels[0], "", "ms", "time"),
        (panels[1], "memory, ", "MB", "peak memory"),
    ):
        for name, words, style, colour in parts:
            keys = [f"{prefix}{name} {size}²" for size in sizes]
            values = [found.measurements[key].value for key in keys if key in found.measurements]
            if not values:
                continue
            axes.plot(sizes, values, style, color=colour)
            axes.annotate(
                f"{words}\n{report.figure(values[-1])} {unit}",
                (sizes[-1], values[-1]),
                (8, 0),
                textcoords="offset points",
                va="center",
                color=colour,
            )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(sizes, [f"{size}²" for size in sizes])
        axes.set_xlim(0.85 * sizes[0], (3.5 if len(sizes) > 2 else 1.8) * sizes[-1])
        axes.set_ylabel(unit)
        axes.set_title(f"{title} (logarithmic)", loc="left", fontweight="bold")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    report.save_picture(drawing, path)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.matrix", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--repeats", type=int, default=5, help="rounds of the contest; the best one counts")
    parser.add_argument("--quick", action="store_true", help="two sizes, two rounds")
    report.add_places(parser)
    given = parser.parse_args(arguments)
    found = measure(SIZES[:2], 2) if given.quick else measure(SIZES, given.repeats)
    report.deliver(found, given, picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
