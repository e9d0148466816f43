"""The table of verbs: what the command line, the explorer and the documentation know about them."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aniso import parameters
from aniso.parameters import Parameter


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A row of the table.

    `seconds` is the time per pixel of an image on two cores, `arrays` the peak memory for a volume in copies
    of it: both are rough, and serve to decide how fine a preview can be and whether a volume fits in memory.
    """

    name: str
    summary: str
    description: str
    participle: str
    examples: tuple[str, ...]
    seconds: float
    arrays: float
    #: Pattern of the names of results, with {stem}, {suffix} and the names of parameters.
    output: str
    #: The result is `factor` times finer than the image.
    refines: bool = False
    #: Takes a mask of unknown pixels, which may be NaN.
    fills: bool = False
    #: Zarr stores can be filtered from the command line.
    stores: bool = False

    @functools.cached_property
    def function(self) -> Callable[..., Any]:
        """The function itself, `aniso.<name>`."""
        function: Callable[..., Any] = getattr(importlib.import_module(f"aniso.verbs.{self.name}"), self.name)
        return function

    @functools.cached_property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters that a user may choose, by name."""
        return parameters.of_function(self.function)

    @functools.cached_property
    def takes_stencil(self) -> bool:
        """Whether the stencil can be chosen."""
        return "stencil" in inspect.signature(self.function).parameters


_ROWS = (
    Verb(
        name="denoise",
        summary="Remove noise; all parameters are estimated.",
        description="Several diffusions run, an estimate of their error that needs no clean image picks "
        "contrast and stopping time, and the results are mixed. The noise should be about equally strong "
        "everywhere in the image.",
        participle="denoised",
        examples=(
            "aniso denoise photo.jpg",
            "aniso denoise scan.tif --noise 12 -o clean.tif",
            "aniso denoise 'scans/*.tif' -o clean/ --json",
            "aniso denoise huge.zarr clean.zarr --workers 4 --memory 4GB",
        ),
        seconds=8e-6,
        arrays=60,
        output="{stem}_denoised{suffix}",
        stores=True,
    ),
    Verb(
        name="enhance",
        summary="Remove noise from lines and flow-like patterns and close their gaps.",
        description="Coherence-enhancing diffusion whose scales follow the distance of the lines: "
        "fingerprints, layers, fibres, wood.",
        participle="enhanced",
        examples=(
            "aniso enhance fingerprint.png",
            "aniso enhance fingerprint.png --wavelength 9 --time 40 -o ridges.png",
            "aniso enhance 'slices/*.tif' -o enhanced/",
        ),
        seconds=1e-5,
        arrays=59,
        output="{stem}_enhanced{suffix}",
        stores=True,
    ),
    Verb(
        name="inpaint",
        summary="Fill in unknown pixels.",
        description="Unknown pixels are those marked by a mask, those with a given value, or by default "
        "those that are NaN or infinite. Known pixels are returned unchanged. Edges continue into the gaps.",
        participle="inpainted",
        examples=(
            "aniso inpaint photo.jpg --mask mask.png",
            "aniso inpaint scan.tif --mask-value 0 -o filled.tif",
            "aniso inpaint heights.npy",
        ),
        seconds=3e-6,
        arrays=12,
        output="{stem}_inpainted{suffix}",
        fills=True,
    ),
    Verb(
        name="upsample",
        summary="Increase the resolution of an image up to 8 times.",
        description="The mean of every block of FACTOR × FACTOR new pixels is the old pixel. Edges stay "
        "sharp and smooth. Transparency is enlarged in blocks.",
        participle="upsampled",
        examples=(
            "aniso upsample 2 photo.jpg",
            "aniso upsample 4 camera.png -o large.png",
            "aniso upsample 3 'scans/*.tif' -o fine/",
        ),
        seconds=4e-6,
        arrays=12,
        output="{stem}_x{factor}{suffix}",
        refines=True,
    ),
)

#: The verbs by name, in the order in which they are shown.
VERBS = {row.name: row for row in _ROWS}
