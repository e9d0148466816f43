"""Learned diffusions on the fast engine."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aniso.engines.cpu.base import Array, Span, run_tiles, spans
from aniso.engines.cpu.generate import net_loops
from aniso.engines.cpu.threads import ThreadTeam, default_threads
from aniso.formulas.gaussian import edge_fold
from aniso.nets.net import LevelStage, Net

# Columns of a tile with those that its kernels reach: few enough for rows to stay in the cache. And rows.
_COLUMNS, _ROWS = 640, 128
# Small images that are one task lie side by side in rows of a tile, and there are this number of tasks.
_TASKS = 4
# Below this number of pixels, waking other threads takes longer than the work.
_ALONE = 4_000


def run_net(
    u: Array,
    f: Array,
    net: Net,
    stages: Sequence[LevelStage],
    threads: int | None = None,
    tick: Callable[[], object] = lambda: None,
) -> Array:
    """Return images (…, channels, H, W) after some stages of a net; f are those before all of them.

    The channels of colour images are brightness and colours, see :func:`aniso.nets.design.separate`.
    """
    evolving, start = u.copy().reshape(-1), np.ascontiguousarray(f).reshape(-1)
    team = ThreadTeam((threads or default_threads()) if u.size >= _ALONE else 1)
    with contextlib.closing(team):
        for stage in stages:
            _run_stage(stage, net, evolving, start, u.shape, team)
            tick()
    return evolving.reshape(u.shape)


def _run_stage(
    stage: LevelStage, net: Net, u: Array, f: Array, shape: tuple[int, ...], team: ThreadTeam
) -> None:
    """Carry out one stage in place."""
    channels, height, width = shape[-3:]
    images = math.prod(shape[:-3])
    dtype, folds, dilation = u.dtype, net.folds, stage.dilation
    reach = dilation * folds.radius
    most_reach = net.largest_dilation * (2 * folds.radius + 1)
    # Numbers of rows that are added up: parts of kernels, kernels, and kernels of brightness and colours.
    spans_of_folds = (*folds.forward_spans[:, 1], *folds.backward_spans[:, 1])
    counts = {*map(int, spans_of_folds), folds.kernels, 2 * folds.kernels}
    stride = _COLUMNS + 2 * most_reach + 64
    loops = net_loops(dtype, tuple(sorted(counts)), stride)
    kernel = stage.smoothing.astype(dtype)
    narrow = edge_fold(width, len(kernel) - 1), edge_fold(height, len(kernel) - 1)
    # Tiles of images with what kernels and averages reach on both sides.
    several = max(1, min(_COLUMNS // (width + 4 * reach + 2 * dilation), images // _TASKS))
    planes = spans(images * channels, several * channels)
    tiles = list(itertools.product(planes, even_spans(height, _ROWS), even_spans(width, _COLUMNS)))
    numbers = [np.tile(each.astype(dtype), images) for each in (stage.steps, stage.backs)]

    def smooth(source: Array, target: Array, *, finish: bool) -> None:
        run_tiles(
            team,
            loops.smooth_or_step,
            (source, target, f, (height, width)),
            tiles,
            (finish, *numbers, kernel, *narrow),
        )

    seen = u
    if dilation > 1:
        seen = np.empty_like(u)
        smooth(u, seen, finish=False)
    rate = np.empty_like(u)
    wide = edge_fold(width, 3 * reach + dilation), edge_fold(height, reach)
    tables: tuple[Any, ...] = (
        folds.table,
        folds.pairs,
        folds.forward_spans,
        stage.forward.astype(dtype),
        folds.backward_spans,
        stage.backward.astype(dtype),
        stage.own_mixing.astype(dtype),
        stage.mean_mixing.astype(dtype),
        stage.units(dtype),
        stage.gains.astype(dtype),
        stage.biases.astype(dtype),
        *wide,
    )
    most = dtype.type(np.finfo(dtype).max ** 0.24)
    run_tiles(
        team,
        loops.kernel_responses,
        (seen, rate, (channels, height, width)),
        list(
            itertools.product(
                spans(images, several), even_spans(height, _ROWS), even_spans(width, _COLUMNS - 2 * reach)
            )
        ),
        (np.array(stage.groups), dilation, folds.radius, folds.kernels, most, *tables),
    )
    smooth(rate, u, finish=True)


def even_spans(length: int, most: int) -> list[Span]:
    """Cut a length into pieces of nearly the same size, all but the last a multiple of a vector's length."""
    count = -(-length // most)
    vector = 16 if count > 1 else 1
    return spans(length, min(-(-length // (count * vector)) * vector, most))
