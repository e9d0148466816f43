"""What the evolutions of images and volumes share on the fast engine."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from aniso.engines import Problem
from aniso.engines.cpu.generate import compile_first, loops, tensor_loops
from aniso.engines.cpu.threads import ThreadTeam, default_threads, uninterrupted
from aniso.formulas.gaussian import centre_fold, gaussian_kernel
from aniso.memory import return_freed_memory
from aniso.schemes import Cycle
from aniso.stencil import DeltaStencil

Array = npt.NDArray[Any]
Span = tuple[int, int]

# Below this number of pixels, waking other threads takes longer than the work.
_ALONE = 30_000


@dataclass(frozen=True)
class Pass:
    """Steps that are taken together: their number, and what the kernel takes before and after a tile.

    These are the image and the one before it, room for those after the steps, and the steps.
    """

    count: int
    images: tuple[Array, ...]
    taken: tuple[Any, ...]


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
        passes = self._passes(cycle.steps)
        self._carry_out(passes)
        if len(passes) % 2 == 1:
            self._u, self._spare = self._spare, self._u
            if self._before:
                self._before = self._before[::-1]

    def _passes(self, steps: tuple[tuple[float, float], ...]) -> list[Pass]:
        """Return the passes of a cycle, from one array to the other and back."""
        # The image before the first step of a cycle is that one itself: extrapolation is a longer step there.
        (first_weight, first_tau), *others = steps
        rates = [(1.0, first_weight * first_tau), *others]
        extrapolates = any(weight != 1.0 for weight, _ in others)
        if extrapolates and len(steps) > self._block:
            self._before = self._before or (np.empty_like(self._u), np.empty_like(self._u))
        images = self._u, self._spare
        before = self._before or images
        passes = []
        for start in range(0, len(steps), self._block):
            some = np.array(rates[start : start + self._block], self._u.dtype)
            continued = extrapolates and start > 0, extrapolates and start + len(some) < len(steps)
            (u, spare), (previous, out_previous) = images, before
            taken = *continued, *some.T.copy()
            passes.append(Pass(len(some), (u, previous, spare, out_previous), taken))
            images, before = images[::-1], before[::-1]
        return passes

    def _carry_out(self, passes: list[Pass]) -> None:
        """Carry out all passes of a cycle. The first one computes the tensors."""
        raise NotImplementedError

    def _run_pass(self, one: Pass, tiles: Sequence[Any], *, computes: bool, stores: bool) -> None:
        """Carry out a pass in some tiles; it computes the tensors, and stores them, or reads them."""
        channels, *shape = self._shape
        model = self._numbers, self._parameters, self._tensor_row, computes, stores, self._tensors
        after = *one.taken, *model, *self._stencil_and_kernels
        self._run(self._step_kernel, (*one.images, channels, tuple(shape)), tiles, after)

    def _hold_tensors_of(self, cells: int) -> None:
        """Make room for the tensors of this number of cells."""
        size = len(self._shape) * (len(self._shape) - 1) // 2 * cells
        if len(self._tensors) < size:
            grows = len(self._tensors) > 1
            self._tensors = np.empty(0, self._u.dtype)  # free the memory before it is needed
            if grows:
                return_freed_memory()  # larger tensors do not fit into it
            self._tensors = np.empty(size, self._u.dtype)

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
