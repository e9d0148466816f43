"""What cannot be diffused is refused, in a sentence that says what, why and what to do."""

import math
import re
from typing import Any

import numpy as np
import pytest

import aniso
from tests.registry import ENGINES, random_tensors

IMAGE = np.random.default_rng(0).normal(100, 20, (5, 6))
MODEL = aniso.EdgeEnhancing(contrast=10.0)

every_engine = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)


def refused(error, *parts, image=IMAGE, model=MODEL, time=1.0, times=(1.0, 2.0), **options):
    """Both functions refuse it, the second when it is called: nobody waits for the first image."""
    for function, when in ((aniso.diffuse, time), (aniso.scale_space, times)):
        if when is None:
            continue
        with pytest.raises(error) as caught:
            function(image, model, when, **options)
        message = str(caught.value)
        for part in parts:
            assert part in message, f"{part!r} is not in {message!r}"
        assert re.match(r"[a-z].*[.)]$", message, re.DOTALL), f"not a sentence: {message!r}"


class TestNumbersThatAreNone:
    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f4"])
    def test_one(self, value, dtype):
        image = IMAGE.astype(dtype)
        image[2, 3] = value
        refused(
            ValueError,
            "image holds 1 ",
            "NaN or infinite",
            "index (2, 3)",
            f"({value})",
            "spread over the whole image",
            "aniso.inpaint(image, ~numpy.isfinite(image))",
            image=image,
        )

    def test_several_are_counted_and_the_first_is_named(self):
        image = IMAGE.copy()
        image[1, 5] = math.inf
        image[2, 0] = image[4, 5] = math.nan
        refused(ValueError, "image holds 3 values", "first at index (1, 5) (inf)", image=image)

    def test_in_a_signal(self):
        refused(ValueError, "holds 2 values", "index (1,)", image=[0.0, math.nan, 1.0, math.nan])

    def test_in_a_channel(self):
        image = np.stack([IMAGE, IMAGE], 0)
        image[1, 0, 4] = math.nan
        refused(ValueError, "holds 1 ", "index (1, 0, 4)", image=image, channel_axis=0)

    def test_even_where_pixels_are_fixed(self):
        image = IMAGE.copy()
        image[2, 3] = math.nan
        refused(ValueError, "index (2, 3)", image=image, fixed=np.isnan(image))

    def test_even_for_no_time(self):
        refused(ValueError, "NaN", image=np.full((3, 3), math.nan), time=0.0, times=[0.0])


class TestTypes:
    @pytest.mark.parametrize(
        "image",
        [
            IMAGE > 100,
            IMAGE + 1j,
            IMAGE.astype(np.complex64),
            IMAGE.astype(object),
            IMAGE.astype(str),
            np.array([[b"a", b"b"]]),
            np.array([["2020-01-01"]], "datetime64[D]"),
            np.array([[1, 2]], "timedelta64[s]"),
            np.zeros((3, 3), [("r", float), ("g", float)]),
            "camera.png",
            None,
            {"image": 1},
        ],
        ids=lambda image: str(getattr(image, "dtype", image)),
    )
    def test_what_holds_no_real_numbers(self, image):
        refused(
            TypeError,
            "image must have a real numeric dtype",
            str(np.asarray(image).dtype),
            image=image,
        )

    def test_complex_images(self):
        refused(TypeError, "got complex128", "numpy.abs(image)", image=np.ones((4, 4), complex))

    def test_the_name_of_a_file(self):
        refused(TypeError, "aniso.io.read(name).pixels for a file", image="camera.png")

    def test_ragged_lists(self):
        ragged: Any = [[1.0, 2.0], [3.0]]
        with pytest.raises(ValueError, match="inhomogeneous"):
            aniso.diffuse(ragged, MODEL, 1.0)


