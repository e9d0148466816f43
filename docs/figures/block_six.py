"""Two convolutions, one activation, one summation."""

import blocks
import matplotlib.pyplot as plt

SIX = (*blocks.ALONG_X, *blocks.ALONG_Y, *blocks.FALLING, *blocks.RISING)
axes = blocks.canvas(4.0)
middle = 2.1
blocks.residual(axes, middle, 3.65)
blocks.arrow(axes, (0.85, middle), (1.25, middle))
blocks.kernels(axes, 2.45, middle, 2.4, 1.7, SIX, "$K$: one channel to six")
blocks.arrow(axes, (3.65, middle), (3.95, middle))
blocks.box(axes, 4.75, middle, 1.6, 0.7, "$v \\mapsto \\frac{1}{2}\\,w \\cdot v$", size=15)
blocks.arrow(axes, (5.55, middle), (5.85, middle))
blocks.kernels(axes, 7.05, middle, 2.4, 1.7, SIX, "$-K^\\top$: six to one", turned=True)
blocks.arrow(axes, (8.25, middle), (8.58, middle))
blocks.tensor(axes, 0.5, middle, "smooth, gradient, $D$, weights $w$", 2.5, 3.0, (4.75, middle - 0.35))
axes.text(4.95, 0.5, "$w = (w_0, w_0, w_2, w_2, w_1, w_3)$", ha="left", va="center", fontsize=13)
axes.text(8.4, middle + 0.22, "$\\tau$", ha="center", va="center", fontsize=14)
plt.show()
