"""Launches of kernels of the triton engine, recorded instead of started, and what they read and write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest import mock

from torch import Tensor

from aniso.engines.triton.launches import Launch


@contextlib.contextmanager
def record() -> Iterator[list[Launch]]:
    """Record launches instead of starting kernels; results are not computed."""
    launches: list[Launch] = []

    def keep(launch: Launch) -> None:
        launches.append(launch)

    with mock.patch.object(Launch, "run", keep):
        yield launches


def moved(launch: Launch) -> int:
    """The bytes of all tensors that are read and written, each once."""
    tensors = {name: each for name, each in launch.arguments.items() if isinstance(each, Tensor)}
    # Averages that are not kept are not written.
    writes = {"out", "averaged"} if launch.constants.get("KEEPS") else {"out"}
    read = {each.data_ptr(): each.nbytes for name, each in tensors.items() if name not in writes}
    return sum(read.values()) + sum(tensors[name].nbytes for name in writes)
