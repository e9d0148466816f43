"""Local variance over local mean of photon noise, with the curve that is estimated."""

import matplotlib.pyplot as plt
import numpy as np

from aniso import noise, samples

truth = samples.photograph("camera").astype(float)
camera = noise.PoissonGaussian(gain=4.0, read_noise=6.0)
noisy = camera.sample(truth, np.random.default_rng(0))
found = noise.estimate(noisy)
(model,) = found.models


def blocks(values, side=8):
    """Means of blocks."""
    height, width = (n // side for n in values.shape)
    parts = values[: height * side, : width * side].reshape(height, side, width, side)
    return parts.mean(axis=(1, 3)).ravel()


# Second differences along both axes see no ramps, and keep the variance of white noise.
once = (noisy[2:] - 2 * noisy[1:-1] + noisy[:-2]) / np.sqrt(6)
twice = (once[:, 2:] - 2 * once[:, 1:-1] + once[:, :-2]) / np.sqrt(6)
means, variances = blocks(noisy[1:-1, 1:-1]), blocks(twice**2)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=[1, 1.7])
left.imshow(noisy[60:260, 120:320], cmap="gray", vmin=0, vmax=255)
left.set(title="part of the image", xticks=[], yticks=[])
greys = np.linspace(0, 255, 200)
right.plot(means, variances, ".", markersize=2.5, color="0.65", label="blocks of 8 × 8 pixels")
right.plot(greys, camera.variance(greys), "k--", linewidth=1.5, label="truth: gain 4, read noise 6")
words = f"estimate: gain {model.gain:.2f}, read noise {model.read_noise:.1f}"
right.plot(greys, model.variance(greys), color="tab:red", linewidth=2, label=words)
right.set(xlim=(-5, 255), ylim=(0, 2500), xlabel="local mean (grey values)", ylabel="local variance")
right.legend(loc="upper left", markerscale=4)
plt.show()
