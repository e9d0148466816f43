"""aniso info, status, explore, demo and bench."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from aniso.cli.options import parsing
from aniso.cli.options.shared import Files, ReadingOptions, ReportingOptions, StorageOptions, option

EXAMPLES = {
    "info": (
        "aniso info photo.jpg",
        "aniso info scan.tif --json",
        "aniso info volume.npy --channel-axis none",
    ),
    "status": ("aniso status out.zarr", "aniso status s3://bucket/out.zarr --json"),
    "explore": (
        "aniso explore",
        "aniso explore photo.jpg",
        "aniso explore volume.nii.gz --port 9000 --no-open",
    ),
    "demo": ("aniso demo", "aniso demo -o first-impression"),
    "bench": ("aniso bench", "aniso bench --size 2048 --threads 1 --json"),
}
_STEPS = 10  # in each task of bench


def info(
    files: Files,
    reading: ReadingOptions,
    reporting: ReportingOptions,
    estimate: bool = option(
        "Estimate noise, contrast and wavelength of the image, the volume, or the middle page of a stack.",
        "--estimate/--no-estimate",
        default=True,
    ),
) -> None:
    """Show the contents of a file and its estimated noise, contrast and wavelength.

    Lengths are in pixels, for volumes in units of the shortest side of a voxel. Noise and contrast are in
    grey values of the file.
    """
    from aniso.cli.files import inputs
    from aniso.cli.jobs.contents import describe_file
    from aniso.cli.jobs.file_job import each_file
    from aniso.cli.jobs.reporting import Report

    report = Report("info", reporting)
    each_file(report, inputs(files), lambda path, number, tell: describe_file(path, reading, estimate))
    report.finish()


def status(
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


def explore(
    image: Annotated[
        Path | None,
        typer.Argument(
            metavar="IMAGE",
            help="Image or volume to open, or a folder with a DICOM series; more can be dropped on the page. "
            "Default: a sample.",
            show_default=False,
        ),
    ] = None,
    port: int | None = option("Port of the server. Default: 8150, or the next free one.", min=1, max=65535),
    no_open: bool = option("Print the address without opening a browser.", default=False),
    host: str = option(
        "Address to listen on. With any other than 127.0.0.1, other machines have access if they know the "
        "token in the address of the page.",
        default="127.0.0.1",
        metavar="HOST",
    ),
) -> None:
    """Explore methods and parameters interactively in the browser.

    Compare before and after, play the scale space, view tensors and stencils, and export the result as
    Python or as a command. No data leaves this machine. Press Ctrl-C to stop.
    """
    from aniso.io import FileError, check_input

    def warn(text: str) -> None:
        typer.echo(f"aniso explore: {text}", err=True)

    try:
        from aniso.explorer import server
    except ImportError as error:
        warn('the explorer needs NiceGUI. Install it with: pip install "aniso[explorer]".')
        raise typer.Exit(1) from error
    try:
        if image is not None and not image.exists():
            raise FileError(f"{image} does not exist. Check the name and the folder.")
        if image is not None:  # here rather than on the page
            check_input(image)
        chosen = server.free_port(host, port)
    except (FileError, OSError) as error:
        warn(str(error))
        raise typer.Exit(1) from error
    if not server.is_loopback(host):
        warn(
            f"anyone who can reach {host} and knows the token in the address below can use this page, and "
            "the computing time and memory of this machine. The connection is not encrypted."
        )

    def print_addresses(addresses: list[str]) -> None:
        here, *elsewhere = addresses
        typer.echo(f"The explorer is at {here}  (press Ctrl-C to stop)")
        for address in elsewhere:
            typer.echo(f"From other machines: {address}")

    try:
        server.run(image, host, chosen, open_page=not no_open, tell=print_addresses)
    except (KeyboardInterrupt, SystemExit):
        typer.echo("The explorer was stopped.")


def demo(
    reporting: ReportingOptions,
    output: Path = option(
        "Folder for the pictures.", "--output", "-o", default=Path("aniso-demo"), metavar="FOLDER"
    ),
) -> None:
    """Denoise, enhance, inpaint and upsample sample images, and show before and after in one picture.

    An existing folder is not changed: a number is added to the name of the new one.
    """
    from aniso.cli.jobs import demonstration
    from aniso.cli.jobs.reporting import Report

    report = Report("demo", reporting)
    with report.attempt(""):
        report.results.append({"output": demonstration.run(output, report.say)})
    report.finish()


def bench(
    reporting: ReportingOptions,
    size: int = option("Image size along each side, in pixels.", default=1024, min=16, max=16384),
    threads: int | None = option("Number of threads. Default: all cores.", min=1),
    engine: str = option(parsing.engine_help, default="cpu", parser=parsing.engine, metavar="NAME"),
    rounds: int = option("Number of rounds; the best is reported.", default=3, min=1),
) -> None:
    """Measure the speed on this machine, in a few seconds.

    Runs ten explicit steps of edge-enhancing and of coherence-enhancing diffusion, and a FED cycle of ten
    steps, on a grey-value image in single precision. The first call, which compiles, is not counted.
    """
    from aniso.cli.jobs.reporting import Report, columns
    from aniso.engines.cpu.threads import default_threads

    report = Report("bench", reporting)
    facts = {"size": size, "engine": engine}
    with report.attempt(""):
        with report.progress("measuring") as tell:
            speeds = _speeds(size, threads, engine, rounds, tell)
        facts["threads"] = used = threads or default_threads()
        report.results += speeds
        pace = "{milliseconds_per_step:8.2f} ms per step{megapixels_per_second:10.0f} Mpixel/s"
        report.say(
            f"{size} × {size} pixels, float32, engine {engine}, {used} thread{'s' if used > 1 else ''}"
        )
        report.say(columns([(speed["work"], pace.format(**speed)) for speed in speeds]))
    report.finish(**facts)


def _speeds(size: int, threads: int | None, engine: Any, rounds: int, tell: Any) -> list[dict[str, Any]]:
    """Return milliseconds per step and megapixels per second of each task."""
    import numpy as np

    from aniso.evolve import diffuse
    from aniso.models import CoherenceEnhancing, EdgeEnhancing
    from aniso.schemes import FED, Explicit
    from aniso.stability import stable_step

    image = np.random.default_rng(0).normal(128, 30, (size, size)).astype(np.float32)
    run = partial(diffuse, image, engine=engine, threads=threads)
    edges, lines = EdgeEnhancing(contrast=5.0), CoherenceEnhancing(contrast=5.0, rho=3.0)
    limit = stable_step(edges)
    explicit = {"time": _STEPS * 0.9 * limit, "scheme": Explicit(0.9 * limit)}
    reach = limit * _STEPS * (_STEPS + 1) / 3  # of a FED cycle of as many steps
    tasks: dict[str, Callable[[], Any]] = {
        "EED, explicit steps": partial(run, edges, **explicit),
        "CED, explicit steps": partial(run, lines, **explicit),
        "EED, one FED cycle": partial(run, edges, reach, scheme=FED(1)),
    }
    best = dict.fromkeys(tasks, float("inf"))
    for task in tasks.values():
        task()  # compiles
    for done in range(rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            best[name] = min(best[name], time.perf_counter() - start)
        tell(done + 1, rounds)
    return [
        {
            "work": name,
            "milliseconds_per_step": 1e3 * seconds / _STEPS,
            "megapixels_per_second": 1e-6 * image.size * _STEPS / seconds,
        }
        for name, seconds in best.items()
    ]
