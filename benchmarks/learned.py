"""The learned diffusion of denoise(), compared with BM3D, non-local means, total variation and diffusions.

    python -m benchmarks.learned --folder set12
    python -m benchmarks.learned --colour
    python -m benchmarks.learned --choice

Quality is the mean PSNR of the clipped results over all images, with white Gaussian noise of given level; by
default on five photographs of scikit-image, with `--folder` on all PNG files of a folder. Times are those of
one image of 1024² pixels, interleaved, the best of several rounds; `--levels` without numbers measures only
these. BM3D takes part if it is installed (`pip install bm3d`). Parameters of the others are those that their
authors recommend for a known noise level; `denoise, automatic` estimates the level and compares methods.

`--choice` measures how well `method="auto"` chooses between the net and diffusions, with the level given: on
photographs, textures, text, microscopy, lines and smooth images, or on the images of a folder.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import aniso
from aniso.verbs.learned import Method
from benchmarks import timing
from benchmarks.quality_denoise import IMAGES, photograph
from benchmarks.quality_inpaint import psnr
from benchmarks.report import Kind, Report, Target
from benchmarks.timing import Contestant

Image = npt.NDArray[np.float32]
#: (image, noise level, whether the last axis has colours) → image, with grey values from 0 to 255.
Denoiser = Callable[[Image, float, bool], npt.NDArray[Any]]

LEVELS, SIZE, SMALL = (15.0, 25.0, 50.0), 1024, 48
KINDS = (
    *("camera", "chelsea", "rocket", "moon", "coins", "brick", "grass", "gravel", "text", "page"),
    *("cell", "microaneurysms", "immunohistochemistry", "retina", "hubble_deep_field"),
)
LINES = (aniso.samples.rings, aniso.samples.fingerprint, aniso.samples.shapes)
COLOURED = ("astronaut", "coffee", "chelsea")
OURS, DIFFUSIONS, AUTOMATIC, BM3D = "denoise, learned", "denoise, diffusions", "denoise, automatic", "BM3D"


def ours(method: Method) -> Denoiser:
    """Return denoise() with a given noise level, or everything automatic."""
    return lambda image, level, colour: aniso.denoise(
        image,
        noise="auto" if method == "auto" else level,
        method=method,
        channel_axis=-1 if colour else None,
    )


def bm3d(image: Image, level: float, colour: bool) -> npt.NDArray[Any]:
    """Return the result of the package bm3d, in its standard profile."""
    import bm3d as package

    return (package.bm3d_rgb if colour else package.bm3d)(image, level)


def nonlocal_means(image: Image, level: float, colour: bool) -> npt.NDArray[Any]:
    """Return the result of scikit-image's fast mode."""
    from skimage.restoration import denoise_nl_means

    axis = -1 if colour else None
    return denoise_nl_means(image, 7, 9, 0.8 * level, fast_mode=True, sigma=level, channel_axis=axis)


def total_variation(image: Image, level: float, colour: bool) -> npt.NDArray[Any]:
    """Return the result of scikit-image's total variation."""
    from skimage.restoration import denoise_tv_chambolle

    axis = -1 if colour else None
    return 255 * denoise_tv_chambolle(image / 255, 0.6 * level / 255, channel_axis=axis)


def denoisers(found: Report) -> dict[str, Denoiser]:
    """Return those that are installed, by name."""
    all_of_them = {
        OURS: ours("learned"),
        DIFFUSIONS: ours("diffusion"),
        AUTOMATIC: ours("auto"),
        BM3D: bm3d,
        "non-local means": nonlocal_means,
        "total variation": total_variation,
    }
    if importlib.util.find_spec("bm3d") is None:
        del all_of_them[BM3D]
        found.skip(BM3D, "the package bm3d is not installed")
    return all_of_them


def images_of(folder: Path | None, colour: bool) -> list[Image]:
    """Return the images of a folder, or photographs of scikit-image."""
    if folder is None and colour:
        from skimage import data

        return [getattr(data, name)()[:512:2, :512:2].astype(np.float32) for name in COLOURED]
    if folder is None:
        return [photograph(name).astype(np.float32) for name in IMAGES]
    from PIL import Image as Picture

    paths = sorted(folder.glob("*.png"))
    return [np.asarray(Picture.open(path).convert("RGB" if colour else "L"), np.float32) for path in paths]


def measure(images: list[Image], colour: bool, levels: Sequence[float], rounds: int) -> Report:
    """Measure quality at some noise levels, and speed."""
    settings = {"images": len(images), "colour": colour, "levels": list(levels), "rounds": rounds}
    packages = ("aniso", "numpy", "numba", "scikit-image", "bm3d")
    found = Report("learned", settings, timing.environment(packages))
    known = denoisers(found)
    means: dict[tuple[str, float], float] = {}
    for level in levels:
        for name, denoise in known.items():
            random, values = np.random.default_rng(1), []
            for image in images:
                noisy = image + level * random.standard_normal(image.shape, np.float32)
                values.append(psnr(np.clip(denoise(noisy, level, colour), 0, 255), image))
            means[name, level] = float(np.mean(values))
            found.add(f"noise {level:g}, {name}", means[name, level], "dB", _owner(name))
        if BM3D in known:
            gain = means[OURS, level] - means[BM3D, level]
            found.targets.append(Target(f"noise {level:g}: over BM3D", gain, 0.0, unit=" dB"))
    if rounds:
        _time(found, known, colour, rounds)
    return found


