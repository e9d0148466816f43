"""The δ-stencil as Schrader, Weickert and Krause (2023) print it, entry by entry.

Nothing of aniso is used. In the paper a pixel is (i, j), the x-axis points to the right and the
y-axis to the top. The functions here take and return arrays whose rows grow downwards, with the
tensor in the axes of the array; they turn the picture, and with it the sign of b, before they
read off the printed stencil, and turn the result back.

Fields over cells have shape (H+1, W+1, ...): more axes are carried along.
"""

from typing import Any

import numpy as np


def paper_delta(a, b, c, alpha, gamma):
    """δ = αa + βb + αc with β = γ(1 − 2α) sgn(b), as in Theorem 1."""
    beta = gamma * (1 - 2 * alpha) * np.sign(b)
    return alpha * a + beta * b + alpha * c


def printed_stencil(a, b, c, delta, h=1.0):
    """The 3×3 stencil at every pixel, shape (3, 3, H, W, ...): index [1 + dy, 1 + dx, y, x]."""
    height, width = a.shape[0] - 1, a.shape[1] - 1
    a, b, c, delta = a[::-1], -b[::-1], c[::-1], delta[::-1]

    def at(field, i, j):
        """A field at (i, j). It is known where both are half-integer, else eq. (ave) averages."""
        if i == int(i):
            return 0.5 * (at(field, i - 0.5, j) + at(field, i + 0.5, j))
        if j == int(j):
            return 0.5 * (at(field, i, j + 0.5) + at(field, i, j - 0.5))
        return field[int(j + 0.5), int(i + 0.5)]

    result = np.zeros((3, 3, height, width, *a.shape[2:]))
    for j in range(height):
        for i in range(width):
            printed = [
                [
                    0.5 * at(delta - b, i - 0.5, j + 0.5),
                    at(c - delta, i, j + 0.5),
                    0.5 * at(delta + b, i + 0.5, j + 0.5),
                ],
                [
                    at(a - delta, i - 0.5, j),
                    -at(a - delta, i + 0.5, j)
                    - at(a - delta, i - 0.5, j)
                    - 0.5 * at(delta + b, i + 0.5, j + 0.5)
                    - 0.5 * at(delta + b, i - 0.5, j - 0.5)
                    - at(c - delta, i, j + 0.5)
                    - at(c - delta, i, j - 0.5)
                    - 0.5 * at(delta - b, i - 0.5, j + 0.5)
                    - 0.5 * at(delta - b, i + 0.5, j - 0.5),
                    at(a - delta, i + 0.5, j),
                ],
                [
                    0.5 * at(delta + b, i - 0.5, j - 0.5),
                    at(c - delta, i, j - 0.5),
                    0.5 * at(delta - b, i + 0.5, j - 0.5),
                ],
            ]
            # The printed top row is the one above pixel (i, j); in the array it has the smaller index.
            result[:, :, height - 1 - j, i] = np.array(printed) / h**2
    return result


def mirrored_matrix(stencils):
    """The dense matrix that applies a stencil per pixel to the image mirrored at its edges."""
    height, width = stencils.shape[2:]
    matrix = np.zeros((height, width, height, width))
    for y in range(height):
        for x in range(width):
            for dy in (-1, 0, 1):
                for dx in (-1, 0, 1):
                    inside_y = min(max(y + dy, 0), height - 1)  # u[-1] = u[0], u[H] = u[H-1]
                    inside_x = min(max(x + dx, 0), width - 1)
                    matrix[y, x, inside_y, inside_x] += stencils[1 + dy, 1 + dx, y, x]
    return matrix.reshape(height * width, height * width)


def printed_matrix(a, b, c, delta, h=1.0):
    """The dense matrix of the printed stencil with the mirror boundary."""
    return mirrored_matrix(printed_stencil(a, b, c, delta, h))


def constant_stencil(a, b, c, delta):
    """The 3×3 stencil of tensors that are the same in all cells, shape (3, 3, ...)."""
    cells = [np.broadcast_to(entry, (2, 2, *np.shape(entry))) for entry in (a, b, c, delta)]
    return printed_stencil(*cells)[:, :, 0, 0]


def periodic_norm(stencil, size=8):
    """The spectral norm of a constant 3×3 stencil, shape (3, 3, ...), on a periodic square grid.

    The matrix is circulant: its eigenvalues are the discrete Fourier transform of one row.
    """
    row = np.zeros((size, size, *stencil.shape[2:]))
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            row[dy % size, dx % size] = stencil[1 + dy, 1 + dx]
    return abs(np.fft.fft2(row, axes=(0, 1))).max(axis=(0, 1))


def collapsed(a, b, c) -> tuple[Any, Any, Any]:
    """Ghost cells whose normal flux was made 0: left and right c − b²/a, top and bottom a − b²/c."""
    a, b, c = a.copy(), b.copy(), c.copy()
    bottom, right = a.shape[0] - 1, a.shape[1] - 1
    for y in range(bottom + 1):
        for x in range(right + 1):
            on_side, on_end = x in (0, right), y in (0, bottom)
            if on_side and not on_end and a[y, x] != 0:
                c[y, x] = max(c[y, x] - b[y, x] ** 2 / a[y, x], 0.0)
            if on_end and not on_side and c[y, x] != 0:
                a[y, x] = max(a[y, x] - b[y, x] ** 2 / c[y, x], 0.0)
            if on_side or on_end:
                b[y, x] = 0.0
    return a, b, c


def on_unit_grid(a, b, c, spacing) -> tuple[Any, Any, Any]:
    """The tensor that a grid of unit spacing sees; spacing is a number or (h_y, h_x)."""
    h_y, h_x = np.broadcast_to(spacing, (2,))
    return a / h_x**2, b / (h_x * h_y), c / h_y**2
