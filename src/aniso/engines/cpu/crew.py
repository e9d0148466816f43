"""A few threads that share out tasks, for kernels that release the interpreter's lock.

Each evolution has a crew of its own, which starts when first needed and ends with it: nothing is shared
between callers, nothing survives into a forked child, and no thread is left behind.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


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


class Crew:
    """The calling thread and `threads` − 1 others."""

    def __init__(self, threads: int) -> None:
        self._helpers = threads - 1
        self._pool: ThreadPoolExecutor | None = None

    def run(self, task: Callable[[int], object], count: int) -> None:
        """Carry out task(0) … task(count − 1), in any order; returns when all are done."""
        helpers = min(self._helpers, count - 1)
        if helpers < 1:
            for number in range(count):
                task(number)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._helpers, thread_name_prefix="aniso")
        numbers = itertools.count()
        stopped = False

        def work() -> None:
            # The counter is advanced under the interpreter's lock, so that each number is drawn once.
            while not stopped and (number := next(numbers)) < count:
                task(number)

        others = [self._pool.submit(work) for _ in range(helpers)]
        try:
            work()
        finally:
            # After an exception, Ctrl-C included, the others end with the task they are at.
            stopped = True
            started = [other for other in others if not other.cancel()]
        for other in started:
            other.result()

    def close(self) -> None:
        """Wait for the threads to end."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
