"""What the explorer is made of, without a browser: scenes, controls, previews, masks, pictures, overlays."""

import dataclasses
import io
import threading
import time
from functools import partial
from typing import Any

import numpy as np
import pytest
from PIL import Image

import aniso
from aniso.explorer.choosing import unknown_pixels
from aniso.explorer.choosing.choices import AUTO, Choices, methods, suggest_contrast
from aniso.explorer.choosing.controls import LOG, controls
from aniso.explorer.choosing.parts import Part, View, block_means
from aniso.explorer.choosing.scene import Scene
from aniso.explorer.choosing.source import Source, sample_names
from aniso.explorer.choosing.unknown_pixels import RandomPixels
from aniso.explorer.computing import memory, previews
from aniso.explorer.computing.previews import Pace
from aniso.explorer.computing.slabs import Slab
from aniso.explorer.computing.workers import Stale, Ticket, Worker
from aniso.explorer.page import stencil_tab
from aniso.explorer.showing import overlays, pictures, rendering
from aniso.explorer.showing.pictures import Album
from aniso.io.picture import FileError, Picture
from aniso.models import kinds
from aniso.parameters import of_model
from aniso.verbs.info import summary_rows


def scene_of(array, **options):
    return Scene(Source(Picture(array, **options), "array.npy", "nothing", True))


@pytest.fixture(scope="module")
def shapes():
    return Scene(Source.of_sample("shapes"))


class TestScenes:
    @pytest.mark.parametrize("name", sample_names())
    def test_every_sample_opens(self, name):
        scene = Scene(Source.of_sample(name))
        assert min(scene.shape) > 60
        assert scene.channel_axis in (None, -1)
        assert np.array_equal(eval(scene.source.line, {"aniso": aniso}), scene.source.pixels)

    def test_slices_of_a_volume(self, tmp_path):
        volume = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)
        path = aniso.io.write(tmp_path / "volume.npy", volume)
        source = Source.of_file(path)
        assert source.is_volume
        for axis in range(3):
            assert np.array_equal(Scene(source, axis, 2).image, np.take(volume, 2, axis))

    def test_the_spacing_of_a_slice_is_that_of_its_axes(self):
        picture = Picture(np.zeros((4, 5, 6)), spacing=(3.0, 2.0, 1.5))
        source = Source(picture, "volume.nii", "", True)
        assert [Scene(source, axis, 0).spacing for axis in range(3)] == [(2.0, 1.5), (3.0, 1.5), (3.0, 2.0)]

    def test_colours_in_an_array(self, tmp_path):
        path = aniso.io.write(tmp_path / "colours.npy", np.zeros((5, 6, 3)))
        assert Scene(Source.of_file(path)).channel_axis == -1

    def test_too_many_axes(self, tmp_path):
        path = aniso.io.write(tmp_path / "much.npy", np.zeros((2, 3, 4, 5)))
        with pytest.raises(FileError, match="4 axes"):
            Source.of_file(path)

    def test_block_means_keep_the_mean_and_the_shape(self):
        image = np.random.default_rng(0).random((12, 18, 3))
        coarse = block_means(image, 3)
        assert coarse.shape == (4, 6, 3)
        assert np.isclose(coarse.mean(), image.mean())
        assert block_means(image[:11], 3).shape == (4, 6, 3)

    def test_the_grey_range(self):
        assert scene_of(np.full((9, 9), 7, np.uint8)).grey_range == (0.0, 255.0)
        low, high = scene_of(np.linspace(-3, 5, 10000).reshape(100, 100)).grey_range
        assert -3 <= low < -2.9
        assert 4.9 < high <= 5
        assert scene_of(np.full((9, 9), np.nan)).grey_range == (0.0, 1.0)


