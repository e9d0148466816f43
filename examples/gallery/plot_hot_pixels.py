"""
Hot pixels
==========

Single pixels that are far from all of their neighbours (hot or dead ones, salt and pepper) are not
noisy but lost. ``aniso.denoise`` replaces them before it estimates the noise.
"""

import matplotlib.pyplot as plt
import numpy as np

import aniso

coins = aniso.samples.photograph("coins")[20:212, 20:212].astype(float)
random = np.random.default_rng(0)
image = coins + random.normal(0, 8, coins.shape)
broken = random.random(coins.shape) < 0.01
image[broken] = random.choice([0, 255], np.count_nonzero(broken))

result, plan = aniso.denoise(image, return_info=True)
print(
    f"{broken.mean():.2%} of the pixels are broken, {plan.impulses.share:.2%} were replaced"
)
print(f"level of the other noise: {plan.noise:.2f}")

# %%
# Without this, impulses count as noise, or as edges to be kept. A plain diffusion with
# contrast and time of the plan keeps them.

model = aniso.EdgeEnhancing(
    contrast=plan.contrast, sigma=0.5, diffusivity="perona-malik"
)
plain = aniso.diffuse(image, model, time=plan.time)

panels = {
    "hot and dead pixels": image,
    "diffusion alone": plain,
    "denoise(image)": result,
    "truth": coins,
}
figure, axes = plt.subplots(2, 4, figsize=(11, 6), layout="constrained")
for (top, bottom), (name, shown) in zip(axes.T, panels.items(), strict=True):
    top.imshow(shown, cmap="gray", vmin=0, vmax=255)
    top.set_title(name, fontsize=13)
    bottom.imshow(shown[90:140, 20:70], cmap="gray", vmin=0, vmax=255)
for panel in axes.flat:
    panel.set(xticks=[], yticks=[])
plt.show()
