"""One tab: the actions of the user, and their consequences."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from aniso import io
from aniso.explorer.choosing import export
from aniso.explorer.choosing.choices import Choices
from aniso.explorer.choosing.scene import Scene, Source, View
from aniso.explorer.choosing.unknown_pixels import paint
from aniso.explorer.computing.previews import Pace
from aniso.explorer.computing.results import Results
from aniso.explorer.page.tab import PageOutput, Tab, describe_error
from aniso.explorer.showing.extras import Extras
from aniso.explorer.showing.pictures import RINGS
from aniso.io.pages import is_volume
from aniso.verbs.plan import Plan


class Session(Tab):
    """A tab and its actions."""

    def __init__(self, stage: PageOutput, pace: Pace) -> None:
        super().__init__(stage, pace)
        self.key = secrets.token_urlsafe(18)
        self._extras = Extras(self)
        self.film, self.show_overlay = self._extras.film, self._extras.show
        self._results = Results(self, finished=self._extras.use_result, redrawn=self._extras.details)
        self._opened = 0
        self._folder: Path | None = None

    # -- image and view ------------------------------------------------------------------------------

    async def open(self, load: Callable[[], Source]) -> bool:
        """Open an image; return whether that succeeded. If not, nothing changes."""

        def scene() -> Scene:
            source = load()
            index = source.picture.shape[0] // 2 if source.is_volume else 0
            return Scene(source, 0, index, is_volume(source.picture, None))

        return await self._change_scene(scene)

    async def open_first(self, load: Callable[[], Source]) -> None:
        """Open an image, unless the user was faster and has opened another one."""
        if self._opened == 0:
            await self.open(load)

    async def slice(self, axis: int, index: int) -> None:
        """Show another slice of the volume; a computation for the whole volume continues."""
        if self.scene is None or not self.scene.source.is_volume:
            return
        axis = min(max(axis, 0), 2)
        index = min(max(index, 0), self.scene.source.picture.shape[axis] - 1)
        scene = replace(self.scene, axis=axis, index=index)
        await self._change_scene(lambda: scene, keep_view=scene.shape == self.scene.shape)

    async def filter_whole(self, whole: bool) -> None:
        """Filter the whole volume, or this slice only."""
        if self.scene is not None and self.scene.source.is_volume and self.scene.whole != whole:
            scene = replace(self.scene, whole=whole)
            await self._change_scene(lambda: scene, keep_view=True)

    async def _change_scene(self, make: Callable[[], Scene], *, keep_view: bool = False) -> bool:
        self._opened += 1
        turn = self._opened
        try:
            scene = await asyncio.to_thread(lambda: _prepare(make()))
        except Exception as error:
            self.stage.tell(error=describe_error(error))
            return False
        if turn == self._opened:  # else something else was opened in the meantime
            self._show_scene(scene, keep_view=keep_view)
        return True

    def _show_scene(self, scene: Scene, *, keep_view: bool = False) -> None:
        old, self.scene = self.scene, scene
        still_holds = old is not None and old.source is scene.source and old.whole and scene.whole
        self.pictures.clear(but=RINGS)
        if not keep_view:
            self.view = None
        if not still_holds:
            self.withdraw()
            self.choices = replace(self.choices, drawn=None)
        self.stage.tell(error=None, scene=scene, keep_view=keep_view, film=False)
        self._extras.before()
        if not still_holds:
            self.recompute()
        elif self.result is not None:
            self._results.show()
            self._extras.follow()
        else:
            self._preview_again()
            self._extras.follow()

    def look(self, view: View) -> None:
        """Show another part; large images need new pictures for it."""
        self.view = view
        self._extras.details()

    def show_difference(self, shown: bool) -> None:
        """Show the difference instead of the result, or the result."""
        self.shows_difference = shown
        if self.result is not None:
            self._results.show()
        else:
            self._preview_again()

    # -- choices --------------------------------------------------------------------------------------

    def choose(self, choices: Choices, stamp: float | None = None) -> None:
        """Apply choices: a preview at once, full resolution when the slider rests."""
        self.choices = choices
        self.recompute(stamp)

    def change(self, stamp: float | None = None, **choices: Any) -> None:
        """Apply other values of some choices."""
        self.choose(replace(self.choices, **choices), stamp)

    def paint(self, points: list[list[float]], radius: float, *, erase: bool) -> None:
        """Paint a brush stroke on the shown slice."""
        if self.scene is None or not points:
            return
        # In place: threads copy the mask, and one that is copying it now is outdated anyway.
        mask = self.choices.drawn
        if mask is None:
            mask = np.zeros(self.scene.extent, bool)
        paint(self.scene.shown(mask), points, radius, erase=erase)
        self.change(drawn=mask, random_pixels=None)

    def recompute(self, stamp: float | None = None) -> None:
        """Discard the result and compute a new one."""
        self.version += 1
        self.result = None
        self._results.stop()
        if self.scene is None:
            return
        try:
            call = self.choices.call(self.scene)
        except (ValueError, TypeError) as error:
            self._results.give_up()
            self.fail(error, self.version)
            self._extras.follow()
            return
        self.stage.tell(busy=True, film=False)
        self._results.request(call, stamp)
        self._extras.follow()

    def _preview_again(self) -> None:
        """Compute a preview for a new view while the result is being computed."""
        with contextlib.suppress(ValueError, TypeError):  # errors were reported when the choice was made
            if self.scene is not None:
                self._results.preview(self.choices.call(self.scene))

    # -- export ---------------------------------------------------------------------------------------

    async def download(self) -> Path | None:
        """Write the result at full resolution to a file, in the data type of the input."""
        if self.scene is None or self.result is None:
            self.stage.tell(error="The result is not ready yet. Wait until it is computed.")
            return None
        scene, result = self.scene, self.result
        target = self.folder / export.output_name(result.call, scene)
        try:
            like = scene.like
            return await asyncio.to_thread(io.write, target, result.image, like=like, force=True)
        except Exception as error:
            self.stage.tell(error=describe_error(error))
            return None

    def plan(self) -> Plan | None:
        """Return what the verb chose; None, with a message, if there is nothing."""
        result = self.result
        if result is None:
            self.stage.tell(error="The result is not ready yet. Wait until it is computed.")
        elif not isinstance(result.info, Plan):
            words = f"{result.call.verb.name.capitalize()} chooses nothing, and has no plan."
            self.stage.tell(error=f"{words} Copy the call as Python or as a command.")
        else:
            return result.info
        return None

    @property
    def folder(self) -> Path:
        """Temporary folder for uploads and downloads; removed when the tab is closed."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="aniso-explorer-"))
        return self._folder

    def close(self) -> None:
        """Stop all computations and free all memory."""
        self._results.stop()
        self._extras.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self.release()


def _prepare(scene: Scene) -> Scene:
    """Check a scene and compute its statistics, outside the event loop."""
    if min(scene.extent) < 2 or min(scene.shape) < 2:
        sides = " × ".join(map(str, scene.extent if scene.whole else scene.shape))
        raise ValueError(f"an image of {sides} pixels is too small. At least 2 × 2 pixels are needed.")
    if scene.image.dtype.kind not in "iuf":
        raise ValueError(
            f"the image must have a real numeric data type, got {scene.image.dtype}. Convert it, e.g. with "
            "image.astype(numpy.float32)."
        )
    _ = scene.statistics.invalid_pixels, scene.statistics.measures, scene.source.grey_range
    return scene
