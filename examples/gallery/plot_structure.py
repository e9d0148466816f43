"""
Orientation and coherence
=========================

The local structure that diffusion models use can be computed on its own: the direction of lines at
each pixel, and how clear it is.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import hsv_to_rgb

import aniso

image = aniso.samples.fingerprint(200, period=10.0, noise=50.0, seed=4).image

# %%
# Derivatives of the image, smoothed by a Gaussian of standard deviation ``sigma``, are averaged by
# one of standard deviation ``rho``, which should be about half the line spacing. Where
# lines of all directions meet, such as in the core of the fingerprint, the coherence is small.

angle = aniso.orientation(image, sigma=1.5, rho=5.0)
coherence = aniso.coherence(image, sigma=1.5, rho=5.0)

# %%
# The hue is the direction, a full turn of the colour circle for half a turn of the line, since the
# directions 0° and 180° are the same. The saturation is the coherence.


def coloured(angle, coherence, value):
    hue = np.mod(angle / np.pi, 1)
    return hsv_to_rgb(np.stack(np.broadcast_arrays(hue, coherence, value), -1))


brightness = np.clip(image / 255, 0, 1)
figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
axes[0].imshow(image, cmap="gray", vmin=0, vmax=255)
axes[0].set_title("lines under noise")
axes[1].imshow(coloured(angle, coherence, 0.4 + 0.6 * brightness))
axes[1].set_title("orientation and coherence")
shown = axes[2].imshow(coherence, vmin=0, vmax=1)
axes[2].set_title("coherence")
figure.colorbar(shown, ax=axes[2], shrink=0.8)

# The key: a disc whose colours are the directions of its radii.
y, x = np.mgrid[-1:1:61j, -1:1:61j]
disc = coloured(np.arctan2(y, x), 1.0, 1.0)
disc = np.dstack([disc, np.hypot(x, y) < 1])
key = axes[1].inset_axes([0.8, 0.0, 0.2, 0.2])
key.imshow(disc)
key.axis("off")
for panel in axes:
    panel.set(xticks=[], yticks=[])
plt.show()

# %%
# Lines can be followed: short strokes along the orientation, as long as it is clear.

step = 8
rows, columns = np.mgrid[step // 2 : 200 : step, step // 2 : 200 : step]
length = 0.45 * step * coherence[rows, columns]
dx, dy = length * np.cos(angle[rows, columns]), length * np.sin(angle[rows, columns])
figure, panel = plt.subplots(figsize=(5, 5), layout="constrained")
panel.imshow(image, cmap="gray", vmin=0, vmax=255, alpha=0.6)
ends = [
    np.stack([first, last], -1).reshape(-1, 2).T
    for first, last in ((columns - dx, columns + dx), (rows - dy, rows + dy))
]
panel.plot(*ends, color="tab:red", linewidth=1.5)
panel.set(xticks=[], yticks=[])
plt.show()
