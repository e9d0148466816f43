"""Input and result of the four high-level functions, as in `aniso demo`."""

import matplotlib.pyplot as plt

from aniso.cli.jobs import demonstration

figure, axes = plt.subplots(2, 4, figsize=(11, 6.2), layout="constrained")
for column, make in zip(axes.T, demonstration.BLOCKS[:4], strict=True):
    block = make()
    column[0].set_title(block.call, fontsize=12)
    for panel, shown in zip(column, block.panels, strict=True):
        panel.imshow(shown.image.clip(0, 255) / 255, cmap="gray", vmin=0, vmax=1)
        panel.set_xlabel(f"{shown.label}\n{shown.figure}", fontsize=12)
        panel.set(xticks=[], yticks=[])
plt.show()
