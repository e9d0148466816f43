"""Coherence-enhancing diffusion with three contrasts, where half of the image has no lines."""

import ladder
import numpy as np

import aniso

sample = aniso.samples.fingerprint(192, period=10.0, noise=0.0, seed=8)
lines = np.arange(192) < 110
image = np.where(lines, sample.image, 127.5) + np.random.default_rng(0).normal(0, 25, sample.image.shape)
pictures = {"input\nnoise 25": image}
for word, contrast in (("too small", 1.0), ("good", 10.0), ("too large", 60.0)):
    model = aniso.CoherenceEnhancing(contrast=contrast, sigma=1.0, rho=2.5)
    pictures[f"{word}\ncontrast = {contrast:g}"] = aniso.diffuse(image, model, time=25.0, scheme=aniso.FED(6))
ladder.ladder(pictures, None, np.s_[20:100, 70:150])
