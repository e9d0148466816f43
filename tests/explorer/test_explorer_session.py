"""One tab without a browser: what it computes and when, and that its recipes give the same result."""

import asyncio
import gc
import re
import shlex
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import aniso
from aniso.cli import app
from aniso.explorer.choosing import export
from aniso.explorer.choosing.choices import Choices
from aniso.explorer.choosing.parts import View
from aniso.explorer.choosing.scene import Scene
from aniso.explorer.choosing.source import Source
from aniso.explorer.choosing.unknown_pixels import RandomPixels, paint
from aniso.explorer.computing.previews import Pace
from aniso.explorer.page.session import Session
from aniso.stencil import DeltaStencil


class Notes:
    """A stage that takes notes."""

    def __init__(self):
        self.shown, self.told = [], []

    def show(self, slot, number, rectangle, facts):
        self.shown.append((slot, rectangle, facts))

    def drop(self, *slots):
        pass

    def tell(self, **news):
        self.told.append(news)

    @property
    def error(self):
        said = [news["error"] for news in self.told if "error" in news]
        return said[-1] if said else None

    def slots(self):
        return {slot for slot, _, _ in self.shown}


def in_a_session(scenario):
    """Run a coroutine function with a session and its notes, and close the session."""

    async def run():
        notes = Notes()
        session = Session(notes, Pace())
        try:
            return await asyncio.wait_for(scenario(session, notes), 40)
        finally:
            session.close()

    return asyncio.run(run())


async def until(condition):
    while not condition():
        await asyncio.sleep(0.01)


def a_volume(seed=0, shape=(40, 48, 36)):
    pixels = np.random.default_rng(seed).normal(100, 20, shape).astype(np.float32)
    return Source(aniso.io.Picture(pixels), "volume.npy", "", True)


def test_full_resolution_follows_when_the_hand_rests():
    async def scenario(session, notes):
        session.choices = Choices("denoise")
        assert await session.open(lambda: Source.of_sample("shapes"))
        await until(lambda: session.result is not None)
        return session.result.image, notes

    image, notes = in_a_session(scenario)
    assert np.array_equal(image, aniso.denoise(aniso.samples.shapes().image))
    assert {"before", "after"} <= notes.slots()
    assert notes.error is None
    found = next(news["found"] for news in notes.told if "found" in news)
    assert found["noise"] == pytest.approx(30, rel=0.1)


def test_while_the_hand_moves_only_previews_are_computed_and_the_last_choice_wins():
    async def scenario(session, notes):
        session.choices = Choices("diffuse")
        await session.open(lambda: Source.of_sample("shapes"))
        await until(lambda: session.result is not None)
        notes.shown.clear()
        for number in range(60):
            session.choose(session.choices.with_value("time", 5.0 + 0.1 * number), stamp=float(number))
            await asyncio.sleep(0.005)
        session.choose(session.choices.with_value("time", 3.0), stamp=60.0)
        await until(lambda: session.result is not None)
        return session.result, notes

    result, notes = in_a_session(scenario)
    assert result.call.arguments[1] == 3.0
    stamps = [facts["stamp"] for slot, _, facts in notes.shown if slot == "after" and facts.get("preview")]
    assert stamps == sorted(stamps)
    assert stamps[-1] == 60.0
    assert len(stamps) < 60


@pytest.mark.parametrize("what", ["an image", "a volume"])
def test_the_event_loop_never_waits_for_a_computation(what):
    async def scenario(session, notes):
        session.choices = Choices("enhance" if what == "an image" else "denoise")
        gaps, stop = [], False

        async def beat():
            last = time.perf_counter()
            while not stop:
                await asyncio.sleep(0.005)
                now = time.perf_counter()
                gaps.append(now - last)
                last = now

        heart = asyncio.create_task(beat())
        await until(lambda: gaps)
        begin = time.perf_counter()
        await session.open(a_volume if what == "a volume" else lambda: Source.of_sample("camera"))
        await until(lambda: session.result is not None)
        spent = time.perf_counter() - begin
        stop = True
        await heart
        return spent, gaps

    spent, gaps = in_a_session(scenario)
    assert max(gaps) < 1  # on a busy machine, too
    assert len(gaps) > 10 * spent


