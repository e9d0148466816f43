"""Plot results with a too small, a good and a too large parameter, and a magnified part of each."""

import matplotlib.pyplot as plt
import numpy as np


def error(image, truth):
    """Distance as root mean square, in grey values."""
    return np.sqrt(np.mean((image - truth) ** 2))


def ladder(pictures, truth, part):
    """Pictures by title, all on the scale from 0 to 255; their errors if there is a truth."""
    _, axes = plt.subplots(2, len(pictures), figsize=(2.75 * len(pictures), 6.1), layout="constrained")
    for (top, bottom), (title, picture) in zip(axes.T, pictures.items(), strict=True):
        shown = np.clip(picture / 255, 0, 1)
        top.imshow(shown, cmap="gray", vmin=0, vmax=1)
        top.set_title(title, fontsize=13)
        bottom.imshow(shown[part], cmap="gray", vmin=0, vmax=1)
        if truth is not None and picture is not truth:
            bottom.set_xlabel(f"error {error(picture, truth):.1f}", fontsize=13)
        rows, columns = part
        size = columns.stop - columns.start, rows.stop - rows.start
        top.add_patch(
            plt.Rectangle((columns.start, rows.start), *size, fill=False, edgecolor="white", linewidth=1.2)
        )
    for panel in axes.flat:
        panel.set(xticks=[], yticks=[])
    plt.show()
