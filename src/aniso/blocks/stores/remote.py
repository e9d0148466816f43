"""Places in object stores: S3, Google Cloud, Azure; and, to be read only, web servers.

Zarr reads and writes them with obstore. Objects appear at once and complete, but cannot be moved, and object
stores have no locks. Data are therefore written directly to their final keys, and a result becomes visible
with the object that describes it, which is written last. A lock is an object that only one run can create,
and that this run renews.
"""

# ruff: noqa: D102 (methods are described in Place)

from __future__ import annotations

import contextlib
import importlib.util
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from aniso.blocks.stores.clients import (
    FIRST_RETRIES,
    PAUSE,
    READ_ONLY,
    RETRIES,
    HiddenOptions,
    PlaceAway,
    PlaceMissing,
    PlaceTaken,
    client_of,
    patience,
    raise_final,
)
from aniso.blocks.stores.lease import Lock, RemoteLease
from aniso.blocks.stores.places import DESCRIPTIONS, UNFINISHED, ExplainedError, Options, Place, Record

_SCHEMES = ("s3", "gs", "az", "https", "http")
_LOCK, _PUBLISHED = "lock", "published"

_Result = TypeVar("_Result")


@dataclass(frozen=True, repr=False)
class RemotePlace(Place):
    """A prefix or an object. Its options are not printed; other processes add their own environment."""

    root: str
    key: str
    options: HiddenOptions
    moves = False

    @classmethod
    def of_url(cls, url: str, options: Options) -> RemotePlace:
        """Return the place of a URL."""
        parts = urlsplit(url)
        scheme = parts.scheme.lower()
        if scheme not in _SCHEMES:
            known = ", ".join(f"{name}://" for name in (*_SCHEMES, "file"))
            raise ValueError(f"URLs of stores begin with {known}, got {scheme}://.")
        if parts.query or "@" in parts.netloc:
            raise ValueError(
                f"the URL of a store at {scheme}://{parts.hostname} must not contain credentials or a query. "
                "Give them as environment variables or as storage options."
            )
        if importlib.util.find_spec("obstore") is None:
            raise ImportError(f'{scheme}:// URLs need obstore. Install it with: pip install "aniso[remote]".')
        key = "/".join(part for part in unquote(parts.path).split("/") if part)
        if not parts.netloc or not key or any(part in (".", "..") for part in key.split("/")):
            raise ValueError(f"{url} must name a bucket and a store in it, e.g. {scheme}://bucket/in.zarr.")
        if not all(isinstance(value, str | int | float) for value in options.values()):
            raise TypeError("values of storage options must be strings or numbers.")
        given = HiddenOptions(sorted((str(name), value) for name, value in options.items()))
        place = cls(f"{scheme}://{parts.netloc}", key, given)
        client_of(place.root, given, FIRST_RETRIES)  # rejects unknown options
        return place

    def __str__(self) -> str:
        return f"{self.root}/{self.key}"

    def __truediv__(self, name: str) -> RemotePlace:
        return replace(self, key=f"{self.key}/{name}") if name else self

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def node(self) -> Any:
        from zarr.storage import StorePath

        from aniso.blocks.stores.zarr_store import UrlStore

        store = UrlStore(self.root, self.options, self.key, self.root.startswith(READ_ONLY))
        return StorePath(store, self.key)

    @property
    def parents(self) -> list[Place]:
        parts = self.key.split("/")
        return [replace(self, key="/".join(parts[:count])) for count in range(len(parts) - 1, 0, -1)]

    def rename(self, name: str) -> RemotePlace:
        folder, slash, _ = self.key.rpartition("/")
        return replace(self, key=folder + slash + name)

    def make_parents(self) -> None:
        """Do nothing, because object stores have no folders."""

    def exists(self) -> bool:
        # Lists may be long, and web servers have none.
        known = [self / name for name in reversed(DESCRIPTIONS)]
        if self.root.startswith(READ_ONLY):
            return any(place._read(FIRST_RETRIES) is not None for place in known)
        return any(place._read(FIRST_RETRIES) is not None for place in (self, *known)) or self._has_objects()

    def read(self) -> bytes | None:
        return self._read(RETRIES)

    def _read(self, retries: tuple[int, float]) -> bytes | None:
        import obstore

        try:
            return self.call(lambda client: bytes(obstore.get(client, self.key).bytes()), retries)
        except PlaceMissing:
            raise
        except FileNotFoundError:
            return None

    def write(self, contents: bytes) -> None:
        import obstore

        self.call(lambda client: obstore.put(client, self.key, contents))

    def children(self) -> list[str]:
        import obstore

        found = self.call(lambda client: obstore.list_with_delimiter(client, f"{self.key}/"))
        paths = [*found["common_prefixes"], *(about["path"] for about in found["objects"])]
        return sorted({path.rstrip("/").rpartition("/")[2] for path in paths})

    def files(self) -> Iterator[tuple[str, str]]:
        if self.root.startswith(READ_ONLY):
            for name in (*DESCRIPTIONS, ".zattrs"):
                if (contents := (self / name).read()) is not None:
                    yield name, repr(contents)
            return
        for path, about in sorted(self._listed(), key=lambda one: one[0]):
            if not any(part.endswith(UNFINISHED) for part in path.split("/")[:-1]):
                yield path, f"{about['size']} {about['e_tag'] or about['last_modified']}"

    def remove(self, *, strict: bool = False) -> None:
        """Delete all objects but the lock of a run, which ends when it is released."""
        import obstore

        lock = f"{self.key}/{_LOCK}" if self.name.endswith(UNFINISHED) else ""
        with contextlib.nullcontext() if strict else contextlib.suppress(PlaceAway):
            paths = [f"{self.key}/{path}" for path, _ in self._listed()] + [self.key]
            paths = [path for path in paths if path != lock]
            for first in range(0, len(paths), 500):
                with contextlib.suppress(FileNotFoundError):
                    self.call(partial(obstore.delete, paths=paths[first : first + 500]))

    def lines(self) -> set[str]:
        return {path for path, _ in self._listed()}

    @contextmanager
    def open_list(self) -> Iterator[Record]:
        """Add lines as objects of a folder."""
        yield lambda line: (self / line).write(b"")

    def persist(self, keys: Iterable[str] | None = None) -> None:
        """Do nothing: an object is stored before the server answers."""

    def check_free(self) -> None:
        folder = self.rename(self.name + UNFINISHED)
        if self._has_objects():
            if self.is_described():
                raise PlaceTaken(f"{self} already exists. Choose another name, or delete it first.")
            if (folder / "run.json").read() is None:
                raise PlaceTaken(
                    f"{self} has objects but is not a complete store, and {folder.name}, from which a run "
                    "could be continued, does not exist. Choose another name, or delete it first."
                )

    def check_writable(self) -> None:
        if self.root.startswith(READ_ONLY):
            raise ValueError(
                f"{self} cannot be written: web servers are read only. Give a path, or a URL with s3://, "
                "gs:// or az://."
            )
        self.check_free()
        self.rename(self.name + UNFINISHED).probe()

    def check_lock(self) -> None:
        Lock(self).check_free()

    def lock_holder(self) -> str | None:
        return Lock(self).holder()

    @contextmanager
    def lock(self) -> Iterator[RemoteLease]:
        lock = Lock(self)
        lock.acquire()
        try:
            yield lock.lease
        finally:
            lock.release()

    def publish(self, target: Place) -> None:
        """Copy what describes the result to the target, where its data are: the outermost object last."""
        contents = {path: (self / path).read() or b"" for path, _ in self._listed()}
        depth = {path: (-path.count("/"), path.rpartition("/")[2] in DESCRIPTIONS) for path in contents}
        self.rename(_PUBLISHED).write(b"")
        for path in sorted(contents, key=lambda path: (*depth[path], path)):
            (target / path).write(contents[path])

    def probe(self) -> float:
        """Write an object that must not exist, twice, and delete it; return the time of the server."""
        import obstore

        probe, mark = self / f"probe-{uuid.uuid4().hex}", uuid.uuid4().bytes

        def write(client: Any) -> Any:
            return obstore.put(client, probe.key, mark, mode="create")

        try:
            with contextlib.suppress(obstore.exceptions.AlreadyExistsError):  # an answer was lost
                self.call(write, FIRST_RETRIES)
            when = self.call(lambda client: obstore.head(client, probe.key))["last_modified"]
            try:
                self.call(write)
            except obstore.exceptions.AlreadyExistsError:
                return float(when.timestamp())
            raise ExplainedError(
                f"{self.root} ignores the condition of conditional writes (If-None-Match), so that two runs "
                "could mix. Use a server that supports them."
            )
        finally:
            with contextlib.suppress(OSError):
                self.call(lambda client: obstore.delete(client, probe.key))

    def _has_objects(self) -> bool:
        """Whether there are objects with this prefix; the answer comes soon."""
        import obstore

        def ask(client: Any) -> bool:
            return any(len(batch) > 0 for batch in obstore.list(client, f"{self.key}/", chunk_size=1))

        return self.call(ask, FIRST_RETRIES)

    def _listed(self) -> list[tuple[str, Any]]:
        """Return the paths of all objects with this prefix, and what is known about them."""
        import obstore

        found = self.call(lambda client: obstore.list(client, f"{self.key}/").collect())
        return [(about["path"].removeprefix(f"{self.key}/"), about) for about in found]

    def call(self, action: Callable[[Any], _Result], retries: tuple[int, float] = RETRIES) -> _Result:
        """Call a function with a client; explain its errors."""
        import obstore

        client = client_of(self.root, self.options, retries)
        end = time.monotonic() + patience(self.options, retries)
        while True:
            try:
                return action(client)
            except (obstore.exceptions.BaseError, FileNotFoundError) as error:
                # Requests that may not be repeated unseen are cut off at once: here they may.
                raise_final(error, self.root, end)
                time.sleep(PAUSE)
