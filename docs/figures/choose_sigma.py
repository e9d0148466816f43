"""Edge-enhancing diffusion with three noise scales, and the contrast that belongs to each."""

import ladder
import numpy as np

import aniso

sample = aniso.samples.lighthouse(192, noise=25.0)
pictures = {"input\nnoise 25": sample.image}
for word, sigma in (("too small", 0.3), ("good", 1.0), ("too large", 4.0)):
    model = aniso.EdgeEnhancing(contrast=5.0, sigma=sigma)
    pictures[f"{word}\nsigma = {sigma:g}"] = aniso.diffuse(sample.image, model, time=6.0, channel_axis=-1)
ladder.ladder(pictures, sample.truth, np.s_[66:130, 116:180])