def test_a_volume_is_filtered_as_one_and_another_slice_takes_nothing_new():
    source = a_volume()

    async def scenario(session, notes):
        session.choices = Choices("diffuse").with_value("time", 2.0)
        await session.open(lambda: source)
        assert session.scene.whole
        assert session.scene.index == 20
        await until(lambda: session.result is not None)
        result = session.result
        previews = [facts["words"] for slot, _, facts in notes.shown if facts.get("preview")]
        assert "slices" in previews[0]
        notes.shown.clear()
        await session.slice(2, 7)
        await until(lambda: {"before", "after"} <= notes.slots())
        assert session.result is result
        assert not any(facts.get("preview") for slot, _, facts in notes.shown if slot == "after")
        return session.choices.call(session.scene), result.image, session.scene

    call, image, scene = in_a_session(scenario)
    assert np.array_equal(image, aniso.diffuse(source.pixels, *call.arguments, **call.options))
    assert np.array_equal(scene.shown(image), image[:, :, 7])


def test_a_run_over_a_volume_goes_on_while_slices_are_turned_and_is_dropped_when_a_slider_moves(monkeypatch):
    begun, ended, go_on = [], [], threading.Event()

    def slow(image, model, time, *, scheme, progress, **options):
        if image.shape != (40, 48, 36):
            return image  # a preview
        begun.append(time)
        try:
            while not go_on.is_set():
                progress(0.5, 1.0)
                threading.Event().wait(0.001)
            return image + time
        finally:
            ended.append(time)

    async def scenario(session, notes):
        session.choices = Choices("diffuse").with_value("time", 2.0)
        monkeypatch.setattr(aniso, "diffuse", slow)
        source = a_volume()
        await session.open(lambda: source)
        await until(lambda: begun == [2.0])
        await until(lambda: any("progress" in news for news in notes.told))
        await session.slice(1, 3)
        await asyncio.sleep(0.5)
        assert (begun, ended) == ([2.0], [])
        session.choose(session.choices.with_value("time", 3.0))
        await until(lambda: ended == [2.0])
        await until(lambda: begun == [2.0, 3.0])
        await session.slice(1, 5)
        notes.shown.clear()
        go_on.set()
        await until(lambda: session.result is not None)
        assert session.result.call.arguments[1] == 3.0
        # The slice that is looked at now, though the run began when it was another one.
        await until(lambda: any(slot == "after" and not facts["preview"] for slot, _, facts in notes.shown))

    in_a_session(scenario)


def test_a_preview_that_comes_after_the_result_is_not_shown(monkeypatch):
    full_is_there, previewed = threading.Event(), threading.Event()

    def diffuse(image, model, time, *, scheme, progress, **options):
        if not isinstance(scheme, aniso.Explicit):  # a preview
            full_is_there.wait(20)
            previewed.set()
        return image

    async def scenario(session, notes):
        session.choices = Choices("diffuse").with_value("time", 50.0).with_value("scheme", "explicit")
        monkeypatch.setattr(aniso, "diffuse", diffuse)
        await session.open(lambda: Source.of_sample("shapes"))
        await until(lambda: session.result is not None)
        full_is_there.set()
        await until(previewed.is_set)
        await asyncio.sleep(0.3)
        return [facts["preview"] for slot, _, facts in notes.shown if slot == "after"]

    assert in_a_session(scenario) == [False]


def test_a_slice_by_itself_is_an_image():
    async def scenario(session, notes):
        session.choices = Choices("diffuse")
        source = a_volume()
        await session.open(lambda: source)
        await session.filter_whole(False)
        await until(lambda: session.result is not None)
        call = session.choices.call(session.scene)
        expected = aniso.diffuse(source.pixels[20], *call.arguments, **call.options)
        assert np.array_equal(session.result.image, expected)

    in_a_session(scenario)


