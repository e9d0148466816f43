"""What a tab shows: a preview at once, full resolution when the slider rests, overlays, and the film."""

from __future__ import annotations

import asyncio
import math
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aniso.arrays import Array
from aniso.explorer.choosing.choices import Call
from aniso.explorer.choosing.controls import estimated
from aniso.explorer.choosing.scene import Scene, View
from aniso.explorer.computing import previews
from aniso.explorer.computing.workers import Ticket
from aniso.explorer.showing import pictures, rendering
from aniso.explorer.showing.rendering import Shot
from aniso.models import ImageDriven

if TYPE_CHECKING:
    from aniso.explorer.page.session import Session

#: Seconds without a change after which the full resolution is computed.
REST = 0.3
# Delay of overlays in seconds, so that they do not slow down the picture.
_PAUSE = 0.1
# Assumed if the system does not say.
_USUAL_MEMORY = 4e9
# Fraction of the available memory that may be used.
_MEMORY_SHARE = 0.8
_NO_FILM = (
    "There is no scale space, because nothing was diffused. Choose a noise level above 0, or another method."
)


@dataclass(frozen=True, eq=False)
class Result:
    """A computed image or volume, the call that computed it, and what the verb chose."""

    call: Call
    image: Array
    info: Any
    seconds: float


class Results:
    """Computes what a tab shows, in its threads."""

    def __init__(self, tab: Session) -> None:
        self._tab = tab
        self._rest: asyncio.TimerHandle | None = None
        self._pause: asyncio.TimerHandle | None = None
        # Version from which on previews are shown.
        self._newest = 0
        self._overlays: frozenset[str] = frozenset()
        self._film_awaits_result = False

    def stop(self) -> None:
        """Cancel what is pending, other than previews."""
        for timer in (self._rest, self._pause):
            if timer is not None:
                timer.cancel()
        self._tab.full_worker.withdraw()

    # -- the result -----------------------------------------------------------------------------------

    def request(self, call: Call, stamp: float | None) -> None:
        """Compute a preview now, and full resolution after a delay."""
        self.preview(call, stamp)
        self._rest = self._tab.loop.call_later(REST, self._request_full, call)

    def give_up(self) -> None:
        """Discard previews too, because the choices cannot be computed."""
        self._newest = self._tab.version + 1

    def preview(self, call: Call, stamp: float | None = None) -> None:
        """Compute the visible part, as fast as possible."""
        tab, scene, version = self._tab, self._tab.scene, self._tab.version
        assert scene is not None
        view = tab.view or View.of_all(scene.shape)
        quick, owner = previews.rehearse(call, scene), tab.choices.owner
        part = previews.part(scene, view, quick, tab.pace.affordable)

        def still() -> bool:
            # While a slider moves, an older preview is better than none; but not that of another method,
            # and not in place of the result or of a newer preview.
            fresh = tab.result is None and tab.choices.owner == owner and version >= self._newest
            self._newest = version if fresh else self._newest
            return fresh

        def job(ticket: Ticket) -> None:
            trial = previews.coarsen(quick, scene, part)
            start = time.perf_counter()
            try:
                result, info = trial.call(trial.slab.volume, ticket.progress)
            except Exception:
                if scene.whole or not part.covers(scene.shape):
                    return  # full resolution shows whether the part is at fault
                raise
            seconds = time.perf_counter() - start
            tab.pace.record(quick, part.pixels, seconds, part.factor)
            before, after = trial.slab.shown(trial.slab.volume), trial.slab.shown(result)
            difference = tab.shows_difference
            shot = rendering.preview(scene, part, before, after, difference=difference)
            tab.publish(shot, scene, still, stamp=stamp, seconds=seconds, words=trial.words)
            if previews.is_exact(call, part, scene):
                tab.post(self._finish, Result(call, result, info, seconds), scene, version, difference)

        tab.submit(tab.preview_worker, job)

    def show(self) -> None:
        """Draw the result again: another slice of it, or its difference."""
        tab, scene, result = self._tab, self._tab.scene, self._tab.result
        assert scene is not None
        assert result is not None
        difference = tab.shows_difference

        def redraw(shot: Shot) -> None:
            if tab.result is result and tab.shows_difference == difference:
                tab.place(shot, scene)
                self.details()

        def job(ticket: Ticket) -> None:
            tab.post(redraw, rendering.result(scene, result.image, difference=difference))

        tab.submit(tab.preview_worker, job)

    def _request_full(self, call: Call) -> None:
        tab, scene, version = self._tab, self._tab.scene, self._tab.version
        if scene is None or tab.result is not None:
            return

        def job(ticket: Ticket) -> None:
            if scene.whole:
                check_memory(call, scene)
            start = time.perf_counter()
            image, info = call(scene.filtered, ticket.progress)
            result = Result(call, image, info, time.perf_counter() - start)
            if ticket.wanted:
                difference = tab.shows_difference
                shot = rendering.result(scene, image, difference=difference)
                tab.post(self._finish, result, scene, version, difference, shot)

        tab.submit(tab.full_worker, job)

    def _finish(
        self, result: Result, scene: Scene, version: int, difference: bool, shot: Shot | None = None
    ) -> None:
        tab = self._tab
        if version != tab.version or tab.scene is None:
            return
        tab.result, self._newest = result, version + 1
        self.stop()
        tab.clear_error()
        tab.stage.tell(busy=False, result=result, found=estimated(result.info, tab.choices.parameters))
        if tab.scene is not scene or tab.shows_difference != difference:
            self.show()  # another slice of the same volume, or the difference, is shown now
        elif shot is not None:
            tab.place(shot, scene)
        self.overlay()
        self.details()
        if self._film_awaits_result:
            self._film_awaits_result = False
            self.film()

    # -- what is next to the result --------------------------------------------------------------------

    def follow(self) -> None:
        """Update after a change: unknown pixels at once, overlays with a delay; the film is discarded."""
        self._film_awaits_result = False
        self._tab.film_worker.withdraw()
        if self._tab.choices.verb.fills:
            self._mark_unknown()
        else:
            self._tab.stage.drop("unknown")
        if self._pause is not None:
            self._pause.cancel()
        self._pause = self._tab.loop.call_later(_PAUSE, self.overlay)

    def before(self) -> None:
        """Publish the image itself."""
        tab, scene = self._tab, self._tab.scene
        if scene is not None:
            tab.submit(tab.side_worker, lambda ticket: tab.publish(rendering.before(scene), scene), "before")

    def details(self) -> None:
        """Publish the visible part of a large image, pixel by pixel."""
        tab, scene, view = self._tab, self._tab.scene, self._tab.view
        if scene is None or view is None or pictures.reduction(scene.shape) == 1:
            return
        result, difference, white = tab.result, tab.shows_difference, tab.white

        def still() -> bool:
            return tab.result is result and tab.shows_difference == difference

        def job(ticket: Ticket) -> None:
            image = None if result is None else result.image
            for shot in rendering.details(scene, image, view, difference=difference, white=white):
                ticket.progress(0, 1)
                tab.publish(shot, scene, still)

        tab.submit(tab.side_worker, job, "details")

    def show_overlay(self, name: str, shown: bool) -> None:
        """Show or hide an overlay: "ellipses" or "stopped"."""
        self._overlays = self._overlays | {name} if shown else self._overlays - {name}
        if shown:
            self.overlay()

    def overlay(self) -> None:
        """Compute overlays and histogram for the steering model, if it is known."""
        tab, scene, wanted = self._tab, self._tab.scene, self._overlays
        if scene is None or (tab.choices.verb.fills and tab.result is None):
            return  # unknown pixels come first
        try:
            call, steering = self._steering(scene)
        except (ValueError, TypeError):
            return  # the error is shown already
        if steering is None:
            return
        model, spacing = steering[0], call.options.get("spacing")

        def job(ticket: Ticket) -> None:
            gradients = rendering.gradients(scene, model.presmoothing, spacing)
            histogram = rendering.Histogram.of(gradients, getattr(model, "contrast", None))
            tab.post(tab.stage.tell, histogram=histogram.svg())
            if not wanted:
                return
            ticket.progress(0, 1)
            field = rendering.Field.of(scene, model, spacing)
            ticket.progress(0, 1)
            if "ellipses" in wanted:
                tab.post(tab.stage.tell, ellipses=field.ellipses(), spot=field.spot)
            if "stopped" in wanted:
                tab.publish(Shot("stopped", field.stopped(), scene.rectangle), scene)

        tab.submit(tab.side_worker, job, "overlays")

    def film(self) -> None:
        """Compute the scale space, once the steering model is known."""
        tab, scene, version = self._tab, self._tab.scene, self._tab.version
        if scene is None:
            return
        try:
            call, steering = self._steering(scene)
        except (ValueError, TypeError) as error:
            tab.fail(error, version)
            return
        if call.verb.has_scale_space and steering is None and tab.result is None:
            self._film_awaits_result = True
            return
        if steering is None or not call.verb.has_scale_space:
            tab.fail(ValueError(_NO_FILM), version)
            return

        def job(ticket: Ticket) -> None:
            for shot in rendering.film(scene, call, *steering, ticket):
                if version != tab.version:
                    return
                tab.publish(shot, scene, lambda: version == tab.version)

        tab.submit(tab.film_worker, job)

    def _steering(self, scene: Scene) -> tuple[Call, tuple[ImageDriven, float] | None]:
        """Return the current call, and the model and time of its diffusion if they are known."""
        call, result = self._tab.choices.call(scene), self._tab.result
        return call, call.steering(None if result is None else result.info)

    def _mark_unknown(self) -> None:
        """Mark the unknown pixels."""
        tab, scene, choices = self._tab, self._tab.scene, self._tab.choices
        assert scene is not None

        def job(ticket: Ticket) -> None:
            tab.publish(rendering.unknown(scene, choices.unknown_here(scene)), scene)

        tab.submit(tab.side_worker, job, "unknown")


