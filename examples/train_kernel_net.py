"""
Train a net of larger kernels to remove noise of any level
===========================================================

Trains a :class:`aniso.nn.KernelDiffusionNet` on a folder of images. A run can be stopped at any time and is
continued by the same command; the result depends only on the images and options::

    python examples/train_kernel_net.py train IMAGES RUN --iterations 60000
    python examples/train_kernel_net.py measure RUN IMAGES --held-out
    python examples/train_kernel_net.py measure RUN OTHER_IMAGES --noise 15 25 50
    python examples/train_kernel_net.py write RUN IMAGES NAME.json

Every twentieth image is held out, to compare options by. ``train`` writes ``RUN/state.pt``, ``RUN/curve.csv``
and ``RUN/curve.png``; ``write`` makes a text file with the weights and beside it a model card, ``NAME.md``.
``measure`` also takes the name of a pretrained net in place of a run.
"""

from __future__ import annotations

import argparse
import copy
import csv
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import aniso
from aniso.nn import presets

#: Every n-th image is held out.
HELD_OUT = 20
#: Iterations between two measurements on images that are held out, and how many of these are used.
MEASURE_EVERY, MEASURED = 500, 5
SUFFIXES = {".png", ".jpg", ".jpeg", ".tif", ".bmp"}
LEVELS = (15.0, 25.0, 50.0)


def grey_images(folder: Path) -> list[np.ndarray[Any, Any]]:
    """The images of a folder in grey values 0 to 255, in the order of their names."""
    paths = sorted(
        path for path in folder.iterdir() if path.suffix.lower() in {".png", ".jpg", ".tif", ".bmp"}
    )
    images = []
    for path in paths:
        with Image.open(path) as image:
            images.append(np.asarray(image.convert("L"), np.float32))
    return images


