"""
Magnetic resonance
==================

Scanners measure complex numbers, and images show their magnitude. The noise of a magnitude is
Rician: it is weaker where there is no signal, and its mean is not zero there, so that the
background is grey. ``aniso.denoise`` removes both the noise and this bias.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import aniso
from aniso import noise

head = 255 * data.shepp_logan_phantom()[8:392:2, 8:392:2]
image = noise.Rician(12.0).sample(head, np.random.default_rng(0))

# %%
# The kind can be found, but it is better to give it if it is known: the curves of photons and of
# magnitudes are similar if the noise is strong. The level is estimated in both cases.

result, plan = aniso.denoise(image, noise="rician", return_info=True)
print(plan.noise_models[0])

# %%
# As Gaussian noise of the right level, the background stays at 15 grey values.

plain = aniso.denoise(image, noise=12.0)
background = np.s_[:30, :30]
for name, shown in (
    ("noisy", image),
    ("as Gaussian noise", plain),
    ("as Rician noise", result),
):
    print(f"{name:18} mean of the background {shown[background].mean():5.2f}")

panels = {
    "magnitude": image,
    "as Gaussian noise": plain,
    "as Rician noise": result,
    "truth": head,
}
figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained")
for panel, (name, shown) in zip(axes, panels.items(), strict=True):
    panel.imshow(shown, cmap="gray", vmin=0, vmax=120)
    panel.set_title(name, fontsize=13)
    panel.set(xticks=[], yticks=[])
plt.show()
