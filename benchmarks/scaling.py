"""How cost grows, where the time goes, and how far that is from what the machine can do.

python -m benchmarks.scaling --json benchmarks/results/scaling.json --picture benchmarks/results/scaling.png
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import aniso
from benchmarks import counting, fresh, machine, report, timing
from benchmarks.baselines import plain
from benchmarks.eed import ALPHA, CONTRAST, GAMMA, PARAMETERS, SIGMA, STEP, evolved
from benchmarks.report import YARDSTICK, Measurement, Report, Target
from benchmarks.timing import CONSOLE, Contestant, Timing

Image = npt.NDArray[Any]

SIZES = (64, 256, 1024, 2048, 4096, 8192)
RHOS = tuple(range(1, 11))
EED = aniso.EdgeEnhancing(contrast=CONTRAST, sigma=SIGMA)
STENCIL = aniso.DeltaStencil(alpha=ALPHA, gamma=GAMMA)
# More than one block of steps in either case, so that what a long cycle allocates once drops out.
FEW, MANY = 10, 34


class Scaling:
    """One run: sizes, rounds and threads, and the report that fills."""

    def __init__(
        self, sizes: tuple[int, ...], size: int, memory_size: int, rounds: int, threads: int
    ) -> None:
        self.sizes, self.size, self.memory_size = sizes, size, memory_size
        self.rounds, self.threads = rounds, threads
        settings = {"sizes": list(sizes), "size": size, "memory size": memory_size, "rounds": rounds}
        self.found = Report(
            "scaling",
            {**settings, "threads": threads, **PARAMETERS},
            timing.environment(("aniso", "numpy", "numba", "scipy")),
        )
        self.yardstick_times: list[float] = []

    # The reference, measured in each contest.

    def _contest(self, entrants: list[Contestant]) -> dict[str, Timing]:
        times = timing.contest([*entrants, *self._yardstick()], self.rounds)
        if YARDSTICK in times:
            self.yardstick_times.extend(times.pop(YARDSTICK).times)
        return times

    def _yardstick(self) -> Iterator[Contestant]:
        try:
            program = plain.edge_enhancing()
        except plain.NoCompilerError as error:
            if YARDSTICK not in self.found.skipped:
                self.found.skip(YARDSTICK, str(error))
            return
        image = picture_of(min(1024, self.size))
        yield Contestant(YARDSTICK, lambda: program(image, FEW, **PARAMETERS), FEW)

    def add_yardstick(self) -> None:
        """The best of all contests."""
        if self.yardstick_times:
            best = Timing(tuple(self.yardstick_times), FEW)
            side = min(1024, self.size)
            self.found.add_timing(YARDSTICK, best, "theirs", f"per step at {side}², one thread")

    # The parts of the run.

    def growth_with_size(self) -> None:
        """Ten explicit steps at each size, the whole call."""
        per_pixel = {}
        for size in self.sizes:
            image = picture_of(size)
            calls = max(1, 64 // (size // 64) ** 2)  # small images many times, above the clock's grain
            entrant = Contestant(f"EED {size}²", partial(repeated, image, calls, self.threads), 10 * calls)
            name, found = f"EED {size}²", self._contest([entrant])[f"EED {size}²"]
            per_pixel[size] = found.per_step / size**2
            value = Measurement(1e9 * per_pixel[size], "ns/pixel", "ours", "per step of ten", found.jitter)
            self.found.measurements[name] = value
            if size == 64:
                ten = 1e3 * found.per_step * 10
                self.found.add("ten steps at 64²", ten, "ms", "ours", "the whole call, once compiled")
                self.found.targets.append(Target("ten steps at 64²", ten, 1.0, "at most", "ms"))
        if {1024, max(self.sizes)} <= set(self.sizes) and max(self.sizes) > 1024:
            largest = max(self.sizes)
            self.found.targets.append(
                Target(
                    f"cost per pixel at {largest}² over 1024²",
                    per_pixel[largest] / per_pixel[1024],
                    1.3,
                    "at most",
                )
            )

    def kinds_of_image_and_model(self) -> None:
        """Precision, colour, and the integration scale of coherence-enhancing diffusion."""
        grey = picture_of(self.size)
        colour = np.stack([grey, grey[::-1], grey[:, ::-1]])
        pixels, steps = grey.size, 5
        calls: dict[str, Callable[[], object]] = {
            "EED float32": lambda: evolved(grey, steps, self.threads),
            "EED float64": lambda: evolved(grey.astype(np.float64), steps, self.threads),
            "EED colour": lambda: evolved_colour(colour, steps, self.threads),
        }
        for rho in RHOS:
            model = aniso.CoherenceEnhancing(contrast=CONTRAST, sigma=SIGMA, rho=float(rho))
            calls[f"CED ρ {rho}"] = partial(evolved, grey, steps, self.threads, model)
        times = self._contest([Contestant(name, call, steps) for name, call in calls.items()])
        for name, found in times.items():
            note = "per pixel of three channels" if name == "EED colour" else ""
            value = Measurement(1e9 * found.per_step / pixels, "ns/pixel", "ours", note, found.jitter)
            self.found.measurements[name] = value
        jumps = [times[f"CED ρ {rho}"].best / times[f"CED ρ {rho - 1}"].best for rho in RHOS[1:]]
        self.found.targets.append(Target("largest jump of CED from ρ to ρ + 1", max(jumps), 1.5, "at most"))

    def steps_and_stages(self) -> None:
        """What one step costs, without what a call costs: the difference of many steps and few."""
        image = picture_of(self.size)
        limit = aniso.stability.stable_step(EED, STENCIL)
        variants: dict[str, tuple[Any, Any]] = {
            "EED step": (EED, aniso.Explicit(step=STEP)),
            "EED step without smoothing": (aniso.EdgeEnhancing(CONTRAST, 0.0), aniso.Explicit(step=STEP)),
            "homogeneous step": (aniso.Homogeneous(), aniso.Explicit(step=STEP)),
            "FED inner step": (EED, aniso.FED(1)),
            "FSI inner step": (EED, aniso.FSI(1)),
        }
        entrants = []
        for name, (model, scheme) in variants.items():
            for count in (FEW, MANY):
                end = count * STEP if isinstance(scheme, aniso.Explicit) else limit * count * (count + 1) / 3
                assert sum(len(cycle.steps) for cycle in scheme.plan(end, limit)) == count
                entrants.append(Contestant(f"{name}, {count}", partial(self._run, image, model, scheme, end)))
        cycles_end = 11 * limit * FEW * (FEW + 1) / 3
        entrants.append(Contestant("11 cycles", lambda: self._run(image, EED, aniso.FED(11), cycles_end)))
        entrants.append(Contestant("no step", lambda: self._run(image, EED, aniso.Explicit(), 0.0)))
        best = {name: found.best for name, found in self._contest(entrants).items()}

        add = self.found.add
        cost = {
            name: 1e3 * (best[f"{name}, {MANY}"] - best[f"{name}, {FEW}"]) / (MANY - FEW) for name in variants
        }
        for name, value in cost.items():
            add(name, value, "ms", "ours", f"at {self.size}²")
        one_cycle = best[f"FED inner step, {FEW}"]
        tensor_pass = 1e3 * (best["11 cycles"] - one_cycle) / 10 - FEW * cost["FED inner step"]
        add("tensor pass of a cycle", tensor_pass, "ms", "ours", f"at {self.size}²")
        add("a call without steps", 1e3 * best["no step"], "ms", "ours", "checks, copies, threads")
        for name in ("FED inner step", "FSI inner step"):
            share = cost[name] / cost["EED step"]
            self.found.targets.append(Target(f"{name} over a full step", share, 0.5, "at most"))

        limits = machine.memory_bandwidth(self.threads)
        peak = machine.peak_arithmetic(self.threads)
        for kind, value in limits.items():
            add(f"memory bandwidth, {kind}", value / 1e9, "GB/s", "machine", f"{self.threads} threads")
        add("peak arithmetic", peak / 1e9, "GFLOP/s", "machine", f"float32, {self.threads} threads")
        operations = counting.operations_per_pixel(EED, STENCIL)
        seconds = 1e-3 * cost["EED step"]
        add("operations per pixel", operations, "FLOP", "machine", "one EED step, counted in the formulas")
        # u is read once and written once.
        traffic = 8 * image.size / seconds / limits["copy"]
        speed = operations * image.size / seconds / peak
        add("share of the memory bandwidth", 100 * traffic, "%", "machine", "EED step, 8 bytes per pixel")
        add("share of the peak arithmetic", 100 * speed, "%", "machine", "EED step")

        moving = 1e3 * 8 * image.size / limits["copy"]
        stages = {
            "stage: smoothing with σ": cost["EED step"] - cost["EED step without smoothing"],
            "stage: tensor": cost["EED step without smoothing"] - cost["homogeneous step"],
            "stage: fluxes and update": cost["homogeneous step"] - moving,
            "stage: reading and writing": moving,
        }
        for name, value in stages.items():
            add(name, value, "ms", "machine", "by difference of variants")

    def _run(self, image: Image, model: Any, scheme: Any, end: float) -> Image:
        return aniso.diffuse(image, model, end, stencil=STENCIL, scheme=scheme, threads=self.threads)

    def fresh_processes(self) -> None:
        """Import, first call and memory, each in a process of its own."""
        repeats = 2 * self.rounds
        imports = [fresh.run("import") for _ in range(repeats)]
        assert not any(found["numba"] for found in imports), "import aniso loads numba"
        seconds = min(found["seconds"] for found in imports)
        self.found.add("import aniso", 1e3 * seconds, "ms", "ours", "without the start of Python")
        self.found.targets.append(Target("import aniso", seconds, 0.15, "at most", "s"))
        best = min(fresh.help_seconds() for _ in range(repeats))
        self.found.add("aniso --help", 1e3 * best, "ms", "ours", "with the start of Python")

        with tempfile.TemporaryDirectory() as folder:
            cold = fresh.run("first-call", cache=Path(folder))["seconds"]
            warm = min(fresh.run("first-call", cache=Path(folder))["seconds"] for _ in range(self.rounds))
        self.found.add("first call, cold cache", 1e3 * cold, "ms", "ours", "imports and compiles; one run")
        self.found.add("first call, warm cache", 1e3 * warm, "ms", "ours", "with import aniso")
        self.found.targets.append(Target("first call, warm cache", warm, 1.0, "at most", "s"))

        for scheme, bound in (("explicit", 2.5), ("fed", 6.0), ("fsi", 6.0)):
            images = fresh.run("memory", scheme, str(self.memory_size))["images"]
            name = f"memory, {scheme if scheme == 'explicit' else scheme.upper() + ' cycle'}"
            note = f"float32 images of {self.memory_size}² besides the caller's"
            self.found.add(name, images, "images", "memory", note)
            self.found.targets.append(Target(name, images, bound, "at most", "images"))


def picture_of(size: int) -> npt.NDArray[np.float32]:
    """Shapes and noise; large ones are made of copies, for making them takes longer than diffusing them."""
    tile = np.asarray(aniso.samples.shapes(min(size, 1024)).image, dtype=np.float32)
    copies = math.ceil(size / tile.shape[0])
    return np.ascontiguousarray(np.tile(tile, (copies, copies))[:size, :size])


def repeated(image: Image, calls: int, threads: int) -> None:
    """Ten steps, several times."""
    for _ in range(calls):
        evolved(image, 10, threads)


def evolved_colour(image: Image, steps: int, threads: int) -> Image:
    """Three channels with one tensor."""
    return aniso.diffuse(
        image,
        EED,
        steps * STEP,
        stencil=STENCIL,
        scheme=aniso.Explicit(step=STEP),
        channel_axis=0,
        threads=threads,
    )


def picture(found: Report, path: Path) -> None:
    """Six panels."""
    entries, settings = found.measurements, found.settings
    drawing, panels = report.figure_of(3, 2, (13, 11))
    sizes, rhos = settings["sizes"], RHOS

    growth, integration = panels[0]
    costs = [entries[f"EED {size}²"].value for size in sizes]
    growth.plot(sizes, costs, "o-", color=report.COLOURS["ours"])
    growth.set_xscale("log", base=2)
    growth.set_xticks(sizes, [f"{size}²" for size in sizes])
    growth.set_ylim(0, 1.25 * max(costs))
    growth.set_xlim(0.7 * sizes[0], 1.4 * sizes[-1])
    growth.set_ylabel("ns per pixel and step")
    growth.set_title("edge-enhancing diffusion: cost over size", loc="left", fontweight="bold")
    for size, cost in zip(sizes, costs, strict=True):
        growth.annotate(report.figure(cost), (size, cost), (0, 7), textcoords="offset points", ha="center")

    costs = [entries[f"CED ρ {rho}"].value for rho in rhos]
    integration.plot(rhos, costs, "o-", color=report.COLOURS["ours"])
    integration.set_xticks(rhos)
    integration.set_ylim(0, 1.25 * max(costs))
    integration.set_xlabel("integration scale ρ")
    integration.set_ylabel("ns per pixel and step")
    integration.set_title("coherence-enhancing diffusion: cost over ρ", loc="left", fontweight="bold")
    for axes in (growth, integration):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)

    def chosen(*names: str) -> dict[str, Measurement]:
        return {name: entries[name] for name in names}

    names = ("EED step", "EED step without smoothing", "homogeneous step", "FED inner step", "FSI inner step")
    report.bars(
        panels[1, 0],
        chosen(*names, "tensor pass of a cycle"),
        "ms",
        log=False,
        title=f"steps at {settings['size']}²",
    )
    stages = {
        name.removeprefix("stage: "): entry for name, entry in entries.items() if name.startswith("stage: ")
    }
    report.bars(panels[1, 1], stages, "ms", log=False, title="where the time of an EED step goes")
    starts = ("import aniso", "aniso --help", "first call, warm cache", "first call, cold cache")
    report.bars(panels[2, 0], chosen(*starts), "ms", title="start of a fresh process (logarithmic)")
    memory = {
        name.removeprefix("memory, "): entry for name, entry in entries.items() if name.startswith("memory, ")
    }
    report.bars(panels[2, 1], memory, "images", log=False, title="peak extra memory, in float32 images")
    drawing.suptitle(
        f"{found.environment['processor']}, {found.environment['cores']} cores, "
        f"{settings['threads']} threads, best of {settings['rounds']} rounds",
        fontsize=11,
    )
    report.save_picture(drawing, path)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--size", type=int, default=2048, help="pixels along each side, where one size is used"
    )
    parser.add_argument("--repeats", type=int, default=5, help="rounds of each contest; the best one counts")
    parser.add_argument("--threads", type=int, default=min(2, timing.cores()))
    parser.add_argument("--quick", action="store_true", help="nothing above 1024 pixels, two rounds")
    report.add_places(parser)
    given = parser.parse_args(arguments)
    if given.quick:
        run = Scaling((64, 256, 512), min(given.size, 512), 1024, min(given.repeats, 2), given.threads)
    else:
        run = Scaling(SIZES, given.size, 4096, given.repeats, given.threads)
    for part in (
        run.fresh_processes,
        run.growth_with_size,
        run.kinds_of_image_and_model,
        run.steps_and_stages,
    ):
        CONSOLE.print(f"{part.__name__.replace('_', ' ')} …", highlight=False)
        part()
    run.add_yardstick()
    report.deliver(run.found, given, picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
