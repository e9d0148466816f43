"""Files of a command: which to read, how pictures and masks are read, and where each result is written."""

from __future__ import annotations

import glob
import os
import string
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from aniso import io
from aniso.arrays import Mask
from aniso.cli.options.shared import MaskOptions, MeasuringOptions, PlacingOptions, ReadingOptions
from aniso.io.formats import format_of, origin, result_suffix, suffix_of
from aniso.io.pages import Pages, is_volume, voxel_shape
from aniso.io.picture import FileError, Picture

if TYPE_CHECKING:
    from aniso.cli.jobs.reporting import Report
_FIELDS = ("stem", "suffix", "name", "folder", "number")


def read_as_stored(path: Path, reading: ReadingOptions) -> Picture:
    """Read the picture in a file, with the axes as the file says."""
    return io.read(path, limit=None if reading.no_limit else io.LIMIT)


def read(path: Path, reading: ReadingOptions) -> Picture:
    """Read the picture in a file, with the channel axis of the options."""
    picture = replace(read_as_stored(path, reading), source=path)  # as it was given
    axis: Any = reading.channel_axis
    if axis is not None and origin(picture).says_channels:
        if axis == "none" and picture.channel_axis is None:
            return picture
        raise FileError(f"{path} already defines its channels: --channel-axis is for NPY files. Remove it.")
    if axis is None and not origin(picture).says_channels and picture.pixels.ndim == 3:
        for colours in (-1, 0):
            if picture.pixels.shape[colours] in (3, 4):
                raise FileError(
                    f"{path} has shape {picture.pixels.shape}, which may be colour or grey-value slices. Add "
                    f"--channel-axis {colours} or --channel-axis none."
                )
    return picture if axis in (None, "none") else replace(picture, channel_axis=axis)


def pages(
    picture: Picture, reading: ReadingOptions, measuring: MeasuringOptions, *, frames: bool = False
) -> Pages:
    """Return the pages, with their spacing; `frames`: a stack is not a volume."""
    stack = frames and len(picture.shape) == 3
    volume = is_volume(picture, False if stack else reading.volume)
    axes = 3 if volume else 2
    spacing, own = measuring.spacing, picture.spacing
    if spacing == "file":
        if own is None:
            raise FileError(
                f"{picture.source} does not store a pixel spacing. Give --spacing "
                f"{'Z,Y,X' if volume else 'Y,X'}."
            )
        spacing = own[-axes:]
    elif spacing is None and volume and own is not None and len(own) == 3:
        spacing = voxel_shape(own)
    return Pages(picture, spacing, volume)


def unknown_pixels(wanted: MaskOptions, picture: Picture, reading: ReadingOptions, report: Report) -> Mask:
    """Return True where a pixel is unknown, (H, W) or one for each page; at least one pixel is."""
    if wanted.mask_file is not None:
        mask = read_mask(Path(wanted.mask_file), reading, report)
        mask = ~mask if wanted.invert else mask
        whole = picture.shape
        if mask.shape != whole and not (mask.ndim >= 2 and mask.shape == whole[-mask.ndim :]):
            sizes = " × ".join(map(str, mask.shape)), " × ".join(map(str, whole))
            raise FileError(
                f"{wanted.mask_file} has {sizes[0]} pixels, but {picture.source} has {sizes[1]}. Give a "
                "mask of the same size."
            )
        why = f"{wanted.mask_file} marks no unknown pixels"
    elif wanted.mask_value is not None:
        mask = _over_channels(picture, picture.pixels == wanted.mask_value, np.all)
        why = f"no pixel has the value {wanted.mask_value:g}"
    else:
        mask = _over_channels(picture, ~np.isfinite(picture.pixels), np.any)
        why = "no pixel is NaN or infinite. Give --mask or --mask-value"
    if not mask.any():
        raise FileError(f"{picture.source} has nothing to fill in: {why}.")
    return mask


@lru_cache(maxsize=1)  # one mask serves many files
def read_mask(file: Path, reading: ReadingOptions, report: Report) -> Mask:
    """Return where a mask file is not 0 in any channel."""
    picture = read_as_stored(file, reading)
    if origin(picture).lossy:
        report.note(
            "mask",
            f"{file} is a {picture.format} file. Its compression leaves nonzero pixels around the mask, "
            "which count as unknown too. Save masks as PNG.",
        )
    return _over_channels(picture, picture.pixels != 0, np.any)


def _over_channels(picture: Picture, marked: Any, combined: Any) -> Mask:
    axis = picture.channel_axis
    return marked if axis is None else combined(marked, axis=axis)


