"""The scale space as a film: the image at many times on the way to the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import aniso
from aniso.explorer import pictures
from aniso.explorer.choices import Call
from aniso.explorer.scene import Scene
from aniso.explorer.workers import Ticket
from aniso.models import ImageDriven
from aniso.schemes import FED

FRAMES = 25
# Frames have so many pixels per side at most.
_LARGEST = 640


@dataclass(frozen=True)
class Frame:
    """One picture of the film."""

    number: int
    time: float
    picture: pictures.Encoded


def frames(
    scene: Scene, call: Call, model: ImageDriven, end: float, ticket: Ticket, count: int = FRAMES
) -> Iterator[Frame]:
    """The image at `count` times from 0 to the end, closer together at first, when most happens."""
    factor = pictures.reduction(scene.shape, _LARGEST)
    image = scene.reduced(factor)
    options: dict[str, Any] = {"scheme": FED(1), "channel_axis": scene.channel_axis}
    own = call.options.get("spacing", (1.0, 1.0))
    options["spacing"] = tuple(factor * h for h in own)
    if "stencil" in call.options:
        options["stencil"] = call.options["stencil"]
    yield Frame(0, 0.0, _picture(image, scene))
    times = [end * (k / (count - 1)) ** 2 for k in range(1, count)]
    way = aniso.scale_space(image, model, times, **options)
    with contextlib.closing(way):
        for number, (time, now) in enumerate(way, 1):
            ticket.progress(number, count - 1)
            yield Frame(number, time, _picture(now, scene))


def _picture(image: Any, scene: Scene) -> pictures.Encoded:
    return pictures.encoded(pictures.shown(image, scene.grey_range), lossless=False)
