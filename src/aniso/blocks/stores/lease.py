"""The lock of a run in an object store: an object that one run creates and renews."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aniso.blocks.stores.clients import FIRST_RETRIES, PlaceTaken
from aniso.blocks.stores.places import Lease

if TYPE_CHECKING:
    from aniso.blocks.stores.remote import RemotePlace

# Seconds until the lock of a run that has stopped can be taken, and after which a run renews its own.
LEASE, _RENEWAL = 60.0, 10.0
_LOCK = "lock"
# For how many seconds a worker relies on what it read last.
_RELIANCE = 5.0
# Owners of the locks that this process holds.
_held: set[str] = set()
# Until when this process relies on a lock, by its owner.
_relied: dict[str, float] = {}


@dataclass(frozen=True)
class RemoteLease(Lease):
    """Tells workers whether the lock of their run still holds."""

    folder: RemotePlace
    owner: str

    def holds(self) -> bool:
        """Return whether the lock is that of the run."""
        contents = (self.folder / _LOCK).read()
        return contents is not None and json.loads(contents)["owner"] == self.owner

    def check(self) -> None:
        """Raise an error if another run has taken over."""
        now = time.monotonic()
        if now < _relied.get(self.owner, 0.0):
            return
        if not self.holds():
            _relied.pop(self.owner, None)
            raise PlaceTaken(
                f"another run has taken over {self.folder}, because this one did not renew its lock for "
                f"{LEASE:.0f} s, or the folder was deleted. Nothing more is written."
            )
        _relied[self.owner] = now + _RELIANCE


class Lock:
    """An object that one run creates and renews; if it does not, another one may take it.

    Times are those of the server, so that clocks may differ. A run of this machine whose process has ended
    does not have to be waited for.
    """

    def __init__(self, folder: RemotePlace) -> None:
        self.folder = folder
        self.place = folder / _LOCK
        self.lease = RemoteLease(folder, uuid.uuid4().hex)
        self.mark: Any = None  # of the object as this run wrote it
        self._count = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def check_free(self) -> tuple[bool, Any]:
        """Raise an error if a run holds the lock; return whether there is one, and its version."""
        try:
            about, meta = self._read()
        except FileNotFoundError:
            return False, None
        if about["owner"] == self.lease.owner or _has_ended(about):
            return True, meta
        age = self.folder.probe() - meta["last_modified"].timestamp()
        if age < LEASE:
            raise PlaceTaken(
                f"another run is writing to {self.folder} ({about['host']}, {max(age, 0):.0f} s ago). Wait "
                f"until it ends, or choose another output. The lock of a run that was "
                f"killed ends after {LEASE:.0f} s."
            )
        return True, meta

    def holder(self) -> str | None:
        """Return the machine of the run that holds the lock, by the clock of this machine, or None."""
        try:
            about, meta = self._read()
        except FileNotFoundError:
            return None
        late = time.time() - meta["last_modified"].timestamp() > LEASE
        return None if late or _has_ended(about) else str(about.get("host"))

    def acquire(self) -> None:
        """Take the lock, and renew it from now on."""
        there, meta = self.check_free()
        _held.add(self.lease.owner)
        if not self._write(_version(meta) if there else "create"):
            raise PlaceTaken(
                f"another run is writing to {self.folder}. Wait until it ends, or choose another output."
            )
        self._thread.start()

    def release(self) -> None:
        """Delete the lock, if it is still that of this run."""
        import obstore

        self._end.set()
        self._thread.join()
        _held.discard(self.lease.owner)
        with contextlib.suppress(OSError, obstore.exceptions.BaseError):
            if self.lease.holds():
                self.place.call(lambda client: obstore.delete(client, self.place.key), FIRST_RETRIES)

    def _read(self) -> tuple[dict[str, Any], Any]:
        """Return the contents of the lock, and its version."""
        import obstore

        def get(client: Any) -> Any:
            found = obstore.get(client, self.place.key)
            return json.loads(bytes(found.bytes())), found.meta  # answers may end too early

        contents: tuple[dict[str, Any], Any] = self.place.call(get, FIRST_RETRIES)
        return contents

    def _write(self, mode: Any) -> bool:
        """Write the lock if it still has this version; return whether it is that of this run."""
        import obstore

        self._count += 1  # or the version of the object would be the same
        about = {"owner": self.lease.owner, "renewed": self._count}
        about |= {"host": socket.gethostname(), "machine": _machine(), "process": os.getpid()}
        contents = json.dumps(about).encode()
        try:
            self.mark = self.place.call(
                lambda client: obstore.put(client, self.place.key, contents, mode=mode), FIRST_RETRIES
            )
        except (obstore.exceptions.AlreadyExistsError, obstore.exceptions.PreconditionError):
            if not self.lease.holds():  # otherwise the answer to a first try was lost
                return False
            self.mark = self.place.call(lambda client: obstore.head(client, self.place.key))
        return True

    def _renew(self) -> None:
        """Renew the lock until the end; if it is lost, workers find that out before they write."""
        import obstore

        while not self._end.wait(_RENEWAL):
            # After an error the server may be back at the next time.
            with contextlib.suppress(OSError, ValueError, obstore.exceptions.BaseError):
                if not self._write(_version(self.mark)):
                    return


def _version(about: Mapping[str, Any]) -> dict[str, Any]:
    return {name: about[name] for name in ("e_tag", "version") if about.get(name) is not None}


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
    if about["process"] == os.getpid():
        return about["owner"] not in _held
    try:
        os.kill(int(about["process"]), 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False