def test_a_volume_that_takes_too_much_memory_is_refused_in_words_and_slices_still_work(monkeypatch):
    monkeypatch.setattr("aniso.explorer.computing.memory.available", lambda: 2e6)

    async def scenario(session, notes):
        source = a_volume()
        await session.open(lambda: source)
        await until(lambda: notes.error is not None)
        assert "memory" in notes.error
        assert "This slice" in notes.error
        assert session.result is None
        await until(lambda: "after" in notes.slots())  # there is a preview nevertheless
        assert await session.download() is None
        await session.filter_whole(False)
        await until(lambda: session.result is not None)
        assert notes.error is None

    in_a_session(scenario)


def test_a_brush_paints_on_the_slice_that_is_shown():
    async def scenario(session, notes):
        session.choices = Choices("inpaint")
        source = a_volume()
        await session.open(lambda: source)
        await session.slice(1, 30)
        session.paint([[10.0, 12.0]], 3.0, erase=False)
        mask = session.choices.unknown(session.scene)
        assert mask.shape == (40, 48, 36)
        assert mask.sum() == mask[:, 30].sum() > 20
        await session.slice(0, 12)
        assert session.choices.unknown(session.scene).sum() == mask.sum()

    in_a_session(scenario)


def test_masks_are_made_beside_the_event_loop(monkeypatch):
    made = []
    for name in ("unknown", "unknown_here", "chosen_unknown"):
        original = getattr(Choices, name)

        def noted(self, scene, original=original):
            made.append(threading.current_thread())
            return original(self, scene)

        monkeypatch.setattr(Choices, name, noted)

    async def scenario(session, notes):
        session.choices = Choices("inpaint")
        await session.open(lambda: Source.of_sample("shapes"))
        session.show_overlay("ellipses", True)
        await until(lambda: session.result is not None)
        session.draw_at_random(0.5, 0)
        session.paint([[10.0, 12.0], [20.0, 12.0]], 3.0, erase=False)
        mask = session.choices.drawn
        session.paint([[60.0, 12.0]], 3.0, erase=False)
        assert session.choices.drawn is mask  # no copies: a stroke takes as long as it is
        await until(lambda: session.result is not None)
        session.film()
        await until(lambda: "unknown" in notes.slots())
        session.clear_mask()

    in_a_session(scenario)
    assert made
    assert threading.main_thread() not in made


