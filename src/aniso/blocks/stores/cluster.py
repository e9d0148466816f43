"""Workers on this machine, or those of a scheduler."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

# Seconds to wait for the answer of a scheduler.
_PATIENCE = 10
_LOOPBACK = "127.0.0.1"


@contextmanager
def connected(scheduler: str | None, workers: int, memory: str | int | None) -> Iterator[Any]:
    """A Dask client of the scheduler at this address, or of new workers on this machine.

    These have one thread and so much memory each: the engine's own threads would compete with them. They can
    be reached from this machine only.
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
    with _interrupts_for_this_process():
        local = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit="auto" if memory is None else memory,
            # Whoever reaches a port of Dask can run code as this user.
            host=_LOOPBACK,
            dashboard_address=f"{_LOOPBACK}:0",
            worker_dashboard_address=f"{_LOOPBACK}:0",
            silence_logs=logging.CRITICAL,  # a worker that is lost is replaced; the run says what fails
        )
    with local, Client(local) as client:
        yield client


@contextmanager
def _interrupts_for_this_process() -> Iterator[None]:
    """Ctrl-C must not reach the processes that are started within, nor those that replace them later.

    A terminal interrupts all processes at once, and each worker would print a traceback. Processes inherit
    which signals are blocked from the threads that start them, and these from the one that starts them here.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    resource_tracker.ensure_running()  # unblocks the signal in the thread that starts it first
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


async def _greeted(scheduler: str) -> None:
    """Exchange the first words with a scheduler: a client would wait for them without end."""
    from distributed.comm.core import connect
    from distributed.security import Security

    # Certificates for tls:// are those of Dask's own configuration, as for the client.
    certificates = Security().get_connection_args("client")
    (await connect(scheduler, timeout=_PATIENCE, **certificates)).abort()


def capacity(client: Any) -> tuple[float, int]:
    """How many blocks can be worked at, and the memory for each, in bytes, where it is least."""
    try:
        # On a busy machine a worker may be late, or be replaced at this moment.
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise ConnectionError(
            "the Dask cluster has no workers. Start some with `dask worker ADDRESS`."
        ) from None
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    known = [worker["memory_limit"] / worker["nthreads"] for worker in workers if worker["memory_limit"]]
    return min(known, default=4e9), sum(worker["nthreads"] for worker in workers)
