"""Stripes: offsets of rows or columns, which must not be taken for noise of single pixels."""

from __future__ import annotations

import math

import numpy as np

from aniso.arrays import Field

# Rows on either side whose mean a row is compared with, and how often their own offsets are removed first.
_NEIGHBOURS, _ROUNDS = 4, 3
# Rows over which offsets have no common part.
_MANY = 31
# Offsets over their statistical error from which on there are stripes. Correlated noise has larger errors.
_CLEAR = 3.0
# Standard deviation over the median deviation of normal values; error of a median over that of a mean.
_DEVIATION, _MEDIAN_ERROR = 1.4826, 1.2533


def remove_stripes(window: Field) -> Field:
    """Return an image without the offsets of its rows and columns, if they clearly have some.

    The offset of a row is the median of its differences from the mean of a few rows on either side.
    """
    if window.ndim != 2 or min(window.shape) <= 2 * _NEIGHBOURS:
        return window
    rows = _remove_from_rows(window)
    columns = _remove_from_rows(rows.T).T
    return window if np.shares_memory(columns, window) else np.ascontiguousarray(columns)


def _remove_from_rows(window: Field) -> Field:
    differences = _from_neighbours(window)
    medians = np.median(differences, axis=1)
    spreads = _DEVIATION * np.median(np.abs(differences - medians[:, np.newaxis]), axis=1)
    error = _MEDIAN_ERROR * float(np.median(spreads)) / math.sqrt(window.shape[1])
    offsets = _without_drift(medians)
    # Most rows have an offset: single ones are dead, or lie at an edge.
    if _DEVIATION * float(np.median(np.abs(offsets))) <= _CLEAR * error:
        return window
    for _ in range(_ROUNDS):
        window = window - offsets[:, np.newaxis]
        offsets = _without_drift(np.median(_from_neighbours(window), axis=1))
    return window


def _without_drift(medians: Field) -> Field:
    """Return medians minus those of many rows: of skewed noise, they differ from means, everywhere alike."""
    from scipy import ndimage

    found: Field = medians - ndimage.median_filter(medians, _MANY, mode="nearest")
    return found


def _from_neighbours(window: Field) -> Field:
    """Return the differences of rows from the mean of their neighbours."""
    from scipy import ndimage

    weights = np.ones(2 * _NEIGHBOURS + 1)
    weights[_NEIGHBOURS] = 0
    found: Field = window - ndimage.correlate1d(window, weights / weights.sum(), 0, mode="mirror")
    return found
