"""Command lines: every command with odd options and odd files, in this process."""

import json
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from aniso import io, models, schemes
from aniso.cli.commands import load, summaries
from tests.cli.command_calls import called, contents
from tests.fuzzing.file_calls import damaged, sound_files
from tests.fuzzing.judging import Case
from tests.fuzzing.odd_values import Draw

_NUMBERS = (
    "1",
    "0.5",
    "3",
    "0",
    "-1",
    "1e-300",
    "1e9",
    "1e30",
    "1e300",
    "nan",
    "inf",
    "auto",
    "x",
    "",
    "1,2",
    "٣",
)
# They open pages, take seconds by design, or draw for seconds.
_LEFT_OUT = ("explore", "bench", "demo")
_COMMANDS = tuple(name for name in summaries() if name not in _LEFT_OUT)
_OPTIONS = {
    flag: option
    for command in _COMMANDS
    for option in load(command).params
    for flag in (*option.opts, *option.secondary_opts)
    if option.param_type_name == "option"
}
_VALUES: dict[str, tuple[str, ...]] = {
    **{flag: _NUMBERS for flag, option in _OPTIONS.items() if str(option.metavar).startswith("NUMBER")},
    "--time": ("0", "0.5", "1", "auto", "-1", "1e300", "x", "nan"),
    "--times": ("1", "0,1", "1,1", "2,1", "", ",", "1,x", "0.1,0.2,", "1e300"),
    "--spacing": ("1", "2,1", "1,1,1", "file", "0", "-1", "1e-300", "1e300", "x", ","),
    "--channel-axis": ("-1", "0", "none", "7", "x", "1.5"),
    "--dtype": ("uint8", "uint16", "float32", "float64", "int8", "x"),
    "--quality": ("1", "100", "0", "x"),
    "--threads": ("1", "2", "0", "x"),
    "--engine": ("cpu", "reference", "torch", "gpu"),
    "--model": (*models.kinds(), "x"),
    "--diffusivity": ("weickert", "charbonnier", "x"),
    "--scheme": (*schemes.kinds(), "x"),
    "--cycles": ("1", "3", "0", "x", "99999999999999999999999"),
    "--max-cycles": ("1", "3", "0", "x"),
    "--stencil": ("standard", "nonnegativity", "x"),
    "--output": (
        "out.png",
        "out.tif",
        "out.npy",
        "out/",
        "{stem}_x{suffix}",
        "{nothing}.png",
        "{stem",
        "/",
        "ä é.png",
    ),
    "--mask": ("mask.png", "nothing.png", "input.png", "x"),
}
_SWITCHES = (
    *(
        flag
        for flag, option in _OPTIONS.items()
        if option.is_flag and flag.startswith("--") and flag != "--debug"
    ),
    "--unheard-of",
)
_FILES = (
    "input.png",
    "colours.png",
    "grey.npy",
    "holes.npy",
    "volume.nii",
    "stack.tif",
    "damaged",
    "missing.png",
    ".",
    "*.png",
)


def _own_options(command: str) -> set[str]:
    return {name for option in load(command).params for name in (*option.opts, *option.secondary_opts)}


def commands(draw: Draw) -> Case:
    command = draw.choice(_COMMANDS)
    own = _own_options(command)
    known = [name for name in _VALUES if name in own or draw.chance(0.02)]
    words = [command]
    if command == "upsample":
        words += ["--factor", draw.choice(("2", "1", "3", "2,1", "0", "9", "x", "2,1,1"))]
    if command != "stencil":
        words += draw.sample(_FILES, draw.choice((1, 1, 1, 2)))
    if command == "scale-space" and draw.chance(0.9):
        words += ["--times", draw.choice(("1", "0,0.5", "0.5,1"))]
    if command == "diffuse" and draw.chance(0.8):
        words += ["--time", draw.choice(("0.5", "1"))]
    if draw.chance(0.15) and "--tensor" in own:
        words += ["--tensor", *(draw.choice(_NUMBERS) for _ in "abc")]
    if draw.chance(0.15) and "--eigenvalues" in own:
        words += ["--eigenvalues", *(draw.choice(_NUMBERS) for _ in "ab")]
    for name in draw.sample(known, min(len(known), draw.choice((0, 1, 2, 3)))):
        words += [name, draw.choice(_VALUES[name])]
    for name in draw.sample(_SWITCHES, draw.choice((0, 0, 1, 2))):
        words += [name] if name in own or draw.chance(0.05) else []
    if draw.chance(0.02):
        words.insert(draw.randint(0, len(words)), draw.choice(("", "--", "-", "--help", "\udcff")))
    broken = damaged(draw)
    words = [f"damaged{broken[0]}" if word == "damaged" else word for word in words]

    def call() -> Any:
        folder = Path(tempfile.mkdtemp())
        try:
            _fill(folder, broken)
            before = contents(folder)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                result = called(folder, *words)
            return result, seen, _left_behind(folder, before, "--force" in words)
        finally:
            shutil.rmtree(folder)

    return Case(call, "aniso " + " ".join(map(repr, words)), _check, refused=_refused)


