"""Four one-dimensional divergence blocks, summed."""

import blocks
import matplotlib.pyplot as plt

DIRECTIONS = (blocks.ALONG_X, blocks.FALLING, blocks.ALONG_Y, blocks.RISING)
ARROWS = "→↘↓↙"
axes = blocks.canvas(6.3)
middle, top = 3.4, 5.95
blocks.residual(axes, middle, top)
axes.plot([1.15, 1.15], [middle + 1.5 * 1.05, middle - 1.5 * 1.05], color=blocks.LINE, linewidth=1.4)
axes.plot([0.85, 1.15], [middle, middle], color=blocks.LINE, linewidth=1.4)
for number, (members, direction) in enumerate(zip(DIRECTIONS, ARROWS, strict=True)):
    y = middle + (1.5 - number) * 1.05
    axes.text(1.5, y + 0.27, f"$B_{number}$ {direction}", ha="center", va="center", fontsize=14)
    blocks.arrow(axes, (1.15, y), (1.9, y))
    blocks.kernels(axes, 2.8, y, 1.8, 0.8, members, "")
    blocks.arrow(axes, (3.7, y), (4.1, y))
    blocks.box(axes, 4.85, y, 1.5, 0.6, f"$v \\mapsto \\frac{{1}}{{2}} w_{number}\\,v$", size=15)
    blocks.arrow(axes, (5.6, y), (6.0, y))
    blocks.kernels(axes, 6.9, y, 1.8, 0.8, members, "", turned=True)
    axes.plot([7.8, 8.05], [y, y], color=blocks.LINE, linewidth=1.4)
axes.plot([8.05, 8.05], [middle + 1.5 * 1.05, middle - 1.5 * 1.05], color=blocks.LINE, linewidth=1.4)
blocks.arrow(axes, (8.05, middle), (8.58, middle))
axes.text(8.33, middle + 0.22, "$\\tau\\,\\Sigma$", ha="center", va="center", fontsize=14)
axes.text(2.8, 5.62, "$K_i$", ha="center", va="center", fontsize=14)
axes.text(6.9, 5.62, "$-K_i^\\top$", ha="center", va="center", fontsize=14)
blocks.tensor(
    axes,
    0.5,
    middle,
    "smooth, gradient, $D$, weights $w_0 \\ldots w_3$",
    2.75,
    3.8,
    (4.85, middle - 1.5 * 1.05 - 0.3),
)
plt.show()
