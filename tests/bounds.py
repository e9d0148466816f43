"""Small problems of all kinds with bounds checking in the kernels of the cpu engine.

    python -m tests.bounds --cases 5000 --seed 0

Numba checks every index (NUMBA_BOUNDSCHECK=1), also in rows that are called by address: they are given the
lengths of their buffers. Tiles are cut small at random, so that a small image has many seams. All results
are compared with those of the reference engine. `--again 17` repeats a case.

Double precision always has unequal spacing and single precision unit spacing: half the modules to compile.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import aniso
from aniso.engines.cpu import base, generate, volume_evolution
from aniso.engines.cpu.cache import cache_folder
from aniso.engines.cpu.placeholders import STRIDE
from tests.registry import Engine, random_tensors

DTYPES = ("float32", "float64")
#: Sizes at which rows no longer fit a tile or the row buffers.
WIDE = (253, 256, 257, 1020, 1021, 1022, 1023, 1070, 1071, 1072, 2044, 2045)
#: Small images, but rounding may add up over a few dozen steps.
ALIKE = Engine("cpu", float32=2e-4, float64=1e-9)


def any_model(chance: random.Random, shape: tuple[int, ...], names: list[str]) -> Any:
    """A model of one of these names."""
    sigma, rho = chance.choice([0.0, 0.3, 0.5, 1.0, 3.0]), chance.choice([0.3, 1.0, 2.5, 6.0])
    name = chance.choice(names)
    if name == "edge":
        return aniso.EdgeEnhancing(12.0, sigma)
    if name == "continuing":
        return aniso.EdgeContinuing(12.0, sigma, rho=rho)
    if name == "coherence":
        return aniso.CoherenceEnhancing(8.0, sigma, chance.choice([0.0, rho]))
    if name == "lines" and len(shape) == 3:
        return aniso.CoherenceEnhancing(8.0, sigma, rho, plates=False)
    if name == "fixed":
        return random_tensors(shape, seed=chance.randrange(1000))
    return aniso.Homogeneous() if name == "homogeneous" else aniso.PeronaMalik(12.0, sigma)


MODELS = ["edge", "continuing", "coherence", "lines", "fixed", "homogeneous", "perona-malik"]


def any_shape(chance: random.Random) -> tuple[int, ...]:
    """Up to 40 pixels along each axis; now and then a row as long as the buffers."""
    ndim = chance.choice([1, 2, 2, 2, 2, 3, 3, 3])
    if chance.random() < 0.04:
        return (*(chance.randint(1, 3) for _ in range(ndim - 1)), chance.choice(WIDE))
    most = [40, 40, 12][ndim - 1]
    shape = [chance.randint(1, chance.choice([3, most])) for _ in range(ndim)]
    if ndim == 3 and chance.random() < 0.1:
        shape[chance.randrange(3)] = chance.randint(12, 40)
    return tuple(shape)


def case(seed: int, number: int, names: list[str], dtypes: list[str]) -> tuple[Any, Any, float, dict, int]:
    """Image, model, time, options, and the size of the largest tile."""
    chance = random.Random(f"{seed}/{number}")
    shape, dtype = any_shape(chance), chance.choice(dtypes)
    if len(shape) == 1 and dtype == "float32":
        shape = (1, *shape)  # a signal counts as unequal spacing
    channels = chance.choice([None, None, 1, 2, 3])
    numbers = np.random.default_rng(chance.randrange(2**32))
    image = numbers.normal(100, 30, shape if channels is None else (channels, *shape)).astype(dtype)
    options: dict[str, Any] = {"channel_axis": None if channels is None else 0}
    if chance.random() < 0.3:
        options["fixed"] = numbers.random(shape) < 0.3
    if dtype == "float64":
        options["spacing"] = (*(chance.choice([0.7, 1.0, 1.6]) for _ in shape[:-1]), 1.3)
    options["scheme"] = chance.choice(
        [aniso.Explicit(), aniso.Explicit(), aniso.FED(cycles=chance.randint(1, 2)), aniso.FSI(cycles=1)]
    )
    long = not isinstance(options["scheme"], aniso.Explicit)
    time = chance.uniform(0.05, 25.0) if long else chance.uniform(0.05, 0.5)
    model = any_model(chance, shape, names)
    if chance.random() < 0.3:
        options["stencil"] = aniso.DeltaStencil(alpha=chance.uniform(0, 0.5), gamma=chance.choice([0.0, 1.0]))
    elif len(shape) == 2 and chance.random() < 0.2:
        options["stencil"] = aniso.FreeStencil(np.zeros([n + 1 for n in shape]))
    return image, model, time, options, chance.choice([3, 5, 8, 17, 10**9])


class Checker:
    """Runs cases and collects what is wrong with them."""

    def __init__(self) -> None:
        self._unraised: list[str] = []
        self._tile = 10**9
        # A row that is called by address cannot raise an exception: it reports it.
        sys.unraisablehook = lambda report: self._unraised.append(f"{report.exc_value!r} in {report.object}")
        self._cut, base.spans = base.spans, self._spans
        volume_evolution.spans = self._spans  # type: ignore[attr-defined]
        self._must_fail()

    def _spans(self, length: int, size: int) -> Any:
        return self._cut(length, min(size, self._tile))

    def _must_fail(self) -> None:
        """Accesses out of bounds are found, in loops and in rows that are called by address."""
        dtype = np.dtype(np.float32)
        loops = generate.tensor_loops(aniso.EdgeEnhancing(12.0).tensor_formula(1), dtype, False)
        one = dtype.type(1)
        texts = [
            generate._header(dtype, False, 2, cache=True),
            "@compiled\ndef get(row, at):\n    return row[at]",
            "@entry\ndef read(row, at):\n    return get(row, at)",
        ]
        kernels = generate._import("reads", "\n".join(texts))
        # Long enough for the row, but said to be shorter.
        rows, parameters = np.zeros(4 * STRIDE, dtype), np.ones(1, dtype)
        pointers = [array.ctypes.data_as(loops.tensor_row.ctypes.argtypes[0]) for array in (rows, parameters)]
        loops.tensor_row.ctypes(pointers[0], 4 * STRIDE - 1, 0, *[one] * 5, pointers[1], 1, STRIDE)
        if not self._unraised:
            raise RuntimeError(
                "bounds are not checked in rows that are called by address: is NUMBA_BOUNDSCHECK=1 set?"
            )
        self._unraised.clear()
        try:
            kernels.read(np.zeros(8, dtype), 8)
        except IndexError:
            return
        raise RuntimeError("bounds are not checked")

    def fault(self, seed: int, number: int, names: list[str], dtypes: list[str]) -> str | None:
        """What is wrong with this case."""
        image, model, time, options, self._tile = case(seed, number, names, dtypes)
        try:
            found = aniso.diffuse(image, model, time, engine="cpu", **options)
        except (IndexError, ArithmeticError) as error:
            self._unraised.append(f"{error!r}")
        if self._unraised:
            faults, self._unraised[:] = "; ".join(self._unraised[:3]), []
            return faults
        try:
            ALIKE.assert_equal(found, aniso.diffuse(image, model, time, engine="reference", **options))
        except AssertionError as error:
            return str(error)
        return None


def command(arguments: list[str]) -> list[str]:
    return [sys.executable, "-m", "tests.bounds", *arguments]


def environment() -> dict[str, str]:
    """The environment of a process that checks bounds, with compiled kernels of its own."""
    folder = (cache_folder() or Path(tempfile.gettempdir())) / "bounds"
    return {**os.environ, "NUMBA_BOUNDSCHECK": "1", "ANISO_CACHE_DIR": str(folder)}


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.bounds", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    parser.add_argument("--again", type=int, help="this case alone")
    given = parser.parse_args()
    if os.environ.get("NUMBA_BOUNDSCHECK") != "1":
        return subprocess.run(command(sys.argv[1:]), env=environment(), check=False).returncode
    checker, faults = Checker(), 0
    numbers = range(given.cases) if given.again is None else [given.again]
    for number in numbers:
        found = checker.fault(given.seed, number, given.models, given.dtypes)
        if found is not None:
            faults += 1
            image, *rest = case(given.seed, number, given.models, given.dtypes)
            print(f"case {number}: {image.shape} {image.dtype}, {rest}: {found}", flush=True)
        if number % 500 == 499:
            print(f"{number + 1} cases, {faults} faults", flush=True)
    print(f"{len(numbers)} cases, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
