"""Quality of denoise() without parameters on many kinds of noise.

    python -m benchmarks.quality_noise
    python -m benchmarks.quality_noise --folder set12 --json benchmarks/results/quality_noise.json

Photographs of scikit-image by default, or the PNG files of a folder in the order of their names. The targets
are for the twelve photographs that are known as Set12, each kind of noise on the first few of them.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import aniso
from aniso import noise
from benchmarks import timing
from benchmarks.quality_denoise import IMAGES, photograph
from benchmarks.quality_inpaint import psnr
from benchmarks.report import Report, Target

Image = npt.NDArray[np.float64]
#: From an image without noise and a source of chance to one with noise.
Damage = Callable[[Image, np.random.Generator], Image]


@dataclass(frozen=True)
class Case:
    """A kind of noise, the images of Set12 that it is put on, and the least mean PSNR on them."""

    damage: Damage
    numbers: tuple[int, ...]
    wanted: float | None = None
    model: noise.NoiseModel | None = None


def photons(peak: float) -> Damage:
    """Counted photons, with this number in the brightest pixels."""
    return lambda truth, random: random.poisson(truth / 255 * peak).astype(np.float64) * (255 / peak)


def white(level: float) -> Damage:
    """White Gaussian noise."""
    return lambda truth, random: truth + random.normal(0, level, truth.shape)


def blurred(level: float, width: float) -> Damage:
    """Gaussian noise that was blurred, and has this level then."""
    return lambda truth, random: noise.Gaussian(level, width).sample(truth, random)


def jpeg(level: float, quality: int) -> Damage:
    """White noise, and then a JPEG file."""

    def damage(truth: Image, random: np.random.Generator) -> Image:
        from PIL import Image as Pictures

        noisy = np.clip(np.rint(white(level)(truth, random)), 0, 255).astype(np.uint8)
        with io.BytesIO() as file:
            Pictures.fromarray(noisy).save(file, "JPEG", quality=quality)
            return np.asarray(Pictures.open(file), np.float64)

    return damage


def impulses(share: float, level: float = 0.0) -> Damage:
    """Salt and pepper, over white noise."""

    def damage(truth: Image, random: np.random.Generator) -> Image:
        noisy = white(level)(truth, random) if level else truth.copy()
        chance = random.random(truth.shape)
        noisy[chance < share / 2], noisy[chance > 1 - share / 2] = 0.0, 255.0
        return noisy

    return damage


CAMERA = noise.PoissonGaussian(gain=6.0, offset=200.0, read_noise=12.0)


def camera(truth: Image, random: np.random.Generator) -> Image:
    """Whole numbers of a camera with 16 bits; scaled back, so that errors are those of other cases."""
    return np.rint(CAMERA.sample(200 + 20 * truth, random))


FIRST_SEVEN, FIRST_FIVE, THREE, ALL = tuple(range(1, 8)), tuple(range(1, 6)), (1, 2, 5), tuple(range(1, 13))

CASES = {
    "Poisson, peak 5": Case(photons(5), FIRST_SEVEN, 22.8, noise.PoissonGaussian(51.0)),
    "Poisson, peak 20": Case(photons(20), FIRST_SEVEN, 26.9, noise.PoissonGaussian(12.75)),
    "Poisson, peak 60": Case(photons(60), FIRST_SEVEN, 29.6, noise.PoissonGaussian(4.25)),
    "blurred by 0.5": Case(blurred(20, 0.5), FIRST_FIVE, 28.0, noise.Gaussian(20.0, 0.5)),
    "blurred by 0.8": Case(blurred(20, 0.8), FIRST_FIVE, 26.1, noise.Gaussian(20.0, 0.8)),
    "blurred by 1.2": Case(blurred(20, 1.2), FIRST_FIVE, 24.5, noise.Gaussian(20.0, 1.2)),
    "noise 15, JPEG 60": Case(jpeg(15, 60), THREE, 30.5),
    "Poisson 50 and Gaussian 8": Case(
        lambda truth, random: white(8)(photons(50)(truth, random), random),
        THREE,
        29.0,
        noise.PoissonGaussian(5.1, read_noise=8.0),
    ),
    "speckle 0.2": Case(
        lambda truth, random: truth * white(0.2)(np.ones_like(truth), random), THREE, 27.5, noise.Speckle(0.2)
    ),
    "salt and pepper 5 %": Case(impulses(0.05), THREE, 31.0),
    "noise 15": Case(white(15), THREE, None, noise.Gaussian(15.0)),
    "noise 15, salt and pepper": Case(impulses(0.05, 15), THREE),
    "camera, 16 bits": Case(camera, THREE, None, CAMERA),
    "white 10": Case(white(10), ALL, None, noise.Gaussian(10.0)),
    "white 25": Case(white(25), ALL, None, noise.Gaussian(25.0)),
    "white 50": Case(white(50), ALL, None, noise.Gaussian(50.0)),
    "clean": Case(lambda truth, random: truth, ALL, 45.0),
}


def load(folder: Path | None) -> list[Image]:
    """All images, from 0 to 255."""
    if folder is None:
        return [photograph(name) for name in IMAGES]
    found = sorted(folder.glob("*.png"))
    return [aniso.io.read(path).pixels.astype(np.float64) for path in found]


def compare(truth: Image, case: Case, seed: int) -> dict[str, float]:
    """PSNR of the noisy image, of denoise() alone, with the true model, and of a median of 3 × 3."""
    from scipy import ndimage

    noisy = case.damage(truth, np.random.default_rng(seed)).astype(np.float32)

    def quality(image: Any) -> float:
        grey = (np.asarray(image, np.float64) - 200) / 20 if case.damage is camera else image
        return min(psnr(grey, truth), 99.0)

    result, plan = aniso.denoise(noisy, return_info=True)
    found = {"noisy": quality(noisy), "denoise": quality(result)}
    found["median 3 × 3"] = quality(ndimage.median_filter(noisy, 3))
    if case.model is not None:
        found["true model given"] = quality(aniso.denoise(noisy, noise=case.model))
    scale = 20 if case.damage is camera else 1
    found["expected error"] = plan.expected_error / scale
    found["true error"] = 255 * 10 ** (-found["denoise"] / 20)
    return found


def measure(folder: Path | None = None, names: list[str] | None = None) -> Report:
    """Means over the images of each case."""
    images = load(folder)
    settings = {"images": str(len(images)) + (" of a folder" if folder else " of scikit-image")}
    found = Report("quality of denoise by kind of noise", settings, timing.environment(("aniso", "numpy")))
    means = {}
    for name, case in CASES.items():
        if names and not any(name.startswith(one) for one in names):
            continue
        chosen = [k for k in case.numbers if k <= len(images)]
        rows = [compare(images[k - 1], case, k) for k in chosen]
        means[name] = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        for key, value in means[name].items():
            unit = "grey values" if key.endswith("error") else "dB"
            found.add(f"{name}: {key}", value, unit, "theirs" if "median" in key else "ours")
    if folder is not None:
        found.targets = [
            Target(name, means[name]["denoise"], case.wanted, unit="dB")
            for name, case in CASES.items()
            if case.wanted is not None and name in means
        ]
        for name, other, least in (
            ("noise 15, salt and pepper", "noise 15", -0.5),
            ("camera, 16 bits", None, -0.2),
        ):
            if name in means and (other is None or other in means):
                bound = means[name]["true model given"] if other is None else means[other]["denoise"]
                gap = means[name]["denoise"] - bound
                found.targets.append(Target(f"{name}: loss", gap, least, unit="dB"))
    return found


def main() -> int:
    """Measure all cases, or those whose names begin with the given words."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="beginnings of names; all by default")
    parser.add_argument("--folder", type=Path, help="PNG files in place of the photographs of scikit-image")
    parser.add_argument("--json", type=Path, help="file to write")
    options = parser.parse_args()
    found = measure(options.folder, options.cases)
    found.show()
    if options.json:
        found.save(options.json)
    return 0 if all(target.met for target in found.targets) else 1


if __name__ == "__main__":
    raise SystemExit(main())
