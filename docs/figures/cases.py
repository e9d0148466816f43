"""The pictures of cases.md: each function runs the code of a section and shows the results."""

import contextlib
import re
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

# The plot directive of Matplotlib defines no __file__; the path is the first argument then.
PAGE = Path(globals().get("__file__", sys.argv[0])).resolve().parents[1] / "cases.md"


def run(section):
    """Return the variables of the first blocks of the page and of this section."""
    parts = re.split(r"^## (.+)$", PAGE.read_text("utf-8"), flags=re.M)
    text = parts[0] + dict(zip(parts[1::2], parts[2::2], strict=True))[section]
    variables = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S):
            exec(block, variables)
    return variables


def error(image, truth):
    """Distance as root mean square, in grey values."""
    return np.sqrt(np.mean((image - np.asarray(truth, float)) ** 2))


def show(images, truth=None, limits=(0, 255), size=(11, 4.2), columns=3):
    """Images by title, on one grey scale, with their distance from the truth."""
    _, axes = plt.subplots(len(images) // columns, columns, figsize=size, layout="constrained")
    for panel, (title, image) in zip(axes.flat, images.items(), strict=True):
        draw(panel, image, limits)
        distance = "" if truth is None or image is truth else f", error {error(image, truth):.1f}"
        panel.set_title(title + distance, fontsize=13)
    plt.show()


def draw(panel, image, limits, aspect=1.0):
    """An image between two grey values."""
    low, high = limits
    panel.imshow(np.clip((image - low) / (high - low), 0, 1), cmap="gray", vmin=0, vmax=1, aspect=aspect)
    panel.set(xticks=[], yticks=[])


def microscopy():
    of = run("Low-light microscopy")
    show({name: of[name] for name in ("counts", "clean", "truth")}, of["truth"], (95, 142))


def magnetic_resonance():
    of = run("MRI volume with thick slices")
    _, axes = plt.subplots(
        2, 3, figsize=(11, 5.4), layout="constrained", gridspec_kw={"height_ratios": [96, 12 * 2.2]}
    )
    for (top, bottom), name in zip(axes.T, ("volume", "clean", "truth"), strict=True):
        draw(top, of[name][:, :, 6].T, (0, 700))
        draw(bottom, of[name][:, 48].T, (0, 700), 4.4 / 2)
        top.set_title(name, fontsize=13)
        if name != "truth":
            bottom.set_xlabel(f"error {error(of[name], of['truth']):.1f}", fontsize=12)
    plt.show()


def seismic():
    of = run("Seismic section")
    images = {"section": of["section"], "layers": of["layers"], "wrong (denoise)": of["wrong"]}
    show(images | {"truth": of["truth"]}, of["truth"], (-160, 160), (10, 8.4), 2)


def fingerprint():
    of = run("Fingerprint")
    images = {"scanned": of["scanned"], "lines": of["lines"], "kept (denoise)": of["kept"]}
    show(images | {"truth": of["truth"]}, of["truth"], size=(9.4, 9.8), columns=2)


def retina():
    of = run("Retina")
    change = 85 + 4 * (of["vessels"] - of["green"].astype(float))
    show({"green": of["green"], "vessels": of["vessels"], "difference × 4": change}, None, (35, 135))


def compressed():
    of = run("JPEG photograph")
    images = {"cup.jpg": of["picture"].pixels, "clean": of["clean"], "better (noise=15)": of["better"]}
    show(images | {"photograph": of["photograph"]}, of["photograph"], size=(9.4, 9.8), columns=2)
