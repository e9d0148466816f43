"""The gap in the printed proof of the published bound: M₊ over the angle of the tensor."""

import matplotlib.pyplot as plt
import numpy as np

import aniso

angle = np.linspace(0, np.pi, 721)
a, b, c = np.cos(angle) ** 2, np.cos(angle) * np.sin(angle), np.sin(angle) ** 2
delta = aniso.DeltaStencil.named("cell-centred").delta(a, b, c)
w0, w1, w2, _ = aniso.stencil.directional_weights(a, b, c, delta)
m = w0 + w1 + w2
M = m + abs(w0) + abs(w1) + abs(w2)

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
degrees = np.rad2deg(angle)
axes.plot(
    degrees,
    M,
    color="#d9661f",
    linewidth=2.2,
    label="$M_+ = 1 + |\\cos 2\\varphi| + \\sin 2\\varphi$",
)
axes.plot(degrees, 2 * m, color="#1f6fb4", linewidth=2.2, label="$2 m_+ = 1 + \\sin 2\\varphi$")
axes.axhline(2, color="0.3", linestyle="--", linewidth=1.4, label="$2 \\max m_+ = 2$")
axes.plot([22.5, 67.5], [1 + 2**0.5] * 2, "o", color="#d9661f", markersize=7)
axes.annotate("$1 + \\sqrt{2}$", (67.5, 1 + 2**0.5), xytext=(72, 2.45), fontsize=12)
axes.set(xlim=(0, 180), ylim=(0, 2.7), xticks=np.arange(0, 181, 22.5))
axes.set_xlabel("angle $\\varphi$ of the tensor in degrees", fontsize=12)
axes.legend(fontsize=11, loc="lower left")
axes.grid(alpha=0.3)
plt.show()
