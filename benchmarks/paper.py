"""The paper's experiment: explicit steps of EED in C, as stencils in PyTorch and as residual blocks.

    python -m benchmarks.paper --json benchmarks/results/paper.json --picture benchmarks/results/paper.png

Images from 256² to 4096² pixels and batches of 1 to 16, eager and compiled, on the CPU and, where there is
one, on a CUDA device. Every contestant gets the same images and parameters and must agree with the others
before its time is taken. Programs that take one image at a time loop over the batch.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.table import Table
from torch import Tensor, nn

import aniso
from aniso import nn as blocks
from benchmarks import report, timing
from benchmarks.baselines import plain, six_channel
from benchmarks.eed import AGREEMENT, ALPHA, CONTRAST, GAMMA, GREY_RANGE, PARAMETERS, SIGMA, STEP
from benchmarks.report import YARDSTICK, Measurement, Report, Target
from benchmarks.timing import CONSOLE, Contestant

STENCIL, DIRECTIONS, SIX = "stencil", "four directions", "six channels"
CONVOLVED, CELL = "cell, convolutions", "cell, sums"
#: The forms of the block, as the paper orders them: entries first, then as a residual network, then leaner.
FORMS: dict[str, type[blocks.DiffusionBlock]] = {
    STENCIL: blocks.StencilBlock,
    DIRECTIONS: blocks.DirectionalBlock,
    SIX: blocks.SixChannelBlock,
    CONVOLVED: blocks.CellBlock,
    CELL: blocks.DiffusionBlock,
}
#: Drawn in the paper but not measured there, and the slowest: it runs on single images only, to save time.
DRAWN = DIRECTIONS
BASELINE = "six channels, baseline"

SIDES, BATCHES = (256, 512, 1024, 2048, 4096), (1, 2, 4, 8, 16)
#: The batches are measured at these sides, the others one image at a time.
BATCHED = (256, 512, 1024)
MOST_PIXELS = 4096**2
STEPS = 10


class Case(NamedTuple):
    """A batch of square images."""

    batch: int
    side: int

    @property
    def pixels(self) -> int:
        """Of all images together."""
        return self.batch * self.side**2

    @property
    def steps(self) -> int:
        """Ten, as in the paper; fewer for what takes seconds per step and would only be measured once."""
        affordable = min(max(MOST_PIXELS // self.pixels, 2), STEPS)
        return STEPS if self.batch == 1 and self.side <= 2048 else affordable

    def __str__(self) -> str:
        return f"{self.batch} × {self.side}²" if self.batch > 1 else f"{self.side}²"


class Program(NamedTuple):
    """An implementation of the step: from images (N, 1, H, W) and a number of steps to images."""

    name: str
    run: Callable[[Tensor, int], Tensor]
    kind: report.Kind
    device: str = "cpu"
    one_image: bool = False


def cases(sides: tuple[int, ...], batches: tuple[int, ...], batched: tuple[int, ...]) -> list[Case]:
    """All sides one image at a time, some of them in batches; the largest have as many pixels as 4096²."""
    return [
        Case(batch, side)
        for side in sides
        for batch in batches
        if (batch == 1 or side in batched) and batch * side**2 <= MOST_PIXELS
    ]


# The contestants.


def programs(threads: int, compiled: tuple[str, ...], found: Report) -> list[Program]:
    """All implementations that can run here; of the blocks, these forms compiled as well.

    A batch needs a second version to be compiled, so that one form alone is compiled for single images only.
    """
    entrants = [Program(cpu_name(count), partial(by_cpu_engine, count), "ours") for count in (1, threads)]
    entrants = entrants if threads > 1 else entrants[:1]
    try:
        program = plain.edge_enhancing()
        entrants.insert(0, Program(YARDSTICK, partial(by_c, program), "theirs"))
        found.environment["compiler"] = plain.compiler_version()
    except plain.NoCompilerError as error:
        found.skip(YARDSTICK, str(error))
    entrants.append(Program(BASELINE, by_baseline, "theirs", one_image=True))
    for device in devices():
        suffix = "" if device == "cpu" else f", {device}"
        for name, form in FORMS.items():
            run = partial(repeated, block_of(form, device))
            entrants.append(Program(name + suffix, run, "ours", device, one_image=name == DRAWN))
        for name in compiled:
            fast = compiled_block(block_of(FORMS[name], device))
            entrants.append(
                Program(
                    f"{name}, compiled{suffix}",
                    partial(repeated, fast),
                    "ours",
                    device,
                    one_image=name == DRAWN or len(compiled) == 1,
                )
            )
    return entrants


def devices() -> list[str]:
    """The CPU, and a CUDA device where there is one."""
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def cpu_name(threads: int) -> str:
    """How the engine is called in the tables."""
    return f"cpu engine, {threads} thread{'s' if threads > 1 else ''}"


def block_of(form: type[blocks.DiffusionBlock], device: str) -> nn.Module:
    """One explicit step with the parameters that all share."""
    model = aniso.EdgeEnhancing(contrast=CONTRAST, sigma=SIGMA)
    return form(model, aniso.DeltaStencil(alpha=ALPHA, gamma=GAMMA), step=STEP).to(device)


def compiled_block(block: nn.Module) -> Any:
    """Compile for all sizes at once: compiling for each size would take longer than the measurement."""
    return torch.compile(block, fullgraph=True, dynamic=True)


def repeated(block: Callable[[Tensor], Tensor], u: Tensor, steps: int) -> Tensor:
    """The images after some steps; what a device does in the background is waited for."""
    with torch.no_grad():
        for _ in range(steps):
            u = block(u)
    if u.is_cuda:
        torch.cuda.synchronize()
    return u


def by_cpu_engine(threads: int, u: Tensor, steps: int) -> Tensor:
    """One image after the other with the cpu engine."""
    evolved = partial(
        aniso.diffuse,
        model=aniso.EdgeEnhancing(contrast=CONTRAST, sigma=SIGMA),
        time=steps * STEP,
        stencil=aniso.DeltaStencil(alpha=ALPHA, gamma=GAMMA),
        scheme=aniso.Explicit(step=STEP),
        engine="cpu",
        threads=threads,
    )
    return one_by_one(evolved, u)


def by_c(program: Callable[..., Any], u: Tensor, steps: int) -> Tensor:
    """One image after the other with the C program."""
    return one_by_one(lambda image: program(image, steps, **PARAMETERS), u)


def by_baseline(u: Tensor, steps: int) -> Tensor:
    """The six-channel form written by hand for this one model, to show that ours is not a slow one."""
    return six_channel.edge_enhancing(u[0, 0], steps, **PARAMETERS)[None, None]


def one_by_one(evolved: Callable[[Any], Any], u: Tensor) -> Tensor:
    return torch.stack([torch.from_numpy(evolved(image.numpy())) for image in u[:, 0]])[:, None]


def compiles(found: Report) -> bool:
    """Whether torch.compile works here: it needs a C++ compiler."""
    # The forms share their code. Two versions per form (one image, several) would exceed the limit.
    for limit in ("recompile_limit", "cache_size_limit"):
        if hasattr(torch._dynamo.config, limit):
            setattr(torch._dynamo.config, limit, 64)
            break
    try:
        with torch.no_grad():
            compiled_block(block_of(blocks.DiffusionBlock, "cpu"))(torch.rand(1, 1, 8, 8))
    except Exception as error:
        found.skip("torch.compile", f"{type(error).__name__}: {str(error).splitlines()[0]}")
        return False
    return True


# The contest.


def images(case: Case) -> Tensor:
    """Shapes with noise, another one in each image of the batch."""
    first = np.asarray(aniso.samples.shapes(case.side, noise=10.0).image, dtype=np.float32)
    # Turned and mirrored, so that all differ and drawing them takes no time.
    return torch.from_numpy(np.stack([np.rot90(first, n)[:: 1 - n // 4 % 2 * 2] for n in range(case.batch)]))[
        :, None
    ].contiguous()


def agreeing(entrants: list[Program], u: Tensor, steps: int) -> float:
    """The largest difference between their results; this also warms them up."""
    first, largest = None, 0.0
    for entrant in entrants:
        result = entrant.run(u.to(entrant.device), steps).cpu()
        first = result if first is None else first
        difference = float((result - first).abs().max())
        assert difference < AGREEMENT * GREY_RANGE, (
            f"{entrant.name} differs by {difference:.1e} from {entrants[0].name} at {tuple(u.shape)}"
        )
        largest = max(largest, difference)
    return largest


def measure(chosen: list[Case], rounds: int, threads: int, compiled: tuple[str, ...]) -> Report:
    """One contest per case."""
    torch.set_num_threads(threads)
    # Else a CUDA device would convolve with ten bits, too few for differences of grey values.
    torch.backends.cudnn.allow_tf32 = False
    settings = {"cases": [str(case) for case in chosen], "steps": STEPS, "rounds": rounds}
    found = Report(
        "paper",
        {**settings, "threads": threads, "compiled": list(compiled), **PARAMETERS},
        timing.environment(("aniso", "numpy", "numba", "torch")),
    )
    if torch.cuda.is_available():
        found.environment["device"] = torch.cuda.get_device_name()
    else:
        found.skip("CUDA", "no CUDA device available")
    entrants = programs(threads, compiled if compiled and compiles(found) else (), found)
    for case in chosen:
        u = images(case)
        taking_part = [entrant for entrant in entrants if case.batch == 1 or not entrant.one_image]
        # Ten steps where they take no time; that one step agrees on large images as well is enough there.
        checked = case.steps if case.pixels <= 1024**2 else 1
        difference = agreeing(taking_part, u, checked)
        CONSOLE.print(
            f"{case}, {checked} steps: all agree within {difference:.1e} of {GREY_RANGE:g} grey values",
            highlight=False,
        )
        # Where a call takes seconds, a busy moment matters less.
        few = rounds if case.pixels <= 1024**2 or case == Case(1, 2048) else min(rounds, 2)
        contest = [
            Contestant(
                entrant.name,
                partial(entrant.run, u.to(entrant.device), case.steps),
                case.steps,
                warm_up=False,  # agreeing has done that
            )
            for entrant in taking_part
        ]
        kinds = {entrant.name: entrant.kind for entrant in taking_part}
        for name, times in timing.contest(contest, few).items():
            value = 1e9 * times.per_step / case.pixels
            found.measurements[f"{name}, {case}"] = Measurement(
                value, "ns/pixel", kinds[name], f"per step of {case.steps}", times.jitter
            )
        del u, contest
    add_yardstick(found, chosen)
    add_statements(found, chosen)
    found.targets = targets(found, chosen)
    return found


def like_the_paper(chosen: list[Case]) -> Case:
    """The single image closest to the paper's, of 2048² pixels."""
    return min((case for case in chosen if case.batch == 1), key=lambda case: abs(case.side - 2048))


