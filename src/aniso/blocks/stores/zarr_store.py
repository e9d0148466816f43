"""Object stores as Zarr sees them, with their URL as name, errors in words, and options that stay hidden."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, TypeVar

import obstore
from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import ObjectStore

from aniso.blocks.stores.remote import HiddenOptions, explain, zarr_store

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
        return await self._explained(super().get(key, prototype, byte_range))

    async def set(self, key: str, value: Buffer) -> None:
        """Write an object."""
        await self._explained(super().set(key, value))

    async def delete(self, key: str) -> None:
        """Delete an object."""
        await self._explained(super().delete(key))

    async def _explained(self, action: Awaitable[_Result]) -> _Result:
        try:
            return await action
        except obstore.exceptions.BaseError as error:
            raise (explain(error, self.root) or error) from None