class TestShapes:
    @pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (0, 0)], ids=str)
    def test_empty(self, shape):
        refused(ValueError, "image is empty", str(shape), image=np.zeros(shape))

    @pytest.mark.parametrize(("shape", "axis"), [((5, 6, 0), -1), ((0, 5, 6), 0), ((0, 3), -1)])
    def test_empty_with_channels(self, shape, axis):
        refused(ValueError, "image is empty", str(shape), image=np.zeros(shape), channel_axis=axis)

    def test_too_many_axes_may_be_colours(self):
        refused(
            ValueError,
            "a volume (D, H, W)",
            "got shape (5, 6, 7, 3)",
            "channel_axis=-1",
            image=np.zeros((5, 6, 7, 3)),
        )

    @pytest.mark.parametrize(
        ("shape", "axis"), [((), None), ((2, 3, 4, 5), None), ((2, 3, 4, 5, 6), 0), ((4,), 0)], ids=str
    )
    def test_a_wrong_number_of_axes(self, shape, axis):
        refused(
            ValueError,
            "image must be a signal",
            f"shape {shape}",
            f"channel_axis={axis}",
            image=np.zeros(shape),
            channel_axis=axis,
        )

    @pytest.mark.parametrize("axis", [2, -3, 7])
    def test_a_channel_axis_that_does_not_exist(self, axis):
        refused(ValueError, f"channel_axis={axis}", "shape (5, 6)", "-1", channel_axis=axis)

    @pytest.mark.parametrize("axis", [1.0, "last", True, (0, 1)], ids=repr)
    def test_a_channel_axis_that_is_no_whole_number(self, axis):
        refused(TypeError, "channel_axis must be a whole number", repr(axis), channel_axis=axis)

    def test_given_tensors_of_another_shape(self):
        refused(
            ValueError,
            "image of shape (6, 5)",
            "got one of shape (5, 6)",
            "one more cell than pixels",
            model=random_tensors((6, 5)),
        )

    def test_given_tensors_of_a_signal_for_an_image_and_the_reverse(self):
        refused(ValueError, "shape (6,)", "shape (5, 6)", model=random_tensors((6,)))
        refused(ValueError, "shape (5, 6)", "shape (6,)", image=IMAGE[0], model=random_tensors((5, 6)))

    def test_delta_of_another_shape(self):
        stencil = aniso.FreeStencil(np.zeros((5, 6)))
        refused(
            ValueError,
            "delta has shape (5, 6)",
            "shape (5, 6) needs (6, 7)",
            "one more cell than pixels",
            stencil=stencil,
        )

    def test_delta_of_an_image_for_a_signal(self):
        stencil = aniso.FreeStencil(np.zeros((6, 7)))
        refused(ValueError, "needs (2, 7)", image=IMAGE[0], stencil=stencil)

    def test_delta_beyond_given_tensors(self):
        """A tensor that follows the image is another matter: there δ is cut."""
        stencil = aniso.FreeStencil(np.full((6, 7), 0.8))
        small = aniso.FixedTensor.from_matrix(0.5 * np.eye(2), (5, 6))
        refused(ValueError, "delta = 0.8", "exceeds (a + c)/2 = 0.5", model=small, stencil=stencil)


class TestTimes:
    @pytest.mark.parametrize("time", [-1.0, -1e-9, math.inf, -math.inf])
    def test_out_of_range(self, time):
        refused(ValueError, f"got {time}", "time=4.0", "time must", time=time, times=[0.0, time])

    def test_nan(self):
        refused(ValueError, "time must be a number, got nan", time=math.nan, times=[math.nan])

    @pytest.mark.parametrize("time", ["4", None, True, 1j, [1.0]], ids=repr)
    def test_no_number(self, time):
        refused(TypeError, "time must be a number", repr(time), time=time, times=[time])

    @pytest.mark.parametrize(
        ("times", "parts"),
        [
            ([2.0, 1.0], ("got 1 after 2",)),
            ([0.0, 1.0, 1.0], ("got 1 after 1",)),
            ([1.0, 5.0, 4.5, 3.0], ("got 4.5 after 5",)),
        ],
        ids=str,
    )
    def test_not_increasing(self, times, parts):
        refused(ValueError, "times must increase", *parts, "Sort them", time=None, times=times)

    def test_none_at_all(self):
        refused(ValueError, "times is empty", "times=[1, 2, 4]", time=None, times=[])

    def test_a_single_number_for_times(self):
        refused(TypeError, "times must be", "3.0", time=None, times=3.0)


