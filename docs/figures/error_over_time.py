"""Error over time, for three contrasts."""

import ladder
import matplotlib.pyplot as plt
import numpy as np

import aniso

sample = aniso.samples.lighthouse(192, noise=25.0)
times = np.geomspace(0.25, 256, 21)
figure, panel = plt.subplots(figsize=(8, 3.6), layout="constrained")
for contrast, colour, words in ((1.5, "C0", "too small"), (5.0, "C2", "good"), (20.0, "C3", "too large")):
    model = aniso.EdgeEnhancing(contrast=contrast, sigma=1.0)
    space = aniso.scale_space(sample.image, model, times, channel_axis=-1, scheme=aniso.FED(2))
    errors = [ladder.error(image, sample.truth) for _, image in space]
    panel.plot(times, errors, color=colour, linewidth=2, label=f"contrast = {contrast:g}, {words}")
    best = int(np.argmin(errors))
    panel.plot(times[best], errors[best], "o", color=colour)
panel.set_xscale("log", base=2)
panel.set_xticks([0.25, 1, 4, 16, 64, 256], ["0.25", "1", "4", "16", "64", "256"])
panel.set(xlabel="time", ylabel="error in grey values", ylim=(0, 26))
panel.grid(alpha=0.3)
panel.legend()
plt.show()
