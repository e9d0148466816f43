"""Functions of NumPy arrays and of PyTorch tensors alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from aniso.arrays import Field, is_tensor


def as_array(values: Any) -> Any:
    """Return floating-point numbers: an array of them or a tensor as it is, others in double precision."""
    if is_tensor(values):
        return values
    array = np.asarray(values)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _functions(values: Any) -> Any:
    if is_tensor(values):
        import torch

        return torch
    return np


def sqrt(values: Any) -> Any:
    """Return square roots."""
    return _functions(values).sqrt(values)


def exp(values: Any) -> Any:
    """Return powers of e."""
    return _functions(values).exp(values)


def arcsinh(values: Any) -> Any:
    """Return the inverse of the hyperbolic sine."""
    return _functions(values).arcsinh(values)


def where(condition: Any, yes: Any, no: Any) -> Any:
    """Return `yes` where the condition holds, else `no`."""
    return _functions(condition).where(condition, yes, no)


def interpolate(values: Any, places: Field, results: Field) -> Any:
    """Interpolate linearly between increasing places, and continue linearly beyond both ends."""
    if is_tensor(values):
        import torch

        at, found = (
            torch.tensor(each, dtype=values.dtype, device=values.device) for each in (places, results)
        )
        right = torch.searchsorted(at, values.detach().contiguous()).clip(1, len(at) - 1)
        slopes = (found[1:] - found[:-1]) / (at[1:] - at[:-1])
        return found[right - 1] + slopes[right - 1] * (values - at[right - 1])
    result = np.interp(values, places, results)
    for end, neighbour, beyond in ((0, 1, values < places[0]), (-1, -2, values > places[-1])):
        if beyond.any():
            slope = (results[end] - results[neighbour]) / (places[end] - places[neighbour])
            result = np.where(beyond, results[end] + slope * (values - places[end]), result)
    return result.astype(values.dtype, copy=False)
