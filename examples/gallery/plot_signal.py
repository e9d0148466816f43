"""
Signals
=======

A one-dimensional array is a signal. In one dimension, a tensor is a number, so that edge-enhancing and
Perona–Malik diffusion are equivalent: they remove noise and preserve jumps.
"""

import matplotlib.pyplot as plt
import numpy as np

import aniso

rng = np.random.default_rng(1)
position = np.linspace(0, 1, 400)
truth = np.select(
    [position < 0.2, position < 0.45, position < 0.6, position < 0.8],
    [20.0, 90.0, 90.0 - 300 * (position - 0.45), 120.0],
    default=60.0,
)
noisy = truth + rng.normal(0, 8, truth.shape)

# %%
# ``aniso.denoise`` estimates all parameters. For comparison, a Gaussian of the best width, which blurs
# jumps.

denoised, info = aniso.denoise(noisy, return_info=True)
print(info)


def error(signal):
    return np.sqrt(np.mean((signal - truth) ** 2))


gaussians = [
    aniso.diffuse(noisy, aniso.Homogeneous(), time)
    for time in np.geomspace(0.25, 16, 13)
]
gaussian = min(gaussians, key=error)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained", sharey=True)
for panel, (name, signal) in zip(
    axes,
    {"input": noisy, "best Gaussian": gaussian, "denoise": denoised}.items(),
    strict=True,
):
    panel.plot(position, truth, color="0.7", linewidth=3, label="truth")
    panel.plot(position, signal, color="C0" if name != "input" else "0.3", linewidth=1)
    panel.set_title(f"{name}: error {error(signal):.1f}", fontsize=14)
axes[0].legend(fontsize=12)
plt.show()
