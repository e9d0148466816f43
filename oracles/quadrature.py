"""Discretisations as sums of energies: ∫ ∇uᵀ D ∇u by a rule of quadrature in every 2×2 cell.

Nothing of aniso is used. A rule is a list of (weight, gradient of u in x, gradient of u in y); the
gradients are coefficients of the four corners u00, u01 (right), u10 (below), u11.
"""

import numpy as np

_FORWARD_X = {"top": np.array([-1.0, 1.0, 0.0, 0.0]), "bottom": np.array([0.0, 0.0, -1.0, 1.0])}
_FORWARD_Y = {"left": np.array([-1.0, 0.0, 1.0, 0.0]), "right": np.array([0.0, -1.0, 0.0, 1.0])}


def one_sided(corners):
    """Gradients from the two edges that meet in a corner, averaged over the corners named."""
    edges = {
        "00": ("top", "left"),  # forward in x, forward in y
        "01": ("top", "right"),  # backward, forward
        "10": ("bottom", "left"),  # forward, backward
        "11": ("bottom", "right"),  # backward, backward
    }
    return [
        (1 / len(corners), _FORWARD_X[edges[corner][0]], _FORWARD_Y[edges[corner][1]]) for corner in corners
    ]


def bilinear(points):
    """Gauss–Legendre quadrature of the bilinear interpolant's gradient; 2 points per axis are exact."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    nodes, weights = 0.5 * (nodes + 1), 0.5 * weights
    rule = []
    for x, weight_x in zip(nodes, weights, strict=True):
        for y, weight_y in zip(nodes, weights, strict=True):
            # shape functions (1−x)(1−y), x(1−y), (1−x)y, xy and their derivatives
            along_x = np.array([-(1 - y), 1 - y, -y, y])
            along_y = np.array([-(1 - x), -x, 1 - x, x])
            rule.append((weight_x * weight_y, along_x, along_y))
    return rule


def energy_matrix(a, b, c, rule):
    """Minus the Hessian of ½ Σ ∇uᵀ D ∇u over interior cells; rule(b) may depend on the cell."""
    height, width = a.shape[0] - 1, a.shape[1] - 1
    numbers = np.arange(height * width).reshape(height, width)
    matrix = np.zeros((numbers.size, numbers.size))
    for y in range(1, height):
        for x in range(1, width):
            corners = numbers[y - 1 : y + 1, x - 1 : x + 1].ravel()
            tensor = np.array([[a[y, x], b[y, x]], [b[y, x], c[y, x]]])
            for weight, along_x, along_y in rule(b[y, x]):
                gradient = np.array([along_x, along_y])
                matrix[np.ix_(corners, corners)] -= weight * gradient.T @ tensor @ gradient
    return matrix


#: Name of a member → the rule of quadrature that gives it, from the sign of b in the cell.
RULES = {
    "standard": lambda b: one_sided(["00", "01", "10", "11"]),
    "nonnegativity": lambda b: one_sided(["01", "10"] if b > 0 else ["00", "11"]),
    "forward-forward": lambda b: one_sided(["00", "11"]),
    "forward-backward": lambda b: one_sided(["01", "10"]),
    "finite-elements": lambda b: bilinear(2),
    "cell-centred": lambda b: bilinear(1),
}
