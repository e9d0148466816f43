"""The commands that read images and write filtered ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aniso.cli.jobs import zarrs
from aniso.cli.jobs.reporting import Report, Tell, columns, figures
from aniso.cli.jobs.work import Work, described, each_file, sized
from aniso.cli.jobs.zarrs import InStores
from aniso.cli.options.bundles import Computing
from aniso.io.pages import Page, Pages

#: From a page and a function to be told the progress to the result, and what was chosen for it.
Filter = Callable[[Page, Tell], tuple[Any, Any]]

#: Looks at a picture, may note something, and gives the function that filters its pages.
Chosen = Callable[[Pages, Report], Filter]


def filter_files(
    work: Work,
    usual: str,
    chosen: Chosen,
    *,
    stores: InStores | None = None,
    factor: int = 1,
    unknown: bool = False,
    facts: Mapping[str, Any] | None = None,
    summary: Sequence[tuple[str, str]] = (),
) -> None:
    """Filter all files page by page and write the results; or a Zarr store, as `stores` says.

    `usual` is the pattern of their names by default. Results are `factor` times finer. `unknown`: whether
    pixels may be NaN. `facts` and `summary` say what is the same for all files.
    """
    if zarrs.wanted(work.files):
        zarrs.filter_store(work, usual, stores)
        return
    where = work.places(usual)
    targets = where.places(work.paths)

    def action(path: Path, number: int, tell: Tell) -> tuple[dict[str, Any], list[str]]:
        target = targets[number - 1]
        stack = work.opened(path, where, [target], factor=factor, unknown=unknown)
        results, infos = _filtered(stack, chosen(stack, work.report), tell)
        written = work.write(where, target, stack, results)
        known = [info for info in infos if info is not None]
        lines = [f"{path} → {target}  ({sized(written, stack)}, {{seconds}})"]
        rows = [*summary, *(figures(known) if known else ())]
        if len(work.paths) == 1 and rows:
            lines.append(columns(rows))
        return {"output": target, **described(written), "info": known}, lines

    each_file(work.report, work.paths, action)
    work.report.finish(**(facts or {}))


def call_verb(
    verb: Callable[..., Any], page: Page, computing: Computing, tell: Tell, **options: Any
) -> tuple[Any, Any]:
    """Return what a verb makes of a page, and what it chose."""
    result, info = verb(
        page.image,
        **options,
        spacing=page.spacing,
        channel_axis=page.channel_axis,
        engine=computing.engine,
        threads=computing.threads,
        progress=tell,
        return_info=True,
    )
    return result, info


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
