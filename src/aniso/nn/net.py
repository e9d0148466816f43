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
    """Several steps of diffusion, (N, C, H, W) → same, or (N, C, D, H, W) → same.

    Parameters
    ----------
    model : EdgeEnhancing, EdgeContinuing, CoherenceEnhancing, PeronaMalik or Homogeneous
        What steers the diffusion.
    steps : int
        How many steps in all. FED and FSI divide them into their cycles, so that their number must be a
        multiple of that of the cycles.
    scheme : Explicit, FED or FSI, optional
        Explicit steps, each with a tensor of its own, or cycles that share one.
    stencil : DeltaStencil
        How the diffusion is discretised.
    learn : sequence of str
        What is learned, see :class:`DiffusionBlock`.
    shared : bool
        Whether all steps (cycles, for FED and FSI) have the same parameters, or each its own.
    checkpoint : bool
        Whether to compute the steps again when gradients are taken, which saves the memory for storing them.
    ndim : {2, 3}
        2 for images, 3 for volumes.
    **options
        As for :class:`DiffusionBlock`: step, spacing, max_sigma, max_rho, device, dtype.

    Examples
    --------
    >>> import torch, aniso
    >>> model = aniso.EdgeEnhancing(contrast=10)
    >>> net = aniso.nn.DiffusionNet(model, steps=4, learn=["contrast"], shared=False)
    >>> net(torch.rand(1, 1, 16, 16)).shape, sum(p.numel() for p in net.parameters())
    (torch.Size([1, 1, 16, 16]), 4)
    """

    #: Those that it has a form for.
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
        """The images (N, C, H, W), or volumes (N, C, D, H, W), after all steps."""
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
        """How many steps."""
        return f"{self.cycles} × {len(self.pattern)} steps, checkpoint={self.checkpoint}"


def one_step(of_scheme: float | None, given: float | None) -> float | None:
    """The step, which may be given by the scheme or by itself."""
    if of_scheme is not None and given is not None:
        raise ValueError(
            f"the step was given twice, as Explicit(step={of_scheme:g}) and as step={given:g}. Leave one out."
        )
    return given if of_scheme is None else of_scheme


def cycles_of(scheme: Explicit | FED | FSI | None, steps: int) -> tuple[int, Pattern, float | None]:
    """Number of cycles, the steps of one, and the step if the scheme gives one."""
    steps = checks.whole("steps", steps, "Give the number of steps, e.g. steps=10.")
    if not 1 <= steps <= _MOST_STEPS:
        raise ValueError(f"steps must be at least 1 and at most {_MOST_STEPS}, got {steps}. Try steps=10.")
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
