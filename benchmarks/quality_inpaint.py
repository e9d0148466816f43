"""Inpainting against biharmonic and OpenCV's: PSNR and time over photographs and masks.

python -m benchmarks.quality_inpaint --json benchmarks/results/quality_inpaint.json \
    --picture benchmarks/results/quality_inpaint.png
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import unittest.mock
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import aniso
from benchmarks import fresh
from benchmarks.report import PHOTO_DPI, Report, Target, add_places, deliver, figure_of, save_picture
from benchmarks.timing import CONSOLE, environment

#: Figures are reported on these; parameters were chosen on the other photographs of scikit-image.
PHOTOGRAPHS = ("camera", "coins", "astronaut", "brick", "coffee")
#: Share of known pixels, or what covers the image.
DAMAGES: tuple[float | str, ...] = (0.05, 0.1, 0.2, "text", "scratches")
_WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "many", "small", "waves", "along", "a", "shore")


def photograph(name: str, size: int = 256, *, grey: bool = False) -> Any:
    """Every second pixel of large photographs, smaller ones as they are; cropped to this size, uint8."""
    image = aniso.samples.photograph(name)
    if image.shape[0] >= 400:
        image = image[: 2 * size : 2, : 2 * size : 2]
    image = image[:size, :size]
    if grey and image.ndim == 3:
        image = np.rint(image @ np.array([0.299, 0.587, 0.114])).astype(np.uint8)
    return np.ascontiguousarray(image)


def damage(kind: float | str, shape: tuple[int, int], seed: int = 0) -> Any:
    """True where a pixel is lost."""
    if isinstance(kind, float):
        order = np.random.default_rng(seed).permutation(shape[0] * shape[1]).reshape(shape)
        return order >= round(kind * order.size)
    return _text(shape, seed) if kind == "text" else _scratches(shape, seed)


def _text(shape: tuple[int, int], seed: int) -> Any:
    rng, canvas = np.random.default_rng(seed), Image.new("1", shape[::-1])
    pen, font = ImageDraw.Draw(canvas), ImageFont.load_default(size=14)
    for y in range(2, shape[0], 20):
        line = " ".join(rng.choice(_WORDS, size=shape[1] // 20))
        pen.text((-int(rng.integers(0, 30)), y), line, fill=1, font=font)
    return np.array(canvas, bool)


def _scratches(shape: tuple[int, int], seed: int) -> Any:
    """Bent lines of one to four pixels' width in all directions."""
    rng, canvas = np.random.default_rng(seed), Image.new("1", shape[::-1])
    pen = ImageDraw.Draw(canvas)
    for _ in range(shape[0] * shape[1] // 2500):
        point = np.array([rng.uniform(0, shape[1]), rng.uniform(0, shape[0])])
        angle, length = rng.uniform(0, np.pi), rng.uniform(0.1, 0.5) * max(shape)
        points = [point]
        for turned in (angle, angle + rng.normal(0, 0.3)):
            points.append(points[-1] + 0.5 * length * np.array([np.cos(turned), np.sin(turned)]))
        pen.line([tuple(map(float, p)) for p in points], fill=1, width=int(rng.integers(1, 5)))
    return np.array(canvas, bool)


def _axis(image: Any) -> int | None:
    return None if image.ndim == 2 else -1


def _aniso(image: Any, mask: Any) -> Any:
    return aniso.inpaint(image, mask, channel_axis=_axis(image))


def _biharmonic(image: Any, mask: Any) -> Any:
    from skimage.restoration import inpaint_biharmonic

    # scikit-image 0.26 asks for too many entries of its matrix (a sum of booleans) and leaves the rest
    # unwritten: as it happens, the call fails. Zeros in that place are harmless.
    with unittest.mock.patch("numpy.empty", np.zeros):
        return 255 * inpaint_biharmonic(image, mask, channel_axis=_axis(image))


def _telea(image: Any, mask: Any) -> Any:
    import cv2

    return cv2.inpaint(image, mask.astype(np.uint8), 3, cv2.INPAINT_TELEA)


def _navier_stokes(image: Any, mask: Any) -> Any:
    import cv2

    return cv2.inpaint(image, mask.astype(np.uint8), 3, cv2.INPAINT_NS)


METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "aniso": _aniso,
    "biharmonic": _biharmonic,
    "Telea": _telea,
    "Navier–Stokes": _navier_stokes,
}


def installed(report: Report | None = None) -> dict[str, Callable[[Any, Any], Any]]:
    """The methods whose packages are there; what is left out is said in the report."""
    present = dict(METHODS)
    if importlib.util.find_spec("cv2") is None:
        for name in ("Telea", "Navier–Stokes"):
            del present[name]
            if report is not None:
                report.skip(name, "OpenCV is not installed: pip install opencv-python-headless")
    return present


def psnr(image: Any, truth: Any) -> float:
    """In decibels, for grey values up to 255."""
    return float(10 * np.log10(255**2 / np.mean((image - truth.astype(float)) ** 2)))


