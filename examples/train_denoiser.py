"""
Train a net of larger kernels to remove noise of any level
===========================================================

Trains a :class:`aniso.nn.KernelDiffusionNet` on a folder of images. A run can be stopped at any time and is
continued by the same command; the result depends only on the images and options::

    python examples/train_denoiser.py train IMAGES RUN --iterations 60000
    python examples/train_denoiser.py measure RUN IMAGES --held-out
    python examples/train_denoiser.py measure RUN OTHER_IMAGES --noise 15 25 50
    python examples/train_denoiser.py write RUN IMAGES NAME.json

With ``--colour`` the net gets weights for colours. They can be added to a trained net for grey images, which
stays the same, and trained alone::

    python examples/train_denoiser.py train IMAGES RUN --colour --start denoise-2-75 --only colour

In the same way ``--correlated --only correlation`` adds parameters for correlated noise. All parameters of
such a net are trained together with ``--start`` and ``--colour-images FOLDER``: a quarter of the iterations
take colour images from this folder, and an eighth correlated noise. A run may be continued with another
``--patch``; larger patches at the end are good for large dilations.

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
from aniso.engines.torch.net import smooth
from aniso.nn import presets
from aniso.nn.kernels import correlation_powers
from aniso.noise.correlation import blur_noise, kernel

Picture = np.ndarray[Any, Any]
#: Images to learn from, and whether their noise is correlated.
Source = tuple[list[Picture], bool]
Denoiser = Callable[..., torch.Tensor]

#: Iterations between two measurements on images that are held out, and how many of these are used.
MEASURE_EVERY, MEASURED = 1000, 5
LEVELS = (15.0, 25.0, 50.0)
#: Correlations, and the noise levels that they come with.
WIDTHS, CORRELATED_LEVELS = (0.3, 1.5), (5.0, 50.0)
#: Correlations at which initial values are computed.
FITTED_WIDTHS = (0.35, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5)


def read_images(folder: Path, *, colour: bool = False) -> list[Picture]:
    """The images of a folder in grey values 0 to 255, (H, W) or (H, W, 3), in the order of their names."""
    paths = sorted(
        path for path in folder.iterdir() if path.suffix.lower() in {".png", ".jpg", ".tif", ".bmp"}
    )
    images = []
    for path in paths:
        with Image.open(path) as image:
            images.append(np.asarray(image.convert("RGB" if colour else "L"), np.float32))
    return images


def channels_first(image: Picture) -> Picture:
    """The image as (1 or 3, H, W)."""
    return np.ascontiguousarray(np.atleast_3d(image).transpose(2, 0, 1), np.float32)


def batch_of(
    images: list[Picture],
    count: int,
    side: int,
    seed: int,
    iteration: int,
    *,
    correlated: bool = False,
) -> tuple[torch.Tensor, ...]:
    """Patches, turned and mirrored, noisy patches, levels and correlations, the same at each call."""
    random = np.random.default_rng((seed, iteration))
    patches = []
    for number in random.integers(len(images), size=count):
        y, x = (random.integers(max(length - side, 0) + 1) for length in images[number].shape[:2])
        patch = np.rot90(images[number][y : y + side, x : x + side], int(random.integers(4)))
        patches.append(channels_first(patch.swapaxes(0, 1) if random.integers(2) else patch))
    clean = np.stack(patches)
    # Three of four levels lie where denoising is needed most.
    low, high = np.where(random.random((2, count)) < 0.75, [[10.0], [60.0]], [[2.0], [75.0]])
    level = (low * (high / low) ** random.random(count)).astype(np.float32)
    noise = random.standard_normal(clean.shape, np.float32)
    width = np.zeros(count, np.float32)
    if correlated:
        width = random.uniform(*WIDTHS, count).astype(np.float32)
        level = level.clip(*CORRELATED_LEVELS)
        noise = np.stack(
            [blur_noise(one, float(w), first_axis=1) for one, w in zip(noise, width, strict=True)]
        )
    noisy = clean + noise * level[:, None, None, None]
    return tuple(map(torch.from_numpy, (clean, noisy, level, width)))


def loss_of(result: torch.Tensor, clean: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
    """Mean logarithm of the squared error: like PSNR, it counts all levels and kinds of patches alike."""
    error = ((result - clean) ** 2).mean(dim=(1, 2, 3))
    # Patches without any structure must not lead; the power is about that of the errors of good methods.
    return (error + 0.2 * (level / clean.shape[1] ** 0.5) ** 1.3).log().mean()


def rate_at(iteration: int, iterations: int, rate: float) -> float:
    """Learning rate: it rises quickly, stays, and falls to 0 by a cosine in the last 40 %."""
    remaining = min(1.0, 2.5 * (1 - iteration / iterations))
    return rate * min((iteration + 1) / 200, 0.5 - 0.5 * math.cos(math.pi * remaining))


def begin(net: Any, trained: dict[str, torch.Tensor]) -> None:
    """Give a net the parameters of another, which may be for grey images and white noise only."""
    parameters = net.state_dict()
    for name in parameters:
        if name in trained:
            parameters[name].copy_(trained[name])
        elif ".colour_" in name:  # as for brightness
            grey = trained[name.replace("colour_", "")]
            parameters[name].zero_()[: len(grey)].copy_(grey)
    if net.correlated and "stages.0.correlation" not in trained:
        for stage in net.stages:
            gain = gains(stage)
            stage.correlation.detach()[: gain.shape[1]] = -torch.linalg.lstsq(*fitted(gain)).solution.T


def gains(stage: Any, size: int = 128) -> torch.Tensor:
    """Logarithms of how much more correlated noise than white noise the kernels see, for some widths."""
    kernels, n = stage.kernels(torch.float64).detach()[::4], stage.dilation
    wide = kernels.new_zeros(len(kernels), 1, *[n * (stage.side - 1) + 1] * 2)
    wide[..., ::n, ::n] = kernels
    seen = smooth(wide, torch.nn.functional.conv_transpose2d, n)[:, 0]
    power = torch.fft.fft2(seen, s=(size, size)).abs().square()
    rows = []
    for width in FITTED_WIDTHS:
        spectrum = torch.fft.fft(torch.from_numpy(kernel(width)), size).abs().square()
        rows.append((power * spectrum[:, None] * spectrum).sum(dim=(1, 2)) / power.sum(dim=(1, 2)))
    return torch.stack(rows).log() / 2


def fitted(gain: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both sides of the linear equations for the coefficients of powers."""
    return correlation_powers(torch.tensor(FITTED_WIDTHS)[:, None].to(gain)), gain


