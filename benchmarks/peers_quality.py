"""How good the results are on the same images: aniso without parameters, the others tuned with the truth.

Tuning tries a grid of parameters, each with ever more iterations, and keeps the result that is nearest to the
truth, image by image. No user can do that, so these figures are the best that a filter can give.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import aniso
from aniso.samples import Sample
from benchmarks import peers_lbr, quality_denoise, quality_enhance, quality_inpaint, quality_volumes
from benchmarks.other_packages import CURVATURE, DIPLIB, GMIC, GRADIENT, MEDPY, OPENCV, Package
from benchmarks.quality_inpaint import psnr
from benchmarks.report import Kind, Report

Array = npt.NDArray[Any]
Path = Iterator[Array]

IMAGES = quality_denoise.IMAGES
LEVELS = quality_denoise.LEVELS
DAMAGES: tuple[float | str, ...] = (0.1, 0.2, "text", "scratches")
VOLUME_SIDE = 64
VOLUME_LEVELS = (15.0, 40.0)

#: Strengths to try, in noise levels where they are in grey values, and how many iterations at most.
GRIDS: dict[Package, tuple[tuple[float, ...], int]] = {
    MEDPY: ((1.0, 1.25, 1.5, 2.0, 2.5, 3.0), 32),
    DIPLIB: ((1.0, 1.25, 1.5, 2.0, 2.5, 3.0), 32),
    GRADIENT: ((0.75, 1.0, 1.25, 1.5, 2.0, 3.0), 48),
    CURVATURE: ((0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0), 48),
    OPENCV: ((0.05, 0.1, 0.15, 0.2, 0.25, 0.3), 32),
    peers_lbr.EDGE: ((0.02, 0.05, 0.1, 0.2), 24),
    peers_lbr.COHERENT: ((0.02, 0.05, 0.1, 0.2), 48),
    GMIC: ((10.0, 20.0, 30.0, 40.0, 60.0, 90.0, 130.0), 4),
}


def iterated(package: Package, noisy: Array, level: float) -> Iterator[Path]:
    """For each strength, the results of a package after ever more iterations."""
    strengths, most = GRIDS[package]
    unit = level if package.in_grey_values and not package.only_bytes else 1.0
    stride = max(1, most // 24)  # one or two: finer makes no visible difference
    for factor in strengths:
        run = partial(package.filtered, iterations=stride, threads=2, strength=factor * unit)
        yield _repeated(run, noisy, most // stride)


def coherent(image: Array) -> Iterator[Path]:
    """DIPlib's coherence-enhancing diffusion at several scales, after ever more iterations."""
    dip = importlib.import_module("diplib")
    for rho, sigma in itertools.product((2.0, 4.0), (0.7, 1.2)):
        run = partial(
            dip.CoherenceEnhancingDiffusion, derivativeSigma=sigma, regularizationSigma=rho, iterations=4
        )
        yield _repeated(run, image, 10)


def opencv_means(noisy: Array, level: float) -> Iterator[Path]:
    """OpenCV's non-local means, which takes bytes, with several strengths."""
    cv2 = importlib.import_module("cv2")
    given = np.rint(noisy.clip(0, 255)).astype(np.uint8)
    for factor in (0.7, 0.85, 1.0, 1.15, 1.3):
        yield iter([np.asarray(cv2.fastNlMeansDenoising(given, h=factor * level), np.float64)])


def block_matching(noisy: Array, level: float) -> Array:
    """BM3D with the true noise level."""
    return np.asarray(importlib.import_module("bm3d").bm3d(noisy, level))


def _repeated(run: Callable[[Array], Any], image: Array, times: int) -> Path:
    # Explicit steps: going on from a result is the same as more iterations from the start.
    for _ in range(times):
        image = np.asarray(run(image))
        yield image


def best(paths: Iterable[Path], score: Callable[[Array], float]) -> float:
    """The highest score of all; a path is left when it gets worse."""
    highest = -np.inf
    for path in paths:
        last = -np.inf
        for result in path:
            value = score(result)
            highest = max(highest, value)
            if value < last:
                break
            last = value
    return float(highest)


class Table:
    """Scores of methods over cases; those that are missing are skipped once, with the reason."""

    def __init__(self, found: Report, title: str, unit: str) -> None:
        self.found, self.title, self.unit = found, title, unit
        self.scores: dict[str, list[float]] = {}
        self.missing: set[str] = set()

    def enter(
        self, method: str, paths: Callable[[], Iterable[Path]], score: Callable[[Array], float]
    ) -> None:
        """The best of all results counts."""
        if method in self.missing:
            return
        try:
            self.scores.setdefault(method, []).append(best(paths(), score))
        except ImportError as error:
            del self.scores[method]
            self.missing.add(method)
            self.found.skip(f"{self.title}: {method}", str(error))

    def close(self) -> None:
        """The means over all cases go to the report, and how often each was best."""
        firsts = dict.fromkeys(self.scores, 0)
        for scores in zip(*self.scores.values(), strict=True):
            firsts[max(zip(scores, self.scores, strict=True))[1]] += 1
        for method, scores in self.scores.items():
            kind: Kind = "ours" if method.startswith("aniso") else "theirs"
            note = f"best in {firsts[method]} of {len(scores)}"
            self.found.add(f"{self.title}: {method}", float(np.mean(scores)), self.unit, kind, note)


def single(result: Callable[..., Array], *arguments: Any) -> Callable[[], Iterable[Path]]:
    """A method with nothing to tune, called when its turn comes."""
    return lambda: iter([iter([result(*arguments)])])


