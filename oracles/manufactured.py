"""Solutions of u − div(D ∇u) = f that are known because f was made for them.

Nothing of aniso is used. The domain is the unit square; pixels are sampled at their centres, tensors
at the corners of the pixels. Functions are analytic, so that a complex step differentiates them to
the last digit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy import cos, pi, sin

_STEP = 1e-30


class Solution(NamedTuple):
    """u and D as functions of (x, y) whose flux through the boundary vanishes."""

    u: Callable[[Any, Any], Any]
    tensor: Callable[[Any, Any], tuple[Any, Any, Any]]
    gradient: Callable[[Any, Any], tuple[Any, Any]]

    def flux(self, x, y):
        a, b, c = self.tensor(x, y)
        u_x, u_y = self.gradient(x, y)
        return a * u_x + b * u_y, b * u_x + c * u_y

    def divergence(self, x, y):
        """div(D ∇u), by a complex step in each variable."""
        along_x, _ = self.flux(x + 1j * _STEP, y)
        _, along_y = self.flux(x, y + 1j * _STEP)
        return (np.imag(along_x) + np.imag(along_y)) / _STEP

    def check(self):
        """That the gradient belongs to u and no flux leaves the square."""
        s = np.linspace(0, 1, 41)
        x, y = np.meshgrid(s, s)
        u_x, u_y = self.gradient(x, y)
        np.testing.assert_allclose(np.imag(self.u(x + 1j * _STEP, y)) / _STEP, u_x, atol=1e-12)
        np.testing.assert_allclose(np.imag(self.u(x, y + 1j * _STEP)) / _STEP, u_y, atol=1e-12)
        for side in (0.0, 1.0):
            np.testing.assert_allclose(self.flux(side, s)[0], 0, atol=1e-12)
            np.testing.assert_allclose(self.flux(s, side)[1], 0, atol=1e-12)
        a, b, c = self.tensor(x, y)
        assert (a * c > b**2).all()


def _wave(x, y):
    return cos(pi * x) * cos(2 * pi * y) + 0.5 * cos(2 * pi * x) * cos(pi * y)


def _wave_gradient(x, y):
    return (
        -pi * sin(pi * x) * cos(2 * pi * y) - pi * sin(2 * pi * x) * cos(pi * y),
        -2 * pi * cos(pi * x) * sin(2 * pi * y) - 0.5 * pi * cos(2 * pi * x) * sin(pi * y),
    )


def _broadcast(x, y, *entries):
    zero = 0 * x + 0 * y
    return tuple(entry + zero for entry in entries)


def _mirrored_tensor(x, y):
    a = 2 + cos(pi * x) * cos(pi * y)
    b = 0.8 * sin(pi * x) * sin(pi * y)
    return _broadcast(x, y, a, b, 1.5 + 0.5 * cos(2 * pi * x))


def _turning_tensor(x, y):
    a = 2 + cos(pi * x) * cos(pi * y)
    b = 0.6 * sin(pi * x) * sin(pi * y) * (cos(pi * x) - cos(pi * y))
    return _broadcast(x, y, a, b, 1.5 + 0.5 * cos(2 * pi * x))


#: Everything continues smoothly across the boundary when mirrored: b is odd, the rest even; b > 0.
MIRRORED = Solution(_wave, _mirrored_tensor, _wave_gradient)

#: The same, but b changes its sign across the diagonal of the square: |b| has a kink there.
TURNING = Solution(_wave, _turning_tensor, _wave_gradient)

_TILT = 0.7


def _tilted(x, y):
    return cos(pi * y) + _TILT * pi * (x - 3 * x**2 + 2 * x**3) * (1 - cos(2 * pi * y)) / 2


def _tilted_gradient(x, y):
    return (
        _TILT * pi * (1 - 6 * x + 6 * x**2) * (1 - cos(2 * pi * y)) / 2,
        -pi * sin(pi * y) + _TILT * pi**2 * (x - 3 * x**2 + 2 * x**3) * sin(2 * pi * y),
    )


def _tilted_tensor(x, y):
    return _broadcast(x, y, 1 + 0.5 * sin(pi * x) ** 2, _TILT * sin(pi * y), 1 + 0.3 * x)


#: b does not vanish on the left and right side: the flux does, because u_x = −(b/a) u_y there.
TILTED = Solution(_tilted, _tilted_tensor, _tilted_gradient)


def samples(size):
    """Pixel centres and pixel corners, each as (x, y), for size = (rows, columns)."""
    rows, columns = size
    centres = np.meshgrid((np.arange(columns) + 0.5) / columns, (np.arange(rows) + 0.5) / rows)
    corners = np.meshgrid(np.arange(columns + 1) / columns, np.arange(rows + 1) / rows)
    return centres, corners
