"""The page: elements on the one side, a session on the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from nicegui import ui

from aniso.commands.model_options import kinds
from aniso.commands.reporting import figures
from aniso.explorer import parameters, recipes, widgets
from aniso.explorer.choices import AUTO
from aniso.explorer.controls import ROOT, Control, controls
from aniso.explorer.masks import RandomPixels
from aniso.explorer.previews import Pace, View
from aniso.explorer.scene import Scene, Source, sample_names
from aniso.explorer.session import Result, Session
from aniso.explorer.stencil_tab import StencilTab
from aniso.explorer.widgets import (
    ControlElement,
    Files,
    Viewer,
    button,
    html,
    segments,
    select,
    show_or_hide,
    show_value,
    text,
    toggle,
)
from aniso.formats import FORMATS

_MODES = {"compare": "Compare", "after": "After", "difference": "Difference"}
_AXES = {"0": "first axis (z)", "1": "second axis (y)", "2": "third axis (x)"}


class Page:
    """One tab. It is the stage of its session."""

    def __init__(self, pace: Pace, limit: int) -> None:
        self.session = Session(self, pace)
        self._limit = limit
        self._numbers = itertools.count()
        self._controls: dict[str, ControlElement] = {}
        self._found: dict[str, float] = {}
        self._has_film = False
        self._build()

    def url(self, slot: str) -> str:
        """Where the page fetches something from."""
        return f"/explorer/{self.session.key}/{slot}"

    # -- elements -------------------------------------------------------------------------------------

    def _build(self) -> None:
        ui.colors(primary="#0d6e6e")
        self._dark = ui.dark_mode(None)
        ui.add_css(widgets.STYLE)
        with html("div", "explorer"):
            self._build_bar()
            with html("main", "tab") as self._image_tab:
                with html("aside", "panel", aria_label="Parameters") as self._panel:
                    pass
                with html("section", "work", aria_label="Image"):
                    self._build_work()
            self._stencil_tab = StencilTab(self.session, self.url, self._use_stencil)
        self._build_panel()

    def _build_bar(self) -> None:
        with html("header", "bar"):
            with html("h1", "brand"):
                text("aniso ")
                text("explorer", "small")
            endings = ",".join(suffix for format in FORMATS for suffix in format.suffixes)
            files = Files(self.url("file"), self._limit, endings)
            files.on("too_large", lambda event: self.tell(error=_too_large(event.args, self._limit)))
            files.on(
                "failed", lambda event: self.tell(error=f"{event.args['name']} did not arrive. Try again.")
            )
            names = {"": "choose…", **{name: name.replace("_", " ") for name in sample_names()}}
            self._samples = select("Sample", names, "", self._open_sample)
            with html("span", "slices") as self._slices:
                self._axis = select("Slices along", _AXES, "0", lambda axis: self._slice(axis=int(axis)))
                self._index_label = text("slice")
                self._index = html("input", type="range", min=0, max=1, value=0, aria_label="Slice")
                self._index.on(
                    "input", lambda event: self._slice(index=int(event.args)), throttle=0.05,
                    js_handler="(e) => emit(e.target.value)",
                )  # fmt: skip
            self._slices.set_visibility(False)
            html("span", "grow")
            segments("View", {"image": "Image", "stencil": "Stencil"}, "image", self._show_tab)
            self._theme = button("Theme: auto", self._next_theme, title="Light, dark, or as the system says")

    def _build_work(self) -> None:
        with html("div", "tools", role="toolbar", aria_label="View"):
            self._press_mode = segments("What is shown", _MODES, "compare", self._show_mode)
            with html("span", "row"):
                text("Overlays", classes="summary")
                toggle(
                    "Tensors", lambda on: self._overlay("ellipses", on),
                    title="Ellipses: where a drop of ink would spread",
                )  # fmt: skip
                toggle(
                    "Stopped flow", lambda on: self._overlay("stopped", on),
                    title="Where edges stop the diffusion across them",
                )  # fmt: skip
            html("span", "grow")
            text("Hold F to flicker, D for the difference", classes="summary hint")
            button("Fit", lambda: self._viewer.run_method("fit"), title="Show the whole image (0)")
        with html("div", "error hidden", role="alert") as self._error:
            self._error_text = text("", classes="grow")
            with html("button", type="button", aria_label="Close the message") as close:
                text("×")
            close.on("click", lambda: self.tell(error=None))
        self._viewer = Viewer()
        self._viewer.on("view", lambda event: self.session.look(View(**event.args)))
        self._viewer.on("stroke", self._stroke)
        self._viewer.on("film", lambda: self._film())
        self._viewer.on(
            "use_time", lambda event: self._choose("time", float(f"{event.args['time']:.4g}"), None)
        )
        self._viewer.on("difference", lambda: self._flip_difference())
        with html("div", "progress quiet", aria_hidden="true") as self._progress:
            self._progress_bar = html("div")
        with html("div", "status", role="status"):
            self._about_scene = text("Open an image, drop one here, or choose a sample.")
            self._about_result = text("")

    def _build_panel(self) -> None:
        """The parameters of the method, from scratch."""
        session = self.session
        self._panel.clear()
        self._controls = {}
        with self._panel:
            titles = {name: name.capitalize() for name in parameters.METHODS}
            segments("Method", titles, session.choices.method, self._choose_method)
            text(parameters.METHODS[session.choices.method], "p", "summary")
            if session.choices.method == "diffuse":
                names = {name: name.replace("-", " ") for name in kinds()}
                select("Model", names, session.choices.model, self._choose_model, "wide")
                text(_first_line(kinds()[session.choices.model]), "p", "summary")
            if session.choices.method == "inpaint":
                self._build_mask()
            self._viewer.set(brush=False, playable=session.choices.method not in ("inpaint", "upsample"))
            with html("div", "controls"):
                if session.scene is not None:
                    for control in controls(session.choices, session.scene, self._found):
                        self._controls[control.name] = ControlElement(control, self._changer(control.name))
                    self._build_switches(session.scene)
            with html("div", "group"):
                text("Gradients of the image, and the contrast", "h2")
                self._histogram = ui.html("", sanitize=False).classes("histogram")
            with html("div", "group") as self._told_group:
                text("What was chosen", "h2")
                self._told = html("dl", "told")
            self._told_group.set_visibility(False)
            with html("div", "group"):
                text("Take it with you", "h2")
                with html("div", "row"):
                    button("Copy as Python", lambda: self._copy("Python", recipes.python))
                    button("Copy as command", lambda: self._copy("command", recipes.command))
                    self._download = button("Download", self._save, "button primary")

    def _build_switches(self, scene: Scene) -> None:
        choices = self.session.choices
        if choices.stencil is not None and choices.method in ("denoise", "enhance", "diffuse"):
            with html("div", "row"):
                text(f"Stencil α = {choices.stencil.alpha:g}, γ = {choices.stencil.gamma:g}")
                button("Back to the usual one", lambda: self._use_stencil(None), "plain")
        if scene.spacing is not None:
            words = " × ".join(f"{h:.3g}" for h in scene.spacing)
            toggle(
                f"Pixels are {words} {scene.source.picture.unit or ''}".rstrip(), self._use_spacing,
                pressed=choices.file_spacing, title="Use the pixel size that the file tells",
            )  # fmt: skip

    def _build_mask(self) -> None:
        choices = self.session.choices
        with html("div", "group"):
            text("Unknown pixels", "h2")
            kind = "random" if choices.random_pixels is not None else "brush"
            with html("div", "row mask-kind"):
                segments("Unknown pixels", {"random": "At random", "brush": "Brush"}, kind, self._mask_kind)
            with html("div", "controls") as self._mask_controls:
                self._build_mask_controls(kind)

    def _build_mask_controls(self, kind: str) -> None:
        if kind == "random":
            pixels = self.session.choices.random_pixels or RandomPixels()
            meaning = "how many pixels are unknown, chosen by chance"
            share = _plain("share", 100 * pixels.share, 0, 99.5, "%", meaning, 90.0)
            ControlElement(share, lambda value, stamp: self._random(value, stamp))
            self._viewer.set(brush=False)
            return
        radius = _plain("radius", 12, 1, 60, "px", "of the brush, in pixels of the image", 12.0)
        ControlElement(radius, lambda value, stamp: self._viewer.set(radius=12 if value is None else value))
        with html("div", "row"):
            toggle("Erase", lambda on: self._viewer.set(erase=on))
            button("Clear", self.session.clear_mask, "plain")
        text("Draw on the picture what is to be filled in.", "p", "summary")
        self._viewer.set(brush=True, radius=12, erase=False)

    # -- what the user does ---------------------------------------------------------------------------

    async def _open_sample(self, name: str) -> None:
        if name:
            await self.session.open(lambda: Source.of_sample(name))

    async def _slice(self, axis: int | None = None, index: int | None = None) -> None:
        scene = self.session.scene
        if scene is None:
            return
        if axis is not None:
            await self.session.slice(axis, scene.source.picture.shape[axis] // 2)
        elif index is not None and index != scene.index:
            await self.session.slice(scene.axis, index)

    def _choose_method(self, method: str) -> None:
        if method == self.session.choices.method:
            return
        self._found = {}
        session = self.session
        session.choices = replace(session.choices, method=method)
        self._build_panel()
        session.changed()

    def _choose_model(self, model: str) -> None:
        session = self.session
        session.choices = replace(session.choices, model=model)
        self._build_panel()
        session.changed()

    def _changer(self, name: str) -> Callable[[Any, float | None], None]:
        return lambda value, stamp: self._choose(name, value, stamp)

    def _choose(self, name: str, value: Any, stamp: float | None) -> None:
        choices = self.session.choices
        if name not in choices.parameters:
            return
        if choices.parameters[name].kind == "number" and value not in (None, AUTO):
            value = float(value)
        self.session.choose(choices.with_value(name, value), stamp)
        if name == "scheme":
            self._build_panel()
        elif stamp is None:
            self._show_controls()

    def _use_stencil(self, stencil: Any) -> None:
        self.session.choose(replace(self.session.choices, stencil=stencil))
        self._build_panel()

    def _use_spacing(self, used: bool) -> None:
        self.session.choose(replace(self.session.choices, file_spacing=used))
        self._build_panel()

    def _mask_kind(self, kind: str) -> None:
        random = RandomPixels() if kind == "random" else None
        self.session.choose(replace(self.session.choices, random_pixels=random))
        self._mask_controls.clear()
        with self._mask_controls:
            self._build_mask_controls(kind)

    def _random(self, percent: float | None, stamp: float | None) -> None:
        share = 0.9 if percent is None else float(f"{percent / 100:.4g}")
        self.session.draw_at_random(min(max(share, 0.0), 0.995), 0, stamp)

    def _stroke(self, event: Any) -> None:
        self.session.paint(event.args["points"], float(event.args["radius"]), erase=event.args["erase"])

    def _use_time(self, event: Any) -> None:
        self._choose("time", float(f"{event.args['time']:.4g}"), None)

    def _show_mode(self, mode: str) -> None:
        self._viewer.set(mode=mode)
        self.session.show_difference(mode == "difference")

    def _flip_difference(self) -> None:
        mode = "compare" if self.session.shows_difference else "difference"
        self._press_mode(mode)
        self._show_mode(mode)

    def _overlay(self, name: str, shown: bool) -> None:
        self._viewer.set(**{f"{name}Shown": shown})
        self.session.show_overlay(name, shown)

    def _film(self) -> None:
        self._has_film = True
        self.session.film()

    def _show_tab(self, tab: str) -> None:
        self._image_tab.classes(
            add="" if tab == "image" else "hidden", remove="hidden" if tab == "image" else ""
        )
        self._stencil_tab.show(tab == "stencil")

    def _next_theme(self) -> None:
        following = {None: ("light", False), False: ("dark", True), True: ("auto", None)}
        words, value = following[self._dark.value]
        self._dark.value = value
        self._theme.clear()
        with self._theme:
            text(f"Theme: {words}")

    def _copy(self, kind: str, recipe: Callable[..., str]) -> None:
        if self.session.scene is None:
            self.tell(error="There is no image yet. Open one first.")
            return
        try:
            words = recipe(self.session.choices, self.session.scene)
        except (ValueError, TypeError) as error:
            self.tell(error=str(error))
            return
        title = f"The same result as {kind}"
        with self._image_tab, ui.dialog() as dialog, html("div", "recipe"):
            text(title, "h2")
            rows = min(14, words.count("\n") + 1)
            html("textarea", readonly=True, value=words, rows=rows, aria_label=title, spellcheck="false")
            with html("div", "row"):
                said = text("", classes="summary grow", role="status")

                def copy() -> None:
                    ui.clipboard.write(words)
                    said.set_text("Copied.")

                button("Copy", copy, "button primary")
                button("Close", dialog.close)
            copy()
        dialog.on("hide", dialog.delete)
        dialog.open()

    async def _save(self) -> None:
        if await self.session.download() is not None:
            ui.download.from_url(self.url("result"))

    # -- the stage ------------------------------------------------------------------------------------

    def show(self, slot: str, rectangle: tuple[float, ...], facts: dict[str, Any]) -> None:
        """A new picture can be fetched."""
        url = f"{self.url(slot)}?{next(self._numbers)}"
        self._viewer.run_method("show", slot, url, list(rectangle), facts)
        if facts.get("preview"):
            coarse = f", {facts['factor']} × coarser" if facts["factor"] > 1 else ""
            self._about_result.set_text(f"preview in {_duration(facts['seconds'])}{coarse}")

    def drop(self, *slots: str) -> None:
        """Pictures that no longer hold."""
        known = [slot for slot in slots if self.session.pictures.pop(slot, None) is not None]
        if known:
            self._viewer.run_method("drop", known)

    def tell(self, **news: Any) -> None:
        """Show what a session has to say; each kind of news has a method of its own."""
        for kind, value in news.items():
            handler = getattr(self, f"_tell_{kind}", None)
            if handler is not None:
                handler(value)
        if "ellipses" in news:
            self._viewer.run_method("setEllipses", news["ellipses"], news["spot"])
        if "scene" in news:
            self._show_scene(news["scene"], news["keep_view"])

    def _tell_error(self, sentence: str | None) -> None:
        show_or_hide(self._error, sentence is not None)
        self._error_text.set_text(sentence or "")

    def _tell_busy(self, busy: bool) -> None:
        if busy:
            self._about_result.set_text("computing…")
        else:
            self._progress.classes(add="quiet")

    def _tell_progress(self, share: float) -> None:
        self._progress.classes(remove="quiet")
        self._progress_bar.style(f"width: {100 * share:.1f}%")

    def _tell_film(self, _: bool) -> None:
        if self._has_film:
            self._has_film = False
            self._viewer.run_method("dropFilm")

    def _tell_result(self, result: Result) -> None:
        height, width = result.image.shape[:2]
        self._about_result.set_text(f"{width} × {height} in {_duration(result.seconds)}, full resolution")
        self._told.clear()
        rows = [] if result.info is None else figures([result.info])
        with self._told:
            for meaning, words in rows:
                text(meaning, "dt")
                text(words, "dd")
        self._told_group.set_visibility(bool(rows))

    def _tell_found(self, found: dict[str, float]) -> None:
        self._found = found
        self._show_controls()

    def _tell_histogram(self, drawing: str) -> None:
        self._histogram.set_content(drawing)

    def _show_controls(self) -> None:
        scene = self.session.scene
        if scene is None:
            return
        for control in controls(self.session.choices, scene, self._found):
            element = self._controls.get(control.name)
            if element is not None and element.control != control:
                element.show(control)

    def _show_scene(self, scene: Scene, keep_view: bool) -> None:
        height, width = scene.shape
        self._viewer.run_method("look", width, height, keep_view)
        source = scene.source
        shape = " × ".join(map(str, source.picture.shape))
        colours = ", colour" if scene.channel_axis is not None else ""
        self._about_scene.set_text(f"{Path(source.name).name}: {shape}{colours}, {source.picture.dtype}")
        self._slices.set_visibility(source.is_volume)
        if source.is_volume:
            count = source.picture.shape[scene.axis]
            show_value(self._axis, str(scene.axis))
            show_value(self._index, scene.index, max=count - 1)
            self._index_label.set_text(f"slice {scene.index} of {count}")
        show_value(self._samples, "" if source.is_file else source.stem)
        if not keep_view:
            self._found = {}
            self._build_panel()


def _plain(
    name: str, value: float, low: float, high: float, unit: str, meaning: str, default: float
) -> Control:
    """A control that is not a parameter of the library."""
    return Control(
        name, name.capitalize(), "", unit, meaning, "number", value, default, low, high,
        ROOT if name == "radius" else "linear",
    )  # fmt: skip


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


def _duration(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _too_large(facts: dict[str, Any], limit: int) -> str:
    return (
        f"{facts['name']} has {facts['size'] / 2**20:.0f} MB, more than the {limit / 2**20:.0f} MB that can "
        "be uploaded. Start with its path instead: aniso explore FILE."
    )
