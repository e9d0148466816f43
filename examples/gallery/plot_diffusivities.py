"""
Four diffusivities
==================

The diffusivity g reduces the flux across edges. Its argument is the squared contrast r = ∣∇u∣²/λ²,
where λ is the parameter ``contrast`` of a model: g(0) = 1 in flat regions, and g decreases where the
gradient exceeds λ. How fast it decreases determines whether edges are preserved or sharpened.
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
# The flux across an edge of contrast √r = ∣∇u∣/λ is √r·g(r), in units of λ. Where it increases with the
# contrast, edges are blurred. Where it decreases, edges become steeper. Charbonnier's flux always
# increases; the other three have a maximum at ∣∇u∣ = λ, which makes λ the limit between gradients that
# are smoothed and gradients that are preserved. (With a noise scale σ > 0, the gradient in g is that of
# the presmoothed image, and this holds only approximately.)

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
# Edge-enhancing diffusion of a photograph with the same contrast, noise scale and time, and four
# diffusivities. The bottom row magnifies a part of the top row; all panels have the same grey range.

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
# Charbonnier's diffusivity only slows the diffusion down at edges. The other three sharpen edges above
# λ. The more abruptly g decreases, the more the result looks like a cartoon: regions are smoothed, and
# there is hardly any flux across their contours.
