"""Workers on this machine, or those of a scheduler."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

# Seconds to wait for a scheduler, and for its workers.
_PATIENCE = 10
# Seconds to wait for a worker of this machine that is being replaced.
_REPLACEMENT = 120
_LOOPBACK = "127.0.0.1"
# How a warning begins that Dask gives where a disk is busy for a second.
_BUSY_DISK = "Creating scratch directories"


def check_memory(memory: Any) -> str | int:
    """Return a limit of memory as Dask takes it: a number of bytes, a text such as "4GB", or "auto"."""
    if memory is None:
        return "auto"
    if isinstance(memory, str):
        size = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*(?:[kmgt]i?)?b?\s*", memory, re.IGNORECASE)
        if size is not None and float(size[1]) > 0:
            return memory.strip()
    elif isinstance(memory, int) and not isinstance(memory, bool) and memory > 0:
        return memory
    raise ValueError(f"{memory!r} is not a memory size. Give e.g. 4GB or 500MB.")


@contextmanager
def connect(scheduler: str | None, workers: int, memory: str | int | None) -> Iterator[Any]:
    """Yield a Dask client of the scheduler at this address, or of new workers on this machine.

    New workers have one thread and this memory each: threads of the engine would compete with them. They are
    reachable from this machine only.
    """
    from dask.distributed import Client

    if scheduler is not None:
        try:
            asyncio.run(asyncio.wait_for(_greet(scheduler), _PATIENCE))
            client = Client(scheduler, timeout=_PATIENCE)
        except (OSError, ValueError, TypeError, TimeoutError) as error:  # TypeError: no certificates
            raise ConnectionError(
                f"there is no Dask scheduler at {scheduler}: {str(error) or 'no answer'}. Start one "
                "with `dask scheduler`, or leave the scheduler out to use workers on this machine."
            ) from error
        with client:
            yield client
        return
    with _without_warnings(), _start_local(workers, memory) as local, Client(local) as client:
        yield client


def _start_local(workers: int, memory: str | int | None) -> Any:
    from dask.distributed import LocalCluster

    with _interrupts_for_this_process():
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=check_memory(memory),
            # Anyone who can connect to a port of Dask can run code as this user.
            host=_LOOPBACK,
            dashboard_address=f"{_LOOPBACK}:0",
            worker_dashboard_address=f"{_LOOPBACK}:0",
            silence_logs=logging.CRITICAL,  # lost workers are replaced; the run reports what fails
        )


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Ignore the warning about a busy disk, here and in new workers."""
    import dask

    known = [os.environ.get("PYTHONWARNINGS"), f"ignore:{_BUSY_DISK}:UserWarning"]
    name = "distributed.nanny.pre-spawn-environ.PYTHONWARNINGS"
    with dask.config.set({name: ",".join(filter(None, known))}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", _BUSY_DISK)
        yield


@contextmanager
def _interrupts_for_this_process() -> Iterator[None]:
    """Keep Ctrl-C from the processes that are started within, and from those that replace them later.

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


async def _greet(scheduler: str) -> None:
    """Connect to a scheduler once: a client would wait for it forever."""
    from distributed.comm.core import connect
    from distributed.security import Security

    # Certificates for tls:// are those of Dask's own configuration, as for the client.
    certificates = Security().get_connection_args("client")
    (await connect(scheduler, timeout=_PATIENCE, **certificates)).abort()


def capacity(client: Any) -> tuple[float, int]:
    """Return the smallest memory per thread in bytes, and the number of threads of all workers."""
    try:
        # On a busy machine a worker may be late, or be replaced at this moment.
        client.wait_for_workers(1, timeout=_PATIENCE if client.cluster is None else _REPLACEMENT)
    except TimeoutError:
        raise ConnectionError(
            "the Dask cluster has no workers. Start some with `dask worker ADDRESS`."
        ) from None
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    known = [worker["memory_limit"] / worker["nthreads"] for worker in workers if worker["memory_limit"]]
    return min(known, default=4e9), sum(worker["nthreads"] for worker in workers)
