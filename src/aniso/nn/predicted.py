"""Diffusion with tensors that another network predicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from aniso import checks
from aniso.checks import Spacing
from aniso.engines.torch import operator
from aniso.formulas import views, weights
from aniso.formulas.predicted import squashed
from aniso.models import Homogeneous
from aniso.nn.block import Values, largest_step, share_of_limit, stencil_and_step
from aniso.nn.inputs import check_image, check_prediction, full_precision, working_precision
from aniso.nn.learned import Learning
from aniso.nn.net import cycles_of
from aniso.schemes import FED, FSI, Explicit
from aniso.stability import stable_step
from aniso.stencil import DeltaStencil

#: Where the logistic function has come to its ends.
_SATURATION = 50.0


class TensorDiffusion(Learning):
    """Diffusion of an image with tensors predicted by any network, stable for every prediction.

    The prediction holds three numbers of any size per pixel or per cell, the entries of a symmetric matrix S.
    The diffusion tensor is D = 1/(1 + e^(−S)) as a function of the matrix: symmetric, its eigenvalues between
    0 and 1. S = 0 diffuses with ½ in all directions. A fourth number s, if there is one, gives the weight of
    the hourglass mode, ζ = 1/(1 + e^(−s)), in place of the stencil; it is bounded, unlike softplus(s), since
    no step is stable for every ζ ≥ 0.

    Parameters
    ----------
    steps : int
        How many steps are made with the predicted tensors.
    scheme : Explicit, FED or FSI, optional
        Explicit steps, or cycles; see :class:`DiffusionNet`.
    stencil : DeltaStencil
        Gives ζ if it is not predicted.
    learn : sequence of str
        What is learned, of ``"alpha"``, ``"gamma"`` and ``"step"``.
    step : float, optional
        τ, at most the largest stable step. By default 0.9 of it.
    spacing : float or (float, float)
        Distance of the pixels, axis 0 first.
    device, dtype
        Of the learned parameters.

    Examples
    --------
    >>> import torch, aniso
    >>> image, prediction = torch.rand(2, 1, 32, 32), torch.nn.Conv2d(1, 4, 3, padding=1)
    >>> aniso.nn.TensorDiffusion(steps=5)(image, prediction(image)).shape
    torch.Size([2, 1, 32, 32])
    """

    def __init__(
        self,
        steps: int = 1,
        *,
        scheme: Explicit | FED | FSI | None = None,
        stencil: DeltaStencil = DeltaStencil(),  # noqa: B008 (frozen)
        learn: Sequence[str] = (),
        step: float | None = None,
        spacing: Spacing = 1.0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        checks.instance("stencil", stencil, (DeltaStencil,), "a DeltaStencil", "aniso.DeltaStencil()")
        cycles, pattern, scheme_step = cycles_of(scheme, steps)
        spacings = checks.axis_spacing(spacing, 2)
        # Eigenvalues up to 1 in all directions, like homogeneous diffusion.
        share = share_of_limit(
            scheme_step if step is None else step, stable_step(Homogeneous(), stencil, spacings)
        )
        constants = {"alpha": stencil.alpha, "gamma": stencil.gamma, "step": share}
        factory = {"device": device, "dtype": dtype}
        super().__init__(constants, stencil_and_step(stencil, share, factory), learn)
        self.cycles, self.pattern, self.stencil, self.spacings = cycles, pattern, stencil, spacings

    def forward(self, image: Tensor, prediction: Tensor) -> Tensor:
        """The images (N, C, H, W) after all steps; prediction (N, 3 or 4, H, W) or (N, 3 or 4, H+1, W+1)."""
        check_image(image, "N, C, H, W", self)
        check_prediction(prediction, image, self)
        with full_precision(image):
            u, values = working_precision(image), self.values()
            a, b, c, zeta = self._weights(over_cells(saturated(prediction.to(u.dtype)), image), values)
            beta = self.stencil.beta
            tau = values["step"] * largest_step(1.0, 1.0, self.spacings, values, beta)
            steps = tuple((weight, tau * factor) for weight, factor in self.pattern)
            for _ in range(self.cycles):
                u = operator.cycle(u, lambda v: operator.rate(v, a, b, c, zeta), steps)
            return u.to(image.dtype)

    def _weights(self, prediction: Tensor, values: Values) -> tuple[Any, Any, Any, Any]:
        """a, b, c and ζ over the cells, scaled to unit spacing."""
        h_y, h_x = self.spacings
        numbers = prediction[:, :, None].unbind(1)
        a, b, c = operator.at_unit_spacing(squashed(*numbers[:3]), self.spacings)
        if len(numbers) == 4:
            return a, b, c, numbers[3].sigmoid() / (h_x * h_y)
        beta = self.stencil.beta or 0.0
        return a, b, c, weights.hourglass_weight(a, b, c, values["alpha"], values["gamma"], beta)


def saturated(prediction: Tensor) -> Tensor:
    """The prediction, cut where it no longer matters: so no mean of the largest numbers is inf − inf."""
    return prediction.clamp(-_SATURATION, _SATURATION)


def over_cells(prediction: Tensor, image: Tensor) -> Tensor:
    """Numbers per pixel as means over the cells; on the boundary no mixed entry, so that no flux leaves."""
    if prediction.shape[-2:] == image.shape[-2:]:
        nw, ne, sw, se = views.corners(operator.mirrored(prediction))
        prediction = 0.25 * ((nw + ne) + (sw + se))
    inner = prediction[:, 1:2, 1:-1, 1:-1]
    mixed = torch.nn.functional.pad(inner, (1, 1, 1, 1))
    return torch.cat([prediction[:, :1], mixed, prediction[:, 2:]], dim=1)
