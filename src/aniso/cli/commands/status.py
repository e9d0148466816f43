"""aniso status."""

from __future__ import annotations

from typing import Annotated

import typer

from aniso.cli.options.shared import ReportingOptions, StorageOptions

EXAMPLES = ("aniso status out.zarr", "aniso status s3://bucket/out.zarr --json")


def command(
    files: Annotated[
        list[str],
        typer.Argument(metavar="STORES", help="Outputs of runs, as given to them.", show_default=False),
    ],
    stores: StorageOptions,
    reporting: ReportingOptions,
) -> None:
    """Show what a run to a Zarr store has done, from any machine that can read the store.

    A run is complete, running, or interrupted; one that was killed less than a minute ago may still be called
    running. Fields of a plate are runs of their own: "between fields", none of them is running. Nothing is
    written.
    """
    from aniso.blocks.stores.journal import describe_run
    from aniso.blocks.stores.urls import options_for, place_of
    from aniso.cli.jobs.reporting import Report, columns

    report = Report("status", reporting)
    for word in files:
        with report.attempt(word):
            about = describe_run(place_of(word, options_for("target", stores.storage)))
            if about["state"] == "none":
                raise FileNotFoundError(f"{word} does not exist, and no run has been started for it.")
            report.results.append({"store": word, **about})
            rows: list[tuple[str, str]] = [("state", about["state"])]
            if "field" in about:
                rows.append(("fields", f"{about['fields']} of {about['fields_total']}, now {about['field']}"))
            if "blocks" in about:
                share = 100 * about["blocks"] / max(about["blocks_total"], 1)
                rows[0] = ("state", about["state"] + (f" on {about['host']}" if about["host"] else ""))
                rows += [
                    ("verb", str(about.get("verb", "structure"))),
                    ("blocks", f"{about['blocks']} of {about['blocks_total']} ({share:.0f} %)"),
                    ("pass", f"{about['pass']} of {about.get('passes', 1)}"),
                ]
            report.say(f"{word}\n{columns(rows)}")
    report.finish()
