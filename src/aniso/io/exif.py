"""Read EXIF blocks, and update them when the pixels change.

Blocks are changed in place, because notes of cameras refer to offsets in the block.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_ORIENTATION, _EXIF, _OFFSET, _LENGTH = 274, 34665, 513, 514
_WIDTHS, _HEIGHTS = (256, 40962), (257, 40963)
_ACROSS, _DOWN, _UNIT = 282, 283, 296
_INCH, _CENTIMETRE = 2, 3
_SHORT, _LONG, _RATIONAL = 3, 4, 5
_ENTRY = 12


@dataclass(frozen=True)
class _Entry:
    """One tag: its number and type, and the offset of its value (or of the pointer to it)."""

    tag: int
    kind: int
    place: int


def orientation(block: bytes | None) -> int:
    """Return the EXIF orientation, 1 to 8; 1 is upright.

    Examples
    --------
    >>> from aniso.io import exif
    >>> exif.orientation(exif.with_orientation(6))
    6
    """
    try:
        data, order, first = _open(block or b"")
        for entry in _entries(data, order, first):
            if entry.tag == _ORIENTATION and 1 <= (value := _number(data, order, entry)) <= 8:
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
        data, order, first = _open(block or b"")
        found = {entry.tag: entry for entry in _entries(data, order, first)}
        unit = _number(data, order, found[_UNIT]) if _UNIT in found else _INCH
        across, down = (_ratio(data, order, found[tag]) for tag in (_ACROSS, _DOWN))
    except (struct.error, ValueError, KeyError, ZeroDivisionError):
        return None
    per_inch = {_INCH: 1.0, _CENTIMETRE: 2.54}.get(unit, 0.0)
    return (per_inch * down, per_inch * across) if per_inch * across * down > 0 else None


def with_size(block: bytes, size: tuple[int, int], finer: tuple[float, float]) -> bytes:
    """Return the block for resized pixels, without the old preview."""
    try:
        data, order, first = _open(block)
        entries = list(_entries(data, order, first))
        for inner in [entry for entry in entries if entry.tag == _EXIF]:
            entries += _entries(data, order, _number(data, order, inner))
        for entry in entries:
            if entry.tag in (*_WIDTHS, *_HEIGHTS):
                _set_number(data, order, entry, size[int(entry.tag in _WIDTHS)])
            if entry.tag in (_ACROSS, _DOWN) and entry.kind == _RATIONAL:
                ratio = _ratio(bytearray(block), order, entry)  # which both tags may share
                _set_ratio(data, order, entry, ratio * finer[int(entry.tag == _ACROSS)])
        _drop_preview(data, order, first)
    except (struct.error, ValueError, ZeroDivisionError):
        return block  # a broken block goes back as it came
    return bytes(data)


def _open(block: bytes) -> tuple[bytearray, str, int]:
    """Return a copy, the byte order, and the offset of the first directory."""
    if block[:4] not in (b"II*\0", b"MM\0*"):
        raise ValueError("not an EXIF block")
    order = "<" if block[:2] == b"II" else ">"
    (first,) = struct.unpack_from(f"{order}I", block, 4)
    return bytearray(block), order, first


def _entries(data: bytearray, order: str, directory: int) -> Iterator[_Entry]:
    (length,) = struct.unpack_from(f"{order}H", data, directory)
    for number in range(length):
        place = directory + 2 + _ENTRY * number
        tag, kind, _ = struct.unpack_from(f"{order}HHI", data, place)
        yield _Entry(tag, kind, place + 8)


def _number(data: bytearray, order: str, entry: _Entry) -> int:
    (value,) = struct.unpack_from(f"{order}{'H' if entry.kind == _SHORT else 'I'}", data, entry.place)
    return int(value)


def _set_number(data: bytearray, order: str, entry: _Entry, value: int) -> None:
    if entry.kind in (_SHORT, _LONG):
        form = "H" if entry.kind == _SHORT else "I"
        struct.pack_into(f"{order}{form}", data, entry.place, min(value, 0xFFFF) if form == "H" else value)


def _ratio(data: bytearray, order: str, entry: _Entry) -> float:
    (place,) = struct.unpack_from(f"{order}I", data, entry.place)
    above, below = struct.unpack_from(f"{order}II", data, place)
    return float(above / below)


def _set_ratio(data: bytearray, order: str, entry: _Entry, ratio: float) -> None:
    (place,) = struct.unpack_from(f"{order}I", data, entry.place)
    struct.pack_into(f"{order}II", data, place, round(1000 * ratio), 1000)


def _drop_preview(data: bytearray, order: str, first: int) -> None:
    """Remove the link to the second directory, which is that of the preview, and erase the preview."""
    (count,) = struct.unpack_from(f"{order}H", data, first)
    link = first + 2 + _ENTRY * count
    (second,) = struct.unpack_from(f"{order}I", data, link)
    if second == 0:
        return
    found = {entry.tag: _number(data, order, entry) for entry in _entries(data, order, second)}
    struct.pack_into(f"{order}I", data, link, 0)
    start, length = found.get(_OFFSET, 0), found.get(_LENGTH, 0)
    if start and start + length >= len(data):
        del data[start:]
    elif start:
        data[start : start + length] = bytes(length)
