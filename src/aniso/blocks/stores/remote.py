"""Places in object stores: S3, Google Cloud, Azure; and, to be read only, web servers.

Zarr reads and writes them with obstore. An object appears at once and complete, but cannot be moved, and there
are no locks. So the data of a result are written where they stay, and the result appears with the object
that describes it, which is written last; a lock is an object that only one run can create, and that it
renews while it runs.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from aniso.blocks.stores.places import UNFINISHED, ExplainedError, Options, Place, Record

_SCHEMES = ("s3", "gs", "az", "https", "http")
_READ_ONLY = ("https", "http")
# Options of connections, which obstore takes apart from those of a store.
_CLIENT = (
    "allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only", "proxy_ca_certificate",
    "proxy_excludes", "proxy_url", "read_timeout", "timeout", "user_agent",
)  # fmt: skip
# Retries of a request: their number, and for how many seconds they begin. Before a run, answers come soon.
_RETRIES, _FIRST_RETRIES = (10, 60.0), (2, 4.0)
# Seconds until the lock of a run that has stopped can be taken, and after which a run renews its own.
LEASE, _RENEWAL = 60.0, 10.0
_LOCK, _PUBLISHED = "lock", "published"
# What describes an array or group, in the order in which it has to appear.
_LAST = (".zarray", ".zgroup", "zarr.json")

_DENIED = re.compile(
    r"AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|ExpiredToken|TokenRefreshRequired"
    r"|AuthenticationFailed|AuthorizationFailure|\b40[13]\b"
)
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist", re.IGNORECASE)
_CODE = re.compile(r"<Code>(\w+)</Code>|status code: (\d+ [A-Za-z ]+)")
_WHY = re.compile(
    r"Connection refused|Connection reset|timed out|dns error|certificate|incomplete message|"
    r"connection closed|IncompleteBody|unexpected end",
    re.IGNORECASE,
)
_Result = TypeVar("_Result")


class PlaceDenied(ExplainedError, PermissionError):
    """The store does not accept the credentials, or does not allow what was tried."""


class PlaceAway(ExplainedError, ConnectionError):
    """The store does not answer."""


class PlaceMissing(ExplainedError, FileNotFoundError):
    """There is no such bucket."""


class PlaceTaken(ExplainedError, FileExistsError):
    """There is something already, or another run is writing."""


class HiddenOptions(tuple[tuple[str, Any], ...]):
    """Options of a store, some of which are secrets: they are not printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{len(self)} options>"

    __str__ = __repr__


