"""
Speckle
=======

Coherent waves, as in radar, ultrasound and optical coherence tomography, interfere. The result
looks like noise whose level is a fraction of the signal.
"""

import matplotlib.pyplot as plt
import numpy as np

import aniso
from aniso import noise

truth = aniso.samples.lighthouse(192, noise=0.0).truth.mean(axis=-1)
image = noise.Speckle(0.35).sample(truth, np.random.default_rng(0))

result, plan = aniso.denoise(image, return_info=True)
print(plan.noise_models[0])

# %%
# The model shows how the level of the noise follows the grey value. With a single level, either
# the bright sky stays noisy, or the dark hill is blurred.

level = np.sqrt(np.mean((image - truth) ** 2))
one_level = aniso.denoise(image, noise=level)
panels = {
    "speckle": image,
    f"noise={level:.0f}": one_level,
    "denoise(image)": result,
    "truth": truth,
}
figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained")
for panel, (name, shown) in zip(axes, panels.items(), strict=True):
    panel.imshow(shown, cmap="gray", vmin=0, vmax=255)
    panel.set_title(name, fontsize=13)
    panel.set(xticks=[], yticks=[])
plt.show()

# %%
# Strictly, this holds for linear intensities. Many devices store their logarithm; there, the noise
# has about the same level everywhere, and is found as Gaussian.

greys = np.linspace(0, 255, 100)
figure, panel = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
panel.plot(greys, 0.35 * greys, "k--", label="truth")
panel.plot(
    greys,
    np.sqrt(plan.noise_models[0].variance(greys)),
    color="tab:red",
    label="estimate",
)
panel.set(
    xlabel="grey value", ylabel="level of the noise", xlim=(0, 255), ylim=(0, None)
)
panel.legend()
plt.show()
