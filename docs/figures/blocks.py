"""Elements of the drawings of residual blocks: boxes, arrows, kernels as grids of signs."""

from itertools import pairwise

import matplotlib.pyplot as plt
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

BLUE, ORANGE, LINE = "#1f6fb4", "#d9661f", "0.25"
FILLS = {"image": "#ececec", "kernels": "#eef5fb", "activation": "#fdf0e6", "tensor": "#edf7ee"}
WIDTH = 10.0

ALONG_X = ([[-1, 1], [0, 0]], [[0, 0], [-1, 1]])
ALONG_Y = ([[-1, 0], [1, 0]], [[0, -1], [0, 1]])
FALLING = ([[-1, 0], [0, 1]],)
RISING = ([[0, -1], [1, 0]],)
MODES = ([[-0.5, 0.5], [-0.5, 0.5]], [[-0.5, -0.5], [0.5, 0.5]], [[0.5, -0.5], [-0.5, 0.5]])
_NUMBERS = {-1: "−1", -0.5: "−½", 0: "0", 0.5: "½", 1: "1"}


def canvas(height):
    """Axes in inches, ten wide."""
    figure = plt.figure(figsize=(WIDTH, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(0, height))
    axes.set_axis_off()
    return axes


def box(axes, x, y, width, height, text="", kind="activation", size=13):
    """A box around its centre."""
    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.08",
            facecolor=FILLS[kind],
            edgecolor=LINE,
            linewidth=1.2,
        )
    )
    axes.text(x, y, text, ha="center", va="center", fontsize=size, linespacing=1.5)


def arrow(axes, *points):
    """A line through the points, with a head at the last one."""
    for start, end in pairwise(points[:-1]):
        axes.plot(*zip(start, end, strict=True), color=LINE, linewidth=1.4, solid_capstyle="round")
    axes.annotate(
        "",
        points[-1],
        points[-2],
        arrowprops={"arrowstyle": "-|>", "color": LINE, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0},
    )


def node(axes, x, y, sign="+"):
    """A sum."""
    axes.add_patch(Circle((x, y), 0.17, facecolor="white", edgecolor=LINE, linewidth=1.4, zorder=3))
    axes.text(x, y - 0.01, sign, ha="center", va="center", fontsize=15, zorder=4)


def kernel(axes, x, y, numbers, turned=False, size=0.3):
    """A grid of signs around its centre; turned is the negative, which belongs to the mirrored kernel."""
    rows, columns = len(numbers), len(numbers[0])
    for row in range(rows):
        for column in range(columns):
            number = -numbers[row][column] if turned else numbers[row][column]
            left, top = x + (column - columns / 2) * size, y - (row - rows / 2) * size
            colour = ORANGE if number > 0 else BLUE if number < 0 else "white"
            axes.add_patch(
                Rectangle((left, top - size), size, size, facecolor=colour, edgecolor="0.6", linewidth=0.8)
            )
            axes.text(
                left + size / 2,
                top - size / 2 - 0.005,
                _NUMBERS[number + 0.0],
                ha="center",
                va="center",
                fontsize=10.5,
                color="white" if number else "0.6",
            )


def kernels(axes, x, y, width, height, members, title, turned=False, columns=3):
    """A convolution: a box with its kernels in rows, and its name above."""
    box(axes, x, y, width, height, kind="kernels")
    axes.text(x, y + height / 2 + 0.17, title, ha="center", va="center", fontsize=12.5)
    rows = -(-len(members) // columns)
    for number, member in enumerate(members):
        row, column = divmod(number, columns)
        kernel(
            axes,
            x + (column - (min(columns, len(members)) - 1) / 2) * 0.76,
            y - (row - (rows - 1) / 2) * 0.76,
            member,
            turned,
        )


def residual(axes, y, top):
    """What all blocks share: image in, image out, and the skip connection; the sum is at x = 8.75."""
    box(axes, 0.5, y, 0.7, 0.6, "$u^k$", "image", 16)
    box(axes, 9.5, y, 0.8, 0.6, "$u^{k+1}$", "image", 16)
    node(axes, 8.75, y)
    arrow(axes, (8.92, y), (9.1, y))
    arrow(axes, (0.5, y + 0.3), (0.5, top), (8.75, top), (8.75, y + 0.17))
    axes.text(4.6, top + 0.14, "identity", ha="center", va="center", fontsize=12, color="0.35")


def tensor(axes, y, image_y, text, x, width, target):
    """The branch that looks at the image and steers the activation; target is where its arrow ends."""
    box(axes, x, y, width, 0.62, text, "tensor", 12.5)
    arrow(axes, (0.5, image_y - 0.3), (0.5, y), (x - width / 2, y))
    arrow(axes, (x + width / 2, y), (target[0], y), target)
