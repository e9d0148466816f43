"""One tab: what it looks at, what was chosen, what is being computed, and the pictures that it may fetch."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from aniso import io
from aniso.explorer import overlays, pictures, previews, recipes, rendering, scrubbing, stencils
from aniso.explorer.album import Album
from aniso.explorer.choices import Call, Choices
from aniso.explorer.masks import RandomPixels, painted
from aniso.explorer.previews import Pace, View
from aniso.explorer.rendering import Shot
from aniso.explorer.scene import Scene, Source
from aniso.explorer.workers import Stale, Ticket, Worker

Array = npt.NDArray[Any]

#: Seconds without a change after which the full resolution is computed.
REST = 0.3
# Seconds after which overlays follow: they must not slow down the picture.
_PAUSE = 0.1


class Stage(Protocol):
    """What the page does with news of its session; always called in the event loop."""

    def show(self, slot: str, number: int, rectangle: tuple[float, ...], facts: dict[str, Any]) -> None:
        """A new picture can be fetched, under this number."""

    def drop(self, *slots: str) -> None:
        """Pictures that no longer hold."""

    def tell(self, **news: Any) -> None:
        """Whatever is said in words: error, busy, progress, result."""


@dataclass(frozen=True, eq=False)
class Result:
    """A computed image, the call that made it, and what the verb said."""

    call: Call
    image: Array
    info: Any
    seconds: float


class Session:
    """The state of one tab. Its methods are called in the event loop; workers compute in threads."""

    def __init__(self, stage: Stage, pace: Pace) -> None:
        self.key = secrets.token_urlsafe(18)
        self.stage = stage
        self.scene: Scene | None = None
        self.choices = Choices()
        self.result: Result | None = None
        self.view: View | None = None
        self.shows_difference = False
        self.shown_overlays: set[str] = set()
        self.pictures = Album()
        self._pace = pace
        self._gradients: overlays.Gradients | None = None
        self._opened = 0
        self._complained = False
        self._loop = asyncio.get_running_loop()
        self._stamp: float | None = None
        self._version = 0
        self._rest: asyncio.TimerHandle | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._folder: Path | None = None
        self._preview = Worker("aniso preview", interrupts=False)
        self._full = Worker("aniso full resolution", interrupts=True)
        self._beside = Worker("aniso overlays", interrupts=True)

    # -- what the user does ---------------------------------------------------------------------------

    async def open(self, load: Callable[[], Source]) -> bool:
        """Look at something else; whether that worked. A file that cannot be read leaves all as it was."""
        self._opened += 1
        turn = self._opened
        try:
            source = await asyncio.to_thread(load)
            axis = 0
            index = source.picture.shape[0] // 2 if source.is_volume else 0
            scene = Scene(source, axis, index)
            await asyncio.to_thread(_looked_at, scene)
        except Exception as error:
            self.stage.tell(error=_sentence(error))
            return False
        if turn == self._opened:  # else something else was opened in the meantime
            self._look_at(scene)
        return True

    async def slice(self, axis: int, index: int) -> None:
        """Look at another slice of the volume."""
        if self.scene is None or not self.scene.source.is_volume:
            return
        axis = min(max(axis, 0), 2)
        index = min(max(index, 0), self.scene.source.picture.shape[axis] - 1)
        self._opened += 1
        turn = self._opened
        scene = Scene(self.scene.source, axis, index)
        same_size = scene.shape == self.scene.shape
        await asyncio.to_thread(_looked_at, scene)
        if turn == self._opened:
            self._look_at(scene, keep_view=same_size)

    def _look_at(self, scene: Scene, *, keep_view: bool = False) -> None:
        self._full.withdraw()
        self._beside.withdraw()
        self.scene, self.result = scene, None
        drawn = np.zeros(scene.shape, bool)
        self.choices = replace(self.choices, drawn=drawn)
        if not keep_view:
            self.view = None
        self.pictures.clear(but=stencils.RINGS)
        self.stage.tell(error=None, scene=scene, keep_view=keep_view)
        self._beside.submit(lambda ticket: self._publish(rendering.before(scene), scene), "before")
        self.changed()

    def choose(self, choices: Choices, stamp: float | None = None) -> None:
        """Take over what was chosen; the picture follows at once, full resolution when the hand rests."""
        self.choices = choices
        self.changed(stamp)

    def paint(self, points: list[list[float]], radius: float, *, erase: bool) -> None:
        """A stroke of the brush."""
        if self.scene is None or not points:
            return
        mask = self.choices.drawn
        if mask is None or mask.shape != self.scene.shape:
            mask = np.zeros(self.scene.shape, bool)
        mask = painted(mask, points, radius, erase=erase)
        self.choose(replace(self.choices, drawn=mask, random_pixels=None))

    def clear_mask(self) -> None:
        """Nothing is unknown any more, or all of what was drawn is known again."""
        if self.scene is not None:
            self.choose(replace(self.choices, drawn=np.zeros(self.scene.shape, bool)))

    def draw_at_random(self, share: float, seed: int, stamp: float | None = None) -> None:
        """Let chance choose the unknown pixels."""
        self.choose(replace(self.choices, random_pixels=RandomPixels(share, seed)), stamp)

    def look(self, view: View) -> None:
        """Another part is visible: large images need pictures of it."""
        self.view = view
        if self.scene is None or pictures.reduction(self.scene.shape) == 1:
            return
        scene, result = self.scene, None if self.result is None else self.result.image

        def job(ticket: Ticket) -> None:
            shots = rendering.details(scene, result, view, difference=self.shows_difference)
            for shot in shots:
                ticket.progress(0, 1)
                self._publish(shot, scene)

        self._guarded(self._beside, job, "details")

    def show_difference(self, shown: bool) -> None:
        """Difference in place of the result, or the other way round."""
        self.shows_difference = shown
        if self.scene is not None and self.result is not None:
            image, scene = self.result.image, self.scene

            def job(ticket: Ticket) -> None:
                self._publish(rendering.result(scene, image, difference=shown), scene)

            self._guarded(self._preview, job)
        else:
            self.changed()

    def show_overlay(self, name: str, shown: bool) -> None:
        """Ellipses, or the map of stopped flow."""
        self.shown_overlays = self.shown_overlays | {name} if shown else self.shown_overlays - {name}
        if shown:
            self._request_overlays()

    def film(self) -> None:
        """Compute the scale space."""
        if self.scene is None:
            return
        scene, call = self.scene, self.choices.call(self.scene)
        steering = call.steering(self.result.info if self.result else None)
        if steering is None or call.verb in ("inpaint", "upsample"):
            self.stage.tell(
                error="There is no scale space to play here: it needs a model that diffuses the whole image, "
                "as denoise, enhance and diffuse have it. Wait for the result, or choose one of them."
            )
            return
        model, end = steering
        version = self._version

        def job(ticket: Ticket) -> None:
            for frame in scrubbing.frames(scene, call, model, end, ticket):
                self.post(self._film_frame, frame, version)

        self._guarded(self._full, job)

    # -- what follows from it -------------------------------------------------------------------------

    def changed(self, stamp: float | None = None) -> None:
        """The result no longer holds: request a preview now, and full resolution after a while."""
        self._version += 1
        self._stamp = stamp
        self.result = None
        self._full.withdraw()
        if self._rest is not None:
            self._rest.cancel()
        if self.scene is None:
            return
        try:
            call = self.choices.call(self.scene)
        except (ValueError, TypeError) as error:
            self._failed(_sentence(error), self._version)
            return
        self.stage.tell(busy=True, film=False)
        self._request_preview(call, stamp)
        self._rest = self._loop.call_later(REST, self._request_result, call)
        if call.verb == "inpaint":
            self._request_unknown()
        else:
            self.stage.drop("unknown")
        if self._pause is not None:
            self._pause.cancel()
        self._pause = self._loop.call_later(_PAUSE, self._request_overlays)

    def _request_preview(self, call: Call, stamp: float | None) -> None:
        scene, version = self.scene, self._version
        assert scene is not None
        view = self.view or View.of_all(scene.shape)
        part = previews.part(scene.shape, view, call, self._pace.affordable(call))

        def job(ticket: Ticket) -> None:
            quick, image = previews.coarse(call, scene, part)
            begin = time.perf_counter()
            try:
                result, info = quick(image, ticket.progress)
            except Exception:
                if not part.covers(scene.shape):
                    return  # full resolution will tell whether there is more to it than the part
                raise
            seconds = time.perf_counter() - begin
            self._pace.measured(call, part.pixels, seconds)
            shot = rendering.preview(scene, part, image, result, difference=self.shows_difference)
            self._publish(shot, scene, stamp=stamp, seconds=seconds)
            if previews.is_exact(call, quick, part, scene):
                self.post(self._finished, Result(call, result, info, seconds), version)

        self._guarded(self._preview, job)

    def _request_result(self, call: Call) -> None:
        scene, version = self.scene, self._version
        if scene is None or self.result is not None:
            return

        def job(ticket: Ticket) -> None:
            begin = time.perf_counter()
            last = begin

            def progress(done: float, total: float) -> None:
                nonlocal last
                ticket.progress(done, total)
                now = time.perf_counter()
                if now - last > 0.15:
                    last = now
                    self.post(self._progress, ticket.share, version)

            image, info = call(scene.image, progress)
            result = Result(call, image, info, time.perf_counter() - begin)
            if ticket.wanted:
                self._publish(rendering.result(scene, image, difference=self.shows_difference), scene)
                self.post(self._finished, result, version)

        self._guarded(self._full, job)

    def _finished(self, result: Result, version: int) -> None:
        if version != self._version or self.scene is None:
            return
        self.result = result
        if self._rest is not None:
            self._rest.cancel()
        found = {}
        if result.info is not None:
            for name in self.choices.parameters:
                value = getattr(result.info, name, None)
                if isinstance(value, float | int) and not isinstance(value, bool) and np.isfinite(value):
                    found[name] = float(value)
        if self._complained:  # what was said about a file stays until it is read
            self._complained = False
            self.stage.tell(error=None)
        self.stage.tell(busy=False, result=result, found=found)
        self._request_overlays()
        if self.view is not None:
            self.look(self.view)

    def _progress(self, share: float, version: int) -> None:
        if version == self._version:
            self.stage.tell(progress=share)

    def _film_frame(self, frame: scrubbing.Frame, version: int) -> None:
        if version != self._version or self.scene is None:
            return
        slot = f"frame{frame.number}"
        number = self.pictures.add(slot, frame.picture)
        height, width = self.scene.shape
        facts = {"time": frame.time, "number": frame.number, "count": scrubbing.FRAMES}
        self.stage.show(slot, number, (0, 0, width, height), facts)

    def _request_unknown(self) -> None:
        """A veil over the pixels to be filled in."""
        assert self.scene is not None
        scene, choices = self.scene, self.choices
        self._guarded(
            self._beside,
            lambda ticket: self._publish(rendering.unknown(scene, choices.unknown(scene)), scene),
            "unknown",
        )

    def _request_overlays(self) -> None:
        """Ellipses, map and histogram for the model that steers, as far as it is known."""
        if self.scene is None:
            return
        scene, wanted = self.scene, set(self.shown_overlays)
        if self.choices.method == "inpaint" and self.result is None:
            return  # the veil of unknown pixels comes first
        try:
            call = self.choices.call(scene)
        except (ValueError, TypeError):
            return
        steering = call.steering(self.result.info if self.result else None)
        if steering is None:
            return
        model, spacing = steering[0], call.options.get("spacing")

        def job(ticket: Ticket) -> None:
            asked = scene, model.presmoothing, spacing
            gradients = self._gradients
            if gradients is None or not gradients.are_of(*asked):
                gradients = overlays.Gradients.of(*asked)
                self.post(self._keep, gradients)
            histogram = overlays.Histogram.of(gradients, getattr(model, "contrast", None))
            self.post(self.stage.tell, histogram=histogram.svg())
            if not wanted:
                return
            ticket.progress(0, 1)
            field = overlays.Field.of(scene, model, spacing)
            ticket.progress(0, 1)
            height, width = scene.shape
            if "ellipses" in wanted:
                self.post(self.stage.tell, ellipses=field.ellipses(), spot=field.spot)
            if "stopped" in wanted:
                self._publish(Shot("stopped", field.stopped(), (0, 0, width, height)), scene)

        self._guarded(self._beside, job, "overlays")

    def _keep(self, gradients: overlays.Gradients) -> None:
        if self.scene is gradients.scene:  # else the tab looks at something else by now, or is closed
            self._gradients = gradients

    # -- giving away ----------------------------------------------------------------------------------

    async def download(self) -> Path | None:
        """A file with the result at full resolution, in the type of the input."""
        if self.scene is None or self.result is None:
            self.stage.tell(error="The result is not there yet. Wait until it is computed.")
            return None
        scene, result = self.scene, self.result
        target = self.folder / recipes.output_name(result.call, scene)
        try:
            like = scene.like
            return await asyncio.to_thread(io.write, target, result.image, like=like, force=True)
        except Exception as error:
            self.stage.tell(error=_sentence(error))
            return None

    @property
    def folder(self) -> Path:
        """For what was uploaded and what is to be downloaded; it goes when the tab is closed."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="aniso-explorer-"))
        return self._folder

    def close(self) -> None:
        """The tab is closed: end all work and let go of everything."""
        for worker in (self._preview, self._full, self._beside):
            worker.withdraw()
            worker.close(wait=False)
        for timer in (self._rest, self._pause):
            if timer is not None:
                timer.cancel()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self.scene = self.result = self._gradients = None
        self.choices = Choices()
        self.pictures.clear()

    # -- between threads ------------------------------------------------------------------------------

    def _guarded(self, worker: Worker, job: Callable[[Ticket], None], lane: str = "") -> None:
        """Have a job done; what goes wrong is said on the page."""
        version = self._version

        def guarded(ticket: Ticket) -> None:
            try:
                job(ticket)
            except Stale:
                raise
            except Exception as error:
                self.post(self._failed, _sentence(error), version)

        worker.submit(guarded, lane)

    def _failed(self, sentence: str, version: int) -> None:
        if version == self._version:
            self._complained = True
            self.stage.tell(error=sentence, busy=False)

    def _publish(self, shot: Shot, scene: Scene, **facts: Any) -> None:
        """From a worker: let the page fetch a picture, unless it looks at something else by now."""

        def publish() -> None:
            if self.scene is scene:
                number = self.pictures.add(shot.slot, shot.picture)
                self.stage.show(shot.slot, number, shot.rectangle, {**shot.facts, **facts})

        self.post(publish)

    def compute_beside(self, job: Callable[[Ticket], None], lane: str) -> None:
        """Have something computed that is not about the picture."""
        self._guarded(self._beside, job, lane)

    def post(self, function: Callable[..., object], *arguments: Any, **options: Any) -> None:
        """From a worker: have something done in the event loop."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: function(*arguments, **options))


def _looked_at(scene: Scene) -> None:
    """Compute what is needed of a scene, outside the event loop; refuses what is no image."""
    if min(scene.shape) < 2:
        raise ValueError(f"an image of {scene.shape[0]} × {scene.shape[1]} pixels is too small to look at.")
    if scene.image.dtype.kind not in "biuf":
        raise ValueError(f"pixels of type {scene.image.dtype} cannot be shown. Convert them to numbers.")
    _ = scene.measures, scene.grey_range


def _sentence(error: Exception) -> str:
    """The library's errors are meant for people; others get their name in front."""
    text = " ".join(str(error).split())
    expected = (ValueError, TypeError, ImportError, ArithmeticError, MemoryError)
    if isinstance(error, expected) and text:
        return text[0].upper() + text[1:]
    return f"Something went wrong that was not expected ({type(error).__name__}: {text})."
