"""Read EXIF blocks, and update them when the pixels change.

Blocks are changed in place, because notes of cameras refer to offsets in the block.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_ORIENTATION, _EXIF, _OFFSET, _LENGTH = 274, 34665, 513, 514
_WIDTHS, _HEIGHTS = (256, 40962), (257, 40963)
_ACROSS, _DOWN, _UNIT = 282, 283, 296
_INCH = 2
_SHORT, _LONG, _RATIONAL = 3, 4, 5
_ENTRY = 12
#: What makes numbers per unit of resolution, inch or centimetre, numbers per inch.
PER_INCH = {_INCH: 1.0, 3: 2.54}


class _Block:
    """A copy of a block that can be changed, in its byte order."""

    def __init__(self, block: bytes | None) -> None:
        if block is None or block[:4] not in (b"II*\0", b"MM\0*"):
            raise ValueError("not an EXIF block")
        self.data, self._order = bytearray(block), "<" if block[:2] == b"II" else ">"
        (self.first,) = self.get("I", 4)

    def get(self, form: str, place: int) -> tuple[int, ...]:
        return struct.unpack_from(self._order + form, self.data, place)

    def put(self, form: str, place: int, *values: int) -> None:
        struct.pack_into(self._order + form, self.data, place, *values)

    def entries(self, directory: int) -> Iterator[tuple[int, int, int]]:
        """Yield number and type of each tag, and the offset of its value (or of the pointer to it)."""
        (length,) = self.get("H", directory)
        for place in range(directory + 2, directory + 2 + _ENTRY * length, _ENTRY):
            tag, kind, _ = self.get("HHI", place)
            yield tag, kind, place + 8

    def number(self, kind: int, place: int) -> int:
        return self.get("H" if kind == _SHORT else "I", place)[0]

    def ratio(self, place: int) -> float:
        above, below = self.get("II", self.get("I", place)[0])
        return above / below

    def drop_preview(self) -> None:
        """Remove the link to the second directory, which is that of the preview, and erase the preview."""
        link = self.first + 2 + _ENTRY * self.get("H", self.first)[0]
        (second,) = self.get("I", link)
        if second == 0:
            return
        found = {tag: self.number(kind, place) for tag, kind, place in self.entries(second)}
        self.put("I", link, 0)
        start, length = found.get(_OFFSET, 0), found.get(_LENGTH, 0)
        if start and start + length >= len(self.data):
            del self.data[start:]
        elif start:
            self.data[start : start + length] = bytes(length)


def orientation(block: bytes | None) -> int:
    """Return the EXIF orientation, 1 to 8; 1 is upright."""
    try:
        opened = _Block(block)
        for tag, kind, place in opened.entries(opened.first):
            if tag == _ORIENTATION and 1 <= (value := opened.number(kind, place)) <= 8:
                return value
    except (struct.error, ValueError):
        pass  # a broken block goes back as it came
    return 1


def with_orientation(orientation: int) -> bytes | None:
    """Return a block with the orientation alone; None for upright pictures."""
    if not 2 <= orientation <= 8:
        return None
    return b"II*\0" + struct.pack("<IHHHIHHI", 8, 1, _ORIENTATION, _SHORT, 1, orientation, 0, 0)


def resolution(block: bytes | None) -> tuple[float, float] | None:
    """Return pixels per inch along H and W, or None."""
    try:
        opened = _Block(block)
        found = {tag: (kind, place) for tag, kind, place in opened.entries(opened.first)}
        unit = opened.number(*found[_UNIT]) if _UNIT in found else _INCH
        across, down = (opened.ratio(found[tag][1]) for tag in (_ACROSS, _DOWN))
    except (struct.error, ValueError, KeyError, ZeroDivisionError):
        return None
    per_inch = PER_INCH.get(unit, 0.0)
    return (per_inch * down, per_inch * across) if per_inch * across * down > 0 else None


def with_size(block: bytes, size: tuple[int, int], finer: tuple[float, float]) -> bytes:
    """Return the block for resized pixels, without the old preview."""
    try:
        old, new = _Block(block), _Block(block)
        entries = list(new.entries(new.first))
        for inner in [new.number(kind, place) for tag, kind, place in entries if tag == _EXIF]:
            entries += new.entries(inner)
        for tag, kind, place in entries:
            if tag in (*_WIDTHS, *_HEIGHTS) and kind in (_SHORT, _LONG):
                form, most = ("H", 2**16 - 1) if kind == _SHORT else ("I", 2**32 - 1)
                new.put(form, place, min(size[int(tag in _WIDTHS)], most))
            if tag in (_ACROSS, _DOWN) and kind == _RATIONAL:
                ratio = old.ratio(place) * finer[int(tag == _ACROSS)]  # both tags may share the old one
                new.put("II", new.get("I", place)[0], round(1000 * ratio), 1000)
        new.drop_preview()
    except (struct.error, ValueError, ZeroDivisionError):
        return block  # a broken block goes back as it came
    return bytes(new.data)
