"""
Filling in what is lost
=======================

Pixels are lost under text, in scratches, or because only a few were ever measured.
:func:`aniso.inpaint` lets the known pixels diffuse into the unknown ones until
nothing changes any more. Diffusion runs along edges and hardly across them, so that contours are
carried on into the gaps.
"""

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw, ImageFont

import aniso

photograph = aniso.samples.photograph("astronaut")[::2, ::2]
shape = photograph.shape[:2]
rng = np.random.default_rng(0)

# %%
# Three kinds of damage. In a mask, True marks what is unknown, as in scikit-image.

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
# The call needs no parameters. It returns float32 in the grey scale of the image; pixels that were known
# have the values they had.

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
# What was chosen, and how far it got, comes with ``return_info=True``. The contrast is read off the known
# pixels, so that an image in other units gives the same result in other units.

print(results["10 % of the pixels known"][1])

# %%
# Unknown pixels may also be NaN, which needs no mask: here the surface is known only along lines that are 8
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
# What it cannot do is invent: a texture that is lost in a large hole comes back smooth.
