"""An explicit diffusion step as a residual block, and stacks of such blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from aniso import checks
from aniso.checks import Spacing
from aniso.engines.torch import operator
from aniso.engines.torch.operator import Entries
from aniso.engines.torch.smoothing import Kernels, half_kernel
from aniso.formulas import bounds, dimensions
from aniso.models import ImageDriven
from aniso.models.diffusivity import forms
from aniso.nn import inputs
from aniso.nn.learned import Interval, LearnedDiffusivity, Learning, Positive, names_of
from aniso.parameters import of_model
from aniso.schemes import FED, FSI, Explicit
from aniso.stencil import DeltaStencil

Values = dict[str, Any]
#: Steps (w, share of the step) that share one tensor.
Pattern = tuple[tuple[float, float], ...]

ONE_STEP: Pattern = ((1.0, 1.0),)
#: The smallest Gaussian that can be learned, in pixels: narrower ones do not differ from none.
_NARROWEST = 0.1
_MOST_STEPS = 10**6


class DiffusionBlock(Learning):
    """Make one explicit step, u − τ·Kᵀ Φ(K u), (N, C, H, W) → same.

    K computes the mean gradient and the hourglass mode of every 2×2 cell (three channels), the activation Φ
    multiplies them by the diffusion tensor, and the mirrored kernel −Kᵀ maps them back to pixels. The
    Euclidean norm never grows, whatever values the learned parameters take.

    With ``ndim=3`` it takes volumes (N, C, D, H, W), with seven channels per 2×2×2 cell.

    Parameters
    ----------
    model : EdgeEnhancing, EdgeContinuing, CoherenceEnhancing, PeronaMalik or Homogeneous
        The model, which determines the diffusion tensor.
    stencil : DeltaStencil
        The discretisation.
    learn : sequence of str
        Names of what is learned: the model's parameters (``"contrast"``, ``"sigma"``, ``"diffusivity"``, …),
        ``"alpha"``, ``"gamma"`` and ``"step"``. All others are constant.
    step : float, optional
        τ, at most the largest stable step. By default 0.9 of it.
    spacing : float or one float per axis
        Pixel spacing along each axis.
    ndim : {2, 3}
        2 for images, 3 for volumes.
    max_sigma, max_rho : float, optional
        The largest values that a learned ``sigma`` and ``rho`` can take; they fix the radius of the kernels.
        By default twice the value at the start, but at least two pixels.
    device, dtype
        Device and data type of the learned parameters.

    Examples
    --------
    >>> import torch, aniso
    >>> block = aniso.nn.DiffusionBlock(aniso.EdgeEnhancing(contrast=10), learn=["contrast", "step"])
    >>> smooth = block(torch.rand(2, 3, 32, 32))
    >>> smooth.shape, sorted(name for name, _ in block.named_parameters())
    (torch.Size([2, 3, 32, 32]), ['learned.contrast.raw', 'learned.step.raw'])
    """

    #: Supported numbers of dimensions.
    dimensions: tuple[int, ...] = (2, 3)
    _learns_stencil = True

    def __init__(
        self,
        model: ImageDriven,
        stencil: DeltaStencil = DeltaStencil(),  # noqa: B008 (frozen)
        *,
        learn: Sequence[str] = (),
        step: float | None = None,
        spacing: Spacing = 1.0,
        ndim: int = 2,
        max_sigma: float | None = None,
        max_rho: float | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        checks.instance("model", model, (ImageDriven,), "a model that follows the image", _EXAMPLE)
        checks.instance("stencil", stencil, (DeltaStencil,), "a DeltaStencil", "aniso.DeltaStencil()")
        operator.check_diffusivity(getattr(model, "diffusivity", None), torch.empty(0))
        inputs.check_dimension(ndim, self.dimensions, type(self).__name__)
        spacings = checks.axis_spacing(spacing, ndim)
        factory = inputs.checked_factory(device, dtype)
        for name in ("sigma", "rho"):
            checks.not_too_many_pixels(name, getattr(model, name, 0.0), spacings)
        lambda1, lambda2 = model.eigenvalue_bounds(ndim)
        # A learned ε may become 1.
        eigenvalues = (lambda1, lambda1 if "min_diffusivity" in names_of(learn) else lambda2)
        start = {"alpha": stencil.alpha, "gamma": stencil.gamma}
        share = share_of_limit(step, largest_step(*eigenvalues, spacings, start, stencil.beta))
        constants = {name: getattr(model, name) for name in of_model(model)}
        largest = {
            name: _largest(name, given, constants[name], min(spacings))
            for name, given in (("sigma", max_sigma), ("rho", max_rho))
            if name in constants
        }
        learnable: dict[str, Callable[[], Any]] = {}
        for name, parameter in of_model(model).items():
            value, about = constants[name], parameter.about
            if about.switch:
                continue
            if name == "diffusivity":
                learnable["diffusivity"] = partial(LearnedDiffusivity, forms(value).diffusivity, **factory)
            elif name in largest:
                narrowest = _NARROWEST * min(spacings)
                learnable[name] = partial(Interval, value, narrowest, largest[name], **factory)
            elif about.high < float("inf"):
                learnable[name] = partial(Interval, value, about.low, about.high, **factory)
            else:
                learnable[name] = partial(Positive, value, **factory)
        learnable |= stencil_and_step(stencil if self._learns_stencil else None, share, factory)
        constants |= {"alpha": stencil.alpha, "gamma": stencil.gamma, "step": share}
        super().__init__(constants, learnable, learn)
        self.model, self.stencil, self.ndim, self.spacings = model, stencil, ndim, spacings
        self._largest, self._eigenvalue_bounds = largest, eigenvalues

    def forward(self, image: Tensor) -> Tensor:
        """Return the images (N, C, H, W), or volumes (N, C, D, H, W), after one step."""
        inputs.check_image(image, self.ndim, self)
        # Steps are computed in single precision at least: half precision would lose them to rounding.
        with inputs.full_precision(image):
            return self.cycle(inputs.working_precision(image), ONE_STEP).to(image.dtype)

    def cycle(self, u: Tensor, pattern: Pattern) -> Tensor:
        """Return the images after steps that share one tensor, that of the images given."""
        values = self.values()
        entries = self.tensor(u, values)
        tau = values["step"] * self.largest_step(values)
        steps = tuple((weight, tau * factor) for weight, factor in pattern)
        return operator.cycle(u, self.divergence(entries, values), steps)

    def tensor(self, u: Tensor, values: Values) -> Entries:
        """Return the diffusion tensor over the cells, xx, xy, yy, …, scaled to unit spacing."""
        contrast = values.get("contrast", 1.0)
        # The derivatives are in units of the contrast already.
        formula = self.model.tensor_formula(u.shape[1], {**values, "contrast": 1.0}, self.ndim)
        noise, integration = self._kernels("sigma", values, u), self._kernels("rho", values, u)
        entries = operator.image_tensor(u, formula, contrast, self.spacings, noise, integration)
        return operator.at_unit_spacing(entries, self.spacings)

    def divergence(self, entries: Entries, values: Values) -> Callable[[Tensor], Tensor]:
        """Return the linear map u → A u = div(D ∇u)."""
        inner = hourglass_weights(entries, values, self.stencil.beta)
        return lambda u: operator.rate(u, entries, inner)

    def largest_step(self, values: Values) -> Any:
        """Return the largest stable step for the current parameters."""
        return largest_step(*self._eigenvalue_bounds, self.spacings, values, self.stencil.beta)

    def extra_repr(self) -> str:
        """Describe the model and the constants."""
        return f"{type(self.model).__name__}, {super().extra_repr()}, spacing={self.spacings}"

    def _kernels(self, name: str, values: Values, u: Tensor) -> Kernels:
        width = values.get(name, 0.0)
        largest = self._largest[name] if name in self.learned else None
        return tuple(
            half_kernel(width / h, u, None if largest is None else largest / h) for h in self.spacings
        )


_EXAMPLE = "aniso.EdgeEnhancing(contrast=3.5); for tensors of your own use aniso.diffuse or TensorDiffusion"


def stencil_and_step(
    stencil: DeltaStencil | None, share: float, factory: dict[str, Any]
) -> dict[str, Callable[[], Any]]:
    """Return modules to learn α, γ and the step, the latter as a fraction of the largest stable one."""
    learnable: dict[str, Callable[[], Any]] = {"step": partial(Interval, share, 0.0, 1.0, **factory)}
    if stencil is not None and stencil.beta is None:
        learnable["alpha"] = partial(Interval, stencil.alpha, 0.0, 0.5, **factory)
        learnable["gamma"] = partial(Interval, stencil.gamma, -1.0, 1.0, **factory)
    return learnable


def hourglass_weights(entries: Entries, values: Values, beta: float | None) -> Entries:
    """Return ζ for images, ζ_x, ζ_y, ζ_z and κ for volumes, differentiable in α and γ."""
    return dimensions.hourglass_weights(entries, values["alpha"], values["gamma"], beta or 0.0)


def largest_step(
    lambda1: float, lambda2: float, spacings: tuple[float, ...], values: Values, beta: float | None
) -> Any:
    """Return 2/ρ(A), differentiable in α and γ."""
    p2, p1 = sorted(1 / h**2 for h in spacings)[-2:]
    parameters = values["alpha"], values["gamma"], beta
    zeta = bounds.largest_hourglass_weight(lambda1, lambda2, p1, p2, *parameters)
    return 2 / bounds.spectral_bound(lambda1, p1, zeta)


def share_of_limit(step: float | None, limit: float) -> float:
    """Return the step as a fraction of the largest stable one; 0.9 if none is given."""
    if step is None:
        return 0.9
    number = checks.within(
        "step", step, 0.0, limit, "beyond it images may blow up. Leave it out for 0.9 of it.", open_low=True
    )
    return number / limit


def _largest(name: str, given: float | None, value: float, spacing: float) -> float:
    if given is None:
        return max(2 * value, 2 * spacing)
    why = f"it is the largest value that a learned {name} can take, and fixes the radius of its kernel."
    return checks.within(f"max_{name}", given, max(value, 2 * _NARROWEST * spacing), 1e6 * spacing, why)


class DiffusionNet(nn.Module):
    """Make several diffusion steps, (N, C, H, W) → same, or (N, C, D, H, W) → same.

    Parameters
    ----------
    model : EdgeEnhancing, EdgeContinuing, CoherenceEnhancing, PeronaMalik or Homogeneous
        The model, which determines the diffusion tensor.
    steps : int
        Total number of steps; for FED and FSI a multiple of the number of cycles.
    scheme : Explicit, FED or FSI, optional
        Explicit steps with one tensor each, or cycles that share one.
    shared : bool
        If True, all steps (cycles, for FED and FSI) share their parameters.
    checkpoint : bool
        If True, recompute the steps in the backward pass instead of storing them, which saves memory.
    stencil, learn, ndim, **options
        As for :class:`DiffusionBlock`: also step, spacing, max_sigma, max_rho, device, dtype.

    Examples
    --------
    >>> import torch, aniso
    >>> model = aniso.EdgeEnhancing(contrast=10)
    >>> net = aniso.nn.DiffusionNet(model, steps=4, learn=["contrast"], shared=False)
    >>> net(torch.rand(1, 1, 16, 16)).shape, sum(p.numel() for p in net.parameters())
    (torch.Size([1, 1, 16, 16]), 4)
    """

    #: Supported numbers of dimensions.
    dimensions: tuple[int, ...] = DiffusionBlock.dimensions

    def __init__(
        self,
        model: ImageDriven,
        steps: int = 10,
        *,
        scheme: Explicit | FED | FSI | None = None,
        stencil: DeltaStencil = DeltaStencil(),  # noqa: B008 (frozen)
        learn: Sequence[str] = (),
        shared: bool = True,
        checkpoint: bool = False,
        ndim: int = 2,
        **options: Any,
    ) -> None:
        super().__init__()
        self.cycles, self.pattern, step = cycles_of(scheme, steps)
        options["step"] = one_step(step, options.get("step"))
        count = 1 if shared else self.cycles
        self.blocks = nn.ModuleList(
            DiffusionBlock(model, stencil, learn=learn, ndim=ndim, **options) for _ in range(count)
        )
        self.checkpoint, self.ndim = checkpoint, ndim

    def forward(self, image: Tensor) -> Tensor:
        """Return the images (N, C, H, W), or volumes (N, C, D, H, W), after all steps."""
        inputs.check_image(image, self.ndim, self)
        with inputs.full_precision(image):
            u = inputs.working_precision(image)
            for number in range(self.cycles):
                block = self.blocks[number % len(self.blocks)]
                assert isinstance(block, DiffusionBlock)
                u = inputs.run_stage(block.cycle, u, self.pattern, recompute=self.checkpoint)
            return u.to(image.dtype)

    def extra_repr(self) -> str:
        """Describe the steps."""
        return f"{self.cycles} × {len(self.pattern)} steps, checkpoint={self.checkpoint}"


def one_step(of_scheme: float | None, given: float | None) -> float | None:
    """Return the step, which may be given by the scheme or directly."""
    if of_scheme is not None and given is not None:
        raise ValueError(
            f"the step was given twice, as Explicit(step={of_scheme:g}) and as step={given:g}. Leave one out."
        )
    return given if of_scheme is None else of_scheme


def cycles_of(scheme: Explicit | FED | FSI | None, steps: int) -> tuple[int, Pattern, float | None]:
    """Return the number of cycles, the steps of each, and the step if the scheme gives one."""
    steps = checks.whole_within("steps", steps, 1, _MOST_STEPS, "Try steps=10.")
    scheme = Explicit() if scheme is None else scheme
    checks.instance("scheme", scheme, (Explicit, FED, FSI), "Explicit, FED or FSI", "aniso.FSI(cycles=2)")
    if isinstance(scheme, Explicit):
        return steps, scheme.pattern(1), scheme.step
    if steps % scheme.cycles:
        raise ValueError(
            f"steps={steps} cannot be divided into {scheme.cycles} equal cycles. Give a multiple of "
            f"{scheme.cycles}."
        )
    return scheme.cycles, scheme.pattern(steps // scheme.cycles), None
