"""A fingerprint, its orientation and its coherence."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import hsv_to_rgb

import aniso

image = aniso.samples.fingerprint(200, period=10.0, noise=50.0, seed=4).image
angle = aniso.orientation(image, sigma=1.5, rho=5.0)
clear = aniso.coherence(image, sigma=1.5, rho=5.0)
colours = hsv_to_rgb(np.stack([np.mod(angle / np.pi, 1), clear, 0.4 + 0.6 * np.clip(image / 255, 0, 1)], -1))

figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.5), layout="constrained")
axes[0].imshow(image, cmap="gray", vmin=0, vmax=255)
axes[1].imshow(colours)
shown = axes[2].imshow(clear, vmin=0, vmax=1)
figure.colorbar(shown, ax=axes[2], shrink=0.8)
for panel, title in zip(axes, ("image", "orientation (hue)", "coherence"), strict=True):
    panel.set(xticks=[], yticks=[], title=title)
