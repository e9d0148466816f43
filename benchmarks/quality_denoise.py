"""Quality of denoise() without parameters, compared with filters tuned with the ground truth."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import aniso
from benchmarks import report, timing
from benchmarks.quality_inpaint import psnr
from benchmarks.report import Report, Target

Image = npt.NDArray[np.float64]

IMAGES = ("camera", "coins", "astronaut", "brick", "coffee")
LEVELS = (10, 20, 30)
LUMINANCE = (0.299, 0.587, 0.114)

OURS = "denoise"
TUNED = "EED, tuned"
BILATERAL, WAVELETS = "bilateral, tuned", "BayesShrink wavelets"
VARIATION, MEANS = "total variation, tuned", "non-local means, tuned"
METHODS = (OURS, "denoise, noise given", TUNED, VARIATION, MEANS, BILATERAL, WAVELETS)


def photograph(name: str, colour: bool = False) -> Image:
    """Every second pixel of the first 512², in grey or colour, from 0 to 255."""
    pixels = aniso.samples.photograph(name)[:512:2, :512:2].astype(np.float64)
    return pixels if colour or pixels.ndim == 2 else pixels @ LUMINANCE


def noisy_version(image: Image, level: float, seed: int = 0) -> npt.NDArray[np.float32]:
    """With white Gaussian noise, neither clipped nor rounded to whole numbers."""
    return (image + np.random.default_rng(seed).normal(0, level, image.shape)).astype(np.float32)


# Each gives the results for all parameters to be tried. Grey: channel_axis None, colour: -1.


def edge_enhancing(noisy: Any, level: float, channel_axis: int | None) -> Iterator[npt.NDArray[Any]]:
    """Four diffusivities, three noise scales, six contrasts, fourteen times."""
    times = [0.25 * 1.35**k for k in range(14)]
    for kind, sigma, factor in itertools.product(
        ("weickert", "perona-malik", "exponential", "charbonnier"),
        (0.5, 0.7, 1.0),
        (0.2, 0.3, 0.45, 0.6, 0.85, 1.2),
    ):
        model = aniso.EdgeEnhancing(contrast=factor * level, sigma=sigma, diffusivity=kind)
        yield from (result for _, result in aniso.scale_space(noisy, model, times, channel_axis=channel_axis))


def total_variation(noisy: Any, level: float, channel_axis: int | None) -> Iterator[npt.NDArray[Any]]:
    """Chambolle's algorithm, nine weights."""
    from skimage.restoration import denoise_tv_chambolle

    for factor in (0.25, 0.35, 0.5, 0.6, 0.7, 0.85, 1.0, 1.3, 1.7):
        yield 255 * denoise_tv_chambolle(noisy / 255, factor * level / 255, channel_axis=channel_axis)


def nonlocal_means(noisy: Any, level: float, channel_axis: int | None) -> Iterator[npt.NDArray[Any]]:
    """Patches of 5² and 7², four strengths, noise level given."""
    from skimage.restoration import denoise_nl_means

    for size, factor in itertools.product((5, 7), (0.5, 0.65, 0.8, 1.0)):
        yield 255 * denoise_nl_means(
            noisy / 255, size, 6, factor * level / 255, sigma=level / 255, channel_axis=channel_axis
        )


def bilateral(noisy: Any, level: float, channel_axis: int | None) -> Iterator[npt.NDArray[Any]]:
    """OpenCV's, seven widths in grey values, six in pixels."""
    import cv2

    for grey, space in itertools.product((1, 1.5, 2, 2.5, 3, 4, 5), (0.6, 0.8, 1.0, 1.3, 1.8, 2.5)):
        yield cv2.bilateralFilter(noisy, -1, grey * level, space)


def wavelets(noisy: Any, level: float, channel_axis: int | None) -> Iterator[npt.NDArray[Any]]:
    """Soft BayesShrink thresholds with the noise level given, three wavelets."""
    from skimage.restoration import denoise_wavelet

    for wavelet in ("db1", "db2", "sym4"):
        yield denoise_wavelet(
            noisy.astype(np.float64),
            level,
            wavelet,
            mode="soft",
            method="BayesShrink",
            rescale_sigma=True,
            channel_axis=channel_axis,
        )


