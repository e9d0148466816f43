"""Object stores as Zarr sees them, with their URL as name, errors in words, and options that stay hidden."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
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
    explain,
    patience,
)

_Result = TypeVar("_Result")


class UrlStore(ObjectStore[Any]):
    """An object store, made again from its URL and options in other processes.

    `base` is the key of what is opened or created in it.
    """

    def __init__(
        self, root: str, options: HiddenOptions, client: Any, base: str = "", *, read_only: bool = False
    ) -> None:
        super().__init__(client, read_only=read_only)
        self.root = root
        self.options = options
        self.base = base

    def with_read_only(self, read_only: bool = False) -> UrlStore:
        """Return the same store, read only or not."""
        return UrlStore(self.root, self.options, self.store, self.base, read_only=read_only)

    def __str__(self) -> str:
        return self.root

    def __reduce__(self) -> Any:
        return zarr_store, (self.root, self.options, self.base, self.read_only)

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

    async def exists(self, key: str) -> bool:
        """Whether there is an object."""
        return await self._repeat(partial(super().exists, key))

    async def getsize(self, key: str) -> int:
        """Return the number of bytes of an object."""
        return await self._repeat(partial(super().getsize, key))

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Write an object, unless it exists, or is outside of what is created.

        This is how Zarr makes groups of all folders around an array, up to the bucket.
        """
        if not self.base or key.startswith(f"{self.base}/"):
            await self._repeat(partial(super().set_if_not_exists, key, value))

    async def delete_dir(self, prefix: str) -> None:
        """Delete all objects of a folder."""
        await self._repeat(partial(super().delete_dir, prefix))

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
                known = explain(error, self.root)
                if known is None:
                    raise
                if not isinstance(known, PlaceAway) or time.monotonic() > end:
                    raise known from None
                await asyncio.sleep(0.2)


def zarr_store(root: str, options: HiddenOptions, base: str, read_only: bool = False) -> UrlStore:
    """Return a bucket as a store of Zarr, to open or create what has this key."""
    return UrlStore(root, options, client_of(root, options, RETRIES), base, read_only=read_only)
