"""Diffusion filters of other packages, where they are installed.

ITKTubeTK and ITK's LBR (`peers_lbr.py`) have edge-enhancing diffusion; of the others, what comes closest is
taken, and `note` says what that is.
Images are converted before the clock starts, and results back to arrays after it has stopped.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[Any]
Filter = Callable[[int], Any]
Spacing = tuple[float, ...] | None


@dataclass(frozen=True)
class Package:
    """A filter of another package.

    `prepare(module, image, threads, strength, spacing)` gives a function of the number of iterations, and
    `array(module, result)` what that returns as an array.
    """

    name: str
    module: str
    install: str
    prepare: Callable[[Any, Image, int, float, Spacing], Filter]
    array: Callable[[Any, Any], Image]
    note: str
    #: The parameter that says what an edge is, and whether it is in grey values or free of them.
    strength: float
    in_grey_values: bool = True
    #: The numbers of dimensions that it takes, each with the step in time; None where it has none.
    steps: tuple[tuple[int, float | None], ...] = ()
    #: How many make a visible difference: one call of G'MIC is a whole smoothing.
    iterations: int = 10
    takes_spacing: bool = False
    only_bytes: bool = False

    @property
    def dimensions(self) -> tuple[int, ...]:
        """What it takes: 2 images, 3 volumes."""
        return tuple(ndim for ndim, _ in self.steps)

    def step(self, ndim: int) -> float | None:
        """Diffusion time per iteration, as the package counts it."""
        return dict(self.steps)[ndim]

    def loaded(
        self, image: Image, threads: int, strength: float | None = None, spacing: Spacing = None
    ) -> Filter:
        """The filter, ready to run; ImportError where the package is missing."""
        used = self.strength if strength is None else strength
        return self.prepare(importlib.import_module(self.module), image, threads, used, spacing)

    def filtered(
        self,
        image: Image,
        iterations: int,
        threads: int = 1,
        strength: float | None = None,
        spacing: Spacing = None,
    ) -> Image:
        """The filter's result as an array."""
        result = self.loaded(image, threads, strength, spacing)(iterations)
        return self.array(importlib.import_module(self.module), result)


def _itself(module: Any, result: Any) -> Image:
    return np.asarray(result)


def _opencv(cv2: Any, image: Image, threads: int, strength: float, spacing: Spacing) -> Filter:
    cv2.setNumThreads(threads)
    if not hasattr(cv2, "ximgproc"):
        raise ImportError("this OpenCV has no ximgproc")
    colour = np.repeat(np.clip(image, 0, 255).astype(np.uint8)[..., np.newaxis], 3, axis=-1)
    return lambda iterations: cv2.ximgproc.anisotropicDiffusion(
        colour, alpha=0.1, K=strength, niters=iterations
    )


def _medpy(smoothing: Any, image: Image, threads: int, strength: float, spacing: Spacing) -> Filter:
    gamma = MEDPY.step(image.ndim)
    return lambda iterations: smoothing.anisotropic_diffusion(
        image, niter=iterations, kappa=strength, gamma=gamma, voxelspacing=spacing, option=1
    )


def _simpleitk(name: str) -> Callable[[Any, Image, int, float, Spacing], Filter]:
    def prepare(sitk: Any, image: Image, threads: int, strength: float, spacing: Spacing) -> Filter:
        sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(threads)
        given = sitk.GetImageFromArray(image)
        if spacing is not None:
            given.SetSpacing(spacing[::-1])
        step = dict(SIMPLEITK_STEPS[name])[image.ndim]
        return lambda iterations: getattr(sitk, f"{name}AnisotropicDiffusion")(
            given, timeStep=step, conductanceParameter=strength, numberOfIterations=iterations
        )

    return prepare


def _diplib_perona_malik(dip: Any, image: Image, threads: int, strength: float, spacing: Spacing) -> Filter:
    dip.SetNumberOfThreads(threads)
    step = DIPLIB.step(image.ndim)
    return lambda iterations: dip.PeronaMalikDiffusion(
        image, iterations=iterations, K=strength, stepSizeLambda=step
    )


def _diplib_coherence(dip: Any, image: Image, threads: int, strength: float, spacing: Spacing) -> Filter:
    dip.SetNumberOfThreads(threads)
    return lambda iterations: dip.CoherenceEnhancingDiffusion(
        image, derivativeSigma=1, regularizationSigma=strength, iterations=iterations
    )


def _gmic(gmic: Any, image: Image, threads: int, strength: float, spacing: Spacing) -> Filter:
    # G'MIC's axes are x, y, z, and it takes its number of threads from OpenMP.
    given = gmic.Image(np.ascontiguousarray(image.T, dtype=np.float32))
    command = f"smooth {strength},0.7,0.3,0.6,1.1,0.8"
    return lambda iterations: gmic.run(" ".join([command] * iterations), gmic.ImageList([given]))


