"""
Train a diffusion net to remove noise
=====================================

A net of eight stages with 440 parameters learns from photographs that come with scikit-image, and is compared
on others, which it has not seen, with edge-enhancing diffusion, total variation and non-local means, each
with the one set of parameters that is best on average on these very images. It makes the weights of
``aniso.nn.pretrained("denoise-20")``::

    python examples/train_steered_net.py --write --json denoiser.json --picture denoiser.png
    python examples/train_steered_net.py --pretrained      # compare only, with the weights that are there
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from skimage import data
from skimage.color import rgb2gray
from skimage.restoration import denoise_nl_means, denoise_tv_chambolle

import aniso
from aniso.nn import presets

NOISE = 20.0
NET: dict[str, Any] = {"stages": 8, "steps": 2, "kernels": 1, "contrast": NOISE}
TESTED = ("camera", "coins", "astronaut", "brick", "coffee")
#: What is learned from: name, every how manieth pixel is taken, and how often.
LEARNED = {
    "chelsea": ((1, 2), 2.0),
    "rocket": ((1, 2), 2.0),
    "motorcycle": ((1, 2), 3.0),
    "grass": ((2,), 1.0),
    "gravel": ((2,), 1.0),
    "immunohistochemistry": ((2,), 1.0),
    "cell": ((2,), 0.5),
    "clock": ((1,), 0.5),
    "hubble_deep_field": ((2,), 0.5),
    "moon": ((2,), 0.5),
    "page": ((1,), 0.5),
    "retina": ((4,), 0.5),
    "text": ((1,), 0.5),
}
WEIGHTS = Path(presets.__file__).parent / "trained" / "denoise-20.json"
Image = np.ndarray[Any, Any]


def grey(name: str) -> Image:
    """A photograph from the wheel of scikit-image, in grey values 0 to 255."""
    image = data.stereo_motorcycle()[0] if name == "motorcycle" else getattr(data, name)()
    return 255 * rgb2gray(image) if image.ndim == 3 else image.astype(float)


def tested_images() -> list[Image]:
    """Every second pixel of the first 512²."""
    return [grey(name)[:512:2, :512:2] for name in TESTED]


def with_noise(images: list[Image], seed: int) -> list[Image]:
    """The images under Gaussian noise."""
    random = np.random.default_rng(seed)
    return [image + random.normal(0, NOISE, image.shape) for image in images]


def psnr(image: Image, truth: Image) -> float:
    """Peak signal-to-noise ratio in decibels."""
    return 10 * math.log10(255**2 / np.mean((image - truth) ** 2))


# Training ---------------------------------------------------------------------------------------------------


def batches(size: int, side: int, seed: int, held_out: bool) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Patches, turned and mirrored, clean and with noise; with `held_out` none from the right quarter."""
    random = np.random.default_rng(seed)
    pictures = []
    for name, (strides, _) in LEARNED.items():
        image = grey(name)
        image = image[:, : image.shape[1] * 3 // 4] if held_out else image
        pictures.append(
            [image[y::n, x::n] for n in strides for y, x in itertools.product(range(n), repeat=2)]
        )
    shares = np.array([share for _, share in LEARNED.values()])
    while True:
        patches = []
        for number in random.choice(len(pictures), size, p=shares / shares.sum()):
            picture = pictures[number][random.integers(len(pictures[number]))]
            y, x = (random.integers(length - side + 1) for length in picture.shape)
            patch = np.rot90(picture[y : y + side, x : x + side], int(random.integers(4)))
            patches.append(patch.T if random.integers(2) else patch)
        clean = np.stack(patches)[:, None]
        noisy = clean + random.normal(0, NOISE, clean.shape)
        yield torch.from_numpy(clean).float(), torch.from_numpy(noisy).float()


def loss_of(net: torch.nn.Module, clean: torch.Tensor, noisy: torch.Tensor) -> torch.Tensor:
    """Mean logarithm of the squared error of a patch: like PSNR, it counts smooth and rich patches alike."""
    # The 4 keeps patches without any structure from leading.
    return (((net(noisy) - clean) ** 2).mean(dim=(1, 2, 3)) + 4).log().mean()


def trained(
    iterations: int,
    *,
    batch: int = 8,
    side: int = 64,
    rate: float = 0.04,
    seed: int = 0,
    held_out: bool = False,
) -> tuple[torch.nn.Module, list[float]]:
    """The net after training, and the losses on the way."""
    torch.manual_seed(seed)
    net = aniso.nn.SteeredDiffusionNet(**NET)
    optimiser = torch.optim.Adam(net.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=iterations, pct_start=0.1)
    losses: list[float] = []
    started = time.process_time()
    for clean, noisy in itertools.islice(batches(batch, side, seed, held_out), iterations):
        loss = loss_of(net, clean, noisy)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
        if len(losses) % 100 == 0:
            seconds = time.process_time() - started
            print(f"{len(losses):5d}  loss {np.mean(losses[-100:]):.4f}  {seconds:.0f} s of CPU", flush=True)
    return net.eval(), losses


def held_out_quality(net: torch.nn.Module) -> float:
    """Mean PSNR on the right quarters, used to choose architectures; the test images are not used."""
    truths = []
    for name, (strides, _) in LEARNED.items():
        image = grey(name)
        truths.append(image[:, image.shape[1] * 3 // 4 :][:: strides[-1], :: strides[-1]])
    return mean_psnr([applied(net, image) for image in with_noise(truths, seed=99)], truths)


def applied(net: torch.nn.Module, image: Image) -> Image:
    """The net on one grey image."""
    with torch.inference_mode():
        return net(torch.from_numpy(image).float()[None, None])[0, 0].numpy()


# Comparison -------------------------------------------------------------------------------------------------


def best_on_average(
    run: Callable[..., Image], grid: dict[str, list[Any]], truths: list[Image], noisy: list[Image]
) -> dict[str, Any]:
    """The parameters of the grid with the highest mean PSNR."""
    sets = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    return max(sets, key=lambda choice: mean_psnr([run(image, **choice) for image in noisy], truths))


def mean_psnr(images: list[Image], truths: list[Image]) -> float:
    """Mean PSNR in decibels."""
    return float(np.mean([psnr(image, truth) for image, truth in zip(images, truths, strict=True)]))


def edge_enhancing(image: Image, contrast: float, sigma: float, diffusivity: str, time: float) -> Image:
    """Edge-enhancing diffusion by the cpu engine."""
    return aniso.diffuse(image, aniso.EdgeEnhancing(contrast, sigma, diffusivity), time, engine="cpu")


def best_edge_enhancing(truths: list[Image], noisy: list[Image]) -> dict[str, Any]:
    """The best set of parameters on average."""
    contrasts = {
        "weickert": (10, 12, 14, 16, 18, 20, 23, 26),
        "charbonnier": (3, 4, 5, 6, 7, 8, 10),
        "perona-malik": (6, 8, 10, 12, 14, 16, 18),
        "exponential": (8, 10, 12, 14, 16, 18, 20),
    }
    times = [0.25 * n for n in range(2, 17)]
    found = []
    for diffusivity, candidates in contrasts.items():
        for contrast, sigma in itertools.product(candidates, (0.0, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7)):
            model = aniso.EdgeEnhancing(contrast, sigma, diffusivity)
            spaces = [aniso.scale_space(image, model, times, engine="cpu") for image in noisy]
            for moment in zip(*spaces, strict=True):
                choice = {**vars(model), "time": moment[0][0]}
                found.append((mean_psnr([image for _, image in moment], truths), choice))
    # A scale space makes smaller steps to stop at every time: the best ones are tried in one go.
    best = sorted(found, key=lambda pair: pair[0])[-50:]
    return max(
        (choice for _, choice in best),
        key=lambda choice: mean_psnr([edge_enhancing(image, **choice) for image in noisy], truths),
    )


def total_variation(image: Image, weight: float) -> Image:
    """Chambolle's algorithm, run to the end."""
    return denoise_tv_chambolle(image, weight=weight, eps=1e-5, max_num_iter=500)


def non_local_means(image: Image, patch_size: int, patch_distance: int, strength: float) -> Image:
    """Non-local means that know the noise; the strength is in units of it."""
    return denoise_nl_means(
        image,
        patch_size=patch_size,
        patch_distance=patch_distance,
        h=strength * NOISE,
        sigma=NOISE,
        fast_mode=False,
    )


def comparison(net: torch.nn.Module, seed: int) -> dict[str, Any]:
    """PSNR per image of all methods, with their parameters."""
    truths = tested_images()
    noisy = with_noise(truths, seed)
    chosen = {
        "EED": best_edge_enhancing(truths, noisy),
        "TV": best_on_average(
            total_variation, {"weight": [8, 9, 10, 11, 12, 13, 14, 16, 18, 20]}, truths, noisy
        ),
        "NLM": best_on_average(
            non_local_means,
            {"patch_size": [5, 7, 9], "patch_distance": [7], "strength": [0.7, 0.8, 0.9, 1.0]},
            truths,
            noisy,
        ),
    }
    methods: dict[str, Callable[[Image], Image]] = {
        "noisy": lambda image: image,
        "EED": lambda image: edge_enhancing(image, **chosen["EED"]),
        "TV": lambda image: total_variation(image, **chosen["TV"]),
        "NLM": lambda image: non_local_means(image, **chosen["NLM"]),
        "net": lambda image: applied(net, image),
    }
    figures = {
        method: {
            name: round(psnr(run(image), truth), 3)
            for name, image, truth in zip(TESTED, noisy, truths, strict=True)
        }
        for method, run in methods.items()
    }
    return {"noise": NOISE, "seed": seed, "parameters": chosen, "psnr": figures}


def show(found: dict[str, Any]) -> None:
    """A table, and the parameters."""
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=f"PSNR in dB, noise σ = {found['noise']:g}, seed {found['seed']}", title_justify="left"
    )
    for column in ("", *TESTED, "mean"):
        table.add_column(column, justify="right" if column else "left")
    for method, figures in found["psnr"].items():
        mean = float(np.mean(list(figures.values())))
        table.add_row(method, *(f"{figures[name]:.2f}" for name in TESTED), f"[bold]{mean:.2f}[/]")
    console = Console(width=100)
    console.print(table)
    for method, parameters in found["parameters"].items():
        settings = ", ".join(f"{name} {value}" for name, value in parameters.items())
        console.print(f"{method}: {settings}", highlight=False)


def picture(net: torch.nn.Module, found: dict[str, Any], path: Path) -> None:
    """Crops of two images: noisy, by edge-enhancing diffusion, by the net, and as they were."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from PIL import Image as Drawing

    truths = tested_images()
    noisy = with_noise(truths, found["seed"])
    crops = {"camera": (slice(20, 140), slice(50, 170)), "astronaut": (slice(0, 120), slice(60, 180))}
    figure, rows = plt.subplots(2, 4, figsize=(10, 5.5), layout="constrained")
    for axes, (name, crop) in zip(rows, crops.items(), strict=True):
        number = TESTED.index(name)
        image, truth = noisy[number], truths[number]
        panels = {
            "noisy": image,
            "EED": edge_enhancing(image, **found["parameters"]["EED"]),
            "net": applied(net, image),
            "truth": truth,
        }
        for panel, (title, shown) in zip(axes, panels.items(), strict=True):
            panel.imshow(shown[crop], cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            quality = "" if title == "truth" else f", {psnr(shown, truth):.1f} dB"
            panel.set_title(f"{title}{quality}", fontsize=12)
            panel.set_axis_off()
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=80)
    with Drawing.open(drawn) as full:
        full.convert("L").save(path, optimize=True)  # all of it is grey


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a diffusion net to remove noise, and compare it.")
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="of the training")
    parser.add_argument("--noise-seed", type=int, default=1, help="of the noise on the tested images")
    parser.add_argument(
        "--threads", type=int, default=1, help="of PyTorch; another number rounds differently"
    )
    parser.add_argument("--pretrained", action="store_true", help="do not train; compare what is there")
    parser.add_argument(
        "--held-out",
        action="store_true",
        help="train without a quarter of each image, and say how well the net does there",
    )
    parser.add_argument("--write", action="store_true", help="write the weights of the preset")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--picture", type=Path, help="where to draw")
    choices = parser.parse_args()
    torch.set_num_threads(choices.threads)

    if choices.pretrained:
        net = aniso.nn.pretrained("denoise-20")
    else:
        net, _ = trained(choices.iterations, seed=choices.seed, held_out=choices.held_out)
        if choices.held_out:
            print(f"held out: {held_out_quality(net):.3f} dB")
            return
    if choices.write:
        about = (
            f"Removes Gaussian noise of standard deviation {NOISE:g} from images with grey values 0 to 255. "
            f"Made by examples/train_steered_net.py --write --iterations {choices.iterations} "
            f"--seed {choices.seed}."
        )
        WEIGHTS.write_text(presets.to_text(net, NET, about), "utf-8")
        net = aniso.nn.pretrained("denoise-20")
    found = comparison(net, choices.noise_seed)
    found["net"] = {"parameters": sum(p.numel() for p in net.parameters()), **NET}
    show(found)
    if choices.json:
        choices.json.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", "utf-8")
    if choices.picture:
        picture(net, found, choices.picture)


if __name__ == "__main__":
    main()