def add_yardstick(found: Report, chosen: list[Case]) -> None:
    """Plain C, under the name by which runs are compared."""
    name = f"{YARDSTICK}, {like_the_paper(chosen)}"
    if name in found.measurements:
        found.measurements[YARDSTICK] = found.measurements[name]


def targets(found: Report, chosen: list[Case]) -> list[Target]:
    """What the cell form is wanted to gain, where the paper measured."""
    case, entries = Case(1, 2048), found.measurements
    if case not in chosen:  # smaller images say little
        return []
    ratio = entries[f"{SIX}, {case}"].value / entries[f"{CELL}, {case}"].value
    return [Target(f"{CELL} against {SIX}, eager, {case}", ratio, 1.5)]


def add_statements(found: Report, chosen: list[Case]) -> None:
    """Ratios for what the paper says: at its own size, and how they vary over sizes and batches.

    Its residual network is as fast as its stencils, both are ten times faster on a GPU than C on a CPU, and
    this holds for all images and batches that have enough pixels together.
    """
    pairs = [(SIX, STENCIL), (YARDSTICK, SIX), (YARDSTICK, STENCIL), (SIX, CELL), (SIX, BASELINE)]
    kinds = ["", ", compiled", ", cuda", ", compiled, cuda"]
    large = [case for case in chosen if case.pixels >= 1024**2]
    for first, second in pairs:
        for kind in kinds:
            ratios = {}
            for case in chosen:
                names = (name if name in (YARDSTICK, BASELINE) else name + kind for name in (first, second))
                entries = [found.measurements.get(f"{name}, {case}") for name in names]
                if entries[0] is not None and entries[1] is not None:
                    ratios[case] = entries[0].value / entries[1].value
            case = like_the_paper(chosen)
            if case not in ratios or (BASELINE in (first, second) and kind):
                continue
            spread = [ratios[other] for other in large if other in ratios]
            note = f"at {case}"
            if spread:
                low, high = (report.figure(end) for end in (min(spread), max(spread)))
                note += f"; {low} to {high} over all of 1024² pixels or more"
            found.add(f"time of {first} over {second}{kind or ', eager'}", ratios[case], "×", "machine", note)


