"""Correlated noise, denoised as white noise and with its correlation."""

import ladder
import numpy as np

import aniso
from aniso import noise

truth = aniso.samples.lighthouse(192, noise=0.0).truth
model = noise.Gaussian(20.0, correlation=1.0)
random = np.random.default_rng(0)
noisy = np.stack([model.sample(truth[..., k], random) for k in range(3)], axis=-1)
white = aniso.denoise(noisy, noise=20.0, channel_axis=-1)
clean, plan = aniso.denoise(noisy, channel_axis=-1, return_info=True)
found = max(one.correlation for one in plan.noise_models)
pictures = {
    "noise over several\npixels, level 20": noisy,
    "as white noise\nnoise=20": white,
    f"denoise(image)\ncorrelation found: {found:.2g}": clean,
    "truth\n": truth,
}
ladder.ladder(pictures, truth, np.s_[66:130, 116:180])
