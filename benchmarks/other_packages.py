"""Diffusion filters of other packages, where they are installed.

None of them offers edge-enhancing diffusion; what comes closest is taken, and `note` says what that is.
Images are converted before the clock starts.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.float32]
Filter = Callable[[int], object]


@dataclass(frozen=True)
class Package:
    """A filter of another package: `prepare(image, threads)` gives a function of the number of iterations."""

    name: str
    module: str
    install: str
    prepare: Callable[[Any, Image, int], Filter]
    note: str

    def loaded(self, image: Image, threads: int) -> Filter:
        """The filter, ready to run; ImportError where the package is missing."""
        return self.prepare(importlib.import_module(self.module), image, threads)


def _opencv(cv2: Any, image: Image, threads: int) -> Filter:
    cv2.setNumThreads(threads)
    if not hasattr(cv2, "ximgproc"):
        raise ImportError("this OpenCV has no ximgproc")
    colour = np.repeat(np.clip(image, 0, 255).astype(np.uint8)[..., np.newaxis], 3, axis=-1)
    return lambda iterations: cv2.ximgproc.anisotropicDiffusion(colour, alpha=0.1, K=0.02, niters=iterations)


def _medpy(smoothing: Any, image: Image, threads: int) -> Filter:
    return lambda iterations: smoothing.anisotropic_diffusion(
        image, niter=iterations, kappa=10.0, gamma=0.1, option=1
    )


def _simpleitk_gradient(sitk: Any, image: Image, threads: int) -> Filter:
    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(threads)
    given = sitk.GetImageFromArray(image)
    return lambda iterations: sitk.GradientAnisotropicDiffusion(
        given, timeStep=0.125, conductanceParameter=1.0, numberOfIterations=iterations
    )


def _simpleitk_curvature(sitk: Any, image: Image, threads: int) -> Filter:
    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(threads)
    given = sitk.GetImageFromArray(image)
    return lambda iterations: sitk.CurvatureAnisotropicDiffusion(
        given, timeStep=0.0625, conductanceParameter=1.0, numberOfIterations=iterations
    )


def _diplib_perona_malik(dip: Any, image: Image, threads: int) -> Filter:
    dip.SetNumberOfThreads(threads)
    return lambda iterations: dip.PeronaMalikDiffusion(image, iterations=iterations, K=10, stepSizeLambda=0.2)


def _diplib_coherence(dip: Any, image: Image, threads: int) -> Filter:
    dip.SetNumberOfThreads(threads)
    return lambda iterations: dip.CoherenceEnhancingDiffusion(
        image, derivativeSigma=1, regularizationSigma=3, iterations=iterations
    )


PERONA_MALIK = (
    Package(
        "OpenCV Perona–Malik",
        "cv2",
        "pip install opencv-contrib-python-headless",
        _opencv,
        "8 bit, three channels (it takes nothing else)",
    ),
    Package("MedPy Perona–Malik", "medpy.filter.smoothing", "pip install medpy", _medpy, "one thread, NumPy"),
    Package(
        "SimpleITK gradient diffusion",
        "SimpleITK",
        "pip install SimpleITK",
        _simpleitk_gradient,
        "Perona–Malik",
    ),
    Package(
        "SimpleITK curvature diffusion",
        "SimpleITK",
        "pip install SimpleITK",
        _simpleitk_curvature,
        "modified curvature",
    ),
    Package("DIPlib Perona–Malik", "diplib", "pip install diplib", _diplib_perona_malik, ""),
)
COHERENCE = Package("DIPlib CED", "diplib", "pip install diplib", _diplib_coherence, "σ 1, ρ 3")

#: Distributions whose versions a reader wants to know.
DISTRIBUTIONS = ("opencv-contrib-python-headless", "opencv-contrib-python", "medpy", "SimpleITK", "diplib")


def installed(
    packages: tuple[Package, ...], image: Image, threads: int, missing: Callable[[str, str], object]
) -> Iterator[tuple[Package, Filter]]:
    """Those that are there; `missing` is told the others, and why."""
    for package in packages:
        try:
            yield package, package.loaded(image, threads)
        except ImportError as error:
            missing(package.name, f"{error} ({package.install})")
