"""Model, stencil and scheme of `diffuse` and `scale-space`, from their options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import typer

from aniso import stability
from aniso.cli.jobs.reporting import Report
from aniso.cli.options import parsing
from aniso.cli.options.diffusion_options import SchemeOptions, StencilOptions, TensorOptions
from aniso.cli.options.shared import ComputingOptions
from aniso.io.pages import Page
from aniso.io.picture import FileError, Picture
from aniso.models import FixedTensor, ImageDriven
from aniso.stencil import DeltaStencil
from aniso.verbs.plan import format_value


@dataclass(frozen=True)
class DiffusionSetup:
    """What is the same for every page."""

    model: ImageDriven | None
    entries: tuple[float, float, float] | None
    stencil: DeltaStencil
    scheme: Any
    computing: ComputingOptions

    @classmethod
    def of(
        cls,
        model: Any,
        tensor: TensorOptions,
        stencil: StencilOptions,
        scheme: SchemeOptions,
        computing: ComputingOptions,
        times: Sequence[float],
    ) -> DiffusionSetup:
        """Return the setup; options are rejected now and not at the first file."""
        entries = tensor.entries() if tensor.given else None
        steered = None if entries is not None else model.chosen()
        if entries is not None and model.given():
            raise typer.BadParameter(
                f"a constant tensor and a model cannot be combined. Remove {', '.join(model.given())}, or "
                "the tensor."
            )
        result = cls(steered, entries, stencil.chosen() or DeltaStencil(), scheme.chosen(), computing)
        if steered is not None and computing.spacing != "file":
            with parsing.usage():
                given = computing.spacing or 1.0
                axes = len(given) if isinstance(given, tuple) else 2
                limit = stability.stable_step(steered, result.stencil, given, axes)
                result.scheme.plan(times[0], limit)
        return result

    def model_of(self, page: Page) -> Any:
        """Return the model; a constant tensor takes the shape of the page."""
        if self.entries is None:
            return self.model
        shape = [n for axis, n in enumerate(page.image.shape) if axis != page.channel_axis]
        a, b, c = self.entries
        if len(shape) == 3:
            raise FileError("a tensor (a b; b c) is for images, but this is a volume. Add --slices.")
        return FixedTensor.from_matrix([[c, b], [b, a]] if len(shape) == 2 else [[a]], tuple(shape))

    def store_options(self, time: float) -> dict[str, Any]:
        """Return the arguments of `diffuse` for a Zarr store."""
        return {"model": self.model, "time": time, "scheme": self.scheme, "stencil": self.stencil}

    def options(self, page: Page) -> dict[str, Any]:
        """Return the arguments of `diffuse` and `scale_space` other than image, model and time."""
        return {"stencil": self.stencil, "scheme": self.scheme, **self.computing.arguments(page)}

    def summary(self) -> list[tuple[str, str]]:
        """Return the rows of the summary."""
        rows = [("stencil", format_value(self.stencil)), ("scheme", format_value(self.scheme))]
        if self.entries is None:
            return [("model", format_value(self.model)), *rows]
        a, b, c = self.entries
        return [("tensor", f"({a:.4g} {b:.4g}; {b:.4g} {c:.4g})"), *rows]

    def facts(self) -> dict[str, Any]:
        """Return the same for JSON."""
        made = {"model": self.model, "tensor": self.entries}
        return {**made, "stencil": self.stencil, "scheme": self.scheme}

    def hint(self, report: Report, picture: Picture, contrast_given: bool) -> None:
        """Note if the default contrast, which is for grey values from 0 to 255, does not suit the picture."""
        contrast = getattr(self.model, "contrast", None)
        if contrast is None or contrast_given or picture.dtype == "uint8" or picture.dtype.kind == "b":
            return
        low, high = float(picture.pixels.min()), float(picture.pixels.max())
        if not 25 <= high - low <= 2550:
            report.note(
                "contrast",
                f"the default contrast {contrast:g} suits grey values from 0 to 255, but those of "
                f"{picture.source} range from {low:.4g} to {high:.4g}. Give --contrast; aniso info "
                "estimates it.",
            )
