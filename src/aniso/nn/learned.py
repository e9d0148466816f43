"""Numbers and functions that can be learned but never leave the range in which diffusion is stable.

Each has an unconstrained parameter and returns a value in its range, in single precision at least, because
rounding to half precision could make a stable step unstable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from aniso import checks
from aniso.formulas.diffusivities import gated_decline, gated_diffusivity
from aniso.models.diffusivity import check_diffusivity
from aniso.nn.inputs import working_precision

#: A value at an end of its range starts this fraction of the range inside, where its gradient is not 0.
_MARGIN = 0.01
_HIGHEST_DEGREE = 100


class Interval(nn.Module):
    """A learned number between two bounds.

    Parameters
    ----------
    value, low, high : float
        Initial value, and bounds. A value at a bound starts 1 % of the range inside.
    **factory
        dtype and device of the parameter.

    Notes
    -----
    The bounds are part of the state dict, so that loading a parameter restores the number.

    Examples
    --------
    >>> from aniso.nn import Interval
    >>> round(Interval(0.4, 0.0, 0.5)().item(), 6)
    0.4
    """

    bounds: Tensor

    def __init__(self, value: float, low: float, high: float, **factory: Any) -> None:
        super().__init__()
        low, high = (
            checks.within("bound", bound, -1e30, 1e30, "it bounds a number.") for bound in (low, high)
        )
        if not low < high:
            raise ValueError(
                f"low must be less than high, got {low} and {high}: between them a number is learned."
            )
        share = (checks.within("value", value, -1e30, 1e30, "there it starts.") - low) / (high - low)
        if not 0 < share < 1:
            share = _MARGIN if share <= 0 else 1 - _MARGIN
        self.register_buffer("bounds", torch.tensor((low, high), **factory))
        self.raw = nn.Parameter(torch.tensor(math.log(share / (1 - share)), **factory))

    def forward(self) -> Tensor:
        """Return the current number."""
        low, high = working_precision(self.bounds).unbind()
        return low + (high - low) * working_precision(self.raw).sigmoid()

    def extra_repr(self) -> str:
        """Describe value and range."""
        low, high = (_printed(bound) for bound in self.bounds)
        return f"{_printed(self())} in [{low}, {high}]"


class Positive(nn.Module):
    """A learned positive number, at most e⁸ ≈ 3000 times larger or smaller than its initial value.

    The initial value is part of the state dict, so that loading a parameter restores the number.

    Parameters
    ----------
    value : float
        Initial value; above 0.
    **factory
        dtype and device of the parameter.

    Examples
    --------
    >>> from aniso.nn import Positive
    >>> Positive(12.0)().item()
    12.0
    """

    start: Tensor
    _REACH = 8.0

    def __init__(self, value: float, **factory: Any) -> None:
        super().__init__()
        number = checks.within("value", value, 1e-30, 1e30, "it starts there and stays positive.")
        self.register_buffer("start", torch.tensor(number, **factory))
        self.raw = nn.Parameter(torch.tensor(0.0, **factory))

    def forward(self) -> Tensor:
        """Return the current number."""
        raw = working_precision(self.raw)
        return working_precision(self.start) * (self._REACH * (raw / self._REACH).tanh()).exp()

    def extra_repr(self) -> str:
        """Describe current and initial value."""
        return f"{_printed(self())}, started at {_printed(self.start)}"


class LearnedDiffusivity(nn.Module):
    """A diffusivity g(r) = 1 − s(r)·(1 − e^(−r)) whose gate s between 0 and 1 is learned.

    For all coefficients, g(0) = 1 and 0 < g ≤ 1, which is sufficient for stability; g need not decrease
    monotonically. The gate is the logistic function of a Chebyshev polynomial in r/(1 + r).

    Parameters
    ----------
    start : callable
        The initial diffusivity g(r), which is approximated.
    degree : int
        Degree of the polynomial.
    **factory
        dtype and device of the parameters.

    Examples
    --------
    >>> import torch
    >>> from aniso.nn import LearnedDiffusivity
    >>> g = LearnedDiffusivity(lambda r: 1 / (1 + r))
    >>> [round(value, 2) for value in g(torch.tensor([0.0, 1.0, 3.0])).tolist()]
    [1.0, 0.5, 0.25]
    """

    _LARGEST = 30.0

    def __init__(self, start: Callable[[Any], Any], degree: int = 8, **factory: Any) -> None:
        super().__init__()
        z = np.linspace(0.01, 0.98, 200)
        r = z / (1 - z)
        check_diffusivity(start)
        degree = checks.whole_within("degree", degree, 1, _HIGHEST_DEGREE, "A good choice is degree=8.")
        gate = np.clip((1 - start(r)) / -np.expm1(-r), 0.02, 0.98)
        coefficients = np.polynomial.chebyshev.chebfit(2 * z - 1, np.log(gate / (1 - gate)), degree)
        free = self._LARGEST * np.arctanh(coefficients / self._LARGEST)
        factory["dtype"] = factory.get("dtype") or torch.get_default_dtype()  # not NumPy's
        self.coefficients = nn.Parameter(torch.tensor(free, **factory))

    def gate(self, r: Tensor) -> Tensor:
        """Return the gate s(r), by Clenshaw's recurrence."""
        x = 2 * (r / (1 + r)) - 1
        # Bounded, so that the largest numbers that an optimiser could reach give no inf − inf.
        free = working_precision(self.coefficients)
        first, *others = (self._LARGEST * (free / self._LARGEST).tanh()).unbind()
        ahead, behind = torch.zeros_like(x), torch.zeros_like(x)
        for coefficient in reversed(others):
            ahead, behind = coefficient + 2 * x * ahead - behind, ahead
        return (first + x * ahead - behind).sigmoid()

    def forward(self, r: Tensor) -> Tensor:
        """Return the diffusivity g(r)."""
        g: Tensor = gated_diffusivity(r, self.gate)
        return g

    def decline(self, r: Tensor) -> Tensor:
        """Return ψ(r) = (1 − g(r))/r, without 0/0."""
        psi: Tensor = gated_decline(r, self.gate)
        return psi

    def extra_repr(self) -> str:
        """Describe the degree."""
        return f"degree={len(self.coefficients) - 1}"