class TestControls:
    @pytest.mark.parametrize("method", methods())
    def test_every_parameter_has_words_and_a_range_that_holds_its_default(self, shapes, method):
        for model in kinds() if method == "diffuse" else ("edge-enhancing",):
            for control in controls(Choices(method=method, model=model), shapes, {}):
                assert control.meaning
                assert control.label
                if control.kind == "number":
                    assert control.low < control.high
                    assert control.scale != LOG or control.low > 0
                    if control.value != AUTO:
                        assert control.low <= control.value <= control.high
                elif control.kind == "choice":
                    assert control.value in control.choices

    @pytest.mark.parametrize("name", kinds())
    def test_every_field_of_a_model_is_a_control(self, shapes, name):
        shown = {control.name: control for control in controls(Choices("diffuse", name), shapes, {})}
        for field in of_model(kinds()[name]).values():
            if not field.about.for_volumes:
                assert shown[field.name].symbol == field.about.symbol
                assert shown[field.name].meaning == field.about.meaning

    @pytest.mark.parametrize(("method", "model"), [("diffuse", "coherence-enhancing"), ("enhance", "")])
    def test_plates_are_for_volumes(self, method, model):
        source, choices = Source.of_sample("layers"), Choices(method, model)
        slice_by_itself, volume = Scene(source, 0, 9), Scene(source, 0, 9, whole=True)
        assert "plates" not in {control.name for control in controls(choices, slice_by_itself, {})}
        assert "plates" in {control.name for control in controls(choices, volume, {})}
        lines = choices.with_value("plates", False)
        assert "plates=False" not in repr(lines.call(slice_by_itself))
        given = lines.call(volume)
        assert given.options.get("plates") is False or given.arguments[0].plates is False

    def test_ranges_follow_the_grey_scale_of_the_image(self, shapes):
        dim = scene_of(shapes.image / 1000)

        def contrast(scene):
            found = controls(Choices("diffuse"), scene, {})
            return next(control for control in found if control.name == "contrast")

        bright, weak = contrast(shapes), contrast(dim)
        assert weak.high == pytest.approx(bright.high / 1000, rel=0.1)
        assert weak.low < weak.chosen < weak.high
        assert weak.chosen == pytest.approx(bright.chosen / 1000, rel=0.01)

    def test_auto_tells_what_was_chosen(self, shapes):
        found = {control.name: control for control in controls(Choices(), shapes, {"noise": 29.5})}
        assert found["noise"].value == AUTO
        assert found["noise"].chosen == 29.5

    def test_explicit_steps_have_no_cycles(self, shapes):
        choices = Choices("diffuse").with_value("scheme", "explicit")
        assert "cycles" not in {control.name for control in controls(choices, shapes, {})}


class TestChoices:
    def test_each_method_keeps_its_own_values(self):
        choices = Choices("denoise").with_value("time", 3.0)
        assert choices.value("time") == 3.0
        other = dataclasses.replace(choices, method="enhance")
        assert other.value("time") == AUTO
        assert choices.with_value("time", None).value("time") == AUTO

    def test_what_is_left_to_the_library_is_not_given(self, shapes):
        assert Choices("denoise").call(shapes).options == {}
        call = Choices("denoise").with_value("noise", 12.0).with_value("mix", False).call(shapes)
        assert call.options == {"noise": 12.0, "mix": False}

    def test_a_model_with_a_suggest_contrast(self, shapes):
        model, time = Choices("diffuse").call(shapes).arguments
        assert model == aniso.EdgeEnhancing(contrast=suggest_contrast(shapes, "edge-enhancing"))
        assert time == 10.0

    def test_nan_is_unknown(self):
        image = np.ones((20, 20))
        image[3, 4] = np.nan
        choices = Choices("inpaint", random_pixels=None)
        assert choices.unknown(scene_of(image)).sum() == 1


def test_none_has_no_unit():
    info = aniso.denoise(np.full((32, 32), 7.0), return_info=True)[1]
    rows = dict(summary_rows([info]))
    assert "none" in rows.values()
    assert not [words for words in rows.values() if words.startswith("none ")]


