"""
Four diffusivities
==================

The diffusivity g says how much of the flow across an edge remains. Its argument is the squared
contrast r = ∣∇u∣²/λ², where λ is the parameter ``contrast`` of a model: g(0) = 1 on flat ground, and
g falls where the gradient exceeds λ. How fast it falls decides whether edges are only kept or even
sharpened.
"""

import matplotlib.pyplot as plt
import numpy as np

import aniso
from aniso.formulas import diffusivities

curves = {
    "charbonnier": diffusivities.charbonnier_diffusivity,
    "perona-malik": diffusivities.perona_malik_diffusivity,
    "exponential": diffusivities.exponential_diffusivity,
    "weickert": diffusivities.weickert_diffusivity,
}

# %%
# The flux across an edge of contrast √r = ∣∇u∣/λ is √r·g(r), in units of λ. Where it rises with the
# contrast, a stronger edge loses more, and edges blur. Where it falls, grey values pile up on either
# side of the edge, and it gets steeper. Charbonnier's flux rises for ever; the other three turn at
# ∣∇u∣ = λ, which is what makes λ the limit between what is smoothed and what is kept. (With a noise
# scale σ > 0 the gradient in g is that of the smoothed image, and all of this holds a little less
# sharply.)

contrast = np.linspace(0, 3, 400)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for (name, g), line in zip(curves.items(), ("-", "--", "-.", "-"), strict=True):
    left.plot(contrast, g(contrast**2), line, linewidth=2, label=name)
    right.plot(contrast, contrast * g(contrast**2), line, linewidth=2, label=name)
left.set_title("diffusivity g(r)", fontsize=14)
right.set_title("flux √r·g(r)", fontsize=14)
for panel in (left, right):
    panel.axvline(1, color="0.6", linewidth=1, zorder=0)
    panel.set_xlabel("√r = ∣∇u∣/λ", fontsize=13)
    panel.set(xlim=(0, 3), ylim=(0, 1.05))
left.legend(fontsize=12)
plt.show()

# %%
# What this means for a photograph: edge-enhancing diffusion with the same contrast, noise scale and
# time, and four diffusivities. The bottom row magnifies a part of the top row, and all have the same
# grey range.

photograph = aniso.samples.photograph("camera")[64:264, 140:340]
results = {"photograph": photograph}
for name in curves:
    model = aniso.EdgeEnhancing(contrast=5.0, sigma=1.0, diffusivity=name)
    results[name] = aniso.diffuse(photograph, model, time=20.0)

detail = np.s_[30:95, 70:135]
figure, axes = plt.subplots(2, 5, figsize=(10, 4.4), layout="constrained")
for (top, bottom), (name, result) in zip(axes.T, results.items(), strict=True):
    top.set_title(name, fontsize=13)
    top.imshow(result, cmap="gray", vmin=0, vmax=255)
    bottom.imshow(result[detail], cmap="gray", vmin=0, vmax=255)
for panel in axes.flat:
    panel.set(xticks=[], yticks=[])
plt.show()

# %%
# Charbonnier's diffusivity never stops at an edge; it only slows down. The other three sharpen the
# edges that exceed λ. The more abruptly g falls, the more the result looks cut out of paper: within a
# piece everything is smoothed, and next to nothing crosses its outline.
