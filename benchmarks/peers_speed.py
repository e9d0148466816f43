"""How long other packages take on the same image or volume for the same number of iterations."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

import aniso
from benchmarks import other_packages, peers_lbr, timing, volumes
from benchmarks.eed import CONTRAST, SIGMA, STEP, evolved
from benchmarks.other_packages import COHERENCE, GMIC, Package
from benchmarks.report import Report
from benchmarks.timing import Contestant

#: How far the second figure goes, in squared pixels: the width of a Gaussian of √20 ≈ 4.5 pixels.
TIME = 10.0
#: Packages that take seconds per call; they run once, without a warm-up, with this number of iterations.
SLOW = {COHERENCE: 1, GMIC: 1, peers_lbr.EDGE: 1, peers_lbr.COHERENT: 1}
#: Largest volume for these, in voxels along a side.
SLOW_SIDE = 128

MODELS: dict[str, Any] = {
    "aniso EED": aniso.EdgeEnhancing(contrast=CONTRAST, sigma=SIGMA),
    "aniso Perona–Malik": aniso.PeronaMalik(contrast=10.0, sigma=0.0),
    "aniso CED": aniso.CoherenceEnhancing(contrast=CONTRAST, sigma=1.0, rho=3.0),
}
WHAT = {
    "aniso EED": "edge-enhancing, tensor from a smoothed gradient, σ 1",
    "aniso Perona–Malik": "Perona–Malik",
    "aniso CED": "coherence-enhancing, σ 1, ρ 3",
    "OpenCV Perona–Malik": "Perona–Malik; supports only 8 bit, three channels",
    "MedPy Perona–Malik": "Perona–Malik, one thread",
    "SimpleITK gradient diffusion": "Perona–Malik, contrast from the mean gradient",
    "SimpleITK curvature diffusion": "modified curvature",
    "DIPlib Perona–Malik": "Perona–Malik",
    "ITK LBR EED": "edge-enhancing, tensor from a smoothed gradient, σ 1; time 0.2 in its own steps",
    "ITK LBR CED": "coherence-enhancing, σ 1, ρ 3; time 0.2 in its own steps",
    "DIPlib CED": "coherence-enhancing, σ 1, ρ 3, other eigenvalues",
    "G'MIC smooth": "one call: line integrals along a tensor field, amplitude 60",
}


def measure(found: Report, image_size: int, volume_sizes: tuple[int, ...], rounds: int, threads: int) -> None:
    """Milliseconds per iteration, and to the same time, on an image and on volumes."""
    image = np.asarray(aniso.samples.shapes(image_size).image, dtype=np.float32)
    _contest(found, f"{image_size}²", image, 10, rounds, threads)
    for size in volume_sizes:
        _contest(found, f"{size}³", volumes.sample(size), 4, rounds, threads)


def _contest(found: Report, size: str, pixels: Any, iterations: int, rounds: int, threads: int) -> None:
    entrants = []
    for name, model in MODELS.items():
        entrants.append(Contestant(name, partial(evolved, pixels, iterations, threads, model), iterations))
        entrants.append(Contestant(f"{name}, FED", partial(_fast, pixels, model, threads)))
    packages: dict[str, Package] = {}
    candidates = tuple(
        p
        for p in (*other_packages.PACKAGES, peers_lbr.EDGE, peers_lbr.COHERENT)
        if pixels.ndim in p.dimensions
    )
    for package, run in other_packages.installed(candidates, pixels, threads, found.skip):
        count = SLOW.get(package, iterations)
        if package in SLOW and pixels.ndim == 3 and pixels.shape[0] > SLOW_SIDE:
            found.skip(f"{package.name}, {size}", f"skipped above {SLOW_SIDE}³: it takes minutes")
            continue
        most = 1 if package in SLOW else 3
        entrants.append(Contestant(package.name, partial(run, count), count, most, package not in SLOW))
        packages[package.name] = package
    times = timing.contest(entrants, rounds)
    for name in MODELS:
        found.add_timing(f"iteration, {size}: {name}", times[name], "ours", f"step {STEP}")
        found.add_timing(f"time {TIME:g}, {size}: {name}", times[f"{name}, FED"], "ours", "FED, 5 cycles")
    for name, package in packages.items():
        step = package.step(pixels.ndim)
        found.add_timing(
            f"iteration, {size}: {name}", times[name], "theirs", "" if step is None else f"step {step:g}"
        )
        if step is not None:
            steps = math.ceil(TIME / step)
            note = f"{steps} iterations, computed from one"
            found.add(
                f"time {TIME:g}, {size}: {name}", 1e3 * times[name].per_step * steps, "ms", "theirs", note
            )


def _fast(pixels: Any, model: Any, threads: int) -> object:
    return aniso.diffuse(pixels, model, TIME, scheme=aniso.FED(cycles=5), threads=threads)
