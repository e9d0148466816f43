"""The kernels of the triton engine compiled for GPUs that need not be there, and the bounds that follow.

Nothing here is measured. Registers, spills and shared memory are those of the machine code. Bytes are those
of the tensors that a kernel reads and writes, each once: neighbours of a pixel come from caches. Operations
are counted in Triton's intermediate code. The time of a roofline is the longer of both: bytes at the
bandwidth of the memory, operations at the peak rate of the card. No run is faster.
"""

from __future__ import annotations

import functools
import math
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import aniso
from aniso.engines import Problem
from aniso.engines.triton.launches import Launch
from aniso.engines.triton.net import learned_part
from aniso.engines.triton.steering import FusedSteering
from aniso.nn import KernelDiffusionNet
from aniso.nn.kernels import chebyshev
from benchmarks.gpu_launches import moved, record


class Card(NamedTuple):
    """A card: bandwidth in GB/s, peak rates of single and double precision in TFLOPS, by its data sheet."""

    name: str
    target: GPUTarget
    bandwidth: float
    single: float
    double: float
    #: Groups of threads that a processor holds at most, and the registers of a lane that they share.
    groups: int
    registers: int


CARDS = (
    Card("RTX 3090", GPUTarget("cuda", 86, 32), 936, 35.6, 0.556, 48, 2048),
    Card("A100", GPUTarget("cuda", 80, 32), 2039, 19.5, 9.7, 64, 2048),
    Card("H100", GPUTarget("cuda", 90, 32), 3350, 66.9, 33.5, 64, 2048),
    Card("MI300X", GPUTarget("hip", "gfx942", 64), 5300, 163.4, 81.7, 8, 512),
)


@dataclass(frozen=True)
class Case:
    """Launches that carry out one step."""

    name: str
    ndim: int
    dtype: str
    pixels: int
    launches: list[Launch]

    @property
    def moved(self) -> float:
        """Bytes per pixel."""
        return sum(map(moved, self.launches)) / self.pixels


@dataclass(frozen=True)
class Compiled:
    """What the machine code of a kernel needs on a card."""

    card: str
    kernel: str
    registers: int
    spills: int
    shared: int
    occupancy: float
    moved: int
    operations: int


