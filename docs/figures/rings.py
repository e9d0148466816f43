"""A ring pattern that should not change, after diffusion along its rings with three stencils."""

import math

import matplotlib.pyplot as plt
import numpy as np

import aniso

TIME = 20.0
STENCILS = {
    "standard": aniso.DeltaStencil.named("standard"),
    "nonnegativity": aniso.DeltaStencil.named("nonnegativity"),
    "$\\alpha = 0.4,\\ \\gamma = 1$": aniso.DeltaStencil(0.4, 1.0),
}

pattern = aniso.samples.ring_pattern()
a, b, c = aniso.samples.ring_tensor(len(pattern))


def diffused(stencil):
    matrix = aniso.stencil.matrix(a, b, c, stencil)
    steps = math.ceil(TIME / (0.9 * 2 / aniso.stability.spectral_bound(stencil, 1.0, 0.0)))
    u = pattern.ravel()
    for _ in range(steps):
        u = u + TIME / steps * (matrix @ u)
    return u.reshape(pattern.shape)


pictures = {"pattern": pattern} | {name: diffused(each) for name, each in STENCILS.items()}
figure, axes = plt.subplots(1, len(pictures), figsize=(10, 2.75), layout="constrained")
quarter = np.s_[len(pattern) // 2 :, len(pattern) // 2 :]
for panel, (name, picture) in zip(axes, pictures.items(), strict=True):
    panel.imshow(picture[quarter], cmap="gray", vmin=-1, vmax=1, interpolation="nearest")
    panel.set_title(name, fontsize=12)
    panel.set_axis_off()
plt.show()
