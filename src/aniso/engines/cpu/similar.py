"""Averages of similar voxels on the fast engine."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence

import numpy as np

from aniso.engines.cpu.base import Array, run_tiles, spans
from aniso.engines.cpu.generate import similar_loops
from aniso.engines.cpu.threads import ThreadTeam, default_threads
from aniso.formulas.gaussian import edge_fold

# Voxels of a tile along each axis: all buffers of one stay in the cache.
_PLANES, _ROWS, _COLUMNS = 8, 16, 128
# Below this number of voxels, waking other threads takes longer than the work.
_ALONE = 1_000


def average_similar(
    image: Array, guide: Array, offsets: Array, unit: float, scales: Sequence[float], threads: int | None
) -> Array:
    """Return the means of similar voxels of a volume (channels, D, H, W), one volume for each scale."""
    dtype = image.dtype
    reach = int(abs(offsets).max()) + 1
    loops = similar_loops(dtype)
    found = np.empty((len(scales), *image.shape), dtype)
    _, depth, height, width = image.shape
    tiles = list(itertools.product(spans(depth, _PLANES), spans(height, _ROWS), spans(width, _COLUMNS)))
    volumes = [np.ascontiguousarray(one).reshape(-1) for one in (image, guide)]
    folds = [edge_fold(length, reach) for length in (width, height, depth)]
    numbers = dtype.type(unit), np.array(scales, dtype), reach
    team = ThreadTeam((threads or default_threads()) if image.size >= _ALONE else 1)
    with contextlib.closing(team):
        run_tiles(
            team,
            loops.average_similar,
            (*volumes, found.reshape(-1), image.shape),
            tiles,
            (np.ascontiguousarray(offsets, np.int64), *numbers, *folds),
        )
    return found
