"""How long the picture in the page takes to follow a slider, measured in the browser.

A hand that moves is played with the mouse, an event every 50 ms, on a photograph of 512² pixels that the page
shows as a whole. The clock starts in the browser with the slider's event (`performance.now()` in control.js),
goes with the value to the server and back with the picture's address, and stops in the frame after the new
picture has been drawn (`aniso:drawn` in viewer.js). So it contains the way to the server, waiting for the
preview before, computing, encoding, fetching, decoding and drawing. Positions that were left out have no
picture and do not count; how many there were follows from the number of pictures and that of events. All
sliders have their turn in every round, and the first round does not count.

python -m benchmarks.explorer --json benchmarks/results/explorer.json --picture explorer.png
"""

from __future__ import annotations

import argparse
import os
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import timing
from benchmarks.explorer_process import browser_path, explorer
from benchmarks.report import COLOURS, Report, Target, plain
from benchmarks.timing import CONSOLE

#: Milliseconds within which the picture should follow, at the median.
TARGET = 150.0
_NOTE = "512², {factor}, {count} pictures, 90 % within {late:.0f} ms, computing {computing:.0f} ms"


@dataclass(frozen=True)
class Hand:
    """A slider that is moved: method, model, name of the slider."""

    method: str
    model: str
    slider: str

    @property
    def name(self) -> str:
        what = self.model.replace("-", " ") if self.method == "Diffuse" else self.method.lower()
        return f"{what}: {self.slider.lower()}"


HANDS = (
    Hand("Diffuse", "edge-enhancing", "Contrast"),
    Hand("Diffuse", "edge-enhancing", "Sigma"),
    Hand("Diffuse", "edge-enhancing", "Time"),
    Hand("Diffuse", "coherence-enhancing", "Rho"),
    Hand("Diffuse", "perona-malik", "Contrast"),
    Hand("Denoise", "", "Noise"),
    Hand("Denoise", "", "Contrast"),
    Hand("Denoise", "", "Time"),
    Hand("Enhance", "", "Wavelength"),
    Hand("Enhance", "", "Contrast"),
    Hand("Inpaint", "", "Share"),
    Hand("Inpaint", "", "Contrast"),
    Hand("Upsample", "", "Sigma"),
    Hand("Upsample", "", "Time"),
)


def moved(page: Any, hand: Hand, events: int) -> list[dict[str, Any]]:
    """What is drawn while a hand moves the slider to and fro once."""
    page.get_by_role("button", name=hand.method, exact=True).click()
    if hand.model:
        page.get_by_label("Model").select_option(hand.model)
    page.wait_for_function("document.querySelector('.status').textContent.includes('full resolution')")
    page.wait_for_timeout(400)
    box = page.get_by_role("slider", name=f"{hand.slider} slider").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.evaluate("drawn.length = 0")
    page.mouse.move(box["x"] + 0.3 * box["width"], middle)
    page.mouse.down()
    for number in range(events):
        way = 0.3 + 0.4 * (1 - abs(2 * number / events - 1))
        page.mouse.move(box["x"] + way * box["width"], middle)
        page.wait_for_timeout(50)
    page.mouse.up()
    page.wait_for_timeout(600)
    drawn = page.evaluate("drawn")
    reset = page.get_by_role("button", name=f"Reset {hand.slider}")
    if reset.count():  # it is not there where the hand stopped at the default by chance
        reset.click()
    return [each for each in drawn if each["latency"] is not None]


def measured(rounds: int, events: int) -> tuple[Report, dict[str, list[float]]]:
    """All sliders in every round; the first round warms up and does not count."""
    from playwright.sync_api import expect, sync_playwright

    settings = {"rounds": rounds, "events": events}
    environment = timing.environment(["nicegui", "playwright", "numba", "numpy"])
    report = Report("the explorer", settings, environment)
    drawn: dict[str, list[dict[str, Any]]] = {hand.name: [] for hand in HANDS}
    with explorer() as (address, _, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(60_000)
        page.add_init_script(
            "window.drawn = []; window.addEventListener('aniso:drawn', (event) => drawn.push(event.detail))"
        )
        page.goto(address)
        expect(page.locator(".status")).to_contain_text("full resolution", timeout=60_000)
        page.get_by_label("Sample").select_option("camera")
        expect(page.locator(".status")).to_contain_text("camera.png: 512 × 512", timeout=60_000)
        for number in range(rounds + 1):
            for hand in HANDS:
                found = moved(page, hand, events)
                if number > 0:
                    drawn[hand.name] += found
        expect(page.locator(".status")).to_contain_text("camera.png: 512 × 512")
        environment["browser"] = browser.version
        browser.close()
    environment["load after"] = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    latencies = {name: [each["latency"] for each in found] for name, found in drawn.items()}
    for hand in HANDS:
        _add(report, hand, drawn[hand.name])
    return report, latencies


def _add(report: Report, hand: Hand, drawn: list[dict[str, Any]]) -> None:
    if not drawn:
        report.skip(hand.name, "no picture was drawn")
        return
    times = sorted(each["latency"] for each in drawn)
    factors = sorted({each["factor"] for each in drawn})
    note = _NOTE.format(
        factor="full resolution" if factors == [1] else f"up to {factors[-1]} × coarser",
        count=len(times),
        late=times[int(0.9 * (len(times) - 1))],
        computing=1e3 * statistics.median(each["seconds"] for each in drawn),
    )
    median = statistics.median(times)
    report.add(hand.name, median, "ms", "ours", note)
    report.targets.append(Target(hand.name, median, TARGET, "at most", "ms"))


def picture(latencies: dict[str, list[float]], path: Path) -> None:
    """All latencies as dots, and their medians."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 0.5 * len(latencies) + 1.4), layout="constrained")
    axes = figure.subplots()
    for row, times in enumerate(latencies.values()):
        shifts = [row + 0.25 * ((7 * k) % 11 / 11 - 0.5) for k in range(len(times))]
        axes.plot(times, shifts, ".", color=COLOURS["theirs"], alpha=0.5, markersize=4)
        if times:
            median = statistics.median(times)
            axes.plot([median] * 2, [row - 0.3, row + 0.3], color=COLOURS["ours"], linewidth=2.5)
            axes.annotate(f"{median:.0f}", (median, row - 0.32), ha="center", va="bottom", fontsize=9)
    axes.axvline(TARGET, color=COLOURS["machine"], linestyle="--", linewidth=1)
    axes.set_yticks(range(len(latencies)), list(latencies))
    axes.invert_yaxis()
    axes.set_xlim(0, None)
    axes.set_xlabel("milliseconds from the event to the frame with the new picture; bars are medians")
    axes.set_title("The picture follows the slider, 512² pixels", loc="left", fontweight="bold")
    plain(axes)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=4, help="rounds (default 4)")
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it works")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--picture", type=Path, help="where to write the picture")
    options = parser.parse_args()
    if browser_path() is None:
        parser.exit(1, "Chromium was not found; on Debian and Ubuntu: apt-get install chromium\n")
    report, latencies = measured(1 if options.quick else options.repeats, 10 if options.quick else 30)
    report.show()
    if options.json is not None:
        report.save(options.json)
        CONSOLE.print(f"wrote {options.json}", highlight=False)
    if options.picture is not None:
        picture(latencies, options.picture)
        CONSOLE.print(f"wrote {options.picture}", highlight=False)


if __name__ == "__main__":
    main()
