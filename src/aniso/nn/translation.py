"""Diffusion steps as residual networks, in the forms that the paper shows.

All blocks here equal :class:`~aniso.nn.DiffusionBlock` up to rounding. They differ in how A u = div(D ∇u) is
computed, and each shows in a few lines what a residual block does: a convolution K, an activation, and the
mirrored convolution −Kᵀ. Each block has one tensor of kernels, which is used twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
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
    """Compute −Kᵀ(w · K u) for each channel of the images: symmetric, and dissipative if w ≥ 0."""

    kernel: Tensor

    def __init__(self, kernel: Any, device: Any = None) -> None:
        super().__init__()
        kernel = torch.as_tensor(kernel, device=device)
        self.register_buffer("kernel", kernel[:, None], persistent=False)

    def forward(self, u: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the result; the activation receives (N, C, differences, H+1, W+1), or one axis more."""
        images, channels = u.shape[:2]
        kernel = self.kernel.to(u.dtype)
        convolution, transposed = _CONVOLUTIONS[u.ndim - 2]
        v = convolution(pad_edges(u).flatten(0, 1)[:, None], kernel)
        flux = activation(v.reshape(images, channels, *v.shape[1:]))
        return transposed(flux.flatten(0, 1), -kernel, padding=1).reshape(u.shape)


class DirectionalBlock(DiffusionBlock):
    """Sum four 1-D divergence blocks B0 … B3, one per direction, as drawn in the paper.

    Parameters
    ----------
    model, *args, **options
        As for :class:`DiffusionBlock`.

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
        """Return u → Σ Bᵢ u with the diffusivities wᵢ of the four directions."""
        halves = half_weights(self.stencil, entries, values)
        activations = [lambda v, w=w: w[:, :, None] * v for w in halves]
        return lambda u: reduce(
            torch.add, (block(u, phi) for block, phi in zip(self.directions, activations, strict=True))
        )


class SixChannelBlock(DiffusionBlock):
    """Apply the four directions as two convolutions, with all kernels in one 4-D tensor.

    Parameters
    ----------
    model, *args, **options
        As for :class:`DiffusionBlock`.

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
        """Return u → −Kᵀ(w · K u) with six differences per cell."""
        w0, w1, w2, w3 = half_weights(self.stencil, entries, values)
        six = torch.stack([w0, w0, w2, w2, w1, w3], dim=2)
        return lambda u: self.differences(u, lambda v: six * v)


class CellBlock(DiffusionBlock):
    """Convolve with the three modes of a cell; the activation is the tensor itself.

    :class:`DiffusionBlock` computes the same with sums and differences instead of kernels of ±½. With
    ``ndim=3`` there are seven modes, with kernels of ±¼.

    Parameters
    ----------
    model, *args, **options
        As for :class:`DiffusionBlock`.

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
        """Return u → −Kᵀ(aX + bY, bX + cY, ζZ) with (X, Y, Z) = K u; likewise for the modes of a volume."""
        fluxes = dimensions.of(self.ndim).fluxes
        inner = hourglass_weights(entries, values, self.stencil.beta)
        return lambda u: self.modes(u, lambda v: torch.stack(fluxes(*v.unbind(2), *entries, *inner), 2))


class StencilBlock(DiffusionBlock):
    """Compute the 3×3 entries and apply them to the image, without convolutions, for comparison.

    Parameters
    ----------
    model, stencil, learn, step, spacing, ndim, max_sigma, max_rho, device, dtype
        As for :class:`DiffusionBlock`; `ndim` is 2.

    Examples
    --------
    >>> import torch, aniso
    >>> aniso.nn.StencilBlock(aniso.EdgeEnhancing())(torch.rand(1, 1, 8, 8)).shape
    torch.Size([1, 1, 8, 8])
    """

    dimensions = (2,)

    def divergence(self, entries: Entries, values: Values) -> Callable[[Tensor], Tensor]:
        """Return u → Σ entries · neighbours."""
        four = directional_weights(self.stencil, entries, values)
        cells = zip(*(views.corners(w) for w in four), strict=True)
        rows = weights.stencil_entries(*cells)

        def apply(u: Tensor) -> Tensor:
            (height, width), padded = u.shape[-2:], pad_edges(u)
            terms = (
                rows[y][x] * padded[..., y : y + height, x : x + width] for y in range(3) for x in range(3)
            )
            return reduce(torch.add, terms)

        return apply


class Diffusion1d(DiffusionBlock):
    """Diffuse signals with the 1-D block of Alt et al., (N, C, L) → same.

    K1 = D⁺, σ1 = τΦ, K2 = D⁻ = −K1ᵀ and an identity skip, with Φ(v) = g(v²/λ²)·v; with several channels v² is
    their mean. With ``sigma`` > 0 the diffusivity depends on the smoothed signal.

    Parameters
    ----------
    model : PeronaMalik, EdgeEnhancing or Homogeneous
        Gives contrast, sigma and diffusivity. In one dimension all models with a diffusivity agree.
    learn : sequence of str
        What is learned, as for :class:`DiffusionBlock`, without ``"alpha"`` and ``"gamma"``.
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
        """Return the signals (N, C, L) after one step."""
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
    """Return the modes of a cell as kernels: the modes of 1 at one corner and 0 at all others."""
    corners = torch.eye(2**ndim, device=device).reshape(-1, *[2] * ndim)
    return torch.stack(dimensions.of(ndim).modes(*corners))


def directional_weights(stencil: DeltaStencil, entries: Entries, values: Values) -> tuple[Any, ...]:
    """Return w0 … w3 of the four directions x, ↘, y, ↙."""
    a, b, c = entries
    delta = weights.delta(a, b, c, values["alpha"], values["gamma"], stencil.beta or 0.0)
    return weights.directional_weights(a, b, c, delta)


def half_weights(stencil: DeltaStencil, entries: Entries, values: Values) -> list[Tensor]:
    """Return ½w0 … ½w3: the mean over two cells along the axes, the squared length √2 of diagonals."""
    return [0.5 * w for w in directional_weights(stencil, entries, values)]
