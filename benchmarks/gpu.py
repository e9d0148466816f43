"""The triton engine on a GPU, or compiled for four of them without one.

    python -m benchmarks.gpu             # check and measure the card of this machine
    python -m benchmarks.gpu --compile   # without a card: machine code, bytes moved, and rooflines

With a card, all programs compute ten explicit steps of edge-enhancing diffusion on the same image and must
agree before their times are taken: the fused kernels, the eager operations, these compiled by
`torch.compile`, and the six-channel form of the paper. Without one, nothing is measured: what `--compile`
prints are properties of the code and lower bounds of the time, see `gpu_compile.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

import aniso
from benchmarks import timing
from benchmarks.timing import CONSOLE, Contestant

STEPS, STEP = 10, 0.2
MODEL = aniso.EdgeEnhancing(contrast=3.5)
PEER = "cuCIM, total variation"  # another filter, with as many iterations, for scale
#: Bytes per pixel that a step may move in single precision, by name and number of axes.
LIMITS = {("EED, explicit step", 2): 32, ("FED, inner step", 2): 20, ("EED, explicit step", 3): 60}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--compile", action="store_true", help="compile for four GPUs; no card is needed")
    parser.add_argument("--quick", action="store_true", help="only some kernels, or a small image")
    parser.add_argument("--size", type=int, default=2048, help="the side of the image")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", action="store_true", help="print the table of the documentation")
    options = parser.parse_args()
    if options.compile:
        found, good = compile_all(options.quick, options.markdown)
    else:
        found, good = measure(options.device, 64 if options.quick else options.size, options.rounds)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    sys.exit(0 if good else 1)


def compile_all(quick: bool, markdown: bool) -> tuple[Any, bool]:
    """Compile all kernels for all cards; whether none spills registers or moves too much."""
    from benchmarks import gpu_compile

    cards = gpu_compile.CARDS[2:] if quick else gpu_compile.CARDS
    rows, good = [], True
    every = [
        *gpu_compile.cases(*((256, 32) if quick else ())),
        *gpu_compile.net_cases(256 if quick else 2048),
    ]
    if quick:  # one step with the most common kernel, one with all others, and a stage of a net
        names = {("EED, explicit step", 2), ("CED, explicit step", 3), ("net, grey, dilation 2", 2)}
        every = [case for case in every if (case.name, case.ndim) in names and case.dtype == "float32"]
    for case in every:
        limit = LIMITS.get((case.name, case.ndim), float("inf")) if case.dtype == "float32" else float("inf")
        # Images have a row and a column of cells more than of pixels.
        good &= case.moved <= limit * (1.02 if quick else 1.002)
        for card in cards:
            compiled = [gpu_compile.compile_launch(launch, card) for launch in case.launches]
            seconds = gpu_compile.roofline(case, compiled, card)
            good &= not any(code.spills for code in compiled)
            rows.append(
                {
                    "step": case.name,
                    "axes": case.ndim,
                    "type": case.dtype,
                    "card": card.name,
                    "bytes per pixel": round(case.moved, 1),
                    "operations per pixel": round(sum(code.operations for code in compiled) / case.pixels),
                    "roofline, µs per megapixel": 1e12 * seconds / case.pixels,
                    "kernels": [asdict(code) for code in compiled],
                }
            )
    for ndim in () if quick else (2, 3):
        for case in gpu_compile.every_tensor_formula(ndim):
            for card in cards:
                codes = [gpu_compile.compile_launch(launch, card) for launch in case.launches]
                for code in codes:
                    if code.spills:
                        CONSOLE.print(f"{case.name}: {code.kernel} spills {code.spills} bytes on {card.name}")
                        good = False
    (_print_markdown if markdown else _print_compiled)(rows)
    CONSOLE.print(
        "No kernel spills registers, and none moves too much." if good else "[red]Not as it should be."
    )
    return rows, good


def _print_compiled(rows: list[dict[str, Any]]) -> None:
    table = Table(
        "step", "card", "B/pixel", "ops/pixel", "kernel", "registers", "spills", "shared", "occupancy"
    )
    table.add_column("roofline, µs/Mpixel", justify="right")
    for row in rows:
        for number, code in enumerate(row["kernels"]):
            first = number == 0
            table.add_row(
                f"{row['step']}, {row['axes']}-D, {row['type']}" if first else "",
                row["card"] if first else "",
                f"{row['bytes per pixel']:.1f}" if first else "",
                str(row["operations per pixel"]) if first else "",
                code["kernel"],
                str(code["registers"]),
                str(code["spills"]),
                str(code["shared"]),
                f"{code['occupancy']:.0%}",
                f"{row['roofline, µs per megapixel']:.3g}" if first else "",
            )
    CONSOLE.print(table)


def _print_markdown(rows: list[dict[str, Any]]) -> None:
    """Print a row for each step in single precision: registers of its largest kernel, and rooflines."""
    cards = list(dict.fromkeys(row["card"] for row in rows))
    print(
        "| step | bytes per pixel | operations per pixel | registers |",
        *(f" {card} |" for card in cards),
        sep="",
    )
    print("|---|---|---|---|" + "---|" * len(cards))
    steps = dict.fromkeys((row["step"], row["axes"]) for row in rows if row["type"] == "float32")
    for step, axes in steps:
        own = [row for row in rows if (row["step"], row["axes"], row["type"]) == (step, axes, "float32")]
        most = [max(code["registers"] for code in row["kernels"]) for row in own]
        times = [f"{row['roofline, µs per megapixel']:.3g} µs" for row in own]
        what = f"{step}, {'volume' if axes == 3 else 'image'}"
        cells = (
            what,
            own[0]["bytes per pixel"],
            own[0]["operations per pixel"],
            f"{min(most)} to {max(most)}",
        )
        print("| " + " | ".join(map(str, (*cells, *times))) + " |")


def measure(device: str, side: int, rounds: int) -> tuple[Any, bool]:
    """Compare the programs on the card of this machine; whether they agree."""
    if device == "cuda" and not torch.cuda.is_available():
        CONSOLE.print("There is no GPU that PyTorch can use. Compile without one: --compile.")
        return {}, False
    image = torch.rand(1, 1, side, side, generator=torch.Generator().manual_seed(0)).mul_(255).to(device)
    programs = _programs(image)
    expected = programs["torch, eager"]().double()
    good = True
    for name, run in programs.items():
        if name == PEER:
            continue
        error = float((run().double() - expected).abs().max() / expected.abs().max())
        CONSOLE.print(f"{name}: differs by {error:.2g} of the largest value")
        good &= error < 1e-4
    if not good:
        CONSOLE.print("[red]The programs do not agree; they are not timed.")
        return {}, False

    def wait(run: Callable[[], Any]) -> Callable[[], object]:
        def call() -> None:
            run()
            if device == "cuda":
                torch.cuda.synchronize()

        return call

    timings = timing.contest([Contestant(name, wait(run), STEPS) for name, run in programs.items()], rounds)
    name = torch.cuda.get_device_name() if device == "cuda" else "interpreter"
    table = Table("program", "ms per step", "jitter", title=f"{STEPS} explicit steps of EED, {side}², {name}")
    for program, each in timings.items():
        table.add_row(program, f"{1e3 * each.per_step:.3f}", f"{each.jitter:.0%}")
    CONSOLE.print(table)
    found = {program: each.per_step for program, each in timings.items()}
    return {"device": name, "side": side, "seconds per step": found, **timing.environment(("torch",))}, True


def _programs(image: torch.Tensor) -> dict[str, Callable[[], torch.Tensor]]:
    """The programs by name: ten steps of the same diffusion, and a filter of cuCIM if that is installed."""
    from aniso import nn

    scheme, time = aniso.Explicit(STEP), STEPS * STEP

    def repeat(module: Any) -> Callable[[], torch.Tensor]:
        def run() -> torch.Tensor:
            u = image
            with torch.no_grad():
                for _ in range(STEPS):
                    u = module(u)
            return u

        return run

    block, six = nn.DiffusionBlock(MODEL, step=STEP), nn.SixChannelBlock(MODEL, step=STEP)
    programs = {
        "triton, fused": lambda: aniso.diffuse(image, MODEL, time, scheme=scheme, engine="triton"),
        "torch, eager": lambda: aniso.diffuse(image, MODEL, time, scheme=scheme, engine="torch"),
        "torch.compile": repeat(torch.compile(block, backend="inductor" if image.is_cuda else "eager")),
        "paper, six channels": repeat(six.to(image.device)),
    }
    try:
        import cupy
        from cucim.skimage.restoration import denoise_tv_chambolle
    except ImportError:
        return programs
    array = cupy.from_dlpack(image[0, 0])
    options = {"weight": 10.0, "eps": 0.0, "max_num_iter": STEPS}
    return programs | {PEER: lambda: torch.utils.dlpack.from_dlpack(denoise_tv_chambolle(array, **options))}


if __name__ == "__main__":
    main()
