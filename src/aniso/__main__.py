"""The entry point of the `aniso` command and of `python -m aniso`, with signals and closed output.

The signal handlers are installed before the slow imports, so that an early Ctrl-C is handled as well.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import io
import os
import signal
import sys
import threading
import time
from typing import Any

_SIGPIPE = 128 + 13  # exit code of programs that are ended by SIGPIPE


class _Interrupted(SystemExit):
    """Exit by a signal: cleanup runs, and the exit code says which signal."""


def _interrupt(number: int, frame: object) -> None:
    for each in _handled():
        signal.signal(each, signal.SIG_DFL)  # a second one ends the process immediately
    raise _Interrupted(128 + number)


def _interrupt_again(ignored: Any) -> None:
    """Raise an interrupt once more that Python ignored, because it arrived in a destructor or a callback."""
    if not isinstance(ignored.exc_value, _Interrupted):
        sys.__unraisablehook__(ignored)
        return
    number = signal.Signals(int(str(ignored.exc_value)) - 128)
    main = threading.main_thread().ident

    def send() -> None:
        time.sleep(0.01)
        if hasattr(signal, "pthread_kill"):
            signal.pthread_kill(main or 0, number)  # also wakes a thread that waits
        else:  # on Windows
            _thread.interrupt_main(number)

    signal.signal(number, _interrupt)
    _thread.start_new_thread(send, ())


def _handled() -> list[signal.Signals]:
    """Return the signals that end the process, with SIGHUP unless nohup ignores it."""
    handled = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # not on Windows
        handled.append(signal.SIGHUP)
    return handled


def _leave_daemons(codes: list[Any]) -> None:
    """End the process at once if daemon threads still run.

    Python stops them wherever they are, and a thread that compiles a kernel then aborts the whole process.
    """
    if any(thread.daemon for thread in threading.enumerate()):
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        code = codes[0] if codes else 0
        os._exit(code if isinstance(code, int) else int(code is not None))


def _exit_in(error: BaseException | None) -> SystemExit | None:
    """Return the exit that caused an error.

    Before Python 3.12, an interrupt while a class is created, by an import say, arrives as a `RuntimeError`.
    """
    while error is not None and not isinstance(error, SystemExit):
        error = error.__cause__
    return error


def main() -> None:
    """Run the command."""
    for each in _handled():
        signal.signal(each, _interrupt)
    sys.unraisablehook = _interrupt_again
    codes: list[Any] = []
    atexit.register(_leave_daemons, codes)  # the first to be registered, so the last to run
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # arrows cannot be encoded everywhere
        _run()
    except BaseException as error:
        end = _exit_in(error)
        codes.append(1 if end is None else end.code)
        if isinstance(end, _Interrupted):
            print("aniso: interrupted; no file was left half-written.", file=sys.stderr)
        if end is None or end is error:
            raise
        raise end from None


def _run() -> None:
    from aniso.cli import app
    from aniso.cli.errors import OutputClosed

    try:
        app(prog_name="aniso")
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        _silence()
        sys.exit(_SIGPIPE)  # typer would exit with 1
    except (OutputClosed, OSError) as error:
        cause = error.__cause__ if isinstance(error, OutputClosed) else error
        _silence()
        if isinstance(cause, BrokenPipeError):  # stdout was closed by the reader, as in: aniso info … | head
            sys.exit(_SIGPIPE)
        if isinstance(cause, FileNotFoundError):  # does not come from a stream
            sys.exit("aniso: the working directory no longer exists. Change to another one.")
        reason = getattr(cause, "strerror", None) or str(cause)
        print(f"aniso: standard output cannot be written: {reason.lower()}.", file=sys.stderr)
        sys.exit(1)


def _silence() -> None:
    """Redirect standard output to nowhere: flushing its buffer at exit would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
