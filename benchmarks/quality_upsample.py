"""Upsampling against cubic splines, with and without back-projection: PSNR over photographs.

python -m benchmarks.quality_upsample --json benchmarks/results/quality_upsample.json \
    --picture benchmarks/results/quality_upsample.png
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import aniso
from benchmarks.quality_inpaint import PHOTOGRAPHS, photograph, psnr
from benchmarks.report import PHOTO_DPI, Report, Target, add_places, deliver, figure_of, save_picture
from benchmarks.timing import CONSOLE, environment


def block_means(image: Any, factor: int) -> Any:
    """Means over blocks of factor × factor pixels; what does not fill a block is cut off."""
    height, width = (n // factor for n in image.shape[:2])
    blocks = image[: height * factor, : width * factor].reshape(
        height, factor, width, factor, *image.shape[2:]
    )
    return blocks.mean(axis=(1, 3), dtype=np.float64)


def full_size(name: str, size: int = 512) -> Any:
    """The photograph at its own resolution, cropped to this size."""
    return np.ascontiguousarray(aniso.samples.photograph(name)[:size, :size])


def _aniso(image: Any, factor: int) -> Any:
    return aniso.upsample(image, factor, channel_axis=None if image.ndim == 2 else -1)


def _splines(image: Any, factor: int) -> Any:
    from skimage.transform import resize

    shape = (*(n * factor for n in image.shape[:2]), *image.shape[2:])
    return resize(image, shape, order=3)


def _back_projection(image: Any, factor: int) -> Any:
    fine = _splines(image, factor)
    return fine + _splines(image - block_means(fine, factor), factor)


METHODS: dict[str, Callable[[Any, int], Any]] = {
    "aniso": _aniso,
    "cubic splines": _splines,
    "splines, back-projected": _back_projection,
}


def measure(
    photographs: Iterable[str] = PHOTOGRAPHS,
    factors: Iterable[int] = (2, 4),
    *,
    full: bool = True,
    quick: bool = False,
) -> Report:
    """PSNR of every method; `full`: photographs of 512² at most, else every second pixel of them."""
    if quick:
        photographs, full = ("camera",), False
    report = Report(
        "quality of upsampling",
        {"photographs": "full size" if full else "256²"},
        environment(("numpy", "scikit-image")),
    )
    _aniso(np.eye(200, dtype=np.float32), 2)  # compiles
    photographs = tuple(photographs)
    for factor in factors:
        found: dict[str, list[float]] = {name: [] for name in METHODS}
        errors = []
        for name in photographs:
            truth = full_size(name) if full else photograph(name)
            coarse = block_means(truth, factor).astype(np.float32)
            truth = truth[: coarse.shape[0] * factor, : coarse.shape[1] * factor]
            spent = {}
            for method, function in METHODS.items():
                start = time.perf_counter()
                fine = function(coarse, factor)
                spent[method] = time.perf_counter() - start
                found[method].append(psnr(fine, truth))
                if method == "aniso":
                    errors.append(float(abs(block_means(fine, factor) - coarse).max()))
            figures = ", ".join(f"{method} {values[-1]:.2f}" for method, values in found.items())
            gain = found["aniso"][-1] - found["cubic splines"][-1]
            note = f"{figures}; {1e3 * spent['aniso']:.0f} ms"
            report.add(f"{name}, {factor} ×", gain, "dB", "ours", note)
            CONSOLE.print(f"{name}, {factor} ×: {gain:+.2f} dB ({note})", highlight=False)
        for method, wanted in (("cubic splines", 0.7), ("splines, back-projected", 0.4)):
            gain = float(np.mean(found["aniso"]) - np.mean(found[method]))
            report.targets.append(Target(f"mean PSNR over {method}, {factor} ×", gain, wanted, unit="dB"))
        report.targets.append(
            Target(f"largest error of a block mean, {factor} ×", max(errors), 1e-4, "at most", "grey values")
        )
    return report


def picture(found: Report, path: Path, factor: int = 4) -> None:
    """What it looks like: parts of three photographs."""
    parts = (
        ("camera", np.s_[60:188, 160:288]),
        ("coffee", np.s_[100:228, 180:308]),
        ("coins", np.s_[8:136, 20:148]),
    )
    figure, axes = figure_of(len(parts), 2 + len(METHODS), (11, 7.6))
    for row, (name, part) in zip(axes, parts, strict=True):
        truth = full_size(name)
        coarse = block_means(truth, factor).astype(np.float32)
        truth = truth[: coarse.shape[0] * factor, : coarse.shape[1] * factor]
        nearest = coarse.repeat(factor, 0).repeat(factor, 1)
        shown = {"truth": truth, f"{factor} × {factor} block means": nearest}
        shown |= {method: function(coarse, factor) for method, function in METHODS.items()}
        for panel, (title, result) in zip(row, shown.items(), strict=True):
            panel.imshow(np.clip(result[part] / 255, 0, 1), cmap="gray", vmin=0, vmax=1)
            figures = f"\n{psnr(result, truth):.2f} dB" if title in METHODS else "\n"
            panel.set_title(f"{title}{figures}", fontweight="bold" if title == "aniso" else "normal")
            panel.set(xticks=[], yticks=[])
    save_picture(figure, path, PHOTO_DPI)


def main() -> None:
    """Measure, show, save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", action="store_true", help="every second pixel of the photographs")
    parser.add_argument("--photographs", nargs="+", default=PHOTOGRAPHS)
    add_places(parser)
    options = parser.parse_args()
    report = measure(options.photographs, full=not options.half)
    deliver(report, options, picture)


if __name__ == "__main__":
    main()
