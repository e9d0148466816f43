"""Four kinds of noise: noisy, denoised as if the level were the same everywhere, and denoised."""

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import aniso
from aniso import noise

random = np.random.default_rng(0)
cells = aniso.samples.photograph("cell")[276:468, 332:524].astype(float)
head = 255 * data.shepp_logan_phantom()[8:392:2, 8:392:2]
sea = aniso.samples.lighthouse(192, noise=0.0).truth.mean(axis=-1)
coins = aniso.samples.photograph("coins")[20:212, 20:212].astype(float)
hot = coins + random.normal(0, 8, coins.shape)
hot[random.random(coins.shape) < 0.01] = 255

scenes = {
    "low light": (cells, noise.PoissonGaussian(gain=8.0, read_noise=2.0).sample(cells, random), "auto"),
    "magnitude (MRI)": (head, noise.Rician(12.0).sample(head, random), "rician"),
    "speckle": (sea, noise.Speckle(0.3).sample(sea, random), "auto"),
    "hot pixels": (coins, hot, "auto"),
}


def error(image, truth):
    """Distance as root mean square, in grey values."""
    return np.sqrt(np.mean((image - truth) ** 2))


figure, axes = plt.subplots(3, 4, figsize=(11, 9.2), layout="constrained")
for column, (title, (truth, noisy, kind)) in zip(axes.T, scenes.items(), strict=True):
    # The level of the best white Gaussian noise: it has the same mean square.
    flat = aniso.denoise(noisy, noise=error(noisy, truth))
    clean, plan = aniso.denoise(noisy, noise=kind, return_info=True)
    column[0].set_title(title, fontsize=14)
    for panel, image in zip(column, (noisy, flat, clean), strict=True):
        panel.imshow(image, cmap="gray", vmin=0, vmax=255)
        panel.set_xlabel(f"error {error(image, truth):.1f}", fontsize=12)
    found = plan.noise_models[0].kind + (", impulses" if plan.impulses else "")
    words = f"found: {found}" if kind == "auto" else f"given: {kind}"
    column[2].set_xlabel(f"error {error(clean, truth):.1f}\n{words}", fontsize=12)
for panel, name in zip(axes[:, 0], ("noisy", "noise=level", "with its kind"), strict=True):
    panel.set_ylabel(name, fontsize=14)
for panel in axes.flat:
    panel.set(xticks=[], yticks=[])
plt.show()
