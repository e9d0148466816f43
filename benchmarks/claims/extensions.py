"""What the library adds to the paper: larger cells, learned diffusion, and fused steps on a GPU."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.fft import dctn
from scipy.sparse.linalg import LinearOperator, eigsh
from torch.utils._python_dispatch import TorchDispatchMode

import aniso
from aniso import nn as blocks
from benchmarks import quality_denoise
from benchmarks.claims.claim import Claim, Finding, Table, Verdict, at_least, at_most, close_to, shown
from benchmarks.claims.fields import ROUNDING
from benchmarks.quality_inpaint import psnr

COMPILED = Path(__file__).parents[1] / "results" / "gpu_compile.json"
SIDES = (2, 3, 5)
#: Parameters of these sizes with images of these grey values.
SIZES = ((1.0, 100.0), (30.0, 1.0), (1e30, 1e10), (1e-25, 255.0))


def cosine_modes(side: int) -> Any:
    """The rows of the cosine transform of side × side pixels, without the constant one."""
    pixels = np.eye(side**2).reshape(-1, side, side)
    return dctn(pixels, axes=(1, 2), norm="ortho").reshape(side**2, -1).T[1:]


def random_modes(side: int, rng: np.random.Generator) -> Any:
    """Orthonormal rows of sum 0, in random directions."""
    count = side**2 - 1
    return np.linalg.qr(rng.normal(size=(count, count)))[0] @ cosine_modes(side)


def sum_of_cells(size: int, side: int, modes: Any, weights: Any) -> Any:
    """−A = Σ Pᵀ Mᵀ W M P for a square image, written out cell by cell, with W from an iterator."""
    places = np.arange(size**2).reshape(size, size)
    matrix = np.zeros((size**2, size**2))
    for y in range(size - side + 1):
        for x in range(size - side + 1):
            cell = places[y : y + side, x : x + side].ravel()
            matrix[np.ix_(cell, cell)] += modes.T @ next(weights) @ modes
    return matrix


def random_weights(count: int, rng: np.random.Generator) -> Iterator[Any]:
    """Symmetric matrices with random eigenvectors, and eigenvalues in [0, 1] that are often 0 or 1."""
    while True:
        turned = np.linalg.qr(rng.normal(size=(count, count)))[0]
        yield turned * rng.uniform(-0.5, 1.5, count).clip(0, 1) @ turned.T


def attained(size: int, side: int) -> float:
    """ρ(A)/k² for W = I, where MᵀM only takes the mean out of a cell."""
    cells = size - side + 1

    def apply(u: Any) -> Any:
        u, result = u.reshape(size, size), np.zeros((size, size))
        windows = np.lib.stride_tricks.sliding_window_view(u, (side, side))
        means = windows.mean(axis=(2, 3))
        for y in range(side):
            for x in range(side):
                result[y : y + cells, x : x + cells] += u[y : y + cells, x : x + cells] - means
        return result.ravel()

    matrix = LinearOperator((size**2, size**2), matvec=apply, dtype=np.float64)
    start = np.random.default_rng(0).normal(size=size**2)
    (largest,) = eigsh(matrix, 1, which="LA", v0=start, tol=1e-5, return_eigenvectors=False)
    return float(largest) / side**2


def large_cells(quick: bool) -> Finding:
    rng, size = np.random.default_rng(11), 10 if quick else 12
    shares, sums, asymmetries, least = [], [], [], []
    for side in SIDES:
        for modes in (cosine_modes(side), random_modes(side, rng)):
            for _ in range(1 if quick else 3):
                matrix = sum_of_cells(size, side, modes, random_weights(side**2 - 1, rng))
                values = np.linalg.eigvalsh(matrix)
                shares.append(values[-1] / side**2)
                least.append(values[0] / side**2)
                sums.append(abs(matrix.sum(axis=1)).max())
                asymmetries.append(abs(matrix - matrix.T).max())
    reached = {side: attained(24 if quick else 64, side) for side in SIDES}
    growth, change = [], []
    for draw in range(12 if quick else 120):
        cells, image, numbers = random_cells(SIDES[draw % 3], draw)
        with torch.no_grad():
            result = cells(image, numbers)
        growth.append(float((result.norm() / image.norm()).max()))
        change.append(float((result - image).mean(dim=(2, 3)).abs().max() / image.norm()))
    return Finding(
        [
            at_most(f"largest ρ(A)/k², {len(shares)} random sets of modes and weights", max(shares), 1),
            at_least("smallest eigenvalue of −A, over k²", min(least), -ROUNDING),
            at_most("largest row sum of A", max(sums), ROUNDING),
            at_most("largest asymmetry of A", max(asymmetries), ROUNDING),
            *(
                at_least(f"W = I, k = {side}: ρ(A)/k², an image of finite size", share, 0.99)
                for side, share in reached.items()
            ),
            at_most(
                f"`CellDiffusion`: largest growth of the norm, {len(growth)} runs", max(growth), 1 + 1e-12
            ),
            at_most("and largest change of a mean, over the norm", max(change), ROUNDING),
        ],
        [
            "The bound is approached from below as images grow, since pixels at the boundary lie in fewer "
            "cells."
        ],
    )


def random_cells(side: int, seed: int) -> tuple[Any, Any, Any]:
    """Cells with random parameters, images, and random predictions for them."""
    random = torch.Generator().manual_seed(seed)
    size, grey = SIZES[seed % len(SIZES)]
    cells = blocks.CellDiffusion(side, dtype=torch.float64)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=random, dtype=torch.float64)

    with torch.no_grad():
        for parameter in cells.parameters():
            parameter.copy_(size * draw(*parameter.shape))
    count = 2 * (side**2 - 1)
    return cells, grey * draw(1, 1, 12, 9), size * draw(1, count, 13 - side, 10 - side)


def learned(quick: bool) -> Finding:
    growth, change = [], []
    random = torch.Generator().manual_seed(3)
    net = blocks.KernelDiffusionNet([1, 2], kernels=2, side=3, colour=True, dtype=torch.float64)
    for draw in range(8 if quick else 100):
        size, grey = SIZES[draw % len(SIZES)]
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.copy_(size * torch.randn(parameter.shape, generator=random, dtype=torch.float64))
            image = grey * torch.randn(1, 1 + 2 * (draw % 2), 11, 14, generator=random, dtype=torch.float64)
            result = net(image, 0.1 * grey)
        growth.append(float(result.norm() / image.norm()))
        change.append(float((result - image).mean(dim=(2, 3)).abs().max() / image.norm()))
    trained = blocks.pretrained("denoise-2-75").double()
    norms, means = [], []
    for image in photographs(quick):
        for level in (15.0, 50.0):
            noisy = torch.from_numpy(quality_denoise.noisy_version(image, level).astype(float))[None, None]
            with torch.no_grad():
                result = trained(noisy, level)
            norms.append(float(result.norm() / noisy.norm()))
            means.append(float((result - noisy).mean().abs()))
    return Finding(
        [
            at_most(f"largest growth of the norm, {len(growth)} random nets", max(growth), 1 + 1e-12),
            at_most("largest change of a mean, over the norm", max(change), ROUNDING),
            at_most("trained net on noisy photographs: largest growth of the norm", max(norms), 1),
            at_most("and largest change of the mean in grey values", max(means), 1e-9),
            shown("trained net: smallest ratio of the norms", min(norms)),
            shown("its number of parameters", sum(p.numel() for p in trained.parameters())),
        ],
        [
            "Parameters are drawn with standard deviations up to 10³⁰. A random test can refute the theorem "
            "and not prove it; the proof is in [larger cells](theory_cells.md)."
        ],
    )


def photographs(quick: bool) -> list[Any]:
    """Those of scikit-image, in grey; none of them was used for training."""
    size, names = (96, quality_denoise.IMAGES[:1]) if quick else (256, quality_denoise.IMAGES)
    return [quality_denoise.photograph(name)[:size, :size] for name in names]


def learned_quality(quick: bool) -> Finding:
    rows, gains = [], []
    levels = (25.0,) if quick else (15.0, 25.0, 50.0)
    methods: dict[str, Any] = {
        "learned": lambda noisy, level: aniso.denoise(noisy, noise=level, method="learned"),
        "diffusions": lambda noisy, level: aniso.denoise(noisy, noise=level, method="diffusion"),
    }
    if importlib.util.find_spec("bm3d") and not quick:
        methods["BM3D"] = importlib.import_module("bm3d").bm3d
    for level in levels:
        means = {}
        for name, denoise in methods.items():
            values = [
                psnr(np.clip(denoise(quality_denoise.noisy_version(image, level), level), 0, 255), image)
                for image in photographs(quick)
            ]
            means[name] = float(np.mean(values))
        gains.append(means)
        rows.append((f"{level:g}", *(f"{value:.2f}" for value in means.values())))
    figures = [
        at_least(
            f"gain over chosen diffusions, dB, noise {level:g}", means["learned"] - means["diffusions"], 0.0
        )
        for level, means in zip(levels, gains, strict=True)
    ]
    if "BM3D" in methods:
        figures += [
            shown(f"gain over the package bm3d, dB, noise {level:g}", means["learned"] - means["BM3D"])
            for level, means in zip(levels, gains, strict=True)
        ]
    return Finding(
        figures,
        [
            "Published figures of BM3D are for Set12 and BSD68, which may not be distributed with the "
            "library. With a folder of such images, `python -m benchmarks.learned --folder set12` measures "
            "both on the same noise."
        ],
        [Table(("noise level", *methods), rows)],
        untestable="The images of the published figures do not come with the library. What can be tested "
        "are photographs of scikit-image.",
    )


class Traffic(TorchDispatchMode):
    """Counts operations and the bytes that they read and write; views are free."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes, self.launches = 0, 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if not function.is_view and "empty" not in str(function):
            flat = torch.utils._pytree.tree_leaves((args, kwargs, result))
            tensors = [one for one in flat if isinstance(one, torch.Tensor)]
            if any(one.numel() > 1 for one in tensors):
                self.launches += 1
                self.bytes += sum(one.numel() * one.element_size() for one in tensors)
        return result


