"""The pictures that a page may fetch: the last few of each slot, each under a number of its own."""

from __future__ import annotations

import itertools
from collections.abc import Collection

from aniso.explorer.showing.pictures import Encoded

# A page that is slow to fetch still gets what it was told of when so many newer ones have followed.
_KEPT = 3


class Album:
    """Pictures by slot and number.

    A number stands for one picture, so that a page never draws a newer picture at the place of an older one.

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
        """Keep a picture; returns its number."""
        number, own = next(self._numbers), self._slots.setdefault(slot, {})
        own[number] = picture
        for old in list(own)[:-_KEPT]:
            del own[old]
        return number

    def get(self, slot: str, number: int) -> Encoded | None:
        """The picture of this number; None if it has been replaced, or dropped."""
        return self._slots.get(slot, {}).get(number)

    def drop(self, slot: str) -> bool:
        """Let go of a slot; whether it held anything."""
        return self._slots.pop(slot, None) is not None

    def clear(self, but: Collection[str] = ()) -> None:
        """Let go of all slots but these."""
        self._slots = {slot: own for slot, own in self._slots.items() if slot in but}
