"""Error over contrast divided by the noise level, at three noise scales; each at its best time."""

import matplotlib.pyplot as plt
import numpy as np

import aniso

SHARES = np.geomspace(0.05, 1.6, 11)
TIMES = [0.5, 1, 1.5, 2, 3, 4.5, 6, 9, 13, 20, 30]
SAMPLES = {"lighthouse": (aniso.samples.lighthouse, -1), "shapes": (aniso.samples.shapes, None)}
LOOKS = {"lighthouse": "-", "shapes": "--"}
COLOURS = {10: "C0", 25: "C1", 50: "C3"}


def least_error(sample, channel_axis, model):
    errors = []
    for _, image in aniso.scale_space(
        sample.image, model, TIMES, channel_axis=channel_axis, scheme=aniso.FED(2)
    ):
        errors.append(np.sqrt(np.mean((image - sample.truth) ** 2)))
    return min(errors)


figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", sharey=True)
for panel, sigma in zip(axes, (0.5, 1.0, 2.0), strict=True):
    for name, (make, channel_axis) in SAMPLES.items():
        for noise, colour in COLOURS.items():
            sample = make(128, noise=noise)
            errors = [
                least_error(sample, channel_axis, aniso.EdgeEnhancing(contrast=share * noise, sigma=sigma))
                / noise
                for share in SHARES
            ]
            label = f"{name}, noise {noise}"
            panel.plot(SHARES, errors, LOOKS[name], color=colour, linewidth=1.8, label=label)
            best = int(np.argmin(errors))
            panel.plot(SHARES[best], errors[best], "o", color=colour)
    panel.set_xscale("log")
    panel.set_xticks([0.05, 0.1, 0.2, 0.4, 0.8, 1.6], ["0.05", "0.1", "0.2", "0.4", "0.8", "1.6"])
    panel.minorticks_off()
    panel.set_title(f"sigma = {sigma:g}", fontsize=13)
    panel.set_xlabel("contrast / noise", fontsize=12)
    panel.grid(alpha=0.3)
axes[0].set(ylabel="error / noise", ylim=(0, 1))
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
plt.show()
