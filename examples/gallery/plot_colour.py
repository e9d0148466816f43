"""
Colours together or one by one
==============================

An edge in a colour image is one edge, not three. With ``channel_axis`` all channels diffuse with the one
tensor that their mean structure gives. If each channel diffuses for itself, its edges end up in slightly
different places, and coloured fringes appear; noise is also harder to tell from structure in one channel
than in three.
"""

import matplotlib.pyplot as plt
import numpy as np

import aniso

sample = aniso.samples.lighthouse(noise=40.0)
model = aniso.EdgeEnhancing(contrast=7.0, sigma=1.0)

# %%
# The same model and time, with one tensor for all channels and with one for each.

together = aniso.diffuse(sample.image, model, 10.0, channel_axis=-1)
one_by_one = np.stack(
    [aniso.diffuse(sample.image[..., k], model, 10.0) for k in range(3)], axis=-1
)


def error(image):
    return np.sqrt(np.mean((image - sample.truth) ** 2))


pictures = {
    "input": sample.image,
    "one by one": one_by_one,
    "together": together,
    "truth": sample.truth,
}
part = np.s_[60:124, 48:112]
figure, axes = plt.subplots(2, 4, figsize=(10, 5.4), layout="constrained")
for (top, bottom), (name, picture) in zip(axes.T, pictures.items(), strict=True):
    shown = np.clip(picture / 255, 0, 1)
    top.imshow(shown)
    bottom.imshow(shown[part])
    top.set_title(
        name if name == "truth" else f"{name}: error {error(picture):.1f}", fontsize=14
    )
    for panel in (top, bottom):
        panel.set(xticks=[], yticks=[])
plt.show()

# %%
# Channels may be anything that shares its edges: bands of a satellite, energies of a detector, several
# recordings of one scene. They need not be three, and they may lie along any axis.

bands = np.moveaxis(
    np.concatenate([sample.image, sample.image[..., :2]], axis=-1), -1, 0
)
print(bands.shape, "→", aniso.diffuse(bands, model, 10.0, channel_axis=0).shape)
