"""From words on the command line to values; what cannot be understood is a usage error (exit code 2)."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import typer


def engine(text: str) -> str:
    """Parse the name of an engine."""
    from aniso.engines import ENGINES

    if text not in ENGINES:
        raise typer.BadParameter(f"{text!r} is not one of {', '.join(map(repr, ENGINES))}.")
    return text


def engine_help() -> str:
    """Return what the engines are."""
    from aniso.engines import default, summaries

    return f"What computes: {summaries()}. Default: {default('numpy')}."


def number(
    low: float = -math.inf, high: float = math.inf, *, open_low: bool = False, auto: bool = False
) -> Callable[[Any], Any]:
    """A parser for finite numbers in a range, or the word "auto", which is as if nothing were said: None.

    Examples
    --------
    >>> from aniso.cli.commands import parsing
    >>> parsing.number(0, 1)("0.25")
    0.25
    >>> parsing.number(0, open_low=True)("0")
    Traceback (most recent call last):
    ...
    typer...BadParameter: 0 does not lie above 0.
    """

    def parse(text: Any) -> Any:
        if auto and text == "auto":
            return None
        try:
            value = float(text)
        except (TypeError, ValueError):
            also = " or 'auto'" if auto else ""
            raise typer.BadParameter(f"{text!r} is not a number{also}.") from None
        if not math.isfinite(value):
            raise typer.BadParameter(f"{text} is not a finite number.")
        if not low <= value <= high or (open_low and value == low):
            raise typer.BadParameter(f"{text} does not lie {span(low, high, open_low)}.")
        return value

    return parse


def memory(text: str) -> str:
    """A size in bytes such as 4GB or 500 MiB, as it was written."""
    size = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*(?:[kmgt]i?)?b?\s*", text, re.IGNORECASE)
    if size is None or float(size[1]) == 0:
        raise typer.BadParameter(f"{text!r} is no size. Give e.g. 4GB or 500MB.")
    return text.strip()


def span(low: float, high: float, open_low: bool = False) -> str:
    """A range in words: "from 0 to 1", "above 0"."""
    if high == math.inf:
        return f"above {low:g}" if open_low else f"at {low:g} or above"
    return f"{'above' if open_low else 'from'} {low:g} {'and up ' if open_low else ''}to {high:g}"


def whole_argument(name: str, low: int, high: int) -> Callable[[Any], int]:
    """Return a parser for a whole number in a range that stands before the files."""

    def parse(text: Any) -> int:
        try:
            value = int(text)
        except ValueError:
            raise typer.BadParameter(
                f"{text!r} is not a whole number. The {name} comes first, then the files."
            ) from None
        if not low <= value <= high:
            raise typer.BadParameter(f"{value} does not lie {span(low, high)}.")
        return value

    return parse


def spacing(text: Any) -> Any:
    """One positive number, several with commas, or "file"."""
    if text == "file" or not isinstance(text, str):
        return text
    values = tuple(number(0, open_low=True)(part) for part in text.split(","))
    return values[0] if len(values) == 1 else values


def axis(text: Any) -> Any:
    """A whole number, or "none"."""
    if str(text).lower() == "none":
        return "none"
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a whole number nor 'none'.") from None


def times(text: Any) -> tuple[float, ...]:
    """Increasing times, separated by commas."""
    if not isinstance(text, str):
        return tuple(text)
    parts = [part.strip() for part in text.strip().rstrip(",").split(",")]
    for part in parts:
        if len(part.split()) > 1:
            raise typer.BadParameter(f"{part!r} is not a number. Put commas between times, such as 1,4,16.")
    values = tuple(number(0)(part) for part in parts)
    for before, after in itertools.pairwise(values):
        if after <= before:
            raise typer.BadParameter(
                f"times must increase, got {after:g} after {before:g}: each image is computed from the one "
                "before."
            )
    return values


def stencil_name(text: str) -> str:
    """The name of a member of the stencil family."""
    from aniso.stencil import DeltaStencil

    if text not in DeltaStencil.names():
        raise typer.BadParameter(
            f"there is no stencil named {text!r}. The names are: {', '.join(DeltaStencil.names())}."
        )
    return text


@contextlib.contextmanager
def usage() -> Iterator[None]:
    """Refusals of the library, within, as usage errors: the options are at fault, not a file."""
    try:
        yield
    except (TypeError, ValueError, ArithmeticError) as error:
        from aniso.cli.errors import sentence

        raise typer.BadParameter(sentence(error)) from error


def lengths(text: Any) -> Any:
    """Spacing without a file."""
    if text == "file":
        raise typer.BadParameter("there is no file here that could tell. Give a number, or Y,X.")
    values = spacing(text)
    if isinstance(values, tuple) and len(values) != 2:
        raise typer.BadParameter(f"{text} has {len(values)} numbers. Give one, or Y,X.")
    return values
