"""Diffusion as PyTorch modules: residual blocks that can be trained and cannot become unstable."""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("torch") is None:
    raise ImportError('aniso.nn needs PyTorch. Install it with: pip install "aniso[torch]".')

from aniso.nn.block import DiffusionBlock, DiffusionNet
from aniso.nn.cells import CellDiffusion
from aniso.nn.kernels import KernelDiffusionNet
from aniso.nn.learned import Interval, LearnedDiffusivity, Positive
from aniso.nn.predicted import TensorDiffusion
from aniso.nn.presets import pretrained
from aniso.nn.steered import SteeredDiffusionNet, TensorPredictor
from aniso.nn.translation import CellBlock, Diffusion1d, DirectionalBlock, SixChannelBlock, StencilBlock

__all__ = [
    "CellBlock",
    "CellDiffusion",
    "Diffusion1d",
    "DiffusionBlock",
    "DiffusionNet",
    "DirectionalBlock",
    "Interval",
    "KernelDiffusionNet",
    "LearnedDiffusivity",
    "Positive",
    "SixChannelBlock",
    "SteeredDiffusionNet",
    "StencilBlock",
    "TensorDiffusion",
    "TensorPredictor",
    "pretrained",
]
