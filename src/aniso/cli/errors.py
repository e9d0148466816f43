"""Errors of the command line, and errors of the library in its words."""

from __future__ import annotations

from aniso import checks


class OutputClosed(Exception):
    """Standard output takes no more: it is closed, or full. The cause is the OSError."""


def sentence(error: Exception) -> str:
    """An error in one line, without traceback."""
    text = " ".join(checks.on_command_line(error).split())
    if isinstance(error, MemoryError):
        return "there is not enough memory. Cut the image into parts, or use float32."
    if isinstance(error, OverflowError | ZeroDivisionError | FloatingPointError):
        return "the numbers are too large or too small to be computed with. Give ordinary ones."
    if isinstance(error, ValueError | TypeError | ImportError | ArithmeticError | OSError) and text:
        return text
    return f"unexpected {type(error).__name__}: {text or 'no message'}. Add --debug to see where."
