"""Tensors to test with: of given eigenvalues at given angles, alike or different in every cell."""

from __future__ import annotations

from typing import Any

import numpy as np

import aniso

#: What rounding in double precision may do to numbers of size one.
ROUNDING = 1e-12

#: From no anisotropy to nothing at all across.
ANISOTROPIES = ((1.0, 1.0), (1.0, 0.3), (1.0, 0.1), (1.0, 0.01), (1.0, 0.0))

#: Members over the whole range of both parameters.
MEMBERS = tuple(
    aniso.DeltaStencil(alpha, gamma) for alpha in (0.0, 0.1, 0.25, 0.4, 0.5) for gamma in (-1, 0, 1)
)

Tensors = tuple[Any, Any, Any]


def tensors_at(lambda1: Any, lambda2: Any, angle: Any) -> Tensors:
    """a, b, c with the first eigenvector at this angle from x (axis 1) towards y (axis 0)."""
    cos, sin = np.cos(angle), np.sin(angle)
    return (
        lambda1 * cos**2 + lambda2 * sin**2,
        (lambda1 - lambda2) * cos * sin,
        lambda1 * sin**2 + lambda2 * cos**2,
    )


def turning_field(rng: np.random.Generator, size: int, lambda1: float = 1.0, lambda2: float = 0.0) -> Tensors:
    """These eigenvalues in every cell of a square image, at random angles."""
    return tensors_at(lambda1, lambda2, rng.uniform(0, np.pi, (size + 1, size + 1)))


def random_field(rng: np.random.Generator, size: int) -> Tensors:
    """Random eigenvalues up to 1, some of them 0, at random angles."""
    cells = size + 1, size + 1
    larger, smaller = np.sort(rng.uniform(size=(2, *cells)) * rng.integers(0, 2, (2, *cells)), axis=0)[::-1]
    return tensors_at(larger, smaller, rng.uniform(0, np.pi, cells))


def constant_field(tensor: Tensors, size: int) -> Tensors:
    """One tensor in every cell."""
    a, b, c = (np.full((size + 1, size + 1), entry) for entry in tensor)
    return a, b, c


def eigenvalues(field: Tensors, stencil: Any) -> Any:
    """All eigenvalues of A, ascending."""
    return np.linalg.eigvalsh(aniso.stencil.matrix(*field, stencil).toarray())


def difference(first: Any, second: Any) -> float:
    """The largest, between dense or sparse matrices or arrays."""
    return float(abs(first - second).max())


def slope(errors: Any) -> float:
    """The order that the two finest grids show, each with half the spacing of the one before."""
    return float(np.log2(errors[-2] / errors[-1]))
