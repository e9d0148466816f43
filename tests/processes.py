"""Processes that tests start: however a test ends, they end with it, and their pipes are closed."""

import contextlib
import os
import signal
import subprocess
import time

#: Seconds after which a test gives up. The machine may be busy with other things.
PATIENCE = 300.0


@contextlib.contextmanager
def started(words, **options):
    """A process and its children in a session of their own, killed at the end if they still run.

    A pipe that is not closed would be reported in whatever test runs when it is collected.
    """
    with subprocess.Popen([str(word) for word in words], start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            kill(process)


def kill(process):
    """Kill a process that was `started`, and its children."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def wait_until(condition, process=None):
    """Wait until this is so, at most as long as the process runs."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
