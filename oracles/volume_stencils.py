"""The stencils of volumes as their definitions read: plain loops over voxels, directions, cells and corners.

Nothing of aniso is used. Tensors are arrays (D+1, H+1, W+1, 3, 3) over the cells, in the order of the axes
z, y, x; cell (i, j, k) has voxel (i, j, k) at its last corner. Matrices are dense.
"""

import itertools
from functools import partial

import numpy as np

AXES = (0, 1, 2)
PLANES = ((0, 1), (0, 2), (1, 2))
CORNERS = tuple(itertools.product((0, 1), repeat=3))
SIGNS = 2 * np.array(CORNERS) - 1


def on_unit_grid(tensor, spacing):
    """d_ij/(h_i h_j): the tensors that a grid of unit spacing sees."""
    h = np.broadcast_to(spacing, (3,))
    return tensor / np.outer(h, h)


def collapsed(tensor):
    """In cells on the boundary D_tt − D_tN D_NN⁺ D_Nt with N the normal axes, and no mixed entries."""
    result = np.array(tensor)
    for cell in np.ndindex(tensor.shape[:3]):
        normal = [axis for axis in AXES if cell[axis] in (0, tensor.shape[axis] - 1)]
        tangential = [axis for axis in AXES if axis not in normal]
        if not normal:
            continue
        whole = tensor[cell]
        mixed = whole[np.ix_(tangential, normal)]
        inverse = np.linalg.pinv(whole[np.ix_(normal, normal)], hermitian=True)
        left = whole[np.ix_(tangential, tangential)] - mixed @ inverse @ mixed.T
        result[cell] = np.diag(np.diag(whole))
        result[cell][np.ix_(tangential, tangential)] = left
    return result


def _inside(position, shape):
    """The voxel of which a position outside is the mirror image, at a distance of at most one."""
    return tuple(min(max(p, 0), n - 1) for p, n in zip(position, shape, strict=True))


def _number(position, shape):
    return int(np.ravel_multi_index(_inside(position, shape), shape))


def _cells_between(voxel, neighbour):
    """The cells that touch both: four for neighbours along an axis, two across the diagonal of a face."""
    spans = []
    for p, q in zip(voxel, neighbour, strict=True):
        # Cell c lies between voxels c − 1 and c.
        spans.append((max(p, q),) if p != q else (p, p + 1))
    return list(itertools.product(*spans))


def split_matrix(tensor, alpha):
    """Nine 1-D diffusions: w_i = d_ii − δ_ij − δ_ik along axes, δ_ij ± d_ij along the diagonals of faces.

    δ_ij = α(d_ii + d_jj − d_kk). Every 1-D diffusion is the difference of w·(u ahead − u) and
    w·(u − u behind) over the squared distance; w at the midpoint of two voxels is the mean over the cells
    that touch both.
    """
    shape = tuple(n - 1 for n in tensor.shape[:3])

    def delta(cell, i, j):
        (k,) = set(AXES) - {i, j}
        d = np.diag(tensor[cell])
        return alpha * (d[i] + d[j] - d[k])

    def along_axis(cell, i):
        j, k = (axis for axis in AXES if axis != i)
        return tensor[cell][i, i] - delta(cell, i, j) - delta(cell, i, k)

    def along_diagonal(cell, i, j, sign):
        return delta(cell, i, j) + sign * tensor[cell][i, j]

    unit = np.eye(3, dtype=int)
    directions = [(unit[i], partial(along_axis, i=i)) for i in AXES]
    for i, j in PLANES:
        for sign in (1, -1):
            directions.append((unit[i] + sign * unit[j], partial(along_diagonal, i=i, j=j, sign=sign)))

    matrix = np.zeros((np.prod(shape),) * 2)
    for voxel in np.ndindex(shape):
        here = _number(voxel, shape)
        for step, weight in directions:
            for way in (1, -1):
                neighbour = tuple(p + way * int(s) for p, s in zip(voxel, step, strict=True))
                at_midpoint = np.mean([weight(cell) for cell in _cells_between(voxel, neighbour)])
                rate = at_midpoint / np.dot(step, step)
                matrix[here, _number(neighbour, shape)] += rate
                matrix[here, here] -= rate
    return matrix


