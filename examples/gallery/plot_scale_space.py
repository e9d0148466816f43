"""
Scale space of a photograph
===========================

Diffusion gradually simplifies an image: the longer the time, the fewer details remain. The images at all
times form a scale space. ``aniso.scale_space`` yields the images at given times, each computed from the
previous one.
"""

import matplotlib.pyplot as plt

import aniso

photograph = aniso.samples.photograph("astronaut")[:256, 96:352]
times = [0, 4, 16, 64, 256]

# %%
# Homogeneous diffusion for a time t is a Gaussian of standard deviation √(2t): it removes details and
# blurs edges. Edge-enhancing diffusion removes small and weak structures first and preserves the contours
# of the others. The photograph has three channels along its last axis, which share one tensor, so that
# their edges stay aligned. The pixels are integers from 0 to 255, and the results are float32 in the same
# range.

models = {
    "homogeneous": aniso.Homogeneous(),
    "edge-enhancing": aniso.EdgeEnhancing(contrast=5.0, sigma=1.0),
}

figure, axes = plt.subplots(2, 5, figsize=(10, 4.4), layout="constrained")
for row, (name, model) in zip(axes, models.items(), strict=True):
    row[0].set_ylabel(name, fontsize=13)
    snapshots = aniso.scale_space(
        photograph, model, times, scheme=aniso.FED(cycles=8), channel_axis=-1
    )
    for panel, (_, image) in zip(row, snapshots, strict=True):
        panel.imshow(image.clip(0, 255) / 255)
        panel.set(xticks=[], yticks=[])
for panel, time in zip(axes[0], times, strict=True):
    panel.set_title(f"t = {time:g}", fontsize=13)
plt.show()

# %%
# The images are computed lazily. A loop may stop at any time, here as soon as the image has lost half of
# its variance.

snapshots = aniso.scale_space(
    photograph, models["homogeneous"], [2.0**k for k in range(12)], channel_axis=-1
)
for time, image in snapshots:
    left = image.var(axis=(0, 1)).mean() / photograph.var(axis=(0, 1)).mean()
    print(f"t = {time:4g}: {left:4.0%} of the variance")
    if left < 0.5:
        break
