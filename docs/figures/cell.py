"""Pixels, cells and ghost cells of a small image, and the three modes of one cell."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

HEIGHT, WIDTH = 3, 4
BLUE, ORANGE, GREY = "#1f6fb4", "#d9661f", "0.55"
MODES = {
    "$X$: gradient along $x$": [[-1, 1], [-1, 1]],
    "$Y$: gradient along $y$": [[-1, -1], [1, 1]],
    "$Z$: hourglass": [[1, -1], [-1, 1]],
}

figure, (grid, *cells) = plt.subplots(
    1, 4, figsize=(10, 3.1), width_ratios=[2.1, 1, 1, 1], layout="constrained"
)

for y in range(HEIGHT + 1):
    for x in range(WIDTH + 1):
        ghost = y in (0, HEIGHT) or x in (0, WIDTH)
        grid.add_patch(
            Rectangle(
                (x - 1, y - 1),
                1,
                1,
                facecolor="#fbe3d2" if ghost else "#dcebf7",
                edgecolor="white",
                linewidth=2,
            )
        )
        grid.plot(x - 0.5, y - 0.5, "s", color=ORANGE if ghost else BLUE, markersize=4)
grid.add_patch(Rectangle((-0.5, -0.5), WIDTH, HEIGHT, fill=False, edgecolor="0.2", linewidth=1.5))
inside = np.mgrid[:HEIGHT, :WIDTH].reshape(2, -1)
padded = np.mgrid[-1 : HEIGHT + 1, -1 : WIDTH + 1].reshape(2, -1)
grid.plot(padded[1], padded[0], "o", color="white", markeredgecolor=GREY, markersize=8)
grid.plot(inside[1], inside[0], "o", color="0.2", markersize=8)
grid.set(xlim=(-1.3, WIDTH + 0.3), ylim=(HEIGHT + 0.3, -1.3), aspect="equal")
grid.set_title("3 × 4 pixels, 4 × 5 cells", fontsize=12)
grid.set_axis_off()

corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
for axes, (title, signs) in zip(cells, MODES.items(), strict=True):
    axes.add_patch(Rectangle((0, 0), 1, 1, facecolor="#dcebf7", edgecolor=GREY))
    for y, x in corners:
        sign = signs[y][x]
        axes.plot(x, y, "o", color=ORANGE if sign > 0 else BLUE, markersize=26)
        label = "+½" if sign > 0 else "−½"
        axes.text(x, y, label, color="white", ha="center", va="center", fontsize=11)
        axes.text(x, y + (0.33 if y else -0.33), f"$u_{{{y}{x}}}$", ha="center", va="center", fontsize=12)
    axes.set(xlim=(-0.4, 1.4), ylim=(1.55, -0.55), aspect="equal")
    axes.set_title(title, fontsize=12)
    axes.set_axis_off()
plt.show()
