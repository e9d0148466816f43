"""Volumes in a tab without a browser: as one, slice by slice, and too large."""

import asyncio
import threading

import numpy as np
import pytest

import aniso
from aniso.explorer.choosing.choices import Choices
from aniso.explorer.choosing.scene import Part, Source, View, block_means
from aniso.explorer.choosing.unknown_pixels import RandomPixels
from aniso.explorer.computing import previews, results
from aniso.explorer.computing.previews import Slab
from tests.explorer.sessions import a_volume, afford, idle, in_a_session, layers, until
from tests.processes import PATIENCE


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
    assert np.array_equal(image, aniso.diffuse(source.pixels, **call.options))
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
        assert session.result.call.options["time"] == 3.0
        # The slice that is looked at now, though the run began when it was another one.
        await until(lambda: any(slot == "after" and not facts["preview"] for slot, _, facts in notes.shown))

    in_a_session(scenario)


def test_a_preview_that_comes_after_the_result_is_not_shown(monkeypatch):
    full_is_there, previewed = threading.Event(), threading.Event()

    def diffuse(image, model, time, *, scheme, progress, **options):
        if not isinstance(scheme, aniso.Explicit):  # a preview
            full_is_there.wait(PATIENCE)
            previewed.set()
        return image

    async def scenario(session, notes):
        session.choices = Choices("diffuse").with_value("time", 50.0).with_value("scheme", "explicit")
        monkeypatch.setattr(aniso, "diffuse", diffuse)
        await session.open(lambda: Source.of_sample("shapes"))
        await until(lambda: session.result is not None)
        full_is_there.set()
        await until(previewed.is_set)
        await idle(session.preview_worker)
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
        expected = aniso.diffuse(source.pixels[20], **call.options)
        assert np.array_equal(session.result.image, expected)

    in_a_session(scenario)


def test_a_volume_that_takes_too_much_memory_is_refused_in_words_and_slices_still_work(monkeypatch):
    monkeypatch.setattr("aniso.explorer.computing.results.available_memory", lambda: 2e6)

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


class TestSlabs:
    @pytest.mark.parametrize("axis", [0, 1, 2])
    def test_with_its_halo_it_gives_the_slice_of_the_result(self, axis):
        scene = layers(axis, spacing=(1.5, 1.0, 1.25))
        call = Choices("diffuse").with_value("time", 0.8).with_value("cycles", 1).call(scene)
        quick = previews.rehearse(call, scene)
        part = previews.part(scene, View.of_all(scene.shape), quick, afford(1e9))
        assert part.factor == 1
        assert 2 * part.depth + 1 < scene.extent[axis]
        trial = previews.coarsen(quick, scene, part)
        assert np.array_equal(trial.slab.shown(trial.slab.volume), scene.image)
        result, _ = trial.call(trial.slab.volume, lambda done, total: None)
        full, _ = call(scene.filtered, lambda done, total: None)
        assert np.allclose(trial.slab.shown(result), scene.shown(full), atol=1e-3)
        assert not np.allclose(trial.slab.shown(result), scene.image, atol=1)

    def test_a_coarse_one_resembles_the_slice_of_the_result(self):
        scene = layers(1)
        call = Choices("diffuse").with_value("contrast", 8.0).call(scene)  # well below that of the layers
        quick = previews.rehearse(call, scene)
        part = previews.part(scene, View.of_all(scene.shape), quick, afford(8000))
        assert part.factor > 1
        assert part.pixels < 10_000
        trial = previews.coarsen(quick, scene, part)
        result, _ = trial.call(trial.slab.volume, lambda done, total: None)
        expected = block_means(scene.shown(call(scene.filtered, lambda done, total: None)[0]), part.factor)
        assert np.corrcoef(trial.slab.shown(result).ravel(), expected.ravel())[0, 1] > 0.9

    @pytest.mark.parametrize("method", ["denoise", "enhance", "inpaint", "upsample"])
    def test_verbs_preview_the_slice_by_itself(self, method):
        scene = layers(0, spacing=(3.0, 1.0, 1.0))
        choices = Choices(method, random_pixels=RandomPixels(0.5)).with_value("contrast", 4.0)
        quick = previews.rehearse(choices.call(scene), scene)
        part = previews.part(scene, View.of_all(scene.shape), quick, afford(1e9))
        trial = previews.coarsen(quick, scene, part)
        result, _ = trial.call(trial.slab.volume, lambda done, total: None)
        assert result.ndim == 2
        assert "of this slice only" in trial.words
        assert not previews.is_exact(choices.call(scene), part, scene)

    def test_no_more_slices_than_there_are(self):
        scene = layers(0, index=1)
        slab = Slab.of(scene, Part(0, 14, 0, 15, factor=3, depth=50), None)
        assert slab.volume.shape == (12, 14, 15)
        assert slab.middle == 0
        assert slab.spacing == (3.0, 3.0, 3.0)


class TestMemory:
    def test_what_volumes_take(self):
        scene, voxels = layers(0), 36 * 40 * 44
        assert results.needed_memory(Choices("denoise").call(scene), scene) == 10 * 4 * voxels
        finer = Choices("upsample").with_value("factor", 3).call(scene)
        assert results.needed_memory(finer, scene) == 13 * 27 * 4 * voxels

    def test_too_much_is_refused(self, monkeypatch):
        scene = layers(0)
        call = Choices("enhance").call(scene)
        assert results.available_memory() > 1e7
        results.check_memory(call, scene)
        monkeypatch.setattr(results, "available_memory", lambda: 4e6)
        with pytest.raises(MemoryError, match=r"needs about 0\.0051 GB .*, but only 0\.0040 GB are free"):
            results.check_memory(call, scene)
