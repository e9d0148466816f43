"""The state of a browser tab, its threads, and how they reach the page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from aniso.arrays import Array
from aniso.explorer.choosing.choices import Call, Choices
from aniso.explorer.choosing.scene import Scene, View
from aniso.explorer.computing.previews import Pace
from aniso.explorer.computing.workers import Stale, Ticket, Worker
from aniso.explorer.showing.pictures import Album
from aniso.explorer.showing.rendering import Shot
from aniso.io.picture import FileError


class PageOutput(Protocol):
    """What the page does with messages from its session; always called in the event loop."""

    def show(self, slot: str, number: int, rectangle: tuple[float, ...], facts: dict[str, Any]) -> None:
        """Fetch a new picture, under this number."""

    def drop(self, *slots: str) -> None:
        """Remove outdated pictures."""

    def tell(self, **news: Any) -> None:
        """Show messages: error, busy, progress, result."""


@dataclass(frozen=True, eq=False)
class Result:
    """A computed image or volume, the call that computed it, and what the verb chose."""

    call: Call
    image: Array
    info: Any
    seconds: float


class Tab:
    """State and threads of one tab. All methods but `publish` and `post` are called in the event loop."""

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
        self.full_worker = Worker("aniso full resolution", interrupts=True)
        self.film_worker = Worker("aniso film", interrupts=True)
        self.side_worker = Worker("aniso overlays", interrupts=True)
        self._shows_error = False
        self.loop = asyncio.get_running_loop()

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

    def withdraw(self) -> None:
        """Stop all computations except previews, which are fast."""
        for worker in (self.full_worker, self.film_worker, self.side_worker):
            worker.withdraw()

    def release(self) -> None:
        """End the threads and free all memory."""
        for worker in (self.preview_worker, self.full_worker, self.film_worker, self.side_worker):
            worker.withdraw()
            worker.close(wait=False)
        self.scene = self.result = None
        self.choices = Choices()
        self.pictures.clear()


def describe_error(error: Exception) -> str:
    """Return the message of an error; unexpected errors get their class name in front."""
    text = " ".join(str(error).split())
    expected = (ValueError, TypeError, ImportError, ArithmeticError, MemoryError)
    if isinstance(error, FileError):
        return text  # begins with the name of the file
    if isinstance(error, expected) and text:
        return text[0].upper() + text[1:]
    return f"Unexpected error ({type(error).__name__}: {text})."
