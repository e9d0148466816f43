"""Damping of a wave that should not change, and of the checkerboard, over the angle."""

import matplotlib.pyplot as plt
import numpy as np

import aniso

WAVELENGTH = 8  # in pixels
STENCILS = {
    "standard": (aniso.DeltaStencil.named("standard"), "#8c510a"),
    "nonnegativity": (aniso.DeltaStencil.named("nonnegativity"), "#d9661f"),
    "$\\alpha = 0.25,\\ \\gamma = 1$": (aniso.DeltaStencil(0.25, 1.0), "#2a9d5c"),
    "$\\alpha = 0.4,\\ \\gamma = 1$": (aniso.DeltaStencil(0.4, 1.0), "#1f6fb4"),
    "quality": (aniso.DeltaStencil.named("quality"), "#7b3fa0"),
    "cell-centred": (aniso.DeltaStencil.named("cell-centred"), "0.25"),
}


def damping_rate(a, b, c, stencil, theta_x, theta_y):
    """The symbol of −h²A for constant tensors, from the stencil's entries."""
    shape = (4, 4)
    rates = []
    for entry_a, entry_b, entry_c, x, y in zip(a, b, c, theta_x, theta_y, strict=True):
        tensor = (np.full(shape, entry) for entry in (entry_a, entry_b, entry_c))
        kernel = aniso.stencil.entries(*tensor, stencil)[:, :, 1, 1]
        offset = np.arange(-1, 2)
        rates.append(-(kernel * np.cos(offset * x + offset[:, None] * y)).sum())
    return np.array(rates)


angle = np.linspace(0, np.pi / 2, 181)
wave = 2 * np.pi / WAVELENGTH
# diffusion along the crests of the wave, none across them
a, b, c = np.sin(angle) ** 2, -np.sin(angle) * np.cos(angle), np.cos(angle) ** 2

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
for name, (stencil, colour) in STENCILS.items():
    rate = damping_rate(a, b, c, stencil, wave * np.cos(angle), wave * np.sin(angle))
    zeta = stencil.hourglass_weight(a, b, c)
    left.plot(np.rad2deg(angle), np.maximum(rate, 1e-12), color=colour, linewidth=2, label=name)
    leading = wave**4 / 16 * np.sin(2 * angle) ** 2 * zeta
    left.plot(np.rad2deg(angle), np.maximum(leading, 1e-12), color=colour, linestyle=":", linewidth=2)
    right.plot(np.rad2deg(angle), 4 * zeta, color=colour, linewidth=2, label=name)
left.set_title(f"wave of length {WAVELENGTH} pixels: should be 0", fontsize=12)
left.set(yscale="log", ylim=(1e-6, 4e-2))
left.set_ylabel("damping rate × $h^2$", fontsize=12)
right.set_title("checkerboard: should not be 0", fontsize=12)
for panel in (left, right):
    panel.set(xlim=(0, 90), xticks=np.arange(0, 91, 15))
    panel.set_xlabel("angle $\\varphi$ of the wave vector in degrees", fontsize=12)
    panel.grid(alpha=0.3)
figure.legend(
    *right.get_legend_handles_labels(),
    loc="outside lower center",
    ncols=6,
    fontsize=10,
    frameon=False,
)
plt.show()
