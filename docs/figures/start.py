"""The first result: a noisy sample, denoised without parameters."""

import ladder

import aniso

sample = aniso.samples.lighthouse(noise=25.0)
clean = aniso.denoise(sample.image, channel_axis=-1)
pictures = {"sample.image": sample.image, "clean": clean, "sample.truth": sample.truth}
ladder.ladder(pictures, sample.truth, (slice(60, 124), slice(40, 104)))
