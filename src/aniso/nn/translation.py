"""Diffusion written as residual networks: the same step in the forms that the paper shows.

All blocks here equal :class:`~aniso.nn.DiffusionBlock` up to rounding. They differ in how A u = div(D ∇u) is
computed, and each shows in its few lines what a residual block does: a convolution K, an activation, and the
mirrored convolution −Kᵀ. There is one tensor of kernels per block, used twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aniso import checks
from aniso.engines.torch.operator import Entries, pad_edges
from aniso.formulas import dimensions, views, weights
from aniso.models import ImageDriven, PeronaMalik
from aniso.nn.block import DiffusionBlock, Values, hourglass_weights
from aniso.nn.inputs import check_image, full_precision, working_precision
from aniso.stencil import DeltaStencil

# The differences in a 2×2 cell (rows from top to bottom), as kernels (channels, 1, 2, 2).
_ALONG_X = [[[-1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [-1.0, 1.0]]]
_ALONG_Y = [[[-1.0, 0.0], [1.0, 0.0]], [[0.0, -1.0], [0.0, 1.0]]]
_FALLING = [[[-1.0, 0.0], [0.0, 1.0]]]
_RISING = [[[0.0, -1.0], [1.0, 0.0]]]
_CONVOLUTIONS = {2: (F.conv2d, F.conv_transpose2d), 3: (F.conv3d, F.conv_transpose3d)}


class MirroredConvolutions(nn.Module):
    """u → −Kᵀ(w · K u) for every channel of the images by itself: symmetric, and dissipative if w ≥ 0."""

    kernel: Tensor

    def __init__(self, kernel: Any, device: Any = None) -> None:
        super().__init__()
        kernel = torch.as_tensor(kernel, device=device)
        self.register_buffer("kernel", kernel[:, None], persistent=False)

    def forward(self, u: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
        """The activation sees (N, C, differences, H+1, W+1), in volumes one axis more."""
        images, channels = u.shape[:2]
        kernel = self.kernel.to(u.dtype)
        convolution, transposed = _CONVOLUTIONS[u.ndim - 2]
        v = convolution(pad_edges(u).flatten(0, 1)[:, None], kernel)
        flux = activation(v.reshape(images, channels, *v.shape[1:]))
        return transposed(flux.flatten(0, 1), -kernel, padding=1).reshape(u.shape)


class DirectionalBlock(DiffusionBlock):
    """The block as the paper draws it: four 1-D divergence blocks B0 … B3, one per direction, summed.

    Parameters
    ----------
    model : EdgeEnhancing, EdgeContinuing, CoherenceEnhancing, PeronaMalik or Homogeneous
        What steers the diffusion.
    *args, **options
        As for :class:`DiffusionBlock`: stencil, learn, step, spacing and the like.

    Examples
    --------
    >>> import torch, aniso
    >>> aniso.nn.DirectionalBlock(aniso.EdgeEnhancing())(torch.rand(1, 1, 8, 8)).shape
    torch.Size([1, 1, 8, 8])
    """

    dimensions = (2,)

    def __init__(self, model: ImageDriven, *args: Any, **options: Any) -> None:
        super().__init__(model, *args, **options)
        directions = (_ALONG_X, _FALLING, _ALONG_Y, _RISING)
        self.directions = nn.ModuleList(
            MirroredConvolutions(kernel, options.get("device")) for kernel in directions
        )

    def divergence(self, entries: Entries, values: Values) -> Callable[[Tensor], Tensor]:
        """Σ Bᵢ with the diffusivities wᵢ of the four directions."""
        halves = half_weights(self.stencil, entries, values)
        activations = [lambda v, w=w: w[:, :, None] * v for w in halves]
        return lambda u: sum_of(
            block(u, activation) for block, activation in zip(self.directions, activations, strict=True)
        )


class SixChannelBlock(DiffusionBlock):
    """The same as two convolutions, one activation and one summation: all kernels in one 4-D tensor.

    Parameters
    ----------
    model : EdgeEnhancing, EdgeContinuing, CoherenceEnhancing, PeronaMalik or Homogeneous
        What steers the diffusion.
    *args, **options
        As for :class:`DiffusionBlock`: stencil, learn, step, spacing and the like.

    Examples
    --------
    >>> import torch, aniso
    >>> aniso.nn.SixChannelBlock(aniso.EdgeEnhancing())(torch.rand(1, 1, 8, 8)).shape
    torch.Size([1, 1, 8, 8])
    """

    dimensions = (2,)

    def __init__(self, model: ImageDriven, *args: Any, **options: Any) -> None:
        super().__init__(model, *args, **options)
        self.differences = MirroredConvolutions(
            _ALONG_X + _ALONG_Y + _FALLING + _RISING, options.get("device")
        )

    def divergence(self, entries: Entries, values: Values) -> Callable[[Tensor], Tensor]:
        """−Kᵀ(w · K u) with six differences per cell."""
        w0, w1, w2, w3 = half_weights(self.stencil, entries, values)
        six = torch.stack([w0, w0, w2, w2, w1, w3], dim=2)
        return lambda u: self.differences(u, lambda v: six * v)


class CellBlock(DiffusionBlock):
    """The leaner form: the three modes of a cell, with the tensor itself as activation.

    :class:`DiffusionBlock` computes the same, its kernels of ±½ being written as sums and differences. With
    ``ndim=3`` there are seven modes, with kernels of ±¼.

    Parameters
    ----------
    model : EdgeEnhancing, EdgeContinuing, CoherenceEnhancing, PeronaMalik or Homogeneous
        What steers the diffusion.
    *args, **options
        As for :class:`DiffusionBlock`: stencil, learn, step, spacing and the like.

    Examples
    --------
    >>> import torch, aniso
    >>> aniso.nn.CellBlock(aniso.EdgeEnhancing())(torch.rand(1, 1, 8, 8)).shape
    torch.Size([1, 1, 8, 8])
    """

    def __init__(self, model: ImageDriven, *args: Any, **options: Any) -> None:
        super().__init__(model, *args, **options)
        self.modes = MirroredConvolutions(mode_kernels(self.ndim, options.get("device")))

    def divergence(self, entries: Entries, values: Values) -> Callable[[Tensor], Tensor]:
        """−Kᵀ(aX + bY, bX + cY, ζZ) with (X, Y, Z) = K u; likewise for the seven modes of a volume."""
        fluxes = dimensions.of(self.ndim).fluxes
        inner = hourglass_weights(entries, values, self.stencil.beta)
        return lambda u: self.modes(u, lambda v: torch.stack(fluxes(*v.unbind(2), *entries, *inner), 2))


class StencilBlock(DiffusionBlock):
    """For comparison, without convolutions: the 3×3 entries first, then applied to the image.

    Parameters
    ----------
    model : EdgeEnhancing, EdgeContinuing, CoherenceEnhancing, PeronaMalik or Homogeneous
        What steers the diffusion.
    stencil, learn, step, spacing, ndim, max_sigma, max_rho, device, dtype
        As for :class:`DiffusionBlock`; `ndim` is 2.

    Examples
    --------
    >>> import torch, aniso
    >>> aniso.nn.StencilBlock(aniso.EdgeEnhancing())(torch.rand(1, 1, 8, 8)).shape
    torch.Size([1, 1, 8, 8])
    """

    dimensions = (2,)

    def divergence(self, entries: Entries, values: Values) -> Callable[[Tensor], Tensor]:
        """Σ entries · neighbours."""
        four = directional_weights(self.stencil, entries, values)
        cells = zip(*(views.pixel_cells(w) for w in four), strict=True)
        rows = weights.stencil_entries(*cells)

        def applied(u: Tensor) -> Tensor:
            height, width = u.shape[-2:]
            padded = pad_edges(u)
            return sum_of(
                rows[y][x] * padded[..., y : y + height, x : x + width] for y in range(3) for x in range(3)
            )

        return applied


class Diffusion1d(DiffusionBlock):
    """The 1-D block of Alt et al., (N, C, L) → same: K1 = D⁺, σ1 = τΦ, K2 = D⁻ = −K1ᵀ, identity skip.

    Φ(v) = g(v²/λ²)·v; with several channels v² is their mean. With ``sigma`` > 0 the diffusivity looks at the
    smoothed signal.

    Parameters
    ----------
    model : PeronaMalik, EdgeEnhancing or Homogeneous
        Gives contrast, sigma and diffusivity. In one dimension all models with a diffusivity agree.
    learn : sequence of str
        What becomes a parameter, as for :class:`DiffusionBlock`; ``alpha`` and ``gamma`` do not exist here.
    **options
        As for :class:`DiffusionBlock`: step, spacing and the like.

    Examples
    --------
    >>> import torch, aniso
    >>> block = aniso.nn.Diffusion1d(aniso.PeronaMalik(contrast=0.1, sigma=0))
    >>> block(torch.rand(4, 1, 100)).shape
    torch.Size([4, 1, 100])
    """

    kernel: Tensor
    dimensions = (2,)
    _learns_stencil = False

    def __init__(
        self, model: ImageDriven | None = None, *, learn: Sequence[str] = (), **options: Any
    ) -> None:
        model = PeronaMalik(sigma=0.0) if model is None else model
        # A signal is an image of one row. With this member of the family nothing passes to other rows.
        (options["spacing"],) = checks.axis_spacing(options.get("spacing"), 1)
        super().__init__(model, DeltaStencil.named("cell-centred"), learn=learn, **options)
        self.register_buffer(
            "kernel", torch.tensor([[[-1.0, 1.0]]], device=options.get("device")), persistent=False
        )

    def forward(self, signal: Tensor) -> Tensor:
        """The signals (N, C, L) after one step."""
        check_image(signal, 1, self)
        with full_precision(signal):
            u, values = working_precision(signal), self.values()
            w, _, _ = self.tensor(u[..., None, :], values)
            tau = values["step"] * self.largest_step(values)
            kernel = self.kernel.to(u.dtype).expand(u.shape[1], 1, 2)
            v = F.conv1d(F.pad(u, (1, 1), mode="replicate"), kernel, groups=u.shape[1])  # K1 = D⁺
            flux = tau * w[..., 0, :] * v  # σ1 = τΦ
            u = u - F.conv_transpose1d(flux, kernel, padding=1, groups=u.shape[1])  # K2 = −K1ᵀ
            return u.to(signal.dtype)


def mode_kernels(ndim: int, device: Any = None) -> Tensor:
    """The modes of a cell as kernels: those of 1 at one corner and 0 at all others, for each corner."""
    corners = torch.eye(2**ndim, device=device).reshape(-1, *[2] * ndim)
    return torch.stack(dimensions.of(ndim).modes(*corners))


def directional_weights(stencil: DeltaStencil, entries: Entries, values: Values) -> tuple[Any, ...]:
    """w0 … w3 of the four directions x, ↘, y, ↙."""
    a, b, c = entries
    delta = weights.delta(a, b, c, values["alpha"], values["gamma"], stencil.beta or 0.0)
    return weights.directional_weights(a, b, c, delta)


def half_weights(stencil: DeltaStencil, entries: Entries, values: Values) -> list[Tensor]:
    """½w0 … ½w3: the mean over two cells along the axes, and the squared length √2 of the diagonals."""
    return [0.5 * w for w in directional_weights(stencil, entries, values)]


def sum_of(terms: Any) -> Tensor:
    """The sum of tensors."""
    first, *others = terms
    for term in others:
        first = first + term
    return first
