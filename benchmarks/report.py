"""What a benchmark found: a table for the terminal, JSON to compare with later, pictures."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from benchmarks.timing import CONSOLE, Timing

#: Times of aniso and of others, memory of aniso, and what the machine can do.
Kind = Literal["ours", "theirs", "memory", "machine"]

#: The yardstick: times are compared between runs as multiples of its time in the same run.
YARDSTICK = "plain C"

COLOURS = {"ours": "#1f77b4", "theirs": "#9a9a9a", "memory": "#2ca02c", "machine": "#ff7f0e"}


@dataclass(frozen=True)
class Measurement:
    """One figure."""

    value: float
    unit: str
    kind: Kind
    note: str = ""
    jitter: float | None = None


@dataclass(frozen=True)
class Target:
    """A figure that is wanted above or below a bound."""

    name: str
    value: float
    bound: float
    sense: Literal["at least", "at most"] = "at least"
    unit: str = "×"

    @property
    def met(self) -> bool:
        return self.value >= self.bound if self.sense == "at least" else self.value <= self.bound


@dataclass
class Report:
    """Everything that one run found."""

    benchmark: str
    settings: dict[str, Any]
    environment: dict[str, Any]
    measurements: dict[str, Measurement] = field(default_factory=dict)
    targets: list[Target] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, value: float, unit: str, kind: Kind, note: str = "") -> None:
        """Keep a figure."""
        self.measurements[name] = Measurement(value, unit, kind, note)

    def add_timing(self, name: str, timing: Timing, kind: Kind, note: str = "") -> None:
        """Keep the time per step, in milliseconds."""
        self.measurements[name] = Measurement(1e3 * timing.per_step, "ms", kind, note, timing.jitter)

    def skip(self, name: str, reason: str) -> None:
        """Say that something is left out, and why."""
        self.skipped[name] = reason
        CONSOLE.print(f"[yellow]skipped[/] {name}: {reason}", highlight=False)

    def save(self, path: Path) -> None:
        """As JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n", "utf-8")

    @classmethod
    def load(cls, path: Path) -> Report:
        """What `save` wrote."""
        found = json.loads(path.read_text("utf-8"))
        found["measurements"] = {name: Measurement(**entry) for name, entry in found["measurements"].items()}
        found["targets"] = [Target(**target) for target in found["targets"]]
        return cls(**found)

    def show(self, console: Console = CONSOLE) -> None:
        """Table, targets and surroundings, on the terminal."""
        yardstick = self.measurements.get(YARDSTICK)
        table = Table(title=f"{self.benchmark}: {_joined(self.settings)}", title_justify="left")
        table.add_column("what")
        table.add_column("figure", justify="right")
        table.add_column(f"÷ {YARDSTICK}", justify="right")
        table.add_column("jitter", justify="right")
        table.add_column("note")
        for name, entry in self.measurements.items():
            comparable = yardstick is not None and entry.unit == yardstick.unit
            table.add_row(
                f"[bold]{name}[/]" if entry.kind == "ours" else name,
                f"{figure(entry.value)} {entry.unit}",
                f"{entry.value / yardstick.value:.3f}" if comparable and yardstick else "",
                "" if entry.jitter is None else f"{entry.jitter:.0%}",
                entry.note,
            )
        console.print(table)
        self.show_targets(console)

    def show_targets(self, console: Console = CONSOLE) -> None:
        """Targets and surroundings."""
        if self.targets:
            table = Table(title="targets", title_justify="left")
            for column in ("what", "measured", "wanted", ""):
                table.add_column(column, justify="right" if column == "measured" else "left")
            for target in self.targets:
                table.add_row(
                    target.name,
                    f"{figure(target.value)} {target.unit}",
                    f"{target.sense} {target.bound:g} {target.unit}",
                    "[green]met[/]" if target.met else "[red]missed[/]",
                )
            console.print(table)
        console.print(_joined(self.environment), highlight=False)


def figure(value: float) -> str:
    """Three digits."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _joined(facts: dict[str, Any]) -> str:
    return " · ".join(
        f"{name} {value if not isinstance(value, dict) else ', '.join(f'{k} {v}' for k, v in value.items())}"
        for name, value in facts.items()
    )


def bars(axes: Any, entries: dict[str, Measurement], unit: str, *, log: bool = True, title: str = "") -> None:
    """Horizontal bars with their figures, the first entry on top; aniso in colour."""
    names, values = list(entries), [entry.value for entry in entries.values()]
    places = range(len(names))
    axes.barh(places, values, color=[COLOURS[entry.kind] for entry in entries.values()], height=0.7)
    axes.set_yticks(places, names)
    for label, entry in zip(axes.get_yticklabels(), entries.values(), strict=True):
        label.set_fontweight("bold" if entry.kind == "ours" else "normal")
    axes.invert_yaxis()
    for place, value in zip(places, values, strict=True):
        axes.annotate(
            f"{figure(value)} {unit}", (value, place), (4, 0), textcoords="offset points", va="center"
        )
    if log:
        axes.set_xscale("log")
        axes.set_xlim(0.5 * min(values), 8.0 * max(values))
    else:
        axes.set_xlim(min(0, *values), 1.4 * max(values))
    axes.set_xlabel(unit)
    axes.set_title(title, loc="left", fontweight="bold")
    plain(axes)


def plain(axes: Any) -> None:
    """Fewer lines."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x" if axes.get_xscale() == "log" else "both", alpha=0.25)
    axes.set_axisbelow(True)


def add_places(parser: argparse.ArgumentParser) -> None:
    """Options for where figures and their picture go."""
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--picture", type=Path, help="where to draw them")


def deliver(found: Report, given: argparse.Namespace, picture: Callable[[Report, Path], object]) -> None:
    """Show the figures, and bring them to the places that were given."""
    found.show()
    if given.json:
        found.save(given.json)
    if given.picture:
        picture(found, given.picture)


def figure_of(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    """A matplotlib figure that needs no screen."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 11, "axes.titlesize": 12})
    return plt.subplots(rows, columns, figsize=size, layout="constrained", **options)


#: Dots per inch of figures with text and lines, and of those that show photographs.
LINE_DPI, PHOTO_DPI = 110, 72


def save_picture(picture: Any, path: Path, dpi: int = LINE_DPI, colours: int = 256) -> None:
    """Save as PNG with a palette of this number of colours, a third of the size; 64 suffice for greys."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = io.BytesIO()
    picture.savefig(drawn, dpi=dpi, metadata={"Software": None})
    with Image.open(drawn) as full:
        paletted = full.convert("RGB").quantize(colours, dither=Image.Dither.NONE)
    paletted.save(path, optimize=True)
    CONSOLE.print(f"wrote {path}", highlight=False)
