"""Convert units of length, by the names that files use."""

from __future__ import annotations

import html
import re
import unicodedata

_PREFIXES = {"pico": 1e-12, "nano": 1e-9, "micro": 1e-6, "milli": 1e-3, "centi": 1e-2, "": 1.0, "kilo": 1e3}
_SYMBOLS = {
    **{"pm": 1e-12, "A": 1e-10, "Å": 1e-10, "nm": 1e-9, "um": 1e-6, "µm": 1e-6, "µ": 1e-6},
    **{"mm": 1e-3, "cm": 1e-2, "dm": 1e-1, "m": 1.0, "km": 1e3, "in": 0.0254},
}
# Lower case, singular.
_WORDS = {
    **{f"{prefix}{word}": length for prefix, length in _PREFIXES.items() for word in ("meter", "metre")},
    **dict.fromkeys(("angstrom", "angström", "ångstrom", "ångström"), 1e-10),
    **{"micron": 1e-6, "inch": 0.0254, "inches": 0.0254},
}


def unescape(name: str) -> str:
    r"""Replace escape sequences of ImageJ and XML in the name of a unit: \u00B5m or &#181;m is µm."""
    name = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), html.unescape(name))
    # Two signs that look the same: the Greek letter, and the one for millionths.
    return unicodedata.normalize("NFC", name).replace("\u03bc", "\u00b5").strip()


def escape(name: str) -> str:
    r"""Return the name of a unit in ASCII, as ImageJ writes it: µm becomes \u00B5m."""
    return "".join(letter if letter.isascii() else f"\\u{ord(letter):04X}" for letter in name)


def metres(name: str | None) -> float | None:
    """Return the length of a unit in metres, or None if it is unknown."""
    name = unescape(name or "")
    word = name.lower()
    return _SYMBOLS.get(name, _WORDS.get(word, _WORDS.get(word.removesuffix("s"))))


def ratio(name: str | None, other: str | None) -> float | None:
    """Return how many of the other unit make one of the first, or None if one of them is unknown."""
    length, base = metres(name), metres(other)
    return None if length is None or base is None else length / base
