"""The loop of all commands that read images and write filtered ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aniso import io
from aniso.commands import pages, places
from aniso.commands.bundles import Computing, Reading, Reporting, Writing
from aniso.commands.pages import Page, Pages
from aniso.commands.places import Places
from aniso.commands.reporting import Report, Tell, columns, figures
from aniso.picture import Picture

#: From a page and a function to be told the progress to the result, and what was chosen for it.
Filter = Callable[[Page, Tell], tuple[Any, Any]]


#: From a file, its number and a function to be told the progress to facts for JSON and lines for people.
Action = Callable[[Path, int, Tell], tuple[dict[str, Any], list[str]]]


def each_file(report: Report, paths: Sequence[Path], action: Action) -> None:
    """Let all files have their turn; one that fails does not stop the others."""
    for number, path in enumerate(paths, 1):
        with report.attempt(str(path)):
            begin = time.perf_counter()
            title = path.name if len(paths) == 1 else f"{path.name} ({number} of {len(paths)})"
            with report.progress(title) as tell:
                facts, lines = action(path, number, tell)
            seconds = time.perf_counter() - begin
            report.results.append({"input": path, **facts, "seconds": round(seconds, 3)})
            for line in lines:
                report.say(line.replace("{seconds}", f"{seconds:.1f} s"))


def filter_files(
    command: str,
    files: Sequence[str],
    usual: str,
    chosen: Callable[[Pages], Filter],
    reading: Reading,
    writing: Writing,
    computing: Computing,
    reporting: Reporting,
    *,
    facts: Mapping[str, Any] | None = None,
    summary: Sequence[tuple[str, str]] = (),
) -> None:
    """Filter all files page by page and write the results.

    `usual` is the pattern of their names by default. `chosen` looks at a picture and gives the function that
    filters its pages. `facts` and `summary` say what is the same for all files.
    """
    report = Report(command, reporting)
    paths = places.inputs(files)
    where = Places.of(writing, len(paths), usual)
    targets = dict(zip(paths, where.places(paths), strict=True))

    def action(path: Path, number: int, tell: Tell) -> tuple[dict[str, Any], list[str]]:
        target = targets[path]
        where.check(path, target, force=writing.force)
        picture = pages.read(path, reading)
        stack = pages.pages(picture, computing)
        hint(report, picture, computing)
        results, infos = _filtered(stack, chosen(stack), tell)
        like = pages.with_dtype(picture, writing.dtype)
        where.make_folder()
        io.write(target, stack.joined(results), like=like, force=writing.force, quality=writing.quality)
        known = [info for info in infos if info is not None]
        lines = [f"{path} → {target}  ({_size(picture)}, {{seconds}})"]
        rows = [*summary, *(figures(known) if known else ())]
        if len(paths) == 1 and rows:
            lines.append(columns(rows))
        return {"output": target, **described(picture), "info": known}, lines

    each_file(report, paths, action)
    report.finish(**(facts or {}))


def with_verb(
    verb: Callable[..., Any], computing: Computing, *arguments: Any, **options: Any
) -> Callable[[Pages], Filter]:
    """A filter that calls a verb; options that are None are left to the verb."""
    given = {name: value for name, value in options.items() if value is not None}

    def filtered(page: Page, tell: Tell) -> tuple[Any, Any]:
        result, info = verb(
            page.image,
            *arguments,
            **given,
            spacing=page.spacing,
            channel_axis=page.channel_axis,
            engine=computing.engine,
            threads=computing.threads,
            progress=tell,
            return_info=True,
        )
        return result, info

    return lambda pages: filtered


def _filtered(stack: Pages, filter_page: Filter, tell: Tell) -> tuple[list[Any], list[Any]]:
    results, infos = [], []
    for page in stack:
        done = page.number - 1

        def part(now: float, total: float, done: int = done) -> None:
            tell(done + (now / total if total > 0 else 1.0), stack.count)

        result, info = filter_page(page, part)
        results.append(result)
        infos.append(info)
    return results, infos


def hint(report: Report, picture: Picture, computing: Computing) -> None:
    """Say what somebody might not expect."""
    source = picture.source.name if picture.source else "the picture"
    if len(picture.shape) == 3:
        report.note(f"{source} has {picture.shape[0]} pages, which are filtered one by one.")
    own = picture.spacing
    if computing.spacing is None and own is not None and len(own) >= 2 and abs(own[-1] / own[-2] - 1) > 0.01:
        unit = f" {picture.unit}" if picture.unit else ""
        report.note(
            f"pixels of {source} measure {own[-2]:g} × {own[-1]:g}{unit} and are taken for squares. Add "
            "--spacing file to use that."
        )


def described(picture: Picture) -> dict[str, Any]:
    """What a file holds, for JSON."""
    return {
        "format": picture.format,
        "shape": list(picture.shape),
        "channels": picture.channels,
        "alpha": picture.alpha is not None,
        "dtype": str(picture.dtype),
    }


def _size(picture: Picture) -> str:
    parts = [" × ".join(map(str, picture.shape[-2:])) + " pixels"]
    if len(picture.shape) == 3:
        parts.append(f"{picture.shape[0]} pages")
    if picture.channels not in (None, 1):
        parts.append(f"{picture.channels} channels")
    parts.append(str(picture.dtype))
    if picture.alpha is not None:
        parts.append("alpha kept")
    return ", ".join(parts)
