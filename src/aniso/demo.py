"""What `aniso demo` shows: one picture of labelled panels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from aniso import samples
from aniso.evolve import diffuse
from aniso.models import CoherenceEnhancing, EdgeEnhancing, FixedTensor, PeronaMalik
from aniso.schemes import FED
from aniso.stencil import DeltaStencil

_MARGIN, _LABEL = 16, 26
_INK, _PAPER = (30, 30, 30), (255, 255, 255)


@dataclass(frozen=True)
class Panel:
    """An image with grey values 0 to 255, and what to write under it."""

    label: str
    image: npt.NDArray[np.float64]


def rows() -> list[tuple[str, list[Panel]]]:
    """Headline and panels of each row."""
    return [_stencils(), _edges(), _lines()]


def _stencils() -> tuple[str, list[Panel]]:
    size = 256
    image = 127.5 + 127.5 * samples.ring_pattern(size, radius=0.47 * size, width=0.05 * size)
    circles = FixedTensor.from_entries(*samples.ring_tensor(size))
    panels = [Panel("the image: it should not change", image)]
    for label, stencil in (
        ("standard stencil: it blurs", DeltaStencil.named("standard")),
        ("nonnegativity stencil", DeltaStencil.named("nonnegativity")),
        ("default stencil of aniso", DeltaStencil()),
    ):
        panels.append(Panel(label, diffuse(image, circles, 60.0, stencil=stencil, scheme=FED(1))))
    return "Diffusion along circles: what the choice of the stencil is worth", panels


def _edges() -> tuple[str, list[Panel]]:
    sample = samples.shapes(noise=40.0)
    noisy = sample.image
    perona_malik = diffuse(noisy, PeronaMalik(contrast=4.0, sigma=1.0), 30.0, scheme=FED(8))
    edge_enhancing = diffuse(noisy, EdgeEnhancing(contrast=4.0, sigma=2.0), 30.0, scheme=FED(8))
    return "Edge-enhancing diffusion also smooths along edges", [
        Panel("the truth", sample.truth),
        Panel("with noise", noisy),
        Panel("Perona-Malik: edges stay noisy", perona_malik),
        Panel("edge-enhancing diffusion", edge_enhancing),
    ]


def _lines() -> tuple[str, list[Panel]]:
    sample = samples.fingerprint()
    model = CoherenceEnhancing(contrast=10.0, sigma=1.0, rho=4.0)
    return "Coherence-enhancing diffusion closes interrupted lines", [
        Panel("the truth", sample.truth),
        Panel("with gaps and noise", sample.image),
        Panel("after time 2", diffuse(sample.image, model, 2.0, scheme=FED(2))),
        Panel("after time 20", diffuse(sample.image, model, 20.0, scheme=FED(6))),
    ]


def picture(content: list[tuple[str, list[Panel]]]) -> Image.Image:
    """All panels on one sheet, grey values 0 to 255 shown as they are."""
    heading, label = ImageFont.load_default(19), ImageFont.load_default(15)
    height, width = content[0][1][0].image.shape
    columns = max(len(panels) for _, panels in content)
    row_height = 2 * _LABEL + height + _MARGIN
    sheet = Image.new(
        "RGB",
        (_MARGIN + columns * (width + _MARGIN), _MARGIN + len(content) * row_height),
        _PAPER,
    )
    draw = ImageDraw.Draw(sheet)
    for row, (title, panels) in enumerate(content):
        top = _MARGIN + row * row_height
        draw.text((_MARGIN, top), title, _INK, heading)
        for column, panel in enumerate(panels):
            left = _MARGIN + column * (width + _MARGIN)
            grey = np.clip(np.rint(panel.image), 0, 255).astype(np.uint8)
            sheet.paste(Image.fromarray(grey), (left, top + _LABEL))
            draw.text((left, top + _LABEL + height + 4), panel.label, _INK, label)
    return sheet


def free_path(path: Path) -> Path:
    """The path, or the first of path-2, path-3, … that does not exist: nothing is overwritten."""
    number, candidate = 1, path
    while candidate.exists():
        number += 1
        candidate = path.with_stem(f"{path.stem}-{number}")
    return candidate
