"""Diffusion in cells of k×k pixels, with learned modes and weights that another network predicts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aniso import arrays, checks
from aniso.formulas.learned import bounded
from aniso.formulas.predicted import SATURATION, largest_step, weigh
from aniso.nn.inputs import check_image, checked_factory, full_precision, working_precision
from aniso.nn.learned import Interval

#: Numbers for each cell, or what computes them from the responses.
Prediction = Tensor | Callable[[Tensor], Tensor]


class CellDiffusion(nn.Module):
    """Diffuse images in cells of k×k pixels, stable for all modes and predictions, (N, C, H, W) → same.

    A cell c is a block of k×k pixels inside the image. Its pixels P u have the responses M P u to k² − 1
    orthonormal modes of mean 0, the rows of M. A step is::

        u ← u − (2s/k²) Σ_c Pᵀ Mᵀ W M P u,    W = H diag(w) H,    H = I − 2 v vᵀ/∣v∣²,

    with 0 ≤ s ≤ 1. For each cell, a network predicts k² − 1 numbers, of which the logistic function makes the
    weights w, and optionally k² − 1 more, the vector v. Without it W is diagonal. The mean is preserved and
    the Euclidean norm never grows, whatever is predicted and learned.

    Learned are s and the modes, which begin as those of the cosine transform. For k = 2 these are the mean
    gradient and the hourglass, and every diffusion tensor with eigenvalues in [0, 1] is such a W. For
    s = ½ and a diagonal W, a step is shrinkage in sliding windows: each response is multiplied by 1 − w, and
    what all windows say about a pixel is averaged.

    Parameters
    ----------
    side : int
        k, from 2 to 15.
    steps : int
        Number of steps with the same modes.
    step : float
        Initial value of s, between 0 and 1.
    device, dtype
        Device and data type of the parameters.

    Examples
    --------
    Shrinkage in windows of 4×4 pixels: responses below three times the noise level are removed.

    >>> import torch, aniso
    >>> cells, noise = aniso.nn.CellDiffusion(side=4), 20.0
    >>> image = 128 + noise * torch.randn(1, 1, 32, 32)
    >>> result = cells(image, lambda v: 50 * (3 - v.abs().mean(dim=1) / noise))
    >>> bool(result.std() < 0.5 * image.std())
    True
    """

    def __init__(
        self,
        side: int = 3,
        *,
        steps: int = 1,
        step: float = 0.5,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.side = checks.whole_within("side", side, 2, 15, "A good choice is side=3.")
        self.steps = checks.whole_within("steps", steps, 1, 1_000_000, "A good choice is steps=1.")
        share = checks.within("step", step, 0.0, 1.0, "it is a fraction of the largest stable step.")
        factory = checked_factory(device, torch.get_default_dtype() if dtype is None else dtype)
        count = self.side**2 - 1
        self.rotation = nn.Parameter(torch.zeros(count * (count - 1) // 2, **factory))
        self.step = Interval(share, 0.0, 1.0, **factory)

    def forward(self, image: Tensor, prediction: Prediction) -> Tensor:
        """Return the images after all steps.

        The prediction has shape (N, k² − 1 or 2(k² − 1), H − k + 1, W − k + 1): for each cell one number for
        each mode and, optionally, the vector v. Or it is a function of the responses,
        (N, C, k² − 1, H − k + 1, W − k + 1), that returns such numbers; it is called in each step. All
        channels share the weights.
        """
        check_image(image, 2, self)
        with full_precision(image):
            u = working_precision(image)
            if min(u.shape[2:]) < self.side:  # there is no cell
                return image.clone()
            modes, tau = self.modes().to(u.dtype), largest_step(self.side) * self.step()
            for _ in range(self.steps):
                v = responses(u, modes)
                numbers = self._checked(prediction(v) if callable(prediction) else prediction, v).to(u.dtype)
                flux = weigh_responses(v, numbers.clamp(-SATURATION, SATURATION))
                change = F.conv_transpose2d(flux.flatten(0, 1), modes).reshape(u.shape)
                u = u - tau.to(u.dtype) * change
            return u.to(image.dtype)

    def responses(self, image: Tensor) -> Tensor:
        """Return the responses of all cells to the modes, (N, C, k² − 1, H − k + 1, W − k + 1)."""
        check_image(image, 2, self)
        with full_precision(image):
            u = working_precision(image)
            return responses(u, self.modes().to(u.dtype))

    def modes(self) -> Tensor:
        """Return the modes, (k² − 1, 1, k, k), in double precision, in which they are orthonormal."""
        cosines, count = cosine_modes(self.side, self.rotation.device), self.side**2 - 1
        places = torch.triu_indices(count, count, 1, device=self.rotation.device)
        upper = cosines.new_zeros(count, count).index_put(tuple(places), bounded(self.rotation.double()))
        skew = upper - upper.T
        one = torch.eye(count, dtype=skew.dtype, device=skew.device)
        rotation = torch.linalg.solve(one + skew, one - skew)  # Cayley's transform
        return (rotation @ cosines).reshape(count, 1, self.side, self.side)

    def _checked(self, prediction: object, v: Tensor) -> Tensor:
        """Return the numbers; raise if they do not fit the responses."""
        count = self.side**2 - 1
        wanted = f"({len(v)}, {count} or {2 * count}, {v.shape[-2]}, {v.shape[-1]})"
        if not isinstance(prediction, Tensor):
            raise TypeError(
                f"the prediction must be a tensor of shape {wanted}, or a function that returns one, got "
                f"{type(prediction).__name__}."
            )
        arrays.check_tensor("the prediction", prediction)
        fits = prediction.ndim == 4 and prediction.shape[1] in (count, 2 * count)
        if not fits or (prediction.shape[:1], prediction.shape[2:]) != (v.shape[:1], v.shape[3:]):
            raise ValueError(
                f"the prediction must have shape {wanted}, got {tuple(prediction.shape)}: numbers for the "
                "weights of all modes in each cell, and perhaps a vector that rotates the modes."
            )
        return prediction

    def extra_repr(self) -> str:
        """Describe the cells."""
        return f"side={self.side}, steps={self.steps}, weights in [0, 1]"


def cosine_modes(side: int, device: torch.device) -> Tensor:
    """Return the cosine modes of a cell without the constant one, (k² − 1, k²), in double precision."""
    axis = torch.arange(side, dtype=torch.float64, device=device)
    wave = (math.pi / side * axis[:, None] * (axis + 0.5)).cos()
    wave = wave / wave.norm(dim=1, keepdim=True)
    return torch.kron(wave, wave)[1:]


def responses(u: Tensor, modes: Tensor) -> Tensor:
    """Return M P u for all cells of each channel."""
    v = F.conv2d(u.flatten(0, 1)[:, None], modes)
    return v.reshape(*u.shape[:2], *v.shape[1:])


def weigh_responses(v: Tensor, numbers: Tensor) -> Tensor:
    """Return W v; the numbers are those of the weights and perhaps of the vector, for each cell."""
    w, *vectors = numbers[:, None].chunk(numbers.shape[1] // v.shape[2], dim=2)
    return weigh(v, w.sigmoid(), vectors[0], axis=2) if vectors else w.sigmoid() * v
