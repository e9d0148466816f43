"""
Stability limit of explicit steps
=================================

:func:`aniso.stability.stable_step` computes the largest stable explicit step u + τAu. The limit is sharp:
at the limit, the norm never grows, but for some tensors the image diverges if the step is a few per cent
larger.
"""

import matplotlib.pyplot as plt
import numpy as np

import aniso

# %%
# For homogeneous diffusion, the limit is ¼ with the standard stencil and ½ with the default stencil.

for name, stencil in {
    "standard": aniso.DeltaStencil.named("standard"),
    "default": aniso.DeltaStencil(),
}.items():
    print(f"{name}: {aniso.stability.stable_step(aniso.Homogeneous(), stencil):.3f}")

# %%
# Larger steps raise an error in ``aniso.diffuse``.

image = aniso.samples.shapes(64, noise=10.0).image
try:
    aniso.diffuse(
        image, aniso.Homogeneous(), time=10.0, scheme=aniso.Explicit(step=0.55)
    )
except ValueError as error:
    print(error)

# %%
# To demonstrate the instability, apply the matrix of the standard stencil directly.

standard = aniso.DeltaStencil.named("standard")
one, zero = np.ones((65, 65)), np.zeros((65, 65))
matrix = aniso.stencil.matrix(one, zero, one, standard)
limit = aniso.stability.stable_step(aniso.Homogeneous(), standard)

steps = 60
pictures, spreads = {}, {}
for share in (0.9, 1.0, 1.05):
    u = image.ravel().copy()
    spreads[share] = [1.0]
    for _ in range(steps):
        u = u + share * limit * (matrix @ u)
        spreads[share].append(u.std() / image.std())
    pictures[share] = u.reshape(image.shape)

figure, axes = plt.subplots(
    1, 4, figsize=(10, 2.9), layout="constrained", width_ratios=(1, 1, 1, 1.4)
)
for panel, (share, picture) in zip(axes, pictures.items(), strict=False):
    panel.imshow(picture, cmap="gray", vmin=0, vmax=255)
    panel.set_title(f"{share:g} of the limit", fontsize=14)
    panel.set_xlabel(f"after {steps} steps", fontsize=12)
    panel.set(xticks=[], yticks=[])
for share, values in spreads.items():
    axes[3].plot(values, label=f"{share:g} of the limit", linewidth=2)
axes[3].set_xlabel("steps", fontsize=12)
axes[3].set_title("standard deviation / initial", fontsize=13)
axes[3].set(ylim=(0, 3))
axes[3].legend(fontsize=11)
plt.show()

# %%
# At the limit, a checkerboard is not damped; beyond it, it grows from rounding errors and noise until it
# dominates the image. The default is 0.9 of the limit.
