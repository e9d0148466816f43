"""The panel next to the picture: method, controls, unknown pixels, estimated values, and export."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from nicegui import ui
from nicegui.element import Element

from aniso.explorer.choosing import export
from aniso.explorer.choosing.choices import AUTO, methods
from aniso.explorer.choosing.controls import ROOT, Control, controls
from aniso.explorer.choosing.scene import Scene
from aniso.explorer.choosing.unknown_pixels import RandomPixels
from aniso.explorer.page.session import Session, describe_error
from aniso.explorer.page.widgets import ControlElement, button, change, html, segments, select, text, toggle
from aniso.models import kinds
from aniso.stencil import DeltaStencil
from aniso.verbs.plan import summary_rows


class ParameterPanel:
    """Rebuilt for each method, model and image."""

    def __init__(self, place: Element, session: Session, viewer: Element, download: str) -> None:
        self._place, self.session, self._viewer, self._download = place, session, viewer, download
        self._controls: dict[str, ControlElement] = {}
        self._found: dict[str, float] = {}
        self.build()

    def build(self) -> None:
        """Build all elements for the current method."""
        session, verb = self.session, self.session.choices.verb
        self._place.clear()
        self._controls, self._found = {}, {}
        change(self._viewer, brush=False, playable=verb.has_scale_space)
        with self._place:
            titles = {name: name.capitalize() for name in methods()}
            segments("Task", titles, verb.name, self._choose_method)
            text(verb.summary, "p", "summary")
            if verb.takes("model"):
                names = {name: name.replace("-", " ") for name in kinds()}
                select("Model", names, session.choices.model, lambda name: self._rebuild(model=name), "wide")
                text((kinds()[session.choices.model].__doc__ or "").strip().splitlines()[0], "p", "summary")
            if verb.fills:
                self._build_mask()
            with html("div", "controls"):
                if session.scene is not None:
                    for control in controls(session.choices, session.scene, self._found):
                        self._controls[control.name] = ControlElement(
                            control, partial(self._choose, control.name)
                        )
                    self._build_switches(session.scene)
            with html("div", "group"):
                text("Gradient histogram and contrast", "h2")
                self.histogram = ui.html("", sanitize=False).classes("histogram")
            with html("div", "group") as self._values_group:
                text("Values used", "h2")
                self._values = html("dl", "values")
            self._values_group.set_visibility(False)
            with html("div", "group"):
                text("Export", "h2")
                with html("div", "row"):
                    button("Copy as Python", lambda: self._copy("Python", export.to_python))
                    button("Copy as command", lambda: self._copy("command", export.to_command))
                    button("Save plan", self._save_plan)
                    button("Download", self._save, "button primary")

    def _build_switches(self, scene: Scene) -> None:
        choices = self.session.choices
        if choices.stencil is not None and choices.verb.takes("stencil"):
            with html("div", "row"):
                text(f"Stencil α = {choices.stencil.alpha:g}, γ = {choices.stencil.gamma:g}")
                button("Back to the default", lambda: self.use_stencil(None), "plain")
        if scene.spacing is not None:
            words = " × ".join(f"{h:.3g}" for h in scene.spacing)
            toggle(
                f"Pixels are {words} {scene.source.picture.unit or ''}".rstrip(),
                lambda used: self._rebuild(file_spacing=used),
                pressed=choices.file_spacing, title="Use the pixel size of the file",
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
            meaning = "fraction of unknown pixels, chosen at random"
            share = Control(
                "fraction", "Fraction", "", "%", meaning, "number", 100 * pixels.share, 90.0, 0, 99.5
            )
            ControlElement(share, self._random)
            change(self._viewer, brush=False)
            return
        meaning = "brush radius, in pixels of the image"
        radius = Control("radius", "Radius", "", "px", meaning, "number", 12, 12.0, 1, 60, ROOT)
        ControlElement(radius, lambda value, _: change(self._viewer, radius=12 if value is None else value))
        with html("div", "row"):
            toggle("Erase", lambda on: change(self._viewer, erase=on))
            button("Clear", lambda: self.session.change(drawn=None), "plain")
        text("Draw on the picture to mark unknown pixels.", "p", "summary")
        change(self._viewer, brush=True, radius=12, erase=False)

    def show_info(self, info: Any) -> None:
        """Show the values that a verb chose."""
        self._values.clear()
        rows = [] if info is None else summary_rows([info])
        with self._values:
            for meaning, words in rows:
                text(meaning, "dt")
                text(words, "dd")
        self._values_group.set_visibility(bool(rows))

    def show_found(self, found: dict[str, float]) -> None:
        """Show the estimated values on the sliders."""
        self._found = found
        self._show_controls()

    def use_time(self, time: float) -> None:
        """Use a time from the film."""
        self._choose("time", float(f"{time:.4g}"), None)

    def use_stencil(self, stencil: DeltaStencil | None) -> None:
        """Use a stencil; None is the default."""
        self._rebuild(stencil=stencil)

    def _choose_method(self, method: str) -> None:
        if method != self.session.choices.method:
            self._rebuild(method=method)

    def _rebuild(self, **choices: Any) -> None:
        self.session.choices = replace(self.session.choices, **choices)
        self.build()
        self.session.recompute()

    def _choose(self, name: str, value: Any, stamp: float | None) -> None:
        choices = self.session.choices
        if name not in choices.parameters:
            return
        parameter, scene = choices.parameters[name], self.session.scene
        if parameter.kind == "number" and value not in (None, AUTO, *parameter.about.kinds):
            value = float(value)
        self.session.choose(choices.with_value(name, value), stamp)
        shown = {each.name for each in controls(self.session.choices, scene, {})} if scene else set()
        if shown != set(self._controls):  # others have a meaning now
            self.build()
        elif stamp is None:
            self._show_controls()

    def _mask_kind(self, kind: str) -> None:
        self.session.change(random_pixels=RandomPixels() if kind == "random" else None)
        self._mask_controls.clear()
        with self._mask_controls:
            self._build_mask_controls(kind)

    def _random(self, percent: float | None, stamp: float | None) -> None:
        share = 0.9 if percent is None else float(f"{percent / 100:.4g}")
        self.session.change(stamp, random_pixels=RandomPixels(min(max(share, 0.0), 0.995)))

    def _show_controls(self) -> None:
        scene = self.session.scene
        if scene is None:
            return
        for control in controls(self.session.choices, scene, self._found):
            element = self._controls.get(control.name)
            if element is not None and element.control != control:
                element.show(control)

    async def _copy(self, kind: str, recipe: Callable[..., str]) -> None:
        if self.session.scene is None:
            self.session.stage.tell(error="No image is open. Open one first.")
            return
        try:
            words = await asyncio.to_thread(recipe, self.session.choices, self.session.scene)
        except (ValueError, TypeError) as error:
            self.session.stage.tell(error=describe_error(error))
            return
        title = f"The same result as {kind}"
        with self._place, ui.dialog() as dialog, html("div", "recipe"):
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

    def _save_plan(self) -> None:
        plan = self.session.plan()
        if plan is not None:
            ui.download(plan.to_json().encode(), f"{plan.verb}_plan.json", "application/json")

    async def _save(self) -> None:
        if await self.session.download() is not None:
            ui.download.from_url(self._download)
