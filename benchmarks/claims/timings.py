"""Section 4, “Experiments”: C against PyTorch, and how it depends on image and batch size."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from benchmarks import paper, report, timing
from benchmarks.claims.claim import Claim, Figure, Finding, Picture, Role, Table, at_least, at_most, shown
from benchmarks.eed import PAPER
from benchmarks.report import YARDSTICK, Report

NO_COMPILER = "No C compiler was available."
NO_DEVICE = "No CUDA device was available. With one, the same command tests this claim."
#: “One order of magnitude” and “as fast as”, as they are read here.
MAGNITUDE, EQUAL = 5.0, 1.25
ENOUGH_PIXELS = 1024**2


@cache
def contest(quick: bool) -> tuple[list[paper.Case], Report]:
    """The paper's experiment in a small setting, without compiled forms; `benchmarks.paper` has all of it."""
    if quick:
        chosen, rounds = paper.cases((128, 256), (1, 4), (128,)), 1
    else:
        chosen, rounds = paper.cases((256, 512, 1024, 2048), (1, 4, 16), (256, 512)), 2
    return chosen, paper.measure(chosen, rounds, min(2, timing.cores()), ())


def cost(found: Report, name: str, case: paper.Case) -> float | None:
    """Nanoseconds per pixel and step."""
    entry = found.measurements.get(f"{name}, {case}")
    return None if entry is None else entry.value


def ratio(found: Report, first: str, second: str, case: paper.Case) -> float:
    """How much longer the first takes; NaN where one of them did not run."""
    one, other = cost(found, first, case), cost(found, second, case)
    return one / other if one is not None and other is not None else float("nan")


def on_device(name: str) -> str:
    return f"{name}, cuda"


def order_of_magnitude(quick: bool) -> Finding:
    chosen, found = contest(quick)
    case, engine = paper.like_the_paper(chosen), paper.cpu_name(min(2, timing.cores()))
    seconds = 1e-9 * case.pixels * paper.STEPS
    names = [name for name, values in paper.series(found, [case]) if values[0] is not None]
    rows = [(name, f"{seconds * (cost(found, name, case) or float('nan')):.3g}") for name in names]
    rows += [(name, f"{value:g}") for name, value in PAPER.items()]
    figures = [shown(f"C over the library's {engine}, {case}", ratio(found, YARDSTICK, engine, case))]
    lacking = missing(found)
    if not lacking:
        figures += [
            at_least(
                f"C over {name} on the GPU, {case}", ratio(found, YARDSTICK, on_device(name), case), MAGNITUDE
            )
            for name in (paper.STENCIL, paper.SIX)
        ]
    figures += [
        shown(
            f"C over {name} on {found.settings['threads']} CPU threads, {case}",
            ratio(found, YARDSTICK, name, case),
        )
        for name in (paper.STENCIL, paper.SIX, paper.CELL)
    ]
    return Finding(
        figures,
        [
            f"Seconds for {paper.STEPS} steps on {case} pixels; the paper's figures, for 2048² pixels, come "
            "from other machines:"
        ],
        [Table(("program", "seconds"), rows)],
        untestable=lacking,
    )


def as_fast(quick: bool) -> Finding:
    chosen, found = contest(quick)
    case = paper.like_the_paper(chosen)
    figures: list[Figure] = []
    if torch.cuda.is_available():
        names = on_device(paper.SIX), on_device(paper.STENCIL)
        figures = [
            at_most(f"six channels over stencil on the GPU, {case}", ratio(found, *names, case), EQUAL)
        ]
    figures += [
        at_most(
            f"{name} over stencil on the CPU, {case}", ratio(found, name, paper.STENCIL, case), EQUAL, "shown"
        )
        for name in (paper.SIX, paper.CELL)
    ]
    return Finding(
        figures,
        [
            "On the CPU the paper's six channels "
            + ("are" if figures[-2].within else "are not")
            + " as fast as the stencil; the library's three channels "
            + ("are." if figures[-1].within else "are not either.")
        ],
        untestable="" if torch.cuda.is_available() else NO_DEVICE,
    )


def consistent(quick: bool) -> Finding:
    chosen, found = contest(quick)
    least = max(case.pixels for case in chosen) // 4 if quick else ENOUGH_PIXELS
    large = [case for case in chosen if case.pixels >= least]
    figures: list[Figure] = []
    lacking = missing(found)
    for device, name, role in devices(lacking):
        six, stencil = paper.SIX + name, paper.STENCIL + name
        against_stencil = [ratio(found, six, stencil, case) for case in large]
        against_c = [ratio(found, YARDSTICK, six, case) for case in large]
        figures += [
            at_most(f"six channels over stencil on the {device}: largest", max(against_stencil), EQUAL, role),
            at_least(f"C over six channels on the {device}: smallest", min(against_c), MAGNITUDE, role),
            shown(f"six channels on the {device}: dearest over cheapest pixel", spread(found, six, large)),
        ]
    for name in (YARDSTICK, paper.CELL, paper.cpu_name(min(2, timing.cores()))):
        figures.append(shown(f"{name}: dearest over cheapest pixel", spread(found, name, large)))
    rows = [
        (name, *("" if value is None else report.figure(value) for value in values))
        for name, values in paper.series(found, chosen)
    ]
    return Finding(
        figures,
        [
            f"Cases with at least {least:,} pixels together: {', '.join(map(str, large))}. Nanoseconds per "
            "pixel and step in all cases (batch × size):"
        ],
        [Table(("", *map(str, chosen)), rows)],
        [] if quick else [Picture("reproduction_timings.png", CAPTION, lambda: drawing(found, chosen))],
        untestable=lacking,
    )