def inputs(given: Sequence[str]) -> list[Path]:
    """Return the given files, each once; patterns are expanded if the shell did not.

    An existing file whose name looks like a pattern is taken as it is. A pattern without a match stays, and
    is then reported as missing like any other file.
    """
    found: dict[Path, Path] = {}
    for word in given:
        if not word:
            raise typer.BadParameter("the name of a file is empty. Give a name, or remove it.")
        path = Path(word)
        matches = []
        if not os.path.lexists(path) and glob.has_magic(word):
            matches = sorted(Path(match) for match in glob.glob(word, recursive=True))
        for each in matches or [path]:
            # A link is a file of its own.
            found.setdefault(Path(os.path.realpath(each.parent), each.name), each)
    return list(found.values())


def targets(
    paths: Sequence[Path],
    placing: PlacingOptions,
    usual: str,
    variants: Sequence[Mapping[str, str]] = ({},),
    *,
    renamed: bool = False,
) -> list[list[Path]]:
    """Return where all results are written: each to a place of its own, and none to another input.

    `usual` is the default pattern, such as {folder}/{stem}_denoised{suffix}, filled in per input. `variants`
    are the fields that distinguish several results of an input. `renamed`: results in a folder have their
    default names too.
    """
    pattern = _pattern(placing, len(paths), usual, tuple(variants[0]), renamed)
    found: dict[str, Path] = {}
    given = {os.path.realpath(path): path for path in paths}
    rows = []
    for fields in variants:
        rows.append([_place(pattern, path, number, fields) for number, path in enumerate(paths, 1)])
        for path, place in zip(paths, rows[-1], strict=True):
            if suffix_of(path):  # else the input is rejected later, not the options
                _check_suffix(place)
            target = os.path.realpath(place)  # a link is written through
            other = given.get(target, path)
            if os.path.realpath(other) != os.path.realpath(path):
                raise typer.BadParameter(
                    f"the result of {path} would be written to {other}, which is also an input. Give another "
                    "folder or pattern with --output."
                )
            if target in found:
                both = f"both {found[target]} and {path}" if found[target] != path else f"{path} twice"
                names = ", ".join(f"{{{name}}}" for name in ("stem", "suffix", *fields))
                raise typer.BadParameter(
                    f"{both} would be written to {place}. Use {names} or {{number}} in --output, and check "
                    "for links between the files."
                )
            found[target] = path
    return rows


def _pattern(placing: PlacingOptions, count: int, usual: str, names: Sequence[str], renamed: bool) -> str:
    """Return the pattern that --output describes; it must have `names` for more than one file per input."""
    output = placing.output
    if output == "":
        raise typer.BadParameter("--output is empty. Give a file, a folder or a pattern, or remove it.")
    if output is None:
        return str(Path("{folder}") / usual)
    if placing.is_pattern:
        return _check_pattern(output, count, names)
    if placing.is_folder:
        return str(Path(_escape(output)) / (usual if names or renamed else "{name}"))
    if count > 1 or names:
        wanted = f"{count} inputs: give a folder, or a pattern such as 'results/{usual}'"
        if names:
            wanted = f"several files for each input: {{{names[0]}}} must occur in it"
        raise typer.BadParameter(f"--output {output} is one file, but there are {wanted}.")
    return _escape(output)


def _place(pattern: str, path: Path, number: int, further: Mapping[str, str]) -> Path:
    own, suffix = suffix_of(path) or path.suffix, result_suffix(path)
    stem = path.name.removesuffix(own)
    name = path.name if suffix == own else stem + suffix
    fields = {"stem": stem, "suffix": suffix, "name": name, "folder": path.parent, "number": number}
    return Path(pattern.format(**fields, **further))


def _check_suffix(place: Path) -> None:
    try:
        format_of(place)
    except FileError as error:
        folder = "" if place.suffix else f" For a folder, write {place}/."
        raise typer.BadParameter(f"{error}{folder}") from error


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _check_pattern(pattern: str, count: int, names: Sequence[str]) -> str:
    known = (*_FIELDS, *names)
    listed = ", ".join(f"{{{name}}}" for name in known)
    try:
        fields = [field for field in string.Formatter().parse(pattern) if field[1] is not None]
        used = {name for _, name, _, _ in fields}
        for _, name, spec, conversion in fields:
            # Neither parts of a field nor conversions; a number may have leading zeros.
            formatted = spec and (name not in ("number", *names) or "{" in spec)
            if name not in known or conversion or formatted:
                raise ValueError(name)
        pattern.format(**{**dict.fromkeys(known, ""), "number": 1})
    except (ValueError, KeyError, IndexError) as error:
        raise typer.BadParameter(
            f"--output {pattern} is not a valid pattern. It may contain {listed}, and {{{{ for a brace."
        ) from error
    if names and not used.intersection(names):
        raise typer.BadParameter(
            f"--output {pattern} gives all results of an input the same name. Add {{{names[0]}}}."
        )
    if count > 1 and not used.intersection(("stem", "name", "number", "folder")):
        raise typer.BadParameter(f"--output {pattern} gives all results the same name. Add {{stem}}.")
    return pattern
