"""What a command says: results on standard output, or one JSON text; progress and errors beside it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import shutil
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import typer

from aniso.cli.errors import OutputClosed, sentence
from aniso.cli.options.bundles import Reporting

#: Called as tell(done, total).
Tell = Callable[[float, float], object]


class Report:
    """Collects what happened to each file, and tells it."""

    def __init__(self, command: str, wanted: Reporting) -> None:
        self.command = command
        self.wanted = wanted
        self.results: list[dict[str, Any]] = []
        self.errors: list[dict[str, Any]] = []
        self._notes: dict[str, str] = {}

    @property
    def talks(self) -> bool:
        """Whether people are to read the standard output."""
        return not (self.wanted.quiet or self.wanted.json)

    def say(self, text: str = "") -> None:
        """A line for people."""
        if self.talks:
            _print(text)

    def note(self, kind: str, text: str) -> None:
        """A hint, on standard error; one of a kind is enough for many files."""
        if kind in self._notes:
            return
        self._notes[kind] = text
        if not self.wanted.quiet:
            _print_beside(typer.style(f"note: {text}", fg="yellow"))

    @contextlib.contextmanager
    def attempt(self, name: str) -> Iterator[None]:
        """What fails within is told, and the next file has its turn."""
        try:
            yield
        except (typer.Exit, typer.BadParameter, OutputClosed):
            raise
        except Exception as error:
            if self.wanted.debug:
                traceback.print_exc()
            text = sentence(error)
            if name and name not in text:
                text = f"{name}: {text}"
            self.errors.append({"input": name, "error": text})
            _print_beside(typer.style("aniso: ", fg="red", bold=True) + text)

    @contextlib.contextmanager
    def progress(self, title: str) -> Iterator[Tell]:
        """A bar with the time left, while it lasts; only on a terminal."""
        if self.wanted.quiet or not _is_terminal(sys.stderr):
            yield lambda done, total: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
        # Results go to standard output, which may be a file: the bar must not take them for its own.
        bar = Progress(
            *columns,
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=False,
        )
        with bar:
            task = bar.add_task(title, total=1.0)
            yield lambda done, total: bar.update(task, completed=done / total if total > 0 else 1.0)

    def finish(self, **facts: Any) -> None:
        """The summary; ends with exit code 1 if anything failed."""
        import aniso

        if self.wanted.json:
            summary = {"command": self.command, "version": aniso.__version__, **facts}
            summary |= {"results": self.results, "errors": self.errors, "notes": list(self._notes.values())}
            _print(json.dumps(plain(summary), indent=2))
        elif self.errors and len(self.results) + len(self.errors) > 1 and not self.wanted.quiet:
            failed = ", ".join(entry["input"] for entry in self.errors)
            _print_beside(f"{len(self.results)} done, {len(self.errors)} failed: {failed}")
        if self.errors:
            raise typer.Exit(1)


def _is_terminal(stream: Any) -> bool:
    """Whether people look at it; there may be no stream at all."""
    return stream is not None and stream.isatty()


def _print(text: str) -> None:
    try:
        typer.echo(text)
    except OSError as error:
        raise OutputClosed from error


def _print_beside(text: str) -> None:
    with contextlib.suppress(OSError):  # there is nobody left who could be told
        typer.echo(text, err=True)


def plain(value: Any) -> Any:
    """As JSON knows it: what is no number becomes null, objects their fields.

    Examples
    --------
    >>> from aniso import EdgeEnhancing
    >>> from aniso.cli.jobs.reporting import plain
    >>> plain([EdgeEnhancing(contrast=2), float("nan")])
    [{'name': 'EdgeEnhancing', 'contrast': 2.0, 'sigma': 1.0, 'diffusivity': 'weickert'}, None]
    """
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"name": type(value).__name__, **inner}
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence):
        return [plain(entry) for entry in value]
    if hasattr(value, "item"):  # a NumPy number
        return plain(value.item())
    return str(value)


def figures(infos: Sequence[Any]) -> list[tuple[str, str]]:
    """What a verb chose, in words; over several pages, from the least to the largest."""
    rows = []
    for about in dataclasses.fields(infos[0]):
        words = _spread([getattr(info, about.name) for info in infos])
        unit = "" if words == "none" else about.metadata["unit"]
        rows.append((about.metadata["meaning"], f"{words} {unit}".rstrip()))
    return rows


def _spread(values: list[Any]) -> str:
    words = [worded(value) for value in values]
    if len(set(words)) == 1:
        return words[0]
    if all(isinstance(value, int | float) for value in values):
        return f"{worded(min(values))} to {worded(max(values))}"
    return "differs from page to page"


def worded(value: Any) -> str:
    """A value in words: four digits, models without their module."""
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else "none"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        given = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        inner = ", ".join(f"{name}={worded(entry)}" for name, entry in given if entry is not None)
        return f"{type(value).__name__}({inner})"
    return "none" if value is None else str(value)


def columns(rows: Sequence[tuple[str, str]], indent: str = "  ") -> str:
    """Two columns; on a terminal, the second one is broken where it would be too wide."""
    first = max(len(name) for name, _ in rows) + len(indent) + 2
    width = shutil.get_terminal_size().columns if _is_terminal(sys.stdout) else sys.maxsize
    lines = []
    for name, value in rows:
        parts = textwrap.wrap(value, max(width - first, 20)) or [""]
        lines += [f"{indent + name:<{first}}{parts[0]}", *(" " * first + part for part in parts[1:])]
    return "\n".join(lines)
