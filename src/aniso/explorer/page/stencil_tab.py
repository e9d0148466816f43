"""The stencil tab: weights, step limits, and the ring test."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

import aniso
from aniso import samples
from aniso.explorer.choosing.controls import Control
from aniso.explorer.computing.workers import Ticket
from aniso.explorer.page.session import Session
from aniso.explorer.page.widgets import ControlElement, button, change, html, select, text
from aniso.explorer.showing import pictures
from aniso.explorer.showing.pictures import RINGS
from aniso.models import FixedTensor
from aniso.parameters import About, of_model
from aniso.schemes import FED
from aniso.stability import stencil_properties
from aniso.stencil import DeltaStencil

_LIMITS = ("sharp bound", "bound of the paper", "maximum principle", "hourglass weight ζ", "δ")
_DIRECTIONS = ("→ along x", "↘ diagonal", "↓ along y", "↙ diagonal")
_SIZE = 129
_SHARPER = "larger is sharper; at 0.5 checkerboard patterns are not damped"


@dataclass(frozen=True)
class StencilChoice:
    """The chosen parameters."""

    alpha: float = About(symbol="α", high=0.5, meaning=_SHARPER).field(0.4)
    gamma: float = About(
        symbol="γ", low=-1.0, high=1.0, meaning="1 is sharpest and allows the largest steps"
    ).field(1.0)
    angle: float = About(
        symbol="φ", unit="°", high=180.0, meaning="direction of the diffusion, from right to down"
    ).field(30.0)
    across: float = About(
        symbol="λ₂", high=1.0, meaning="diffusivity across this direction; along it, it is 1"
    ).field(0.0)
    time: float = About(symbol="t", unit="px²", high=100.0, meaning="diffusion time of the ring test").field(
        60.0
    )

    @property
    def stencil(self) -> DeltaStencil:
        """The member of the family."""
        return DeltaStencil(self.alpha, self.gamma)

    def facts(self) -> dict[str, Any]:
        """Return weights, entries and step limits for the tensor."""
        x, y = math.cos(math.radians(self.angle)), math.sin(math.radians(self.angle))
        a, b, c = x * x + self.across * y * y, (1 - self.across) * x * y, y * y + self.across * x * x
        return stencil_properties(self.stencil, a, b, c)


#: The controls of the tab.
CONTROLS = {
    name: Control.of(each, low=each.about.low, high=each.about.high)
    for name, each in of_model(StencilChoice).items()
}


@lru_cache(maxsize=1)
def _rings() -> tuple[Any, Any]:
    pattern = samples.ring_pattern(_SIZE).astype(np.float32)
    return pattern, FixedTensor.from_entries(*samples.ring_tensor(_SIZE))


def diffuse_rings(choice: StencilChoice) -> tuple[list[pictures.Encoded], float]:
    """Diffuse rings along the rings; return them before and after, and the share that changed: ideally 0."""
    rings, tensors = _rings()
    after = aniso.diffuse(rings, tensors, choice.time, stencil=choice.stencil, scheme=FED(1))
    seen = [pictures.encode(pictures.shown(image, (-1.0, 1.0)), lossless=True) for image in (rings, after)]
    return seen, float(np.linalg.norm(after - rings) / np.linalg.norm(rings))


class StencilTab:
    """Elements of the tab; values are computed in the threads of the session."""

    def __init__(
        self, session: Session, url: Callable[[str], str], use: Callable[[DeltaStencil], None]
    ) -> None:
        self._session, self._url, self._use = session, url, use
        self._choice = StencilChoice()
        self._controls: dict[str, ControlElement] = {}
        with html("main", "tab") as self._tab:
            with html("aside", "panel", aria_label="Stencil"):
                self._build_panel()
            with html("section", "figures", aria_label="Properties of the stencil"):
                self._build_figures()
        self._tab.set_visibility(False)

    def show(self, shown: bool) -> None:
        """Show or hide the tab."""
        self._tab.set_visibility(shown)
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
            change(self._names, value="")
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
            self._session.post(self._show_rings, *diffuse_rings(choice))

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

    def _show_rings(self, seen: list[pictures.Encoded], changed: float) -> None:
        for image, slot, picture in zip(self._rings, RINGS, seen, strict=True):
            number = self._session.pictures.add(slot, picture)
            change(image, src=self._url(f"{slot}/{number}"))
        self._ring_title.set_text(f"Ring test: {changed:.1%} changed")


def _figure(value: float) -> str:
    """Format with four decimals, without a minus sign before zero."""
    return f"{value:.4f}".replace("-0.0000", "0.0000").replace("-", "−")
