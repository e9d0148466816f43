"""Object stores as Zarr sees them, with their URL as name, errors in words, and options that stay hidden."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import obstore
from zarr.core.buffer import Buffer
from zarr.storage import ObjectStore

from aniso.blocks.stores.clients import PAUSE, RETRIES, HiddenOptions, client_of, patience, raise_final

_Result = TypeVar("_Result")


def _repeated(name: str) -> Any:
    """Return a method of Zarr's store that explains errors, and repeats requests."""
    method = getattr(ObjectStore, name)

    @functools.wraps(method)
    async def repeated(store: UrlStore, *arguments: Any, **options: Any) -> Any:
        return await store._repeat(partial(method, store, *arguments, **options))

    return repeated


class UrlStore(ObjectStore[Any]):
    """An object store, made again from its URL and options in other processes.

    `base` is the key of what is opened or created in it. The client is that of this process.
    """

    def __init__(self, root: str, options: HiddenOptions, base: str, read_only: bool) -> None:
        super().__init__(client_of(root, options, RETRIES), read_only=read_only)
        self.root = root
        self.options = options
        self.base = base

    def with_read_only(self, read_only: bool = False) -> UrlStore:
        """Return the same store, read only or not."""
        return UrlStore(self.root, self.options, self.base, read_only)

    def __str__(self) -> str:
        return self.root

    def __reduce__(self) -> Any:
        return UrlStore, (self.root, self.options, self.base, self.read_only)

    get, set, delete, exists, getsize, delete_dir = map(
        _repeated, ("get", "set", "delete", "exists", "getsize", "delete_dir")
    )

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Write an object, unless it exists, or is outside of what is created.

        This is how Zarr makes groups of all folders around an array, up to the bucket.
        """
        if not self.base or key.startswith(f"{self.base}/"):
            await self._repeat(partial(super().set_if_not_exists, key, value))

    async def list_dir(self, prefix: str) -> AsyncGenerator[str, None]:
        """Yield the names in a folder."""
        names = super().list_dir

        async def collect() -> list[str]:
            return [name async for name in names(prefix)]

        for name in await self._repeat(collect):
            yield name

    async def _repeat(self, action: Callable[[], Awaitable[_Result]]) -> _Result:
        """Explain errors; repeat what obstore does not, such as answers that end too early."""
        end = time.monotonic() + patience(self.options)
        while True:
            try:
                return await action()
            except obstore.exceptions.BaseError as error:
                raise_final(error, self.root, end)
                await asyncio.sleep(PAUSE)
