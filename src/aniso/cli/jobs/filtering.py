"""Commands that read images and write filtered ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aniso.cli.jobs import zarrs
from aniso.cli.jobs.file_job import FileJob, describe_size, each_file, picture_facts
from aniso.cli.jobs.plans import PlanFile
from aniso.cli.jobs.reporting import Report, Tell, columns
from aniso.cli.jobs.zarrs import StoreFilter
from aniso.io.pages import Page, Pages
from aniso.verbs.plan import summary_rows, summary_values

#: Takes a page and a progress function; returns the result, and what was chosen for it.
Filter = Callable[[Page, Tell], tuple[Any, Any]]

#: Takes the pages of a picture and the report; returns the function that filters a page.
Chosen = Callable[[Pages, Report], Filter]


def filter_files(
    job: FileJob,
    usual: str,
    chosen: Chosen,
    *,
    stores: StoreFilter | None = None,
    saved: PlanFile | None = None,
    factors: Callable[[Pages], Sequence[int]] | None = None,
    unknown: bool = False,
    facts: Mapping[str, Any] | None = None,
    summary: Sequence[tuple[str, str]] = (),
) -> None:
    """Filter all files page by page and write the results; or a Zarr store, with `stores`.

    `usual` is the default pattern of their names, and `saved` where the plan is written. Results are finer
    by `factors`. `unknown`: whether pixels may be NaN. `facts` and `summary` are what is the same for all
    files.
    """
    if zarrs.are_stores(job.files):
        zarrs.filter_store(job, usual, stores)
        return
    if saved is not None and len(job.paths) > 1:
        saved.check(len(job.paths))
    where = job.places(usual)
    targets = where.places(job.paths)

    def action(path: Path, number: int, tell: Tell) -> tuple[dict[str, Any], list[str]]:
        target = targets[number - 1]
        stack = job.open(path, where, [target], factors=factors, unknown=unknown)
        if saved is not None:
            saved.check(pages=stack.count)
        results, infos = _filter_pages(stack, chosen(stack, job.report), tell)
        written = job.write(where, target, stack, results)
        if saved is not None:
            saved.write(infos[0])
        known = [info for info in infos if info is not None]
        lines = [f"{path} → {target}  ({describe_size(written, stack)}, {{seconds}})"]
        rows = [*summary, *(summary_rows(known) if known else ())]
        if len(job.paths) == 1 and rows:
            lines.append(columns(rows))
        return {
            "output": target,
            **picture_facts(written),
            "info": [summary_values(info) for info in known],
        }, lines

    each_file(job.report, job.paths, action)
    job.report.finish(**(facts or {}))


def _filter_pages(stack: Pages, filter_page: Filter, tell: Tell) -> tuple[list[Any], list[Any]]:
    results, infos = [], []
    for page in stack:
        done = page.number - 1

        def part(now: float, total: float, done: int = done) -> None:
            tell(done + (now / total if total > 0 else 1.0), stack.count)

        result, info = filter_page(page, part)
        results.append(result)
        infos.append(info)
    return results, infos