def eager_step(side: int = 512) -> tuple[float, int]:
    """Bytes per pixel and operations of a step of EED in PyTorch: those of three steps less those of two."""
    from benchmarks import gpu

    image, found = torch.zeros(side, side), []
    for steps in (2, 3):
        with Traffic() as seen:
            scheme = aniso.Explicit(gpu.STEP)
            aniso.diffuse(image, gpu.MODEL, steps * gpu.STEP, scheme=scheme, engine="torch")
        found.append((seen.bytes, seen.launches))
    return (found[1][0] - found[0][0]) / side**2, found[1][1] - found[0][1]


def gpu_bytes(quick: bool) -> Finding:
    if importlib.util.find_spec("triton") is None:
        return Finding([], untestable="Triton is not installed.")
    from benchmarks import gpu, gpu_compile

    side, depth = (256, 32) if quick else (2048, 128)
    margin = 1.02 if quick else 1.002  # there is a row and a column of cells more than of pixels
    cases = {
        (case.name, case.ndim): case
        for case in gpu_compile.cases(side, depth)
        if case.dtype == "float32" and (case.name, case.ndim) in gpu.LIMITS
    }
    compiled = [
        entry
        for entry in json.loads(COMPILED.read_text("utf-8"))
        if entry["type"] == "float32" and (entry["step"], entry["axes"]) in cases
    ]
    spills = sum(kernel["spills"] for entry in compiled for kernel in entry["kernels"])
    ratios = [cases[entry["step"], entry["axes"]].moved / entry["bytes per pixel"] for entry in compiled]
    rows = [
        (
            f"{entry['step']}, {entry['axes']} axes",
            entry["card"],
            f"{entry['bytes per pixel']:.1f}",
            str(len(entry["kernels"])),
            f"{entry['roofline, µs per megapixel']:.3g}",
        )
        for entry in compiled
    ]
    eager, launches = eager_step()
    step = cases["EED, explicit step", 2]
    return Finding(
        [
            *(
                at_most(f"{name}, {ndim} axes: bytes per pixel", case.moved, gpu.LIMITS[name, ndim] * margin)
                for (name, ndim), case in cases.items()
            ),
            at_most("EED, explicit step, 2 axes: launches", len(step.launches), 4),
            at_most(f"bytes spilled, compiled for {len({row[1] for row in rows})} cards", spills, 0),
            close_to("bytes as recorded over those of the compiled kernels", np.mean(ratios), 1, margin - 1),
            at_least(
                "bytes of PyTorch's operations over those of fused kernels, EED", eager / step.moved, 10
            ),
            shown("PyTorch's operations: bytes per pixel", eager),
            shown("and launches", launches),
        ],
        [
            "Nothing is timed: bytes are those of the tensors that a kernel reads and writes, each once. The "
            "last column is the roofline of the card, which no run can beat; see [on a GPU](gpu.md)."
        ],
        [Table(("step", "card", "bytes per pixel", "launches", "µs per megapixel, at least"), rows)],
    )


