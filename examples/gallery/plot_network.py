"""
Learning the parameters of a diffusion
======================================

A few steps of diffusion form a residual network. Its parameters can be trained by gradient descent, and
the network is stable for all values of them. Here two parameters are learned from a single noisy drawing
with known ground truth: the contrast λ and the step τ.
"""

import matplotlib.pyplot as plt
import torch

import aniso

sample = aniso.samples.shapes(64, noise=30.0)
noisy, truth = (
    torch.tensor(image).float()[None, None] for image in (sample.image, sample.truth)
)

# %%
# Ten explicit steps of edge-enhancing diffusion share their parameters. The initial values are poor: the
# contrast is so small that noise counts as edges, and the steps are a tenth of the stable step.

model = aniso.EdgeEnhancing(contrast=1.0, sigma=1.5)
net = aniso.nn.DiffusionNet(model, steps=10, learn=["contrast", "step"], step=0.05)
with torch.no_grad():
    before = net(noisy)

# %%
# Adam minimises the mean squared error. Gradients are propagated through all ten steps.

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
# The step approaches the largest stable step but cannot exceed it: the trainable parameter is a fraction
# between 0 and 1 of that limit.

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
# The drawing, and the output of the network before and after training:


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
# Other trainable parameters are the noise scale, the stencil and the diffusivity itself; see
# :doc:`/networks`.
