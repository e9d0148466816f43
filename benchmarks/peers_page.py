"""The figures of benchmarks.peers as a page of the documentation and as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any

from benchmarks import report
from benchmarks.peers_laws import LAWS, RANGE
from benchmarks.peers_speed import TIME, WHAT
from benchmarks.report import Measurement, Report, figure

#: What the page says around its tables.
TEXT = Path(__file__).with_suffix(".md")

Group = dict[str, Measurement]

#: What a filter's time is compared with: the same kind of filter in aniso.
COUNTERPARTS = {
    "DIPlib CED": "aniso CED",
    "ITK LBR CED": "aniso CED",
    "ITK LBR EED": "aniso EED",
    "G'MIC smooth": None,
}
SIGNS = {"kept": "✓", "broken": "✗", "refused": "error", "not offered": "–"}
FACES = {"kept": "#cfe8cf", "broken": "#f2b8b0", "refused": "#f6e3b4", "not offered": "#e6e6e6"}

#: Titles of the tables of quality: the verb of aniso, and what was done.
QUALITY = {
    "denoising": (
        "aniso denoise",
        "Denoising photographs",
        "Mean PSNR in dB; grey photographs with white noise. `denoise` has no parameters; the others are "
        "tuned with the ground truth.",
    ),
    "inpainting": (
        "aniso inpaint",
        "Inpainting",
        "Mean PSNR in dB; grey and colour photographs with few known pixels, or with text or scratches. "
        "Nothing is tuned.",
    ),
    "coherence": (
        "aniso enhance",
        "Lines with gaps",
        "Fraction of the root mean square error that is removed; 1 is perfect. `enhance` has no parameters; "
        "the others are tuned with the ground truth.",
    ),
    "denoising volumes": (
        "aniso denoise",
        "Denoising volumes",
        "Mean PSNR in dB; synthetic volumes with white noise. `denoise` has no parameters; the others are "
        "tuned with the ground truth.",
    ),
}


def group(found: Report, title: str) -> Group:
    """The figures under this title, by filter."""
    start = f"{title}: "
    return {
        name.removeprefix(start): entry
        for name, entry in found.measurements.items()
        if name.startswith(start)
    }


def sizes(found: Report) -> list[str]:
    """What was timed: 2048², 128³, …"""
    starts = (name.split(": ")[0] for name in found.measurements if name.startswith("iteration, "))
    return list(dict.fromkeys(start.removeprefix("iteration, ") for start in starts))


def verdict(entry: Measurement) -> str:
    """Kept, broken, refused or not offered."""
    return entry.note.split(":")[0]


def page(found: Report) -> str:
    """As Markdown: the tables in the text of peers_page.md."""
    parts = {
        "speed": [_speed_table(found, size) for size in sizes(found)],
        "law_table": [_law_table(found)] if group(found, f"law, {LAWS[0].name}") else [],
        "quality": [_quality_table(found, title) for title in QUALITY if group(found, title)],
    }
    return Template(TEXT.read_text("utf-8")).substitute(
        {
            name: "\n".join(tables) if tables else "Not measured in this run.\n"
            for name, tables in parts.items()
        },
        conditions=_conditions(found),
        law_list=_law_list(),
        better=_summary(found),
        time=f"{TIME:g}",
        range=f"{RANGE:g}",
    )


def _conditions(found: Report) -> str:
    machine, settings = found.environment, found.settings
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    lines = [
        f"Measured by `python -m benchmarks.peers` on {machine['date']}: {machine['processor']}, "
        f"{machine['cores']} cores, {machine['system']}; "
        f"{settings['threads']} threads, best of {settings['rounds']} rounds (others: at most 3); "
        f"load before {machine['load before']}. Versions: {versions}.",
    ]
    runs = settings.get("runs", {})
    if len({run["date"] for run in runs.values()}) > 1:
        words = (
            f"{section} {run['date']} with aniso {run['aniso']}, load before {run['load before']}"
            for section, run in runs.items()
        )
        lines.append(f"\nThe sections are of different runs: {'; '.join(words)}.")
    load = runs.get("speed", machine)["load before"]
    if (load or 0) > 1:
        lines.append("\n**The machine was busy: times and their ratios are not meaningful.**")
    if settings["quick"]:
        lines.append("\nA short run on small images: its results are not meaningful.")
    if found.skipped:
        lines.append("\nSkipped:\n")
        lines += [f"- {name}: {reason}" for name, reason in found.skipped.items()]
    return "\n".join([*lines, ""])


def _speed_table(found: Report, size: str) -> str:
    each, whole = group(found, f"iteration, {size}"), group(found, f"time {TIME:g}, {size}")
    lines = [
        f"### {size}\n",
        f"| filter | algorithm | ms per iteration | ratio | ms to time {TIME:g} | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for name, entry in sorted(each.items(), key=lambda item: item[1].value):
        cells = [_bold(name, entry), WHAT[name], figure(entry.value), _times(each, name)]
        cells += [figure(whole[name].value), _times(whole, name)] if name in whole else ["", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _counterpart(name: str) -> str | None:
    return None if name.startswith("aniso") else COUNTERPARTS.get(name, "aniso Perona–Malik")


def _times(entries: Group, name: str) -> str:
    other = _counterpart(name)
    return "" if other is None else f"{entries[name].value / entries[other].value:.3g}"


def _bold(name: str, entry: Measurement) -> str:
    return f"**{name}**" if entry.kind == "ours" else name


def _law_list() -> str:
    lines = [f"- **{law.name.capitalize()}** (tolerance {law.bound:g}): {law.text}" for law in LAWS]
    return "\n".join([*lines, ""])


def _law_table(found: Report) -> str:
    lines = ["| filter | " + " | ".join(law.name for law in LAWS) + " |", "|---|" + "---|" * len(LAWS)]
    for name, entry in group(found, f"law, {LAWS[0].name}").items():
        cells = [_law_cell(group(found, f"law, {law.name}")[name]) for law in LAWS]
        lines.append(f"| {_bold(name, entry)} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _law_cell(entry: Measurement) -> str:
    sign = SIGNS[verdict(entry)]
    return f"{sign} {entry.value:.1e}" if verdict(entry) == "broken" else sign


def _quality_table(found: Report, title: str) -> str:
    _, heading, text = QUALITY[title]
    entries = sorted(group(found, title).items(), key=lambda item: -item[1].value)
    lines = [
        f"### {heading}\n",
        f"{text} Images: {found.settings[title]}.\n",
        "| method | mean | |",
        "|---|---|---|",
    ]
    lines += [f"| {_bold(name, entry)} | {entry.value:.2f} | {entry.note} |" for name, entry in entries]
    return "\n".join([*lines, ""])


def _summary(found: Report) -> str:
    better = list(_better(found))
    lines = ["## Where others are better\n"]
    lines += [f"- {line}" for line in better] if better else ["In none of these tables."]
    return "\n".join([*lines, ""])


def _better(found: Report) -> Iterator[str]:
    for size in sizes(found):
        entries = group(found, f"iteration, {size}")
        for name, entry in entries.items():
            other = _counterpart(name)
            if other is not None and entry.value < entries[other].value:
                yield f"Speed, {size}: an iteration of {name} is faster than one of {other}."
    for law in LAWS:
        entries = group(found, f"law, {law.name}")
        ours = [
            name for name, entry in entries.items() if entry.kind == "ours" and verdict(entry) == "broken"
        ]
        theirs = [
            name for name, entry in entries.items() if entry.kind == "theirs" and verdict(entry) == "kept"
        ]
        if ours and theirs:
            yield f"{law.name.capitalize()}: violated by {', '.join(ours)}; satisfied by {', '.join(theirs)}."
    for title, (verb, heading, _) in QUALITY.items():
        entries = group(found, title)
        for name, entry in entries.items():
            if entry.kind == "theirs" and entry.value > entries[verb].value:
                gap = entry.value - entries[verb].value
                yield f"{heading}: {name} has {entry.value:.2f}, {gap:.2f} more than {verb}."
            elif entry.kind == "theirs" and not entry.note.startswith("best in 0"):
                yield f"{heading}: {name} is {entry.note}, though not on average."


def picture(found: Report, path: Path) -> None:
    """Draw the speed on images, the invariants, and PSNR relative to aniso."""
    drawing, panels = report.figure_of(1, 3, (22, 8.5), width_ratios=[1, 2.6, 0.9])
    _draw_speed(found, panels[0])
    _draw_laws(found, panels[1])
    _draw_quality(found, panels[2])
    machine = found.environment
    drawing.suptitle(f"{machine['processor']}, {machine['cores']} cores, {machine['date']}", fontsize=11)
    report.save_picture(drawing, path, dpi=80, colours=64)


def _draw_speed(found: Report, axes: Any) -> None:
    if not sizes(found):
        axes.set_axis_off()
        return
    size = sizes(found)[0]
    entries = dict(sorted(group(found, f"iteration, {size}").items(), key=lambda item: item[1].value))
    report.bars(axes, entries, "ms", title=f"per iteration, {size} pixels")


def _draw_laws(found: Report, axes: Any) -> None:
    from matplotlib.patches import Rectangle

    names = list(group(found, f"law, {LAWS[0].name}"))
    for column, law in enumerate(LAWS):
        for row, entry in enumerate(group(found, f"law, {law.name}").values()):
            place = (column - 0.5, row - 0.5)
            axes.add_patch(Rectangle(place, 1, 1, facecolor=FACES[verdict(entry)], edgecolor="white"))
            axes.text(column, row, _law_cell(entry).replace("✗ ", ""), ha="center", va="center", fontsize=8)
    axes.set(xlim=(-0.5, len(LAWS) - 0.5), ylim=(len(names) - 0.5, -0.5))
    axes.set_xticks(range(len(LAWS)), [law.name for law in LAWS], rotation=35, ha="right")
    axes.set_yticks(range(len(names)), names)
    for label in axes.get_yticklabels():
        label.set_fontweight("bold" if label.get_text().startswith("aniso") else "normal")
    axes.set_title("invariants: satisfied ✓, or the violation", loc="left", fontweight="bold")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _draw_quality(found: Report, axes: Any) -> None:
    labels, gaps = [], []
    for title, (verb, heading, _) in QUALITY.items():
        entries = group(found, title)
        if title == "coherence" or not entries:
            continue
        for name, entry in sorted(entries.items(), key=lambda item: -item[1].value):
            if name != verb:
                labels.append(name.removesuffix(", tuned"))
                gaps.append(entry.value - entries[verb].value)
        labels.append(f"{heading}:\n{verb} {entries[verb].value:.1f} dB")
        gaps.append(0.0)
    axes.barh(
        range(len(gaps)), gaps, color=[report.COLOURS["theirs"] if gap < 0 else "#d95f02" for gap in gaps]
    )
    axes.set_yticks(range(len(labels)), labels)
    for label in axes.get_yticklabels():
        label.set_fontweight("bold" if " dB" in label.get_text() else "normal")
    axes.axvline(0, color=report.COLOURS["ours"])
    axes.set_xlabel("dB relative to aniso")
    axes.set_title("PSNR relative to aniso", loc="left", fontweight="bold")
    report.plain(axes)
