"""What the machine can do: memory bandwidth and peak arithmetic in single precision, measured.

Both loops are compiled by the compiler that the engine uses, and run on the engine's number of threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

_ROUNDS = 7
_CHAIN = 16
_ROW = 1024


@numba.njit(nogil=True, fastmath={"contract"})
def _copy(out, a, start, stop):
    for k in range(start, stop):
        i = np.uint64(k)
        out[i] = a[i]


@numba.njit(nogil=True, fastmath={"contract"})
def _triad(out, a, b, factor, start, stop):
    for k in range(start, stop):
        i = np.uint64(k)
        out[i] = a[i] + factor * b[i]


@numba.njit(nogil=True, fastmath={"contract"})
def _multiply_add(values, factor, term, sweeps):
    """Chains of multiply-adds on values in the first-level cache, enough of them to keep all units busy."""
    quarter = np.uint64(_ROW // 4)
    for _ in range(sweeps):
        for k in range(_ROW // 4):
            i = np.uint64(k)
            j, m, n = i + quarter, i + quarter + quarter, i + quarter + quarter + quarter
            x, y, z, w = values[i], values[j], values[m], values[n]
            for _ in range(_CHAIN):
                x = x * factor + term
                y = y * factor + term
                z = z * factor + term
                w = w * factor + term
            values[i], values[j], values[m], values[n] = x, y, z, w


def memory_bandwidth(threads: int, megabytes: int = 256) -> dict[str, float]:
    """Bytes per second that the program reads and writes, for a copy and for out = a + s·b."""
    count = megabytes * 2**20 // 4
    a, b, out = (np.full(count, value, np.float32) for value in (1, 2, 0))
    factor = np.float32(0.5)
    spans = [(count * n // threads, count * (n + 1) // threads) for n in range(threads)]
    _copy(out, a, 0, 1)
    _triad(out, a, b, factor, 0, 1)
    return {
        "copy": 8 * count / _best(lambda n: _copy(out, a, *spans[n]), threads),
        "triad": 12 * count / _best(lambda n: _triad(out, a, b, factor, *spans[n]), threads),
    }


def peak_arithmetic(threads: int, sweeps: int = 20_000) -> float:
    """Operations per second, a multiply-add counted as two."""
    rows = [np.ones(_ROW, np.float32) for _ in range(threads)]
    factor, term = np.float32(0.5), np.float32(0.5)
    _multiply_add(rows[0], factor, term, 1)
    best = _best(lambda n: _multiply_add(rows[n], factor, term, sweeps), threads)
    return 2 * _CHAIN * _ROW * sweeps * threads / best


def _best(work: Callable[[int], object], threads: int) -> float:
    """The shortest time in which all threads do their work."""
    times = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(_ROUNDS):
            start = time.perf_counter()
            list(pool.map(work, range(threads)))
            times.append(time.perf_counter() - start)
    return min(times)