def stores(draw: Draw) -> Case:
    """Zarr stores that are damaged, or of which nothing is asked but a copy."""
    import zarr

    verb = draw.choice((["denoise"], ["enhance"], ["diffuse", "--time", "0"], ["info"]))
    way = draw.randint(0, 6)
    shape = draw.choice(((12, 11), (4, 9, 8), (7,), (0, 4), (2, 3, 4, 5)))
    dtype = draw.choice(("float32", "uint8", "float64", "complex64", "bool", "int16"))
    version: Any = draw.choice((2, 3))
    seed = draw.getrandbits(32)

    def spoil(store: Path) -> None:
        files = sorted(path for path in store.rglob("*") if path.is_file())
        told = [path for path in files if path.name in ("zarr.json", ".zarray", ".zattrs", ".zgroup")]
        chunks = [path for path in files if path not in told]
        if way == 0:
            draw.choice(told).unlink()
        elif way == 1:
            draw.choice(told).write_bytes(draw.randbytes(40))
        elif way == 2:
            path = draw.choice(told)
            text = path.read_text()
            path.write_text(text[: draw.randint(0, len(text))])
        elif way == 3 and chunks:
            for path in chunks:
                path.write_bytes(draw.randbytes(draw.choice((0, 3, 40))))
        elif way == 4:
            path = draw.choice(told)
            found = json.loads(path.read_text())
            if found:
                found[draw.choice(sorted(found))] = draw.choice((None, -1, "x", [], {}, [1, 2], 1e300, True))
            path.write_text(json.dumps(found))
        elif way == 5:
            shutil.rmtree(store)
            if draw.chance(0.5):
                store.mkdir()
            else:
                store.write_bytes(b"no folder")

    def call() -> Any:
        folder = Path(tempfile.mkdtemp())
        try:
            store = folder / "in.zarr"
            array = zarr.create_array(
                store,
                shape=shape,
                chunks=tuple(max(1, n // 2) for n in shape),
                dtype=dtype,
                zarr_format=version,
            )
            # Without noise and structure there is nothing to do.
            array[...] = np.random.default_rng(seed).integers(0, 2) * np.ones(shape, dtype)
            spoil(store)
            before = contents(folder)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                result = called(
                    folder, verb[0], "in.zarr", *verb[1:], *(["out.zarr"] if verb[0] != "info" else [])
                )
            after = contents(folder)
            fault = (
                "" if all(after.get(name) == content for name, content in before.items()) else "was changed"
            )
            # Where there is nothing to do, the output is a copy; a run that fails leaves none.
            if result.exit_code and any(name.startswith("out.zarr" + os.sep) for name in after):
                fault = "out.zarr looks complete"
            return result, seen, fault
        finally:
            shutil.rmtree(folder)

    return Case(
        call,
        f"aniso {' '.join(verb)} in.zarr: way {way}, {shape} of {dtype}, version {version}",
        _check,
        refused=_refused,
    )


def _fill(folder: Path, broken: tuple[str, bytes]) -> None:
    rng = np.random.default_rng(0)
    grey = rng.integers(0, 255, (12, 14), dtype=np.uint8)
    io.write(folder / "input.png", grey)
    io.write(folder / "mask.png", np.where(rng.random((12, 14)) < 0.2, 255, 0).astype(np.uint8))
    io.write(folder / "colours.png", rng.integers(0, 255, (9, 8, 3), dtype=np.uint8))
    io.write(folder / "grey.npy", rng.normal(0, 1e-3, (9, 8)))
    holes = rng.normal(100, 1, (9, 8)).astype(np.float32)
    holes[2:4, 3] = np.nan
    io.write(folder / "holes.npy", holes)
    sound = dict(sound_files())
    (folder / "volume.nii").write_bytes(sound[".nii"])
    (folder / "stack.tif").write_bytes(sound[".ome.tif"])
    (folder / f"damaged{broken[0]}").write_bytes(broken[1])


def _left_behind(folder: Path, before: dict[str, bytes], force: bool) -> str:
    after = contents(folder)
    if not force and any(after.get(name) != content for name, content in before.items()):
        return "a file was changed"
    for name in after.keys() - before.keys():
        if Path(name).name.startswith("."):
            return f"{name} was left behind"
        try:
            io.read(folder / name)
        except io.FileError as error:
            return f"{name} cannot be read: {error}"
    return ""


def _check(outcome: Any) -> str | None:
    result, seen, left = outcome
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"{type(result.exception).__name__}: {str(result.exception)[:200]}"
    if "Traceback" in result.output or "unexpected" in result.output:
        return result.output[-300:]
    if result.exit_code not in (0, 1, 2):
        return f"exit code {result.exit_code}"
    if result.exit_code and not result.output.strip():
        return "no message"
    if result.exit_code and left:
        return left
    if seen:
        return f"a warning: {seen[0].message}"
    return left or None


def _refused(outcome: Any) -> bool:
    return outcome[0].exit_code != 0