class TestMasks:
    def test_a_point_is_a_disc(self):
        mask = np.zeros((41, 41), bool)
        unknown_pixels.paint(mask, [[20.5, 20.5]], 10)
        assert mask.sum() == pytest.approx(np.pi * 100, rel=0.03)
        assert np.array_equal(mask, mask.T)
        assert np.array_equal(mask, mask[::-1])

    def test_erasing_takes_it_back(self):
        stroke = [[5.0, 5.0], [30.0, 12.0], [70.0, -4.0]]
        mask = np.zeros((20, 40), bool)
        unknown_pixels.paint(mask, stroke, 4)
        assert mask.any()
        unknown_pixels.paint(mask, stroke, 4, erase=True)
        assert not mask.any()

    def test_a_random_mask_is_made_once(self):
        pixels = unknown_pixels.RandomPixels(0.4, 3)
        mask = pixels.mask((13, 7))
        assert pixels.mask((13, 7)) is mask
        assert not mask.flags.writeable
        assert unknown_pixels.RandomPixels(0.4, 3) == pixels
        assert Choices().random_pixels is not Choices().random_pixels  # so that it goes with its tab

    def test_of_a_volume_the_shown_slice_alone(self):
        scene = layers(1, index=7)
        scene.source.pixels[3, 7, 5] = np.nan
        choices = Choices("inpaint")
        assert np.array_equal(choices.unknown_here(scene), scene.shown(choices.unknown(scene)))
        assert choices.unknown_here(scene)[3, 5]

    def test_the_line_gives_the_mask_back(self):
        mask = np.random.default_rng(0).random((13, 7)) < 0.3
        import base64
        import zlib

        words = {"np": np, "base64": base64, "zlib": zlib}
        assert np.array_equal(eval(unknown_pixels.mask_line(mask), words), mask)
        pixels = unknown_pixels.RandomPixels(0.4, 3)
        assert np.array_equal(eval(pixels.line((13, 7)), words), pixels.mask((13, 7)))

    def test_means_of_known_pixels(self):
        image = np.array([[1.0, 3.0, 5.0, 9.0], [1.0, 99.0, 99.0, 99.0]])
        coarse, unknown = unknown_pixels.known_means(image, image == 99, 2)
        assert coarse[0, 0] == pytest.approx(5 / 3)
        assert coarse[0, 1] == 7
        assert not unknown.any()
        assert unknown_pixels.known_means(image, np.ones((2, 4), bool), 2)[1].all()


def afford(pixels):
    return lambda call, factor: pixels