class TestSpacing:
    @pytest.mark.parametrize("spacing", [(1.0,), (1.0, 1.0, 1.0), ()], ids=str)
    def test_a_wrong_number(self, spacing):
        refused(
            ValueError,
            f"got {len(spacing)} values",
            str(spacing),
            "2 axes",
            "Axis 0 comes first",
            spacing=spacing,
        )

    def test_channels_have_none(self):
        refused(
            ValueError,
            "got 3 values",
            image=np.ones((4, 5, 3)),
            channel_axis=-1,
            spacing=(1.0, 1.0, 1.0),
        )

    @pytest.mark.parametrize("spacing", [0.0, -1.0, math.inf, (1.0, 0.0), (-2.0, 1.0)], ids=str)
    def test_not_positive(self, spacing):
        refused(ValueError, "spacing must be positive and finite", str(spacing), spacing=spacing)

    @pytest.mark.parametrize("spacing", [math.nan, (1.0, math.nan)], ids=str)
    def test_nan(self, spacing):
        refused(ValueError, "spacing must be a number, got nan", "spacing=1.0", spacing=spacing)

    @pytest.mark.parametrize("spacing", [True, (1.0, "2")], ids=repr)
    def test_no_number(self, spacing):
        refused(TypeError, "spacing must be a number, got", "spacing=1.0", spacing=spacing)


class TestFixed:
    @pytest.mark.parametrize("shape", [(6, 5), (5,), (), (5, 6, 1), (1, 5, 6)], ids=str)
    def test_another_shape(self, shape):
        refused(
            ValueError,
            f"fixed has shape {shape}",
            "(5, 6)",
            "must be equal",
            fixed=np.zeros(shape, bool),
        )

    def test_with_channels(self):
        refused(
            ValueError,
            "fixed has shape (4, 5, 3)",
            "the image without channels (4, 5)",
            image=np.ones((4, 5, 3)),
            channel_axis=-1,
            fixed=np.zeros((4, 5, 3), bool),
        )

    @pytest.mark.parametrize("dtype", ["uint8", "int64", "float64", "object"])
    def test_another_type(self, dtype):
        refused(
            TypeError,
            "fixed must be boolean",
            f"dtype {dtype}",
            "fixed > 0",
            fixed=np.full((5, 6), 2, dtype),
        )

    def test_zeros_and_ones_are_booleans(self):
        fixed = np.arange(30).reshape(5, 6) % 2
        expected = aniso.diffuse(IMAGE, MODEL, 1.0, fixed=fixed == 1)
        for same in (fixed, fixed.astype(np.uint8), fixed.tolist()):
            np.testing.assert_array_equal(aniso.diffuse(IMAGE, MODEL, 1.0, fixed=same), expected)