class Learning(nn.Module):
    """A module with named numbers, each of them constant or learned.

    `learnable` has a function that creates the module for each name that can be learned, and `learn` has the
    names that are learned.
    """

    def __init__(
        self, constants: dict[str, Any], learnable: dict[str, Callable[[], nn.Module]], learn: Sequence[str]
    ) -> None:
        super().__init__()
        names = names_of(learn)
        for name in names:
            if name not in learnable:
                raise ValueError(
                    f"learn holds {name!r}, which is not a parameter of this block. It can learn: "
                    f"{', '.join(learnable)}."
                )
        self.constants = constants
        self.learned = nn.ModuleDict({name: learnable[name]() for name in names})

    def values(self) -> dict[str, Any]:
        """Return the current numbers; learned ones are differentiable tensors."""
        learned = {
            name: module if isinstance(module, LearnedDiffusivity) else module()
            for name, module in self.learned.items()
        }
        return self.constants | learned

    def extra_repr(self) -> str:
        """Describe the constants."""
        constant = [name for name in self.constants if name not in self.learned]
        worded = [f"{name}={_short(self.constants[name])}" for name in constant if name != "step"]
        if "step" in constant:
            worded.append(f"step={_short(self.constants['step'])} of the largest stable one")
        return ", ".join(worded)


def names_of(learn: Any) -> tuple[str, ...]:
    """Return the names of what is learned."""
    names = (learn,) if isinstance(learn, str) else learn or ()
    if not isinstance(names, tuple | list | set | frozenset) or not all(
        isinstance(name, str) for name in names
    ):
        raise TypeError(f'learn must be a sequence of names, got {learn!r}. Try learn=["contrast"].')
    return tuple(names)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


def _printed(number: Tensor) -> str:
    return "?" if number.is_meta else f"{number.item():.4g}"
