"""Strong noise: noisy, denoised by chosen diffusions and by the learned one, and without noise."""

import matplotlib.pyplot as plt
import numpy as np

import aniso

random = np.random.default_rng(0)
man = aniso.samples.photograph("camera")[100:356, 130:386].astype(np.float32)
face = aniso.samples.photograph("astronaut")[:256, 100:356].astype(np.float32)

figure, axes = plt.subplots(2, 4, figsize=(11, 5.9), layout="constrained")
for row, truth, level in zip(axes, (man, face), (50.0, 40.0), strict=True):
    axis = -1 if truth.ndim == 3 else None
    noisy = truth + level * random.standard_normal(truth.shape, np.float32)
    chosen, learned = (
        aniso.denoise(noisy, noise=level, method=method, channel_axis=axis)
        for method in ("diffusion", "learned")
    )
    titles = (f"noise {level:g}", 'method="diffusion"', 'method="learned"', "without noise")
    for panel, image, title in zip(row, (noisy, chosen, learned, truth), titles, strict=True):
        panel.imshow(np.clip(image, 0, 255) / 255, cmap="gray", vmin=0, vmax=1)
        error = np.sqrt(np.mean((image - truth) ** 2))
        panel.set_title(title, fontsize=12)
        panel.set_xlabel(f"error {error:.1f}" if error else "", fontsize=11)
        panel.set(xticks=[], yticks=[])
plt.show()
