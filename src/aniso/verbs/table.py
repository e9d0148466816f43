"""The table of verbs: what the command line, the explorer and the documentation know about them.

A new verb is a row here, a module in `aniso.verbs` and a name in `_HOMES` of `aniso/__init__.py`.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aniso
from aniso import parameters
from aniso.parameters import Parameter


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A row of the table.

    `seconds` is the computing time per pixel on two cores (per pixel and step, if the verb takes a model),
    `arrays` the peak memory for a volume, in single-precision copies of the result. Both are rough: they
    decide how fine a preview can be and whether a volume fits in memory.
    """

    name: str
    summary: str
    description: str
    participle: str
    examples: tuple[str, ...]
    seconds: float
    arrays: float
    #: Pattern of the names of results, with {stem}, {suffix} and {factors}, e.g. x2.
    output: str
    #: The result is `factor` times finer than the image; the module has a function `choose_factors`.
    refines: bool = False
    #: Fills in unknown pixels and does nothing else.
    fills: bool = False
    #: Options that make a preview quick: switches are replaced, numbers are lower limits.
    preview: Mapping[str, Any] = field(default_factory=dict)
    #: Choices for previews on a coarser grid, where they make little difference, unless the user made others.
    coarse: Mapping[str, Any] = field(default_factory=dict)
    #: What the options of `preview` change, in words that follow "preview".
    preview_note: str = ""

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself, `aniso.<name>`."""
        function: Callable[..., Any] = getattr(aniso, self.name)
        return function

    @property
    def choose(self) -> Callable[..., Any]:
        """The function `choose` of the verb's module, which makes a plan.

        It is called as choose(source, settings, **options) with an :class:`aniso.verbs.source.ImageSource`.
        """
        function: Callable[..., Any] = sys.modules[self.function.__module__].choose
        return function

    def factors(self, spacings: tuple[float, ...], options: Mapping[str, Any]) -> tuple[int, ...]:
        """Return how many times finer the result is along each axis, given options of the function."""
        if not self.refines:
            return (1,) * len(spacings)
        choose = sys.modules[self.function.__module__].choose_factors
        found: tuple[int, ...] = choose(
            spacings, **{name: options[name] for name in ("factor", "isotropic") if name in options}
        )
        return found

    @functools.cached_property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters that a user may choose, by name."""
        return parameters.of_function(self.function)

    def takes(self, name: str) -> bool:
        """Return whether the function has this parameter, e.g. a stencil, a mask or a model."""
        return name in inspect.signature(self.function).parameters

    @property
    def has_scale_space(self) -> bool:
        """Whether the result is reached by diffusing the image itself, so that earlier times can be shown."""
        return not (self.fills or self.refines)


_ROWS = (
    Verb(
        name="denoise",
        summary="Remove noise; all parameters are estimated.",
        description="Kind, level and correlation of the noise are estimated, and impulses such as hot pixels "
        "are replaced first. Then the image is filtered by a learned diffusion, or by an average of several "
        "diffusions if its expected error is clearly smaller; contrasts and times are chosen by an estimate "
        "of the error that needs no clean image. If too much or too little is removed, give the noise level "
        "or the kind of noise.",
        participle="denoised",
        examples=(
            "aniso denoise photo.jpg",
            "aniso denoise scan.tif --noise 12 -o clean.tif",
            "aniso denoise cells.tif --noise poisson",
            "aniso denoise 'scans/*.tif' -o clean/ --json",
            "aniso denoise huge.zarr clean.zarr --workers 4 --memory 4GB",
        ),
        seconds=2e-6,
        arrays=10,
        coarse={"method": "diffusion"},
        output="{stem}_denoised{suffix}",
    ),
    Verb(
        name="enhance",
        summary="Remove noise from lines and flow-like patterns and close their gaps.",
        description="Coherence-enhancing diffusion with scales that follow the line spacing, for "
        "fingerprints, layers, fibres and wood.",
        participle="enhanced",
        examples=(
            "aniso enhance fingerprint.png",
            "aniso enhance fingerprint.png --wavelength 9 --time 40 -o ridges.png",
            "aniso enhance 'slices/*.tif' -o enhanced/",
        ),
        seconds=3e-6,
        arrays=20,
        preview={"refine": False},
        preview_note="with one diffusion",
        output="{stem}_enhanced{suffix}",
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
            "aniso inpaint huge.zarr filled.zarr --mask mask.zarr",
        ),
        seconds=3e-6,
        arrays=10,
        preview={"tolerance": 0.02},
        output="{stem}_inpainted{suffix}",
        fills=True,
    ),
    Verb(
        name="upsample",
        summary="Increase the resolution of an image up to 8 times.",
        description="Every pixel of the input is the mean of a block of pixels of the result, as long as the "
        "factor along each axis. Edges stay sharp and smooth. An alpha channel is enlarged without "
        "interpolation.",
        participle="upsampled",
        examples=(
            "aniso upsample photo.jpg --factor 2",
            "aniso upsample 'scans/*.tif' --factor 3 -o fine/",
            "aniso upsample slices.tif --factor 3,1,1",
            "aniso upsample slices.nii.gz --isotropic",
        ),
        seconds=4e-6,
        arrays=13,
        output="{stem}_{factors}{suffix}",
        refines=True,
    ),
)

#: The verbs by name, in the order in which they are shown.
VERBS = {row.name: row for row in _ROWS}

#: Diffusion with a given model, which the explorer and the command line offer next to the verbs.
DIFFUSE = Verb(
    name="diffuse",
    summary="Diffuse with any model, stencil and scheme.",
    description="The model determines the diffusion tensor; a constant tensor can be given instead. The "
    "diffusion time is reached exactly, and unstable step sizes are rejected.",
    participle="diffused",
    examples=(
        "aniso diffuse camera.png --contrast 5 --sigma 1 --time 10",
        "aniso diffuse fingerprint.png -m coherence-enhancing --rho 4 --time 20",
        "aniso diffuse camera.png --angle 30 --eigenvalues 1 0.01 --time 20",
    ),
    seconds=8e-9,
    arrays=7,
    output="{stem}_diffused{suffix}",
)
