"""
Heat conduction in a fibrous plate
==================================

Wood, carbon fibre and muscle conduct heat better along their fibres than across them: the heat flux is
−D∇u, and the temperature u satisfies ∂u/∂t = div(D ∇u) with the conductivity tensor D of the material.
:class:`aniso.FixedTensor` represents such a tensor field.
"""

import matplotlib.pyplot as plt
import numpy as np

import aniso

# %%
# A hot spot
# ----------
# Straight fibres at 30 degrees, with a ten times larger diffusivity along than across them. In an infinite
# plate, a Gaussian spot remains Gaussian, and its covariance grows by 2tD. This is the exact solution for
# comparison. Tensors are in the order of the array's axes, y first.

size, angle = 128, np.deg2rad(30)
along = np.array(
    [-np.sin(angle), np.cos(angle)]
)  # (y, x): y points downwards, the fibres rise
across = np.array([np.cos(angle), np.sin(angle)])
conductivity = 1.0 * np.outer(along, along) + 0.1 * np.outer(across, across)

y, x = np.mgrid[:size, :size] - (size - 1) / 2


def spot(time):
    """100 degrees in the middle at first, with a width of 3 pixels."""
    covariance = 9 * np.eye(2) + 2 * time * conductivity
    (c, b), (_, a) = np.linalg.inv(covariance)
    peak = 100 * 9 / np.sqrt(np.linalg.det(covariance))
    return peak * np.exp(-0.5 * (c * y**2 + 2 * b * x * y + a * x**2))


plate = aniso.FixedTensor.from_matrix(conductivity, shape=(size, size))
time = 100.0
computed = aniso.diffuse(spot(0), plate, time)
exact = spot(time)
print(f"stable explicit step {aniso.stability.stable_step(plate):.2f}")
print(f"hottest {computed.max():.3f}, exactly {exact.max():.3f} degrees")
print(f"largest error {abs(computed - exact).max():.3f} degrees")

figure, axes = plt.subplots(1, 3, figsize=(10, 3.5), layout="constrained")
levels = exact.max() * np.array([0.1, 0.3, 0.5, 0.7, 0.9])
for panel, picture, title in zip(
    axes,
    (spot(0), computed, exact),
    ("t = 0", "t = 100, computed", "t = 100, exact"),
    strict=True,
):
    shown = panel.imshow(picture, cmap="inferno", vmin=0, vmax=exact.max())
    panel.contour(picture, levels, colors="white", linewidths=0.8)
    panel.set_title(title, fontsize=14)
    panel.set(xticks=[], yticks=[], xlim=(23.5, 103.5), ylim=(103.5, 23.5))
figure.colorbar(shown, ax=axes, shrink=0.85, label="degrees", extend="max")
plt.show()

# %%
# Curved fibres
# -------------
# The fibres run around a knot in the wood. The left edge has 100 degrees and the right edge 0: these pixels
# are ``fixed``. The conductivity along the fibres is 50 times that across them and that in the knot. After a
# long time, the temperature reaches a steady state.

rows, columns = np.mgrid[: size + 1, : size + 1] - size / 2  # centres of the cells
knot = np.hypot(rows, columns)
slope = np.arctan2(rows, columns)
# Direction of the fibres: as in the potential flow around a cylinder.
radius = 24.0
inside = knot < radius
flow_x = np.where(
    inside, 0.0, 1 - (radius / np.maximum(knot, 1)) ** 2 * np.cos(2 * slope)
)
flow_y = np.where(
    inside, 0.0, -((radius / np.maximum(knot, 1)) ** 2) * np.sin(2 * slope)
)
speed = np.maximum(np.hypot(flow_x, flow_y), 1e-9)
t_x, t_y = flow_x / speed, flow_y / speed
slow, fast = 0.02, 1.0
# Inside the knot the fibres stand upright: heat spreads slowly in all directions.
share = np.where(inside, 0.0, fast - slow)
wood = aniso.FixedTensor.from_entries(
    a=slow + share * t_x**2, b=share * t_x * t_y, c=slow + share * t_y**2
)

start = np.full((size, size), 50.0)
edges = np.zeros((size, size), bool)
edges[:, [0, -1]] = True
start[:, 0], start[:, -1] = 100.0, 0.0

temperatures = {
    "uniform plate": aniso.diffuse(
        start, aniso.Homogeneous(), 40000, fixed=edges, scheme=aniso.FSI(4)
    ),
    "wood, after t = 500": aniso.diffuse(
        start, wood, 500, fixed=edges, scheme=aniso.FED(10)
    ),
    "wood, at rest": aniso.diffuse(
        start, wood, 400000, fixed=edges, scheme=aniso.FSI(4)
    ),
}

figure, axes = plt.subplots(1, 3, figsize=(10, 3.5), layout="constrained")
axis = np.arange(size + 1) - 0.5
for panel, (title, picture) in zip(axes, temperatures.items(), strict=True):
    shown = panel.imshow(picture, cmap="inferno", vmin=0, vmax=100)
    if title.startswith("wood"):
        panel.streamplot(
            axis,
            axis,
            flow_x,
            flow_y,
            color="0.75",
            linewidth=0.5,
            arrowsize=0.01,
            density=1.1,
        )
    panel.contour(picture, np.arange(10, 100, 10), colors="white", linewidths=1.0)
    panel.set_title(title, fontsize=14)
    panel.set(xticks=[], yticks=[], xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5))
figure.colorbar(shown, ax=axes, shrink=0.85, label="degrees")
plt.show()

# %%
# White lines are isotherms, ten degrees apart; grey lines are fibres. The heat flows around the knot along
# the fibres, and the knot warms up last. In the steady state, inflow on the left equals outflow on the right.

matrix = aniso.stencil.matrix(*wood.entries)
balance = (matrix @ temperatures["wood, at rest"].ravel()).reshape(size, size)
enters, leaves = -balance[:, 0].sum(), balance[:, -1].sum()
print(f"heat that enters per unit time: {enters:.3f}, that leaves: {leaves:.3f}")
