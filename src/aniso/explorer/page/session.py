"""One tab: its state, the actions of the user, and their consequences."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from aniso import io
from aniso.explorer.choosing import export
from aniso.explorer.choosing.choices import Choices
from aniso.explorer.choosing.scene import Scene, Source, View
from aniso.explorer.choosing.unknown_pixels import paint
from aniso.explorer.computing.previews import Pace
from aniso.explorer.computing.results import Result, Results
from aniso.explorer.computing.workers import Stale, Ticket, Worker
from aniso.explorer.showing.pictures import RINGS, Album
from aniso.explorer.showing.rendering import Shot
from aniso.io.pages import is_volume
from aniso.io.picture import FileError
from aniso.verbs.plan import Plan

_NOT_READY = "The result is not ready yet. Wait until it is computed."


class PageOutput(Protocol):
    """What the page does with messages from its session; always called in the event loop."""

    def show(self, slot: str, number: int, rectangle: tuple[float, ...], facts: dict[str, Any]) -> None:
        """Fetch a new picture, under this number."""

    def drop(self, *slots: str) -> None:
        """Remove outdated pictures."""

    def tell(self, **news: Any) -> None:
        """Show messages: error, busy, progress, result."""


class Session:
    """The state, the threads and the actions of one tab.

    All methods but `publish` and `post` are called in the event loop.
    """

    def __init__(self, stage: PageOutput, pace: Pace) -> None:
        self.stage, self.pace = stage, pace
        self.scene: Scene | None = None
        self.choices = Choices()
        self.result: Result | None = None
        self.view: View | None = None
        self.shows_difference = False
        #: Grey value of white in the difference of the whole image, once it was shown.
        self.white: float | None = None
        self.pictures = Album()
        #: Counts changes, to recognize outdated results.
        self.version = 0
        self.preview_worker = Worker("aniso preview", interrupts=False)
        self.full_worker = Worker(
            "aniso full resolution",
            interrupts=True,
            report=lambda ticket: self.post(self._show_progress, ticket),
        )
        self.film_worker = Worker("aniso film", interrupts=True)
        self.side_worker = Worker("aniso overlays", interrupts=True)
        self._shows_error = False
        self.loop = asyncio.get_running_loop()
        self.key = secrets.token_urlsafe(18)
        self._results = Results(self)
        self.film, self.show_overlay = self._results.film, self._results.show_overlay
        self._opened = 0
        self._folder: Path | None = None

    # -- image and view ------------------------------------------------------------------------------

    async def open(self, load: Callable[[], Source]) -> bool:
        """Open an image; return whether that succeeded. If not, nothing changes."""

        def scene() -> Scene:
            source = load()
            index = source.picture.shape[0] // 2 if source.is_volume else 0
            return Scene(source, 0, index, is_volume(source.picture, None))

        return await self._change_scene(scene)

    async def open_first(self, load: Callable[[], Source]) -> None:
        """Open an image, unless the user was faster and has opened another one."""
        if self._opened == 0:
            await self.open(load)

    async def slice(self, axis: int | None = None, index: int | None = None) -> None:
        """Show another slice of the volume, by default along the same axis, or the middle one along another.

        A computation for the whole volume continues.
        """
        old = self.scene
        if old is None or not old.source.is_volume:
            return
        axis = old.axis if axis is None else min(max(axis, 0), 2)
        count = old.source.picture.shape[axis]
        index = count // 2 if index is None else min(max(index, 0), count - 1)
        if (axis, index) != (old.axis, old.index):
            scene = replace(old, axis=axis, index=index)
            await self._change_scene(lambda: scene, keep_view=scene.shape == old.shape)

    async def filter_whole(self, whole: bool) -> None:
        """Filter the whole volume, or this slice only."""
        if self.scene is not None and self.scene.source.is_volume and self.scene.whole != whole:
            scene = replace(self.scene, whole=whole)
            await self._change_scene(lambda: scene, keep_view=True)

    async def _change_scene(self, make: Callable[[], Scene], *, keep_view: bool = False) -> bool:
        self._opened += 1
        turn = self._opened
        try:
            scene = await asyncio.to_thread(lambda: _prepare(make()))
        except Exception as error:
            self.stage.tell(error=describe_error(error))
            return False
        if turn == self._opened:  # else something else was opened in the meantime
            self._show_scene(scene, keep_view=keep_view)
        return True

    def _show_scene(self, scene: Scene, *, keep_view: bool = False) -> None:
        old, self.scene = self.scene, scene
        still_holds = old is not None and old.source is scene.source and old.whole and scene.whole
        self.pictures.clear(but=RINGS)
        if not keep_view:
            self.view = None
        if not still_holds:
            self.withdraw()
            self.choices = replace(self.choices, drawn=None)
        self.stage.tell(error=None, scene=scene, keep_view=keep_view, film=False)
        self._results.before()
        if not still_holds:
            self.recompute()
            return
        self._draw_again()
        self._results.follow()

    def look(self, view: View) -> None:
        """Show another part; large images need new pictures for it."""
        self.view = view
        self._results.details()

    def show_difference(self, shown: bool) -> None:
        """Show the difference instead of the result, or the result."""
        self.shows_difference = shown
        self._draw_again()

    # -- choices --------------------------------------------------------------------------------------

    def choose(self, choices: Choices, stamp: float | None = None) -> None:
        """Apply choices: a preview at once, full resolution when the slider rests."""
        self.choices = choices
        self.recompute(stamp)

    def change(self, stamp: float | None = None, **choices: Any) -> None:
        """Apply other values of some choices."""
        self.choose(replace(self.choices, **choices), stamp)

    def paint(self, points: list[list[float]], radius: float, *, erase: bool) -> None:
        """Paint a brush stroke on the shown slice."""
        if self.scene is None or not points:
            return
        # In place: threads copy the mask, and one that is copying it now is outdated anyway.
        mask = self.choices.drawn
        if mask is None:
            mask = np.zeros(self.scene.extent, bool)
        paint(self.scene.shown(mask), points, radius, erase=erase)
        self.change(drawn=mask, random_pixels=None)

    def recompute(self, stamp: float | None = None) -> None:
        """Discard the result and compute a new one."""
        self.version += 1
        self.result = None
        self._results.stop()
        if self.scene is None:
            return
        try:
            call = self.choices.call(self.scene)
        except (ValueError, TypeError) as error:
            self._results.give_up()
            self.fail(error, self.version)
            self._results.follow()
            return
        self.stage.tell(busy=True, film=False)
        self._results.request(call, stamp)
        self._results.follow()

    def _draw_again(self) -> None:
        """Draw the result for a new view, or a preview while it is being computed."""
        if self.result is not None:
            self._results.show()
            return
        with contextlib.suppress(ValueError, TypeError):  # errors were reported when the choice was made
            if self.scene is not None:
                self._results.preview(self.choices.call(self.scene))

    # -- export ---------------------------------------------------------------------------------------

    async def download(self) -> Path | None:
        """Write the result at full resolution to a file, in the data type of the input."""
        if self.scene is None or self.result is None:
            self.stage.tell(error=_NOT_READY)
            return None
        scene, result = self.scene, self.result
        target = self.folder / export.output_name(result.call, scene)
        try:
            like = scene.like
            return await asyncio.to_thread(io.write, target, result.image, like=like, force=True)
        except Exception as error:
            self.stage.tell(error=describe_error(error))
            return None

    def plan(self) -> Plan | None:
        """Return what the verb chose; None, with a message, if there is nothing."""
        if self.result is None:
            self.stage.tell(error=_NOT_READY)
            return None
        if self.result.info is None:
            words = f"{self.result.call.verb.name.capitalize()} chooses nothing, and has no plan."
            self.stage.tell(error=f"{words} Copy the call as Python or as a command.")
        return self.result.info

    @property
    def folder(self) -> Path:
        """Temporary folder for uploads and downloads; removed when the tab is closed."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="aniso-explorer-"))
        return self._folder

    def close(self) -> None:
        """Stop all computations and free all memory."""
        self._results.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        for worker in (self.preview_worker, self.full_worker, self.film_worker, self.side_worker):
            worker.withdraw()
            worker.close(wait=False)
        self.scene = self.result = None
        self.choices = Choices()
        self.pictures.clear()

    # -- threads --------------------------------------------------------------------------------------

    def submit(self, worker: Worker, job: Callable[[Ticket], None], lane: str = "") -> None:
        """Run a job in a thread; errors are shown on the page."""
        version = self.version

        def guarded(ticket: Ticket) -> None:
            try:
                job(ticket)
            except Stale:
                raise
            except Exception as error:
                self.post(self.fail, error, version)

        worker.submit(guarded, lane)

    def publish(
        self, shot: Shot, scene: Scene, still: Callable[[], bool] = lambda: True, **facts: Any
    ) -> None:
        """From a thread: have the page fetch a picture, unless the scene has changed.

        `still` is called in the event loop and returns whether the picture is still wanted.
        """

        def publish() -> None:
            if still():
                self.place(shot, scene, **facts)

        self.post(publish)

    def place(self, shot: Shot, scene: Scene, **facts: Any) -> None:
        """Have the page fetch a picture, unless the scene has changed."""
        if self.scene is scene:
            if shot.slot == "after":
                self.white = shot.facts.get("full")
            number = self.pictures.add(shot.slot, shot.picture)
            self.stage.show(shot.slot, number, shot.rectangle, {**shot.facts, **facts})

    def post(self, function: Callable[..., object], *arguments: Any, **options: Any) -> None:
        """From a thread: call a function in the event loop."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(lambda: function(*arguments, **options))

    def fail(self, error: Exception, version: int) -> None:
        """Show an error, unless it is outdated."""
        if version == self.version:
            self._shows_error = True
            self.stage.tell(error=describe_error(error), busy=False, film=False)

    def clear_error(self) -> None:
        """Remove the error of an earlier computation; errors about files stay until one is read."""
        if self._shows_error:
            self._shows_error = False
            self.stage.tell(error=None)

    def _show_progress(self, ticket: Ticket) -> None:
        if ticket.wanted:
            self.stage.tell(progress=ticket.share)

    def withdraw(self) -> None:
        """Stop all computations except previews, which are fast."""
        for worker in (self.full_worker, self.film_worker, self.side_worker):
            worker.withdraw()


def _prepare(scene: Scene) -> Scene:
    """Check a scene and compute its statistics, outside the event loop."""
    if min(scene.extent) < 2 or min(scene.shape) < 2:
        sides = " × ".join(map(str, scene.extent if scene.whole else scene.shape))
        raise ValueError(f"an image of {sides} pixels is too small. At least 2 × 2 pixels are needed.")
    if scene.image.dtype.kind not in "iuf":
        raise ValueError(
            f"the image must have a real numeric data type, got {scene.image.dtype}. Convert it, e.g. with "
            "image.astype(numpy.float32)."
        )
    _ = scene.statistics.invalid_pixels, scene.statistics.measures, scene.source.grey_range
    return scene


def describe_error(error: Exception) -> str:
    """Return the message of an error; unexpected errors get their class name in front."""
    text = " ".join(str(error).split())
    expected = (ValueError, TypeError, ImportError, ArithmeticError, MemoryError)
    if isinstance(error, FileError):
        return text  # begins with the name of the file
    if isinstance(error, expected) and text:
        return text[0].upper() + text[1:]
    return f"Unexpected error ({type(error).__name__}: {text})."
