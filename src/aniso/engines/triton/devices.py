"""The devices on which kernels run."""

from __future__ import annotations

import contextlib

import torch

from aniso import checks
from aniso.engines import ENGINES
from aniso.engines.triton.arithmetic import INTERPRETED


def on_device(device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Make the device of a tensor the current one, on which Triton starts kernels."""
    if device.type == "cpu":
        return contextlib.nullcontext()
    return torch.xpu.device(device) if device.type == "xpu" else torch.cuda.device(device)


def check_device(device: torch.device) -> None:
    """Raise if kernels do not run on a device."""
    if INTERPRETED:
        if device.type != "cpu":
            raise ValueError(
                f"the image is on {device}, but TRITON_INTERPRET is set: Triton's interpreter computes on "
                "the CPU. Unset it before Python starts, or give image.cpu()."
            )
    elif device.type not in ENGINES["triton"].devices:
        raise checks.make_error(
            ValueError,
            f"the triton engine takes PyTorch tensors on a GPU, got an image on {device}.",
            python="Give e.g. image.cuda() to aniso.diffuse or plan.apply, or leave engine out: denoise and "
            "the other verbs choose their parameters on the CPU. For tests, the kernels also run on the CPU, "
            "slowly, if the environment variable TRITON_INTERPRET is 1 before Python starts.",
            command="Use --engine cpu.",
        )
    elif not ENGINES["triton"].supports(device):
        least = ".".join(map(str, ENGINES["triton"].capability))
        raise ValueError(
            f"the triton engine needs a GPU of compute capability {least} or later, and {device} is an older "
            'one. Leave engine out, or give engine="torch".'
        )
