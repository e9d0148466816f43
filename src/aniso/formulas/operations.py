"""The operations that differ between kinds of number.

NumPy's functions serve numbers and arrays; PyTorch's tensors bring theirs as methods, so that
nothing here has to import PyTorch.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

# Tuples, since torch.compile does not follow unions of types.
_NUMBERS = (int, float)
_NUMPY = (np.ndarray, np.generic, numbers.Number)


def _is_numpy(x: Any) -> bool:
    return isinstance(x, _NUMPY)


def maximum(x: Any, floor: Any) -> Any:
    """Return the larger of x and floor; NaN stays NaN."""
    if isinstance(x, _NUMBERS) and isinstance(floor, _NUMBERS):
        return max(x, floor)
    return np.maximum(x, floor) if _is_numpy(x) else x.clamp(min=floor)


def minimum(x: Any, ceiling: Any) -> Any:
    """Return the smaller of x and ceiling; NaN stays NaN."""
    return np.minimum(x, ceiling) if _is_numpy(x) else x.clamp(max=ceiling)


def where(condition: Any, x: Any, y: Any) -> Any:
    """Return x where the condition holds, y elsewhere."""
    return np.where(condition, x, y) if _is_numpy(x) else x.where(condition, y)


def precision(x: Any) -> Any:
    """Return the relative rounding error of numbers like x."""
    if _is_numpy(x):
        return np.finfo(np.result_type(x, np.float32)).eps
    import torch

    return torch.finfo(x.dtype).eps


def sqrt(x: Any) -> Any:
    """Return √x."""
    return np.sqrt(x) if _is_numpy(x) else x.sqrt()


def arctan2(y: Any, x: Any) -> Any:
    """Return the angle of (x, y), in [−π, π]."""
    return np.arctan2(y, x) if _is_numpy(x) else y.arctan2(x)


def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent."""
    return np.tanh(x) if _is_numpy(x) else x.tanh()


def exp(x: Any) -> Any:
    """Return eˣ."""
    return np.exp(x) if _is_numpy(x) else x.exp()


def expm1(x: Any) -> Any:
    """Return eˣ − 1 without cancellation."""
    return np.expm1(x) if _is_numpy(x) else x.expm1()


def log1p(x: Any) -> Any:
    """Return log(1 + x) for x ≥ 0."""
    return np.log1p(x) if _is_numpy(x) else x.log1p()


def logistic(x: Any) -> Any:
    """Return 1/(1 + e⁻ˣ)."""
    return 0.5 + 0.5 * np.tanh(0.5 * x) if _is_numpy(x) else x.sigmoid()
