"""The page: its elements, and the session behind them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import ui

from aniso.explorer.choosing.scene import Scene, Source, View, sample_names
from aniso.explorer.computing.previews import Pace
from aniso.explorer.computing.results import Result
from aniso.explorer.page import widgets
from aniso.explorer.page.panel import ParameterPanel
from aniso.explorer.page.session import Session
from aniso.explorer.page.stencil_tab import StencilTab
from aniso.explorer.page.widgets import button, change, html, segments, select, text, toggle
from aniso.io.formats import FORMATS

_MODES = {"compare": "Compare", "after": "After", "difference": "Difference"}
_OVERLAYS = {
    "ellipses": ("Tensors", "Diffusion tensors as ellipses"),
    "stopped": ("Stopped flow", "Where edges stop the diffusion"),
}
_FILTERED = {"slice": "This slice", "volume": "Whole volume"}
_AXES = {"0": "z, first axis", "1": "y, second axis", "2": "x, third axis"}


class ExplorerPage:
    """The page of one tab; the stage of its session."""

    def __init__(self, pace: Pace, limit: int) -> None:
        self.session, self.client = Session(self, pace), ui.context.client
        self._limit = limit
        # The mode to return to from the difference.
        self._mode = "compare"
        self._has_film, self._busy, self._whole = False, False, False
        self._build()

    def url(self, slot: str) -> str:
        """Return the address of a slot of this page."""
        return f"/explorer/{self.session.key}/{slot}"

    # -- elements -------------------------------------------------------------------------------------

    def _build(self) -> None:
        ui.colors(primary="#0d6e6e")
        self._dark = ui.dark_mode(None)
        ui.add_css(widgets.STYLE)
        with html("div", "explorer"):
            self._build_bar()
            with html("main", "tab") as self._image_tab:
                aside = html("aside", "panel", aria_label="Parameters")
                with html("section", "work", aria_label="Image"):
                    self._build_work()
                self._panel = ParameterPanel(aside, self.session, self._viewer, self.url("result"))
            self._stencil_tab = StencilTab(self.session, self.url, self._panel.use_stencil)

    def _build_bar(self) -> None:
        with html("header", "bar"):
            with html("h1", "brand"):
                text("aniso ")
                text("explorer", "small")
            endings = ",".join(suffix for format in FORMATS.values() for suffix in format.suffixes)
            files = widgets.FileDrop(self.url("file"), self._limit, endings)
            files.on("too_large", lambda event: self.tell(error=_too_large(event.args, self._limit)))
            files.on(
                "failed",
                lambda event: self.tell(error=f"The upload of {event.args['name']} failed. Try again."),
            )
            names = {"": "choose…", **{name: name.replace("_", " ") for name in sample_names()}}
            self._samples = select("Sample", names, "", self._open_sample)
            html("span", "grow")
            segments("View", {"image": "Image", "stencil": "Stencil"}, "image", self._show_tab)
            self._theme = button(
                "Theme: auto", self._next_theme, title="Light, dark, or as set by the system"
            )

    def _build_work(self) -> None:
        with html("div", "tools", role="toolbar", aria_label="View"):
            self._press_mode = segments("Display", _MODES, "compare", self._show_mode)
            with html("span", "row"):
                text("Overlays", classes="summary")
                for name, (words, title) in _OVERLAYS.items():
                    toggle(words, partial(self._overlay, name), title=title)
            html("span", "grow")
            text("Hold F to flicker, D for the difference", classes="summary hint")
            button("Fit", lambda: self._viewer.run_method("fit"), title="Show the whole image (0)")
        self._build_slices()
        with html("div", "error", role="alert") as self._error:
            self._error_text = text("", classes="grow")
            button("×", lambda: self.tell(error=None), "", aria_label="Close the message")
        self._error.set_visibility(False)
        self._viewer = widgets.Viewer()
        self._viewer.on("view", lambda event: self.session.look(View(**event.args)))
        self._viewer.on("stroke", lambda event: self.session.paint(**event.args))
        self._viewer.on("film", lambda: self._film())
        self._viewer.on("use_time", lambda event: self._panel.use_time(event.args["time"]))
        self._viewer.on("difference", lambda: self._flip_difference())

    def _build_slices(self) -> None:
        with html("div", "slices", role="toolbar", aria_label="Volume") as self._slices:
            self._press_whole = segments(
                "Filter", _FILTERED, "volume", lambda what: self.session.filter_whole(what == "volume")
            )
            self._axis = select("Slices along", _AXES, "0", lambda axis: self.session.slice(int(axis)))
            self._index = html("input", type="range", min=0, max=1, value=0, aria_label="Slice")
            self._index.on(
                "input", lambda event: self.session.slice(index=int(event.args)), throttle=0.05,
                js_handler="(e) => emit(e.target.value)",
            )  # fmt: skip
            self._index_label = text("slice", "output")
        self._slices.set_visibility(False)

    # -- actions of the user --------------------------------------------------------------------------

    async def _open_sample(self, name: str) -> None:
        if name:
            await self.session.open(lambda: Source.of_sample(name))

    def _show_mode(self, mode: str) -> None:
        if mode != "difference":
            self._mode = mode
        change(self._viewer, mode=mode)
        self.session.show_difference(mode == "difference")

    def _flip_difference(self) -> None:
        mode = self._mode if self.session.shows_difference else "difference"
        self._press_mode(mode)
        self._show_mode(mode)

    def _overlay(self, name: str, shown: bool) -> None:
        change(self._viewer, **{f"{name}Shown": shown})
        self.session.show_overlay(name, shown)

    def _film(self) -> None:
        self._has_film = True
        self.session.film()

    def _show_tab(self, tab: str) -> None:
        self._image_tab.set_visibility(tab == "image")
        self._stencil_tab.show(tab == "stencil")

    def _next_theme(self) -> None:
        following = {None: ("light", False), False: ("dark", True), True: ("auto", None)}
        words, value = following[self._dark.value]
        self._dark.value = value
        self._theme.clear()
        with self._theme:
            text(f"Theme: {words}")

    # -- the stage ------------------------------------------------------------------------------------

    def show(self, slot: str, number: int, rectangle: tuple[float, ...], facts: dict[str, Any]) -> None:
        """Have the browser fetch a new picture, under this number."""
        self._viewer.run_method("show", slot, number, self.url(f"{slot}/{number}"), list(rectangle), facts)

    def drop(self, *slots: str) -> None:
        """Remove outdated pictures."""
        known = [slot for slot in slots if self.session.pictures.drop(slot)]
        if known:
            self._viewer.run_method("drop", known)

    def tell(self, **news: Any) -> None:
        """Show messages of the session."""
        handlers: dict[str, Callable[[Any], object]] = {
            "error": self._show_error,
            "busy": self._show_busy,
            "progress": lambda share: self._say(progress=share),
            "film": lambda _: self._drop_film(),
            "result": self._show_result,
            "found": self._panel.show_found,
            "histogram": self._panel.histogram.set_content,
            "ellipses": lambda ellipses: self._viewer.run_method("setEllipses", ellipses, news["spot"]),
            "scene": lambda scene: self._show_scene(scene, news["keep_view"]),
        }
        for kind, value in news.items():
            if kind in handlers:
                handlers[kind](value)

    def _say(self, **news: Any) -> None:
        self._viewer.run_method("say", news)

    def _show_error(self, sentence: str | None) -> None:
        self._error.set_visibility(sentence is not None)
        self._error_text.set_text(sentence or "")

    def _show_busy(self, busy: bool) -> None:
        if busy and not self._busy:
            self._say(aboutResult="computing…")
        if not busy:
            self._say(progress=None)
            if self.session.result is None:  # it was rejected; the text is about an earlier result
                self._say(aboutResult="")
        self._busy = busy

    def _drop_film(self) -> None:
        if self._has_film:
            self._has_film = False
            self._viewer.run_method("dropFilm")

    def _show_result(self, result: Result) -> None:
        axes = 3 if self.session.scene is not None and self.session.scene.whole else 2
        shape = " × ".join(map(str, result.image.shape[:axes]))
        seconds = result.seconds
        duration = f"{1e3 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
        self._say(aboutResult=f"{shape} in {duration}, full resolution")
        self._panel.show_info(result.info)

    def _show_scene(self, scene: Scene, keep_view: bool) -> None:
        height, width = scene.shape
        self._viewer.run_method("look", width, height, keep_view)
        source = scene.source
        shape = " × ".join(map(str, source.picture.shape))
        colours = ", colour" if scene.channel_axis is not None else ""
        about = f"{Path(source.name).name}: {shape}{colours}, {source.picture.dtype}"
        self._say(aboutScene=about, **({} if keep_view else {"aboutResult": ""}))
        self._busy = self._busy and keep_view
        self._slices.set_visibility(source.is_volume)
        if source.is_volume:
            count = source.picture.shape[scene.axis]
            self._press_whole("volume" if scene.whole else "slice")
            change(self._axis, value=str(scene.axis))
            change(self._index, value=scene.index, max=count - 1)
            self._index_label.set_text(f"slice {scene.index}, of 0 to {count - 1}")
        change(self._samples, value="" if source.is_file else source.stem)
        if not keep_view or scene.whole != self._whole:
            self._whole = scene.whole
            self._panel.build()


def _too_large(facts: dict[str, Any], limit: int) -> str:
    return (
        f"{facts['name']} has {facts['size'] / 2**20:.0f} MB and exceeds the upload limit of "
        f"{limit / 2**20:.0f} MB. Give its path instead: aniso explore FILE."
    )