RIVALS: dict[str, Callable[..., Iterator[npt.NDArray[Any]]]] = {
    TUNED: edge_enhancing,
    VARIATION: total_variation,
    MEANS: nonlocal_means,
    BILATERAL: bilateral,
    WAVELETS: wavelets,
}


def results(truth: Image, level: float, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
    """The best that each method makes of one noisy image."""
    noisy, axis = noisy_version(truth, level, seed), None if truth.ndim == 2 else -1
    found = {
        OURS: aniso.denoise(noisy, channel_axis=axis),
        "denoise, noise given": aniso.denoise(noisy, noise=level, channel_axis=axis),
    }
    for name, rival in RIVALS.items():
        found[name] = max(rival(noisy, level, axis), key=lambda result: psnr(result, truth))
    return found


def measure(quick: bool = False) -> Report:
    """PSNR of all methods on all images, the means over grey ones, and what was wanted."""
    levels = (20,) if quick else LEVELS
    found = Report(
        "quality of denoise",
        {"images": ", ".join(IMAGES), "noise": levels, "pixels": "every second of the first 512²"},
        timing.environment(
            ("aniso", "numpy", "scikit-image", "opencv-contrib-python-headless", "PyWavelets")
        ),
    )
    columns: dict[str, list[float]] = {name: [] for name in METHODS}
    pictures = [(name, False) for name in IMAGES] + ([] if quick else [("astronaut", True), ("coffee", True)])
    for (name, colour), level in itertools.product(pictures, levels):
        truth = photograph(name, colour)
        for method, result in results(truth, level).items():
            value = psnr(result, truth)
            case = f"{name}{' in colour' if colour else ''}, {level}"
            found.add(f"{case}: {method}", value, "dB", "ours" if method.startswith(OURS) else "theirs")
            if not colour:
                columns[method].append(value)
    for method, values in columns.items():
        kind: report.Kind = "ours" if method.startswith(OURS) else "theirs"
        found.add(f"mean: {method}", float(np.mean(values)), "dB", kind, "grey images")
    mean = {method: float(np.mean(values)) for method, values in columns.items()}
    found.targets = [
        Target("denoise above EED tuned per image", mean[OURS] - mean[TUNED], -0.5, unit="dB"),
        Target("denoise above the tuned bilateral filter", mean[OURS] - mean[BILATERAL], 1.0, unit="dB"),
        Target("denoise above BayesShrink wavelets", mean[OURS] - mean[WAVELETS], 0.0, unit="dB"),
    ]
    return found


def table(found: Report) -> str:
    """As Markdown, one line for each image and level."""
    lines = ["| image, noise | " + " | ".join(METHODS) + " |", "|---|" + "---|" * len(METHODS)]
    for row in dict.fromkeys(name.rpartition(": ")[0] for name in found.measurements):
        cells = [f"{found.measurements[f'{row}: {method}'].value:.2f}" for method in METHODS]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def picture(found: Report, path: Path) -> None:
    """A part of one image, by all methods."""
    truth = photograph("camera")
    part = np.s_[20:148, 60:188]
    shown = {"noisy, σ = 20": noisy_version(truth, 20), **results(truth, 20), "without noise": truth}
    del shown["denoise, noise given"]
    figure, axes = report.figure_of(2, 4, (10, 5.8))
    for axis, (name, image) in zip(axes.flat, shown.items(), strict=True):
        axis.imshow(image[part], cmap="gray", vmin=0, vmax=255)
        value = "" if image is truth else f"{psnr(image, truth):.2f} dB"
        axis.set_title(f"{name}\n{value}", fontsize=12, fontweight="bold" if name == "denoise" else "normal")
        axis.set(xticks=[], yticks=[])
    report.save_picture(figure, path, report.PHOTO_DPI, colours=64)
