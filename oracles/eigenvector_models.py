"""Diffusion as textbooks print it: with eigenvectors, on an image mirrored far out, pixel by pixel.

Nothing here is taken from the library. Slow, and meant to be read beside the papers:

* Weickert, Anisotropic Diffusion in Image Processing (1998): the models;
* Schrader, Weickert and Krause, Anisotropic Diffusion Stencils (2023): the 3×3 stencil.

Images are (channels, H, W); x is the last axis, y the one before. Tensors are (H+1, W+1, 2, 2) in the
order (x, y), one per corner of the pixel grid.
"""

import numpy as np
from scipy import ndimage

# g as a function of s² = |∇u|²/λ².


def weickert(s2):
    """1 − exp(−3.31488/s⁸), and 1 for s = 0."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(s2 > 0, 1 - np.exp(-3.31488 / np.asarray(s2, float) ** 4), 1.0)


def charbonnier(s2):
    return 1 / np.sqrt(1 + s2)


def perona_malik(s2):
    return 1 / (1 + s2)


def exponential(s2):
    return np.exp(-s2 / 2)


DIFFUSIVITIES = {
    "weickert": weickert,
    "charbonnier": charbonnier,
    "perona-malik": perona_malik,
    "exponential": exponential,
}


def structure_tensors(image, sigma, rho, spacing):
    """J_ρ(∇u_σ) at the corners of the pixel grid, mean over the channels.

    The image is repeated, mirrored, so far out that no kernel that matters meets the end of it.
    """
    h_y, h_x = spacing
    height, width = image.shape[1:]
    far = int(np.ceil(5 * (sigma + rho) / min(spacing))) + 2
    everywhere = np.pad(image, [(0, 0), (far, far), (far, far)], mode="symmetric")
    tensors = 0.0
    for channel in everywhere:
        u = ndimage.gaussian_filter(channel, (sigma / h_y, sigma / h_x), mode="constant")
        u_x = (u[:-1, 1:] - u[:-1, :-1] + u[1:, 1:] - u[1:, :-1]) / (2 * h_x)
        u_y = (u[1:, :-1] - u[:-1, :-1] + u[1:, 1:] - u[:-1, 1:]) / (2 * h_y)
        gradient = np.stack([u_x, u_y], -1)
        tensors = tensors + gradient[..., :, None] * gradient[..., None, :] / len(image)
    smooth = ndimage.gaussian_filter(tensors, (rho / h_y, rho / h_x, 0, 0), mode="constant")
    return smooth[far - 1 : far + height, far - 1 : far + width]


def edge_enhancing(image, spacing, contrast, sigma, g):
    """Eigenvectors of J, eigenvalues g(μ/λ²): 1 along the edge, for a single channel."""
    tensors = structure_tensors(image, sigma, 0.0, spacing)
    diffusion = np.empty_like(tensors)
    for cell in np.ndindex(tensors.shape[:2]):
        mu, v = np.linalg.eigh(tensors[cell])
        eigenvalues = g(np.maximum(mu, 0) / contrast**2)
        diffusion[cell] = sum(eigenvalues[i] * np.outer(v[:, i], v[:, i]) for i in (0, 1))
    return diffusion


def edge_continuing(image, spacing, contrast, sigma, rho, g):
    """1 along the mean direction, g((μ1 − μ2)/λ²) across it."""
    tensors = structure_tensors(image, sigma, rho, spacing)
    diffusion = np.empty_like(tensors)
    for cell in np.ndindex(tensors.shape[:2]):
        (mu2, mu1), v = np.linalg.eigh(tensors[cell])
        across = g(np.maximum(mu1 - mu2, 0) / contrast**2)
        diffusion[cell] = np.outer(v[:, 0], v[:, 0]) + across * np.outer(v[:, 1], v[:, 1])
    return diffusion


def coherence_enhancing(image, spacing, contrast, sigma, rho, eps):
    """ε across the structure, ε + (1 − ε)·exp(−(λ²/(μ1 − μ2))²) along it."""
    tensors = structure_tensors(image, sigma, rho, spacing)
    diffusion = np.empty_like(tensors)
    for cell in np.ndindex(tensors.shape[:2]):
        (mu2, mu1), v = np.linalg.eigh(tensors[cell])
        # What rounding leaves of μ1 − μ2 = 0 may be as small as it likes: the exponential is 0 then.
        coherent = mu1 - mu2 > 1e-3 * contrast**2
        along = eps + (1 - eps) * np.exp(-((contrast**2 / (mu1 - mu2)) ** 2)) if coherent else eps
        diffusion[cell] = eps * np.outer(v[:, 1], v[:, 1]) + along * np.outer(v[:, 0], v[:, 0])
    return diffusion


def scalar(image, spacing, contrast, sigma, g):
    """g(|∇u|²/λ²) in all directions, |∇u|² the mean over the channels."""
    tensors = structure_tensors(image, sigma, 0.0, spacing)
    diffusivity = g(np.trace(tensors, axis1=2, axis2=3) / contrast**2)
    return diffusivity[..., None, None] * np.eye(2)


def divergence(u, tensors, spacing, alpha, gamma, beta=None):
    """div(D ∇u) of one channel by the printed 3×3 stencil, y here growing with the index."""
    h_y, h_x = spacing
    height, width = u.shape
    mirrored = np.pad(u, 1, mode="symmetric")
    result = np.zeros_like(u)
    # With a, b, c divided by h_x², h_x·h_y and h_y² the grid has unit spacing.
    a = tensors[..., 0, 0] / h_x**2
    b = tensors[..., 0, 1] / (h_x * h_y)
    c = tensors[..., 1, 1] / h_y**2
    oblique = gamma * (1 - 2 * alpha) * abs(b) if beta is None else beta * b
    delta = alpha * (a + c) + oblique
    w0, w1, w2, w3 = a - delta, delta + b, c - delta, delta - b
    for i in range(height):
        for j in range(width):
            north_west, north_east = (i, j), (i, j + 1)
            south_west, south_east = (i + 1, j), (i + 1, j + 1)
            neighbours = {  # on the axes, the mean over the two cells that share the edge
                (0, 1): 0.5 * (w0[north_east] + w0[south_east]),
                (0, -1): 0.5 * (w0[north_west] + w0[south_west]),
                (1, 0): 0.5 * (w2[south_west] + w2[south_east]),
                (-1, 0): 0.5 * (w2[north_west] + w2[north_east]),
                (1, 1): 0.5 * w1[south_east],
                (-1, -1): 0.5 * w1[north_west],
                (1, -1): 0.5 * w3[south_west],
                (-1, 1): 0.5 * w3[north_east],
            }
            centre = mirrored[1 + i, 1 + j]
            for (dy, dx), weight in neighbours.items():
                result[i, j] += weight * (mirrored[1 + i + dy, 1 + j + dx] - centre)
    return result


def explicit_steps(image, tensors_of, steps, step, spacing, alpha=0.4, gamma=1.0, beta=None):
    """The image after some explicit steps; tensors_of(image) gives the tensors of each."""
    for _ in range(steps):
        tensors = tensors_of(image)
        image = image + step * np.stack(
            [divergence(channel, tensors, spacing, alpha, gamma, beta) for channel in image]
        )
    return image
