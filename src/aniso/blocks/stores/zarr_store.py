"""Object stores as Zarr sees them, with their URL as name, errors in words, and options that stay hidden."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from typing import Any, TypeVar

import obstore
from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import ObjectStore

from aniso.blocks.stores.clients import (
    RETRIES,
    HiddenOptions,
    PlaceAway,
    client_of,
    environment_mark,
    explain,
    patience,
)

_Result = TypeVar("_Result")


class UrlStore(ObjectStore[Any]):
    """An object store, made again from its URL and options in other processes."""

    def __init__(self, root: str, options: HiddenOptions, client: Any, *, read_only: bool = False) -> None:
        super().__init__(client, read_only=read_only)
        self.root = root
        self.options = options

    def with_read_only(self, read_only: bool = False) -> UrlStore:
        """Return the same store, read only or not."""
        return UrlStore(self.root, self.options, self.store, read_only=read_only)

    def __str__(self) -> str:
        return self.root

    def __reduce__(self) -> Any:
        return zarr_store, (self.root, self.options, self.read_only)

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return an object or a part of it; None if it does not exist."""
        return await self._repeat(partial(super().get, key, prototype, byte_range))

    async def set(self, key: str, value: Buffer) -> None:
        """Write an object."""
        await self._repeat(partial(super().set, key, value))

    async def delete(self, key: str) -> None:
        """Delete an object."""
        await self._repeat(partial(super().delete, key))

    async def _repeat(self, action: Callable[[], Awaitable[_Result]]) -> _Result:
        """Explain errors; repeat what obstore does not, such as answers that end too early."""
        end = time.monotonic() + patience(self.options)
        while True:
            try:
                return await action()
            except obstore.exceptions.BaseError as error:
                known = explain(error, self.root)
                if known is None:
                    raise
                if not isinstance(known, PlaceAway) or time.monotonic() > end:
                    raise known from None
                await asyncio.sleep(0.2)


def zarr_store(root: str, options: HiddenOptions, read_only: bool = False) -> UrlStore:
    """Return a bucket as a store of Zarr."""
    return _zarr_store(root, options, read_only, environment_mark())


@lru_cache(maxsize=16)
def _zarr_store(root: str, options: HiddenOptions, read_only: bool, mark: int) -> UrlStore:
    return UrlStore(root, options, client_of(root, options, RETRIES), read_only=read_only)
