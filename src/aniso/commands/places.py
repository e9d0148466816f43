"""Which files to read, and where each result goes."""

from __future__ import annotations

import glob
import os
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from aniso import io
from aniso.commands.bundles import Writing
from aniso.formats import format_of, suffix_of

_FIELDS = ("stem", "suffix", "name", "folder", "number")


def inputs(given: Sequence[str]) -> list[Path]:
    """The files that were named, each once; patterns are filled in where the shell did not.

    A file whose name looks like a pattern is itself. A pattern without a match stays, and is then told to
    be missing like any other file.
    """
    found: list[Path] = []
    for word in given:
        path = Path(word)
        matches = []
        if not os.path.lexists(path) and glob.has_magic(word):
            matches = sorted(Path(match) for match in glob.glob(word, recursive=True))
        found += matches or [path]
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Places:
    """Where results go: a pattern, filled in for each input.

    Examples
    --------
    >>> from pathlib import Path
    >>> from aniso.commands.bundles import Writing
    >>> from aniso.commands.places import Places
    >>> Places.of(Writing(), 1, "{stem}_denoised{suffix}").place(Path("scans/a.tif"), 1).as_posix()
    'scans/a_denoised.tif'
    """

    pattern: str
    folder: Path | None = None

    @classmethod
    def of(
        cls, writing: Writing, count: int, usual: str, *, names: Sequence[str] = (), renamed: bool = False
    ) -> Places:
        """From what was asked for with --output.

        `usual` is the name by default. `names` are further fields that the pattern must have if more than
        one file is written for an input. `renamed`: in a folder, too, results have their usual names.
        """
        output = writing.output
        if output == "":
            raise typer.BadParameter(
                "--output is empty. Give a file, a folder or a pattern, or leave it out."
            )
        if output is None:
            return cls(str(Path("{folder}") / usual))
        if "{" in output or "}" in output:
            return cls(_checked(output, count, names))
        if output.endswith(("/", os.sep)) or Path(output).is_dir():
            folder = Path(output)
            kept = usual if names or renamed else "{name}"
            return cls(str(Path(_escaped(output)) / kept), folder)
        if count > 1 or names:
            wanted = (
                f"several files for each input: {{{names[0]}}} must occur in it"
                if names
                else (f"{count} inputs: give a folder, or a pattern such as 'results/{usual}'")
            )
            raise typer.BadParameter(f"--output {output} is one file, but there are {wanted}.")
        return cls(_escaped(output))

    def place(self, path: Path, number: int, **further: str) -> Path:
        """Where the result for this input goes."""
        stem, suffix = split(path)
        return Path(
            self.pattern.format(
                stem=stem, suffix=suffix, name=path.name, folder=path.parent, number=number, **further
            )
        )

    def places(self, paths: Sequence[Path], **further: str) -> list[Path]:
        """Where all results go, each to a place of its own, and none to another input."""
        found: dict[Path, Path] = {}
        given = {path.resolve(): path for path in paths}
        for number, path in enumerate(paths, 1):
            place = self.place(path, number, **further)
            other = given.get(place.resolve(), path)
            if other.resolve() != path.resolve():
                raise typer.BadParameter(
                    f"the result of {path} would be written to {other}, which is an input too. Give another "
                    "folder or pattern with --output."
                )
            before = found.setdefault(place, path)
            if before is not path:
                raise typer.BadParameter(
                    f"{before} and {path} would both be written to {place}. Put {{stem}}, {{suffix}} or "
                    "{number} into --output."
                )
        return list(found)

    def check(self, path: Path, target: Path, *, force: bool) -> None:
        """Refuse an input or an output by its name, before anything is computed."""
        format_of(path)  # first, or the output, named after it, would be blamed
        if self.folder is not None and self.folder.parent.is_dir() and not self.folder.exists():
            format_of(target)  # nothing can be in the way in a folder that is still to be made
        else:
            io.check_output(target, source=path, force=force)

    def make_folder(self) -> None:
        """Make the folder that was asked for, once there is something to put into it."""
        if self.folder is not None:
            self.folder.mkdir(exist_ok=True)


def split(path: Path) -> tuple[str, str]:
    """Stem and suffix; `.nii.gz` is one suffix."""
    suffix = suffix_of(path) or path.suffix
    return path.name.removesuffix(suffix), suffix


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _checked(pattern: str, count: int, names: Sequence[str]) -> str:
    known = (*_FIELDS, *names)
    listed = ", ".join(f"{{{name}}}" for name in known)
    try:
        used = {name for _, name, spec, conversion in string.Formatter().parse(pattern) if name is not None}
        pattern.format(**dict.fromkeys(known, ""))
    except (ValueError, KeyError, IndexError, AttributeError) as error:
        raise typer.BadParameter(
            f"--output {pattern} is not a pattern: it may hold {listed}, and {{{{ for a brace."
        ) from error
    if names and not used.intersection(names):
        raise typer.BadParameter(
            f"--output {pattern} gives all results of an input one name. Put {{{names[0]}}} into it."
        )
    if count > 1 and not used.intersection(("stem", "name", "number", "folder")):
        raise typer.BadParameter(f"--output {pattern} gives all inputs one name. Put {{stem}} into it.")
    return pattern
