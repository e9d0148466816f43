"""Draw strong_noise.png in this folder: denoise() and BM3D on photographs with strong noise.

It needs the package bm3d (pip install bm3d) and prints the errors, all of them and those in flat regions.
"""

import io
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import bm3d
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import aniso

#: Photograph, rows and columns, level of the noise, and rows and columns of a flat region of the crop.
CROPS = {
    "astronaut": ((0, 60), 75.0, np.s_[10:110, 20:85]),
    "coins": ((0, 100), 75.0, np.s_[78:104, 5:155]),
}
SIDE = 160

figure, axes = plt.subplots(len(CROPS), 4, figsize=(11, 5.9), layout="constrained")
for row, (name, ((y, x), level, flat)) in zip(axes, CROPS.items(), strict=True):
    photograph = aniso.samples.photograph(name).astype(np.float32)
    truth = np.atleast_3d(photograph).mean(axis=2)[y : y + SIDE, x : x + SIDE]
    noisy = truth + level * np.random.default_rng(0).standard_normal(truth.shape, np.float32)
    results = {
        f"noise {level:g}": noisy,
        "BM3D": bm3d.bm3d(noisy, level),
        'denoise, method="learned"': aniso.denoise(noisy, noise=level, method="learned"),
        "without noise": truth,
    }
    for panel, (title, image) in zip(row, results.items(), strict=True):
        error, inside = (np.sqrt(np.mean((image - truth)[where] ** 2)) for where in (..., flat))
        print(f"{name}, {title}: error {error:.2f}, {inside:.2f} in the flat region")
        panel.imshow(image, cmap="gray", vmin=0, vmax=255)
        panel.set_title(title, fontsize=12)
        panel.set_xlabel(f"error {error:.1f}; {inside:.1f} in the flat region" if error else "", fontsize=10)
        panel.set(xticks=[], yticks=[])
drawn = io.BytesIO()
figure.savefig(drawn, dpi=65)
Image.open(drawn).convert("L").save(Path(__file__).with_name("strong_noise.png"), optimize=True)
