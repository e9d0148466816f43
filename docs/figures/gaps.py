"""Restored contrast of a line in the middle of a gap, over time and over the integration scale."""

import matplotlib.pyplot as plt
import numpy as np

import aniso

PERIOD = 10.0


def lines(gap):
    """Straight lines at 30 degrees, ten pixels apart, with a grey disc of this diameter in the middle."""
    y, x = np.mgrid[:129, :129] - 64.0
    across = y * np.cos(np.pi / 6) - x * np.sin(np.pi / 6)
    truth = 127.5 - 127.5 * np.cos(2 * np.pi * across / PERIOD)
    return np.where(np.hypot(y, x) < gap / 2, 127.5, truth)


def depth(image):
    """1 if the line is as dark as elsewhere, 0 if the middle of the gap is as grey as at first."""
    return 1 - image[64, 64] / 127.5


figure, (over_time, over_rho) = plt.subplots(1, 2, figsize=(10, 3.5), layout="constrained", sharey=True)
shares = np.array([0.0625, 0.125, 0.25, 0.5, 1, 2, 4])
rhos = np.array([0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8])
for gap, colour in ((4, "C0"), (8, "C2"), (12, "C3")):
    model = aniso.CoherenceEnhancing(contrast=5.0, sigma=1.0, rho=max(3.0, gap / 2))
    space = aniso.scale_space(lines(gap), model, shares * gap**2, scheme=aniso.FED(4))
    over_time.plot(
        shares, [depth(image) for _, image in space], "o-", color=colour, label=f"gap of {gap} pixels"
    )
    found = []
    for rho in rhos:
        model = aniso.CoherenceEnhancing(contrast=5.0, sigma=1.0, rho=rho)
        found.append(depth(aniso.diffuse(lines(gap), model, time=gap**2, scheme=aniso.FED(6))))
    over_rho.plot(rhos, found, "o-", color=colour)
over_time.set_xscale("log", base=2)
over_time.set_xticks(shares, ["1/16", "1/8", "1/4", "1/2", "1", "2", "4"])
over_time.set_xlabel("time / squared width of the gap", fontsize=12)
over_time.set_ylabel("line in the gap", fontsize=12)
over_time.legend(fontsize=11)
over_rho.set_xlabel("rho, for a time of the squared width", fontsize=12)
for panel in (over_time, over_rho):
    panel.set(ylim=(0, 1.05))
    panel.grid(alpha=0.3)
plt.show()
