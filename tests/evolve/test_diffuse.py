"""diffuse(): types, layouts, fixed pixels and options."""

import os
import subprocess
import sys

import numpy as np
import pytest

import aniso
from aniso.schemes import Cycle
from tests.evolve.cases import EDGE, SHAPE, every_dtype, every_engine, image_of
from tests.registry import SAMPLES, colours, random_tensors


class TestTypes:
    @every_engine
    @every_dtype
    def test_floats_of_four_and_eight_bytes_are_kept(self, engine, dtype):
        assert engine.diffuse(image_of().astype(dtype), EDGE, 1.0).dtype == dtype

    @every_engine
    def test_integers_give_float32_in_their_own_grey_scale(self, engine):
        for dtype in map(np.dtype, "bBhHiIlLqQ"):
            info = np.iinfo(dtype)
            low, high = max(info.min, -(2**20)), min(info.max, 2**20)
            rng = np.random.default_rng(0)
            image = rng.integers(low, high, SHAPE, dtype=dtype, endpoint=True)
            image[0, :2] = low, high
            model = aniso.EdgeEnhancing(float(high) / 20)
            result = engine.diffuse(image, model, 1.0)
            assert result.dtype == np.float32
            np.testing.assert_array_equal(result, engine.diffuse(image.astype(np.float32), model, 1.0))
            # Never rescaled, never wrapped.
            assert result.mean(dtype=np.float64) == pytest.approx(image.mean(), abs=1e-6 * high)

    @every_engine
    def test_the_largest_integers_do_not_overflow(self, engine):
        for dtype in (np.int64, np.uint64, np.int32):
            image = np.full((4, 5), np.iinfo(dtype).max)
            image[:, ::2] = np.iinfo(dtype).min
            result = engine.diffuse(image, aniso.Homogeneous(), 1.0)
            assert np.isfinite(result).all()
            assert result.mean(dtype=np.float64) == pytest.approx(image.mean(), rel=1e-5)

    @every_engine
    def test_half_precision_gives_float32(self, engine):
        image = image_of().astype(np.float16)
        result = engine.diffuse(image, EDGE, 1.0)
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, engine.diffuse(image.astype(np.float32), EDGE, 1.0))

    @every_engine
    def test_wider_floats_give_float64(self, engine):
        result = engine.diffuse(image_of().astype(np.longdouble), EDGE, 1.0)
        assert result.dtype == np.float64
        engine.assert_equal(result, engine.diffuse(image_of(), EDGE, 1.0))

    @every_engine
    def test_no_time_gives_integers_back_as_float32(self, engine):
        image = np.arange(-6, 6, dtype=np.int16).reshape(3, 4)
        result = engine.diffuse(image, EDGE, 0.0)
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, image)

    @every_engine
    def test_fixed_pixels_of_an_integer_image_keep_their_values(self, engine):
        image = np.random.default_rng(0).integers(0, 2**16, SHAPE, dtype=np.uint16)
        mask = image % 3 == 0
        result = engine.diffuse(image, aniso.EdgeEnhancing(1000.0), 2.0, fixed=mask)
        np.testing.assert_array_equal(result[mask], image[mask])


def variants():
    """Name → a way to lay out an image in memory."""

    def read_only(image):
        image = image.copy()
        image.flags.writeable = False
        return image

    def strided(image):
        return np.repeat(np.repeat(image, 2, axis=0), 3, axis=1)[::2, ::3]

    return {
        "strided": strided,
        "negative strides": lambda image: image[::-1, ::-1].copy()[::-1, ::-1],
        "Fortran order": np.asfortranarray,
        "transposed": lambda image: image.T.copy().T,
        "read-only": read_only,
        "big-endian": lambda image: image.astype(image.dtype.newbyteorder(">")),
        "little-endian": lambda image: image.astype(image.dtype.newbyteorder("<")),
        "unaligned": lambda image: np.frombuffer(b"x" + image.tobytes(), image.dtype, offset=1).reshape(
            image.shape
        ),
        "a field of a record": lambda image: np.rec.fromarrays([image, image])["f1"],
        "a subclass": lambda image: image.view(np.matrix) if image.ndim == 2 else image,
        "nested lists": lambda image: image.tolist(),
        "tuples": lambda image: tuple(map(tuple, image.tolist())),
    }


@every_engine
class TestLayouts:
    @pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
    @pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
    def test_any_layout_gives_the_same(self, engine, dtype):
        image = image_of().round().astype(dtype)
        expected = engine.diffuse(image, EDGE, 1.0)
        for layout in variants().values():
            laid_out = layout(image)
            result = engine.diffuse(laid_out, EDGE, 1.0)
            assert type(result) is np.ndarray
            assert result.dtype.isnative
            if isinstance(laid_out, list | tuple):  # which know nothing of float32
                engine.assert_equal(result.astype(expected.dtype), expected)
            else:
                assert result.dtype == expected.dtype
                np.testing.assert_array_equal(result, expected)

    @every_dtype
    def test_memory_mapped_files(self, engine, dtype, tmp_path):
        image = image_of().astype(dtype)
        path = tmp_path / "image.npy"
        np.save(path, image)
        expected = engine.diffuse(image, EDGE, 1.0)
        for mode in ("r", "r+", "c"):
            mapped = np.load(path, mmap_mode=mode)
            result = engine.diffuse(mapped, EDGE, 1.0)
            assert not isinstance(result, np.memmap)
            np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.load(path), image)

    def test_colours_in_any_layout(self, engine):
        image = colours(SAMPLES["edges"], SHAPE)
        expected = engine.diffuse(image, EDGE, 1.0, channel_axis=-1)
        strided = np.repeat(image, 2, axis=1)[:, ::2]
        for laid_out in (np.asfortranarray(image), image[::-1].copy()[::-1], strided):
            assert not laid_out.flags.c_contiguous
            np.testing.assert_array_equal(engine.diffuse(laid_out, EDGE, 1.0, channel_axis=-1), expected)

    def test_results_are_contiguous_and_writable(self, engine):
        for axis in (0, 1, 2):
            image = np.moveaxis(colours(SAMPLES["edges"], SHAPE), -1, axis)
            result = engine.diffuse(image, EDGE, 0.5, channel_axis=axis)
            assert result.flags.c_contiguous
            assert result.flags.writeable
            assert result.shape == image.shape

    def test_a_fixed_mask_may_be_a_list(self, engine):
        image = image_of((2, 2))
        result = engine.diffuse(image, EDGE, 1.0, fixed=[[True, False], [False, False]])
        assert result[0, 0] == image[0, 0]
        assert result[1, 1] != image[1, 1]

    def test_times_and_spacings_may_be_numpy_numbers(self, engine):
        image = image_of()
        expected = engine.diffuse(image, EDGE, 1.0, spacing=(2.0, 1.0))
        result = engine.diffuse(image, EDGE, np.float32(1.0), spacing=np.array([2, 1]), channel_axis=None)
        np.testing.assert_array_equal(result, expected)


