"""A diffusion net that predicts its own tensors with a few small kernels in all orientations of the grid."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aniso import checks
from aniso.engines.torch.operator import finite_gradient, largest_magnitude
from aniso.engines.torch.smoothing import extend_edges
from aniso.formulas.learned import bounded
from aniso.nn.inputs import check_image, checked_factory, full_precision, run_stage, working_precision
from aniso.nn.predicted import TensorDiffusion

#: Sides of the kernels for pixels (even, so that they are centred on cells) and for cells (odd).
_LOOK, _GATHER = 4, 3
#: Largest number of stages or kernels.
_MOST = 10_000
#: The logistic function of these is 0.92 and 0.82: flat regions diffuse almost freely.
_FLAT_GROUND = (2.5, 1.5)
#: How ½(s_xx − s_yy) and s_xy change their signs under the symmetries, in the order of `oriented`.
_SLANT_SIGNS = (1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0)
_MIXED_SIGNS = (1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0)


class TensorPredictor(nn.Module):
    """Predict the numbers for :class:`TensorDiffusion` from the image: (N, C, H, W) → (N, 4, H+1, W+1).

    Kernels of 4×4 pixels, in all orientations of the grid, have the responses v. The symmetric matrix S and
    the number s of a cell are weighted sums of log(1 + v²) over 3×3 cells. Initially the kernels are
    derivatives and the weights negative, as in edge-enhancing diffusion.

    Rotating or mirroring the image rotates or mirrors the prediction; adding a constant to the image or
    changing its sign does not change it. All channels share one prediction. For images, not for volumes.

    Parameters
    ----------
    kernels : int
        Number of learned kernels. Each is used in eight orientations and has 52 parameters.
    contrast : float
        Unit of grey values; for noisy images, use the standard deviation of the noise.
    device, dtype
        Device and data type of the parameters.

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
        count = checks.whole_within("kernels", kernels, 1, _MOST, "Try kernels=2.")
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
        """Return s_xx, s_xy, s_yy and s over the cells."""
        check_image(image, 2, self)
        with full_precision(image):
            u = working_precision(image)
            weights = self._gathering(bounded(self.weights).to(u.dtype))
            mean, slant, mixed, hourglass = F.conv2d(self.responses(u), weights)[:, :, None].unbind(1)
            level, level_hourglass = bounded(self.flat_ground).to(u.dtype)
            mean = mean + level
            return torch.cat([mean + slant, mixed, mean - slant, hourglass + level_hourglass], dim=1)

    def _gathering(self, weights: Tensor) -> Tensor:
        """Return the weights (4, n, 3, 3) in all orientations, (4, 8n, 3, 3); those of S rotate as well."""
        turned = oriented(weights.flatten(0, 1)).reshape(*weights.shape[:2], 8, _GATHER, _GATHER)
        return (self.signs.to(weights.dtype) * turned).flatten(1, 2)

    def responses(self, image: Tensor) -> Tensor:
        """Return log(1 + v²) of all oriented kernels, (N, 8·kernels, H+3, W+3), averaged over channels."""
        images, channels = image.shape[:2]
        most = largest_magnitude(image.dtype)  # so that squares stay finite
        seen = extend_edges((image / self.contrast).clamp(-most, most), _LOOK // 2 + _GATHER // 2)
        kernels = bounded(self.kernels).to(image.dtype)
        kernels = kernels - kernels.mean(dim=(-2, -1), keepdim=True)
        v = F.conv2d(seen.flatten(0, 1)[:, None], oriented(kernels).flatten(0, 1)[:, None])
        return (v * v).log1p().reshape(images, channels, *v.shape[1:]).mean(dim=1)

    def extra_repr(self) -> str:
        """Describe kernels and contrast."""
        return f"kernels={len(self.kernels)}, contrast={self.contrast:g}"


class SteeredDiffusionNet(nn.Module):
    """Diffuse with tensors that are predicted from the image at every stage, (N, C, H, W) → same.

    A stage predicts tensors from the current image with a :class:`TensorPredictor` and makes a few steps of
    :class:`TensorDiffusion`. The mean is preserved and the Euclidean norm never grows, whatever the
    parameters. For images, not for volumes.

    Parameters
    ----------
    stages : int
        Number of stages.
    steps : int
        Number of explicit steps in each stage.
    shared, checkpoint
        As for :class:`DiffusionNet`, with stages in place of cycles.
    kernels, contrast, device, dtype
        As for :class:`TensorPredictor`.

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
        self.stages = checks.whole_within("stages", stages, 1, _MOST, "Try stages=2.")
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
        """Return the images (N, C, H, W) after all stages."""
        check_image(image, 2, self)
        with full_precision(image):
            u = working_precision(image)
            for number in range(self.stages):
                u = run_stage(self.stage, u, number, recompute=self.checkpoint)
            return u.to(image.dtype)

    def stage(self, u: Tensor, number: int) -> Tensor:
        """Return the images after one stage."""
        number %= len(self.predictors)
        prediction = finite_gradient(self.predictors[number](u), u)
        stepped: Tensor = self.diffusions[number](u, prediction)
        return stepped

    def extra_repr(self) -> str:
        """Describe the stages."""
        return f"stages={self.stages}, checkpoint={self.checkpoint}"


def oriented(kernels: Tensor) -> Tensor:
    """Return the kernels (n, h, h) in the eight orientations of the grid, (n, 8, h, h)."""
    both = (kernels, kernels.transpose(-2, -1))
    return torch.stack([k.flip(axes) for k in both for axes in ((), (-1,), (-2,), (-2, -1))], dim=1)


def _derivatives(angles: Tensor) -> Tensor:
    """Return derivatives of a Gaussian along these directions, perturbed to break all symmetries."""
    x, y, bell = _bell(_LOOK, 0.8)
    along = (angles.cos()[:, None, None] * x + angles.sin()[:, None, None] * y) * bell
    along = 0.6 * along / along.abs().sum(dim=(-2, -1), keepdim=True)
    return along + 0.005 * torch.randn_like(along)


def _across(angles: Tensor) -> Tensor:
    """Return weights with which strong derivatives stop the diffusion along their direction."""
    _, _, bell = _bell(_GATHER, 0.6)
    parts = torch.stack(
        [torch.ones_like(angles), (2 * angles).cos(), (2 * angles).sin(), torch.ones_like(angles)]
    )
    return -0.5 / len(angles) * parts[:, :, None, None] * (bell / bell.sum())


def _bell(side: int, width: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return coordinates x and y around the centre of a square, and a Gaussian there."""
    axis = torch.arange(side) - 0.5 * (side - 1)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    return x, y, (-(x * x + y * y) / (2 * width**2)).exp()
