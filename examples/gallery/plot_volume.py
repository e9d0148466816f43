"""
Fibres in a volume
==================

Volumes (D, H, W) are denoised like images, in all three dimensions. The example has curved fibres under
strong noise, with known ground truth.
"""

import matplotlib.pyplot as plt
import numpy as np

import aniso

sample = aniso.samples.fibres(64, count=12, noise=60.0, seed=7)
volume = sample.image.astype(np.float32)


def psnr(result):
    return 10 * np.log10(255**2 / np.mean((result - sample.truth) ** 2))


# %%
# ``denoise`` estimates the noise level and mixes edge- and coherence-enhancing diffusions, without
# knowledge of the ground truth.

result, info = aniso.denoise(volume, return_info=True)
print(info)

# %%
# For comparison, each slice is denoised separately, without its neighbours.

slices = np.stack([aniso.denoise(image) for image in volume])

# %%
# One slice and the maximum projection, the largest value along the first axis, in which single noisy
# voxels hide the structures behind them. All panels have the same grey range.

panels = {
    f"noise\n{psnr(volume):.1f} dB": volume,
    f"slice by slice\n{psnr(slices):.1f} dB": slices,
    f"as a volume\n{psnr(result):.1f} dB": result,
    "truth": sample.truth,
}
middle = len(volume) // 2
figure, axes = plt.subplots(2, 4, figsize=(10, 5.6), layout="constrained")
for (top, bottom), (name, shown) in zip(axes.T, panels.items(), strict=True):
    top.imshow(shown[middle], cmap="gray", vmin=0, vmax=255)
    top.set_title(name, fontsize=13)
    bottom.imshow(shown.max(axis=0), cmap="gray", vmin=0, vmax=255)
for panel in axes.flat:
    panel.set(xticks=[], yticks=[])
axes[0, 0].set_ylabel(f"slice {middle}", fontsize=13)
axes[1, 0].set_ylabel("maximum projection", fontsize=13)
plt.show()