class TestPreviews:
    def test_a_small_image_is_computed_as_it_is(self, shapes):
        call = Choices("diffuse").call(shapes)
        quick = previews.rehearse(call, shapes)
        part = previews.part(shapes, View.of_all(shapes.shape), quick, afford(1e6))
        trial = previews.coarsen(quick, shapes, part)
        assert part == Part(0, 256, 0, 256, 1)
        assert previews.is_exact(call, part, shapes)
        assert np.array_equal(trial.image, shapes.image)

    def test_a_preview_that_takes_a_shortcut_is_not_the_result(self, shapes):
        everything = Part(0, 256, 0, 256, 1)
        for method, exact in {"denoise": True, "enhance": False, "inpaint": False, "upsample": True}.items():
            assert previews.is_exact(Choices(method).call(shapes), everything, shapes) == exact
        one = Choices("enhance").with_value("refine", False).call(shapes)
        assert previews.is_exact(one, everything, shapes)
        long = Choices("diffuse").with_value("scheme", "explicit").with_value("time", 50.0).call(shapes)
        assert not previews.is_exact(long, everything, shapes)
        assert not previews.is_exact(one, Part(0, 128, 0, 128, 2), shapes)

    def test_less_time_makes_it_coarser(self):
        scene = scene_of(np.zeros((512, 512)))
        call = Choices("diffuse").call(scene)
        view = View.of_all((512, 512))
        assert [previews.part(scene, view, call, afford(n)).factor for n in (3e5, 7e4, 2e4)] == [1, 2, 4]

    def test_large_images_preview_what_is_visible(self):
        scene = scene_of(np.zeros((4000, 6000), np.uint8))
        view = View(left=2000, top=1000, right=2400, bottom=1300, scale=2.0)
        part = previews.part(scene, view, Choices("diffuse").call(scene), afford(1e6))
        left, top, right, bottom = part.rectangle
        assert part.factor == 1
        assert 1900 < left <= 2000 < 2400 <= right < 2500
        assert 900 < top <= 1000 < 1300 <= bottom < 1400

    def test_no_finer_than_the_screen(self):
        scene = scene_of(np.zeros((4000, 6000), np.uint8))
        view = View(left=0, top=0, right=6000, bottom=4000, scale=0.2)
        assert previews.part(scene, view, Choices("diffuse").call(scene), afford(1e9)).factor == 5

    def test_upsampling_gets_a_smaller_part(self, shapes):
        call = Choices("upsample").call(shapes)
        part = previews.part(shapes, View.of_all(shapes.shape), call, afford(64 * 64))
        assert part.factor == 1
        assert part.pixels == pytest.approx(64 * 64, rel=0.05)

    @pytest.mark.parametrize("method", methods())
    def test_a_coarse_preview_resembles_the_result(self, method):
        scene = scene_of(aniso.samples.fingerprint(256, period=16.0, noise=15.0).image)
        call = Choices(method, model="edge-enhancing", random_pixels=RandomPixels(0.5)).call(scene)
        factor = 1 if method == "upsample" else 2
        part = Part(0, 256 // factor, 0, 256 // factor, factor)
        trial = previews.coarsen(previews.rehearse(call, scene), scene, part)
        result, _ = trial.call(trial.image, lambda done, total: None)
        full, _ = call(scene.image, lambda done, total: None)
        expected = block_means(full, full.shape[0] // result.shape[0])
        assert np.abs(result - expected).mean() < 0.35 * np.abs(expected - expected.mean()).mean()

    def test_the_pace_is_learned(self, shapes):
        call, pace = Choices("denoise").call(shapes), Pace()
        for _ in range(6):
            pace.record(call, 10_000, 0.001)
        fast = pace.affordable(call)
        for _ in range(6):
            pace.record(call, 10_000, 0.02)
        assert fast > 1.5 * pace.affordable(call)


def layers(axis, index=20, shape=(36, 40, 44), **options):
    """A scene of folded layers, filtered as a volume."""
    volume = aniso.samples.layers(shape, noise=20.0).image.astype(np.float32)
    return Scene(Source(Picture(volume, **options), "layers.npy", "", True), axis, index, whole=True)


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
        assert np.array_equal(trial.shown(trial.image), scene.image)
        result, _ = trial.call(trial.image, lambda done, total: None)
        full, _ = call(scene.filtered, lambda done, total: None)
        assert np.allclose(trial.shown(result), scene.shown(full), atol=1e-3)
        assert not np.allclose(trial.shown(result), scene.image, atol=1)

    def test_a_coarse_one_resembles_the_slice_of_the_result(self):
        scene = layers(1)
        call = Choices("diffuse").with_value("contrast", 8.0).call(scene)  # well below that of the layers
        quick = previews.rehearse(call, scene)
        part = previews.part(scene, View.of_all(scene.shape), quick, afford(8000))
        assert part.factor > 1
        assert part.pixels < 10_000
        trial = previews.coarsen(quick, scene, part)
        result, _ = trial.call(trial.image, lambda done, total: None)
        expected = block_means(scene.shown(call(scene.filtered, lambda done, total: None)[0]), part.factor)
        assert np.corrcoef(trial.shown(result).ravel(), expected.ravel())[0, 1] > 0.9

    @pytest.mark.parametrize("method", ["denoise", "enhance", "inpaint", "upsample"])
    def test_verbs_preview_the_slice_by_itself(self, method):
        scene = layers(0, spacing=(3.0, 1.0, 1.0))
        choices = Choices(method, random_pixels=RandomPixels(0.5)).with_value("contrast", 4.0)
        quick = previews.rehearse(choices.call(scene), scene)
        part = previews.part(scene, View.of_all(scene.shape), quick, afford(1e9))
        trial = previews.coarsen(quick, scene, part)
        result, _ = trial.call(trial.image, lambda done, total: None)
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
        assert memory.needed(Choices("denoise").call(scene), scene) == 60 * 4 * voxels
        one = Choices("denoise").with_value("mix", False).call(scene)
        assert memory.needed(one, scene) == 32 * 4 * voxels
        finer = Choices("upsample").with_value("factor", 3).call(scene)
        assert memory.needed(finer, scene) == 12 * 27 * 4 * voxels

    def test_too_much_is_refused(self, monkeypatch):
        scene = layers(0)
        call = Choices("enhance").call(scene)
        assert memory.available() > 1e7
        memory.check(call, scene)
        monkeypatch.setattr(memory, "available", lambda: 1e7)
        with pytest.raises(MemoryError, match=r"needs about 0\.015 GB .*, but only 0\.010 GB are free"):
            memory.check(call, scene)


class TestWorkers:
    def test_stale_requests_are_dropped_and_never_queued(self):
        worker, begun, go_on, done = (
            Worker("test", interrupts=False),
            threading.Event(),
            threading.Event(),
            [],
        )

        def job(number):
            def run(ticket):
                begun.set()
                go_on.wait(10)
                done.append(number)

            return run

        worker.submit(job(0))
        assert begun.wait(10)
        for number in range(1, 100):
            worker.submit(job(number))
        go_on.set()
        worker.close()
        assert done == [0, 99]

    def test_a_new_request_ends_the_running_one(self):
        worker, begun, ended = Worker("test", interrupts=True), threading.Event(), []

        def endless(ticket):
            begun.set()
            try:
                while True:
                    ticket.progress(0.5, 1.0)
                    time.sleep(0.001)
            finally:
                ended.append("endless")

        worker.submit(endless)
        assert begun.wait(10)
        worker.submit(lambda ticket: ended.append("new"))
        worker.close()
        assert ended == ["endless", "new"]

    def test_without_a_request_there_is_no_thread(self):
        worker = Worker("an idle one", interrupts=True)
        assert "an idle one" not in {thread.name for thread in threading.enumerate()}
        worker.withdraw()
        worker.close()

    def test_lanes_do_not_drop_each_other(self):
        worker, go_on, done = Worker("test", interrupts=True), threading.Event(), []

        def noted(lane, ticket):
            done.append(lane)

        worker.submit(lambda ticket: go_on.wait(10), "first")
        for lane in ("a", "b", "a"):
            worker.submit(partial(noted, lane), lane)
        go_on.set()
        worker.close()
        assert sorted(done) == ["a", "b"]


class TestPictures:
    def test_shown_and_encoded(self):
        image = np.random.default_rng(0).integers(0, 255, (20, 30, 3), dtype=np.uint8)
        picture = pictures.encode(pictures.shown(image, (0.0, 255.0)), lossless=True)
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(picture.content))), image)
        assert (picture.kind, picture.width, picture.height) == ("image/png", 30, 20)

    def test_a_large_veil_keeps_its_alpha(self):
        picture = pictures.tinted(np.full((1600, 1500), 0.5), (10, 20, 30))
        with Image.open(io.BytesIO(picture.content)) as veil:
            assert (veil.mode, veil.size) == ("RGBA", (1500, 1600))
            assert veil.getpixel((1499, 3)) == (10, 20, 30, 127)

    def test_other_channels_are_averaged_and_nan_is_black(self):
        assert pictures.shown(np.ones((4, 5, 2)), (0.0, 2.0)).shape == (4, 5)
        assert pictures.shown(np.full((2, 2), np.nan), (0.0, 1.0)).max() == 0

    def test_no_difference_is_mid_grey(self):
        image = np.random.default_rng(0).random((16, 16))
        seen, full = pictures.difference(image, image, (0.0, 1.0))
        assert (seen == 128).all()
        assert full > 0
        brighter, full = pictures.difference(image, image + 0.25, (0.0, 1.0))
        assert (brighter == 255).all()
        assert full == pytest.approx(0.25, rel=1e-3)


