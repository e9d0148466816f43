"""Edge-enhancing diffusion for three times."""

import ladder
import numpy as np

import aniso

sample = aniso.samples.lighthouse(192, noise=25.0)
model = aniso.EdgeEnhancing(contrast=5.0, sigma=1.0)
times = {1.0: "too short", 6.0: "good", 200.0: "too long"}
pictures = {"input\nnoise 25": sample.image}
for time, image in aniso.scale_space(
    sample.image, model, list(times), channel_axis=-1, scheme=aniso.FED(cycles=10)
):
    pictures[f"{times[time]}\ntime = {time:g}"] = image
ladder.ladder(pictures, sample.truth, np.s_[66:130, 116:180])
