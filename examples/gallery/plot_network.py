"""
Learning the parameters of a diffusion
======================================

A few steps of diffusion are a residual network. Its parameters can be learned by gradient descent like
those of any other network, and however the optimiser moves them, the network stays stable. Here two
numbers are learned from a single noisy drawing whose truth is known: the contrast λ and the step τ.
"""

import matplotlib.pyplot as plt
import torch

import aniso

sample = aniso.samples.shapes(64, noise=30.0)
noisy, truth = (
    torch.tensor(image).float()[None, None] for image in (sample.image, sample.truth)
)

# %%
# Ten explicit steps of edge-enhancing diffusion share their parameters. They start badly: the contrast is so
# small that all noise counts as edges, and the steps are a tenth of what is stable.

model = aniso.EdgeEnhancing(contrast=1.0, sigma=1.5)
net = aniso.nn.DiffusionNet(model, steps=10, learn=["contrast", "step"], step=0.05)
with torch.no_grad():
    before = net(noisy)

# %%
# Adam lowers the mean squared error. The gradient passes all ten steps.

optimiser = torch.optim.Adam(net.parameters(), lr=0.15)
errors, contrasts, shares = [], [], []
for _ in range(40):
    loss = torch.nn.functional.mse_loss(net(noisy), truth)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    errors.append(loss.item() ** 0.5)
    contrasts.append(net.blocks[0].values()["contrast"].item())
    shares.append(net.blocks[0].values()["step"].item())
with torch.no_grad():
    after = net(noisy)

# %%
# The step grows towards the largest stable one but cannot pass it: it is learned as a share between 0 and
# 1 of that limit.

curves = {
    "error in grey values": (errors, "#1f6fb4"),
    "contrast λ": (contrasts, "#d9661f"),
    "step / largest stable step": (shares, "#2a9d5c"),
}
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
for panel, (title, (values, colour)) in zip(axes, curves.items(), strict=True):
    panel.plot(values, color=colour, linewidth=2)
    panel.set_title(title, fontsize=13)
    panel.set_xlabel("steps of the optimiser", fontsize=12)
    panel.set(ylim=(0, None))
    panel.grid(alpha=0.3)
axes[2].set(ylim=(0, 1))
plt.show()

# %%
# The drawing, and what the network makes of it before and after:


def rmse(image):
    return torch.nn.functional.mse_loss(image, truth).item() ** 0.5


pictures = {
    "noisy": noisy,
    "before learning": before,
    "after learning": after,
    "truth": truth,
}
figure, axes = plt.subplots(1, 4, figsize=(10, 3.2), layout="constrained")
for panel, (name, image) in zip(axes, pictures.items(), strict=True):
    panel.imshow(image[0, 0], cmap="gray", vmin=0, vmax=255)
    panel.set_title(
        name if name == "truth" else f"{name}\nerror {rmse(image):.1f}", fontsize=13
    )
    panel.set(xticks=[], yticks=[])
plt.show()

# %%
# More can be learned: the noise scale, the stencil, and the diffusivity itself. The page
# :doc:`/networks` lists it.
