"""What is chosen in the explorer: scenes, controls, choices and masks."""

import base64
import dataclasses

import numpy as np
import pytest

import aniso
from aniso.explorer.choosing import unknown_pixels
from aniso.explorer.choosing.choices import AUTO, Choices, methods, suggest_contrast
from aniso.explorer.choosing.controls import LOG, controls
from aniso.explorer.choosing.scene import Scene, Source, block_means, sample_names
from aniso.io.picture import FileError, Picture
from aniso.models import kinds
from aniso.parameters import of_model
from aniso.verbs.plan import summary_rows
from tests.explorer.sessions import layers, scene_of


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
        assert scene_of(np.full((9, 9), 7, np.uint8)).source.grey_range == (0.0, 255.0)
        low, high = scene_of(np.linspace(-3, 5, 10000).reshape(100, 100)).source.grey_range
        assert -3 <= low < -2.9
        assert 4.9 < high <= 5
        assert scene_of(np.full((9, 9), np.nan)).source.grey_range == (0.0, 1.0)


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
        assert given.options.get("plates") is False or given.options["model"].plates is False

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

    def test_a_kind_can_stand_for_a_number(self, shapes):
        choices = Choices("denoise").with_value("noise", "poisson")
        found = {control.name: control for control in controls(choices, shapes, {"noise": 29.5})}
        assert found["noise"].kinds == ("gaussian", "poisson", "rician", "speckle")
        assert (found["noise"].value, found["noise"].chosen) == ("poisson", 29.5)
        assert found["contrast"].kinds == ()

    def test_a_learned_diffusion_has_neither_contrast_nor_time(self, shapes):
        choices = Choices("denoise").with_value("contrast", 3.0).with_value("mix", False)
        learned = choices.with_value("method", "learned")
        assert {control.name for control in controls(learned, shapes, {})} == {"noise", "method"}
        assert learned.call(shapes).options == {"method": "learned"}
        again = learned.with_value("method", None)
        assert again.call(shapes).options == {"contrast": 3.0, "mix": False}
        assert "contrast" in {control.name for control in controls(again, shapes, {})}

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
        assert Choices("denoise").with_value("noise", "rician").call(shapes).options == {"noise": "rician"}

    def test_a_model_with_a_suggest_contrast(self, shapes):
        options = Choices("diffuse").call(shapes).options
        model, time = options["model"], options["time"]
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