def missing(found: Report) -> str:
    """Why C and a GPU cannot be compared here; empty if they can."""
    if not torch.cuda.is_available():
        return NO_DEVICE
    return "" if YARDSTICK in found.measurements else NO_COMPILER


def devices(lacking: str) -> list[tuple[str, str, Role]]:
    """What to call it, what the programs' names end with, and whether the claim is about it."""
    gpu: list[tuple[str, str, Role]] = [("GPU", ", cuda", "needed")]
    return [*([] if lacking else gpu), ("CPU", "", "shown")]


def spread(found: Report, name: str, cases: list[paper.Case]) -> float:
    """The cost of a pixel where it is highest, over where it is lowest."""
    values = [value for case in cases if (value := cost(found, name, case)) is not None]
    return max(values) / min(values) if values else float("nan")


CAPTION = (
    "Cost of a pixel over the number of pixels of all images together: single images with dots, batches "
    "with rings, of 256² and of 512² pixels."
)


def drawing(found: Report, chosen: list[paper.Case]) -> Any:
    drawn, axes = report.figure_of(1, 1, (8, 5))
    suffixes = ("", ", cuda") if torch.cuda.is_available() else ("",)
    names = [name + suffix for suffix in suffixes for name in (paper.STENCIL, paper.SIX, paper.CELL)]
    names += [YARDSTICK, paper.cpu_name(min(2, timing.cores()))]
    palette = dict(zip(paper.FORMS, ("#7b3fa0", "#2a9d5c", "#d9661f", "#6baed6", "#1f6fb4"), strict=True))
    for name in names:
        style = paper.look(name, palette)
        single = [case for case in chosen if case.batch == 1]
        axes.plot(
            [case.pixels for case in single],
            [cost(found, name, case) for case in single],
            label=name,
            **style,
        )
        batches = [case for case in chosen if case.batch > 1]
        axes.plot(
            [case.pixels for case in batches],
            [cost(found, name, case) for case in batches],
            "o",
            color=style["color"],
            markerfacecolor="none",
            markersize=9,
        )
    single = [case for case in chosen if case.batch == 1]
    axes.set(xscale="log", yscale="log", xlabel="pixels", ylabel="nanoseconds per pixel and step")
    axes.set_xticks([case.pixels for case in single], [f"{case.side}²" for case in single])
    axes.set_xticks([], minor=True)
    axes.grid(alpha=0.25)
    drawn.legend(loc="outside lower center", ncols=3, frameon=False)
    return drawn


HOW = (
    "EED, explicit steps, the same parameters and images for all programs, which are checked to agree before "
    "timing; best of several interleaved rounds, PyTorch eager, as in the paper. A small setting of "
    "`python -m benchmarks.paper`. "
)

CLAIMS = [
    Claim(
        "gpu",
        "PyTorch on a GPU is ten times faster than C on a CPU",
        "Ten steps on 2048² pixels take 1.6 s in C and one order of magnitude less in PyTorch on a GPU, as "
        "stencils (0.16 s) and as residual blocks (0.15 s).",
        "Section 4, “Experiments”",
        HOW + f"“One order of magnitude” is interpreted as a factor of at least {MAGNITUDE:g}.",
        order_of_magnitude,
        None,
        timed=True,
    ),
    Claim(
        "as-fast",
        "The residual form is as fast as the stencils",
        "The residual block is as fast as the much more involved stencil-based implementation on the GPU.",
        "Section 4, “Experiments”",
        HOW + f"“As fast” is interpreted as at most {EQUAL:g} times the time.",
        as_fast,
        None,
        timed=True,
    ),
    Claim(
        "consistent",
        "The same for all image and batch sizes",
        "This behaviour is consistent across image and batch sizes, provided that the total pixel count is "
        "sufficiently large.",
        "Section 4, “Experiments”, last sentence",
        HOW
        + f"Interpreted as: in all cases from 1024² pixels on, residual blocks take at most {EQUAL:g} times "
        f"as long as stencils, and C at least {MAGNITUDE:g} times as long as residual blocks.",
        consistent,
        None,
        timed=True,
    ),
]
