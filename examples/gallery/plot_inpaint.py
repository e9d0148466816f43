"""
Inpainting
==========

:func:`aniso.inpaint` fills in unknown pixels: pixels under text, in scratches, or that were never
measured. It computes the steady state of diffusion with the known pixels fixed. Diffusion is along
edges and hardly across them, so that contours continue into the gaps.
"""

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw, ImageFont

import aniso

photograph = aniso.samples.photograph("astronaut")[::2, ::2]
shape = photograph.shape[:2]
rng = np.random.default_rng(0)

# %%
# Three kinds of damage. In a mask, True marks unknown pixels, as in scikit-image.

few = rng.random(shape) > 0.1

page = Image.new("1", shape[::-1])
font = ImageFont.load_default(size=22)
for row in range(0, shape[0], 26):
    ImageDraw.Draw(page).text(
        (-row % 40 - 40, row), "along the edge, not across " * 3, fill=1, font=font
    )
text = np.array(page)

hole = np.zeros(shape, bool)
hole[150:180, 40:70] = hole[60:84, 150:174] = hole[20:44, 60:84] = True

damages = {"10 % of the pixels known": few, "text": text, "holes": hole}

# %%
# All parameters have defaults. The result is float32, in the range of the image; known pixels are
# returned unchanged.

results = {
    name: aniso.inpaint(photograph, mask, channel_axis=-1, return_info=True)
    for name, mask in damages.items()
}
for name, mask in damages.items():
    filled, _ = results[name]
    assert (filled[~mask] == photograph[~mask]).all()

figure, axes = plt.subplots(2, 3, figsize=(10, 7.2), layout="constrained")
for column, (name, mask) in zip(axes.T, damages.items(), strict=True):
    damaged = np.where(mask[..., np.newaxis], 0, photograph)
    filled, info = results[name]
    error = np.sqrt(np.mean((filled - photograph)[mask] ** 2))
    for panel, picture, title in (
        (column[0], damaged, name),
        (column[1], filled, f"filled in, error {error:.1f} there"),
    ):
        panel.imshow(np.clip(picture / 255, 0, 1))
        panel.set_title(title, fontsize=13)
        panel.set(xticks=[], yticks=[])
plt.show()

# %%
# ``return_info=True`` also returns the parameters used and the residual. The contrast is estimated from
# the known pixels, so that the result scales with the image.

print(results["10 % of the pixels known"][1])

# %%
# Unknown pixels may also be NaN, without a mask. Here a surface is known only along lines that are 8
# pixels apart.

truth = aniso.samples.photograph("moon")[::2, ::2].astype(np.float32)
measured = np.full_like(truth, np.nan)
measured[::8] = truth[::8]
measured[:, ::8] = truth[:, ::8]
filled = aniso.inpaint(measured)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.7), layout="constrained")
for panel, picture, title in zip(
    axes, (truth, measured, filled), ("truth", "measured", "filled in"), strict=True
):
    panel.imshow(picture, cmap="gray", vmin=60, vmax=170)
    panel.set_title(title, fontsize=13)
    panel.set(xticks=[], yticks=[])
plt.show()

# %%
# Diffusion cannot recover lost texture: large holes are filled smoothly.