def plane_zeta(d, i, j, alpha, gamma, beta):
    """ζ = d_ii + d_jj − 2δ of the image in the plane of two axes."""
    oblique = gamma * (1 - 2 * alpha) * abs(d[i, j]) if beta is None else beta * d[i, j]
    return d[i, i] + d[j, j] - 2 * (alpha * (d[i, i] + d[j, j]) + oblique)


def cell_matrix(d, alpha, gamma, beta=None):
    """8×8: Σ d_ij g_i g_j + Σ ζ_k ρ_k² + κt² as a form of the corner values, κ the mean of the ζ_k."""
    gradient = [0.25 * SIGNS[:, i] for i in AXES]
    energy = sum(d[i, j] * np.outer(gradient[i], gradient[j]) for i in AXES for j in AXES)
    zetas = []
    for i, j in PLANES:
        hourglass = 0.25 * SIGNS[:, i] * SIGNS[:, j]
        zetas.append(plane_zeta(d, i, j, alpha, gamma, beta))
        energy = energy + zetas[-1] * np.outer(hourglass, hourglass)
    last = 0.25 * SIGNS.prod(axis=1)
    return energy + np.mean(zetas) * np.outer(last, last)


def delta_matrix(tensor, alpha, gamma, beta=None):
    """Minus the cells' matrices, added up; mirrored voxels are the voxels they mirror and have no row."""
    shape = tuple(n - 1 for n in tensor.shape[:3])
    matrix = np.zeros((np.prod(shape),) * 2)
    for cell in np.ndindex(tensor.shape[:3]):
        energy = cell_matrix(tensor[cell], alpha, gamma, beta)
        corners = [tuple(c - 1 + s for c, s in zip(cell, corner, strict=True)) for corner in CORNERS]
        for row, voxel in enumerate(corners):
            if voxel != _inside(voxel, shape):
                continue
            for column, neighbour in enumerate(corners):
                matrix[_number(voxel, shape), _number(neighbour, shape)] -= energy[row, column]
    return matrix


def split_cell_matrix(d, alpha):
    """8×8: a cell's share of the nine diffusions, a quarter of axis and half of diagonal weights."""
    pairs = []
    for i in AXES:
        pairs.append((np.eye(3, dtype=int)[i], (1 - 2 * alpha) * d[i, i] / 4))
    for i, j in PLANES:
        (k,) = set(AXES) - {i, j}
        delta = alpha * (d[i, i] + d[j, j] - d[k, k])
        for sign in (1, -1):
            step = np.eye(3, dtype=int)[i] + sign * np.eye(3, dtype=int)[j]
            pairs.append((step, 0.5 * (delta + sign * d[i, j]) / 2))
    energy = np.zeros((8, 8))
    for step, weight in pairs:
        for p, corner in enumerate(CORNERS):
            other = tuple(int(c) for c in np.add(corner, step))
            if other in CORNERS:
                q = CORNERS.index(other)
                energy[[p, q], [p, q]] += weight
                energy[[p, q], [q, p]] -= weight
    return energy


def constant_kernel(energy):
    """The 3×3×3 weights around a voxel if all cells have this 8×8 matrix."""
    kernel = np.zeros((3, 3, 3))
    for p, corner in enumerate(CORNERS):
        for q, other in enumerate(CORNERS):
            kernel[tuple(1 + o - c for o, c in zip(other, corner, strict=True))] -= energy[p, q]
    return kernel


def symbol(kernel, waves):
    """Eigenvalues of −A for the waves exp(i θ·x) on an infinite or periodic grid, from the 3×3×3 weights."""
    offsets = np.array(list(itertools.product((-1, 0, 1), repeat=3)))
    return -np.cos(np.asarray(waves) @ offsets.T) @ kernel.ravel()
