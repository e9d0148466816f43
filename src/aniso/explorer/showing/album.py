"""The pictures that a page can fetch: the last few of each slot, with unique numbers."""

from __future__ import annotations

import itertools
from collections.abc import Collection

from aniso.explorer.showing.pictures import Encoded

# Number of pictures kept for pages that fetch slowly.
_KEPT = 3


class Album:
    """Pictures by slot and number.

    Numbers are unique, so that a page never draws a newer picture at the place of an older one.

    Examples
    --------
    >>> from aniso.explorer.showing.album import Album
    >>> from aniso.explorer.showing.pictures import Encoded
    >>> album = Album()
    >>> number = album.add("after", Encoded(b"...", "image/png", 2, 2))
    >>> album.get("after", number).kind, album.get("after", number + 1)
    ('image/png', None)
    """

    def __init__(self) -> None:
        self._slots: dict[str, dict[int, Encoded]] = {}
        self._numbers = itertools.count(1)

    def add(self, slot: str, picture: Encoded) -> int:
        """Keep a picture; return its number."""
        number, own = next(self._numbers), self._slots.setdefault(slot, {})
        own[number] = picture
        for old in list(own)[:-_KEPT]:
            del own[old]
        return number

    def get(self, slot: str, number: int) -> Encoded | None:
        """Return the picture of this number; None if it was replaced or dropped."""
        return self._slots.get(slot, {}).get(number)

    def drop(self, slot: str) -> bool:
        """Remove a slot; return whether it contained anything."""
        return self._slots.pop(slot, None) is not None

    def clear(self, but: Collection[str] = ()) -> None:
        """Remove all slots except these."""
        self._slots = {slot: own for slot, own in self._slots.items() if slot in but}
