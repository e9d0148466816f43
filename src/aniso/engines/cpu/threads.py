"""Threads that share out tasks, for kernels that release the interpreter's lock.

Each evolution has a team of its own, which starts when first needed and ends with it: nothing is shared
between callers, nothing survives into a forked child, and no thread is left behind.

An interrupt (Ctrl-C) raises an exception in the main thread between any two of its instructions, also
within ``finally``, ``Thread.start`` or ``Event.wait``. Therefore nothing here depends on a line that may not
be reached:

- A helper announces itself before it looks whether the pass is over, and the caller ends the pass before it
  looks for helpers. Whoever comes late finds nothing to do.
- A helper without work ends by itself, even if nobody asks it to.
- The caller can do all tasks alone. A helper that never starts costs time, not results.
- Tasks hold the arrays that they write to. A helper that outlives an interrupted call writes to memory that
  nobody else uses.
"""

from __future__ import annotations

import _thread
import contextlib
import functools
import itertools
import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from aniso.cancelling import current_check

P = ParamSpec("P")
T = TypeVar("T")

# A helper that has waited this many seconds for work ends. Passes follow each other much faster.
_IDLE = 0.1


def default_threads() -> int:
    """ANISO_NUM_THREADS, or the cores that this process may use."""
    wanted = os.environ.get("ANISO_NUM_THREADS")
    if wanted is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not wanted.isdecimal() or int(wanted) < 1:
        raise ValueError(
            f"ANISO_NUM_THREADS must be a whole number of at least 1, got {wanted!r}. Unset it for all cores."
        )
    return int(wanted)


class ThreadTeam:
    """The calling thread and at most `threads` − 1 helpers."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pass: _Pass | None = None
        self._closed = False
        self._hire_none()

    def _hire_none(self) -> None:
        self._work: queue.SimpleQueue[_Pass | None] = queue.SimpleQueue()
        self._helpers: list[_End] = []
        self._process = os.getpid()  # last: from now on the helpers are those of this process

    def run(self, task: Callable[[int], object], count: int) -> None:
        """Carry out task(0) … task(count − 1), in any order; return when all are done.

        The task must hold its arrays itself: not look them up in an object that may change. If the calling
        thread is `watched`, it may be stopped between tasks.
        """
        helpers = min(self.threads - 1, count - 1)
        if helpers < 1:
            check = current_check()
            for number in range(count):
                check()
                task(number)
            return
        self._pass = current = _Pass(task, count)
        try:
            self._call(current, helpers)
            current.work()
        finally:
            # After an exception, the helpers end with the task they are at.
            current.finish()
        _raise_once(current)

    def close(self) -> None:
        """End the helpers and wait for them."""
        self._closed = True
        if self._pass is not None:
            self._pass.stopped = True
            self._pass = None
        if self._process == os.getpid():
            for _ in self._helpers:
                self._work.put(None)
            _wait_for(self._helpers)

    def _call(self, current: _Pass, helpers: int) -> None:
        """Hand the pass to this number of helpers."""
        if self._process != os.getpid():
            self._hire_none()  # a forked child has no threads but its own
        self._helpers = [helper for helper in self._helpers if not helper.is_set]
        with contextlib.suppress(RuntimeError):  # the system allows no further thread
            while len(self._helpers) < helpers:
                self._helpers.append(_start(self._help))
        for _ in self._helpers:
            self._work.put(current)

    def _help(self) -> None:
        with contextlib.suppress(queue.Empty):
            while not self._closed:
                current = self._work.get(timeout=_IDLE)
                if current is not None:
                    current.help()
                # The task's arrays must not outlive the pass while the thread waits.
                del current


class _Pass:
    """Tasks that are done once each, by whoever comes first."""

    def __init__(self, task: Callable[[int], object], count: int) -> None:
        self._task, self._count = task, count
        self._numbers = itertools.count()
        self._helping: list[_Flag] = []
        self.stopped = False
        self.error: BaseException | None = None

    def work(self) -> None:
        check = current_check()  # of this thread: helpers have none
        # The counter is advanced under the interpreter's lock, so that each number is drawn once.
        while not self.stopped and (number := next(self._numbers)) < self._count:
            check()
            self._task(number)

    def help(self) -> None:
        """Work in another thread."""
        done = _Flag()
        self._helping.append(done)
        try:
            self.work()
        except BaseException as error:  # it is the caller's
            self.error, self.stopped = error, True
        finally:
            done.set()

    def finish(self) -> None:
        """Let nobody begin another task, and wait for those that are being done."""
        self.stopped = True
        _wait_for(self._helping)
        self._task = _no_task  # whoever still holds the pass does not hold the task's arrays


def _no_task(number: int) -> None: ...


def _raise_once(done: _Pass) -> None:
    """Raise the error of a pass, if there is one, and keep no reference to it: its traceback holds arrays."""
    error, done.error = done.error, None
    if error is not None:
        try:
            raise error
        finally:
            del error


class _Flag:
    """What another thread sets once. Waiting for it can be interrupted and repeated."""

    def __init__(self) -> None:
        self.is_set = False
        self._bell = _thread.allocate_lock()
        self._bell.acquire()

    def set(self) -> None:
        self.is_set = True
        self._bell.release()

    def wait(self) -> None:
        # An interrupted wait may have used up the bell: hence the second look.
        while not self.is_set:
            self._bell.acquire(timeout=0.05)


class _End(_Flag):
    """The end of a thread."""

    def __init__(self, thread: threading.Thread) -> None:
        super().__init__()
        self._thread = thread

    def wait(self) -> None:
        super().wait()
        if self._thread.ident is not None:
            self._thread.join()


def _wait_for(flags: Sequence[_Flag]) -> None:
    """Wait for all, also for those that are added meanwhile. An interrupt is raised afterwards."""
    interrupt: BaseException | None = None
    number = 0
    while number < len(flags):
        try:
            flags[number].wait()
            number += 1
        except BaseException as error:
            interrupt = interrupt or error
    if interrupt is not None:
        raise interrupt


def _start(work: Callable[[], None]) -> _End:
    """Start a thread that is a daemon if this one is.

    Thread.start() waits for the thread, and an interrupt there can lock both. So it is called in a thread
    that no interrupt reaches; to start that is a single instruction.
    """

    def body() -> None:
        try:
            work()
        finally:
            end.set()

    def launch() -> None:
        try:
            thread.start()
        except RuntimeError:  # the system allows no further thread
            body()

    thread = threading.Thread(target=body, name="aniso")
    end = _End(thread)
    _thread.start_new_thread(launch, ())
    return end


def uninterrupted(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function come to its end before an interrupt is raised.

    For the compiler: an exception in the midst could leave its locks and tables in any state. The function
    is called in another thread, because interrupts arrive in the main one.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if threading.current_thread() is not threading.main_thread():
            return function(*args, **kwargs)
        results: list[T] = []
        once = _Pass(lambda _: results.append(function(*args, **kwargs)), 1)
        try:
            try:
                end = _start(once.help)
            except RuntimeError:  # the system allows no further thread
                once.work()
            else:
                end.wait()
        finally:
            once.finish()
        _raise_once(once)
        return results[0]

    return call
