"""Error over the integration scale divided by the line spacing; each at its best time."""

import ladder
import matplotlib.pyplot as plt
import numpy as np

import aniso

SHARES = np.array([0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5])
COLOURS = {7: "C0", 10: "C2", 14: "C3"}


def least_error(sample, period, share):
    model = aniso.CoherenceEnhancing(contrast=5.0, sigma=0.1 * period, rho=share * period)
    space = aniso.scale_space(sample.image, model, [5, 10, 20, 40], scheme=aniso.FED(3))
    return min(ladder.error(image, sample.truth) for _, image in space)


figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", sharey=True)
for panel, make in zip(axes, (aniso.samples.fingerprint, aniso.samples.rings), strict=True):
    for period, colour in COLOURS.items():
        for noise, line in ((20, "--"), (50, "-")):
            sample = make(160, period=period, noise=noise, seed=8)
            errors = [least_error(sample, period, share) for share in SHARES]
            label = f"lines {period} pixels apart, noise {noise}"
            panel.plot(SHARES, errors, line, color=colour, linewidth=1.8, label=label)
            best = int(np.argmin(errors))
            panel.plot(SHARES[best], errors[best], "o", color=colour)
    panel.set_xscale("log")
    panel.set_xticks([0.05, 0.1, 0.2, 0.4, 0.8, 1.5], ["0.05", "0.1", "0.2", "0.4", "0.8", "1.5"])
    panel.minorticks_off()
    panel.set_title(make.__name__, fontsize=13)
    panel.set_xlabel("rho / line spacing", fontsize=12)
    panel.set(ylim=(0, 30))
    panel.grid(alpha=0.3)
axes[0].set_ylabel("error in grey values", fontsize=12)
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
plt.show()
