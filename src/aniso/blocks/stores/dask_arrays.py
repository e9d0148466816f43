"""Write Dask arrays to Zarr stores, which appear when they are complete."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def write_store(
    result: Any, names: Sequence[str], target: Path, tell: Callable[[float, float], object]
) -> None:
    """Write a Dask array whose axes have these names; `tell` may raise to stop.

    Blocks of the array are chunks of the store.
    """
    import dask.array as da
    import zarr
    from dask.callbacks import Callback

    def report(key: Any, value: Any, graph: Any, state: Any, worker: Any) -> None:
        done = len(state["finished"])
        tell(done, done + sum(len(state[kind]) for kind in ("ready", "waiting", "running")))

    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        place = Path(folder) / "result.zarr"
        layout = {"shape": result.shape, "chunks": result.chunksize, "dimension_names": list(names)}
        array: Any = zarr.create_array(store=str(place), dtype=result.dtype, **layout)
        with Callback(posttask=report):
            # Chunks do not overlap: they are written at the same time.
            da.store(result, array, lock=False, scheduler="threads")
        os.rename(place, target)