# Table and picture.


def series(found: Report, chosen: list[Case]) -> Iterator[tuple[str, list[float | None]]]:
    """Name and one figure per case, None where it did not take part."""
    names = dict.fromkeys(
        name.removesuffix(f", {case}")
        for name in found.measurements
        for case in chosen
        if name.endswith(f", {case}")
    )
    for name in names:
        entries = [found.measurements.get(f"{name}, {case}") for case in chosen]
        yield name, [None if entry is None else entry.value for entry in entries]


def show(found: Report, chosen: list[Case]) -> None:
    """Implementations and cases, in nanoseconds per pixel and step."""
    for title, part in (
        ("one image", [case for case in chosen if case.batch == 1]),
        ("batches", [case for case in chosen if case.batch > 1]),
    ):
        if not part:
            continue
        table = Table(title=f"{title}: ns per pixel and step", title_justify="left")
        table.add_column("")
        for case in part:
            table.add_column(str(case), justify="right")
        for name, values in series(found, part):
            table.add_row(name, *("" if value is None else report.figure(value) for value in values))
        CONSOLE.print(table)
    table = Table(title="ratios", title_justify="left")
    for column in ("", "measured", ""):
        table.add_column(column, justify="right" if column == "measured" else "left")
    for name, entry in found.measurements.items():
        if entry.unit == "×":
            table.add_row(name, f"{report.figure(entry.value)} ×", entry.note)
    CONSOLE.print(table)
    found.show_targets()


