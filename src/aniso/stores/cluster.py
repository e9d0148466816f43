"""Workers on this machine, or those of a scheduler."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Seconds to wait for the answer of a scheduler.
_PATIENCE = 10


@contextmanager
def connected(scheduler: str | None, workers: int, memory: str | int | None) -> Iterator[Any]:
    """A Dask client of the scheduler at this address, or of new workers on this machine.

    These have one thread and so much memory each: the engine's own threads would compete with them.
    """
    from dask.distributed import Client, LocalCluster

    if scheduler is not None:
        try:
            asyncio.run(asyncio.wait_for(_greeted(scheduler), _PATIENCE))
            client = Client(scheduler, timeout=_PATIENCE)
        except (OSError, ValueError, TypeError, TimeoutError) as error:  # TypeError: no certificates
            raise ConnectionError(
                f"there is no Dask scheduler at {scheduler}: {str(error) or 'nobody answers'}. Start one "
                "with `dask scheduler`, or leave the scheduler out to use workers on this machine."
            ) from error
        with client:
            yield client
        return
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit="auto" if memory is None else memory,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,  # a worker that is lost is replaced; the run says what fails
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


async def _greeted(scheduler: str) -> None:
    """Exchange the first words with a scheduler: a client would wait for them without end."""
    from distributed.comm.core import connect
    from distributed.security import Security

    # Certificates for tls:// are those of Dask's own configuration, as for the client.
    certificates = Security().get_connection_args("client")
    (await connect(scheduler, timeout=_PATIENCE, **certificates)).abort()


def capacity(client: Any) -> tuple[float, int]:
    """How many blocks can be worked at, and the memory for each, in bytes, where it is least."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if not workers:
        raise ConnectionError("the Dask cluster has no workers. Start some with `dask worker ADDRESS`.")
    known = [worker["memory_limit"] / worker["nthreads"] for worker in workers if worker["memory_limit"]]
    return min(known, default=4e9), sum(worker["nthreads"] for worker in workers)
