"""What the evolutions of images and volumes share on the fast engine."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from aniso.engines import Problem
from aniso.engines.cpu.generate import compile_first, loops, tensor_loops
from aniso.engines.cpu.threads import ThreadTeam, default_threads, uninterrupted
from aniso.formulas.gaussian import centre_fold, gaussian_kernel
from aniso.schemes import Cycle
from aniso.stencil import DeltaStencil

Array = npt.NDArray[Any]
Span = tuple[int, int]

# Below this number of pixels, waking other threads takes longer than the work.
_ALONE = 30_000


class Base:
    """An array (channels, …) as it is now and another one for what comes next, kernels and threads."""

    #: The largest number of steps with the same tensors that are taken at a time.
    _block: int
    _step_kernel: Any
    #: What the kernel takes after the tensors.
    _stencil_and_kernels: tuple[Any, ...]

    def __init__(self, image: Array, problem: Problem) -> None:
        if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            raise RuntimeError(
                "the cpu engine needs Numba's compiler, which NUMBA_DISABLE_JIT turns off. Unset it, or use "
                "engine='reference'."
            )
        self._shape = image.shape
        self._problem = problem
        self._u = np.ascontiguousarray(image).reshape(-1)
        self._spare = np.empty_like(self._u)
        self._fixed = np.zeros(1, np.bool_) if problem.fixed is None else problem.fixed.reshape(-1)
        ndim, spaced = image.ndim - 1, any(h != 1 for h in problem.spacings)
        self._loops = loops(image.dtype, spaced, ndim)
        self._tensor_row, parameters = 0, tuple[float, ...]()
        if problem.model.entries is None:
            formula = problem.model.tensor_formula(len(image), ndim=ndim)
            # Held, since the address is of no use without it.
            self._tensor_loops = tensor_loops(formula, image.dtype, spaced, ndim)
            self._tensor_row = self._tensor_loops.tensor_row.address
            parameters = formula.parameters
        # A single number if there are none yet, since kernels take arrays.
        self._tensors = np.zeros(1, image.dtype)
        self._before: tuple[Array, Array] | None = None
        self._tiles_for: dict[tuple[int, bool], list[Any]] = {}
        self._numbers, self._parameters = _numbers(problem, parameters, image.dtype)
        self._team = ThreadTeam((problem.threads or default_threads()) if image.size >= _ALONE else 1)

    @property
    def image(self) -> Array:
        """The image as it is now."""
        return self._u.reshape(self._shape)

    def close(self) -> None:
        """End the threads and free what is not the image itself: it may be copied next."""
        self._team.close()
        self._spare = self._tensors = np.empty(0, self._u.dtype)
        self._before = None

    def advance(self, cycle: Cycle) -> None:
        """Carry out one cycle, with the tensor of the image as it is now."""
        for start in range(0, len(cycle.steps), self._block):
            self._steps(cycle.steps, start, min(start + self._block, len(cycle.steps)))

    def _steps(self, steps: tuple[tuple[float, float], ...], start: int, stop: int) -> None:
        """Steps start … stop−1 of a cycle, in one pass. The first one computes the tensors."""
        u, spare, (channels, *shape) = self._u, self._spare, self._shape
        # The image before the first one of a cycle is that one itself: extrapolation is a longer step there.
        (first_weight, first_tau), *others = steps
        rates = [(1.0, first_weight * first_tau), *others]
        extrapolates = any(weight != 1.0 for weight, _ in others)
        continued, to_be_continued = extrapolates and start > 0, extrapolates and stop < len(steps)
        if to_be_continued or continued:
            self._before = self._before or (np.empty_like(u), np.empty_like(u))
        previous, out_previous = self._before or (u, spare)
        taken = continued, to_be_continued, *np.array(rates[start:stop], u.dtype).T.copy()
        computes = start == 0 and self._computes_tensors(len(steps))
        stores = computes and stop < len(steps)
        if stores:
            self._tensors = self._room_for_tensors()
        count = stop - start
        if (count, computes) not in self._tiles_for:
            self._tiles_for[count, computes] = self._tiles(count, computes)
        model = self._numbers, self._parameters, self._tensor_row, computes, stores, self._tensors
        self._run(
            self._step_kernel,
            (u, previous, spare, out_previous, channels, tuple(shape)),
            self._tiles_for[count, computes],
            (*taken, *model, *self._stencil_and_kernels),
        )
        self._u, self._spare = spare, u
        if self._before:
            self._before = self._before[::-1]

    def _computes_tensors(self, steps: int) -> bool:
        """Return whether the pass that begins a cycle computes the tensors; else they are stored now."""
        return self._tensor_row != 0

    def _room_for_tensors(self) -> Array:
        """Return memory for the tensors of all cells."""
        entries = len(self._shape) * (len(self._shape) - 1) // 2
        size = entries * int(np.prod([length + 1 for length in self._shape[1:]]))
        return self._tensors if len(self._tensors) == size else np.empty(size, self._u.dtype)

    def _tiles(self, steps: int, computes: bool) -> list[Any]:
        """Return all tiles for this number of steps, the same for any number of threads."""
        raise NotImplementedError

    def _run(self, kernel: Any, before: Sequence[Any], tiles: Sequence[Any], after: Sequence[Any]) -> None:
        run_tiles(self._team, kernel, before, tiles, after)


def run_tiles(
    team: ThreadTeam, kernel: Any, before: Sequence[Any], tiles: Sequence[Any], after: Sequence[Any]
) -> None:
    """Call a kernel for each tile, with the arguments that are the same for all before and after it."""

    def task(number: int) -> None:
        kernel(*before, *tiles[number], *after)

    count = len(tiles)
    if kernel.overloads:
        team.run(task, count)
    else:
        # The first task compiles; the others need not wait for it one by one.
        uninterrupted(compile_first)(kernel, lambda: task(0))
        team.run(lambda number: task(number + 1), count - 1)


@functools.lru_cache(maxsize=64)
def half_kernels(sigma: float, spacings: tuple[float, ...], dtype: np.dtype[Any]) -> tuple[Array, ...]:
    """Return the Gaussians along each axis, from the centre outwards, with an even number of pairs.

    Where nothing is smoothed, the centre alone.
    """
    full = [gaussian_kernel(sigma / h) for h in spacings]
    if all(len(kernel) == 1 for kernel in full):
        return tuple(np.ones(1, dtype) for _ in full)
    halves = [kernel[len(kernel) // 2 :] for kernel in full]
    pairs = [max(2, len(half) - 1 + (len(half) - 1) % 2) for half in halves]
    return tuple(
        np.pad(half, (0, n + 1 - len(half))).astype(dtype) for half, n in zip(halves, pairs, strict=True)
    )


def cell_kernel(length: int, half: Array) -> tuple[Array, Array, Array]:
    """Return the kernel over cells, where mirrored cells are found, and their signs."""
    fold, sign = centre_fold(length, len(half) - 1)
    return half, fold, sign.astype(half.dtype)


def _numbers(
    problem: Problem, parameters: tuple[float, ...], dtype: np.dtype[Any]
) -> tuple[tuple[Any, ...], Array]:
    """Return 1/h, x first, α, γ and β; and the numbers of the tensor formula, in the image's precision."""
    stencil = problem.stencil
    alpha, gamma, beta = 0.0, 0.0, 0.0
    if isinstance(stencil, DeltaStencil):
        alpha, gamma, beta = stencil.alpha, stencil.gamma, stencil.beta or 0.0
    numbers = (*(1 / h for h in reversed(problem.spacings)), alpha, gamma, beta)
    if max(*numbers, *parameters) > float(np.finfo(dtype).max):
        raise ValueError(
            f"{problem.model!r} with spacing {problem.spacings} is beyond the range of {dtype}. Scale the "
            "image up first, or convert it to float64."
        )
    # Never empty, since kernels take the address.
    return tuple(dtype.type(number) for number in numbers), np.array(parameters or (0.0,), dtype)


def spans(length: int, size: int) -> list[Span]:
    """Cut a length into pieces of this size, the same for any number of threads."""
    return [(start, min(start + size, length)) for start in range(0, length, size)]


def equal_spans(length: int, most: int) -> list[Span]:
    """Cut a length into pieces of nearly the same size, none above `most`."""
    return spans(length, -(-length // -(-length // most)))