@every_engine
class TestFixedPixels:
    def test_known_pixels_decide_the_rest(self, engine):
        """The steady state between them solves the Laplace equation: no extremum in between."""
        image = np.zeros((9, 9))
        mask = np.zeros((9, 9), bool)
        mask[:, 0] = mask[:, -1] = True
        image[:, -1] = 8.0
        result = engine.diffuse(image, aniso.Homogeneous(), 400.0, fixed=mask, scheme=aniso.FSI(10))
        np.testing.assert_allclose(result, np.tile(np.arange(9.0), (9, 1)), atol=1e-6)

    def test_all_fixed_changes_nothing_and_none_fixed_nothing_else(self, engine):
        image = image_of()
        everything, nothing = np.ones(SHAPE, bool), np.zeros(SHAPE, bool)
        np.testing.assert_array_equal(engine.diffuse(image, EDGE, 3.0, fixed=everything), image)
        np.testing.assert_array_equal(
            engine.diffuse(image, EDGE, 3.0, fixed=nothing), engine.diffuse(image, EDGE, 3.0)
        )

    def test_the_mask_is_read_when_the_diffusion_starts(self, engine):
        image, mask = image_of(), np.zeros(SHAPE, bool)
        mask[2] = True
        snapshots = engine.scale_space(image, EDGE, [1.0], fixed=mask)
        mask[:] = False
        ((_, result),) = snapshots
        np.testing.assert_array_equal(result[2], image[2])


class TestOptions:
    @every_engine
    @pytest.mark.parametrize("threads", [None, 1, 2, np.int64(3)])
    def test_the_number_of_threads_changes_nothing(self, engine, threads):
        np.testing.assert_array_equal(
            engine.diffuse(image_of(), EDGE, 1.0, threads=threads),
            engine.diffuse(image_of(), EDGE, 1.0),
        )

    @every_engine
    def test_equal_spacing_may_be_one_number(self, engine):
        np.testing.assert_array_equal(
            engine.diffuse(image_of(), EDGE, 1.0, spacing=0.9),
            engine.diffuse(image_of(), EDGE, 1.0, spacing=(0.9, 0.9)),
        )

    @every_engine
    def test_spacing_follows_the_axes_without_channels(self, engine):
        image = colours(SAMPLES["edges"], SHAPE)
        first = engine.diffuse(np.moveaxis(image, -1, 0), EDGE, 1.0, spacing=(0.5, 2.0), channel_axis=0)
        last = engine.diffuse(image, EDGE, 1.0, spacing=(0.5, 2.0), channel_axis=-1)
        np.testing.assert_array_equal(first, np.moveaxis(last, -1, 0))

    def test_the_engine_is_chosen_by_the_array(self):
        result = aniso.diffuse(image_of(), EDGE, 1.0)
        np.testing.assert_allclose(
            result, aniso.diffuse(image_of(), EDGE, 1.0, engine="reference"), rtol=1e-11
        )

    @every_engine
    def test_a_scheme_of_the_users_own_serves(self, engine):
        class Halving:
            def plan(self, time, limit):
                while time > 1e-3:
                    step = min(time / 2, limit)
                    yield Cycle(step, ((1.0, step),))
                    time -= step
                yield Cycle(time, ((1.0, time),))

        result = engine.diffuse(image_of(), EDGE, 1.0, scheme=Halving())
        fine = engine.diffuse(image_of(), EDGE, 1.0, scheme=aniso.Explicit(0.01))
        assert abs(result - fine).max() < 5
        assert abs(result - image_of()).max() > 20

    def test_importing_aniso_loads_nothing_heavy(self):
        script = (
            "import sys, aniso; "
            "heavy = {'numba', 'torch', 'scipy', 'rich', 'skimage'} & set(sys.modules); "
            "sys.exit(repr(heavy) if heavy else 0)"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", script], check=True, env=environment)


@every_engine
def test_given_tensors_may_vary_with_the_place(engine):
    """Where D vanishes nothing changes; elsewhere it does."""
    tensors = random_tensors(SHAPE).tensor.copy()
    tensors[:, :, :, :5] = 0.0
    result = engine.diffuse(image_of(), aniso.FixedTensor(tensors), 3.0)
    np.testing.assert_array_equal(result[:, :4], image_of()[:, :4])
    assert abs(result[:, 4:] - image_of()[:, 4:]).max() > 1