def check_memory(call: Call, scene: Scene) -> None:
    """Reject a volume that would need more memory than is available."""
    need, free = needed_memory(call, scene), available_memory()
    if need > _MEMORY_SHARE * free:
        raise MemoryError(
            f"{call.verb.name} needs about {_words(need)} of memory for the whole volume, but only "
            f"{_words(free)} are free. Choose “This slice”, or open a smaller volume. On the command line, "
            "Zarr stores are filtered block by block."
        )


def needed_memory(call: Call, scene: Scene) -> float:
    """Return the peak memory in bytes."""
    voxels = scene.filtered.size * call.options.get("factor", 1) ** 3
    return float(call.verb.arrays * voxels * np.result_type(scene.filtered, np.float32).itemsize)


def available_memory() -> float:
    """Return the available memory in bytes of the machine, or of its container if that has less."""
    free = re.findall(r"MemAvailable:\s+(\d+)", _read("/proc/meminfo"))
    found = [1024.0 * int(kilobytes) for kilobytes in free]
    most, used = _read("/sys/fs/cgroup/memory.max"), _read("/sys/fs/cgroup/memory.current")
    if most.isdigit() and used:
        found.append(float(most) - float(used))
    if found:
        return min(found)
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names:
        return 0.5 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return _USUAL_MEMORY


def _read(file: str) -> str:
    """Return what Linux says in a file; nothing elsewhere."""
    return Path(file).read_text("utf-8").strip() if Path(file).exists() else ""


def _words(size: float) -> str:
    digits = max(0, 1 - math.floor(math.log10(max(size, 1) / 1e9)))
    return f"{size / 1e9:.{digits}f} GB"
