"""How well enhance() restores lines with gaps and noise, and how little it depends on their direction."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage

import aniso
from aniso.samples import Sample
from benchmarks import report, timing
from benchmarks.report import Report, Target

Image = npt.NDArray[Any]
SAMPLES: dict[str, Callable[..., Sample]] = {
    "rings": aniso.samples.rings,
    "fingerprint": aniso.samples.fingerprint,
}
#: Size, period, seed: others than those that served to choose the rules.
VARIANTS = ((144, 7.5, 101), (200, 10.0, 102), (256, 12.0, 103), (256, 16.0, 104))
LEVELS = (10.0, 20.0, 40.0, 80.0)
ANGLES = (10.0, 22.5, 30.0, 45.0)
STENCILS = {
    "standard": aniso.DeltaStencil.named("standard"),
    "nonnegativity": aniso.DeltaStencil.named("nonnegativity"),
    "α = 0.25, γ = 1": aniso.DeltaStencil(alpha=0.25),
    "α = 0.4, γ = 1": aniso.DeltaStencil(alpha=0.4),
    "α = 0.45, γ = 1": aniso.DeltaStencil(alpha=0.45),
    "α = 0.49, γ = 1": aniso.DeltaStencil(alpha=0.49),
}


def rms(difference: Image) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(difference**2)))


def error(result: Image, sample: Sample) -> float:
    """RMS error to the truth, over that of the input."""
    return rms(result - sample.truth) / rms(sample.image - sample.truth)


def closed(result: Image, sample: Sample) -> float:
    """Share of the gap pixels that end on the line's side of mid-grey."""
    return float(np.mean(result[sample.gaps] < 127.5))


def gaussian(sample: Sample) -> Image:
    """The Gaussian with the least error."""
    widths = np.arange(0.4, 4.1, 0.2)
    return min((ndimage.gaussian_filter(sample.image, w) for w in widths), key=lambda u: error(u, sample))


def plain_coherence(sample: Sample) -> Image:
    """Coherence-enhancing diffusion with the literature's parameters, at the time with the least error."""
    times = [2.0**k for k in np.arange(-1, 7.5, 0.5)]
    snapshots = aniso.scale_space(sample.image, aniso.CoherenceEnhancing(), times)
    return min((image for _, image in snapshots), key=lambda u: error(u, sample))


def waves(size: int, angle: float, seed: int = 0) -> Image:
    """Return a pattern of curved lines, rotated by an angle in degrees: evaluated there, not resampled.

    Noise is a sum of waves as well, so that it turns with the pattern.
    """
    axis = np.arange(size) - 0.5 * (size - 1)
    y, x = np.meshgrid(axis, axis, indexing="ij")
    c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    x, y = c * x + s * y, -s * x + c * y
    lines = 127.5 + 127.5 * np.cos(2 * np.pi * (y + 6 * np.sin(2 * np.pi * x / 90)) / 11.0)
    rng = np.random.default_rng(seed)
    frequency = np.sqrt(rng.uniform(0.02, 0.16, 400))
    direction, phase = rng.uniform(0, 2 * np.pi, (2, 400))
    rough = np.zeros_like(x)
    for f, d, p in zip(frequency, direction, phase, strict=True):
        rough += np.cos(2 * np.pi * f * (np.cos(d) * x + np.sin(d) * y) + p)
    return lines + 30 * rough / np.sqrt(200)


def turning_error(stencil: Any, angle: float, size: int = 193, refine: bool = True) -> float:
    """RMS of enhance(turned) − turned(enhance), in a disc, over the RMS of what enhance changes.

    The result is turned by cubic splines; `turning_floor` says what those alone do.
    """
    straight, turned = waves(size, 0.0), waves(size, angle)
    options: dict[str, Any] = {"stencil": stencil, "noise": 30.0, "wavelength": 11.0, "refine": refine}
    # One contrast for both, so that only the direction differs.
    options["contrast"] = aniso.enhance(straight, return_info=True, noise=30.0, wavelength=11.0)[1].contrast
    expected = resampled(aniso.enhance(straight, **options), angle)
    found = aniso.enhance(turned, **options)
    disc = inside(size)
    return rms((found - expected)[disc]) / rms((found - turned)[disc])


def turning_floor(angle: float, size: int = 193) -> float:
    """What the splines contribute: the same ratio for the smooth pattern itself, without noise."""
    disc = inside(size)
    smooth, turned = (ndimage.gaussian_filter(waves(size, a), 1.5) for a in (0.0, angle))
    return rms((resampled(smooth, angle) - turned)[disc]) / rms((turned - waves(size, angle))[disc])


def inside(size: int) -> npt.NDArray[np.bool_]:
    """A disc that stays in the image at every angle, well away from the boundary."""
    axis = np.arange(size) - 0.5 * (size - 1)
    return np.hypot(axis, axis[:, None]) < 0.35 * size