class RemotePlace(Place):
    """A prefix or an object. Its options are not printed; other processes add their own environment."""

    moves = False

    def __init__(self, root: str, key: str, options: HiddenOptions) -> None:
        self.root = root
        self.key = key
        self.options = options

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
        given = HiddenOptions(sorted((str(name), value) for name, value in options.items()))
        place = cls(f"{scheme}://{parts.netloc}", key, given)
        _client(place.root, given, _FIRST_RETRIES)  # rejects unknown options
        return place

    def __str__(self) -> str:
        return f"{self.root}/{self.key}"

    def __repr__(self) -> str:
        return f"RemotePlace({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePlace) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.root, self.key))

    def __truediv__(self, name: str) -> RemotePlace:
        return RemotePlace(self.root, f"{self.key}/{name}" if name else self.key, self.options)

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def node(self) -> Any:
        from zarr.storage import StorePath

        return StorePath(zarr_store(self.root, self.options, self.root.startswith(_READ_ONLY)), self.key)

    @property
    def parents(self) -> list[Place]:
        parts = self.key.split("/")
        return [
            RemotePlace(self.root, "/".join(parts[:count]), self.options)
            for count in range(len(parts) - 1, 0, -1)
        ]

    def rename(self, name: str) -> RemotePlace:
        folder, slash, _ = self.key.rpartition("/")
        return RemotePlace(self.root, folder + slash + name, self.options)

    def exists(self) -> bool:
        if self.root.startswith(_READ_ONLY):  # web servers have no lists
            return any((self / name).read() is not None for name in _LAST)
        return self._has_objects() or self.read() is not None

    def read(self) -> bytes | None:
        import obstore

        try:
            return self._call(lambda client: bytes(obstore.get(client, self.key).bytes()))
        except PlaceMissing:
            raise
        except FileNotFoundError:
            return None

    def write(self, contents: bytes) -> None:
        import obstore

        self._call(lambda client: obstore.put(client, self.key, contents))

    def children(self) -> list[str]:
        return sorted({path.split("/")[0] for path, _ in self._listed()})

    def files(self) -> Iterator[tuple[str, str]]:
        if self.root.startswith(_READ_ONLY):
            for name in (*_LAST, ".zattrs"):
                if (contents := (self / name).read()) is not None:
                    yield name, repr(contents)
            return
        for path, about in sorted(self._listed(), key=lambda one: one[0]):
            if not any(part.endswith(UNFINISHED) for part in path.split("/")[:-1]):
                yield path, f"{about['size']} {about['e_tag'] or about['last_modified']}"

    def remove(self, *, strict: bool = False) -> None:
        """Delete all objects, the lock last, so that no other run begins in the meantime."""
        import obstore

        paths = [f"{self.key}/{path}" for path, _ in self._listed()] + [self.key]
        paths.sort(key=lambda path: path.endswith(f"{UNFINISHED}/{_LOCK}"))
        for first in range(0, len(paths), 500):
            part = paths[first : first + 500]
            with contextlib.suppress(FileNotFoundError):
                self._call(lambda client, part=part: obstore.delete(client, part))

    def lines(self) -> set[str]:
        return {path for path, _ in self._listed()}

    @contextmanager
    def open_list(self) -> Iterator[Record]:
        """Add lines as objects of a folder."""
        yield lambda line: (self / line).write(b"")

    def persist(self, keys: Iterable[str] | None = None) -> None:
        """Do nothing: an object is stored before the server answers."""

    def check_writable(self) -> None:
        if self.root.startswith(_READ_ONLY):
            raise ValueError(
                f"{self} cannot be written: web servers are read only. Give a path, or a URL with s3://, gs:// "
                "or az://."
            )
        folder = self.rename(self.name + UNFINISHED)
        if self._has_objects():
            if any((self / name).read() is not None for name in _LAST):
                raise PlaceTaken(f"{self} already exists. Choose another name, or delete it first.")
            if (folder / "run.json").read() is None:
                raise PlaceTaken(
                    f"{self} has objects, but is not a complete store, and there is no {folder.name} to continue. "
                    "Choose another name, or delete it first."
                )
        folder._probe()

    def check_lock(self) -> None:
        Lock(self).check_free()

    @contextmanager
    def lock(self) -> Iterator[RemoteLease]:
        lock = Lock(self)
        lock.acquire()
        try:
            yield RemoteLease(self, lock.owner)
        finally:
            lock.release()

    def publish(self, target: Place) -> None:
        """Copy what describes the result to the target, where its data are: the outermost object last."""
        contents = {path: (self / path).read() or b"" for path, _ in self._listed()}
        depth = {path: (-path.count("/"), path.rpartition("/")[2] in _LAST) for path in contents}
        (RemotePlace(self.root, self.key.rpartition("/")[0], self.options) / _PUBLISHED).write(b"")
        for path in sorted(contents, key=lambda path: (*depth[path], path)):
            (target / path).write(contents[path])

    def _probe(self) -> float:
        """Write an object that must not exist, twice, and delete it; return the time of the server."""
        import obstore

        probe, mark = self / f"probe-{uuid.uuid4().hex}", uuid.uuid4().bytes

        def write(client: Any) -> Any:
            return obstore.put(client, probe.key, mark, mode="create")

        try:
            try:
                self._call(write, _FIRST_RETRIES)
            except obstore.exceptions.AlreadyExistsError:  # the answer to a first try was lost
                pass
            when = self._call(lambda client: obstore.head(client, probe.key))["last_modified"]
            try:
                self._call(write)
            except obstore.exceptions.AlreadyExistsError:
                return float(when.timestamp())
            raise ExplainedError(
                f"{self.root} ignores the condition of conditional writes (If-None-Match), so that two runs "
                "could mix. Use a server that supports them."
            )
        finally:
            with contextlib.suppress(OSError):
                self._call(lambda client: obstore.delete(client, probe.key))

    def _has_objects(self) -> bool:
        """Whether there are objects with this prefix; the answer comes soon."""
        import obstore

        def ask(client: Any) -> bool:
            return any(len(batch) > 0 for batch in obstore.list(client, f"{self.key}/", chunk_size=1))

        return self._call(ask, _FIRST_RETRIES)

    def _listed(self) -> list[tuple[str, Any]]:
        """Return the paths of all objects with this prefix, and what is known about them."""
        import obstore

        found = self._call(lambda client: obstore.list(client, f"{self.key}/").collect())
        return [(about["path"].removeprefix(f"{self.key}/"), about) for about in found]

    def _call(self, action: Callable[[Any], _Result], retries: tuple[int, float] = _RETRIES) -> _Result:
        """Call a function with a client; explain its errors."""
        import obstore

        client = _client(self.root, self.options, retries)
        end = time.monotonic() + retries[1]
        while True:
            try:
                return action(client)
            except (obstore.exceptions.BaseError, FileNotFoundError) as error:
                known = explain(error, self.root)
                if known is None:
                    raise
                # Requests that may not be repeated unseen are cut off at once: here they may.
                if not isinstance(known, PlaceAway) or time.monotonic() > end:
                    raise known from None
                time.sleep(0.2)


