"""
Stencil entries and matrix
==========================

For each diffusion tensor, there is a family of second-order 3×3 stencils. Its members differ in one
number, δ, which :class:`aniso.DeltaStencil` expresses by two parameters, α and γ.
"""

import matplotlib.pyplot as plt
import numpy as np

import aniso

# %%
# A tensor with the eigenvalue 1 along a direction of 30 degrees and 0.05 across it.

angle = np.deg2rad(30)
cosine, sine = np.cos(angle), np.sin(angle)
a = cosine**2 + 0.05 * sine**2
b = 0.95 * cosine * sine
c = sine**2 + 0.05 * cosine**2

members = {
    name: aniso.DeltaStencil.named(name)
    for name in ("standard", "nonnegativity", "finite-elements")
}
members["default"] = aniso.DeltaStencil()

# %%
# The nine stencil entries are the weights of a pixel and its neighbours in the time derivative of the
# pixel. They sum to zero. If all neighbours have nonnegative weights, a maximum principle holds; this is
# impossible for strong anisotropy at oblique angles.

cells = [np.full((4, 4), entry) for entry in (a, b, c)]
figure, axes = plt.subplots(1, 4, figsize=(10, 3.3), layout="constrained")
for panel, (name, member) in zip(axes, members.items(), strict=True):
    stencil = aniso.stencil.entries(*cells, member)[:, :, 1, 1]
    panel.imshow(stencil, cmap="RdBu_r", vmin=-2, vmax=2)
    for (row, column), entry in np.ndenumerate(stencil):
        ink = "white" if abs(entry) > 1 else "black"
        number = panel.text(column, row, f"{entry:.2f}".replace("-", "−"), color=ink)
        number.set(ha="center", va="center", fontsize=13)
    limit = 2 / aniso.stability.spectral_bound(member, 1.0, 0.05)
    panel.set_title(name, fontsize=14)
    zeta = member.hourglass_weight(a, b, c)
    panel.set_xlabel(f"ζ = {zeta:.2f}, step ≤ {limit:.2f}", fontsize=12)
    panel.set(xticks=[], yticks=[])
plt.show()

# %%
# The evolution of the image is du/dt = A u with a sparse matrix A. It is symmetric, its rows sum to zero,
# and no eigenvalue is positive. Stability follows from these properties, shown here for a small image.

size = 12
field = [np.full((size + 1, size + 1), entry) for entry in (a, b, c)]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.1), layout="constrained")
matrix = aniso.stencil.matrix(*field)
left.spy(matrix, markersize=1.5, color="C0")
left.set_title(f"A for {size} × {size} pixels: {matrix.nnz} numbers", fontsize=14)
left.set(xticks=[], yticks=[])
for name, member in members.items():
    matrix = aniso.stencil.matrix(*field, member)
    assert abs(matrix - matrix.T).max() < 1e-14
    assert abs(matrix.sum(axis=1)).max() < 1e-13
    right.plot(np.linalg.eigvalsh(matrix.toarray()), label=name, linewidth=2)
right.axhline(-4, color="0.6", linewidth=1, zorder=0)
right.text(38, -3.95, "−4 λ₁: only members with ζ > λ₁ go below", va="bottom")
right.set_title("eigenvalues of A", fontsize=14)
right.set_xlabel("number", fontsize=12)
right.legend(fontsize=11)
plt.show()
