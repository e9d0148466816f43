"""Solutions of u − div(D ∇u) = f in the unit cube that are known because f was made for them.

What `manufactured` is to images: nothing of aniso is used, and a complex step differentiates. Coordinates
are (z, y, x), tensors 3×3 in this order.
"""

import numpy as np
from numpy import cos, pi, sin

_STEP = 1e-30


class Smooth:
    """Cosines, and a full and smooth D whose entries are even or odd as mirroring asks."""

    def u(self, z, y, x):
        return cos(pi * z) * cos(2 * pi * y) * cos(pi * x) + 0.5 * cos(2 * pi * z) * cos(pi * y) * cos(pi * x)

    def gradient(self, z, y, x):
        return (
            -pi * sin(pi * z) * cos(2 * pi * y) * cos(pi * x)
            - pi * sin(2 * pi * z) * cos(pi * y) * cos(pi * x),
            -2 * pi * cos(pi * z) * sin(2 * pi * y) * cos(pi * x)
            - 0.5 * pi * cos(2 * pi * z) * sin(pi * y) * cos(pi * x),
            -pi * cos(pi * z) * cos(2 * pi * y) * sin(pi * x)
            - 0.5 * pi * cos(2 * pi * z) * cos(pi * y) * sin(pi * x),
        )

    def tensor(self, z, y, x):
        zero = 0 * (z + y + x)
        zz = 2 + 0.5 * cos(pi * y) * cos(pi * z) + zero
        yy = 1.8 + 0.5 * cos(2 * pi * x) + zero
        xx = 2 + cos(pi * x) * cos(pi * y) + zero
        zy = 0.5 * sin(pi * z) * sin(pi * y) + zero
        zx = 0.4 * sin(pi * z) * sin(pi * x) * (1.5 + cos(pi * y))
        yx = 0.6 * sin(pi * y) * sin(pi * x) + zero
        return ((zz, zy, zx), (zy, yy, yx), (zx, yx, xx))

    def flux(self, z, y, x):
        gradient = self.gradient(z, y, x)
        return [sum(d * g for d, g in zip(row, gradient, strict=True)) for row in self.tensor(z, y, x)]

    def divergence(self, z, y, x):
        """div(D ∇u), by a complex step in each variable."""
        place = (z, y, x)
        total = 0.0
        for axis in range(3):
            moved = [p + 1j * _STEP * (k == axis) for k, p in enumerate(place)]
            total = total + np.imag(self.flux(*moved)[axis]) / _STEP
        return total

    def check(self):
        """That the gradient belongs to u, no flux leaves the cube and D is positive definite."""
        s = np.linspace(0, 1, 9)
        place = np.meshgrid(s, s, s, indexing="ij")
        for axis in range(3):
            moved = [p + 1j * _STEP * (k == axis) for k, p in enumerate(place)]
            np.testing.assert_allclose(
                np.imag(self.u(*moved)) / _STEP, self.gradient(*place)[axis], atol=1e-12
            )
            outward = np.moveaxis(np.array(self.flux(*place)[axis]), axis, 0)
            np.testing.assert_allclose(outward[[0, -1]], 0, atol=1e-12)
        assert np.linalg.eigvalsh(np.moveaxis(np.array(self.tensor(*place)), (0, 1), (3, 4))).min() > 0.1


class Tilted(Smooth):
    """d_zx does not vanish on the faces normal to z; the flux does, since u_z = −(d_zx/d_zz) u_x there."""

    slant = 0.6

    def _bump(self, z):
        """0 at both ends, with slope 1 there."""
        return z - 3 * z**2 + 2 * z**3

    def u(self, z, y, x):
        profile = cos(pi * x) + self.slant * pi * self._bump(z) * (1 - cos(2 * pi * x)) / 2
        return profile * (1 + 0.3 * cos(pi * y))

    def gradient(self, z, y, x):
        along_y = 1 + 0.3 * cos(pi * y)
        profile = cos(pi * x) + self.slant * pi * self._bump(z) * (1 - cos(2 * pi * x)) / 2
        return (
            self.slant * pi * (1 - 6 * z + 6 * z**2) * (1 - cos(2 * pi * x)) / 2 * along_y,
            profile * -0.3 * pi * sin(pi * y),
            (-pi * sin(pi * x) + self.slant * pi**2 * self._bump(z) * sin(2 * pi * x)) * along_y,
        )

    def tensor(self, z, y, x):
        zero = 0 * (z + y + x)
        zz = 1 + 0.5 * sin(pi * z) ** 2 + zero
        yy = 1.2 + 0.4 * cos(pi * x) + zero
        xx = 1 + 0.3 * z + zero
        zx = self.slant * sin(pi * x) + zero
        yx = 0.3 * sin(pi * y) * sin(pi * x) * sin(pi * z) + zero
        return ((zz, zero, zx), (zero, yy, yx), (zx, yx, xx))


def samples(size):
    """Voxel centres and voxel corners, each as (z, y, x)."""
    centres = np.meshgrid(*((np.arange(n) + 0.5) / n for n in size), indexing="ij")
    corners = np.meshgrid(*(np.arange(n + 1) / n for n in size), indexing="ij")
    return centres, corners
