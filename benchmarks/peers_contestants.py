"""Who is held to the laws: filters of aniso and of other packages, all called in one way."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import aniso
from benchmarks import other_packages, peers_lbr
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
    package.loaded(np.zeros((8,) * ndim, np.float32), 1)

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


def _block_matching(image: Array, grey: float, spacing: Spacing) -> Array:
    from bm3d import bm3d

    return np.asarray(bm3d(image, 15.0 * grey))


def _opencv_means(image: Array, grey: float, spacing: Spacing) -> Array:
    import cv2

    return np.asarray(cv2.fastNlMeansDenoising(image, h=15.0))


#: Filters with the same purpose that are not diffusion: module, distribution, and the filter.
OTHERS: tuple[tuple[str, str, Filter], ...] = (
    ("skimage", "scikit-image", Filter("scikit-image total variation", _total_variation)),
    ("skimage", "scikit-image", Filter("scikit-image non-local means", _nonlocal_means)),
    (
        "cv2",
        "opencv-contrib-python-headless",
        Filter("OpenCV non-local means", _opencv_means, only_bytes=True),
    ),
    ("bm3d", "bm3d", Filter("BM3D", _block_matching)),
)


def does_nothing(filter: Filter) -> bool:
    """Whether noise is returned unchanged: such a filter keeps all laws."""
    noise = np.random.default_rng(0).normal(100, 20, (24,) * filter.ndim).astype(np.float32)
    given = noise.clip(0, 255).astype(np.uint8) if filter.only_bytes else noise
    return bool((filter(given) == given).all())


def contestants(missing: Callable[[str, str], object]) -> list[Filter]:
    """Return all installed filters; `missing` is called with the others and the reason."""
    found = ours()
    for package in (*other_packages.PACKAGES, other_packages.TUBETK, peers_lbr.EDGE, peers_lbr.COHERENT):
        try:
            filters = [of_package(package, ndim) for ndim in package.dimensions]
        except ImportError as error:
            missing(package.name, f"{error} ({package.install})")
            continue
        for filter in filters:
            if does_nothing(filter):
                missing(filter.name, "returns its input unchanged")
            else:
                found.append(filter)
    for module, distribution, filter in OTHERS:
        if importlib.util.find_spec(module):
            found.append(filter)
        else:
            missing(filter.name, f"pip install {distribution}")
    return found
