"""
A series of images
==================

The frames of a series are filtered with one plan, which is made from several of them. This
avoids flicker from parameters that are estimated for each frame. ``aniso denoise --frames`` does the
same for files: pages of TIFF files, and frames of series of volumes.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tifffile

import aniso

# %%
# A series as a microscope writes it: an OME-TIFF file with the axes T, Y, X.

truth = aniso.samples.shapes(128, noise=0.0).image
random = np.random.default_rng(0)
frames = [
    np.roll(truth, 12 * k, axis=1) + random.normal(0, 25, truth.shape) for k in range(4)
]
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "series.ome.tif"
tifffile.imwrite(
    path,
    np.clip(frames, 0, 255).astype("uint8"),
    metadata={"axes": "TYX", "PhysicalSizeX": 0.2, "PhysicalSizeY": 0.2},
)

# %%
# ``frame_axis`` says along which axis the frames are. The result goes back into a file with the
# same metadata.

picture = aniso.io.read(path)
result, plan = aniso.denoise(picture.pixels, frame_axis=0, return_info=True)
aniso.io.write(path.with_name("clean.ome.tif"), result, like=picture)
print(plan)

figure, rows = plt.subplots(2, 4, figsize=(9, 4.8), layout="constrained")
pairs = {"frame": picture.pixels, "denoised": result}
for (name, images), axes in zip(pairs.items(), rows, strict=True):
    for number, (image, panel) in enumerate(zip(images, axes, strict=True)):
        panel.imshow(image, cmap="gray", vmin=0, vmax=255)
        panel.set_title(f"{name} {number}")
        panel.axis("off")
folder.cleanup()
plt.show()
