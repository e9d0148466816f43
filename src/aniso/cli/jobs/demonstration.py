"""The images of `aniso demo`: five comparisons, on one sheet and as separate files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from aniso import io, samples
from aniso.evolve import diffuse
from aniso.io.picture import as_dtype
from aniso.models import FixedTensor
from aniso.schemes import FED
from aniso.stencil import DeltaStencil
from aniso.verbs.denoise import denoise
from aniso.verbs.enhance import enhance
from aniso.verbs.inpaint import inpaint
from aniso.verbs.upsample import upsample

_SIDE = 256
_MARGIN, _GAP, _HEADING, _LABEL = 22, 12, 54, 46
_INK, _GREY, _PAPER = (28, 28, 32), (110, 110, 118), (255, 255, 255)
_ZOOM = 3

Pixels = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Panel:
    """An image with values from 0 to 255, and its label.

    `zoom` is the part that is magnified, (row, column, pixels per side), and `corner` where it is shown.
    """

    name: str
    label: str
    figure: str
    image: Pixels
    zoom: tuple[int, int, int] | None = None
    corner: str = "top right"


@dataclass(frozen=True, eq=False)
class Block:
    """Panels that belong together, and the line of Python that computes the result."""

    title: str
    call: str
    panels: list[Panel]
    truth: Panel | None = None

    @classmethod
    def compare(
        cls, title: str, call: str, truth: Pixels, *images: tuple[str, Pixels], zoom: tuple[int, int, int],
        corner: str = "top right",
    ) -> Block:  # fmt: skip
        """Return labels and images before and after, and the truth; files are named after the call."""
        verb = call.removeprefix("aniso.").partition("(")[0]
        panels = [
            Panel(f"{verb}-{when}", label, _decibels(image, truth), image, zoom, corner)
            for when, (label, image) in zip(("before", "after"), images, strict=True)
        ]
        return cls(title, call, panels, Panel(f"{verb}-truth", "", "", truth))


def denoising() -> Block:
    """Remove noise and keep contours."""
    sample = samples.lighthouse(_SIDE, noise=30.0)
    noisy = sample.image.astype(np.float32)
    after = "denoised", denoise(noisy, channel_axis=-1)
    truth, zoom = sample.truth, (28, 50, 32)
    return Block.compare("Denoising", "aniso.denoise(image)", truth, ("with noise", noisy), after, zoom=zoom)


def enhancing() -> Block:
    """Remove noise from lines, and close gaps."""
    sample = samples.fingerprint(_SIDE, period=11.0, noise=60.0, seed=1)
    before = "lines with gaps, noise", sample.image.astype(np.float32)
    result = enhance(before[1])
    after = f"{np.mean(result[sample.gaps] < 127.5):.0%} of gaps closed", result
    title, call, place = "Coherence enhancement", "aniso.enhance(image)", (8, 123, 32)
    return Block.compare(title, call, sample.truth, before, after, zoom=place, corner="bottom right")


def inpainting() -> Block:
    """Restore an image of which one pixel in ten is known."""
    truth = samples.lighthouse(_SIDE, noise=0.0).truth.astype(np.float32)
    unknown = np.random.default_rng(0).random(truth.shape[:2]) > 0.1
    before = "one pixel in ten is known", np.where(unknown[..., np.newaxis], 0, truth)
    after = "filled in", inpaint(before[1], unknown, channel_axis=-1)
    return Block.compare("Inpainting", "aniso.inpaint(image, mask)", truth, before, after, zoom=(128, 56, 32))


def upsampling() -> Block:
    """Increase the resolution by 4; block means are kept."""
    truth = samples.lighthouse(_SIDE, noise=0.0).truth.astype(np.float32)
    coarse = truth.reshape(_SIDE // 4, 4, _SIDE // 4, 4, 3).mean(axis=(1, 3))
    before = "64 pixels wide", coarse.repeat(4, axis=0).repeat(4, axis=1)
    after = "256 pixels wide", upsample(coarse, 4, channel_axis=-1)
    return Block.compare("Upsampling", "aniso.upsample(image, 4)", truth, before, after, zoom=(94, 44, 32))


def stencils() -> Block:
    """Compare stencils: diffusion along circles should not change circles."""
    pattern = samples.ring_pattern(_SIDE, radius=0.47 * _SIDE, width=0.05 * _SIDE)
    image = (127.5 + 127.5 * pattern).astype(np.float32)
    circles = FixedTensor.from_entries(*samples.ring_tensor(_SIDE))
    panels = [Panel("rings-before", "rings", "", image)]
    for name, label, stencil in (
        ("standard", "standard stencil", DeltaStencil.named("standard")),
        ("nonnegativity", "nonnegativity stencil", DeltaStencil.named("nonnegativity")),
        ("aniso", "stencil of aniso", DeltaStencil()),
    ):
        result = diffuse(image, circles, 60.0, stencil=stencil, scheme=FED(1))
        lost = np.linalg.norm(result - image) / np.linalg.norm(127.5 * pattern)
        panels.append(Panel(f"rings-{name}", label, f"{lost:.0%} changed", result))
    return Block("Stencils compared: diffusion along circles", "aniso.diffuse(image, tensors, 60)", panels)


#: The comparisons in order: the first four in pairs side by side, the last over the full width.
BLOCKS: tuple[Callable[[], Block], ...] = (denoising, enhancing, inpainting, upsampling, stencils)


def sheet(blocks: list[Block]) -> Image.Image:
    """Return all panels on one sheet, four in a row; 0 is black and 255 is white."""
    panels = [(block, panel) for block in blocks for panel in block.panels]
    width = 2 * _MARGIN + 4 * _SIDE + 3 * _GAP + 2 * _GAP
    row_height = _HEADING + _SIDE + _LABEL
    page = Image.new("RGB", (width, 2 * _MARGIN + -(-len(panels) // 4) * row_height - 20), _PAPER)
    draw = ImageDraw.Draw(page)
    title, code, label = (ImageFont.load_default(size) for size in (22, 16, 16))
    for number, (block, panel) in enumerate(panels):
        row, column = divmod(number, 4)
        top = _MARGIN + row * row_height
        left = _MARGIN + column * (_SIDE + _GAP) + (2 * _GAP if column > 1 else 0)  # between pairs
        below = top + _HEADING + _SIDE + 5
        if panel is block.panels[0]:
            draw.text((left, top), block.title, _INK, title)
            draw.text((left, top + 27), block.call, _GREY, code)
        page.paste(_draw_panel(panel), (left, top + _HEADING))
        draw.text((left, below), panel.label, _INK, label)
        draw.text((left + _SIDE, below), panel.figure, _GREY, label, anchor="ra")
    return page


def _draw_panel(panel: Panel) -> Image.Image:
    """Return the panel, with a part of it magnified in a corner and framed in the image."""
    shown = Image.fromarray(as_dtype(panel.image, np.uint8)).convert("RGB")
    if panel.zoom is None:
        return shown
    row, column, size = panel.zoom
    part = shown.crop((column, row, column + size, row + size))
    part = part.resize((_ZOOM * size, _ZOOM * size), Image.Resampling.NEAREST)
    draw = ImageDraw.Draw(shown)
    _draw_frame(draw, column, row, size, 1)
    left = _SIDE - _ZOOM * size - 5
    top = 5 if panel.corner.startswith("top") else left
    shown.paste(part, (left, top))
    _draw_frame(draw, left, top, _ZOOM * size, 2)
    return shown


def _draw_frame(draw: ImageDraw.ImageDraw, left: int, top: int, size: int, width: int) -> None:
    """Draw a bright frame with a dark outline, visible on any background."""
    for far, colour, line in ((width + 1, _INK, 1), (width, _PAPER, width)):
        box = left - far, top - far, left + size + far - 1, top + size + far - 1
        draw.rectangle(box, outline=colour, width=line)


def run(folder: Path, tell: Callable[[str], object]) -> Path:
    """Compute all comparisons and write them to this folder, or to a new one next to it if it exists.

    Raises :class:`aniso.io.FileError` if the folder cannot be created.
    """
    if folder.name in ("", ".."):  # here, or above: a folder in it
        folder = folder / "aniso-demo"
    target = free_path(folder)
    if target != folder:
        tell(f"{folder} exists; writing to {target}.")
    try:
        target.mkdir(parents=True)
    except OSError as error:
        raise io.FileError(
            f"the folder {target} cannot be created: {error.strerror or error}. Give another one with "
            "--output."
        ) from error
    written: list[Path] = []
    try:
        blocks = []
        for make in BLOCKS:
            block = make()
            blocks.append(block)
            for panel in (*block.panels, *filter(None, [block.truth])):
                written.append(io.write(target / f"{panel.name}.png", as_dtype(panel.image, np.uint8)))
            tell(f"  {block.title}: " + ", ".join(f"{panel.name}.png" for panel in block.panels))
        picture = io.write(target / "demo.png", np.asarray(sheet(blocks)))
    except BaseException:  # no incomplete results
        for path in written:
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it may contain other files
            target.rmdir()
        raise
    tell(f"Wrote {picture} with all results, and the files above in the same folder.")
    return picture


def free_path(path: Path) -> Path:
    """Return the path, or the first of path-2, path-3, … that does not exist."""
    number, candidate = 1, path
    while candidate.exists() or candidate.is_symlink():
        number += 1
        candidate = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return candidate


def _decibels(image: Pixels, truth: Pixels) -> str:
    """Return the peak signal-to-noise ratio of the image as shown."""
    error = np.mean((np.clip(image, 0, 255) - truth) ** 2)
    return f"{10 * np.log10(255**2 / error):.1f} dB"
