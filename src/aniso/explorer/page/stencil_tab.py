"""The stencil tab: weights, step limits, and the ring test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from aniso.explorer.computing.workers import Ticket
from aniso.explorer.page.session import Session
from aniso.explorer.page.widgets import ControlElement, button, html, select, show_or_hide, show_value, text
from aniso.explorer.showing.stencils import CONTROLS, RINGS, RingTest, StencilChoice
from aniso.stencil import DeltaStencil

_LIMITS = ("sharp bound", "bound of the paper", "maximum principle", "hourglass weight ζ", "δ")
_DIRECTIONS = ("→ along x", "↘ diagonal", "↓ along y", "↙ diagonal")


class StencilTab:
    """Elements of the tab; values are computed in the threads of the session."""

    def __init__(
        self, session: Session, url: Callable[[str], str], use: Callable[[DeltaStencil], None]
    ) -> None:
        self._session, self._url, self._use = session, url, use
        self._choice = StencilChoice()
        self._controls: dict[str, ControlElement] = {}
        with html("main", "tab hidden") as self._tab:
            with html("aside", "panel", aria_label="Stencil"):
                self._build_panel()
            with html("section", "figures", aria_label="Properties of the stencil"):
                self._build_figures()

    def show(self, shown: bool) -> None:
        """Show or hide the tab."""
        show_or_hide(self._tab, shown)
        if shown:
            self._update()

    def _build_panel(self) -> None:
        text("δ = α(a + c) + γ(1 − 2α)∣b∣ selects a 3 × 3 stencil for div(D ∇u).", "p", "summary")
        names = [name for name in DeltaStencil.names() if DeltaStencil.named(name).beta is None]
        options = {"": "choose…", **{name: name.replace("-", " ") for name in names}}
        self._names = select("Named member", options, "", self._choose_named, "wide")
        with html("div", "controls"):
            for name, control in CONTROLS.items():
                self._controls[name] = ControlElement(control, partial(self._change, name))
        button("Use this stencil for the image", lambda: self._use(self._choice.stencil), "button primary")

    def _build_figures(self) -> None:
        with html("section"):
            text("Entries", "h2")
            with html("table", "entries", aria_label="Entries of the stencil"), html("tbody"):
                self._cells = []
                for row in range(3):
                    with html("tr"):
                        self._cells.append(
                            [text("", "td", "centre" if row == c == 1 else "") for c in range(3)]
                        )
        self._weights = self._table("Weights of the four directions", _DIRECTIONS)
        self._limits = self._table("Largest stable step", _LIMITS)
        with html("section", "broad"):
            self._ring_title = text("Ring test", "h2")
            with html("div", "rings"):
                self._rings = [self._figure(words) for words in RINGS.values()]

    def _table(self, title: str, meanings: tuple[str, ...]) -> list[Any]:
        values = []
        with html("section"):
            text(title, "h2")
            with html("dl", "values"):
                for meaning in meanings:
                    text(meaning, "dt")
                    values.append(text("", "dd"))
        return values

    def _figure(self, words: str) -> Any:
        with html("figure"):
            image = html("img", alt=words)
            text(words, "figcaption")
        return image

    def _change(self, name: str, value: Any, stamp: float | None) -> None:
        control = CONTROLS[name]
        chosen = control.default if value is None else float(value)
        self._choice = replace(self._choice, **{name: min(max(chosen, control.low), control.high)})
        if name in ("alpha", "gamma"):
            show_value(self._names, "")
        self._update()

    def _choose_named(self, name: str) -> None:
        if name:
            member = DeltaStencil.named(name)
            chosen = {"alpha": member.alpha, "gamma": member.gamma}
            self._choice = replace(self._choice, **chosen)
            for each, value in chosen.items():
                self._controls[each].show(replace(CONTROLS[each], value=value))
            self._update()

    def _update(self) -> None:
        choice = self._choice
        self._show_facts(choice.facts())

        def job(ticket: Ticket) -> None:
            self._session.post(self._show_rings, RingTest.of(choice))

        self._session.submit(self._session.side_worker, job, "rings")

    def _show_facts(self, facts: dict[str, Any]) -> None:
        for row, entries in zip(self._cells, facts["entries"], strict=True):
            for cell, entry in zip(row, entries, strict=True):
                cell.set_text(_figure(entry))
                negative = entry < -1e-12 and cell is not self._cells[1][1]
                cell.classes(add="negative" if negative else "", remove="" if negative else "negative")
        for label, weight in zip(self._weights, facts["directional_weights"], strict=True):
            label.set_text(_figure(weight))
        paper = facts["paper_step"]
        words = (
            f"τ ≤ {facts['stable_step']:.4g}",
            "" if paper is None else f"τ ≤ {paper:.4g}",
            "holds" if facts["nonnegative"] else "not guaranteed",
            _figure(facts["hourglass_weight"]),
            _figure(facts["delta"]),
        )
        for label, word in zip(self._limits, words, strict=True):
            label.set_text(word)

    def _show_rings(self, test: RingTest) -> None:
        for image, slot, picture in zip(self._rings, RINGS, (test.before, test.after), strict=True):
            number = self._session.pictures.add(slot, picture)
            image._props["src"] = self._url(f"{slot}/{number}")
            image.update()
        self._ring_title.set_text(f"Ring test: {test.changed:.1%} changed")


def _figure(value: float) -> str:
    """Format with four decimals, without a minus sign before zero."""
    return f"{value:.4f}".replace("-0.0000", "0.0000").replace("-", "−")
