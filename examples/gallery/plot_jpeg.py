"""
Noise in JPEG files
===================

Compression changes noise: fine grains are rounded away, and colours are usually stored at half of
the resolution, so that the rest is correlated. ``aniso.denoise`` recognises this by the blocks of
the file. With little compression, giving the level may still be better.
"""

import io

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import aniso

photograph = aniso.samples.photograph("astronaut")[40:200, 140:300].astype(float)
noisy = photograph + np.random.default_rng(0).normal(0, 15, photograph.shape)


def compress(image, quality):
    file = io.BytesIO()
    Image.fromarray(image.clip(0, 255).astype(np.uint8)).save(
        file, "JPEG", quality=quality
    )
    return np.asarray(Image.open(file))


def error(image):
    return np.sqrt(np.mean((image - photograph) ** 2))


# %%
# The level is estimated, or given as it was before the compression. The error is the root mean
# square distance from the photograph, and ``plan.remark`` a note on the result, or None.

figure, axes = plt.subplots(2, 3, figsize=(10, 7), layout="constrained")
for row, quality in zip(axes, (95, 50), strict=True):
    image = compress(noisy, quality)
    found, plan = aniso.denoise(image, channel_axis=-1, return_info=True)
    print(f"quality {quality}: level {plan.noise:.1f}, note: {plan.remark}")
    given = aniso.denoise(image, noise=15.0, channel_axis=-1)
    panels = {f"quality {quality}": image, 'noise="auto"': found, "noise=15": given}
    for panel, (name, shown) in zip(row, panels.items(), strict=True):
        panel.imshow(shown.clip(0, 255) / 255)
        panel.set_title(f"{name}\nerror {error(shown):.1f}", fontsize=13)
        panel.set(xticks=[], yticks=[])
plt.show()

# %%
# The blocks and ringing of strong compression are not noise. They are not modelled, and partly
# remain.
