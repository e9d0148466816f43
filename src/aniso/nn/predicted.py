"""Diffusion with tensors that another network predicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from aniso import checks
from aniso.checks import Spacing
from aniso.engines.torch import operator
from aniso.engines.torch.operator import Entries
from aniso.formulas import dimensions, views
from aniso.formulas.predicted import SATURATION, squashed, squashed_volume
from aniso.models import Homogeneous
from aniso.nn import block, inputs
from aniso.nn.learned import Learning
from aniso.schemes import FED, FSI, Explicit
from aniso.stability import stable_step
from aniso.stencil import DeltaStencil


class TensorDiffusion(Learning):
    """Diffuse images with tensors predicted by any network, stable for all predictions.

    The prediction has three real numbers per pixel or per cell, the entries of a symmetric matrix S. The
    diffusion tensor is the matrix function D = 1/(1 + e^(−S)), with eigenvalues between 0 and 1; S = 0 gives
    D = ½I. An optional fourth number s determines the weight of the hourglass mode, ζ = 1/(1 + e^(−s)),
    instead of the stencil. ζ must be bounded, because no step size is stable for all ζ ≥ 0.

    With ``ndim=3`` it diffuses volumes. The prediction then has six numbers per voxel or cell, s_xx, s_xy,
    s_yy, s_xz, s_yz, s_zz with x the last axis, and an optional seventh for the weights of all hourglass
    modes: ζ as above for those in the three planes, and the mean of the three for that of all axes.

    Parameters
    ----------
    steps : int
        Number of steps with the predicted tensors.
    scheme : Explicit, FED or FSI, optional
        Explicit steps, or cycles; see :class:`DiffusionNet`.
    stencil : DeltaStencil
        Determines ζ if it is not predicted.
    learn : sequence of str
        Names of what is learned: ``"alpha"``, ``"gamma"`` and ``"step"``.
    step, spacing, ndim, device, dtype
        As for :class:`DiffusionBlock`.

    Examples
    --------
    >>> import torch, aniso
    >>> image, prediction = torch.rand(2, 1, 32, 32), torch.nn.Conv2d(1, 4, 3, padding=1)
    >>> aniso.nn.TensorDiffusion(steps=5)(image, prediction(image)).shape
    torch.Size([2, 1, 32, 32])
    >>> volume, prediction = torch.rand(1, 1, 8, 16, 16), torch.nn.Conv3d(1, 7, 3, padding=1)
    >>> aniso.nn.TensorDiffusion(steps=5, ndim=3)(volume, prediction(volume)).shape
    torch.Size([1, 1, 8, 16, 16])
    """

    #: Supported numbers of dimensions.
    dimensions: tuple[int, ...] = block.DiffusionBlock.dimensions

    def __init__(
        self,
        steps: int = 1,
        *,
        scheme: Explicit | FED | FSI | None = None,
        stencil: DeltaStencil = DeltaStencil(),  # noqa: B008 (frozen)
        learn: Sequence[str] = (),
        step: float | None = None,
        spacing: Spacing = 1.0,
        ndim: int = 2,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        checks.instance("stencil", stencil, (DeltaStencil,), "a DeltaStencil", "aniso.DeltaStencil()")
        cycles, pattern, scheme_step = block.cycles_of(scheme, steps)
        inputs.check_dimension(ndim, self.dimensions, type(self).__name__)
        spacings = checks.axis_spacing(spacing, ndim)
        # Eigenvalues up to 1 in all directions, like homogeneous diffusion.
        limit = stable_step(Homogeneous(), stencil, spacings, ndim)
        share = block.share_of_limit(block.one_step(scheme_step, step), limit)
        constants = {"alpha": stencil.alpha, "gamma": stencil.gamma, "step": share}
        factory = inputs.checked_factory(device, dtype)
        super().__init__(constants, block.stencil_and_step(stencil, share, factory), learn)
        self.cycles, self.pattern, self.stencil = cycles, pattern, stencil
        self.ndim, self.spacings = ndim, spacings

    def forward(self, image: Tensor, prediction: Tensor) -> Tensor:
        """Return the images (N, C, H, W), or volumes (N, C, D, H, W), after all steps.

        The prediction has shape (N, 3 or 4, H, W) or (N, 3 or 4, H+1, W+1) for images, (N, 6 or 7, D, H, W)
        or (N, 6 or 7, D+1, H+1, W+1) for volumes.
        """
        inputs.check_image(image, self.ndim, self)
        inputs.check_prediction(prediction, image)
        with inputs.full_precision(image):
            u, values = inputs.working_precision(image), self.values()
            # Clamped where the logistic function is constant: no mean of huge numbers is inf − inf.
            bounded = prediction.to(u.dtype).clamp(-SATURATION, SATURATION)
            entries, inner = self._weights(over_cells(bounded, image), values)
            tau = values["step"] * block.largest_step(1.0, 1.0, self.spacings, values, self.stencil.beta)
            steps = tuple((weight, tau * factor) for weight, factor in self.pattern)
            for _ in range(self.cycles):
                u = operator.cycle(u, lambda v: operator.rate(v, entries, inner), steps)
            return u.to(image.dtype)

    def _weights(self, prediction: Tensor, values: block.Values) -> tuple[Entries, Entries]:
        """Return the tensor and the hourglass weights over the cells, scaled to unit spacing."""
        numbers = prediction[:, :, None].unbind(1)
        count = len(dimensions.of(self.ndim).entry_axes)
        tensor = squashed(*numbers[:3]) if self.ndim == 2 else squashed_volume(*numbers[:6])
        entries = operator.at_unit_spacing(tensor, self.spacings)
        if len(numbers) == count:
            return entries, block.hourglass_weights(entries, values, self.stencil.beta)
        return entries, self._predicted_weights(numbers[count].sigmoid())

    def _predicted_weights(self, zeta: Tensor) -> Entries:
        """Return ζ scaled to unit spacing in each plane of two axes; in volumes also their mean."""
        if self.ndim == 2:
            h_y, h_x = self.spacings
            return (zeta / (h_x * h_y),)
        h_z, h_y, h_x = self.spacings
        per_area = (1 / (h_y * h_z), 1 / (h_x * h_z), 1 / (h_x * h_y))
        return tuple(zeta * per for per in (*per_area, sum(per_area) / 3))


def over_cells(prediction: Tensor, image: Tensor) -> Tensor:
    """Average numbers per pixel over cells; mixed ones become 0 at the boundary, so that no flux leaves."""
    formulas = dimensions.of(image.ndim - 2)
    if prediction.shape[2:] == image.shape[2:]:
        sums = views.corners(operator.pad_edges(prediction), formulas.ndim)
        while len(sums) > 1:
            sums = tuple(first + second for first, second in zip(sums[::2], sums[1::2], strict=True))
        prediction = sums[0] * 0.5**formulas.ndim
    numbers = list(prediction.split(1, dim=1))
    for number, axes in enumerate(formulas.entry_axes):
        if axes[0] != axes[1]:
            numbers[number] = _without_boundary(numbers[number], axes)
    return torch.cat(numbers, dim=1)


def _without_boundary(numbers: Tensor, axes: tuple[int, int]) -> Tensor:
    """Set the numbers in the first and last cell along these axes to 0."""
    spatial = range(2 - numbers.ndim, 0)
    inner = numbers[(..., *(slice(1, -1) if axis in axes else slice(None) for axis in spatial))]
    return torch.nn.functional.pad(inner, [int(axis in axes) for axis in reversed(spatial) for _ in range(2)])
