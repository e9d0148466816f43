"""Learned diffusivities: an initial one and two examples with their gates."""

import matplotlib.pyplot as plt
import numpy as np
import torch

import aniso
from aniso.formulas.diffusivities import weickert_diffusivity


def gated(gate):
    """The diffusivity that belongs to a gate."""
    return lambda r: 1 - gate(r) * (1 - np.exp(-r))


CURVES = {
    "start": (weickert_diffusivity, "#1f6fb4"),
    "falls later and more slowly": (gated(lambda r: 1 / (1 + np.exp(6 - 2 * r))), "#2a9d5c"),
    "rises again": (gated(lambda r: 0.9 * np.exp(-((r - 1.5) ** 2))), "#d9661f"),
}
contrast = np.linspace(0, 3, 400)
r = torch.tensor(contrast**2)
shrinking = np.exp(-(contrast**2))

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", sharex=True)
for name, (curve, colour) in CURVES.items():
    with torch.no_grad():
        learned = aniso.nn.LearnedDiffusivity(curve, dtype=torch.float64)
        axes[0].plot(contrast, learned.gate(r), color=colour, linewidth=2)
        axes[1].plot(contrast, learned(r), color=colour, linewidth=2, label=name)
axes[1].plot(contrast, weickert_diffusivity(contrast**2), "k:", linewidth=2, label="Weickert's diffusivity")
axes[1].fill_between(contrast, shrinking, 1, color="0.93", zorder=0, label="reachable range")
axes[0].set_title("gate $s(r)$", fontsize=13)
axes[1].set_title("diffusivity $g(r) = 1 - s(r)(1 - e^{-r})$", fontsize=13)
for panel in axes:
    panel.set(xlim=(0, 3), ylim=(-0.03, 1.03))
    panel.set_xlabel("$\\sqrt{r} = |\\nabla u|/\\lambda$", fontsize=12)
    panel.grid(alpha=0.3)
figure.legend(
    *axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=11
)
plt.show()
