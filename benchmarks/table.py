"""All benchmarks, with their arguments, in the order in which `benchmarks.all` runs them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

README = Path(__file__).with_name("README.md")


@dataclass(frozen=True)
class Benchmark:
    """A command; {results} and {pages} in its arguments are the folders of figures and of pages."""

    name: str
    arguments: str
    quick: str
    measures: str

    def command(self, results: Path, pages: Path, *, quick: bool = False) -> str:
        """Return what follows `python -m`; the paths must not have spaces or special characters."""
        arguments = (self.quick if quick else self.arguments).format(
            results=results.as_posix(), pages=pages.as_posix()
        )
        return f"benchmarks.{self.name} {arguments}".rstrip()


BENCHMARKS = (
    Benchmark(
        "eed",
        "--json {results}/eed.json --picture {results}/eed.png",
        "--quick --json {results}/eed.json --picture {results}/eed.png",
        (
            "ten explicit steps of edge-enhancing diffusion (EED) on 2048² pixels: aniso on one and two "
            "threads, a plain C program with and without `-ffast-math`, eager PyTorch in the six-channel "
            "form of the paper. For comparison, Perona–Malik and similar filters of OpenCV, MedPy, "
            "SimpleITK and DIPlib, and coherence-enhancing diffusion (CED) of DIPlib"
        ),
    ),
    Benchmark(
        "steps",
        "--json {results}/steps.json",
        "--size 256 --volume 32 --repeats 1 --json {results}/steps.json",
        (
            "steps in colour, of CED and of cycles, in images and volumes, as multiples of an explicit "
            "step; `--clock processor` on a busy machine"
        ),
    ),
    Benchmark(
        "scaling",
        "--json {results}/scaling.json --picture {results}/scaling.png",
        "--quick --json {results}/scaling.json --picture {results}/scaling.png",
        (
            "cost per pixel from 64² to 8192², double precision, colour, CED over ρ, inner steps of FED "
            "and FSI, import and first call, peak memory, a profile by stage, and the machine's limits"
        ),
    ),
    Benchmark(
        "volumes",
        "--json {results}/volumes.json --picture {results}/volumes.png",
        "--quick --json {results}/volumes.json --picture {results}/volumes.png",
        (
            "ten explicit steps of EED on 256³ voxels and 2048² pixels, CED, the inner step of a FED "
            "cycle, SimpleITK's scalar filter, eager PyTorch with the same result, and peak memory; "
            "`--size` for other volumes"
        ),
    ),
    Benchmark(
        "verbs",
        "--json {results}/verbs.json",
        "--quick --json {results}/verbs.json",
        (
            "time per pixel and peak memory of `denoise`, `enhance` and `inpaint`, for images up to 4096² "
            "and volumes up to 256³"
        ),
    ),
    Benchmark(
        "matrix",
        "--json {results}/matrix.json --picture {results}/matrix.png",
        "--quick --json {results}/matrix.json --picture {results}/matrix.png",
        "time and memory of the sparse matrix and of the reference engine",
    ),
    Benchmark(
        "command",
        "--json {results}/command.json",
        "--quick --json {results}/command.json",
        "the time of `aniso --help` and of the help of each command, in fresh processes",
    ),
    Benchmark(
        "explorer",
        "--json {results}/explorer.json --picture {results}/explorer.png",
        "--quick --json {results}/explorer.json --picture {results}/explorer.png",
        (
            "the latency of `aniso explore`, measured in Chromium from the event of a slider to the frame "
            "with the new picture; needs `chromium`"
        ),
    ),
    Benchmark(
        "napari",
        "--json {results}/napari.json",
        "--quick --json {results}/napari.json",
        (
            "the latency of previews in napari on a layer of 2048² pixels, from a new value of a slider "
            "to the new pixels of the preview, and how soon a cancelled computation stops; needs `Xvfb` "
            "and the extra `napari`"
        ),
    ),
    Benchmark(
        "paper",
        "--json {results}/paper.json --picture {results}/paper.png",
        "--quick --json {results}/paper.json --picture {results}/paper.png",
        (
            "the experiment of the paper: explicit steps of EED in plain C, in PyTorch as stencils and as "
            "residual blocks in all forms of `aniso.nn`, eager and compiled, and with the cpu engine; "
            "images from 256² to 4096², batches of 1 to 16; also on a CUDA device if available"
        ),
    ),
    Benchmark(
        "reproduce",
        "--output {pages}/reproduction.md --json {results}/reproduction.json",
        "--quick --output {pages}/reproduction.md --json {results}/reproduction.json",
        (
            "whether the claims of the paper hold: for each claim, measurements and a verdict that "
            "follows from them. Writes `docs/reproduction.md`, its pictures and "
            "`results/reproduction.json`, in less than 20 minutes. The claims are in `claims/`, one "
            "module per group. `--quick` takes a minute, `--untimed` omits the timings (both write only "
            "to `--output` and `--json`), `--only` measures some claims; with `--earlier`, the others are "
            "taken from an earlier run, `--rewrite` regenerates the page from the last results. The exit "
            "code is 1 if a verdict is not the expected one. With a CUDA device, the claims about GPUs "
            "are tested as well"
        ),
    ),
    Benchmark(
        "gpu",
        "--compile --markdown --json {results}/gpu_compile.json",
        "--compile --quick",
        (
            "explicit steps of EED on the GPU of this machine: fused kernels, eager PyTorch, "
            "`torch.compile`, the six-channel form of the paper, and cuCIM if it is installed. With "
            "`--compile`, no GPU is needed and nothing is measured: all kernels are compiled for four "
            "GPUs; registers, spills, bytes and operations per pixel, and rooflines are printed; the exit "
            "code is 1 if a kernel spills registers or moves more than it should"
        ),
    ),
    Benchmark(
        "quality",
        "--json {results} --pictures {results} --markdown",
        "denoise --quick --json {results} --pictures {results}",
        (
            "the quality of the high-level functions, in four sections: `denoise` compared with tuned "
            "filters, `enhance` on lines with gaps and noise, `inpaint` on five photographs with five "
            "kinds of damage compared with biharmonic and OpenCV's inpainting (with time and memory), "
            "`upsample` from block means compared with cubic splines. `python -m benchmarks.quality "
            "inpaint` runs one section; needs OpenCV, PyWavelets and scikit-image"
        ),
    ),
    Benchmark(
        "quality_noise",
        "--json {results}/quality_noise.json",
        "white --json {results}/quality_noise.json",
        (
            "`denoise` without parameters on seventeen kinds of noise: photons, blurred noise, speckle, "
            "impulses, JPEG files, a camera with 16 bits, white noise and none; with `--folder`, on the "
            "PNG files of a folder"
        ),
    ),
    Benchmark(
        "quality_volumes",
        "",
        "24",
        "the quality of the high-level functions in volumes: fibres, layers and balls of 64³ voxels, or of a "
        "given size; with `--peer`, `denoise` compared with BM4D",
    ),
    Benchmark(
        "learned",
        "--json {results}/learned.json",
        "--levels 25 --rounds 0 --json {results}/learned.json",
        (
            "the learned diffusion of `denoise`: quality and time compared with BM3D (if the package "
            "`bm3d` is installed), non-local means, total variation and diffusions whose parameters are "
            "chosen; with `--folder`, on the PNG files of a folder, with `--colour` in colour, with "
            '`--levels` and no numbers the times alone; with `--choice`, what `method="auto"` loses to the '
            "better one of net and diffusions on images of many kinds"
        ),
    ),
    Benchmark(
        "noise_estimates",
        "--json {results}/noise_estimates.json",
        "--cases 10 --json {results}/noise_estimates.json",
        (
            "how often `aniso.noise.estimate` finds kind, level and correlation: random combinations of "
            "scenes, models of noise, sizes and damage such as constant borders, holes and saturation; "
            "`--failures` lists the cases that are wrong"
        ),
    ),
    Benchmark(
        "peers",
        "--json {results}/peers.json --picture {results}/peers.png --markdown {pages}/peers.md",
        (
            "laws --quick --json {results}/peers.json --picture {results}/peers.png --markdown "
            "{pages}/peers.md"
        ),
        (
            "aniso compared with OpenCV, SimpleITK, MedPy, DIPlib, G'MIC, scikit-image, BM3D and ITK's LBR "
            "(in a process of Python 3.9): speed on 2048² pixels and 128³ and 256³ voxels, invariants (mean, "
            "range, rotation, integers, determinism, grey units, spacing, …), and quality with the others "
            "tuned with the ground truth. `pip install -r benchmarks/peers-requirements.txt` installs them, "
            "without PyTorch; `python -m benchmarks.peers laws` runs one section, `--from` regenerates "
            "picture and page from earlier results; of several, later ones replace the sections that they "
            "have"
        ),
    ),
    Benchmark(
        "tiled",
        "--json {results}/tiled.json --picture {results}/tiled.png",
        ("--size 64 --rounds 1 --model-size 64 --json {results}/tiled.json --picture {results}/tiled.png"),
        (
            "Zarr volumes on a Dask cluster: one and two workers, memory, and the accuracy of the cost "
            "model for blocks and passes"
        ),
    ),
    Benchmark(
        "object_store",
        "--json {results}/object_store.json",
        "--side 64 --rounds 1 --json {results}/object_store.json",
        (
            "edge-enhancing diffusion of a Zarr volume of 512³ voxels by two workers, on the local disk "
            "and in an object store on this machine: the ratio of the times. Needs `moto[server]` of the "
            "extra `test`"
        ),
    ),
    Benchmark(
        "large_store",
        "--json {results}/large_store.json",
        "--side 128 --json {results}/large_store.json",
        (
            "`denoise` of a Zarr volume of 1024³ voxels by two workers of 1.5 GB: time, memory, and "
            "whether a run that was killed twice gives the same bits. Takes about 40 minutes on two idle "
            "cores and 30 GB of disk space"
        ),
    ),
    Benchmark(
        "compare",
        "--against 6efc289 --benchmark eed --rounds 3",
        "--against 6efc289 --benchmark eed --rounds 1 -- --quick",
        (
            "what got slower than in release 0.1.0, another commit or the last run; see "
            "[below](#regression-check)"
        ),
    ),
)

#: Modules that are commands, but measure nothing on their own.
OTHERS = {
    "all": "all of the above, in this order, and writes a report",
    "fresh": "imports, first calls and memory of a fresh process; used by other benchmarks",
    "redraw": "nothing: it redraws the pictures in `results/` from the JSON files",
}


def commands() -> str:
    """Return the commands as a block of Markdown."""
    lines = [f"python -m {one.command(Path('benchmarks/results'), Path('docs'))}" for one in BENCHMARKS]
    return "\n".join(["```sh", *lines, "```"])


def meanings() -> str:
    """Return a table of what each command measures."""
    rows = {one.name: one.measures for one in BENCHMARKS} | OTHERS
    return "\n".join(
        [
            "| command | measures |",
            "|---|---|",
            *(f"| `benchmarks.{name}` | {text} |" for name, text in rows.items()),
        ]
    )


def filled(text: str) -> str:
    """Return the README with commands and table between their markers up to date."""
    for marker, part in (("commands", commands()), ("meanings", meanings())):
        begin, end = f"<!-- {marker} -->\n", f"\n<!-- /{marker} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"benchmarks/README.md must have the markers of {marker} once.")
        before, rest = text.split(begin)
        text = before + begin + part + end + rest.split(end)[1]
    return text


if __name__ == "__main__":
    README.write_text(filled(README.read_text("utf-8")), "utf-8")
