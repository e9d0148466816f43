"""The entry point of the `aniso` command, and `python -m aniso`: what happens if it is cut off.

Imports are few here, and signals are awaited before all others: those take longer than an impatient finger.
"""

from __future__ import annotations

import io
import os
import signal
import sys

_SIGPIPE = 128 + 13  # as other programs end when nobody listens any more


class _Interrupted(SystemExit):
    """The end by a signal: everything is tidied up on the way, and the exit code says which signal."""


def _interrupt(number: int, frame: object) -> None:
    for each in _awaited():
        signal.signal(each, signal.SIG_DFL)  # a second one ends it at once
    raise _Interrupted(128 + number)


def _awaited() -> list[signal.Signals]:
    """The signals that end the work: also that the terminal was closed, unless nohup says to go on."""
    awaited = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # not on Windows
        awaited.append(signal.SIGHUP)
    return awaited


def main() -> None:
    """Run the command."""
    for each in _awaited():
        signal.signal(each, _interrupt)
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # an arrow must not stop work where there are no arrows
        _run()
    except _Interrupted:
        print("aniso: interrupted; no file was left half-written.", file=sys.stderr)
        raise


def _run() -> None:
    from aniso.cli import app
    from aniso.cli.errors import OutputClosed

    try:
        app(prog_name="aniso")
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        _silence()
        sys.exit(_SIGPIPE)  # help, which typer writes, ends with 1 then
    except (OutputClosed, OSError) as error:
        cause = error.__cause__ if isinstance(error, OutputClosed) else error
        _silence()
        if isinstance(
            cause, BrokenPipeError
        ):  # whoever listened has heard enough, as in: aniso info … | head
            sys.exit(_SIGPIPE)
        if isinstance(cause, FileNotFoundError):  # no stream says that
            sys.exit("aniso: the working folder is not there any more. Change to another one.")
        reason = getattr(cause, "strerror", None) or str(cause)
        print(f"aniso: standard output cannot be written: {reason.lower()}.", file=sys.stderr)
        sys.exit(1)


def _silence() -> None:
    """Nothing more to standard output: what is left in its buffer would fail again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
