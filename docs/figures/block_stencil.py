"""The entries of the stencil, computed first and then applied."""

import blocks
import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

ENTRIES = (
    ("$\\frac{w_1}{2}$", "$w_2$", "$\\frac{w_3}{2}$"),
    ("$w_0$", "$-\\Sigma$", "$w_0$"),
    ("$\\frac{w_3}{2}$", "$w_2$", "$\\frac{w_1}{2}$"),
)
axes = blocks.canvas(3.5)
middle, size = 1.6, 0.52
blocks.residual(axes, middle, 3.15)
blocks.box(axes, 7.1, middle, 1.9, 0.9, "$\\Sigma$ entries ·\nneighbours", size=13.5)
blocks.arrow(axes, (8.05, middle), (8.58, middle))
blocks.box(axes, 2.15, middle, 1.5, 0.9, "smooth,\ngradient, $D$", "tensor", 13)
blocks.arrow(axes, (0.85, middle), (1.4, middle))
blocks.arrow(axes, (2.9, middle), (3.35, middle))
blocks.box(axes, 4.45, middle, 2.2, 1.9, kind="tensor")
for row, line in enumerate(ENTRIES):
    for column, entry in enumerate(line):
        x, y = 4.45 + (column - 1) * size, middle + (1 - row) * size
        axes.add_patch(
            Rectangle((x - size / 2, y - size / 2), size, size, facecolor="white", edgecolor="0.6")
        )
        axes.text(x, y, entry, ha="center", va="center", fontsize=13)
axes.text(4.45, middle + 1.12, "nine entries per pixel", ha="center", va="center", fontsize=12.5)
blocks.arrow(axes, (5.55, middle), (6.15, middle))
blocks.arrow(axes, (0.5, middle - 0.3), (0.5, 0.3), (7.1, 0.3), (7.1, middle - 0.45))
axes.text(8.33, middle + 0.22, "$\\tau$", ha="center", va="center", fontsize=14)
plt.show()
