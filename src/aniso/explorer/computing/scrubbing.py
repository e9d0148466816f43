"""The scale space as a film: the image at increasing diffusion times."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import aniso
from aniso.explorer.choosing.calls import Call, DiffusionCall
from aniso.explorer.choosing.scene import Scene
from aniso.explorer.computing import slabs
from aniso.explorer.computing.slabs import Slab
from aniso.explorer.computing.workers import Ticket
from aniso.explorer.showing import pictures
from aniso.models import ImageDriven
from aniso.schemes import FED
from aniso.verbs.table import DIFFUSE

FRAMES = 25
# Largest side of a frame, in pixels.
_LARGEST = 640
# Largest slab of a volume, in voxels.
_VOXELS = 2**19


@dataclass(frozen=True)
class Frame:
    """One picture of the film."""

    number: int
    time: float
    picture: pictures.Encoded


def frames(
    scene: Scene, call: Call, model: ImageDriven, end: float, ticket: Ticket, count: int = FRAMES
) -> Iterator[Frame]:
    """Yield the image at `count` times from 0 to the end, closer together at first, when most happens."""
    factor = pictures.reduction(scene.shape, _LARGEST)
    scheme, own = FED(1), call.options.get("spacing")
    options: dict[str, Any] = {"scheme": scheme, "channel_axis": scene.channel_axis}
    if "stencil" in call.options:
        options["stencil"] = call.options["stencil"]
    if scene.whole:
        thick = slabs.halo(scene, DiffusionCall(DIFFUSE, (model, end), call.options), scheme)
        slab = Slab.of(scene, slabs.affordable_part(scene, thick, _VOXELS, factor), own)
        image, middle, options["spacing"] = slab.volume, slab.middle, slab.spacing
    else:
        image, middle = scene.reduced(factor), None
        options["spacing"] = tuple(factor * h for h in own or (1.0, 1.0))

    def picture(now: Any) -> pictures.Encoded:
        shown = now if middle is None else now[middle]
        return pictures.encoded(pictures.shown(shown, scene.grey_range), lossless=False)

    yield Frame(0, 0.0, picture(image))
    times = [end * (k / (count - 1)) ** 2 for k in range(1, count)]
    evolution = aniso.scale_space(image, model, times, **options)
    with contextlib.closing(evolution):
        for number, (time, now) in enumerate(evolution, 1):
            ticket.progress(number, count - 1)
            yield Frame(number, time, picture(now))