def each(results: Callable[..., Iterable[Array]], *arguments: Any) -> Callable[[], Iterable[Path]]:
    """Results that do not follow from each other: paths of one."""
    return lambda: (iter([result]) for result in results(*arguments))


def denoising(found: Report, images: Sequence[str], levels: Sequence[float]) -> None:
    """Photographs in grey under white noise; mean PSNR."""
    table = Table(found, "denoising", "dB")
    found.settings["denoising"] = (
        f"{_listed(images)}, every second pixel of the first 512²; noise {_listed(levels)}"
    )
    for name, level in itertools.product(images, levels):
        truth = quality_denoise.photograph(name)
        noisy = quality_denoise.noisy_version(truth, level)
        score = partial(_psnr, truth)
        table.enter("aniso denoise", single(aniso.denoise, noisy), score)
        for rival, results in quality_denoise.RIVALS.items():
            if rival != quality_denoise.TUNED:
                table.enter(_owner(rival), each(results, noisy, level, None), score)
        table.enter("BM3D, noise given", single(block_matching, noisy, level), score)
        table.enter("OpenCV non-local means, tuned", partial(opencv_means, noisy, level), score)
        for package in GRIDS:
            if package is peers_lbr.COHERENT:
                continue
            table.enter(f"{package.name}, tuned", partial(iterated, package, noisy, level), score)
    table.close()


def _listed(things: Sequence[object]) -> str:
    return ", ".join(f"{thing:g}" if isinstance(thing, float) else str(thing) for thing in things)


def _psnr(truth: Array, result: Array) -> float:
    return psnr(result, truth)


def _owner(rival: str) -> str:
    return f"{'OpenCV' if rival == quality_denoise.BILATERAL else 'scikit-image'} {rival}"


def inpainting(found: Report, images: Sequence[str], damages: Sequence[float | str]) -> None:
    """Photographs in colour with lost pixels; mean PSNR. The others have no parameters worth tuning."""
    table = Table(found, "inpainting", "dB")
    kinds = [quality_inpaint.worded(kind) for kind in damages]
    found.settings["inpainting"] = f"{_listed(images)}, 256²; {_listed(kinds)}"
    names = {"aniso": "aniso inpaint", "biharmonic": "scikit-image biharmonic"}
    for name, kind in itertools.product(images, damages):
        truth = quality_inpaint.photograph(name)
        mask = quality_inpaint.damage(kind, truth.shape[:2])
        image = quality_inpaint.lossy(truth, mask)
        for method, function in quality_inpaint.METHODS.items():
            owner = names.get(method, f"OpenCV {method}")
            table.enter(owner, single(function, image, mask), partial(_psnr, truth))
    table.close()


def coherence(found: Report, variants: Sequence[tuple[int, float, int]], levels: Sequence[float]) -> None:
    """Lines with gaps and noise: the part of the input's error that is removed."""
    table = Table(found, "coherence", "of the error")
    patterns = [f"{size}² with period {period:g}" for size, period, _ in variants]
    samples = _listed(list(quality_enhance.SAMPLES))
    found.settings["coherence"] = f"{samples}, {_listed(patterns)}; noise {_listed(levels)}"
    for make, (size, period, seed), level in itertools.product(
        quality_enhance.SAMPLES.values(), variants, levels
    ):
        sample = make(size, period=period, noise=level, seed=seed)
        image, score = sample.image.astype(np.float32), partial(_removed, sample)
        table.enter("aniso enhance", single(aniso.enhance, image), score)
        table.enter("aniso CED, tuned", single(quality_enhance.plain_coherence, sample), score)
        table.enter("DIPlib CED, tuned", partial(coherent, image), score)
        table.enter(f"{GMIC.name}, tuned", partial(iterated, GMIC, image, level), score)
        lbr = peers_lbr.COHERENT
        table.enter(f"{lbr.name}, tuned", partial(iterated, lbr, image, level), score)
        table.enter("SciPy Gaussian, tuned", single(quality_enhance.gaussian, sample), score)
    table.close()


def _removed(sample: Sample, result: Array) -> float:
    return 1 - quality_enhance.error(result, sample)


def volumes(found: Report, size: int, levels: Sequence[float]) -> None:
    """Fibres, layers and balls under white noise; mean PSNR."""
    table = Table(found, "denoising volumes", "dB")
    found.settings["denoising volumes"] = f"fibres, layers, balls, {size}³; noise {_listed(levels)}"
    makers: tuple[Callable[..., Sample], ...] = quality_volumes.MAKERS
    for make, level in itertools.product(makers, levels):
        sample = make(size, noise=level, seed=11)
        noisy, score = sample.image.astype(np.float32), partial(_psnr, sample.truth)
        table.enter("aniso denoise", single(aniso.denoise, noisy), score)
        for package in (MEDPY, DIPLIB, GRADIENT, CURVATURE):
            table.enter(f"{package.name}, tuned", partial(iterated, package, noisy, level), score)
        table.enter(
            f"scikit-image {quality_denoise.VARIATION}",
            each(quality_denoise.total_variation, noisy, level, None),
            score,
        )
    table.close()


def measure(found: Report, quick: bool) -> None:
    """All four."""
    images = IMAGES[:1] if quick else IMAGES
    denoising(found, images, LEVELS[1:2] if quick else LEVELS)
    inpainting(found, images, DAMAGES[2:3] if quick else DAMAGES)
    # One variant: DIPlib's filter takes a minute for it.
    coherence(found, quality_enhance.VARIANTS[:1], (40.0,) if quick else (20.0, 80.0))
    volumes(found, 32 if quick else VOLUME_SIDE, VOLUME_LEVELS[:1] if quick else VOLUME_LEVELS)