class Run:
    """A training that can be stopped and continued."""

    def __init__(
        self, folder: Path, options: dict[str, Any], rate: float, seed: int, start: str = "", only: str = ""
    ) -> None:
        self.path, self.rate, self.seed, self.options = folder / "state.pt", rate, seed, options
        torch.manual_seed(seed)
        self.net = aniso.nn.KernelDiffusionNet(**options)
        if start:
            begin(self.net, aniso.nn.pretrained(start).state_dict())
        for name, parameter in self.net.named_parameters():
            parameter.requires_grad_(only in name)
        self.trained = [parameter for parameter in self.net.parameters() if parameter.requires_grad]
        self.averaged = copy.deepcopy(self.net).eval()
        self.optimiser = torch.optim.Adam(self.trained, rate, betas=(0.9, 0.99))
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

    def step(self, sources: list[Source], count: int, side: int, iterations: int) -> None:
        """One iteration; the sources take turns."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate_at(self.iteration, iterations, self.rate)
        images, correlated = sources[self.iteration % len(sources)]
        if len(sources) > 1 and images[0].ndim == 3:  # about as costly as grey images
            count = -(-count // 2)
        clean, *given = batch_of(images, count, side, self.seed, self.iteration, correlated=correlated)
        loss = loss_of(self.net(*given), clean, given[1])
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
        self.optimiser.step()
        self.iteration += 1
        self.losses.append(loss.item())
        share = max(0.002, 1 / (1 + self.iteration))
        with torch.no_grad():
            for mean, new in zip(self.averaged.parameters(), self.net.parameters(), strict=True):
                mean.lerp_(new, share)


def qualities(
    net: Denoiser, images: list[Picture], level: float, correlation: float = 0.0, seed: int = 1
) -> list[float]:
    """PSNR of the results, clipped to 0…255."""
    given = (level, correlation) if correlation else (level,)
    random = np.random.default_rng(seed)
    found = []
    for image in images:
        white: Any = random.standard_normal(image.shape, np.float32)
        noise = channels_first(white)
        noisy = channels_first(image) + level * blur_noise(noise, correlation, first_axis=1)
        with torch.inference_mode():
            result = net(torch.from_numpy(noisy)[None], *given)[0].clamp(0, 255).numpy()
        found.append(10 * math.log10(255**2 / np.mean((result - channels_first(image)) ** 2, dtype=float)))
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
    images = read_images(choices.images, colour=choices.colour)[:: choices.hold if choices.held_out else 1]
    net = denoiser(choices.net)
    print(f"{choices.net}: PSNR in dB, mean over {len(images)} images")
    for level in choices.noise:
        found = np.mean(qualities(net, images, level, choices.correlation))
        print(f"noise {level:g}: {found:.3f}", flush=True)


CARD = """# {name}