def cases(side: int = 2048, depth: int = 128) -> Iterator[Case]:
    """Steps of all kinds, for images of side² pixels and volumes of depth³ voxels."""
    for ndim, length in ((2, side), (3, depth)):
        shape = (length,) * ndim
        for dtype in (torch.float32, torch.float64):
            image = torch.zeros(1, 1, *shape, dtype=dtype)
            colours = torch.zeros(1, 3, *(n // 2 for n in shape), dtype=dtype)
            edge, lines = aniso.EdgeEnhancing(3.5), aniso.CoherenceEnhancing()
            for name, model, u, parts in (
                ("EED, explicit step", edge, image, ("fused",)),
                ("FED, inner step", edge, image, ("frozen",)),
                ("FSI, inner step", edge, image, ("extrapolated",)),
                ("EED of colours, explicit step", edge, colours, ("tensors", "frozen")),
                ("CED, explicit step", lines, image, ("tensors", "frozen")),
            ):
                launches = _launches(u, model, aniso.DeltaStencil(), parts)
                yield Case(name, ndim, _short(dtype), u.shape[1:].numel(), launches)
    stencil = aniso.FreeStencil(np.zeros((side + 1, side + 1)))
    image = torch.zeros(1, 1, side, side)
    fixed = np.zeros((side, side), bool)
    launches = _launches(image, aniso.EdgeEnhancing(3.5), stencil, ("frozen",), fixed)
    yield Case("given δ and fixed pixels, inner step", 2, "float32", side * side, launches)
    split = aniso.stencil.SplitStencil()
    volume = torch.zeros(1, 1, depth, depth, depth)
    launches = _launches(volume, aniso.EdgeEnhancing(3.5), split, ("frozen",))
    yield Case("19 points, inner step", 3, "float32", depth**3, launches)


def net_cases(side: int = 2048) -> Iterator[Case]:
    """Stages of a learned diffusion, for grey and colour images, without and with a dilation."""
    for dtype in (torch.float32, torch.float64):
        level = torch.full((1, 1), 20.0, dtype=dtype)
        for dilation in (1, 2):
            net = KernelDiffusionNet([dilation], colour=True, dtype=dtype).requires_grad_(False)
            for name, length, parts in (("grey", side, (1,)), ("colour", side // 2, (1, 2))):
                images = tuple(torch.zeros(1, channels, length, length, dtype=dtype) for channels in parts)
                with record() as launches:
                    net.stages[0](images, images, level, chebyshev(level), None, learned_part)
                pixels = sum(parts) * length**2
                yield Case(f"net, {name}, dilation {dilation}", 2, _short(dtype), pixels, launches)


def every_tensor_formula(ndim: int) -> Iterator[Case]:
    """Explicit steps of all models and diffusivities, in single precision, on small images."""
    shape = (64,) * ndim
    for channels in (1, 3):
        u = torch.zeros(1, channels, *shape)
        for model in _all_models(ndim):
            steering = FusedSteering(u, Problem(model, aniso.DeltaStencil(), (1.0,) * ndim))
            parts = ("fused",) if steering.can_fuse else ("tensors", "frozen")
            launches = _launches(u, model, aniso.DeltaStencil(), parts)
            yield Case(f"{model!r}, {channels} channels", ndim, "float32", u.numel(), launches)


def _all_models(ndim: int) -> Iterator[aniso.models.ImageDriven]:
    names = aniso.models.DIFFUSIVITIES
    yield from (aniso.EdgeEnhancing(3.5, diffusivity=name) for name in names)
    yield from (aniso.EdgeContinuing(3.5, diffusivity=name) for name in names)
    yield from (aniso.PeronaMalik(3.5, diffusivity=name) for name in names)
    yield aniso.CoherenceEnhancing()
    yield aniso.CoherenceEnhancing(plates=False)
    yield aniso.Homogeneous()


def _launches(u: Any, model: Any, stencil: Any, parts: tuple[str, ...], fixed: Any = None) -> list[Launch]:
    ndim = u.ndim - 2
    steering = FusedSteering(u, Problem(model, stencil, (1.0,) * ndim, fixed))
    with record() as launches:
        tensors = torch.zeros(ndim * (ndim + 1) // 2, len(u), *(n + 1 for n in u.shape[2:]), dtype=u.dtype)
        for part in parts:
            if part == "fused":
                steering.fused_step(u, 0.2)
            elif part == "tensors":
                tensors = steering.stored_tensors(u)
            else:
                previous = torch.zeros_like(u) if part == "extrapolated" else None
                steering.frozen_step(u, previous, tensors, 1.5, 0.2, True)
    return launches


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def compile_launch(launch: Launch, card: Card) -> Compiled:
    """Compile a kernel for a card, as a launch there would."""
    types = {torch.float32: "fp32", torch.float64: "fp64", torch.int32: "i32", torch.int8: "i8"}
    types[torch.uint8] = "u8"
    signature = {}
    for name, value in launch.arguments.items():
        if isinstance(value, torch.Tensor):
            signature[name] = "*" + types[value.dtype]
        else:
            signature[name] = "fp64" if isinstance(value, float) else "i32"
    signature |= dict.fromkeys(launch.constants, "constexpr")
    # In the order of the kernel's own arguments.
    ordered = tuple((name, signature[name]) for name in launch.kernel.arg_names)
    text, registers, spills, shared = _compile(
        launch.kernel, ordered, tuple(launch.constants.items()), launch.warps, card.target
    )
    return Compiled(
        card.name,
        launch.kernel.fn.__name__,
        registers,
        spills,
        shared,
        _occupancy(registers, card),
        moved(launch),
        _operations(text, launch) * launch.programs,
    )


@functools.cache
def _compile(
    kernel: Any, signature: Any, constants: Any, warps: int, target: GPUTarget
) -> tuple[str, int, int, int]:
    """Triton's intermediate code, registers of a thread, bytes spilled, and bytes of shared memory."""
    source = ASTSource(kernel, signature=dict(signature), constexprs=dict(constants))
    code = triton.compile(source, target=target, options={"num_warps": warps, "enable_fp_fusion": True})
    return code.asm["ttir"], *_resources(code)


def _resources(code: Any) -> tuple[int, int, int]:
    """Registers of a thread, bytes spilled, and bytes of shared memory."""
    if "cubin" in code.asm:
        tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(code.asm["cubin"])
            file.flush()
            command = [str(tool), "--dump-resource-usage", file.name]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = dict(re.findall(r"(REG|STACK|SHARED|LOCAL):(\d+)", text))
        return int(found["REG"]), int(found["STACK"]) + int(found["LOCAL"]), code.metadata.shared
    text = code.asm["amdgcn"]
    found = dict(re.findall(r"\.(vgpr_count|vgpr_spill_count|sgpr_spill_count):\s*(\d+)", text))
    spills = int(found["vgpr_spill_count"]) + int(found["sgpr_spill_count"])
    return int(found["vgpr_count"]), 4 * spills, code.metadata.shared


def _occupancy(registers: int, card: Card) -> float:
    """Share of the threads that a processor can hold with these registers, which are given out in eights."""
    return min(card.groups, card.registers // (-(-registers // 8) * 8)) / card.groups


_ARITHMETIC = re.compile(
    r"(arith\.(addf|subf|mulf|divf|maxnumf|minnumf|maximumf|minimumf|cmpf)|math\.\w+|tt\.extern_elementwise).*"
    r"tensor<([\dx]+)x(?:f32|f64)"
)


def _operations(text: str, launch: Launch) -> int:
    """Operations of one program; those in loops as often as these run.

    Loops have a known number of turns, or run over the distances of a Gaussian, or over channels, of which
    the first one may be taken before the loop.
    """
    given, total, depth, loops = launch.arguments, 0, 0, list[tuple[int, int]]()
    for line in text.splitlines():
        if "scf.for" in line:
            bounds = re.findall(r"= %(\w+) to %(\w+) step", line)[0]
            first, last = (int(found[1]) if (found := re.match(r"c(\d+)_", one)) else None for one in bounds)
            if last is None:
                last = given["reach"] + 1 if "reach" in given else given["channels"]
            turns = last - (first or 0)
            loops.append((depth, turns))
        if match := _ARITHMETIC.search(line):
            total += math.prod(map(int, match[3].split("x"))) * math.prod(turns for _, turns in loops)
        depth += line.count("{") - line.count("}")
        while loops and depth <= loops[-1][0]:
            loops.pop()
    return total


def roofline(case: Case, compiled: list[Compiled], card: Card) -> float:
    """Seconds for one step, at least: for every kernel the longer of moving and computing."""
    rate = (card.single if case.dtype == "float32" else card.double) * 1e12
    return sum(max(code.moved / (card.bandwidth * 1e9), code.operations / rate) for code in compiled)
