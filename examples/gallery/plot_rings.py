"""
Comparison of stencils
======================

An image of rings is diffused *along* its rings. It should not change, because the grey value is constant
along a ring. Any change is an artefact of the stencil. Since the rings have all directions and many
frequencies, one picture shows where the artefacts arise.
"""

import math

import matplotlib.pyplot as plt
import numpy as np

import aniso

# %%
# The diffusion tensor is the projector onto the tangent of the circles around the centre, with
# the eigenvalues 1 along the rings and 0 across them. The rings get finer outwards, up to a
# wavelength of four pixels.

pattern = aniso.samples.ring_pattern()
a, b, c = aniso.samples.ring_tensor(len(pattern))

axis = np.arange(len(pattern)) - len(pattern) // 2
radius = np.hypot(axis, axis[:, None])
region = (radius > 12) & (radius < 50)

# %%
# Six stencils of the family, from the standard stencil to nearly no dissipation. They differ in one
# number per cell, the weight ζ of the hourglass mode. The table below lists it for a tensor along the
# x axis and for one at 22.5 degrees.

stencils = {
    "standard": aniso.DeltaStencil.named("standard"),
    "nonnegativity": aniso.DeltaStencil.named("nonnegativity"),
    "α = 0.25, γ = 1": aniso.DeltaStencil(0.25, 1.0),
    "α = 0.4, γ = 1": aniso.DeltaStencil(0.4, 1.0),
    "quality": aniso.DeltaStencil.named("quality"),
    "α = 0.49, γ = 1": aniso.DeltaStencil(0.49, 1.0),
}

# %%
# Explicit steps of 0.9 of the largest stable step for tensors with these eigenvalues.


def diffused(image, stencil, time=20.0):
    matrix = aniso.stencil.matrix(a, b, c, stencil)
    largest_step = 2 / aniso.stability.spectral_bound(stencil, lambda1=1.0, lambda2=0.0)
    steps = math.ceil(time / (0.9 * largest_step))
    u = image.ravel()
    for _ in range(steps):
        u = u + time / steps * (matrix @ u)
    return u.reshape(image.shape)


results = {name: diffused(pattern, stencil) for name, stencil in stencils.items()}
changes = {
    name: np.linalg.norm((result - pattern)[region]) / np.linalg.norm(pattern[region])
    for name, result in results.items()
}

diagonal = math.sqrt(0.5)
print("stencil           change   ζ at 0°  ζ at 22.5°")
for name, stencil in stencils.items():
    straight = stencil.hourglass_weight(1.0, 0.0, 0.0)
    oblique = stencil.hourglass_weight(
        0.5 + 0.5 * diagonal, 0.5 * diagonal, 0.5 - 0.5 * diagonal
    )
    print(f"{name:16s} {changes[name]:7.4f}  {straight:7.3f}  {oblique:10.3f}")

# %%
# Top: the pattern after diffusion, all with the same grey range. Bottom: the change. The standard
# stencil removes fine rings in oblique directions and preserves them along the axes.

figure, axes = plt.subplots(2, 6, figsize=(11, 4.5), layout="constrained")
for (top, bottom), (name, result) in zip(axes.T, results.items(), strict=True):
    top.imshow(result, cmap="gray", vmin=-1, vmax=1)
    top.set_title(name, fontsize=13)
    top.set_xlabel(f"change {changes[name]:.3f}", fontsize=13)
    difference = bottom.imshow(result - pattern, cmap="RdBu_r", vmin=-0.5, vmax=0.5)
for panel in axes.flat:
    panel.set(xticks=[], yticks=[])
axes[0, 0].set_ylabel("after T = 20", fontsize=13)
axes[1, 0].set_ylabel("difference", fontsize=13)
figure.colorbar(difference, ax=axes[1, :], shrink=0.9, pad=0.01, extend="both")
plt.show()
