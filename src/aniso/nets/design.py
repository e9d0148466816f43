"""How the parameters of a learned diffusion become kernels and matrices."""

from __future__ import annotations

import math

import numpy as np

from aniso.arrays import Array
from aniso.colours import OPPONENT
from aniso.nets.folds import Field

#: Orientations of an even or odd kernel: the symmetries of the grid, without the rotation by 180°.
TURNS = 4
#: Frequencies per period and dilation at which the squared transfer function is sampled.
SAMPLES = 64
#: Noise levels between which the parameters vary.
LEVELS = (2.0, 75.0)
#: The largest correlation of noise that is distinguished, and the radius of its Gaussian, in pixels.
WIDEST, FARTHEST = 1.5, 8
#: The lowest noise level that is distinguished from 0.
LEAST_NOISE = 1e-30


def level_position(level: float) -> float:
    """Return where the logarithm of a noise level lies between the least and the largest, from −1 to 1."""
    low, high = (math.log(one) for one in LEVELS)
    return min(1.0, max(-1.0, (math.log(level) - low) * (2 / (high - low)) - 1))


def correlation_powers(width: float) -> Field:
    """Return powers of the logarithm of how much a Gaussian of this width amplifies low frequencies."""
    place = np.arange(-FARTHEST, FARTHEST + 1)
    exponent = (place / min(max(width, 1e-3), WIDEST)) ** 2
    logarithm = math.log(np.exp(-exponent / 2).sum() ** 2 / np.exp(-exponent).sum())
    return np.array([logarithm, logarithm**2])


def separate(image: Array, *, turned: bool = False) -> Array:
    """Return brightness and two differences of colours, such that brightness is the mean of the channels.

    Images are (…, 3, H, W). `turned` means that the channels are those already, but for the factor.
    """
    return _times(image, np.eye(3) if turned else np.array(OPPONENT)) / image.dtype.type(3**0.5)


def join(parts: Array, *, turned: bool = False) -> Array:
    """Return the image that `separate` was given."""
    return _times(parts, np.eye(3) if turned else np.array(OPPONENT).T) * parts.dtype.type(3**0.5)


def _times(image: Array, matrix: Field) -> Array:
    """Return a matrix times the channels of images (…, 3, H, W), which are added one by one."""
    one, two, three = (image[..., channel, :, :] for channel in range(3))
    rows = matrix.astype(image.dtype)
    return np.stack([row[0] * one + row[1] * two + row[2] * three for row in rows], axis=-3)


def hat(dilation: int) -> Field:
    """Return the weights of the smoothing that goes with a dilation, from the centre outwards."""
    return (dilation - np.arange(dilation)) / dilation**2


def characters(mixing: Field) -> Field:
    """Return mixing matrices (kernels, kernels, turns) as one matrix for each character of the turns."""
    turns = np.arange(TURNS)
    signs = np.array([[(-1) ** int(k & t).bit_count() for t in turns] for k in turns])
    return np.einsum("kt,ijt->kij", signs, mixing) / TURNS


def cosine_modes(side: int) -> tuple[Field, Field]:
    """Return the odd and the even cosine modes of mean 0, (2, count, side, side), and initial sizes."""
    axis = np.arange(side)
    wave = np.cos(math.pi / side * axis[:, None] * (axis + 0.5))
    wave /= np.linalg.norm(wave, axis=1, keepdims=True)
    products = wave[:, None, :, None] * wave[None, :, None, :]
    order = axis[:, None] + axis
    parts = [order % 2 == 1, (order % 2 == 0) & (order > 0)]
    modes = np.stack([products[part] for part in parts])
    return modes, np.stack([2.0 ** (1 - order[part]) for part in parts]) ** 0.5


def normalised_kernels(coefficients: Field, side: int, dilation: int) -> Field:
    """Return the kernels (count, side, side), such that all of them together have norm at most 1."""
    kernels = np.einsum("pnm,pmyx->pnyx", coefficients, cosine_modes(side)[0])
    both = (kernels, kernels.swapaxes(-2, -1))
    turned = np.stack([k[..., ::step] for k in both for step in (1, -1)], axis=2)
    transfer = np.einsum("pnk,pfk->pfn", turned.reshape(2, -1, side**2), waves(side, dilation))
    largest = (transfer**2).sum(axis=(0, 2)).max()
    return (kernels / math.sqrt(largest + np.finfo(np.float64).tiny)).reshape(-1, side, side)


def waves(side: int, dilation: int) -> Field:
    """Return what makes transfer functions of odd and even kernels, (2, frequencies, side²).

    Σ|K̂|² is a trigonometric polynomial of degree d along each axis, and symmetric. Its maximum is at most
    that over n frequencies per period, divided by cos(πd/n) for each axis; one octant of them suffices.
    """
    count = SAMPLES * dilation
    degree = dilation * (side - 1) + 2 * (dilation - 1)
    y, x = np.array(np.triu_indices(count // 2 + 1)) * (2 * math.pi / count)
    grid = dilation * (np.arange(side) - side // 2)
    phase = (y[:, None, None] * grid[:, None] + x[:, None, None] * grid).reshape(len(y), -1)
    size = _transfer(y, dilation) * _transfer(x, dilation) / math.cos(math.pi * degree / count)
    return np.stack([np.sin(phase), np.cos(phase)]) * size[:, None]


def _transfer(frequency: Field, dilation: int) -> Field:
    """Return the transfer function of the smoothing."""
    weights = hat(dilation)
    whole = np.concatenate([weights[:0:-1], weights])
    return np.cos(frequency[:, None] * np.arange(1 - dilation, dilation)) @ whole
