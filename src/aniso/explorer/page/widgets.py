"""HTML elements with labels, and components that run in the browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import ui
from nicegui.element import Element

from aniso.explorer.choosing.controls import Control

_BROWSER = Path(__file__).parent / "browser"

#: The page's own style.
STYLE = (_BROWSER / "style.css").read_text("utf-8")


class Viewer(Element, component=_BROWSER / "viewer.js"):
    """The images before and after, and the film."""

    def __init__(self) -> None:
        super().__init__()
        change(
            self, mode="compare", brush=False, radius=12, erase=False, playable=True, ellipsesShown=False,
            stoppedShown=False,
        )  # fmt: skip


class ControlElement(Element, component=_BROWSER / "control.js"):
    """A control; `on_change` receives the value (None: the default) and its time stamp."""

    def __init__(self, control: Control, on_change: Callable[[Any, float | None], None]) -> None:
        super().__init__()
        self.show(control)
        self.on("change", lambda event: on_change(event.args["value"], event.args.get("stamp")))

    def show(self, control: Control) -> None:
        """Show other values and ranges."""
        self.control = control
        change(self, control=asdict(control))


class FileDrop(Element, component=_BROWSER / "files.js"):
    """Opens files from a dialog, and those dropped on the page."""

    def __init__(self, url: str, limit: int, accept: str) -> None:
        super().__init__()
        self._props.update({"url": url, "limit": limit, "accept": accept})


def html(tag: str, classes: str = "", **attributes: Any) -> Element:
    """Return an HTML element; underscores in names of attributes become hyphens."""
    element = ui.element(tag).classes(classes)
    change(element, **attributes)
    return element


def change(element: Element, **attributes: Any) -> None:
    """Change attributes of an element."""
    element._props.update({name.replace("_", "-"): value for name, value in attributes.items()})
    element.update()


def text(words: str, tag: str = "span", classes: str = "", **attributes: Any) -> ui.label:
    """Return a text that can be changed later."""
    label = ui.label(words)
    label.tag = tag
    label.classes(classes)._props.update(attributes)
    return label


def button(words: str, on_click: Callable[[], Any], classes: str = "button", **attributes: Any) -> Element:
    """Return a button with a text."""
    element = html("button", classes, type="button", **attributes)
    element.on("click", lambda: on_click())
    with element:
        text(words)
    return element


def toggle(words: str, on_change: Callable[[bool], Any], pressed: bool = False, **attributes: Any) -> Element:
    """Return a button that stays pressed."""

    def flip() -> None:
        now = element._props["aria-pressed"] != "true"
        change(element, aria_pressed=_truth(now))
        on_change(now)

    element = button(words, flip, "chip", aria_pressed=_truth(pressed), **attributes)
    return element


def select(
    label: str, options: Mapping[str, str], value: str, on_change: Callable[[str], Any], classes: str = ""
) -> Element:
    """Return a labelled list to choose from; `options` are values and texts."""
    with html("label", f"select {classes}"):
        text(label)
        with html("select", value=value, aria_label=label) as element:
            for key, words in options.items():
                with html("option", value=key):
                    text(words)

    def chosen(event: Any) -> Any:
        element._props["value"] = event.args  # or an update of the page would bring the old one back
        return on_change(event.args)

    element.on("change", chosen, js_handler="(e) => emit(e.target.value)")
    return element


def segments(
    label: str, options: Mapping[str, str], value: str, on_change: Callable[[str], Any]
) -> Callable[[str], None]:
    """Add a row of buttons of which one is pressed; return a function that presses one."""
    elements: dict[str, Element] = {}

    def choose(key: str) -> Any:
        show(key)
        return on_change(key)

    def show(key: str) -> None:
        for name, element in elements.items():
            change(element, aria_pressed=_truth(name == key))

    with html("div", "segments", role="group", aria_label=label):
        for key, words in options.items():
            elements[key] = button(
                words, partial(choose, key), "segment", aria_pressed=_truth(key == value), data_value=key
            )
    return show


def _truth(value: bool) -> str:
    return "true" if value else "false"
