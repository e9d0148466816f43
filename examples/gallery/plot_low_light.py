"""
Low light
=========

In a microscope or a camera with little light, photons are counted. Their noise is stronger in
bright parts of an image than in dark ones. ``aniso.denoise`` recognises such noise.
"""

import matplotlib.pyplot as plt
import numpy as np

import aniso
from aniso import noise

cell = aniso.samples.photograph("cell")[276:468, 332:524].astype(float)
camera = noise.PoissonGaussian(gain=10.0, read_noise=4.0)
image = camera.sample(cell, np.random.default_rng(1))


def error(image):
    return np.sqrt(np.mean((image - cell) ** 2))


# %%
# The plan contains the model of the noise: the gain in grey values per photon, and the noise of
# reading the sensor.

result, plan = aniso.denoise(image, return_info=True)
print(plan.noise_models[0])
print(
    f"certainty {plan.certainty:.2f}, expected error {plan.expected_error:.1f}, error {error(result):.1f}"
)

# %%
# As noise of one level, it stays in the bright cell and is removed too strongly in the dark.
# ``noise="poisson"`` skips the choice of the kind, and a calibrated model, ``noise=camera``, the
# whole estimate.

one_level = aniso.denoise(image, noise=error(image))
panels = {
    f"at most 25 photons\nerror {error(image):.1f}": image,
    f"as noise of one level\nerror {error(one_level):.1f}": one_level,
    f"denoise(image)\nerror {error(result):.1f}": result,
    "truth\n": cell,
}
figure, axes = plt.subplots(1, 4, figsize=(11, 3.3), layout="constrained")
for panel, (name, shown) in zip(axes, panels.items(), strict=True):
    panel.imshow(shown, cmap="gray", vmin=0, vmax=255)
    panel.set_title(name, fontsize=13)
    panel.set(xticks=[], yticks=[])
plt.show()

# %%
# Along a row through the middle of the cell, grey values are not only smoother, but also right on
# average: the inverse of the transform is unbiased.

figure, panel = plt.subplots(figsize=(8, 3.4), layout="constrained")
panel.plot(image[96], color="0.75", label="noisy")
panel.plot(result[96], color="tab:red", label="denoised")
panel.plot(cell[96], "k--", linewidth=1, label="truth")
panel.set(xlabel="column", ylabel="grey value", xlim=(0, 191))
panel.legend(loc="upper right")
plt.show()
