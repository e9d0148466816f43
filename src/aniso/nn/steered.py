"""A diffusion net that predicts its own tensors, from a few small kernels in all orientations of the grid."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from aniso import checks
from aniso.engines.torch.operator import finite_gradient
from aniso.engines.torch.smoothing import extend_edges
from aniso.nn.inputs import check_image, checked_factory, full_precision, working_precision
from aniso.nn.predicted import TensorDiffusion

#: Sides of the kernels that look at pixels (even, so that they are centred on cells) and at cells (odd).
_LOOK, _GATHER = 4, 3
#: No weight exceeds it, whatever an optimiser does: so there is no inf − inf.
_LARGEST = 30.0
#: The logistic function of these is 0.92 and 0.82: on flat ground diffusion is nearly free.
_FLAT_GROUND = (2.5, 1.5)
#: How ½(s_xx − s_yy) and s_xy change their signs under the symmetries, in the order of `oriented`.
_SLANT_SIGNS = (1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0)
_MIXED_SIGNS = (1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0)


class TensorPredictor(nn.Module):
    """Numbers for :class:`TensorDiffusion` from the image: (N, C, H, W) → (N, 4, H+1, W+1).

    A kernel k of 4×4 pixels, in all orientations that the grid has, gives its responses v. From log(1 + v²)
    in 3×3 cells, linear weights make the symmetric matrix S and the number s of every cell. This is how
    edge-enhancing diffusion sees an image, if k is a derivative and the weights are negative; it starts so.

    Turning or mirroring the image turns or mirrors the prediction; adding a constant to the image or
    changing its sign does not change it. All channels share one prediction. For images, not for volumes.

    Parameters
    ----------
    kernels : int
        How many kernels are learned. Each comes in eight orientations and has 52 parameters.
    contrast : float
        Grey values are seen in units of it; for noisy images the standard deviation of the noise is good.
    device, dtype
        Of the parameters.

    Examples
    --------
    >>> import torch, aniso
    >>> aniso.nn.TensorPredictor(kernels=1, contrast=0.1)(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 4, 33, 33])
    """

    signs: Tensor

    def __init__(
        self,
        kernels: int = 2,
        *,
        contrast: float = 20.0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        why = "grey values are seen in units of it."
        self.contrast = checks.within("contrast", contrast, 1e-30, 1e30, why)
        count = at_least_one("kernels", kernels)
        # Orientations between 0 and 45°, which the symmetries of the grid spread over the circle.
        angles = torch.arange(1, 2 * count, 2) * (math.pi / (8 * count))
        factory = checked_factory(device, torch.get_default_dtype() if dtype is None else dtype)
        self.kernels = nn.Parameter(_derivatives(angles).to(**factory))
        self.weights = nn.Parameter(_across(angles).to(**factory))
        self.flat_ground = nn.Parameter(torch.tensor(_FLAT_GROUND, **factory))
        even = (1.0,) * 8
        signs = torch.tensor((even, _SLANT_SIGNS, _MIXED_SIGNS, even), **factory)
        self.register_buffer("signs", signs[:, None, :, None, None], persistent=False)

    def forward(self, image: Tensor) -> Tensor:
        """s_xx, s_xy, s_yy and s over the cells."""
        check_image(image, 2, self)
        with full_precision(image):
            u = working_precision(image)
            weights = self._gathering(bounded(self.weights).to(u.dtype))
            mean, slant, mixed, hourglass = F.conv2d(self.responses(u), weights)[:, :, None].unbind(1)
            level, level_hourglass = bounded(self.flat_ground).to(u.dtype)
            mean = mean + level
            return torch.cat([mean + slant, mixed, mean - slant, hourglass + level_hourglass], dim=1)

    def _gathering(self, weights: Tensor) -> Tensor:
        """The weights (4, n, 3, 3) for all orientations, (4, 8n, 3, 3): those of S turn with the grid."""
        turned = oriented(weights.flatten(0, 1)).reshape(*weights.shape[:2], 8, _GATHER, _GATHER)
        return (self.signs.to(weights.dtype) * turned).flatten(1, 2)

    def responses(self, image: Tensor) -> Tensor:
        """log(1 + v²) of all kernels in all orientations, (N, 8·kernels, H+3, W+3), mean over channels."""
        images, channels = image.shape[:2]
        most = torch.finfo(image.dtype).max ** 0.24  # so that squares stay finite
        seen = extend_edges((image / self.contrast).clamp(-most, most), _LOOK // 2 + _GATHER // 2)
        kernels = bounded(self.kernels).to(image.dtype)
        kernels = kernels - kernels.mean(dim=(-2, -1), keepdim=True)
        v = F.conv2d(seen.flatten(0, 1)[:, None], oriented(kernels).flatten(0, 1)[:, None])
        return (v * v).log1p().reshape(images, channels, *v.shape[1:]).mean(dim=1)

    def extra_repr(self) -> str:
        """Numbers of kernels, contrast."""
        return f"kernels={len(self.kernels)}, contrast={self.contrast:g}"


class SteeredDiffusionNet(nn.Module):
    """Diffusion that predicts its own tensors, again at every stage; (N, C, H, W) → same.

    A stage looks at the image as it is now with a :class:`TensorPredictor` and makes a few steps of
    :class:`TensorDiffusion`. The mean is kept and the Euclidean norm never grows, whatever the
    parameters. For images, not for volumes.

    Parameters
    ----------
    stages : int
        How many times tensors are predicted.
    steps : int
        How many explicit steps each stage makes with them.
    kernels : int
        How many kernels each predictor has.
    contrast : float
        Grey values are seen in units of it; for noisy images the standard deviation of the noise is good.
    shared : bool
        Whether all stages have the same parameters, or each its own.
    checkpoint : bool
        Whether to compute the stages again when gradients are taken, which saves the memory for storing them.
    device, dtype
        Of the parameters.

    Examples
    --------
    >>> import torch, aniso
    >>> net = aniso.nn.SteeredDiffusionNet(stages=2, kernels=1, contrast=0.1)
    >>> net(torch.rand(1, 1, 16, 16)).shape, sum(p.numel() for p in net.parameters())
    (torch.Size([1, 1, 16, 16]), 110)
    """

    def __init__(
        self,
        stages: int = 4,
        *,
        steps: int = 2,
        kernels: int = 2,
        contrast: float = 20.0,
        shared: bool = False,
        checkpoint: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.stages = at_least_one("stages", stages)
        count = 1 if shared else self.stages
        factory = {"device": device, "dtype": dtype}
        self.predictors = nn.ModuleList(
            TensorPredictor(kernels, contrast=contrast, **factory) for _ in range(count)
        )
        self.diffusions = nn.ModuleList(
            TensorDiffusion(steps, step=0.35, learn=["step"], **factory) for _ in range(count)
        )
        self.checkpoint = checkpoint

    def forward(self, image: Tensor) -> Tensor:
        """The images (N, C, H, W) after all stages."""
        check_image(image, 2, self)
        with full_precision(image):
            u = working_precision(image)
            for number in range(self.stages):
                if self.checkpoint:
                    u = checkpoint(self.stage, u, number, use_reentrant=False, preserve_rng_state=False)
                else:
                    u = self.stage(u, number)
            return u.to(image.dtype)

    def stage(self, u: Tensor, number: int) -> Tensor:
        """The images after one stage."""
        number %= len(self.predictors)
        prediction = finite_gradient(self.predictors[number](u), u)
        stepped: Tensor = self.diffusions[number](u, prediction)
        return stepped

    def extra_repr(self) -> str:
        """How many stages."""
        return f"stages={self.stages}, checkpoint={self.checkpoint}"


def oriented(kernels: Tensor) -> Tensor:
    """The kernels (n, h, h) in the eight orientations of the grid, (n, 8, h, h)."""
    both = (kernels, kernels.transpose(-2, -1))
    return torch.stack([k.flip(axes) for k in both for axes in ((), (-1,), (-2,), (-2, -1))], dim=1)


def bounded(free: Tensor) -> Tensor:
    """Numbers close to the given ones while these are small, but never beyond ±30."""
    return _LARGEST * (free / _LARGEST).tanh()


_MOST = 10_000


def at_least_one(name: str, value: int) -> int:
    """A whole number from 1 on."""
    number = checks.whole(name, value, f"Give how many, e.g. {name}=2.")
    if number < 1:
        raise ValueError(f"{name} must be at least 1, got {number}: there would be nothing to learn.")
    if number > _MOST:
        raise ValueError(f"{name} must be at most {_MOST}, got {number}: memory has an end. Try {name}=2.")
    return number


def _derivatives(angles: Tensor) -> Tensor:
    """Derivatives of a Gaussian along these directions, disturbed a little so that no symmetry is left."""
    x, y, bell = _bell(_LOOK, 0.8)
    along = (angles.cos()[:, None, None] * x + angles.sin()[:, None, None] * y) * bell
    along = 0.6 * along / along.abs().sum(dim=(-2, -1), keepdim=True)
    return along + 0.005 * torch.randn_like(along)


def _across(angles: Tensor) -> Tensor:
    """Weights with which strong derivatives stop the diffusion along their direction."""
    _, _, bell = _bell(_GATHER, 0.6)
    parts = torch.stack(
        [torch.ones_like(angles), (2 * angles).cos(), (2 * angles).sin(), torch.ones_like(angles)]
    )
    return -0.5 / len(angles) * parts[:, :, None, None] * (bell / bell.sum())


def _bell(side: int, width: float) -> tuple[Tensor, Tensor, Tensor]:
    """Coordinates x and y around the centre of a square, and a Gaussian there."""
    axis = torch.arange(side) - 0.5 * (side - 1)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    return x, y, (-(x * x + y * y) / (2 * width**2)).exp()
