"""How well noise.estimate() finds kind, level and correlation of the noise.

    python -m benchmarks.noise_estimates
    python -m benchmarks.noise_estimates --cases 400 --seed 7 --failures

Each case is a scene (a photograph, a texture or a synthetic image), a model of the noise, a size, and perhaps
damage: a constant border or hole, saturation, rounding, dead rows. All of them are drawn at random. The level
is right if its root mean square over the image is within 10 %; the correlation within 0.2 pixels. The kind is
right if it is the true one, or Gaussian where the true level varies by less than 15 % over the image.

Photographs have noise of their own, which nobody can tell from the noise that is added. It is measured
before, by the median of second differences in the flattest quarter, and may be part of the level or not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import aniso
from aniso import noise
from benchmarks import timing
from benchmarks.report import Report, Target

Image = npt.NDArray[np.float64]
Random = np.random.Generator

PHOTOGRAPHS = ("camera", "astronaut", "coffee", "coins", "moon", "hubble_deep_field", "cell")
TEXTURES = ("brick", "grass", "gravel")
SIZES = (128, 160, 256, 512)
CORRELATIONS = (0.4, 0.6, 0.9, 1.1, 1.4)
# Ratio of the largest to the least level up to which noise is as good as Gaussian.
SAME_LEVEL = 1.15


def photograph(name: str, side: int, random: Random) -> Image:
    """A part of a photograph, of means of 2 × 2 pixels if it is large enough, so that it has little noise."""
    pixels = aniso.samples.photograph(name).astype(np.float64)
    grey = pixels.mean(axis=-1) if pixels.ndim == 3 else pixels
    if min(grey.shape) >= 2 * side:
        height, width = (2 * (n // 2) for n in grey.shape)
        grey = grey[:height, :width].reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3))
    starts = [int(random.integers(0, max(n - side, 0) + 1)) for n in grey.shape]
    return grey[starts[0] : starts[0] + side, starts[1] : starts[1] + side]


def shapes(side: int, random: Random) -> Image:
    """A slope with rectangles and disks of other grey values."""
    y, x = np.indices((side, side)) / side
    scene = 30 + 120 * (x if random.random() < 0.5 else y)
    for _ in range(8):
        at, size, grey = random.uniform(0, 1, 2), random.uniform(0.05, 0.2, 2), random.uniform(5, 230)
        if random.random() < 0.5:
            scene[np.hypot(y - at[0], x - at[1]) < size[0]] = grey
        else:
            scene[(abs(y - at[0]) < size[0]) & (abs(x - at[1]) < size[1])] = grey
    return scene


def spots(side: int, random: Random) -> Image:
    """Bright cells on a dark background, as in fluorescence microscopy."""
    y, x = np.indices((side, side))
    scene = np.full((side, side), random.uniform(0, 6))
    for _ in range(side * side // 600):
        at, width = random.uniform(0, side, 2), random.uniform(2, 9)
        scene += random.uniform(10, 200) * np.exp(-0.5 * ((y - at[0]) ** 2 + (x - at[1]) ** 2) / width**2)
    return scene


def half_textured(side: int, random: Random) -> Image:
    """Smooth on one side, texture on the other."""
    from scipy import ndimage

    smooth = ndimage.gaussian_filter(random.random((side, side)), side / 10, mode="wrap")
    scene = 30 + 180 * (smooth - smooth.min()) / (smooth.max() - smooth.min())
    texture = ndimage.gaussian_filter(random.normal(0, 1, (side, side)), 1.0)
    scene[:, side // 2 :] += 60 * texture[:, side // 2 :]
    return np.maximum(scene, 5.0)


def scene(kind: str, side: int, random: Random) -> Image:
    """A scene of a group: photograph, texture or synthetic."""
    if kind == "photograph":
        return photograph(str(random.choice(PHOTOGRAPHS)), side, random)
    if kind == "texture":
        return photograph(str(random.choice(TEXTURES)), side, random)
    return {"shapes": shapes, "spots": spots, "half textured": half_textured}[kind](side, random)


SCENES = (*("photograph",) * 3, *("shapes", "spots", "half textured") * 2, "texture")


def draw_model(kind: str, random: Random) -> tuple[noise.NoiseModel, Callable[[Image], Image]]:
    """A model, and the change of grey values from 0 to 255 to those that it is for."""
    correlation = float(random.choice(CORRELATIONS)) if random.random() < 0.4 else 0.0
    if kind == "gaussian":
        return noise.Gaussian(float(np.exp(random.uniform(np.log(2), np.log(50)))), correlation), lambda x: x
    if kind == "rician":
        model = noise.Rician(float(random.uniform(5, 40)))
        return model, lambda x: np.maximum(x - x.min() - 10, 0)
    if kind == "speckle":
        return noise.Speckle(float(random.uniform(0.08, 0.5)), 1.0, correlation), lambda x: x + 2
    peak = float(np.exp(random.uniform(np.log(3), np.log(3000))))  # photons in the brightest pixels
    scale = float(np.exp(random.uniform(np.log(0.1), np.log(100))))  # from 8 to 16 bits
    offset = float(random.choice([0.0, 0.0, 0.1, 0.5, 2.0])) * 255 * scale
    gain = 255 * scale / peak
    read = float(random.choice([0.0, 0.0, 0.3, 1.0, 3.0])) * gain
    return noise.PoissonGaussian(gain, offset, read, correlation), lambda x: offset + scale * x


def border(image: Image, random: Random) -> Image:
    """A constant border of any value."""
    found = np.full(image.shape, random.uniform(image.min(), image.max()))
    edge = int(random.uniform(0.05, 0.2) * len(image))
    found[edge:-edge, edge:-edge] = image[edge:-edge, edge:-edge]
    return found


def hole(image: Image, random: Random) -> Image:
    """A constant disk of any value."""
    y, x = np.indices(image.shape) / len(image)
    at, radius = random.uniform(0.2, 0.8, 2), random.uniform(0.1, 0.3)
    value = random.uniform(image.min(), image.max())
    return np.where(np.hypot(y - at[0], x - at[1]) < radius, value, image)


def saturate(image: Image, random: Random) -> Image:
    """Bright pixels are clipped."""
    return np.minimum(image, np.quantile(image, random.uniform(0.7, 0.95)))


def dead_rows(image: Image, random: Random) -> Image:
    """Some rows and a column have one value."""
    found = image.copy()
    found[random.integers(0, len(image), 3)] = image.min()
    found[:, random.integers(0, len(image))] = image.max()
    return found


def stripes(image: Image, random: Random) -> Image:
    """Every row has an offset of its own, of a tenth of the spread of the image."""
    return image + 0.1 * image.std() * random.normal(0, 1, (len(image), 1))


def round_values(image: Image, random: Random) -> Image:
    """Whole numbers of a range of 256 or 4096 values."""
    quantum = (image.max() - image.min()) / float(random.choice([255, 4095]))
    return quantum * np.rint(image / quantum)


DAMAGES = {
    "none": lambda image, random: image,
    "border": border,
    "hole": hole,
    "saturation": saturate,
    "dead rows": dead_rows,
    "stripes": stripes,
    "rounding": round_values,
}
KINDS = ("gaussian", "poisson", "rician", "speckle")


@dataclass(frozen=True)
class Outcome:
    """A case, and what was found in it."""

    groups: tuple[str, ...]
    model: noise.NoiseModel
    found: noise.NoiseEstimate
    ratio: float
    most: float  # ratio with the noise of the scene itself
    kind: bool
    correlation: bool

    @property
    def level(self) -> bool:
        return 0.9 <= self.ratio <= 1.1 * self.most


def run_case(number: int, seed: int) -> Outcome:
    """Draw a case and estimate its noise."""
    random = np.random.default_rng([seed, number])
    kind = KINDS[number % len(KINDS)]
    name, side = str(random.choice(SCENES)), int(random.choice(SIZES))
    damage = str(random.choice(list(DAMAGES))) if random.random() < 0.6 else "none"
    model, convert = draw_model(kind, random)
    truth = convert(scene(name, side, random))
    noisy = DAMAGES[damage](model.sample(truth, random), random)
    found = noise.estimate(noisy)
    mean = model._mean(truth)  # of noisy versions
    if damage == "saturation":
        mean = mean[mean < noisy.max()]
    true_level, level = (np.sqrt(np.mean(one.variance(mean))) for one in (model, found.models[0]))
    own = aniso.estimates.noise_level(truth) if name in ("photograph", "texture") else 0.0
    lowest, highest = np.sqrt(np.quantile(model.variance(mean), [0.05, 0.95]))
    same = found.kind == "gaussian" and highest <= SAME_LEVEL * lowest
    return Outcome(
        (
            kind,
            f"scene: {name}",
            f"damage: {damage}",
            f"size: {side}",
            "correlated" if model.correlation else "white",
        ),
        model,
        found,
        float(level / true_level),
        float(np.hypot(true_level, own) / true_level),
        found.kind == kind or same,
        abs(found.correlation - model.correlation) <= 0.2,
    )


def measure(cases: int, seed: int, failures: bool = False) -> Report:
    """Shares of right answers, over all cases and in groups of them."""
    outcomes = [run_case(number, seed) for number in range(cases)]
    settings = {"cases": cases, "seed": seed}
    report = Report("estimates of noise", settings, timing.environment(("aniso", "numpy")))
    groups = sorted({group for one in outcomes for group in one.groups})
    for group in ("all", *groups):
        chosen = [one for one in outcomes if group == "all" or group in one.groups]
        for what in ("level", "kind", "correlation"):
            share = float(np.mean([getattr(one, what) for one in chosen]))
            report.add(f"{group}: {what}", 100 * share, "%", "ours", note=f"of {len(chosen)}")
            if group == "all":
                report.targets.append(Target(f"{what} right", 100 * share, 90.0, unit="%"))
    if failures:
        for number, one in enumerate(outcomes):
            wrong = [what for what in ("level", "kind", "correlation") if not getattr(one, what)]
            if wrong:
                print(
                    f"{number}: {', '.join(wrong)}; {one.groups[1:4]} {one.model} "
                    f"found {one.found.models[0]}, level × {one.ratio:.2f}, "
                    f"certainty {one.found.certainty:.2f}"
                )
    return report


def main() -> int:
    """Print the shares; the exit code is 0 if nine of ten answers are right."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=400, help="number of cases")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--failures", action="store_true", help="print cases with wrong answers")
    parser.add_argument("--json", type=Path, help="file to write")
    options = parser.parse_args()
    found = measure(options.cases, options.seed, options.failures)
    found.show()
    if options.json:
        found.save(options.json)
    return 0 if all(target.met for target in found.targets) else 1


if __name__ == "__main__":
    raise SystemExit(main())
