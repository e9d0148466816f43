"""What the laws of aniso.nn are tested over: one list of blocks, one of modules with all that they can learn.

A new block or net is one line here, and every law holds for it or fails.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import aniso
from aniso.nn import (
    CellBlock,
    CellDiffusion,
    Diffusion1d,
    DiffusionBlock,
    DiffusionNet,
    DirectionalBlock,
    KernelDiffusionNet,
    SixChannelBlock,
    SteeredDiffusionNet,
    StencilBlock,
    TensorDiffusion,
)
from aniso.parameters import of_model

#: The same step in five forms.
BLOCKS: tuple[Any, ...] = (DiffusionBlock, DirectionalBlock, SixChannelBlock, CellBlock, StencilBlock)

DIFFUSIVITIES = tuple(aniso.models.DIFFUSIVITIES)
STENCIL_AND_STEP = ("alpha", "gamma", "step")


def learnable(model) -> tuple[str, ...]:
    """All that a block with this model can learn: its numbers and functions, not its switches."""
    names = (field.name for field in of_model(model).values() if not field.about.switch)
    return (*names, *STENCIL_AND_STEP)


def batch(shape=(2, 1, 9, 7), seed=0, dtype=torch.float64) -> Tensor:
    """Images or volumes with grey values of order 1: a slanted edge under noise."""
    generator = torch.Generator().manual_seed(seed)
    *depth, height, width = shape[2:]
    y, x = torch.arange(height)[:, None], torch.arange(width)[None, :]
    for layers in depth:
        y = y - torch.arange(layers)[:, None, None]
    edge = (2 * x + y > width).double() + 0.02 * x
    return (edge + 0.3 * torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype)


def prediction(image, numbers, *, cells, seed=3) -> Tensor:
    """What a network might predict for these images."""
    generator = torch.Generator().manual_seed(seed)
    shape = (len(image), numbers, *(n + cells for n in image.shape[2:]))
    return 2 * torch.randn(shape, generator=generator, dtype=torch.float64).to(image)


@dataclass(frozen=True)
class Specimen:
    """A module with all that it can learn, and what it is to be called with for some images."""

    name: str
    make: Callable[..., nn.Module]
    inputs: Callable[[Tensor], tuple[Tensor, ...]] = lambda image: (image,)


def _signals(image):
    return (image.flatten(2),)


def _with_prediction(numbers, cells):
    return lambda image: (image, prediction(image, numbers, cells=cells))


def _volumes(image):
    """Four layers; what alternates within an image of even size alternates from layer to layer."""
    return (torch.stack([image, image.flip(-1), image, image.flip(-2)], dim=2),)


def _volumes_with_prediction(numbers, cells):
    def inputs(image):
        (volume,) = _volumes(image)
        return volume, prediction(volume, numbers, cells=cells)

    return inputs


# Contrasts and scales suit `batch`: cells lie on both sides of the contrast, kernels are short.
EDGE = aniso.EdgeEnhancing(0.5, 0.5, "charbonnier")
COHERENCE = aniso.CoherenceEnhancing(0.3, 0.4, 0.6, 0.05)
SCALAR = aniso.PeronaMalik(0.5, 0.4)
LINES = aniso.CoherenceEnhancing(0.3, 0.4, 0.6, 0.05, plates=False)
SHORT = {"max_sigma": 0.6}


def _block(kind, model, **fixed):
    return lambda **options: kind(model, **{"learn": learnable(model)} | fixed | options)


def _net(model, steps, **fixed):
    return lambda **options: DiffusionNet(model, steps, **{"learn": learnable(model)} | fixed | options)


def _tensors(steps, **fixed):
    return lambda **options: TensorDiffusion(steps, **{"learn": STENCIL_AND_STEP} | fixed | options)


def _steered(learn=None, **options):
    """It learns everything, whatever `learn` is."""
    return SteeredDiffusionNet(stages=2, kernels=1, contrast=0.5, **options)


def _kernels(learn=None, **options):
    """It learns everything, whatever `learn` is."""
    return KernelDiffusionNet([1, 2], kernels=2, side=3, **options)


def _cells(learn=None, **options):
    """It learns everything, whatever `learn` is."""
    return CellDiffusion(3, steps=2, **options)


def _colours_with_noise(image):
    """Three channels; below 1e35, because gradients of kernels are sums that must not overflow."""
    most = min(1e35, torch.finfo(image.dtype).max)
    return _with_noise(torch.cat([image, image.flip(-1), 1 - image], dim=1)[:, :3].clamp(-most, most))


def _with_noise(image):
    """Levels between 0.3 and 0.4 for each image."""
    return image, torch.linspace(0.3, 0.4, len(image), dtype=image.dtype, device=image.device)


SPECIMENS: tuple[Specimen, ...] = (
    *(Specimen(kind.__name__, _block(kind, EDGE, **SHORT)) for kind in BLOCKS),
    Specimen("coherence", _block(DiffusionBlock, COHERENCE, max_sigma=0.5, max_rho=0.8)),
    Specimen("scalar, spacing", _block(SixChannelBlock, SCALAR, spacing=(0.8, 1.3), **SHORT)),
    Specimen("homogeneous", _block(CellBlock, aniso.Homogeneous())),
    Specimen("net, shared", _net(EDGE, 2, **SHORT)),
    Specimen("net, separate", _net(SCALAR, 2, shared=False, **SHORT)),
    Specimen("net, FED", _net(EDGE, 4, scheme=aniso.FED(2), **SHORT)),
    Specimen("net, FSI, separate", _net(EDGE, 4, scheme=aniso.FSI(2), shared=False, **SHORT)),
    Specimen(
        "signals",
        _block(Diffusion1d, EDGE, learn=("contrast", "sigma", "diffusivity", "step"), **SHORT),
        _signals,
    ),
    Specimen("steered", _steered),
    Specimen("kernels", _kernels, _with_noise),
    Specimen("kernels, colour", lambda **options: _kernels(colour=True, **options), _colours_with_noise),
    Specimen("cells of 3×3 pixels", _cells, _with_prediction(16, -2)),
    Specimen("tensors per pixel", _tensors(2), _with_prediction(3, False)),
    Specimen("tensors per cell, FED", _tensors(4, scheme=aniso.FED(2)), _with_prediction(3, True)),
    Specimen("tensors and ζ per pixel, FSI", _tensors(4, scheme=aniso.FSI(1)), _with_prediction(4, False)),
    Specimen("tensors and ζ per cell", _tensors(2, spacing=(0.8, 1.3)), _with_prediction(4, True)),
    Specimen("volumes", _block(DiffusionBlock, EDGE, ndim=3, **SHORT), _volumes),
    Specimen(
        "volumes, coherence", _block(DiffusionBlock, COHERENCE, ndim=3, max_sigma=0.5, max_rho=0.8), _volumes
    ),
    Specimen(
        "volumes, lines, CellBlock, spacing",
        _block(CellBlock, LINES, ndim=3, spacing=(1.3, 0.8, 1.0), max_sigma=0.5, max_rho=0.8),
        _volumes,
    ),
    Specimen("volumes, net, FED", _net(EDGE, 4, scheme=aniso.FED(2), ndim=3, **SHORT), _volumes),
    Specimen("volumes, tensors per voxel", _tensors(2, ndim=3), _volumes_with_prediction(6, False)),
    Specimen(
        "volumes, tensors and ζ per cell",
        _tensors(2, ndim=3, spacing=(0.8, 1.3, 1.0)),
        _volumes_with_prediction(7, True),
    ),
)


def volume_tensors(shape, seed=5) -> aniso.FixedTensor:
    """Tensors that turn and stretch from cell to cell of a volume, on the boundary too; some of rank one."""
    rng = np.random.default_rng(seed)
    cells = tuple(n + 1 for n in shape)
    axes, _ = np.linalg.qr(rng.normal(size=(*cells, 3, 3)))
    along, across = rng.uniform(0.2, 1.0, (*cells, 1)), rng.uniform(-0.2, 0.2, (*cells, 2)).clip(0)
    tensor = (axes * np.concatenate([along, across], -1)[..., None, :]) @ np.swapaxes(axes, -1, -2)
    return aniso.FixedTensor(np.moveaxis(tensor, (-2, -1), (0, 1)))


def redraw(module, generator, scale) -> None:
    """Random numbers of this size for all that is learned."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))


def diffused(image, model, time, **options) -> Tensor:
    """Each image by itself through the reference engine, in double precision."""
    arrays = image.detach().double().numpy()
    results = [
        aniso.diffuse(array, model, time, channel_axis=0, engine="reference", **options) for array in arrays
    ]
    return torch.from_numpy(np.stack(results))


def assert_close(actual, expected, relative) -> None:
    """Equal up to this share of the largest value."""
    assert actual.shape == expected.shape
    error, largest = (actual.double() - expected.double()).abs().max(), expected.double().abs().max()
    assert error <= relative * largest, f"differs by {error:.3g}, the largest value is {largest:.3g}"