Removes white Gaussian noise of standard deviation 2 to 75 from images with grey values 0 to 255. The noise
level is an input. Colour channels share their weights.

- Net: `aniso.nn.KernelDiffusionNet`, {parameters} parameters, options {options}.
- Guaranteed for all parameters: the mean is preserved, the Euclidean norm never grows, rotating or mirroring
  the image rotates or mirrors the result. It is not guaranteed that results of similar images are similar.
- Limits: trained for grey photographs with white Gaussian noise. Other noise has to be transformed first.
- Training: {iterations} iterations of `examples/train_denoiser.py`, on {images} images of the folder
  `{folder}`; {held} others were held out for choosing. The images are not included.
- PSNR on the images that were held out: {figures}.
- Licence: that of aniso.
"""


def write(choices: argparse.Namespace) -> None:
    """Write weights and model card."""
    torch.set_num_threads(choices.threads)
    net, state = saved_net(choices.run)
    images = read_images(choices.images, colour=choices.colour)
    held = images[:: choices.hold]
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


def divide(images: list[Picture], hold: int) -> tuple[list[Picture], list[Picture]]:
    """Images that are held out, and those to learn from."""
    return images[::hold], [image for number, image in enumerate(images) if number % hold]


def train(choices: argparse.Namespace) -> None:
    """Train until the last iteration."""
    torch.set_num_threads(choices.threads)
    kept, images = divide(read_images(choices.images, colour=choices.colour), choices.hold)
    sources: list[Source] = [(images, choices.correlated)]
    if choices.colour_images:
        _, coloured = divide(read_images(choices.colour_images, colour=True), choices.hold)
        grey, colour = (images, False), (coloured, False)
        sources = [grey, grey, colour, grey, (images, True), grey, colour, grey]
    choices.run.mkdir(parents=True, exist_ok=True)
    options = {"dilations": choices.dilations, "kernels": choices.kernels, "side": choices.side}
    old = aniso.nn.pretrained(choices.start) if choices.start else None
    names = ("colour", "correlated")
    options |= {name: True for name in names if getattr(choices, name) or getattr(old, name, False)}
    run = Run(choices.run, options, choices.rate, choices.seed, choices.start, choices.only)
    if choices.compile:
        for stage in run.net.stages:
            stage.compile(dynamic=False)
    saved = time.monotonic()
    while run.iteration < choices.iterations:
        run.step(sources, choices.batch, choices.patch, choices.iterations)
        if run.iteration % MEASURE_EVERY == 0 or run.iteration == choices.iterations:
            width = WIDTHS[1] / 2 if choices.correlated else 0.0
            found = [qualities(run.averaged, kept[:MEASURED], level, width) for level in LEVELS]
            row = [float(np.mean(one)) for one in found]
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
    command.add_argument("--colour", action="store_true", help="with weights for colours")
    command.add_argument("--correlated", action="store_true", help="with correlated noise")
    command.add_argument("--colour-images", type=Path, help="folder, to train all parameters together")
    command.add_argument("--start", default="", help="name of a pretrained net to begin with")
    command.add_argument("--only", default="", help="train only parameters with this in their name")
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
    command.add_argument("--colour", action="store_true", help="in colour")
    command.add_argument("--correlation", type=float, default=0.0, help="of the noise, in pixels")
    command = commands.add_parser("write", help="write weights and model card")
    command.set_defaults(run_command=write)
    command.add_argument("run", type=Path, help="folder of the run")
    command.add_argument("images", type=Path, help="folder of images that it was trained with")
    command.add_argument("target", type=Path, help="file to write, NAME.json")
    command.add_argument("--colour", action="store_true", help="measure in colour")
    for command in commands.choices.values():
        command.add_argument("--threads", type=int, default=2, help="of PyTorch")
        command.add_argument("--hold", type=int, default=20, help="every n-th image is held out")
    choices = parser.parse_args()
    choices.run_command(choices)


if __name__ == "__main__":
    main()