def resampled(image: Image, angle: float) -> Image:
    """The image turned about its centre as `waves` turns its pattern."""
    size = len(image)
    axis = np.arange(size) - 0.5 * (size - 1)
    y, x = np.meshgrid(axis, axis, indexing="ij")
    c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    places = np.array([-s * x + c * y, c * x + s * y]) + 0.5 * (size - 1)
    return ndimage.map_coordinates(image, places, order=3, mode="nearest")


def quarter_turn_error() -> float:
    """Largest difference between enhance(turned) and turned(enhance), over the grey range."""
    image = aniso.samples.fingerprint(128, seed=7).image
    return float(np.abs(aniso.enhance(np.rot90(image)) - np.rot90(aniso.enhance(image))).max() / 255)


def measure(quick: bool = False) -> Report:
    """Errors and closed gaps on all samples, dependence on the direction, and what was wanted."""
    variants, levels = (VARIANTS[:1], LEVELS[1:2]) if quick else (VARIANTS, LEVELS)
    found = Report(
        "quality of enhance",
        {"samples": ", ".join(SAMPLES), "size, period, seed": variants, "noise": levels},
        timing.environment(("aniso", "numpy", "scipy")),
    )
    errors, shares = [], []
    for (name, make), (size, period, seed), level in itertools.product(SAMPLES.items(), variants, levels):
        sample = make(size, period=period, noise=level, seed=seed)
        case = f"{name}, {size}², period {period:g}, noise {level:g}"
        result = aniso.enhance(sample.image)
        plain = plain_coherence(sample)
        errors.append(error(result, sample))
        shares.append(closed(result, sample))
        found.add(f"{case}: enhance", errors[-1], "of the input's error", "ours")
        found.add(f"{case}: gaps closed", shares[-1], "of gap pixels", "ours")
        found.add(f"{case}: plain CED", error(plain, sample), "of the input's error", "ours", "best time")
        found.add(f"{case}: plain CED, gaps", closed(plain, sample), "of gap pixels", "ours", "best time")
        found.add(
            f"{case}: Gaussian",
            error(gaussian(sample), sample),
            "of the input's error",
            "theirs",
            "best width",
        )
    turns = quarter_turn_error()
    found.add("quarter turn", turns, "of the grey range", "ours", "largest difference, float64")
    for name, angle in itertools.product(
        list(STENCILS)[-2:] if quick else STENCILS, ANGLES[1:2] if quick else ANGLES
    ):
        note = f"splines alone {turning_floor(angle):.3f}"
        for refine, kind in ((True, "enhance"), (False, "one diffusion")):
            value = turning_error(STENCILS[name], angle, refine=refine)
            found.add(f"turn by {angle:g}°, {name}: {kind}", value, "of the change", "ours", note)
    found.targets = [
        Target("largest error", max(errors), 0.35, "at most", "of the input's"),
        Target("smallest share of gap pixels closed", min(shares), 0.9, unit="of gap pixels"),
        Target("quarter turns commute", turns, 1e-9, "at most", "of the grey range"),
    ]
    return found


def table(found: Report) -> str:
    """As Markdown: one line per sample, then one per stencil."""
    columns = ("enhance", "gaps closed", "plain CED", "plain CED, gaps", "Gaussian")
    lines = ["| sample | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    values = {name: entry.value for name, entry in found.measurements.items()}
    for case in dict.fromkeys(name.rpartition(": ")[0] for name in values if name.endswith(": Gaussian")):
        lines.append(f"| {case} | " + " | ".join(f"{values[f'{case}: {c}']:.3f}" for c in columns) + " |")
    lines += [
        "",
        "| stencil | " + " | ".join(f"{angle:g}°" for angle in ANGLES) + " |",
        "|---|" + "---|" * len(ANGLES),
    ]
    for name in STENCILS:
        pairs = [
            [values.get(f"turn by {angle:g}°, {name}: {kind}") for kind in ("enhance", "one diffusion")]
            for angle in ANGLES
        ]
        cells = ["" if None in pair else f"{pair[0]:.3f} / {pair[1]:.3f}" for pair in pairs]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def picture(found: Report, path: Path) -> None:
    """Both samples: input, plain diffusion, result, truth."""
    figure, axes = report.figure_of(2, 4, (10, 6))
    for row, make in zip(axes, SAMPLES.values(), strict=True):
        sample = make(200, period=10.0, noise=40.0, seed=102)
        plain, result = plain_coherence(sample), aniso.enhance(sample.image)
        panels = {
            "input": sample.image,
            f"plain CED\nerror {error(plain, sample):.2f}": plain,
            f"enhance\nerror {error(result, sample):.2f}": result,
            "truth": sample.truth,
        }
        for axis, (name, image) in zip(row, panels.items(), strict=True):
            axis.imshow(image[:120, 40:160], cmap="gray", vmin=0, vmax=255)
            axis.set_title(name, fontsize=12)
            axis.set(xticks=[], yticks=[])
    report.save_picture(figure, path, report.PHOTO_DPI, colours=48)
