"""Edge-enhancing diffusion with three contrasts."""

import ladder
import numpy as np

import aniso

sample = aniso.samples.lighthouse(192, noise=25.0)
pictures = {"input\nnoise 25": sample.image}
for word, contrast in (("too small", 1.5), ("good", 5.0), ("too large", 20.0)):
    model = aniso.EdgeEnhancing(contrast=contrast, sigma=1.0)
    pictures[f"{word}\ncontrast = {contrast:g}"] = aniso.diffuse(
        sample.image, model, time=6.0, channel_axis=-1
    )
ladder.ladder(pictures, sample.truth, np.s_[66:130, 116:180])
