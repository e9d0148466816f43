"""Who is held to the laws: filters of aniso and of other packages, all called in one way."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import aniso
from benchmarks import other_packages
from benchmarks.other_packages import Package, Spacing
from benchmarks.report import Kind

Array = npt.NDArray[Any]
#: filter(image, grey, spacing): parameters in grey values are multiplied by `grey`.
Run = Callable[[Array, float, Spacing], Array]


@dataclass(frozen=True)
class Filter:
    """A filter with its parameters, for images or for volumes."""

    name: str
    run: Run
    ndim: int = 2
    kind: Kind = "theirs"
    takes_spacing: bool = False
    #: Takes bytes and nothing else.
    only_bytes: bool = False

    def __call__(self, image: Array, grey: float = 1.0, spacing: Spacing = None) -> Array:
        """The result; in double precision, so that differences of bytes do not wrap."""
        return np.asarray(self.run(image, grey, spacing), dtype=np.float64)


MODELS: dict[str, Callable[[float], Any]] = {
    "aniso EED": lambda grey: aniso.EdgeEnhancing(contrast=10.0 * grey, sigma=1.0),
    "aniso CED": lambda grey: aniso.CoherenceEnhancing(contrast=10.0 * grey, sigma=1.0, rho=3.0),
    "aniso Perona–Malik": lambda grey: aniso.PeronaMalik(contrast=10.0 * grey, sigma=0.5),
}


def _diffused(model: Callable[[float], Any], image: Array, grey: float, spacing: Spacing) -> Array:
    return aniso.diffuse(image, model(grey), 2.0, spacing=spacing)


def _denoised(image: Array, grey: float, spacing: Spacing) -> Array:
    return aniso.denoise(image, spacing=spacing)


def _enhanced(image: Array, grey: float, spacing: Spacing) -> Array:
    return aniso.enhance(image, spacing=spacing)


def ours() -> list[Filter]:
    """The models of aniso and its verbs."""
    found = []
    for ndim in (2, 3):
        runs: dict[str, Run] = {name: partial(_diffused, model) for name, model in MODELS.items()}
        runs |= {"aniso denoise": _denoised, "aniso enhance": _enhanced}
        found += [
            Filter(_named(name, ndim), run, ndim, "ours", takes_spacing=True) for name, run in runs.items()
        ]
    return found


def _named(name: str, ndim: int) -> str:
    return name if ndim == 2 else f"{name} 3-D"


def of_package(package: Package, ndim: int) -> Filter:
    """A filter of another package with its standing parameters; ImportError where it is missing."""
    importlib.import_module(package.module)

    def run(image: Array, grey: float, spacing: Spacing) -> Array:
        strength = package.strength * (grey if package.in_grey_values else 1.0)
        # Two threads, because filters that differ from call to call do so with several of them.
        return package.filtered(image, package.iterations, 2, strength, spacing)

    return Filter(
        _named(package.name, ndim),
        run,
        ndim,
        takes_spacing=package.takes_spacing,
        only_bytes=package.only_bytes,
    )


def _total_variation(image: Array, grey: float, spacing: Spacing) -> Array:
    from skimage.restoration import denoise_tv_chambolle

    return np.asarray(denoise_tv_chambolle(image, weight=15.0 * grey))


def _nonlocal_means(image: Array, grey: float, spacing: Spacing) -> Array:
    from skimage.restoration import denoise_nl_means

    return np.asarray(denoise_nl_means(image, patch_size=5, patch_distance=6, h=15.0 * grey))


def scikit_image() -> list[Filter]:
    """Return two filters with the same purpose that are not diffusion."""
    importlib.import_module("skimage.restoration")
    runs = {"scikit-image total variation": _total_variation, "scikit-image non-local means": _nonlocal_means}
    return [Filter(name, run) for name, run in runs.items()]


def contestants(missing: Callable[[str, str], object]) -> list[Filter]:
    """Return all installed filters; `missing` is called with the others and the reason."""
    found = ours()
    for package in other_packages.PACKAGES:
        try:
            found += [of_package(package, ndim) for ndim in package.dimensions]
        except ImportError as error:
            missing(package.name, f"{error} ({package.install})")
    try:
        found += scikit_image()
    except ImportError as error:
        missing("scikit-image", f"{error} (pip install scikit-image)")
    return found