class TestAlbum:
    def test_the_last_few_of_each_slot_are_kept(self):
        album = Album()
        numbers = [album.add("after", pictures.Encoded(bytes([k]), "image/png", 1, 1)) for k in range(5)]
        other = album.add("before", pictures.Encoded(b"", "image/png", 1, 1))
        kept = [album.get("after", number) for number in numbers]
        assert [picture and picture.content for picture in kept] == [None, None, b"\x02", b"\x03", b"\x04"]
        assert album.get("before", numbers[-1]) is None  # a number stands for one picture
        album.clear(but=["before"])
        assert album.get("after", numbers[-1]) is None
        assert album.drop("before")
        assert album.get("before", other) is None
        assert not album.drop("before")


class TestOverlays:
    def test_ellipses_lie_along_edges(self):
        image = np.zeros((64, 64))
        image[:, 32:] = 255.0
        field = overlays.Field.of(scene_of(image), aniso.EdgeEnhancing(contrast=2.0), None)
        x, _, long, short, angle = min(field.ellipses(), key=lambda each: abs(each[0] - 32))
        assert abs(x - 32) < 2
        assert long == pytest.approx(1.0, abs=0.01)
        assert short < 0.1
        assert abs(np.sin(angle)) == pytest.approx(1.0, abs=0.01)  # upwards, as the edge
        veil = np.asarray(Image.open(io.BytesIO(field.stopped().content)))[..., 3]
        assert veil[32, 32] > 180
        assert veil[32, 5] == 0

    @pytest.mark.parametrize("axis", [0, 1, 2])
    def test_in_volumes_the_plane_of_the_slice_is_shown(self, axis):
        volume = np.zeros((24, 28, 32), np.float32)
        volume[:, 14:] = 255.0  # an edge across y
        scene = Scene(Source(Picture(volume), "edge.npy", "", True), axis, 13, whole=True)
        field = overlays.Field.of(scene, aniso.EdgeEnhancing(contrast=2.0), None)
        rows, columns = scene.shape
        larger, smaller = field.eigenvalues
        assert larger.shape == (rows, columns)
        assert larger[rows // 2, columns // 2] == pytest.approx(1.0, abs=0.01)
        # Seen along y, the edge lies in the plane, and the flow in it is free.
        assert (smaller[rows // 2, columns // 2] > 0.9) == (axis == 1)
        gradients = overlays.Gradients.of(scene, 1.0, None)
        assert gradients.values[-1] > 50
        assert len(gradients.values) == rows * columns

    def test_the_histogram_counts_and_marks(self, shapes):
        gradients = overlays.Gradients.of(shapes, 1.0, None)
        assert gradients.are_of(shapes, 1.0, None)
        assert not gradients.are_of(shapes, 2.0, None)
        median = float(np.median(gradients.values))
        histogram = overlays.Histogram.of(gradients, median)
        assert histogram.below == pytest.approx(0.5, abs=0.01)
        assert max(histogram.counts) == 1
        assert f"λ = {median:.3g}, 50% below" in histogram.svg()
        assert "λ" not in overlays.Histogram.of(gradients, None).svg()

    def test_a_flat_image(self):
        flat = scene_of(np.ones((32, 32)))
        assert "svg" in overlays.Histogram.of(overlays.Gradients.of(flat, 0.0, None), 1.0).svg()


class TestScrubbing:
    def test_frames_reach_the_end(self, shapes):
        call = Choices("diffuse").call(shapes)
        steering: Any = call.steering(None)
        model, end = steering
        ticket = Ticket()
        film = list(rendering.film(shapes, call, model, end, ticket, count=5))
        assert [shot.facts["time"] for shot in film] == pytest.approx([0, 10 / 16, 10 / 4, 90 / 16, 10])
        assert ticket.share == 1

    def test_a_film_of_a_volume_shows_its_slice(self):
        scene = layers(2)
        call = Choices("diffuse").with_value("time", 2.0).call(scene)
        model, end = call.arguments
        film = list(rendering.film(scene, call, model, end, Ticket(), count=4))
        assert [(shot.picture.height, shot.picture.width) for shot in film] == [scene.shape] * 4

    def test_it_stops_when_nobody_looks(self, shapes):
        call, ticket = Choices("diffuse").call(shapes), Ticket()
        steering: Any = call.steering(None)
        model, end = steering
        frames = rendering.film(shapes, call, model, end, ticket)
        next(frames)
        ticket.withdraw()
        with pytest.raises(Stale):
            list(frames)


class TestStencils:
    def test_figures_are_those_of_the_library(self):
        choice = stencil_tab.StencilChoice(alpha=0.25, gamma=0.0, angle=0.0)
        facts = choice.facts()
        assert facts["stable_step"] == 0.5
        assert facts["paper_step"] == pytest.approx(2 / 5)
        assert np.sum(facts["entries"]) == pytest.approx(0)

    def test_the_ring_test_tells_stencils_apart(self):
        lost = [stencil_tab.RingTest.of(stencil_tab.StencilChoice(alpha, gamma)).changed for alpha, gamma in
                ((0.0, 0.0), (0.0, 1.0), (0.4, 1.0))]  # fmt: skip
        assert lost[0] > lost[1] > lost[2]
