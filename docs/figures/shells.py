"""Shells that should not change, after diffusion along them with both stencils for volumes."""

import math

import matplotlib.pyplot as plt

import aniso

TIME = 8.0
STENCILS = {
    "27 points": aniso.DeltaStencil(0.4, 1.0),
    "19 points": aniso.stencil.SplitStencil(0.4),
}

pattern = aniso.samples.shell_pattern()
tensor = aniso.samples.shell_tensor(len(pattern))


def diffused(stencil):
    matrix = aniso.volumes.matrix(tensor, stencil)
    steps = math.ceil(TIME / (0.9 * 2 / aniso.stability.spectral_bound(stencil, 1.0, 1.0, ndim=3)))
    u = pattern.ravel()
    for _ in range(steps):
        u = u + TIME / steps * (matrix @ u)
    return u.reshape(pattern.shape)


pictures = {"pattern": pattern}
for name, stencil in STENCILS.items():
    pictures[name] = diffused(stencil)
    pictures[f"{name}, change"] = pictures[name] - pattern
figure, axes = plt.subplots(1, len(pictures), figsize=(10, 2.1), layout="constrained")
middle = len(pattern) // 2
for panel, (name, picture) in zip(axes, pictures.items(), strict=True):
    panel.imshow(picture[middle, middle:, middle:], cmap="gray", vmin=-1, vmax=1, interpolation="nearest")
    panel.set_title(name, fontsize=12)
    panel.set_axis_off()
plt.show()
