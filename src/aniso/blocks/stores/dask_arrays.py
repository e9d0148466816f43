"""Write Dask arrays to Zarr stores, which appear when they are complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aniso.blocks.stores import journal
from aniso.blocks.stores.places import Place
from aniso.blocks.stores.zarr_array import to_write


def write_store(
    result: Any, names: Sequence[str], target: Place, tell: Callable[[float, float], object]
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

    folder = journal.folder_of(target)
    with folder.lock() as lease:
        target.check_free()
        journal.begin_run(folder, {"command": "structure"}, {})  # unless another run was interrupted here
        place = journal.store_of(folder, 0)
        place.remove()
        try:
            layout = {"shape": result.shape, "chunks": result.chunksize, "dimension_names": list(names)}
            zarr.create_array(store=place.node, dtype=result.dtype, **layout)
            with Callback(posttask=report):
                # Blocks of the array are chunks of the store: they are written at the same time.
                array = to_write(place, journal.data_of(folder, place))
                da.store(result, array, lock=False, scheduler="threads")
            lease.check()
            place.publish(target)
        finally:
            folder.remove()
    if folder.moves:
        folder.remove()
