"""How well the verbs do on synthetic volumes: python -m benchmarks.quality_volumes [size].

    python -m benchmarks.quality_volumes --peer 48 [volume.nii.gz …]

compares denoise with BM4D only, also on the middle of real volumes, whose own noise block means of 2 reduce.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

import aniso

MAKERS = (aniso.samples.fibres, aniso.samples.layers, aniso.samples.balls)


def psnr(result: Any, truth: Any, where: Any = ...) -> float:
    """Peak signal to noise ratio in dB, of grey values from 0 to 255."""
    return float(10 * np.log10(255**2 / np.mean((result - truth)[where] ** 2)))


def denoised(size: int) -> None:
    """Against the noise, and against the same method slice by slice."""
    print("| volume | noise | noisy | slice by slice | denoise | expected error | error |")
    print("|---|---|---|---|---|---|---|")
    for maker in MAKERS:
        for noise in (15.0, 40.0, 80.0):
            sample = maker(size, noise=noise, seed=11)
            volume = sample.image.astype(np.float32)
            result, info = aniso.denoise(volume, return_info=True)
            slices = np.stack([aniso.denoise(image) for image in volume])
            values = [psnr(image, sample.truth) for image in (volume, slices, result)]
            error = np.sqrt(np.mean((result - sample.truth) ** 2))
            cells = " | ".join(f"{value:.1f}" for value in (*values, info.expected_error, error))
            print(f"| {maker.__name__} | {noise:g} | {cells} |", flush=True)


def real_volume(path: Path, size: int) -> Any:
    """The middle of a volume in a file: block means of 2 along sides that stay long enough, 0 to 255."""
    volume = np.squeeze(aniso.io.read(path).pixels).astype(np.float32)
    for axis in range(3):
        if volume.shape[axis] >= 48:
            halves = np.moveaxis(volume, axis, 0)[: volume.shape[axis] // 2 * 2]
            volume = np.moveaxis(0.5 * (halves[::2] + halves[1::2]), 0, axis)
    middle = tuple(slice(max(n - size, 0) // 2, max(n - size, 0) // 2 + size) for n in volume.shape)
    return np.ascontiguousarray(volume[middle] * (255 / np.quantile(volume, 0.999)))


def truths(size: int, paths: list[Path]) -> Iterator[tuple[str, Any]]:
    """Volumes without noise, and their names."""
    for maker in MAKERS:
        yield maker.__name__, maker(size, noise=0.0, seed=11).truth.astype(np.float32)
    for path in paths:
        yield path.name.split(".")[0], real_volume(path, size)


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """The result, and the processor time of all threads, which other processes hardly change."""
    start = time.process_time()
    result = function()
    return result, time.process_time() - start


def show(name: str, row: Any) -> None:
    """Print one row of the comparison."""
    peer, ours, ratio = row
    print(f"| {name} | {peer:.2f} | {ours:.2f} | {ours - peer:+.2f} | {ratio:.1f} |", flush=True)


def compared(size: int, paths: list[Path]) -> None:
    """Against BM4D, the noise level given to both."""
    try:
        from bm4d import bm4d
    except ImportError:
        print("BM4D is not installed, so denoise is not compared with it: pip install bm4d")
        return
    print(
        "| volume | noise | BM4D | denoise | difference | time of BM4D / denoise |\n|---|---|---|---|---|---|"
    )
    rows = []
    aniso.denoise(aniso.samples.balls(24, noise=30.0).image.astype(np.float32))  # loads the kernels
    for name, truth in truths(size, paths):
        for noise in (15.0, 30.0):
            random = np.random.default_rng(int(noise) + 100)
            volume = (truth + random.normal(0, noise, truth.shape)).astype(np.float32)
            peer, slow = timed(lambda: bm4d(volume, noise))  # noqa: B023 (called at once)
            ours, fast = timed(lambda: aniso.denoise(volume, noise=noise))  # noqa: B023
            rows.append((psnr(peer, truth), psnr(ours, truth), slow / fast))
            first, second, ratio = rows[-1]
            print(
                f"| {name} | {noise:g} | {first:.2f} | {second:.2f} | {second - first:+.2f} | {ratio:.1f} |"
            )
    first, second, ratio = np.mean(rows, axis=0)
    print(f"| mean | | {first:.2f} | {second:.2f} | {second - first:+.2f} | {ratio:.1f} |", flush=True)


def enhanced(size: int) -> None:
    """Error over that of the input, and how far gaps are closed: 0 as they were, 1 as the truth."""
    print("| volume | noise | plates | error | gap closed |\n|---|---|---|---|---|")
    for maker, plates in ((aniso.samples.layers, True), (aniso.samples.fibres, False)):
        for noise in (10.0, 40.0, 70.0):
            sample = maker(size, gaps=20, noise=noise, seed=11)
            result = aniso.enhance(sample.image.astype(np.float32), plates=plates)
            error = np.std(result - sample.truth) / np.std(sample.image - sample.truth)
            before = (maker(size, gaps=20, noise=0.0, seed=11).image - sample.truth)[sample.gaps]
            after = (result - sample.truth)[sample.gaps]
            closed = 1 - float(after @ before) / float(before @ before)
            print(f"| {maker.__name__} | {noise:g} | {plates} | {error:.2f} | {closed:.2f} |", flush=True)


def filled(size: int) -> None:
    """Unknown voxels: against slice by slice and the nearest known voxel."""
    print("| volume | known | nearest | slice by slice | inpaint |\n|---|---|---|---|---|")
    for maker in MAKERS:
        truth = maker(size, noise=0.0, seed=11).truth
        for known in (0.05, 0.2):
            unknown = np.random.default_rng(0).random(truth.shape) > known
            places = ndimage.distance_transform_edt(unknown, return_distances=False, return_indices=True)
            slices = np.stack([aniso.inpaint(*pair) for pair in zip(truth, unknown, strict=True)])
            results = (truth[tuple(places)], slices, aniso.inpaint(truth, unknown))
            cells = " | ".join(f"{psnr(result, truth, unknown):.1f}" for result in results)
            print(f"| {maker.__name__} | {known:.0%} | {cells} |", flush=True)


def refined(size: int) -> None:
    """Finer grids: against cubic splines."""
    print("| volume | factor | splines | upsample |\n|---|---|---|---|")
    for maker in MAKERS:
        for factor in (2, 4):
            n = size // factor
            truth = maker(n * factor, noise=0.0, seed=11).truth
            coarse = truth.reshape(n, factor, n, factor, n, factor).mean(axis=(1, 3, 5))
            splines = ndimage.zoom(coarse, factor, order=3, mode="reflect", grid_mode=True)
            results = (splines, aniso.upsample(coarse, factor))
            cells = " | ".join(f"{psnr(result, truth):.1f}" for result in results)
            print(f"| {maker.__name__} | {factor} | {cells} |", flush=True)


def sliced(size: int) -> None:
    """Thick slices, divided into three: against cubic splines."""
    print("| volume of thick slices | splines | upsample |\n|---|---|---|")
    for maker in MAKERS:
        n = size // 3
        truth = maker((3 * n, size, size), noise=0.0, seed=11).truth
        coarse = truth.reshape(n, 3, size, size).mean(axis=1)
        splines = ndimage.zoom(coarse, (3, 1, 1), order=3, mode="reflect", grid_mode=True)
        results = (splines, aniso.upsample(coarse, isotropic=True, spacing=(3, 1, 1)))
        cells = " | ".join(f"{psnr(result, truth):.1f}" for result in results)
        print(f"| {maker.__name__} | {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("size", type=int, nargs="?", default=64, help="voxels along each side")
    parser.add_argument("volumes", type=Path, nargs="*", help="files with real volumes, for --peer")
    parser.add_argument("--peer", action="store_true", help="compare denoise with BM4D only")
    options = parser.parse_args()
    if not options.peer:
        for table in (denoised, enhanced, filled, refined, sliced):
            table(options.size)
            print()
    compared(options.size, options.volumes)


if __name__ == "__main__":
    main()