def test_a_file_that_cannot_be_read_leaves_all_as_it_was(tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n and then nothing")

    async def scenario(session, notes):
        await session.open(lambda: Source.of_sample("shapes"))
        scene = session.scene
        assert not await session.open(lambda: Source.of_file(broken))
        assert session.scene is scene
        await until(lambda: "broken.png" in (notes.error or ""))
        await until(lambda: session.result is not None)

    in_a_session(scenario)


def test_what_was_opened_last_is_shown():
    async def scenario(session, notes):
        def slow():
            time.sleep(0.5)
            return Source.of_sample("rings")

        first = asyncio.create_task(session.open(slow))
        await asyncio.sleep(0.05)
        assert await session.open(lambda: Source.of_sample("shapes"))
        await first
        return session.scene.source.stem

    assert in_a_session(scenario) == "shapes"


def test_the_first_sample_does_not_replace_a_file_that_was_opened_earlier():
    async def scenario(session, notes):
        await session.open(lambda: Source.of_sample("shapes"))
        await session.open_first(lambda: Source.of_sample("rings"))
        return session.scene.source.stem

    assert in_a_session(scenario) == "shapes"


@pytest.mark.parametrize(
    ("value", "dtype", "advice"),
    [
        (np.nan, float, "One value of the image is NaN: .* Choose Inpaint"),
        (np.inf, float, "One value of the image is infinite: .* Replace them in the file"),
        (True, bool, "The image must have a real numeric data type, got bool. Convert it"),
    ],
)
def test_what_cannot_be_filtered_is_refused_with_advice(value, dtype, advice):
    pixels = np.zeros((20, 20), dtype)
    pixels[3, 4] = value

    async def scenario(session, notes):
        source = Source(aniso.io.Picture(pixels), "pixels.npy", "", True)
        await session.open(lambda: source)
        assert re.match(advice, notes.error)
        assert not any(news.get("busy") for news in notes.told)
        await idle(session.preview_worker)
        assert "after" not in notes.slots()
        if dtype is float and np.isnan(value):
            session.choose(Choices("inpaint", random_pixels=None))
            await until(lambda: session.result is not None)
            assert notes.error is None

    in_a_session(scenario)


def test_files_are_called_by_their_own_names(tmp_path):
    (tmp_path / "d4.npy").write_bytes(b"")

    async def scenario(session, notes):
        await session.open(lambda: Source.of_file(tmp_path / "d4.npy", name="d4.npy"))
        assert notes.error.startswith("d4.npy is empty")

    in_a_session(scenario)


def test_a_refused_value_is_said_in_the_library_words():
    async def scenario(session, notes):
        session.choices = Choices("diffuse")
        await session.open(lambda: Source.of_sample("shapes"))
        session.choose(session.choices.with_value("sigma", -1.0))
        return notes.error

    assert in_a_session(scenario).startswith("Sigma must")


def test_large_images_send_what_is_visible():
    large = np.random.default_rng(0).random((2600, 2200)).astype(np.float32)

    async def scenario(session, notes):
        session.choices = Choices("diffuse").with_value("time", 0.5)
        source = Source(aniso.io.Picture(large), "large.npy", "", True)
        await session.open(lambda: source)
        session.look(View(left=100, top=200, right=400, bottom=500, scale=2.0))
        session.choose(session.choices.with_value("time", 0.6), stamp=1.0)
        await until(lambda: session.result is not None)
        await until(lambda: {"before-detail", "after-detail"} <= notes.slots())
        previews = [
            entry for entry in notes.shown if entry[2].get("preview") and entry[2].get("stamp") == 1.0
        ]
        return previews[0][1]

    left, top, right, bottom = in_a_session(scenario)
    assert 0 <= left <= 100
    assert 400 <= right < 500
    assert 100 < top <= 200
    assert 500 <= bottom < 600


def test_a_large_image_gets_its_veil(monkeypatch):
    monkeypatch.setattr("aniso.explorer.computing.results.REST", 1000.0)
    large = np.zeros((4200, 3000), np.uint8)

    async def scenario(session, notes):
        session.choices = Choices("inpaint")
        source = Source(aniso.io.Picture(large), "large.png", "", True)
        await session.open(lambda: source)
        await until(lambda: {"unknown", "after"} <= notes.slots() or notes.error)
        assert notes.error is None

    in_a_session(scenario)


def test_a_closed_tab_frees_its_memory():
    async def scenario(session, notes):
        await session.open(lambda: Source.of_sample("shapes"))
        await until(lambda: session.result is not None)
        folder = session.folder
        watched = [weakref.ref(session.scene), weakref.ref(session.result)]
        session.close()
        notes.told.clear()
        await asyncio.sleep(0.2)
        gc.collect()
        assert [each() for each in watched] == [None, None]
        assert not folder.exists()

    in_a_session(scenario)


def test_a_computation_that_nobody_waits_for_is_broken_off(monkeypatch):
    begun, ended = [], []

    def endless(image, model, time, *, scheme, progress, **options):
        if not isinstance(scheme, aniso.Explicit):
            return image  # a preview, which takes a quicker scheme
        begun.append(time)
        try:
            while True:
                progress(0.5, 1.0)
                threading.Event().wait(0.001)
        finally:
            ended.append(time)

    async def scenario(session, notes):
        session.choices = Choices("diffuse").with_value("time", 50.0).with_value("scheme", "explicit")
        monkeypatch.setattr(aniso, "diffuse", endless)
        await session.open(lambda: Source.of_sample("shapes"))
        await until(lambda: begun)
        assert ended == []
        monkeypatch.setattr(
            "aniso.explorer.computing.results.REST", 1000.0
        )  # no other computation takes its place
        session.choose(session.choices.with_value("time", 1.0))
        await until(lambda: ended)

    in_a_session(scenario)


async def idle(worker):
    """Wait until a worker has done all that it was asked for, and what came of it has happened."""
    done = threading.Event()
    worker.submit(lambda ticket: done.set(), "the end")
    await until(done.is_set)
    await asyncio.sleep(0)


def test_a_late_preview_never_takes_the_place_of_the_result(monkeypatch):
    go_on, previews = threading.Event(), []

    def diffuse(image, model, time, *, scheme, progress, **options):
        if isinstance(scheme, aniso.Explicit):
            return image
        previews.append(time)
        go_on.wait(20)
        return image

    def pictures(notes):
        return [facts["preview"] for slot, _, facts in notes.shown if slot == "after"]

    async def scenario(session, notes):
        monkeypatch.setattr(aniso, "diffuse", diffuse)
        session.choices = Choices("diffuse").with_value("time", 50.0).with_value("scheme", "explicit")
        await session.open(lambda: Source.of_sample("shapes"))
        await until(lambda: previews)
        await until(lambda: session.result is not None)
        # Nor of the next choice: its own preview waits behind this one.
        session.choose(session.choices.with_value("time", 60.0))
        go_on.set()
        await until(lambda: previews == [50.0, 60.0])
        await idle(session.preview_worker)
        await until(lambda: session.result is not None)
        await idle(session.full_worker)
        return pictures(notes)

    shown = in_a_session(scenario)
    assert shown[0] is False
    assert shown[-1] is False
    assert shown.count(True) <= 1  # the second one may have been in time


def test_a_preview_of_another_method_is_not_shown(monkeypatch):
    go_on, begun = threading.Event(), threading.Event()
    enhance = aniso.enhance

    def slow(image, **options):
        begun.set()
        go_on.wait(20)
        return enhance(image, **options)

    async def scenario(session, notes):
        monkeypatch.setattr(aniso, "enhance", slow)
        session.choices = Choices("enhance")
        await session.open(lambda: Source.of_sample("shapes"))
        await until(begun.is_set)
        session.choose(Choices("diffuse").with_value("time", 50.0).with_value("scheme", "explicit"))
        monkeypatch.setattr(
            "aniso.explorer.computing.results.Results._request_full", lambda results, call: None
        )
        go_on.set()
        await idle(session.preview_worker)
        return [facts["words"] for slot, _, facts in notes.shown if slot == "after"]

    assert in_a_session(scenario) == [""]  # that of the diffusion


def frames(notes):
    return [facts["number"] for slot, _, facts in notes.shown if slot.startswith("frame")]


def test_the_film_and_the_result_do_not_end_each_other():
    async def scenario(session, notes):
        session.choices = Choices("diffuse").with_value("scheme", "explicit").with_value("time", 40.0)
        await session.open(lambda: Source.of_sample("shapes"))
        session.film()
        await until(lambda: frames(notes))
        await until(lambda: session.result is not None)
        await until(lambda: len(frames(notes)) == 25)
        ends = {facts["end"] for slot, _, facts in notes.shown if slot.startswith("frame")}
        assert ends == {40.0}

    in_a_session(scenario)


def test_a_film_that_is_asked_for_too_early_follows_the_result():
    async def scenario(session, notes):
        session.choices = Choices("denoise")
        await session.open(lambda: Source.of_sample("shapes"))
        session.film()
        await until(lambda: len(frames(notes)) == 25)
        assert session.result is not None
        assert notes.error is None

    in_a_session(scenario)


def test_a_film_that_cannot_be_is_refused_and_the_player_is_reset():
    async def scenario(session, notes):
        session.choices = Choices("denoise").with_value("noise", 0.0)
        await session.open(lambda: Source.of_sample("shapes"))
        await until(lambda: session.result is not None)
        notes.told.clear()
        session.film()
        assert "no scale space" in notes.error
        assert notes.told[-1]["film"] is False
        session.choose(Choices("diffuse"))
        await until(lambda: session.result is not None)
        assert notes.error is None

    in_a_session(scenario)


def test_the_difference_is_chosen_while_the_result_is_on_its_way(monkeypatch):
    from aniso.explorer.showing import rendering

    drawn, go_on, result = threading.Event(), threading.Event(), rendering.result

    def slow(*arguments, **options):
        shot = result(*arguments, **options)
        drawn.set()
        go_on.wait(20)
        return shot

    async def scenario(session, notes):
        monkeypatch.setattr(rendering, "result", slow)
        session.choices = Choices("diffuse").with_value("time", 50.0).with_value("scheme", "explicit")
        await session.open(lambda: Source.of_sample("shapes"))
        await until(drawn.is_set)
        session.show_difference(True)
        go_on.set()
        await until(lambda: session.result is not None)
        await idle(session.preview_worker)
        last = [facts for slot, _, facts in notes.shown if slot == "after"][-1]
        assert not last["preview"]
        assert last["full"] > 0
        assert session.white == last["full"]

    in_a_session(scenario)


VOLUME = np.random.default_rng(5).normal(100, 20, (6, 48, 40)).astype(np.float32)
PHOTOGRAPH = np.random.default_rng(4).integers(0, 255, (40, 52, 3), dtype=np.uint8)
DEEP = np.random.default_rng(3).integers(0, 60000, (45, 38), dtype=np.uint16)


def drawn(shape, points, radius):
    mask = np.zeros(shape, bool)
    paint(mask, points, radius)
    return mask


RECIPES = {
    "denoise a photograph": ("photo.png", Choices("denoise").with_value("noise", 7.3)),
    "denoise one diffusion": ("deep.tif", Choices("denoise").with_value("mix", False)),
    "enhance": ("deep.tif", replace(Choices("enhance"), stencil=DeltaStencil(0.3, 0.5))),
    "inpaint at random": ("photo.png", Choices("inpaint", random_pixels=RandomPixels(0.63, 4))),
    "inpaint what was drawn": (
        "deep.tif",
        Choices(
            "inpaint",
            random_pixels=None,
            drawn=drawn((45, 38), [[5, 7], [30, 20]], 4.5),
        ).with_value("sigma", 0.9),
    ),
    "inpaint what is missing": ("missing.npy", Choices("inpaint", random_pixels=None)),
    "inpaint what is missing and at random": (
        "missing.npy",
        Choices("inpaint", random_pixels=RandomPixels(0.3)),
    ),
    "inpaint what is missing in colours": (
        "missing colours.npy",
        Choices("inpaint", random_pixels=None, drawn=drawn((40, 52), [[5, 7]], 4.5)),
    ),
    "a name with quotes": ("5\" 'photo'.png", Choices("diffuse")),
    "upsample": ("photo.png", Choices("upsample").with_value("factor", 3).with_value("time", 5.5)),
    "edge-enhancing": ("deep.tif", Choices("diffuse").with_value("contrast", 312.5)),
    "coherence-enhancing": (
        "photo.png",
        replace(Choices("diffuse", "coherence-enhancing"), stencil=DeltaStencil(0.44, 0.98))
        .with_value("scheme", "explicit")
        .with_value("time", 2.7),
    ),
    "homogeneous": ("photo.png", Choices("diffuse", "homogeneous").with_value("scheme", "fsi")),
    "a slice of a volume": ("volume.npy", Choices("diffuse", "perona-malik")),
    "a slice, filled in": ("volume.npy", Choices("inpaint", random_pixels=RandomPixels(0.5))),
    "a volume, denoised": ("volume.npy, whole", Choices("denoise").with_value("noise", 18.5)),
    "a volume, enhanced": ("scan.nii.gz, whole", Choices("enhance").with_value("plates", False)),
    "a volume, filled in": ("scan.nii.gz, whole", Choices("inpaint", random_pixels=RandomPixels(0.6, 2))),
    "a volume, filled in where it was drawn": (
        "volume.npy, whole",
        Choices("inpaint", random_pixels=None, drawn=VOLUME > 120),
    ),
    "a volume, finer": ("pages.tif, whole", Choices("upsample").with_value("time", 1.5)),
    "a volume, diffused": (
        "scan.nii.gz, whole",
        replace(
            Choices("diffuse", "coherence-enhancing"), stencil=DeltaStencil(0.44, 0.98), file_spacing=True
        )
        .with_value("plates", False)
        .with_value("rho", 1.5),
    ),
    "a volume of few slices": ("thin.npy, whole", Choices("diffuse").with_value("time", 1.25)),
    "a sample of a volume": ("fibres, whole", Choices("diffuse").with_value("time", 1.25)),
    "a slice of a sample": ("fibres, slice", Choices("diffuse")),
    "a sample": ("shapes", Choices("denoise")),
    "a sample, filled in": ("fingerprint", Choices("inpaint")),
    "a photograph of the samples": ("page", Choices("diffuse")),
}


def scene_of(name, folder):
    aniso.io.write(folder / "photo.png", PHOTOGRAPH)
    aniso.io.write(folder / "deep.tif", DEEP)
    aniso.io.write(folder / "5\" 'photo'.png", PHOTOGRAPH)
    missing = np.where(np.random.default_rng(1).random(DEEP.shape) < 0.3, np.nan, DEEP)
    aniso.io.write(folder / "missing.npy", missing)
    aniso.io.write(folder / "missing colours.npy", np.where(PHOTOGRAPH > 240, np.nan, PHOTOGRAPH))
    aniso.io.write(folder / "volume.npy", VOLUME)
    aniso.io.write(folder / "thin.npy", VOLUME[:4])
    aniso.io.write(folder / "pages.tif", VOLUME[:3, :12, :15].astype(np.uint16))
    scan = aniso.io.Picture(VOLUME.astype(np.int16), spacing=(2.5, 1.25, 1.25), unit="mm")
    aniso.io.write(folder / "scan.nii.gz", scan)
    name, _, how = name.partition(", ")
    source = Source.of_file(folder / name, name=name) if "." in name else Source.of_sample(name)
    return Scene(source, 1, 17, how == "whole") if source.is_volume else Scene(source)


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_give_the_result_exactly(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file, choices = RECIPES[name]
    scene = scene_of(file, tmp_path)
    call = choices.call(scene)
    result, _ = call(scene.filtered, lambda done, total: None)

    words: dict[str, Any] = {}
    exec(export.to_python(choices, scene), words)
    assert words["result"].dtype == result.dtype
    assert np.array_equal(words["result"], result)
    target = Path(export.output_name(call, scene))
    as_downloaded = aniso.io.read(aniso.io.write("download" + scene.suffix, result, like=scene.like))
    written = aniso.io.read(target)
    assert written.pixels.dtype == as_downloaded.pixels.dtype == scene.source.picture.dtype
    assert np.array_equal(written.pixels, as_downloaded.pixels)
    target.unlink()

    for line in export.to_command(choices, scene).splitlines():
        program, *arguments = shlex.split(line)
        if program == "aniso":
            answer = CliRunner().invoke(app, arguments, prog_name="aniso")
            assert answer.exit_code == 0, answer.output
        else:
            assert (program, arguments[0], len(arguments)) == ("python", "-c", 2)
            exec(arguments[1], {})
    stem = target.name.removesuffix(scene.suffix)
    by_command = aniso.io.read(next(iter(tmp_path.glob(f"{stem}.*"))))
    assert np.array_equal(by_command.pixels, written.pixels)


def test_there_is_no_recipe_for_filling_in_nothing():
    choices, scene = Choices("inpaint", random_pixels=None), Scene(Source.of_sample("shapes"))
    for recipe in (export.to_python, export.to_command):
        with pytest.raises(ValueError, match=r"no unknown pixels yet\. Mark"):
            recipe(choices, scene)


def test_a_recipe_fits_into_a_command_line():
    missing = np.where(np.random.default_rng(1).random((1200, 1200)) < 0.3, np.nan, np.float32(7))
    scene = Scene(Source(aniso.io.Picture(missing), "missing.npy", "aniso.io.read('missing.npy')", True))
    assert len(export.to_command(Choices("inpaint", random_pixels=None), scene)) < 1000


def test_a_recipe_in_a_shell(tmp_path):
    choices, scene = RECIPES["a slice, filled in"][1], scene_of("volume.npy", tmp_path)
    shell = f'aniso() {{ "{sys.executable}" -m aniso "$@"; }}; python() {{ "{sys.executable}" "$@"; }}\n'
    program = shell + export.to_command(choices, scene)
    subprocess.run(["bash", "-ec", program], check=True, capture_output=True, cwd=tmp_path)
    call = choices.call(scene)
    written = aniso.io.read(tmp_path / export.output_name(call, scene))
    assert np.array_equal(written.pixels, call(scene.image, lambda done, total: None)[0])
