"""
User-defined diffusivities
==========================

The diffusivity g reduces the flux across edges, as a function of r = ∣∇u∣²/λ². Besides the four named
diffusivities, any function with g(0) = 1 and 0 < g ≤ 1 can be used. The cpu engine compiles it.
"""

import matplotlib.pyplot as plt
import numpy as np

import aniso


def tukey_like(r):
    """Falls to a hundredth before r = 4 and stays there."""
    return np.maximum(1 - r / 4, 0.1) ** 2


def slow(r):
    """Falls like the fourth root: edges are hardly special."""
    return (1 + r) ** -0.25


diffusivities = {"perona-malik": "perona-malik", "tukey_like": tukey_like, "slow": slow}

# %%
# All three on the same noisy shapes. If g has bounded support, contours remain sharp; if it decreases
# slowly, they are blurred.

sample = aniso.samples.shapes(noise=20.0)
results = {
    name: aniso.diffuse(
        sample.image,
        aniso.EdgeEnhancing(contrast=6.0, sigma=1.0, diffusivity=g),
        15.0,
        scheme=aniso.FED(10),
    )
    for name, g in diffusivities.items()
}

figure, axes = plt.subplots(2, 4, figsize=(10, 5.4), layout="constrained")
r = np.linspace(0, 9, 300)
curve = axes[0, 0]
curve.plot(np.sqrt(r), 1 / (1 + r), label="perona-malik", linewidth=2)
for g in (tukey_like, slow):
    curve.plot(np.sqrt(r), g(r), label=g.__name__, linewidth=2)
curve.set_title("g(r) over ∣∇u∣/λ", fontsize=13)
curve.set(ylim=(0, 1.05), xlim=(0, 3))
curve.legend(fontsize=11)
curve.set_box_aspect(1)
axes[1, 0].imshow(sample.image[128:250, 20:142], cmap="gray", vmin=0, vmax=255)
axes[1, 0].set_title("input", fontsize=13)
for (top, bottom), (name, result) in zip(axes.T[1:], results.items(), strict=True):
    error = np.sqrt(np.mean((result - sample.truth) ** 2))
    top.imshow(result, cmap="gray", vmin=0, vmax=255)
    bottom.imshow(result[128:250, 20:142], cmap="gray", vmin=0, vmax=255)
    top.set_title(f"{name}: error {error:.1f}", fontsize=13)
for panel in axes.flat[1:]:
    panel.set(xticks=[], yticks=[])
plt.show()

# %%
# Functions that would not be stable raise an error.

try:
    aniso.EdgeEnhancing(diffusivity=lambda r: 1 + r)
except ValueError as error:
    print(error)
