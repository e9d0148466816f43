"""A stack of diffusion blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from aniso import checks
from aniso.models import ImageDriven
from aniso.nn.block import DiffusionBlock, Pattern
from aniso.nn.inputs import check_image, full_precision, working_precision
from aniso.schemes import FED, FSI, Explicit
from aniso.stencil import DeltaStencil

_MOST_STEPS = 10**6


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
        check_image(image, self.ndim, self)
        with full_precision(image):
            u = working_precision(image)
            for number in range(self.cycles):
                block = self.blocks[number % len(self.blocks)]
                assert isinstance(block, DiffusionBlock)
                if self.checkpoint:
                    u = checkpoint(
                        block.cycle, u, self.pattern, use_reentrant=False, preserve_rng_state=False
                    )
                else:
                    u = block.cycle(u, self.pattern)
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
