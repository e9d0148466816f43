"""Errors of the command line, and messages for errors of the library."""

from __future__ import annotations


class OutputClosed(Exception):
    """Standard output was closed by the reader, or is full. The cause is the OSError."""


def describe_error(error: Exception) -> str:
    """Return an error as one line, without traceback."""
    from aniso import checks  # loads NumPy, which help does not need

    text = " ".join(checks.on_command_line(error).split())
    if isinstance(error, MemoryError):
        return "not enough memory. Split the image into parts, or use float32."
    if isinstance(error, OverflowError | ZeroDivisionError | FloatingPointError):
        return "the numbers are too large or too small for floating-point arithmetic. Rescale them."
    if isinstance(error, ValueError | TypeError | ImportError | ArithmeticError | OSError) and text:
        return text
    return f"unexpected {type(error).__name__}: {text or 'no message'}. Add --debug for the traceback."
