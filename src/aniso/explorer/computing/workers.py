"""Threads that compute for the page: the latest request counts, earlier ones are dropped."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from aniso.cancelling import watched

# Seconds between two reports of the progress.
_INTERVAL = 0.1


class Stale(Exception):
    """Raised within a computation whose result is no longer wanted."""


class Ticket:
    """A request: whether it is still wanted, and its progress, at which `report` is called now and then."""

    def __init__(self, report: Callable[[Ticket], object] | None = None) -> None:
        self._withdrawn = threading.Event()
        self._report, self._last = report, time.perf_counter()
        self.share = 0.0

    @property
    def wanted(self) -> bool:
        """Whether the result is still wanted."""
        return not self._withdrawn.is_set()

    def withdraw(self) -> None:
        """Mark the request as no longer wanted."""
        self._withdrawn.set()

    def progress(self, done: float, total: float) -> None:
        """Record the progress; stop a computation that is no longer wanted."""
        self.share = done / total if total > 0 else 1.0
        self.check()
        now = time.perf_counter()
        if self._report is not None and now - self._last > _INTERVAL:
            self._last = now
            self._report(self)

    def check(self) -> None:
        """Stop a computation that is no longer wanted."""
        if not self.wanted:
            raise Stale


class Worker:
    """One thread that runs the latest request of each lane.

    If it `interrupts`, a new request stops the running one. If not, the running one is finished first, so
    that the picture follows a slider that never rests, and only waiting ones are dropped. `report` is called
    in the thread with the ticket of a request that makes progress.
    """

    def __init__(
        self, name: str, *, interrupts: bool, report: Callable[[Ticket], object] | None = None
    ) -> None:
        self._interrupts, self._report = interrupts, report
        self._news = threading.Condition()
        self._waiting: dict[str, tuple[Callable[[Ticket], object], Ticket]] = {}
        self._running: tuple[str, Ticket] | None = None
        self._closed = False
        # Starts with the first request: some pages are requested but never shown.
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def submit(self, job: Callable[[Ticket], object], lane: str = "") -> Ticket:
        """Run a job next, in place of everything that waits in the same lane."""
        ticket = Ticket(self._report)
        with self._news:
            self._drop(lane, running=self._interrupts)
            self._waiting[lane] = job, ticket
            self._news.notify()
            if self._thread.ident is None and not self._closed:
                self._thread.start()
        return ticket

    def withdraw(self) -> None:
        """Drop all waiting jobs, and stop the running one."""
        with self._news:
            for lane in list(self._waiting):
                self._drop(lane, running=False)
            if self._running is not None:
                self._running[1].withdraw()

    def close(self, *, wait: bool = True) -> None:
        """End the thread, after all jobs that were not withdrawn."""
        with self._news:
            self._closed = True
            self._news.notify()
        if wait and self._thread.ident is not None:
            self._thread.join()

    def _drop(self, lane: str, *, running: bool) -> None:
        if lane in self._waiting:
            self._waiting.pop(lane)[1].withdraw()
        if running and self._running is not None and self._running[0] == lane:
            self._running[1].withdraw()

    def _work(self) -> None:
        while True:
            with self._news:
                self._running = None
                while not self._waiting and not self._closed:
                    self._news.wait()
                if not self._waiting:
                    return
                lane = next(iter(self._waiting))
                job, ticket = self._waiting.pop(lane)
                self._running = lane, ticket
            with contextlib.suppress(Stale), watched(ticket.check):
                job(ticket)
            # The job's arrays must not outlive it while the thread waits.
            del job, ticket
