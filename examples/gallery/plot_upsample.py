"""
A finer image with the same block means
=======================================

A pixel of a camera is the mean of the light that falls on its area.
:func:`aniso.upsample` looks for a finer image that has exactly these means, and
whose contours are sharp and smooth: it lets cubic splines diffuse along their edges and projects every
step back to the images with the given block means.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage

import aniso

factor = 4
truth = aniso.samples.photograph("coffee")[60:316, 150:406].astype(np.float32)
blocks = truth.reshape(64, factor, 64, factor, 3)
coarse = blocks.mean(axis=(1, 3))

fine, info = aniso.upsample(coarse, factor, channel_axis=-1, return_info=True)
splines = ndimage.zoom(
    coarse, (factor, factor, 1), order=3, mode="reflect", grid_mode=True
)
print(info)

# %%
# The number is the distance from the truth, as root mean square in grey values.


def show(panel, picture, title):
    panel.imshow(np.clip(picture / 255, 0, 1), cmap="gray", vmin=0, vmax=1)
    panel.set_title(title, fontsize=13)
    panel.set(xticks=[], yticks=[])


def error(picture, original):
    return np.sqrt(np.mean((picture - original) ** 2))


pictures = {
    "truth": truth,
    "64 × 64 block means": coarse.repeat(factor, 0).repeat(factor, 1),
    f"cubic splines: {error(splines, truth):.2f}": splines,
    f"aniso.upsample: {error(fine, truth):.2f}": fine,
}
figure, axes = plt.subplots(2, 4, figsize=(10, 5.4), layout="constrained")
for column, (title, picture) in zip(axes.T, pictures.items(), strict=True):
    show(column[0], picture, title)
    show(column[1], picture[100:196, 20:116], "")
plt.show()

# %%
# Splines smear the rim over two of the coarse pixels and give it stairs; diffusion along the rim removes
# the stairs, and the block means keep it from getting wider.
#
# The larger the factor, the more has to be guessed, from the assumption that contours are smooth. On shapes
# with sharp outlines the guess is good even at factor 8; corners get round,
# and faint ripples remain where the splines overshot.

shapes = aniso.samples.shapes(size=512, noise=0).truth.astype(np.float32)
coarse = shapes.reshape(64, 8, 64, 8).mean(axis=(1, 3))
splines = ndimage.zoom(coarse, 8, order=3, mode="reflect", grid_mode=True)
fine = aniso.upsample(coarse, 8)

figure, axes = plt.subplots(2, 4, figsize=(10, 5.4), layout="constrained")
pictures = {
    "truth": shapes,
    "64 × 64 block means": coarse.repeat(8, 0).repeat(8, 1),
    f"cubic splines: {error(splines, shapes):.2f}": splines,
    f"aniso.upsample: {error(fine, shapes):.2f}": fine,
}
for column, (title, picture) in zip(axes.T, pictures.items(), strict=True):
    show(column[0], picture, title)
    show(column[1], picture[32:224, 272:464], "")
plt.show()

# %%
# Fine texture is not edges: where the truth has grain that the block means have lost, the result has none.
