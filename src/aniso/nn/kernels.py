"""A learned diffusion with larger kernels, for all noise levels, stable for all parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aniso import arrays, checks
from aniso.engines.torch.operator import finite_gradient
from aniso.nn.inputs import check_image, checked_factory, full_precision, working_precision
from aniso.nn.steered import bounded

#: Orientations of an even or odd kernel: the symmetries of the grid, without the rotation by 180°.
_TURNS = 4
#: Frequencies per period and dilation at which the squared transfer function is sampled.
_SAMPLES = 64
#: Noise levels between which the parameters vary, and the number of polynomials that describe it.
_LEVELS, _POLYNOMIALS = (2.0, 75.0), 4
#: Initial values of log c, a, b, and of s and μ before the logistic function.
_FIRST = (2.0, 1.0, 1.5, 0.0, -4.0)
#: Noise levels that are distinguished; 0 is taken as the lowest.
_NOISES = (1e-30, 1e30)
_TRY = "Try dilations=[1, 2, 1], kernels=6, side=5."


class KernelDiffusionNet(nn.Module):
    """Remove noise by a diffusion with learned kernels, (N, C, H, W) → same.

    A stage has kernels K of mean 0, in all orientations of the grid. Their responses v = K u have weights w
    in [0, 1], which depend on the responses of all kernels, and

        u ← (1 − μ)(u − 2s Kᵀ(w v)/B) + μ f,    w = 1/(1 + e^(−x)),
        x = a (M e + N ē) + b,    e = log(1 + (c v/σ)²),

    with the noisy image f, the noise level σ and the average ē of e over the neighbourhood. B is an upper
    bound of the squared norm of K, and 0 ≤ s, μ ≤ 1. So the mean is preserved and the Euclidean norm never
    grows, whatever the parameters. Learned are the kernels, the matrices M and N, and a, b, c, s, μ as
    functions of the noise level. Rotating or mirroring the image rotates or mirrors the result. All channels
    share the weights, with (c v/σ)² averaged over them.

    Parameters
    ----------
    dilations : sequence of int
        Dilation of the kernels in each stage. If it is greater than 1, the image is smoothed before the
        kernels are applied, and Kᵀ includes the adjoint of this smoothing.
    kernels : int
        Number of kernels of a stage, half of them even and half odd. Each is used in four orientations.
    side : int
        Side of the kernels, an odd number.
    device, dtype
        Device and data type of the parameters.

    Examples
    --------
    >>> import torch, aniso
    >>> net = aniso.nn.KernelDiffusionNet([1, 2], kernels=4)
    >>> image = 128 + 20 * torch.randn(1, 1, 32, 32)
    >>> net(image, 20.0).shape, sum(p.numel() for p in net.parameters())
    (torch.Size([1, 1, 32, 32]), 464)
    """

    def __init__(
        self,
        dilations: Sequence[int] = (1, 2, 1, 2, 4, 1, 2, 1, 2, 1),
        *,
        kernels: int = 6,
        side: int = 5,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        given: Any = dilations
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise TypeError(f"dilations must be a sequence of int, got {dilations!r}. {_TRY}")
        numbers = [checks.whole_within("dilations", number, 1, 64, _TRY) for number in dilations]
        count = checks.whole_within("kernels", kernels, 2, 1000, _TRY)
        width = checks.whole_within("side", side, 3, 15, _TRY)
        if not numbers or count % 2 == 1 or width % 2 == 0:
            raise ValueError(
                "there must be at least one dilation, an even number of kernels, and an odd side, got "
                f"dilations={dilations}, kernels={kernels} and side={side}. {_TRY}"
            )
        factory = checked_factory(device, torch.get_default_dtype() if dtype is None else dtype)
        self.stages = nn.ModuleList(KernelStage(number, count, width, factory) for number in numbers)

    def forward(self, image: Tensor, noise: float | Tensor) -> Tensor:
        """Return the images after all stages.

        `noise` is the standard deviation of the noise in grey values from 0 to 255: a number, or a tensor
        with one number per image, (N,). For images from 0 to 1, multiply image and noise by 255.
        """
        check_image(image, 2, self)
        noise = self.checked_noise(noise, image)
        with full_precision(image):
            u = working_precision(image)
            level = noise.to(u).reshape(-1, 1).clamp(*_NOISES)
            f, polynomials = u, chebyshev(level)
            for stage in self.stages:
                u = stage(u, f, level, polynomials)
            return u.to(image.dtype)

    @staticmethod
    def checked_noise(noise: float | Tensor, image: Tensor) -> Tensor:
        """Return the noise levels as a tensor with one or N numbers."""
        if isinstance(noise, Tensor):
            arrays.check_tensor("noise", noise)
            if noise.shape not in ((), (1,), image.shape[:1]):
                raise ValueError(
                    f"noise must be a number or have one per image, ({len(image)},): got the shape "
                    f"{tuple(noise.shape)}."
                )
            return noise
        if not torch.compiler.is_compiling():  # numbers without a value are not checked
            noise = checks.within(
                "noise", noise, 0.0, _NOISES[1], "it is the standard deviation of the noise."
            )
        return torch.tensor(noise, dtype=torch.float64)


class KernelStage(nn.Module):
    """One stage of a `KernelDiffusionNet`."""

    modes: Tensor
    waves: Tensor
    relative: Tensor

    def __init__(self, dilation: int, kernels: int, side: int, factory: dict[str, Any]) -> None:
        super().__init__()
        self.dilation, self.side = dilation, side
        modes, decline = cosine_modes(side)
        coefficients = torch.randn(2, kernels // 2, modes.shape[1]) * decline[:, None]
        self.coefficients = nn.Parameter(coefficients.to(**factory))
        mixing = 0.02 * torch.randn(2, kernels, kernels, _TURNS)
        mixing[:, range(kernels), range(kernels), 0] -= 0.5
        self.mixing = nn.Parameter(mixing.to(**factory))
        levels = torch.zeros(3 * kernels + 2, _POLYNOMIALS)
        levels[:-2, 0] = torch.tensor(_FIRST[:3]).repeat_interleave(kernels)
        levels[-2:, 0] = torch.tensor(_FIRST[3:])
        self.levels = nn.Parameter(levels.to(**factory))
        turns = torch.arange(_TURNS, device=factory["device"])
        self.register_buffer("modes", modes.to(**factory), persistent=False)
        self.register_buffer("waves", waves(side, dilation).to(**factory), persistent=False)
        self.register_buffer("relative", turns[:, None] ^ turns, persistent=False)

    def forward(self, u: Tensor, f: Tensor, noise: Tensor, polynomials: Tensor) -> Tensor:
        """Return the images after this stage."""
        images, channels = u.shape[:2]
        kernels = self.kernels(u.dtype)
        values = (polynomials @ bounded(self.levels).to(u.dtype).T)[:, :, None, None]
        contrast, gain, bias = (
            part.repeat_interleave(_TURNS, dim=1) for part in values[:, :-2].chunk(3, dim=1)
        )
        step, back = values[:, -2:].sigmoid().chunk(2, dim=1)
        v = self.responses(u.flatten(0, 1)[:, None], kernels)
        v = v.reshape(images, channels, *v.shape[1:])
        most = torch.finfo(u.dtype).max ** 0.24  # so that squares stay finite
        unit = (contrast - noise.log()[:, :, None, None]).clamp(max=math.log(most)).exp()
        scaled = (v * unit[:, None]).clamp(-most, most)
        energy = (scaled * scaled).mean(dim=1).log1p()
        weights = (gain * self.mixed(energy) + bias).sigmoid()
        flux = v * finite_gradient(weights, u)[:, None]
        rate = self.responses_adjoint(flux.flatten(0, 1), kernels, u.shape)
        return torch.lerp(u - 2 * step * rate, f, back)

    def kernels(self, dtype: torch.dtype) -> Tensor:
        """Return the kernels in all orientations, (4·kernels, 1, side, side), with norm at most 1."""
        kernels = torch.einsum("pnm,pmyx->pnyx", bounded(self.coefficients), self.modes)
        both = (kernels, kernels.transpose(-2, -1))
        turned = torch.stack([k.flip(axes) for k in both for axes in ((), (-1,))], dim=2)
        transfer = torch.einsum("pnk,pfk->pfn", turned.flatten(3).flatten(1, 2), self.waves)
        largest = (transfer * transfer).sum(dim=(0, 2)).amax(dim=0)
        scaled = turned.flatten(0, 2)[:, None] * (largest + torch.finfo(largest.dtype).tiny).rsqrt()
        scaled = scaled.to(dtype)
        return scaled - scaled.mean(dim=(-2, -1), keepdim=True)  # 0 up to the precision of the parameters

    def mixed(self, energy: Tensor) -> Tensor:
        """Return M e + N ē, with weights that depend on the kernels and their relative orientation."""
        mixing = bounded(self.mixing).to(energy.dtype)[..., self.relative]
        own, averaged = mixing.transpose(2, 3).flatten(3).flatten(1, 2)[..., None, None]
        return F.conv2d(energy, own) + F.conv2d(self.averages(energy), averaged)

    def averages(self, energy: Tensor) -> Tensor:
        """Return averages over those of 3×3 pixels, spaced by the dilation, that lie inside the image."""
        return self.sums(energy) / self.sums(torch.ones_like(energy[:1, :1]))

    def sums(self, energy: Tensor) -> Tensor:
        """Return sums over 3×3 pixels, with zeros outside the image."""
        n = self.dilation
        e = F.pad(energy, [n, n, n, n])
        e = e[..., : -2 * n, :] + e[..., n:-n, :] + e[..., 2 * n :, :]
        return e[..., : -2 * n] + e[..., n:-n] + e[..., 2 * n :]

    def responses(self, u: Tensor, kernels: Tensor) -> Tensor:
        """Return K u, (N, 1, H, W) → (N, 4·kernels, H, W); the image is mirrored at its boundary."""
        for axis in (-2, -1):
            u = u.index_select(axis, self.mirrored(u.shape[axis], u.device))
        return F.conv2d(self.smooth(u, F.conv2d), kernels, dilation=self.dilation)

    def responses_adjoint(self, flux: Tensor, kernels: Tensor, shape: torch.Size) -> Tensor:
        """Return Kᵀ of the flux in the shape of the image."""
        u = self.smooth(F.conv_transpose2d(flux, kernels, dilation=self.dilation), F.conv_transpose2d)
        for axis in (-2, -1):
            length = shape[axis]
            zeros = u.new_zeros([*u.shape[:axis], length, *u.shape[axis:][1:]])
            u = zeros.index_add(axis, self.mirrored(length, u.device), u)
        return u.reshape(shape)

    def mirrored(self, length: int, device: torch.device) -> Tensor:
        """Return the pixels of an axis with as many mirrored ones at its ends as the kernels reach."""
        reach = self.dilation * (self.side // 2) + self.dilation - 1
        position = torch.arange(-reach, length + reach, device=device)
        position = position % torch.full_like(position, 2 * length)
        return torch.minimum(position, 2 * length - 1 - position)

    def smooth(self, u: Tensor, convolve: Any) -> Tensor:
        """Average over the pixels between those that a dilated kernel takes."""
        if self.dilation == 1:
            return u
        n = self.dilation
        hat = (n - torch.arange(1 - n, n, device=u.device).abs()).to(u.dtype) / n**2
        smoothed: Tensor = convolve(convolve(u, hat[None, None, :, None]), hat[None, None, None])
        return smoothed

    def extra_repr(self) -> str:
        """Describe the kernels and the bounded numbers."""
        kernels = 2 * self.coefficients.shape[1]
        return f"dilation={self.dilation}, kernels={kernels}, side={self.side}, w, s and μ in [0, 1]"


def chebyshev(noise: Tensor) -> Tensor:
    """Return the first Chebyshev polynomials of the logarithm of the noise level, (N, 1) → (N, 4)."""
    low, high = (math.log(level) for level in _LEVELS)
    x = ((noise.log() - low) * (2 / (high - low)) - 1).clamp(-1, 1)
    return torch.cat([torch.ones_like(x), x, 2 * x * x - 1, (4 * x * x - 3) * x], dim=1)


def cosine_modes(side: int) -> tuple[Tensor, Tensor]:
    """Return the odd and the even cosine modes of mean 0, (2, count, side, side), and initial sizes."""
    axis = torch.arange(side, dtype=torch.float64)
    wave = (math.pi / side * axis[:, None] * (axis + 0.5)).cos()
    wave = wave / wave.norm(dim=1, keepdim=True)
    products = wave[:, None, :, None] * wave[None, :, None, :]
    order = axis[:, None] + axis
    parts = [order % 2 == 1, (order % 2 == 0) & (order > 0)]
    modes = torch.stack([products[part] for part in parts])
    sizes = torch.stack([2.0 ** (1 - order[part]) for part in parts])
    return modes, sizes.sqrt().float()


def waves(side: int, dilation: int) -> Tensor:
    """Return what makes transfer functions of odd and even kernels, (2, frequencies, side²).

    Σ|K̂|² is a trigonometric polynomial of degree d along each axis, and symmetric. Its maximum is at most
    that over n frequencies per period, divided by cos(πd/n) for each axis; one octant of them suffices.
    """
    count = _SAMPLES * dilation
    degree = dilation * (side - 1) + 2 * (dilation - 1)
    y, x = torch.triu_indices(count // 2 + 1, count // 2 + 1).double() * (2 * math.pi / count)
    grid = dilation * (torch.arange(side) - side // 2).double()
    phase = (y[:, None, None] * grid[:, None] + x[:, None, None] * grid).flatten(1)
    hat = _hat(y, dilation) * _hat(x, dilation) / math.cos(math.pi * degree / count)
    return torch.stack([phase.sin(), phase.cos()]) * hat[:, None]


def _hat(frequency: Tensor, dilation: int) -> Tensor:
    """Return the transfer function of the smoothing."""
    offset = torch.arange(1 - dilation, dilation)
    weights = (dilation - offset.abs()).double() / dilation**2
    return (frequency[:, None] * offset).cos() @ weights