class RemoteLease:
    """Tells workers whether the lock of their run still holds."""

    def __init__(self, folder: RemotePlace, owner: str) -> None:
        self.folder = folder
        self.owner = owner

    def check(self) -> None:
        """Raise an error if another run has taken over."""
        contents = (self.folder / _LOCK).read()
        if contents is None or json.loads(contents)["owner"] != self.owner:
            raise _taken_over(self.folder)


class Lock:
    """An object that one run creates and renews; if it does not, another one may take it.

    Times are those of the server, so that clocks may differ. A run of this machine whose process has ended
    does not have to be waited for.
    """

    def __init__(self, folder: RemotePlace) -> None:
        self.folder = folder
        self.place = folder / _LOCK
        self.owner = uuid.uuid4().hex
        self.mark: Any = None  # of the object as this run wrote it
        self._count = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def check_free(self) -> tuple[bool, Any]:
        """Raise an error if a run holds the lock; return whether there is one, and its version."""
        import obstore

        try:
            found = self.place._call(lambda client: obstore.get(client, self.place.key), _FIRST_RETRIES)
        except FileNotFoundError:
            return False, None
        about, meta = json.loads(bytes(found.bytes())), found.meta
        if about["owner"] == self.owner or _has_ended(about):
            return True, meta
        age = self.folder._probe() - meta["last_modified"].timestamp()
        if age < LEASE:
            raise PlaceTaken(
                f"another run is writing to {self.folder} ({about['host']}, {max(age, 0):.0f} s ago). Wait until it "
                f"ends, or choose another output. The lock of a run that was killed ends after {LEASE:.0f} s."
            )
        return True, meta

    def acquire(self) -> None:
        """Take the lock, and renew it from now on."""
        import obstore

        there, meta = self.check_free()
        try:
            self._write(_version(meta) if there else "create")
        except (obstore.exceptions.AlreadyExistsError, obstore.exceptions.PreconditionError):
            contents = self.place.read()  # the answer to a first try may have been lost
            if contents is None or json.loads(contents)["owner"] != self.owner:
                raise PlaceTaken(
                    f"another run is writing to {self.folder}. Wait until it ends, or choose another output."
                ) from None
            self.mark = self.place._call(lambda client: obstore.head(client, self.place.key))
        self._thread.start()

    def release(self) -> None:
        """Delete the lock, if it is still that of this run."""
        import obstore

        self._end.set()
        self._thread.join()
        with contextlib.suppress(OSError, obstore.exceptions.BaseError):
            contents = self.place.read()
            if contents is not None and json.loads(contents)["owner"] == self.owner:
                self.place._call(lambda client: obstore.delete(client, self.place.key), _FIRST_RETRIES)

    def _write(self, mode: Any) -> None:
        import obstore

        self._count += 1  # or the version of the object would be the same
        about = {"owner": self.owner, "renewed": self._count, **_this_process()}
        contents = json.dumps(about).encode()
        self.mark = self.place._call(
            lambda client: obstore.put(client, self.place.key, contents, mode=mode), _FIRST_RETRIES
        )

    def _renew(self) -> None:
        """Renew the lock until the end; if it is lost, workers find that out before they write."""
        import obstore

        while not self._end.wait(_RENEWAL):
            try:
                self._write(_version(self.mark))
            except (obstore.exceptions.PreconditionError, obstore.exceptions.AlreadyExistsError):
                with contextlib.suppress(OSError, ValueError):
                    contents = self.place.read()
                    if contents is not None and json.loads(contents)["owner"] == self.owner:
                        self.mark = self.place._call(lambda client: obstore.head(client, self.place.key))
                        continue
                return
            except (OSError, obstore.exceptions.BaseError):
                continue  # the server may be back at the next time


def _version(about: Mapping[str, Any]) -> dict[str, Any]:
    return {name: about[name] for name in ("e_tag", "version") if about.get(name) is not None}


