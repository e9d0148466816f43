"""One tab without a browser: what it computes and when."""

import asyncio
import functools
import gc
import re
import threading
import time
import weakref

import numpy as np
import pytest

import aniso
from aniso.explorer.choosing.choices import Choices
from aniso.explorer.choosing.scene import Source, View
from aniso.explorer.choosing.unknown_pixels import RandomPixels
from tests.explorer.sessions import a_volume, idle, in_a_session, until
from tests.processes import PATIENCE, wait_until


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
            await asyncio.sleep(0)  # faster than any preview
        session.choose(session.choices.with_value("time", 3.0), stamp=60.0)
        await until(lambda: session.result is not None)
        return session.result, notes

    result, notes = in_a_session(scenario)
    assert result.call.options["time"] == 3.0
    stamps = [facts["stamp"] for slot, _, facts in notes.shown if slot == "after" and facts.get("preview")]
    assert stamps == sorted(stamps)
    assert stamps[-1] == 60.0
    assert len(stamps) < 60


@pytest.mark.parametrize("what", ["an image", "a volume"])
def test_the_event_loop_never_waits_for_a_computation(what, monkeypatch):
    beats, verb = [0.0], "enhance" if what == "an image" else "denoise"
    compute = getattr(aniso, verb)

    def waits_for_the_loop(image, **options):
        before = len(beats)
        wait_until(lambda: len(beats) > before + 3)
        return compute(image, **options)

    async def scenario(session, notes):
        monkeypatch.setattr(aniso, verb, functools.wraps(compute)(waits_for_the_loop))
        session.choices = Choices(verb)

        async def beat():
            last = time.thread_time()
            while True:
                await asyncio.sleep(0.005)
                beats.append(time.thread_time() - last)
                last += beats[-1]

        heart = asyncio.create_task(beat())
        await session.open(a_volume if what == "a volume" else lambda: Source.of_sample("camera"))
        await until(lambda: session.result is not None)
        heart.cancel()

    in_a_session(scenario)
    assert max(beats) < 0.5  # seconds for which the thread of the loop itself computed at a stretch


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
        session.change(random_pixels=RandomPixels(0.5, 0))
        session.paint([[10.0, 12.0], [20.0, 12.0]], 3.0, erase=False)
        mask = session.choices.drawn
        session.paint([[60.0, 12.0]], 3.0, erase=False)
        assert session.choices.drawn is mask  # no copies: a stroke takes as long as it is
        await until(lambda: session.result is not None)
        session.film()
        await until(lambda: "unknown" in notes.slots())
        session.change(drawn=None)

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
        session.choices = Choices("upsample")
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
        await until(lambda: gc.collect() >= 0 and [each() for each in watched] == [None, None])
        await until(lambda: not folder.exists())

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


def test_a_late_preview_never_takes_the_place_of_the_result(monkeypatch):
    go_on, previews = threading.Event(), []

    def diffuse(image, model, time, *, scheme, progress, **options):
        if isinstance(scheme, aniso.Explicit):
            return image
        previews.append(time)
        go_on.wait(PATIENCE)
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
        go_on.wait(PATIENCE)
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
        go_on.wait(PATIENCE)
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
