"""Diffusion tensors of volumes as the formulas read: with eigenvectors, on a volume mirrored far out.

Nothing here is taken from the library. Volumes are (channels, D, H, W); tensors (D+1, H+1, W+1, 3, 3) in the
order of the axes z, y, x.
"""

import itertools

import numpy as np
from scipy import ndimage


def structure_tensors(volume, sigma, rho, spacing):
    """J_ρ(∇u_σ) at the corners of the voxel grid, mean over the channels."""
    far = int(np.ceil(5 * (sigma + rho) / min(spacing))) + 2
    everywhere = np.pad(volume, [(0, 0)] + [(far, far)] * 3, mode="symmetric")
    tensors = 0.0
    for channel in everywhere:
        u = ndimage.gaussian_filter(channel, [sigma / h for h in spacing], mode="constant")
        gradient = []
        for axis, h in enumerate(spacing):
            slope = np.diff(u, axis=axis) / h
            for other in (k for k in range(3) if k != axis):
                first, last = (np.take(slope, range(s, slope.shape[other] - 1 + s), other) for s in (0, 1))
                slope = (first + last) / 2
            gradient.append(slope)
        g = np.stack(gradient, -1)
        tensors = tensors + g[..., :, None] * g[..., None, :] / len(volume)
    widths = [rho / h for h in spacing]
    smooth = ndimage.gaussian_filter(tensors, (*widths, 0, 0), mode="constant")
    window = tuple(slice(far - 1, far + n) for n in volume.shape[1:])
    return smooth[window]


def with_eigenvalues(tensors, rule):
    """Tensors with the same eigenvectors; rule takes μ1 ≥ μ2 ≥ μ3 and gives their new eigenvalues."""
    result = np.empty_like(tensors)
    for cell in np.ndindex(tensors.shape[:3]):
        mu, v = np.linalg.eigh(tensors[cell])
        values = rule(*mu[::-1].clip(min=0))
        result[cell] = sum(value * np.outer(w, w) for value, w in zip(values, v.T[::-1], strict=True))
    return result


def edge_enhancing(volume, spacing, contrast, sigma, g):
    """Eigenvalues g(μ/λ²); for one channel J has rank one, and the two others are g(0) = 1."""
    tensors = structure_tensors(volume, sigma, 0.0, spacing)

    def rule(mu1, mu2, mu3):
        others = (0.0, 0.0) if len(volume) == 1 else (mu2, mu3)
        return [float(g(mu / contrast**2)) for mu in (mu1, *others)]

    return with_eigenvalues(tensors, rule)


def edge_continuing(volume, spacing, contrast, sigma, rho, g):
    """Eigenvalues g((μ − μ3)/λ²): 1 in the direction of least change."""
    tensors = structure_tensors(volume, sigma, rho, spacing)
    return with_eigenvalues(tensors, lambda *mu: [float(g(max(m - mu[2], 0.0) / contrast**2)) for m in mu])


def _coherence(s, contrast, eps):
    # What rounding leaves of s = 0 may be as small as it likes: the exponential is 0 then.
    return eps + (1 - eps) * np.exp(-((contrast**2 / s) ** 2)) if s > 1e-3 * contrast**2 else eps


def coherence_enhancing(volume, spacing, contrast, sigma, rho, eps):
    """Eigenvalues f(μ1 − μ), f(s) = ε + (1 − ε)·exp(−(λ²/s)²): along lines and within plates."""
    tensors = structure_tensors(volume, sigma, rho, spacing)
    return with_eigenvalues(tensors, lambda *mu: [_coherence(mu[0] - m, contrast, eps) for m in mu])


def line_enhancing(volume, spacing, contrast, sigma, rho, eps):
    """ε, ε and f(μ2 − μ3) in the direction of least change: along lines only."""
    tensors = structure_tensors(volume, sigma, rho, spacing)
    return with_eigenvalues(tensors, lambda m1, m2, m3: [eps, eps, _coherence(m2 - m3, contrast, eps)])


def scalar(volume, spacing, contrast, sigma, g):
    """g(|∇u|²/λ²) in all directions, |∇u|² the mean over the channels."""
    tensors = structure_tensors(volume, sigma, 0.0, spacing)
    diffusivity = g(np.trace(tensors, axis1=3, axis2=4) / contrast**2)
    return diffusivity[..., None, None] * np.eye(3)


def cube_symmetries():
    """The 48 signed permutations of the axes, as matrices."""
    matrices = []
    for order in itertools.permutations(range(3)):
        for signs in itertools.product((1, -1), repeat=3):
            matrix = np.zeros((3, 3))
            matrix[range(3), order] = signs
            matrices.append(matrix)
    return matrices
