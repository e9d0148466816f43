"""Parse words of the command line; what cannot be parsed is a usage error (exit code 2)."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
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

    return f"Engine: {summaries()}. Default: {default('numpy')}."


def number(
    low: float = -math.inf, high: float = math.inf, *, open_low: bool = False, auto: bool = False
) -> Callable[[Any], Any]:
    """Return a parser for finite numbers in a range, or the word "auto", which gives None."""

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
            raise typer.BadParameter(f"{text} is out of range: must be {span(low, high, open_low)}.")
        return value

    return parse


def noise(text: str) -> Any:
    """Parse a noise level, or a kind of noise such as poisson or rician:12; "auto" gives None."""
    from aniso.noise.given import parse_noise

    with usage():
        found = parse_noise(text)
    return None if found == "auto" else found


def memory(text: str) -> str:
    """Check a size in bytes such as 4GB or 500 MiB, and return it as written."""
    from aniso.blocks.stores.cluster import check_memory

    with usage():
        return str(check_memory(text))


def storage_options(words: Iterable[str]) -> dict[str, str]:
    """Parse options such as region=eu-west-1; their values may be secrets, and are not repeated."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (equals and name):
            raise typer.BadParameter("--storage-option must be KEY=VALUE, e.g. region=eu-west-1.")
        found[name.strip()] = value
    return found


def span(low: float, high: float, open_low: bool = False) -> str:
    """Return a range in words: "from 0 to 1", "above 0"."""
    if high == math.inf:
        return f"above {low:g}" if open_low else f"at least {low:g}"
    return f"above {low:g}, at most {high:g}" if open_low else f"from {low:g} to {high:g}"


def wholes(low: int, high: int) -> Callable[[Any], Any]:
    """Return a parser for an integer in a range, or for several with commas."""

    def parse(text: str) -> Any:
        values = []
        for part in text.split(","):
            try:
                values.append(int(part))
            except ValueError:
                raise typer.BadParameter(f"{part!r} is not an integer. Give e.g. 2, or 3,1,1.") from None
            if not low <= values[-1] <= high:
                raise typer.BadParameter(f"{part} is out of range: must be {span(low, high)}.")
        return values[0] if len(values) == 1 else tuple(values)

    return parse


def spacing(text: Any) -> Any:
    """Parse one positive number, several with commas, or "file"."""
    if text == "file" or not isinstance(text, str):
        return text
    values = tuple(number(0, open_low=True)(part) for part in text.split(","))
    return values[0] if len(values) == 1 else values


def axis(text: Any) -> Any:
    """Parse an integer, or "none"."""
    if str(text).lower() == "none":
        return "none"
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither an integer nor 'none'.") from None


def times(text: str) -> tuple[float, ...]:
    """Parse increasing times, separated by commas."""
    parts = [part.strip() for part in text.strip().rstrip(",").split(",")]
    for part in parts:
        if len(part.split()) > 1:
            raise typer.BadParameter(f"{part!r} is not a number. Separate times by commas, e.g. 1,4,16.")
    values = tuple(number(0)(part) for part in parts)
    for before, after in itertools.pairwise(values):
        if after <= before:
            raise typer.BadParameter(
                f"times must increase, got {after:g} after {before:g}: each image is computed from the "
                "previous one."
            )
    return values


def stencil_name(text: str) -> str:
    """Check the name of a member of the stencil family."""
    from aniso.stencil import DeltaStencil

    if text not in DeltaStencil.names():
        raise typer.BadParameter(
            f"unknown stencil {text!r}. Choose one of: {', '.join(DeltaStencil.names())}."
        )
    return text


@contextlib.contextmanager
def usage() -> Iterator[None]:
    """Turn errors of the library into usage errors: the options are at fault, not a file."""
    try:
        yield
    except (TypeError, ValueError, ArithmeticError) as error:
        from aniso.cli.errors import describe_error

        raise typer.BadParameter(describe_error(error)) from error


def lengths(text: Any) -> Any:
    """Parse a spacing where there is no file."""
    if text == "file":
        raise typer.BadParameter("this command reads no file. Give a number, or Y,X.")
    values = spacing(text)
    if isinstance(values, tuple) and len(values) != 2:
        raise typer.BadParameter(f"{text} has {len(values)} numbers. Give one, or Y,X.")
    return values
