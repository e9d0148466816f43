"""
Reconstruction from edge pixels
===============================

``fixed`` pixels keep their values, and the others are computed by diffusion. The steady state interpolates
between the given values. Here only the pixels on both sides of contours are given.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage

import aniso

truth = aniso.samples.lighthouse(noise=0.0).truth

# %%
# Contours are detected by their gradient. They are given with a band of one pixel around them, and the
# frame of the image.

brightness = truth.mean(axis=-1)
steep = ndimage.gaussian_gradient_magnitude(brightness, 0.7) > 6
kept = ndimage.binary_dilation(steep)
kept[[0, -1], :] = kept[:, [0, -1]] = True
print(f"{kept.mean():.0%} of the pixels are kept")

# %%
# The other pixels start with the mean colour and are diffused to the steady state. FSI with a few long
# cycles is the recommended scheme for steady states.

start = np.where(kept[..., np.newaxis], truth, truth[kept].mean(axis=0))
filled = aniso.diffuse(
    start,
    aniso.Homogeneous(),
    time=4000.0,
    fixed=kept,
    channel_axis=-1,
    scheme=aniso.FSI(cycles=4),
)
assert (filled[kept] == truth[kept]).all()

error = np.sqrt(np.mean((filled - truth) ** 2))
seen = np.where(kept[..., np.newaxis], truth, 255)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.7), layout="constrained")
for panel, picture, title in zip(
    axes,
    (truth, seen, filled),
    (
        "truth",
        f"kept: {kept.mean():.0%} of the pixels",
        f"after diffusion: error {error:.1f}",
    ),
    strict=True,
):
    panel.imshow(np.clip(picture / 255, 0, 1))
    panel.set_title(title, fontsize=14)
    panel.set(xticks=[], yticks=[])
plt.show()

# %%
# If the known pixels are not on contours, use :func:`aniso.inpaint`
# (:ref:`sphx_glr_gallery_plot_inpaint.py`).