def kinds() -> dict[str, Image]:
    """Return grey images of many kinds, of scikit-image, of lines, and smooth ones; and parts of some."""
    from skimage import data

    found: dict[str, Any] = {}
    for name in KINDS:
        image = np.atleast_3d(getattr(data, name)()).mean(axis=2)
        middle = tuple(slice(max(n - 256, 0) // 2, max(n - 256, 0) // 2 + 256) for n in image.shape)
        found[name] = image[middle]
    found |= {maker.__name__: np.asarray(maker(256, noise=0.0).truth) for maker in LINES}
    found |= {"constant": np.full((256, 256), 120.0), "ramp": np.tile(np.arange(256.0), (256, 1))}
    found |= {f"{name}, {SMALL}²": found[name][:SMALL, :SMALL] for name in ("camera", "constant", "ramp")}
    return {name: image.astype(np.float32) for name, image in found.items()}


def measure_choice(images: dict[str, Image], levels: Sequence[float]) -> Report:
    """Measure what the choice between the net and diffusions loses to the better one of both."""
    settings = {"images": ", ".join(images), "levels": list(levels)}
    found = Report("choice between learned and other diffusions", settings, timing.environment(("aniso",)))
    losses = []
    random = {level: np.random.default_rng(1) for level in levels}
    for level, (name, image) in itertools.product(levels, images.items()):
        noisy = image + level * random[level].standard_normal(image.shape, np.float32)
        known = [one(noisy, level, False) for one in (ours("learned"), ours("diffusion"))]
        chosen, plan = aniso.denoise(noisy, noise=level, return_info=True)
        net, other, auto = (psnr(result, image) for result in (*known, chosen))
        losses.append(max(net, other) - auto)
        note = f"{net:.2f} and {other:.2f} dB, took {'the net' if plan.learned else 'diffusions'}"
        found.add(f"{name}, noise {level:g}: loss", losses[-1], "dB", "ours", note)
    found.add("mean loss", float(np.mean(losses)), "dB", "ours")
    found.targets.append(Target("mean loss", float(np.mean(losses)), 0.1, "at most", " dB"))
    return found


def _owner(name: str) -> Kind:
    return "ours" if name in (OURS, DIFFUSIONS, AUTOMATIC) else "theirs"


def _time(found: Report, known: dict[str, Denoiser], colour: bool, rounds: int) -> None:
    """Measure the time for one image, in turn."""
    picture = images_of(None, colour)[0]
    tiles = (-(-SIZE // picture.shape[0]), -(-SIZE // picture.shape[1]), *(1,) * colour)
    large = np.tile(picture, tiles)[:SIZE, :SIZE]
    noisy = large + 25 * np.random.default_rng(0).standard_normal(large.shape, np.float32)

    def contestant(name: str, denoise: Denoiser) -> Contestant:
        slow = name == BM3D
        return Contestant(
            name, lambda: denoise(noisy, 25.0, colour), rounds=2 if slow else None, warm_up=not slow
        )

    times = timing.contest([contestant(name, one) for name, one in known.items()], rounds)
    for name, took in times.items():
        note = f"{1e6 * took.best / SIZE**2:.2f} µs per pixel"
        found.add_timing(f"{SIZE}² pixels, {name}", took, _owner(name), note)
    if BM3D in times:
        found.targets.append(Target("faster than BM3D", times[BM3D].best / times[OURS].best, 30.0))
    limit = 2.5 if colour else 1.0
    per_pixel = 1e6 * times[OURS].best / SIZE**2
    found.targets.append(Target("time per pixel", per_pixel, limit, "at most", " µs"))


def main() -> int:
    """Print the figures; the exit code is 0 if all targets are met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="images, by default photographs of scikit-image")
    parser.add_argument("--colour", action="store_true", help="colour images")
    parser.add_argument(
        "--levels", type=float, nargs="*", default=LEVELS, help="of the noise; none for the times alone"
    )
    parser.add_argument("--rounds", type=int, default=5, help="of the timing; 0 for none")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--choice", action="store_true", help='what method="auto" loses to the better one')
    chosen = parser.parse_args()
    images = images_of(chosen.folder, chosen.colour)
    if chosen.choice:
        named = {f"image {k + 1}": image for k, image in enumerate(images)} if chosen.folder else kinds()
        found = measure_choice(named, chosen.levels)
    else:
        found = measure(images, chosen.colour, chosen.levels, chosen.rounds)
    found.show()
    if chosen.json:
        found.save(chosen.json)
    return 0 if all(target.met for target in found.targets) else 1


if __name__ == "__main__":
    raise SystemExit(main())