CLAIMS = [
    Claim(
        "large-cells",
        "The bound for cells of k×k pixels holds and is attained",
        "Diffusion in cells of k×k pixels with orthonormal modes and any weights with eigenvalues in [0, 1] "
        "is symmetric, preserves the mean, and has ρ(A) ≤ k², which is attained for W = I on large images.",
        "Library: Theorem I in [larger cells](theory_cells.md)",
        "A is assembled cell by cell in NumPy for k = 2, 3 and 5, with cosine and random modes and random "
        "weights; all its eigenvalues are computed. For W = I, the largest eigenvalue on a large image by "
        "Lanczos iteration. `aniso.nn.CellDiffusion` with random parameters and predictions.",
        large_cells,
    ),
    Claim(
        "learned",
        "The learned diffusion preserves the mean and never increases the norm",
        "This holds for all parameters of `aniso.nn.KernelDiffusionNet`, trained or not.",
        "Library: Theorem J in [larger cells](theory_cells.md)",
        "Random parameters and images of very different sizes, grey and colour; the trained net on noisy "
        "photographs.",
        learned,
    ),
    Claim(
        "learned-quality",
        "The learned diffusion is better than BM3D",
        "With fewer than 10,000 parameters and a proof of stability, it exceeds the PSNR published for BM3D.",
        "Library: [networks](networks.md)",
        "Photographs of scikit-image with white noise of known level, on which the diffusions with chosen "
        "parameters and, if it is installed, the package `bm3d` are run as well.",
        learned_quality,
        Verdict.UNTESTED,
    ),
    Claim(
        "gpu-bytes",
        "A fused step on a GPU moves few bytes",
        "An explicit EED step of the triton engine moves at most 32 bytes per pixel in at most 4 launches, a "
        "step of FED 20, one in volumes 60.",
        "Library: [on a GPU](gpu.md)",
        "The launches of a step are recorded without a GPU. Spilled registers are those of the machine code "
        "for four cards, from `python -m benchmarks.gpu --compile`. PyTorch's operations are counted by a "
        "dispatch mode.",
        gpu_bytes,
    ),
]
