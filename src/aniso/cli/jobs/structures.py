"""Maps of orientation, coherence and structure tensors, in files and Zarr stores."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from aniso import structure
from aniso.cli.jobs import filtering
from aniso.cli.jobs.file_job import FileJob, each_file
from aniso.cli.jobs.reporting import Rows, Tell
from aniso.io.formats import format_of
from aniso.io.pages import Pages
from aniso.io.picture import FileError, Picture

if TYPE_CHECKING:
    from aniso.blocks.stores.zarr_array import ZarrArray


@dataclass(frozen=True)
class Structures:
    """What was asked for."""

    work: FileJob
    what: str
    sigma: float
    rho: float
    plates: bool
    degrees: bool

    def write(self) -> None:
        """Write the maps of all files, or of a Zarr store."""
        if filtering.are_stores(self.work.files):
            self._write_store()
        else:
            self._write_files()
        self.work.report.finish(what=self.what, sigma=self.sigma, rho=self.rho)

    def _map(self, image: Any, spacing: Any, channel_axis: int | None) -> Any:
        """The values at each pixel; if they are several, along the first axis. Also of Dask arrays."""
        scales = {"sigma": self.sigma, "rho": self.rho}
        options: Any = {**scales, "spacing": spacing, "channel_axis": channel_axis}
        if self.what == "coherence":
            return structure.coherence(image, plates=self.plates, **options)
        if self.what == "orientation":
            directions = structure.orientation(image, **options)
            return np.rad2deg(directions) if self.degrees else directions
        tensor = structure.structure_tensor(image, **options)
        # Dask arrays know neither pairs of lists nor np.triu_indices.
        pairs = itertools.combinations_with_replacement(range(len(tensor)), 2)
        return np.stack([tensor[pair] for pair in pairs])

    def _count(self, ndim: int) -> int | None:
        """How many values a pixel has, if there is an axis for them."""
        if self.what == "tensor":
            return ndim * (ndim + 1) // 2
        return ndim if self.what == "orientation" and ndim == 3 else None

    def _check_angles(self, ndim: int) -> None:
        if self.degrees and ndim == 3:
            raise FileError("directions in volumes are vectors, not angles. Leave --degrees out.")

    def _rows(self) -> Rows:
        return [("what", self.what), ("sigma", f"{self.sigma:g}"), ("rho", f"{self.rho:g}")]

    def _write_files(self) -> None:
        work = self.work
        (targets,) = work.targets(f"{{stem}}_{self.what}.tif", renamed=True)
        for target in targets:
            format = format_of(target)
            if not format.holds(np.dtype(np.float32)):
                raise typer.BadParameter(
                    f"{format.name} files cannot hold floating-point numbers. Write .tif or .npy."
                )

        def action(path: Path, number: int, tell: Tell) -> tuple[dict[str, Any], list[str]]:
            target = targets[number - 1]
            stack = work.open(path, [target], outlined=self._outline)
            results = []
            for page in stack:
                results.append(self._map(page.image, page.spacing, page.channel_axis))
                tell(page.number, stack.count)
            written = work.write_picture(target, self._picture(stack, results))
            return work.report_result(path, target, written, stack, self._rows())

        each_file(work.report, work.paths, action)

    def _outline(self, stack: Pages) -> Picture:
        """What will be written, all zeros."""
        shape = stack.picture.shape[-stack.ndim :]
        self._check_angles(len(shape))
        count = self._count(len(shape))
        zero = np.zeros((), np.float32)
        one = np.broadcast_to(zero, shape if count is None else (count, *shape))
        return self._picture(stack, [one] * stack.count)

    def _picture(self, stack: Pages, results: Sequence[Any]) -> Picture:
        """The maps of all pages as a picture, with the spacing and the place of the original."""
        several = self._count(3 if stack.volume else 2) is not None
        pages = [np.moveaxis(page, 0, -1) if several else page for page in results]
        pixels = np.stack(pages).reshape(*stack.stacked, *pages[0].shape)
        picture = stack.picture
        if several or picture.format == "TIFF":
            # As a TIFF file has it: what it says of the channels of the image no longer holds.
            kept = {name: picture.details[name] for name in ("pages",) if name in picture.details}
            # Several values are pages: ImageJ rejects floating-point samples that share one.
            places = {"channel": -3, "planar": False} if several else {}
            picture = replace(picture, format="TIFF", details={"rgb": False, **kept, **places})
        plain = replace(picture, alpha=None, icc_profile=None, pixels=pixels, dtype=pixels.dtype)
        return replace(plain, channel_axis=-1 if several else None).with_dtype(pixels.dtype)

    def _write_store(self) -> None:
        work, report = self.work, self.work.report
        source, target = filtering.store_places(work, f"{{stem}}_{self.what}{{suffix}}")
        with report.attempt(str(source)):
            from aniso.blocks.stores import journal
            from aniso.blocks.stores.dask_arrays import write_store
            from aniso.blocks.stores.filtering import check_packages, spacing_of
            from aniso.blocks.stores.zarr_array import open_array

            check_packages()
            begin = time.perf_counter()
            found = open_array(source, work.reading.channel_axis, filtering.frame_axis_of(source, work))
            self._check_angles(len(found.spatial_axes))
            target.check_writable()
            journal.folder_of(target).check_lock()
            result = self._stacked(found, spacing_of(found, work.computing.spacing, report.note))
            with report.progress(source.name) as tell:
                write_store(result, self._names(found), target, tell)
            filtering.report_store(work, source, target, begin, result, self._rows())

    def _stacked(self, found: ZarrArray, spacings: tuple[float, ...]) -> Any:
        """The maps of all frames as a Dask array: axes of frames, then of values, then of space."""
        from aniso.blocks.stores.ends import frame_array, frame_indices

        frames = (frame_array(found, index) for index in frame_indices(found))
        maps = np.stack([self._map(image, spacings, axis) for image, axis in frames])
        return maps.reshape(*(found.shape[axis] for axis in found.frame_axes), *maps.shape[1:])

    def _names(self, found: ZarrArray) -> list[str]:
        ndim = len(found.spatial_axes)
        values = [] if self._count(ndim) is None else ["c"]
        return ["t"] * len(found.frame_axes) + values + ["z", "y", "x"][-ndim:]