def picture(found: Report, chosen: list[Case], path: Path) -> None:
    """Time per pixel over the number of pixels, and over the batch."""
    colours = dict(zip(FORMS, ("#7b3fa0", "#2a9d5c", "#d9661f", "#6baed6", "#1f6fb4"), strict=True))
    single = [case for case in chosen if case.batch == 1]
    sides = sorted({case.side for case in chosen if case.batch > 1})
    groups = [("one image", single, [case.pixels for case in single], "pixels")]
    for side in sides:
        part = [case for case in chosen if case.side == side]
        groups.append((f"batches of {side}²", part, [case.batch for case in part], "images in the batch"))
    across = min(2, len(groups))
    down = math.ceil(len(groups) / across)
    drawing, panels = report.figure_of(
        down, across, (4.6 * across, 3.9 * down + 1.4), sharey=True, squeeze=False
    )
    for spare in panels.flat[len(groups) :]:
        spare.remove()
    lines: dict[str, Any] = {}
    for axes, (title, part, places, label) in zip(panels.flat, groups, strict=False):
        for name, values in series(found, part):
            known = [(place, value) for place, value in zip(places, values, strict=True) if value is not None]
            if len(known) < 2 and len(places) > 1:
                continue
            (lines[name],) = axes.plot(*zip(*known, strict=True), label=name, **look(name, colours))
        axes.set(xscale="log", yscale="log")
        ticks = [f"{case.side}²" if label == "pixels" else str(case.batch) for case in part]
        axes.set_xticks(places, ticks)
        axes.set_xticks([], minor=True)
        axes.set_xlabel(label)
        axes.set_title(title, loc="left", fontweight="bold")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    for axes in panels[:, 0]:
        axes.set_ylabel("nanoseconds per pixel and step")
    drawing.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=3, frameon=False)
    machine = found.environment
    place = f"{machine['processor']}, {found.settings['threads']} threads"
    drawing.suptitle(
        "Explicit steps of edge-enhancing diffusion, float32, same result for all\n"
        + " and ".join([place, *([machine["device"]] if "device" in machine else [])]),
        fontsize=11,
    )
    report.save_picture(drawing, path)


def look(name: str, colours: dict[str, str]) -> dict[str, Any]:
    """A colour per form; dashed if compiled, hollow on CUDA."""
    style: dict[str, Any] = {"linewidth": 2, "marker": "o", "markersize": 5}
    if name.startswith("cpu engine"):
        return style | {
            "color": "black",
            "linestyle": ":" if name.endswith("1 thread") else "-",
            "marker": "s",
        }
    if name in (YARDSTICK, BASELINE):
        return style | {
            "color": "0.55" if name == YARDSTICK else colours[SIX],
            "marker": "D" if name == YARDSTICK else "x",
        }
    form = max((form for form in colours if name.startswith(form)), key=len)
    style |= {"color": colours[form], "linestyle": "--" if "compiled" in name else "-"}
    return style | ({"markerfacecolor": "white", "alpha": 0.8} if name.endswith("cuda") else {})


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--repeats", type=int, default=3, help="rounds of the contest; the best one counts")
    parser.add_argument("--threads", type=int, default=min(2, timing.cores()))
    parser.add_argument("--eager", action="store_true", help="leave torch.compile out")
    parser.add_argument("--quick", action="store_true", help="small images, one round, one form compiled")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--picture", type=Path, help="where to draw them")
    given = parser.parse_args(arguments)
    compiled = () if given.eager else (CELL,) if given.quick else tuple(FORMS)
    if given.quick:
        chosen, given.repeats = cases((128, 256), (1, 4), (128,)), 1
    else:
        chosen = cases(SIDES, BATCHES, BATCHED)
    found = measure(chosen, given.repeats, given.threads, compiled)
    show(found, chosen)
    if given.json:
        found.save(given.json)
    if given.picture:
        picture(found, chosen, given.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