class TestWhatSteersIt:
    @pytest.mark.parametrize("model", ["eed", None, 3.5, aniso.EdgeEnhancing, aniso.DeltaStencil()], ids=repr)
    def test_a_model_that_is_none(self, model):
        refused(
            TypeError,
            "model must be a diffusion model",
            repr(model),
            "aniso.EdgeEnhancing(contrast=3.5)",
            model=model,
        )

    @pytest.mark.parametrize("scheme", ["fed", None, 0.1, aniso.Explicit, aniso.FED], ids=repr)
    def test_a_scheme_that_is_none(self, scheme):
        """The class itself included: parentheses are easily forgotten."""
        refused(
            TypeError,
            "scheme must be Explicit, FED or FSI",
            repr(scheme),
            "aniso.Explicit()",
            scheme=scheme,
        )

    @pytest.mark.parametrize("stencil", ["standard", None, 0.4, aniso.DeltaStencil], ids=repr)
    def test_a_stencil_that_is_none(self, stencil):
        refused(
            TypeError,
            "stencil must be a DeltaStencil or FreeStencil",
            repr(stencil),
            "aniso.DeltaStencil()",
            stencil=stencil,
        )

    @pytest.mark.parametrize("engine", ["cuda", "Reference", "", 3, np.ones(2)], ids=repr)
    def test_an_engine_that_does_not_exist(self, engine):
        refused(
            ValueError,
            "engine must be None or one of cpu, torch, triton, reference",
            f"got {engine!r}",
            engine=engine,
        )

    @pytest.mark.parametrize("progress", ["yes", 1, 0.5], ids=repr)
    def test_progress_that_cannot_be_called(self, progress):
        refused(TypeError, "progress must be True", repr(progress), progress=progress)

    @pytest.mark.parametrize("threads", [0, -1])
    def test_too_few_threads(self, threads):
        refused(ValueError, "threads must be at least 1", f"got {threads}", threads=threads)

    @pytest.mark.parametrize("threads", [1.5, "2", True], ids=repr)
    def test_threads_that_are_no_whole_number(self, threads):
        refused(TypeError, "threads must be a whole number", repr(threads), threads=threads)

    def test_a_step_beyond_the_limit(self):
        refused(
            ValueError,
            "a step of 0.6 exceeds 0.5, the largest stable step",
            "blow up",
            "Use step=0.5 or less, or None",
            scheme=aniso.Explicit(0.6),
        )

    def test_the_step_that_the_message_advises_is_taken(self):
        with pytest.raises(ValueError, match="exceeds") as caught:
            aniso.diffuse(IMAGE, aniso.Homogeneous(), 1.0, spacing=0.57735, scheme=aniso.Explicit(0.166667))
        advised = float(str(caught.value).split("Use step=")[1].split()[0])
        aniso.diffuse(IMAGE, aniso.Homogeneous(), 1.0, spacing=0.57735, scheme=aniso.Explicit(advised))

    def test_a_stencil_of_ones_own(self):
        class Own:
            def hourglass_weight(self, a, b, c, per_area=1.0):
                return 0.1 * (a + c)

        refused(TypeError, "stencil must be a DeltaStencil or FreeStencil", stencil=Own())

    def test_a_result_beyond_the_range_of_its_type(self):
        huge = np.array([0, 2**64 - 1] * 8, np.uint64).reshape(4, 4)
        with pytest.raises(ArithmeticError, match=r"left the range of float32.*float64"):
            aniso.diffuse(huge, aniso.EdgeEnhancing(sigma=0.0), 1.0, engine="cpu")

    def test_options_must_be_named(self):
        with pytest.raises(TypeError, match="positional"):
            aniso.diffuse(IMAGE, MODEL, 1.0, aniso.DeltaStencil())  # type: ignore[call-arg]


def test_a_diffusivity_that_fails_later_says_so_itself():
    """It may pass the check when the model is made and go wrong afterwards."""

    def moody(r):
        if r.size > 4:
            raise RuntimeError("not today")
        return 1 / (1 + r)

    with pytest.raises(RuntimeError, match="not today"):
        aniso.diffuse(IMAGE, aniso.EdgeEnhancing(10.0, diffusivity=moody), 1.0, engine="reference")


@every_engine
class TestAfterARefusal:
    def test_nothing_was_changed(self, engine):
        image = IMAGE.copy()
        with pytest.raises(ValueError, match="exceeds"):
            engine.diffuse(image, MODEL, 1.0, scheme=aniso.Explicit(10.0))
        np.testing.assert_array_equal(image, IMAGE)
