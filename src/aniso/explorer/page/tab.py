"""What all parts of a session share: the state of a tab, its threads, and the way from them to the page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from aniso.explorer.choosing.choices import Call, Choices
from aniso.explorer.choosing.parts import View
from aniso.explorer.choosing.scene import Scene
from aniso.explorer.computing.pace import Pace
from aniso.explorer.computing.workers import Stale, Ticket, Worker
from aniso.explorer.showing.album import Album
from aniso.explorer.showing.rendering import Shot
from aniso.io.picture import FileError

Array = npt.NDArray[Any]


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
    """A computed image or volume, the call that made it, and what the verb said."""

    call: Call
    image: Array
    info: Any
    seconds: float


class Tab:
    """State and threads of one tab. All methods but `publish` and `post` are called in the event loop."""

    def __init__(self, stage: Stage, pace: Pace) -> None:
        self.stage, self.pace = stage, pace
        self.scene: Scene | None = None
        self.choices = Choices()
        self.result: Result | None = None
        self.view: View | None = None
        self.shows_difference = False
        #: Grey values that white stands for in the difference of the whole image, once it was shown.
        self.white: float | None = None
        self.pictures = Album()
        #: Counts changes, so that what was computed for an older one is known.
        self.version = 0
        self.preview_worker = Worker("aniso preview", interrupts=False)
        self.full_worker = Worker("aniso full resolution", interrupts=True)
        self.film_worker = Worker("aniso film", interrupts=True)
        self.side_worker = Worker("aniso overlays", interrupts=True)
        self._complained = False
        self._loop = asyncio.get_running_loop()

    def later(self, seconds: float, function: Callable[..., object], *arguments: Any) -> asyncio.TimerHandle:
        """Have something done in a while."""
        return self._loop.call_later(seconds, function, *arguments)

    def submit(self, worker: Worker, job: Callable[[Ticket], None], lane: str = "") -> None:
        """Have a job done in a thread; what goes wrong is said on the page."""
        version = self.version

        def guarded(ticket: Ticket) -> None:
            try:
                job(ticket)
            except Stale:
                raise
            except Exception as error:
                self.post(self.failed, error, version)

        worker.submit(guarded, lane)

    def compute_beside(self, job: Callable[[Ticket], None], lane: str) -> None:
        """Have something computed that is not about the picture."""
        self.submit(self.side_worker, job, lane)

    def publish(
        self, shot: Shot, scene: Scene, still: Callable[[], bool] = lambda: True, **facts: Any
    ) -> None:
        """From a thread: let the page fetch a picture, unless it looks at something else by now.

        `still` is asked in the event loop whether the picture is still wanted.
        """

        def publish() -> None:
            if still():
                self.place(shot, scene, **facts)

        self.post(publish)

    def place(self, shot: Shot, scene: Scene, **facts: Any) -> None:
        """Let the page fetch a picture, unless it looks at something else by now."""
        if self.scene is scene:
            if shot.slot == "after":
                self.white = shot.facts.get("full")
            number = self.pictures.add(shot.slot, shot.picture)
            self.stage.show(shot.slot, number, shot.rectangle, {**shot.facts, **facts})

    def post(self, function: Callable[..., object], *arguments: Any, **options: Any) -> None:
        """From a thread: have something done in the event loop."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: function(*arguments, **options))

    def failed(self, error: Exception, version: int) -> None:
        """Say what went wrong, unless nobody waits for it any more."""
        if version == self.version:
            self._complained = True
            self.stage.tell(error=sentence(error), busy=False, film=False)

    def succeeded(self) -> None:
        """What was said about a computation no longer holds; about a file it does, until one is read."""
        if self._complained:
            self._complained = False
            self.stage.tell(error=None)

    def withdraw(self) -> None:
        """End all computations but previews, which are quick."""
        for worker in (self.full_worker, self.film_worker, self.side_worker):
            worker.withdraw()

    def release(self) -> None:
        """The tab is closed: end the threads and let go of everything."""
        for worker in (self.preview_worker, self.full_worker, self.film_worker, self.side_worker):
            worker.withdraw()
            worker.close(wait=False)
        self.scene = self.result = None
        self.choices = Choices()
        self.pictures.clear()


def sentence(error: Exception) -> str:
    """The library's errors are meant for people; others get their name in front."""
    text = " ".join(str(error).split())
    expected = (ValueError, TypeError, ImportError, ArithmeticError, MemoryError)
    if isinstance(error, FileError):
        return text  # begins with the name of the file
    if isinstance(error, expected) and text:
        return text[0].upper() + text[1:]
    return f"Something went wrong that was not expected ({type(error).__name__}: {text})."
