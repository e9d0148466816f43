"""The three modes of a cell as channels, the tensor as activation."""

import blocks
import matplotlib.pyplot as plt

axes = blocks.canvas(3.5)
middle = 1.85
blocks.residual(axes, middle, 3.15)
blocks.arrow(axes, (0.85, middle), (1.12, middle))
blocks.kernels(axes, 2.3, middle, 2.36, 0.9, blocks.MODES, "$K$: one channel to $X, Y, Z$")
blocks.arrow(axes, (3.48, middle), (3.75, middle))
blocks.box(axes, 4.65, middle, 1.8, 1.15, "$(aX + bY,$\n$bX + cY,$\n$\\zeta Z)$", size=14)
blocks.arrow(axes, (5.55, middle), (5.87, middle))
blocks.kernels(axes, 7.05, middle, 2.36, 0.9, blocks.MODES, "$-K^\\top$: three to one", turned=True)
blocks.arrow(axes, (8.23, middle), (8.58, middle))
axes.text(8.4, middle + 0.22, "$\\tau$", ha="center", va="center", fontsize=14)
text = "smooth, gradient, $D = (a\\ b;\\ b\\ c)$ and $\\zeta$"
blocks.tensor(axes, 0.5, middle, text, 2.5, 3.6, (4.65, middle - 0.575))
plt.show()
