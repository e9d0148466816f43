"""Files that are damaged, and arrays that may not fit into files."""

import functools
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from aniso import io
from aniso.io.formats import FORMATS
from aniso.io.picture import Picture
from tests.fuzzing.judging import Case
from tests.fuzzing.odd_values import Draw, call_text

SUFFIXES = tuple(suffix for format in FORMATS.values() for suffix in format.suffixes)


@functools.cache
def sound_files() -> tuple[tuple[str, bytes], ...]:
    """Small files of every kind: their suffixes and bytes."""
    rng = np.random.default_rng(0)
    grey = rng.integers(0, 255, (7, 9), dtype=np.uint8)
    colours = rng.integers(0, 255, (7, 9, 3), dtype=np.uint8)
    volume = rng.normal(100, 20, (3, 5, 6)).astype(np.float32)
    pictures: list[tuple[str, Any]] = [
        *((suffix, grey) for suffix in (".png", ".jpg", ".tif", ".npy")),
        *((suffix, colours) for suffix in (".png", ".jpeg", ".tiff")),
        *((suffix, volume) for suffix in (".npy", ".nii", ".nii.gz", ".mrc", ".map", ".rec")),
        (".png", grey.astype(np.uint16) * 257),
        (".tif", volume),
        (".ome.tif", Picture(volume, spacing=(2.0, 1.0, 1.0), unit="µm")),
        (".tif", Picture(colours.astype(np.uint16), channel_axis=-1, alpha=grey.astype(np.uint16))),
        (".nii", Picture(volume, spacing=(2.0, 1.0, 1.0), unit="mm")),
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (suffix, picture) in enumerate(pictures):
            path = io.write(Path(folder, f"{number}{suffix}"), picture)
            found.append((suffix, path.read_bytes()))
    return tuple(found)


def damaged(draw: Draw) -> tuple[str, bytes]:
    """A suffix, and the bytes of a file that may be anything."""
    suffix, content = draw.choice(sound_files())
    way = draw.randint(0, 5)
    if way == 0:
        return draw.choice(SUFFIXES), draw.randbytes(draw.choice((0, 1, 7, 400, 2000)))
    if way == 1:
        return suffix, content[: draw.randint(0, len(content))]
    if way == 2:
        return draw.choice(SUFFIXES), content
    spoilt = bytearray(content)
    reach = len(spoilt) if way == 3 else min(len(spoilt), draw.choice((64, 200, 600)))
    for _ in range(draw.choice((1, 1, 2, 5, 20))):
        place = draw.randrange(reach)
        spoilt[place] = spoilt[place] ^ (1 << draw.randrange(8)) if draw.chance(0.6) else draw.randrange(256)
    if way == 5:
        spoilt = spoilt + draw.randbytes(50)
    return suffix, bytes(spoilt)


def read(draw: Draw) -> Case:
    if draw.chance(0.05):
        path = draw.number("nothing.png", ".", "/dev/null", "a\0b.png", "x" * 300 + ".png", odd=0.5)
        limit = draw.number(None, 10**6, odd=0.5)
        return Case(lambda: io.read(path, limit=limit), call_text("read", (path,), {"limit": limit}))
    suffix, content = damaged(draw)

    def call() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"image{suffix}")
            path.write_bytes(content)
            picture = io.read(path)
            repr(picture)
            # What can be read can be written, if only as numbers.
            io.write(Path(folder, "again.npy"), picture.pixels)
            return picture

    def check(picture: Any) -> str | None:
        return None if picture.pixels.size else "a picture without pixels"

    return Case(call, f"read {len(content)} bytes as {suffix}, beginning with {content[:16]!r}", check)


def write(draw: Draw) -> Case:
    array = draw.image()
    suffix = draw.number(*SUFFIXES, odd=0.05)
    suffix = suffix if isinstance(suffix, str) else ".png"
    known: dict[str, tuple[Any, ...]] = {
        "quality": (1, 50, 100, 0, 101),
        "force": (True, False),
        "parents": (True, False),
        "like": (None, _like(draw)),
    }
    options = draw.options(known, odd=0.05)

    def call() -> Any:
        folder = Path(tempfile.mkdtemp())
        path = folder / draw.choice(("", "below")) / f"image{suffix}"
        try:
            io.write(path, array, **options)
            io.read(path)
        except Exception:
            left = [each.name for each in folder.rglob("*") if each.is_file() and each != path]
            if left or (path.exists() and not options.get("force")):
                raise AssertionError(f"left behind: {left or path}") from None
            raise
        finally:
            shutil.rmtree(folder)

    return Case(
        call,
        call_text("write", (suffix, array), options),
        inputs=[array] if isinstance(array, np.ndarray) else [],
    )


def picture(draw: Draw) -> Case:
    known: dict[str, tuple[Any, ...]] = {
        "channel_axis": (None, -1, 0, 5),
        "alpha": (None, np.zeros((5, 7))),
        "dtype": (None, "uint8", "float32", "nothing"),
        "spacing": (None, (1.0, 2.0)),
    }
    pixels, options = draw.image(), draw.options(known, odd=0.1)
    return Case(lambda: repr(Picture(pixels, **options)), call_text("Picture", (pixels,), options))


def _like(draw: Draw) -> Any:
    return draw.choice(
        (Picture(np.zeros((5, 7), np.uint8)), Picture(np.zeros((5, 7, 3), np.uint16), channel_axis=-1))
    )
