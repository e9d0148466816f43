"""Trained nets, stored as plain text with their options and parameters."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import torch
from torch import nn

from aniso.nn.inputs import checked_factory
from aniso.nn.kernels import KernelDiffusionNet
from aniso.nn.steered import SteeredDiffusionNet

_NETS: dict[str, type[nn.Module]] = {net.__name__: net for net in (KernelDiffusionNet, SteeredDiffusionNet)}


def pretrained(name: str, *, device: Any = None, dtype: torch.dtype | None = None) -> nn.Module:
    """Return a trained net.

    ``"denoise-20"`` removes Gaussian noise of standard deviation 20 from images with grey values from 0 to
    255, (N, C, H, W) → same; not for volumes. For another standard deviation σ, rescale the image:
    ``net(image * (20 / σ)) * (σ / 20)``. This also holds for images from 0 to 1, where σ is a fraction. It
    was trained by ``examples/train_steered_net.py``.

    ``"denoise-2-75"`` removes Gaussian noise of any standard deviation from 2 to 75, which is its second
    argument, from grey and colour images: a :class:`KernelDiffusionNet` with 9,920 parameters, of which grey
    images use 4,400, trained by ``examples/train_denoiser.py``. For images from 0 to 1, multiply image and
    noise level by 255. A third argument is the correlation of the noise, up to 1.5 pixels.

    Parameters
    ----------
    name : str
        Name of the net.
    device, dtype
        Device and data type of its parameters.

    Returns
    -------
    torch.nn.Module
        The net, in evaluation mode; it can be trained further.

    Examples
    --------
    >>> import torch, aniso
    >>> net = aniso.nn.pretrained("denoise-20")
    >>> net(128 + 20 * torch.randn(1, 1, 64, 64)).std() < 5
    tensor(True)
    >>> net = aniso.nn.pretrained("denoise-2-75")
    >>> net(128 + 40 * torch.randn(1, 1, 64, 64), 40.0).std() < 10
    tensor(True)
    """
    factory = checked_factory(device, dtype)
    return from_text(_read(name)).to(**factory)


def options_of(name: str) -> dict[str, Any]:
    """Return the options with which a trained net was made."""
    options: dict[str, Any] = json.loads(_read(name))["options"]
    return options


def _read(name: str) -> str:
    folder = files("aniso.nn") / "trained"
    names = sorted(
        entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json")
    )
    if str(name) not in names:
        raise ValueError(f"there is no trained net {name!r}. The names are: {', '.join(names)}.")
    return (folder / f"{name}.json").read_text("utf-8")


def to_text(net: nn.Module, options: dict[str, Any], about: str) -> str:
    """Return a net as JSON: its class, the options of its constructor, and a line for each parameter."""
    content = {"about": about, "net": type(net).__name__, "options": options}
    lines = [f"{_compact(name)}: {_compact(each)}" for name, each in content.items()]
    rows = [f"{_compact(name)}: {_compact(tensor.tolist())}" for name, tensor in net.state_dict().items()]
    return "{" + ",\n".join([*lines, '"parameters": {\n' + ",\n".join(rows)]) + "\n}}\n"


def _compact(value: Any) -> str:
    """Return JSON in one line; nine digits restore every number in single precision."""
    short = json.loads(json.dumps(value), parse_float=lambda digits: float(f"{float(digits):.9g}"))
    return json.dumps(short, ensure_ascii=False, separators=(",", ":"))


def from_text(text: str) -> nn.Module:
    """Return the net that `to_text` wrote."""
    content = json.loads(text)
    # Its random initial weights are overwritten, so they must not change the global random state.
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        net = _NETS[content["net"]](**content["options"])
        parameters = {name: torch.tensor(numbers) for name, numbers in content["parameters"].items()}
    net.load_state_dict(parameters)
    return net.eval()
