"""Stop a computation between any two of its tasks, in the thread that asked for it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

_local = threading.local()


@contextlib.contextmanager
def watched(check: Callable[[], object]) -> Iterator[None]:
    """Call a function between the tasks of computations in this thread; it may raise, to stop them."""
    before = current_check()
    _local.check = check
    try:
        yield
    finally:
        _local.check = before


def current_check() -> Callable[[], object]:
    """Return the function to call between tasks, in the thread of the caller."""
    return getattr(_local, "check", lambda: None)


def check_cancelled() -> None:
    """Stop here if the computation in this thread is to be stopped: for long ones without tasks."""
    current_check()()
