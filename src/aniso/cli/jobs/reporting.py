"""The output of a command: results or JSON on standard output, progress and errors on standard error."""

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
from typing import TYPE_CHECKING, Any

import typer

from aniso.cli.errors import OutputClosed, describe_error
from aniso.cli.options.shared import ReportingOptions

if TYPE_CHECKING:
    from aniso.blocks.stores.filtering import StoreProgress

#: Called as tell(done, total).
Tell = Callable[[float, float], object]
#: Names and values.
Rows = Sequence[tuple[str, str]]


class Report:
    """Collects the results of all files, and prints them."""

    def __init__(self, command: str, wanted: ReportingOptions) -> None:
        self.command = command
        self.wanted = wanted
        self.results: list[dict[str, Any]] = []
        self.errors: list[dict[str, Any]] = []
        self._notes: dict[str, str] = {}

    def say(self, text: str = "") -> None:
        """Print a line, unless standard output is silent or JSON."""
        if not (self.wanted.quiet or self.wanted.json):
            _print(text)

    def note(self, kind: str, text: str) -> None:
        """Print a note on standard error; one of a kind is enough for many files."""
        if kind in self._notes:
            return
        self._notes[kind] = text
        if not self.wanted.quiet:
            _print_error(typer.style(f"note: {text}", fg="yellow"))

    @contextlib.contextmanager
    def attempt(self, name: str) -> Iterator[None]:
        """Report an error within, so that the next file can be processed."""
        try:
            yield
        except (typer.Exit, typer.BadParameter, OutputClosed):
            raise
        except Exception as error:
            if self.wanted.debug:
                traceback.print_exc()
            text = describe_error(error)
            if name and name not in text:
                text = f"{name}: {text}"
            self.errors.append({"input": name, "error": text})
            _print_error(typer.style("aniso: ", fg="red", bold=True) + text)

    @contextlib.contextmanager
    def progress(self, title: str) -> Iterator[Any]:
        """Show a progress bar on a terminal, from the first call of `tell` on."""
        if self.wanted.quiet or not _is_terminal(sys.stderr):
            yield lambda done, total, detail="": None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        text, detail = TextColumn("{task.description}"), TextColumn("{task.fields[detail]}")
        columns = text, BarColumn(), TaskProgressColumn(), detail, TimeRemainingColumn()
        # Results go to standard output, which may be a file: the bar must not redirect them.
        bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
        task = bar.add_task(title, total=1.0, detail="")

        def tell(done: float, total: float, detail: str = "") -> None:
            bar.start()
            bar.update(task, completed=done / total if total > 0 else 1.0, detail=detail)

        try:
            yield tell
        finally:
            bar.stop()

    @contextlib.contextmanager
    def blocks(self, title: str) -> Iterator[Callable[[StoreProgress], object]]:
        """Show blocks, their rate and the time left on a terminal; with --json, as lines of JSON.

        These lines go to standard error, at most one per second besides the first and the last.
        """
        last = [-math.inf]

        def event(now: StoreProgress) -> None:
            if now.blocks == now.total or now.seconds - last[0] >= 1:
                last[0] = now.seconds
                about = dataclasses.asdict(now) | {"rate": now.rate, "seconds_left": now.seconds_left}
                rounded = {k: round(v, 3) if isinstance(v, float) else v for k, v in about.items()}
                _print_error(json.dumps({"event": "blocks", **rounded}))

        if self.wanted.json and not self.wanted.quiet:
            yield event
            return
        with self.progress(title) as tell:

            def show(now: StoreProgress) -> None:
                rate = f", {now.rate:.3g} per second" if now.rate > 0 else ""
                tell(now.blocks, now.total, f"{now.blocks} of {now.total} blocks{rate}")

            yield show

    def finish(self, **facts: Any) -> None:
        """Print the summary; exit with code 1 if anything failed."""
        import aniso

        if self.wanted.json:
            summary = {"command": self.command, "version": aniso.__version__, **facts}
            summary |= {"results": self.results, "errors": self.errors, "notes": list(self._notes.values())}
            _print(json.dumps(to_json(summary), indent=2))
        elif self.errors and len(self.results) + len(self.errors) > 1 and not self.wanted.quiet:
            failed = ", ".join(entry["input"] for entry in self.errors)
            _print_error(f"{len(self.results)} done, {len(self.errors)} failed: {failed}")
        if self.errors:
            raise typer.Exit(1)


def _is_terminal(stream: Any) -> bool:
    """Whether a stream is a terminal; there may be no stream at all."""
    return stream is not None and stream.isatty()


def _print(text: str) -> None:
    try:
        typer.echo(text)
    except OSError as error:
        raise OutputClosed from error


def _print_error(text: str) -> None:
    with contextlib.suppress(OSError):  # there is no other place to report it
        typer.echo(text, err=True)


def to_json(value: Any) -> Any:
    """Convert a value to JSON types: NaN and infinity become null, objects become their fields."""
    return json.loads(json.dumps(value, default=_simplify), parse_constant=lambda name: None)


def _simplify(value: Any) -> Any:
    """Convert an object to a simpler one."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"name": type(value).__name__, **inner}
    if isinstance(value, Mapping | Sequence):
        return dict(value) if isinstance(value, Mapping) else list(value)
    return value.item() if hasattr(value, "item") else str(value)  # a NumPy number, or e.g. a path


def columns(rows: Rows, indent: str = "  ") -> str:
    """Format two columns; on a terminal, the second one is wrapped to its width."""
    first = max(len(name) for name, _ in rows) + len(indent) + 2
    width = shutil.get_terminal_size().columns if _is_terminal(sys.stdout) else sys.maxsize
    lines = []
    for name, value in rows:
        parts = textwrap.wrap(value, max(width - first, 20)) or [""]
        lines += [f"{indent + name:<{first}}{parts[0]}", *(" " * first + part for part in parts[1:])]
    return "\n".join(lines)
