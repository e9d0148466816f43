"""Largest stable step over α: the sharp limit, the published limit, and measurements."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D

import aniso


def largest_eigenvalue(stencil, lambda1, lambda2, angles=17, size=16):
    """Of −A for constant tensors of all orientations on a periodic grid."""
    largest = 0.0
    for angle in np.linspace(0, np.pi, angles):
        cosine, sine = np.cos(angle), np.sin(angle)
        a = np.full((4, 4), lambda1 * cosine**2 + lambda2 * sine**2)
        b = np.full((4, 4), (lambda1 - lambda2) * cosine * sine)
        c = np.full((4, 4), lambda1 * sine**2 + lambda2 * cosine**2)
        kernel = np.zeros((size, size))
        kernel[:3, :3] = aniso.stencil.entries(a, b, c, stencil)[:, :, 1, 1]
        symbol = np.fft.fft2(np.roll(kernel, (-1, -1), (0, 1)))
        largest = max(largest, -symbol.real.min())
    return largest


alphas = np.linspace(0, 0.5, 101)
sparse = np.linspace(0, 0.5, 11)
cases = [
    ("homogeneous diffusion, $\\lambda_1 = \\lambda_2 = 1$", 1.0, {1.0: "#1f6fb4"}),
    (
        "one direction only, $\\lambda_1 = 1$, $\\lambda_2 = 0$",
        0.0,
        {1.0: "#1f6fb4", 0.0: "#2a9d5c", -1.0: "#d9661f"},
    ),
]

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
for panel, (title, lambda2, colours) in zip(axes, cases, strict=True):
    for gamma, colour in colours.items():
        family = [aniso.DeltaStencil(alpha, gamma) for alpha in alphas]
        sharp = [2 / aniso.stability.spectral_bound(s, 1.0, lambda2) for s in family]
        paper = [2 / aniso.stability.paper_bound(s, 1.0, lambda2) for s in family]
        exact = [2 / largest_eigenvalue(aniso.DeltaStencil(s, gamma), 1.0, lambda2) for s in sparse]
        label = "any $\\gamma$" if lambda2 == 1 else f"$\\gamma = {gamma:g}$"
        # γ = 0 and γ = 1 have the same sharp limit: draw one of them on top of the other
        wide = gamma == 1 and lambda2 == 0
        panel.plot(
            alphas,
            sharp,
            color=colour,
            linewidth=5 if wide else 2.2,
            label=label,
            alpha=0.45 if wide else 1,
        )
        panel.plot(alphas, paper, color=colour, linestyle="--", linewidth=1.6)
        panel.plot(sparse, exact, "o", color=colour, markersize=5 if not wide else 8, clip_on=False)
    panel.set_title(title, fontsize=12)
    panel.set_xlabel("$\\alpha$", fontsize=12)
    panel.legend(loc="lower right", fontsize=11)
    panel.grid(alpha=0.3)
    panel.set(xlim=(0, 0.5), ylim=(0.2, 0.53))
styles = [
    Line2D([], [], color="0.3", linewidth=2.2, label="sharp limit"),
    Line2D([], [], color="0.3", linestyle="--", linewidth=1.6, label="published limit"),
    Line2D([], [], color="0.3", marker="o", linestyle="", label="measured on constant tensors"),
]
figure.legend(handles=styles, loc="outside lower center", ncols=3, fontsize=11, frameon=False)
axes[0].set_ylabel("largest stable step $\\tau / h^2$", fontsize=12)
plt.show()