def batch_of(
    images: list[np.ndarray[Any, Any]], count: int, side: int, seed: int, iteration: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Patches, turned and mirrored, their noise levels and the noisy patches, the same at each call."""
    random = np.random.default_rng((seed, iteration))
    patches = []
    for number in random.integers(len(images), size=count):
        y, x = (random.integers(max(length - side, 0) + 1) for length in images[number].shape)
        patch = np.rot90(images[number][y : y + side, x : x + side], int(random.integers(4)))
        patches.append(patch.T if random.integers(2) else patch)
    clean = np.stack(patches)[:, None].astype(np.float32)
    # Three of four levels lie where denoising is needed most.
    low, high = np.where(random.random((2, count)) < 0.75, [[10.0], [60.0]], [[2.0], [75.0]])
    level = (low * (high / low) ** random.random(count)).astype(np.float32)
    noise = random.standard_normal(clean.shape, np.float32) * level[:, None, None, None]
    return torch.from_numpy(clean), torch.from_numpy(level), torch.from_numpy(clean + noise)


def loss_of(result: torch.Tensor, clean: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
    """Mean logarithm of the squared error: like PSNR, it counts all levels and kinds of patches alike."""
    error = ((result - clean) ** 2).mean(dim=(1, 2, 3))
    # Patches without any structure must not lead; the power is about that of the errors of good methods.
    return (error + 0.2 * level**1.3).log().mean()


def rate_at(iteration: int, iterations: int, rate: float) -> float:
    """Learning rate: it rises quickly, stays, and falls to 0 by a cosine in the last 40 %."""
    remaining = min(1.0, 2.5 * (1 - iteration / iterations))
    return rate * min((iteration + 1) / 200, 0.5 - 0.5 * math.cos(math.pi * remaining))


class Run:
    """A training that can be stopped and continued."""

    def __init__(self, folder: Path, options: dict[str, Any], rate: float, seed: int) -> None:
        self.path, self.rate, self.seed, self.options = folder / "state.pt", rate, seed, options
        torch.manual_seed(seed)
        self.net = aniso.nn.KernelDiffusionNet(**options)
        self.averaged = copy.deepcopy(self.net).eval()
        self.optimiser = torch.optim.Adam(self.net.parameters(), rate, betas=(0.9, 0.99))
        self.iteration, self.losses, self.curve = 0, [], []
        if self.path.exists():
            state = torch.load(self.path, weights_only=True)
            self.net.load_state_dict(state["net"])
            self.averaged.load_state_dict(state["averaged"])
            self.optimiser.load_state_dict(state["optimiser"])
            self.iteration, self.losses, self.curve = state["iteration"], state["losses"], state["curve"]

    def save(self) -> None:
        """Write the state in one go."""
        state = {name: getattr(self, name).state_dict() for name in ("net", "averaged", "optimiser")}
        others = {name: getattr(self, name) for name in ("iteration", "losses", "curve", "options")}
        partial = self.path.with_suffix(".partial")
        torch.save({**state, **others}, partial)
        os.replace(partial, self.path)
        with self.path.with_name("curve.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["iteration", "loss", *(f"noise {level:g}" for level in LEVELS)])
            writer.writerows(self.curve)
        if self.curve:
            draw(self.curve, self.path.with_name("curve.png"))

    def step(self, images: list[np.ndarray[Any, Any]], count: int, side: int, iterations: int) -> None:
        """One iteration."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate_at(self.iteration, iterations, self.rate)
        clean, level, noisy = batch_of(images, count, side, self.seed, self.iteration)
        loss = loss_of(self.net(noisy, level), clean, level)
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimiser.step()
        self.iteration += 1
        self.losses.append(loss.item())
        share = max(0.002, 1 / (1 + self.iteration))
        with torch.no_grad():
            for mean, new in zip(self.averaged.parameters(), self.net.parameters(), strict=True):
                mean.lerp_(new, share)


Denoiser = Callable[[torch.Tensor, float], torch.Tensor]


def qualities(net: Denoiser, images: list[np.ndarray[Any, Any]], level: float, seed: int = 1) -> list[float]:
    """PSNR of the results, clipped to 0…255."""
    random = np.random.default_rng(seed)
    found = []
    for image in images:
        noisy = image + level * random.standard_normal(image.shape, np.float32)
        with torch.inference_mode():
            result = net(torch.from_numpy(noisy)[None, None], level)[0, 0].clamp(0, 255).numpy()
        found.append(10 * math.log10(255**2 / np.mean((result - image) ** 2, dtype=float)))
    return found


def saved_net(run: Path) -> tuple[torch.nn.Module, dict[str, Any]]:
    """The averaged net of a run, and its state."""
    state = torch.load(run / "state.pt", weights_only=True)
    net = aniso.nn.KernelDiffusionNet(**state["options"])
    net.load_state_dict(state["averaged"])
    return net.eval(), state


def denoiser(name: str) -> Denoiser:
    """A run, or a pretrained net; one for a single level sees all noise at this level."""
    net: Any = saved_net(Path(name))[0] if Path(name).is_dir() else aniso.nn.pretrained(name)
    if isinstance(net, aniso.nn.KernelDiffusionNet):
        return net
    unit = net.predictors[0].contrast
    return lambda image, level: net(image * (unit / level)) * (level / unit)


def measure(choices: argparse.Namespace) -> None:
    """Print the mean PSNR at each level."""
    torch.set_num_threads(choices.threads)
    images = grey_images(choices.images)[:: HELD_OUT if choices.held_out else 1]
    net = denoiser(choices.net)
    print(f"{choices.net}: PSNR in dB, mean over {len(images)} images")
    for level in choices.noise:
        print(f"noise {level:g}: {np.mean(qualities(net, images, level)):.3f}", flush=True)


CARD = """# {name}

Removes white Gaussian noise of standard deviation 2 to 75 from images with grey values 0 to 255. The noise
level is an input. Colour channels share their weights.

- Net: `aniso.nn.KernelDiffusionNet`, {parameters} parameters, options {options}.
- Guaranteed for all parameters: the mean is preserved, the Euclidean norm never grows, rotating or mirroring
  the image rotates or mirrors the result. It is not guaranteed that results of similar images are similar.
- Limits: trained for grey photographs with white Gaussian noise. Other noise has to be transformed first.
- Training: {iterations} iterations of `examples/train_kernel_net.py`, on {images} images of the folder
  `{folder}`; {held} others were held out for choosing. The images are not included.
- PSNR on the images that were held out: {figures}.
- Licence: that of aniso.
"""


def write(choices: argparse.Namespace) -> None:
    """Write weights and model card."""
    torch.set_num_threads(choices.threads)
    net, state = saved_net(choices.run)
    images = grey_images(choices.images)
    held = images[::HELD_OUT]
    figures = {level: np.mean(qualities(net, held, level)) for level in LEVELS}
    card = CARD.format(
        name=choices.target.stem,
        parameters=f"{sum(p.numel() for p in net.parameters()):,}",
        options=state["options"],
        iterations=f"{state['iteration']:,}",
        images=len(images) - len(held),
        folder=choices.images.name,
        held=len(held),
        figures=", ".join(f"{value:.2f} dB at noise {level:g}" for level, value in figures.items()),
    )
    about = f"Removes Gaussian noise, see {choices.target.stem}.md."
    choices.target.write_text(presets.to_text(net, state["options"], about), "utf-8")
    choices.target.with_suffix(".md").write_text(card, "utf-8")


def draw(curve: list[list[float]], path: Path) -> None:
    """Draw the quality on images that were held out."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    iterations, _, *columns = np.array(curve).T
    for level, column in zip(LEVELS, columns, strict=True):
        axes.plot(iterations, column, marker=".", label=f"noise {level:g}")
    axes.set(xlabel="iterations", ylabel="PSNR in dB")
    axes.legend()
    figure.savefig(path, dpi=80)
    plt.close(figure)


def train(choices: argparse.Namespace) -> None:
    """Train until the last iteration."""
    torch.set_num_threads(choices.threads)
    images = grey_images(choices.images)
    kept, images = images[::HELD_OUT], [image for n, image in enumerate(images) if n % HELD_OUT]
    choices.run.mkdir(parents=True, exist_ok=True)
    options = {"dilations": choices.dilations, "kernels": choices.kernels, "side": choices.side}
    run = Run(choices.run, options, choices.rate, choices.seed)
    if choices.compile:
        for stage in run.net.stages:
            stage.compile(dynamic=False)
    saved = time.monotonic()
    while run.iteration < choices.iterations:
        run.step(images, choices.batch, choices.patch, choices.iterations)
        if run.iteration % MEASURE_EVERY == 0 or run.iteration == choices.iterations:
            row = [float(np.mean(qualities(run.averaged, kept[:MEASURED], level))) for level in LEVELS]
            run.curve.append([run.iteration, float(np.mean(run.losses[-MEASURE_EVERY:])), *row])
            print(time.strftime("%H:%M"), *(f"{value:.3f}" for value in run.curve[-1]), flush=True)
        if time.monotonic() - saved > choices.save_every or run.iteration == choices.iterations:
            run.save()
            saved = time.monotonic()


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a net of larger kernels to remove noise.")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("train", help="train, or continue")
    command.set_defaults(run_command=train)
    command.add_argument("images", type=Path, help="folder of images")
    command.add_argument("run", type=Path, help="folder to write to")
    command.add_argument("--iterations", type=int, default=60_000)
    command.add_argument("--dilations", type=int, nargs="+", default=[1, 2, 1, 2, 4, 1, 2, 1, 2, 1])
    command.add_argument("--kernels", type=int, default=6)
    command.add_argument("--side", type=int, default=5)
    command.add_argument("--batch", type=int, default=4)
    command.add_argument("--patch", type=int, default=48)
    command.add_argument("--rate", type=float, default=3e-3)
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--save-every", type=float, default=180.0, help="seconds")
    command.add_argument("--compile", action="store_true", help="faster after some minutes, other rounding")
    command = commands.add_parser("measure", help="measure the quality")
    command.set_defaults(run_command=measure)
    command.add_argument("net", help="folder of a run, or name of a pretrained net")
    command.add_argument("images", type=Path, help="folder of images")
    command.add_argument("--held-out", action="store_true", help="only the images that were held out")
    command.add_argument("--noise", type=float, nargs="+", default=LEVELS)
    command = commands.add_parser("write", help="write weights and model card")
    command.set_defaults(run_command=write)
    command.add_argument("run", type=Path, help="folder of the run")
    command.add_argument("images", type=Path, help="folder of images that it was trained with")
    command.add_argument("target", type=Path, help="file to write, NAME.json")
    for command in commands.choices.values():
        command.add_argument("--threads", type=int, default=2, help="of PyTorch")
    choices = parser.parse_args()
    choices.run_command(choices)


if __name__ == "__main__":
    main()