def _this_process() -> dict[str, Any]:
    return {"host": socket.gethostname(), "machine": _machine(), "process": os.getpid()}


def _machine() -> str | None:
    """Return what identifies the processes of this machine, or of this container; None if nothing does."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def _has_ended(about: Mapping[str, Any]) -> bool:
    """Whether the process that holds a lock has ended, as far as can be seen here."""
    if about.get("machine") is None or about["machine"] != _machine():
        return False
    try:
        os.kill(int(about["process"]), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _taken_over(folder: RemotePlace) -> PlaceTaken:
    return PlaceTaken(
        f"another run has taken over {folder}, because this one did not renew its lock for {LEASE:.0f} s, or the "
        "folder was deleted. Nothing more is written."
    )


def explain(error: Exception, root: str) -> ExplainedError | None:
    """Return an error of obstore in words; None if it says that something exists, or does not.

    Messages of servers and of obstore are not repeated: they may contain parts of requests.
    """
    import obstore

    text = str(error)
    if isinstance(error, obstore.exceptions.AlreadyExistsError | obstore.exceptions.PreconditionError):
        return None
    if _NO_BUCKET.search(text):
        return PlaceMissing(f"the bucket {root} does not exist. Check its name, the region and the endpoint.")
    if isinstance(error, FileNotFoundError):
        return None
    code = next((found for found in (_CODE.search(text) or _NOTHING).groups() if found), "")
    if isinstance(
        error, obstore.exceptions.PermissionDeniedError | obstore.exceptions.UnauthenticatedError
    ) or _DENIED.search(text):
        return PlaceDenied(
            f"{root} denied access{f' ({code})' if code else ''}. Check the credentials, and what they allow: they "
            "are taken from environment variables and storage options."
        )
    if "169.254" in text or "credential" in text.lower() or "metadata" in text.lower():
        return PlaceDenied(
            f"there are no credentials for {root}. Set environment variables such as AWS_ACCESS_KEY_ID, or give "
            "storage options (skip_signature=true for public data)."
        )
    why = (_WHY.search(text) or _NOTHING)[0].lower() or code.lower() or "no answer"
    return PlaceAway(
        f"{root} does not answer: {why}. Complete blocks are kept. Repeat the call to continue when the server "
        "is back; check the endpoint if it never answered."
    )


_NOTHING: Any = re.match(r"()", "")


@lru_cache(maxsize=16)
def _client(root: str, options: HiddenOptions, retries: tuple[int, float]) -> Any:
    """Return obstore's client of a bucket or server."""
    import obstore

    given = dict(options)
    scheme = root.partition("://")[0]
    endpoint = given.get("endpoint") or given.get("aws_endpoint") or given.get("endpoint_url") or ""
    if scheme == "s3" and not endpoint:
        endpoint = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), "")
    most = int(given.pop("max_retries", retries[0]))
    seconds = min(float(given.pop("retry_timeout", retries[1])), retries[1])
    client = {name: given.pop(name) for name in _CLIENT if name in given}
    if scheme == "http" or (scheme == "s3" and str(endpoint).startswith("http://")):
        client.setdefault("allow_http", True)
    client.setdefault("connect_timeout", "5s")
    retry: Any = {"max_retries": min(most, retries[0]), "retry_timeout": timedelta(seconds=seconds)}
    config = {name: str(value).lower() if isinstance(value, bool) else value for name, value in given.items()}
    try:
        if scheme in _READ_ONLY:
            return obstore.store.HTTPStore.from_url(root, client_options=client, retry_config=retry)
        more: Any = {"config": config} if config else {}
        return obstore.store.from_url(root, client_options=client, retry_config=retry, **more)
    except obstore.exceptions.UnknownConfigurationKeyError as error:
        name = (re.search(r"'(\w+)'", str(error)) or _NOTHING)[0]
        raise ValueError(f"storage option {name} is unknown for {scheme}:// URLs.") from None
    except obstore.exceptions.BaseError:
        raise ValueError(
            f"{root} cannot be opened with these storage options and environment variables. Check the "
            "endpoint, the account and the region."
        ) from None


_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


@lru_cache(maxsize=16)
def zarr_store(root: str, options: HiddenOptions, read_only: bool = False) -> Any:
    """Return a bucket as a store of Zarr."""
    from aniso.blocks.stores.zarr_store import UrlStore

    return UrlStore(root, options, _client(root, options, _RETRIES), read_only=read_only)
