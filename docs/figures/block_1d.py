"""The residual block of one-dimensional diffusion."""

import blocks
import matplotlib.pyplot as plt

axes = blocks.canvas(2.75)
blocks.residual(axes, 1.35, 2.35)
blocks.kernels(axes, 2.5, 1.35, 1.1, 0.6, [[[-1, 1]]], "$K_1 = D^+$")
blocks.box(axes, 4.75, 1.35, 1.8, 0.6, "$\\sigma_1 = \\tau\\,\\Phi$", size=15)
blocks.kernels(axes, 7.0, 1.35, 1.1, 0.6, [[[-1, 1]]], "$K_2 = D^- = -K_1^\\top$", turned=True)
blocks.arrow(axes, (0.85, 1.35), (1.95, 1.35))
blocks.arrow(axes, (3.05, 1.35), (3.85, 1.35))
blocks.arrow(axes, (5.65, 1.35), (6.45, 1.35))
blocks.arrow(axes, (7.55, 1.35), (8.58, 1.35))
note = "$\\Phi(v) = g(v^2/\\lambda^2)\\,v$"
axes.text(4.75, 0.55, note, ha="center", va="center", fontsize=14)
plt.show()
