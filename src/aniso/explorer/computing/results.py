"""From choices to results: a preview at once, full resolution when the slider rests."""

from __future__ import annotations

import asyncio
import math
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from aniso.explorer.choosing.choices import Call
from aniso.explorer.choosing.scene import Scene, View
from aniso.explorer.computing import previews
from aniso.explorer.computing.workers import Ticket
from aniso.explorer.page.tab import Result, Tab
from aniso.explorer.showing import rendering
from aniso.explorer.showing.rendering import Shot

#: Seconds without a change after which the full resolution is computed.
REST = 0.3
# Seconds between two progress messages.
_INTERVAL = 0.15
# Assumed if the system does not say.
_USUAL_MEMORY = 4e9
# Fraction of the available memory that may be used.
_MEMORY_SHARE = 0.8


class Results:
    """Computes the results of a tab.

    `finished` is called when the result at full resolution is ready, `redrawn` when it is drawn again.
    """

    def __init__(self, tab: Tab, *, finished: Callable[[], None], redrawn: Callable[[], None]) -> None:
        self._tab, self._when_finished, self._when_redrawn = tab, finished, redrawn
        self._rest: asyncio.TimerHandle | None = None
        # Version from which on previews are shown.
        self._newest = 0

    def request(self, call: Call, stamp: float | None) -> None:
        """Compute a preview now, and full resolution after a delay."""
        self.stop()
        self._tab.full_worker.withdraw()
        self.preview(call, stamp)
        self._rest = self._tab.loop.call_later(REST, self._request_full, call)

    def stop(self) -> None:
        """Cancel the computation at full resolution if it has not begun."""
        if self._rest is not None:
            self._rest.cancel()

    def give_up(self) -> None:
        """Discard all pending results, because the choices cannot be computed."""
        self.stop()
        self._tab.full_worker.withdraw()
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
                self._when_redrawn()

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
            image, info = call(scene.filtered, self._progress_of(ticket, version))
            result = Result(call, image, info, time.perf_counter() - start)
            if ticket.wanted:
                difference = tab.shows_difference
                shot = rendering.result(scene, image, difference=difference)
                tab.post(self._finish, result, scene, version, difference, shot)

        tab.submit(tab.full_worker, job)

    def _progress_of(self, ticket: Ticket, version: int) -> Callable[[float, float], None]:
        """Return a progress function that sends messages and stops a computation that is not wanted."""
        last = time.perf_counter()

        def progress(done: float, total: float) -> None:
            nonlocal last
            ticket.progress(done, total)
            now = time.perf_counter()
            if now - last > _INTERVAL:
                last = now
                self._tab.post(self._progress, ticket.share, version)

        return progress

    def _progress(self, share: float, version: int) -> None:
        if version == self._tab.version:
            self._tab.stage.tell(progress=share)

    def _finish(
        self, result: Result, scene: Scene, version: int, difference: bool, shot: Shot | None = None
    ) -> None:
        tab = self._tab
        if version != tab.version or tab.scene is None:
            return
        tab.result, self._newest = result, version + 1
        self.stop()
        tab.clear_error()
        tab.stage.tell(busy=False, result=result, found=_estimates(result.info, tab.choices.parameters))
        if tab.scene is not scene or tab.shows_difference != difference:
            self.show()  # another slice of the same volume, or the difference, is shown now
        elif shot is not None:
            tab.place(shot, scene)
        self._when_finished()


def _estimates(info: Any, names: Any) -> dict[str, float]:
    """Return the estimated values."""
    values = {name: getattr(info, name, None) for name in names}
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, float | int) and not isinstance(value, bool) and np.isfinite(value)
    }


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
    voxels = scene.filtered.size * call.factor**3
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
