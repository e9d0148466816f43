"""
An image from what lies beside its edges
========================================

Pixels that are ``fixed`` keep their values and feed the others. So a steady state of diffusion interpolates
between given values, and one can ask how few of them are enough. Here only the pixels close to contours are
kept, on both sides of each; whatever lies between is left to diffusion.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage

import aniso

truth = aniso.samples.lighthouse(noise=0.0).truth

# %%
# Contours are where the gradient is large; a band of one pixel around them is kept, and the frame of the
# image.

brightness = truth.mean(axis=-1)
steep = ndimage.gaussian_gradient_magnitude(brightness, 0.7) > 6
kept = ndimage.binary_dilation(steep)
kept[[0, -1], :] = kept[:, [0, -1]] = True
print(f"{kept.mean():.0%} of the pixels are kept")

# %%
# The rest starts with the mean colour and diffuses until nothing changes. FSI is the scheme for steady
# states: a few long cycles.

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
# If the known pixels were chosen at random instead, diffusion would have to carry edges on by itself;
# :func:`aniso.inpaint` is made for that (:ref:`sphx_glr_gallery_plot_inpaint.py`).
