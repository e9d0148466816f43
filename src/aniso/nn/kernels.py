"""A learned diffusion with larger kernels, for all noise levels, stable for all parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from aniso import arrays, checks, engines
from aniso.colours import OPPONENT
from aniso.engines.torch import net as eager
from aniso.engines.torch.operator import largest_magnitude
from aniso.formulas.learned import bounded, level_polynomials
from aniso.nets.design import FARTHEST, LEAST_NOISE, LEVELS, TURNS, WIDEST, cosine_modes, waves
from aniso.nn.inputs import check_image, checked_factory, full_precision, working_precision

#: Number of polynomials of the noise level, and of powers of the correlation.
_POLYNOMIALS, _POWERS = 4, 2
#: Initial values of log c, a, b, and of s and μ before the logistic function.
_FIRST = (2.0, 1.0, 1.5, 0.0, -4.0)
#: Noise levels that are distinguished; 0 is taken as the lowest.
_NOISES = (LEAST_NOISE, 1e30)
#: Kernels of a stage that fit the registers of a GPU.
_MOST_FUSED = 32
#: The engines that run on tensors.
_ENGINES = tuple(name for name, engine in engines.ENGINES.items() if engine.arrays == "torch")
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

    With `colour`, images of three channels are diffused on other axes: brightness, the mean of the channels,
    as a grey image with the noise level σ/√3, and two differences of colours. These share weights of their
    own, whose x = a (M e + N ē + P ē') + b also depends on the averages ē' of brightness. The kernels are the
    same. The mean of each channel is preserved and the norm of the image never grows.

    With `correlated`, a, b, c, s and μ also depend on the correlation of the noise, the width in pixels of a
    Gaussian that makes it of white noise; white noise has the parameters that it has without.

    Parameters
    ----------
    dilations : sequence of int
        Dilation of the kernels in each stage. If it is greater than 1, the image is smoothed before the
        kernels are applied, and Kᵀ includes the adjoint of this smoothing.
    kernels : int
        Number of kernels of a stage, half of them even and half odd. Each is used in four orientations.
    side : int
        Side of the kernels, an odd number.
    colour : bool
        Whether there are weights for colours. Other images than those of three channels do not use them.
    correlated : bool
        Whether there are parameters for correlated noise.
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
        colour: bool = False,
        correlated: bool = False,
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
        self.count, self.colour, self.correlated = count, colour, correlated
        factory = checked_factory(device, torch.get_default_dtype() if dtype is None else dtype)
        self.stages = nn.ModuleList(
            KernelStage(number, count, width, factory, colour=colour, correlated=correlated)
            for number in numbers
        )

    def forward(
        self,
        image: Tensor,
        noise: float | Tensor,
        correlation: float | Tensor = 0.0,
        *,
        engine: str | None = None,
    ) -> Tensor:
        """Return the images after all stages.

        `noise` is the standard deviation of the noise in grey values from 0 to 255: a number, or a tensor
        with one number per image, (N,). For images from 0 to 1, multiply image and noise by 255. So is
        `correlation`, the width of the Gaussian in pixels, for nets that are made with `correlated`; widths
        above 1.5 are taken as 1.5.

        `engine` is "torch" for PyTorch operations or "triton" for fused kernels. By default, images on a GPU
        are processed by fused kernels if no gradients are needed.
        """
        check_image(image, 2, self)
        u = working_precision(image)
        noise = self.checked("noise", noise, u, "it is the standard deviation of the noise.")
        width = None
        if isinstance(correlation, Tensor) or correlation != 0:  # 0 changes nothing
            width = self.checked("correlation", correlation, u, "it is the width of a Gaussian in pixels.")
        if not self.correlated and not isinstance(correlation, Tensor) and correlation != 0:
            raise ValueError(
                f"this net has no parameters for correlated noise, got correlation={correlation}. Leave it "
                "out, or make the net with correlated=True and train it."
            )
        learned_part = self.part_function(engine, image)
        with full_precision(image):
            level = noise.to(u).reshape(-1, 1)
            coloured = self.colour and u.shape[1] == 3
            parts: tuple[Tensor, ...] = (u,)
            if coloured:
                level = level / 3**0.5
                turned = times(OPPONENT, u) / 3**0.5
                parts = (turned[:, :1], turned[:, 1:])
            level = level.clamp(*_NOISES)
            given, polynomials = parts, chebyshev(level)
            powers = None
            if self.correlated and width is not None:
                powers = correlation_powers(width.to(u).reshape(-1, 1))
            for stage in self.stages:
                parts = stage(parts, given, level, polynomials, powers, learned_part)
            u = times(zip(*OPPONENT, strict=True), torch.cat(parts, 1)) * 3**0.5 if coloured else parts[0]
            return u.to(image.dtype)

    def part_function(self, engine: str | None, image: Tensor) -> Callable[..., tuple[Tensor, Tensor]]:
        """Return the function of an engine that carries out stages."""
        if engine is None:
            learns = image.requires_grad or any(parameter.requires_grad for parameter in self.parameters())
            # With gradients, the PyTorch operations would be carried out again.
            is_eager = (learns and torch.is_grad_enabled()) or self.count > _MOST_FUSED
            engine = "torch" if is_eager else _default_engine(image.device)
        elif engine not in _ENGINES:
            raise ValueError(f"engine must be None or one of {', '.join(_ENGINES)}, got {engine!r}.")
        if engine == "torch":
            return eager.learned_part
        if self.count > _MOST_FUSED:
            raise ValueError(
                f"fused kernels are for nets with at most {_MOST_FUSED} kernels, and this one has "
                f'{self.count}. Leave engine out, or give engine="torch".'
            )
        _check_kernels(image.device)
        from aniso.engines.triton.net import learned_part

        return learned_part

    @staticmethod
    def checked(name: str, given: float | Tensor, image: Tensor, why: str) -> Tensor:
        """Return noise levels or correlations as a tensor with one or N numbers."""
        if isinstance(given, Tensor):
            arrays.check_tensor(name, given)
            if given.shape not in ((), (1,), image.shape[:1]):
                raise ValueError(
                    f"{name} must be a number or have one per image, ({len(image)},): got the shape "
                    f"{tuple(given.shape)}."
                )
            return given
        if not torch.compiler.is_compiling():  # numbers without a value are not checked
            given = checks.within(name, given, 0.0, _NOISES[1], why)
        return image.new_full((), given)  # not a copy from the host, for which it would wait


class KernelStage(nn.Module):
    """One stage of a `KernelDiffusionNet`."""

    modes: Tensor
    waves: Tensor
    relative: Tensor

    def __init__(
        self,
        dilation: int,
        kernels: int,
        side: int,
        factory: dict[str, Any],
        *,
        colour: bool = False,
        correlated: bool = False,
    ) -> None:
        super().__init__()
        self.dilation, self.side = dilation, side
        modes, decline = (torch.from_numpy(one) for one in cosine_modes(side))
        coefficients = torch.randn(2, kernels // 2, modes.shape[1]) * decline.float()[:, None]
        self.coefficients = nn.Parameter(coefficients.to(**factory))
        mixing = 0.02 * torch.randn(2, kernels, kernels, TURNS)
        mixing[:, range(kernels), range(kernels), 0] -= 0.5
        self.mixing = nn.Parameter(mixing.to(**factory))
        levels = torch.zeros(3 * kernels + 2, _POLYNOMIALS)
        levels[:-2, 0] = torch.tensor(_FIRST[:3]).repeat_interleave(kernels)
        levels[-2:, 0] = torch.tensor(_FIRST[3:])
        self.levels = nn.Parameter(levels.to(**factory))
        if colour:  # at first as for brightness
            averaged = torch.zeros(1, kernels, kernels, TURNS)
            self.colour_mixing = nn.Parameter(torch.cat([mixing, averaged]).to(**factory))
            self.colour_levels = nn.Parameter(levels.to(**factory, copy=True))
        if correlated:
            self.correlation = nn.Parameter(torch.zeros(len(levels), _POWERS).to(**factory))
        turns = torch.arange(TURNS, device=factory["device"])
        self.register_buffer("modes", modes.to(**factory), persistent=False)
        self.register_buffer("waves", torch.from_numpy(waves(side, dilation)).to(**factory), persistent=False)
        self.register_buffer("relative", turns[:, None] ^ turns, persistent=False)

    def forward(
        self,
        parts: tuple[Tensor, ...],
        given: tuple[Tensor, ...],
        noise: Tensor,
        polynomials: Tensor,
        powers: Tensor | None = None,
        learned_part: Callable[..., tuple[Tensor, Tensor]] = eager.learned_part,
    ) -> tuple[Tensor, ...]:
        """Return the parts of the images after this stage: all channels, or brightness and colours.

        `learned_part` is the function of an engine that carries it out.
        """
        kernels = self.kernels(parts[0].dtype)
        whole = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
        results: list[Tensor] = []
        averaged: Tensor | None = None
        for number, (u, f) in enumerate(zip(parts, given, strict=True)):
            levels, mixing = (
                (self.colour_levels, self.colour_mixing) if number else (self.levels, self.mixing)
            )
            values = polynomials @ bounded(levels).to(u.dtype).T
            if powers is not None:
                values = values + powers @ bounded(self.correlation).to(u.dtype).T
            contrast, gain, bias = (
                part.repeat_interleave(TURNS, dim=1) for part in values[:, :-2].chunk(3, dim=1)
            )
            unit = (contrast - noise.log()).clamp(max=math.log(largest_magnitude(u.dtype))).exp()
            numbers = torch.cat([unit, gain, bias, values[:, -2:].sigmoid()], dim=1)
            matrices = self.matrices(mixing, u.dtype)
            keeps = number + 1 < len(parts)
            after, averaged = learned_part(
                u, f, whole, kernels, matrices, numbers, averaged, self.dilation, keeps
            )
            results.append(after)
        return tuple(results)

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

    def matrices(self, mixing: Tensor, dtype: torch.dtype) -> Tensor:
        """Return matrices of weights that depend on kernels and their relative orientation."""
        matrices = bounded(mixing).to(dtype)[..., self.relative]
        return matrices.transpose(2, 3).flatten(3).flatten(1, 2)

    def extra_repr(self) -> str:
        """Describe the kernels and the bounded numbers."""
        kernels = 2 * self.coefficients.shape[1]
        return f"dilation={self.dilation}, kernels={kernels}, side={self.side}, w, s and μ in [0, 1]"


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _default_engine(device: torch.device) -> str:
    return engines.default("torch", device)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _check_kernels(device: torch.device) -> bool:
    """Raise if fused kernels cannot run on a device."""
    engines.check_name("triton")
    from aniso.engines.triton.devices import check_device

    check_device(device)
    return True


def times(matrix: Iterable[Sequence[float]], image: Tensor) -> Tensor:
    """Return a matrix times the channels; no tensor is made of the matrix, for which a device would wait."""
    channels = [image[:, k : k + 1] for k in range(3)]
    rows = [[weight * channel for weight, channel in zip(row, channels, strict=True)] for row in matrix]
    return torch.cat([first + second + third for first, second, third in rows], dim=1)


def chebyshev(noise: Tensor) -> Tensor:
    """Return the first Chebyshev polynomials of the logarithm of the noise level, (N, 1) → (N, 4)."""
    low, high = (math.log(level) for level in LEVELS)
    x = ((noise.log() - low) * (2 / (high - low)) - 1).clamp(-1, 1)
    return torch.cat(level_polynomials(x), dim=1)


def correlation_powers(width: Tensor) -> Tensor:
    """Return powers of the logarithm of how much a Gaussian of this width amplifies low frequencies."""
    place = torch.arange(-FARTHEST, FARTHEST + 1, device=width.device, dtype=width.dtype)
    exponent = (place / width.clamp(1e-3, WIDEST)).square()
    gain = (-exponent / 2).exp().sum(dim=1, keepdim=True).square() / (-exponent).exp().sum(
        dim=1, keepdim=True
    )
    return torch.cat([gain.log() ** power for power in range(1, _POWERS + 1)], dim=1)
