"""Coherence-enhancing diffusion with three integration scales."""

import ladder
import numpy as np

import aniso

sample = aniso.samples.fingerprint(192, period=10.0, noise=50.0, seed=8)
pictures = {"input\nlines with gaps": sample.image}
for word, rho in (("too small", 0.5), ("good", 3.0), ("too large", 15.0)):
    model = aniso.CoherenceEnhancing(contrast=5.0, sigma=1.0, rho=rho)
    pictures[f"{word}\nrho = {rho:g}"] = aniso.diffuse(sample.image, model, time=25.0, scheme=aniso.FED(6))
ladder.ladder(pictures, sample.truth, np.s_[20:100, 40:120])