def _gmic_array(gmic: Any, result: Any) -> Image:
    pixels = result[0].to_numpy()[..., 0].T
    return np.asarray(pixels[0] if len(pixels) == 1 else pixels)


def _tubetk(itk: Any, image: Image, threads: int, strength: float, spacing: Spacing) -> Filter:
    if not hasattr(itk, "TubeTK"):
        raise ImportError("this ITK has no TubeTK")
    given = itk.image_from_array(image)
    if spacing is not None:
        given.SetSpacing(spacing[::-1])

    def run(iterations: int) -> Any:
        filter = itk.TubeTK.EnhanceEdgesUsingDiffusion.New(given)
        filter.SetContrastParameterLambdaE(strength)
        filter.SetSigma(1.0)
        filter.SetTimeStep(TUBETK.step(image.ndim))
        filter.SetNumberOfIterations(iterations)
        filter.Update()
        return itk.array_from_image(filter.GetOutput())

    return run


#: SimpleITK warns above 1/2ⁿ⁺¹.
SIMPLEITK_STEPS: dict[str, tuple[tuple[int, float | None], ...]] = {
    "Gradient": ((2, 0.125), (3, 0.0625)),
    "Curvature": ((2, 0.0625), (3, 0.0625)),
}

OPENCV = Package(
    "OpenCV Perona–Malik",
    "cv2",
    "pip install opencv-contrib-python-headless",
    _opencv,
    lambda cv2, result: result[..., 0],
    "8 bit, three channels (it takes nothing else)",
    strength=0.02,
    steps=((2, None),),
    only_bytes=True,
)
MEDPY = Package(
    "MedPy Perona–Malik",
    "medpy.filter.smoothing",
    "pip install medpy",
    _medpy,
    _itself,
    "one thread, NumPy",
    strength=10.0,
    steps=((2, 0.2), (3, 0.15)),
    takes_spacing=True,
)
GRADIENT = Package(
    "SimpleITK gradient diffusion",
    "SimpleITK",
    "pip install SimpleITK",
    _simpleitk("Gradient"),
    lambda sitk, result: sitk.GetArrayFromImage(result),
    "Perona–Malik",
    strength=1.0,
    in_grey_values=False,
    steps=SIMPLEITK_STEPS["Gradient"],
    takes_spacing=True,
)
CURVATURE = Package(
    "SimpleITK curvature diffusion",
    "SimpleITK",
    "pip install SimpleITK",
    _simpleitk("Curvature"),
    lambda sitk, result: sitk.GetArrayFromImage(result),
    "modified curvature",
    strength=1.0,
    in_grey_values=False,
    steps=SIMPLEITK_STEPS["Curvature"],
    takes_spacing=True,
)
DIPLIB = Package(
    "DIPlib Perona–Malik",
    "diplib",
    "pip install diplib",
    _diplib_perona_malik,
    _itself,
    "",
    strength=10.0,
    steps=((2, 0.2), (3, 0.15)),
)
#: Its strength is ρ: it has no contrast.
COHERENCE = Package(
    "DIPlib CED",
    "diplib",
    "pip install diplib",
    _diplib_coherence,
    _itself,
    "σ 1, ρ 3",
    strength=3.0,
    in_grey_values=False,
    steps=((2, None), (3, None)),
    iterations=3,
)
#: Its strength is the amplitude of the smoothing.
GMIC = Package(
    "G'MIC smooth",
    "gmic",
    "pip install gmic",
    _gmic,
    _gmic_array,
    "line integrals along a tensor field",
    strength=60.0,
    in_grey_values=False,
    steps=((2, None), (3, None)),
    iterations=1,
)

TUBETK = Package(
    "ITKTubeTK EED",
    "itk",
    "pip install itk-tubetk",
    _tubetk,
    _itself,
    "edge-enhancing, volumes only",
    strength=10.0,
    steps=((3, 0.0625),),
    takes_spacing=True,
)

PERONA_MALIK = (OPENCV, MEDPY, GRADIENT, CURVATURE, DIPLIB)
PACKAGES = (*PERONA_MALIK, COHERENCE, GMIC)

#: Distributions whose versions a reader wants to know.
DISTRIBUTIONS = (
    "opencv-contrib-python-headless", "opencv-contrib-python", "medpy", "SimpleITK", "diplib", "gmic",
    "itk-tubetk", "bm3d",
)  # fmt: skip


def installed(
    packages: tuple[Package, ...], image: Image, threads: int, missing: Callable[[str, str], object]
) -> Iterator[tuple[Package, Filter]]:
    """Return the installed packages; `missing` is called with the others and the reason."""
    for package in packages:
        try:
            yield package, package.loaded(image, threads)
        except ImportError as error:
            missing(package.name, f"{error} ({package.install})")