def lossy(truth: Any, mask: Any) -> Any:
    """The photograph with its lost pixels black."""
    image = truth.copy()
    image[mask] = 0
    return image


def measure(
    photographs: Iterable[str] = PHOTOGRAPHS,
    damages: Iterable[float | str] = DAMAGES,
    *,
    size: int = 256,
    seed: int = 0,
    grey: bool = False,
    memory: int = 2048,
    quick: bool = False,
) -> Report:
    """PSNR of every method on every pair, one call each after a first one that is not counted."""
    if quick:
        photographs, memory = ("camera",), 0
    report = Report(
        "quality of inpainting",
        {"size": size, "seed": seed, "colour": not grey},
        environment(("numpy", "scikit-image", "opencv-python-headless", "opencv-python")),
    )
    damages = tuple(damages)
    warm = photograph("camera", 64)
    methods = installed(report)
    for method in methods.values():
        method(warm, damage("text", warm.shape))
    found: dict[str, list[float]] = {name: [] for name in methods}
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for name in photographs:
        truth = photograph(name, size, grey=grey)
        for kind in damages:
            mask = damage(kind, truth.shape[:2], seed)
            image = lossy(truth, mask)
            for method, function in methods.items():
                start = time.perf_counter()
                result = function(image, mask)
                seconds[method].append(time.perf_counter() - start)
                found[method].append(psnr(result, truth))
            figures = ", ".join(f"{method} {values[-1]:.2f}" for method, values in found.items())
            spent = f"{1e3 * seconds['aniso'][-1]:.0f} ms against {1e3 * seconds['biharmonic'][-1]:.0f} ms"
            gain = found["aniso"][-1] - found["biharmonic"][-1]
            report.add(f"{name}, {worded(kind)}", gain, "dB", "ours", f"{figures}; {spent}")
            CONSOLE.print(f"{name}, {worded(kind)}: {gain:+.2f} dB ({figures}; {spent})", highlight=False)
    for method, values in found.items():
        report.add(
            f"mean PSNR, {method}", float(np.mean(values)), "dB", "ours" if method == "aniso" else "theirs"
        )
        mean_time = 1e3 * float(np.mean(seconds[method]))
        report.add(f"mean time, {method}", mean_time, "ms", "ours" if method == "aniso" else "theirs")
    for method, wanted in (("biharmonic", 0.4), ("Telea", 0.0), ("Navier–Stokes", 0.0)):
        if method not in methods:
            continue
        gain = float(np.mean(found["aniso"]) - np.mean(found[method]))
        report.targets.append(Target(f"mean PSNR over {method}", gain, wanted, unit="dB"))
    faster = float(np.sum(seconds["biharmonic"]) / np.sum(seconds["aniso"]))
    report.targets.append(Target("biharmonic's time over aniso's, all pairs", faster, 1.0))
    if memory:
        images = fresh.run("inpaint", str(memory))["images"]
        report.add(f"memory, {memory}² from 10 %", images, "images", "memory")
        report.targets.append(
            Target(f"memory for {memory}² from 10 % known", images, 12.0, "at most", "images")
        )
    return report


def worded(kind: float | str) -> str:
    """How a kind of damage is called."""
    return kind if isinstance(kind, str) else f"{100 * kind:g} % known"


def picture(found: Report, path: Path) -> None:
    """What it looks like: three pairs, all methods, a part of each enlarged."""
    size, seed = found.settings["size"], found.settings["seed"]
    pairs: tuple[tuple[str, float | str, Any], ...] = (
        ("camera", 0.1, np.s_[20:148, 40:168]),
        ("coffee", 0.2, np.s_[40:168, 60:188]),
        ("astronaut", "text", np.s_[0:128, 50:178]),
    )
    methods = installed()
    figure, axes = figure_of(len(pairs), 2 + len(methods), (2 * (2 + len(methods)), 7.1))
    for row, (name, kind, part) in zip(axes, pairs, strict=True):
        truth = photograph(name, size)
        mask = damage(kind, truth.shape[:2], seed)
        image = lossy(truth, mask)
        shown = {"truth": truth, worded(kind): image}
        shown |= {method: function(image, mask) for method, function in methods.items()}
        for panel, (title, result) in zip(row, shown.items(), strict=True):
            panel.imshow(np.clip(result[part] / 255, 0, 1), cmap="gray", vmin=0, vmax=1)
            better = f"{psnr(result, truth):.2f} dB" if title in METHODS else ""
            panel.set_title(f"{title}\n{better}", fontweight="bold" if title == "aniso" else "normal")
            panel.set(xticks=[], yticks=[])
    save_picture(figure, path, PHOTO_DPI)


def main() -> None:
    """Measure, show, save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--grey", action="store_true", help="colour photographs in grey")
    parser.add_argument("--photographs", nargs="+", default=PHOTOGRAPHS)
    add_places(parser)
    options = parser.parse_args()
    report = measure(options.photographs, size=options.size, seed=options.seed, grey=options.grey)
    deliver(report, options, picture)


if __name__ == "__main__":
    main()
