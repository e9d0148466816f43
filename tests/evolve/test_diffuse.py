"""diffuse() and scale_space(): sizes, types, layouts, snapshots and progress."""

import dataclasses
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

import aniso
from aniso import engines
from aniso.schemes import Cycle
from tests.registry import DTYPES, ENGINES, MODELS, SAMPLES, SCHEMES, colours, random_tensors

every_engine = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
every_model = pytest.mark.parametrize("name", MODELS)
every_scheme = pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)

SHAPE = (11, 9)
EDGE = aniso.EdgeEnhancing(contrast=12.0)


def image_of(shape=SHAPE):
    return SAMPLES["edges"](shape)


@every_engine
@every_model
class TestSizes:
    @pytest.mark.parametrize(
        "shape",
        [(1,), (2,), (9,), (1, 1), (1, 2), (2, 1), (1, 9), (9, 1), (2, 2), (2, 7), (3, 3)],
        ids=str,
    )
    @every_scheme
    def test_the_smallest_images_are_images(self, engine, name, shape, scheme):
        image = SAMPLES["noise"](shape)
        result = engine.diffuse(image, MODELS[name](shape), 2.0, scheme=scheme)
        assert result.shape == shape
        assert np.isfinite(result).all()
        assert result.mean() == pytest.approx(image.mean(), rel=1e-12)
        assert np.linalg.norm(result) <= np.linalg.norm(image) * (1 + 1e-12)

    @pytest.mark.parametrize("shape", [(1,), (1, 1)])
    def test_a_single_pixel_stays(self, engine, name, shape):
        image = np.full(shape, 7.25)
        result = engine.diffuse(image, MODELS[name](shape), 10.0, scheme=aniso.FED(3))
        np.testing.assert_array_equal(result, image)

    @pytest.mark.parametrize("length", [1, 2, 3, 10])
    @pytest.mark.parametrize("spacing", [1.0, 0.6])
    @pytest.mark.parametrize("channels", [None, 2])
    def test_a_signal_is_an_image_of_one_row(self, engine, name, length, spacing, channels):
        axis = None if channels is None else -1
        signal = SAMPLES["noise"]((length,))
        if channels is not None:
            signal = colours(SAMPLES["noise"], (length,), channels)
        model = MODELS[name]((length,))
        if isinstance(model, aniso.FixedTensor):
            # The tensors of the row: along x as those of the signal, along y anything.
            along = np.broadcast_to(model.tensor[0, 0], (2, length + 1))
            row_model = aniso.FixedTensor.from_entries(along, 0 * along, 0 * along + 0.3)
        else:
            row_model = model
        scheme = aniso.Explicit(0.1)
        result = engine.diffuse(signal, model, 1.0, scheme=scheme, spacing=spacing, channel_axis=axis)
        row = engine.diffuse(
            signal[np.newaxis],
            row_model,
            1.0,
            scheme=scheme,
            spacing=(spacing, spacing),
            channel_axis=axis,
        )
        assert result.shape == signal.shape
        engine.assert_equal(result, row[0])


@every_engine
class TestOneDimension:
    def test_a_signal_follows_the_three_point_scheme(self, engine):
        signal, h, step = SAMPLES["noise"]((12,)), 0.7, 0.2
        expected = signal.copy()
        for _ in range(5):
            padded = np.pad(expected, 1, mode="edge")
            expected = expected + step * np.diff(padded, 2) / h**2
        for stencil in (aniso.DeltaStencil(), aniso.DeltaStencil(0.0, 0.0)):
            result = engine.diffuse(
                signal,
                aniso.Homogeneous(),
                5 * step,
                spacing=h,
                stencil=stencil,
                scheme=aniso.Explicit(step),
            )
            np.testing.assert_allclose(result, expected, rtol=0, atol=1e-11)

    def test_an_edge_of_a_signal_stays(self, engine):
        """Perona and Malik's diffusion in one dimension, cell by cell."""
        signal, step = image_of((14,)), 0.3
        model = aniso.PeronaMalik(12.0, 0.0)
        expected = signal.copy()
        for _ in range(4):
            slope = np.diff(expected)
            flux = np.pad(slope / (1 + (slope / 12.0) ** 2), 1)
            expected = expected + step * np.diff(flux)
        result = engine.diffuse(signal, model, 4 * step, scheme=aniso.Explicit(step))
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-11)

    def test_the_step_of_a_signal_depends_on_its_own_spacing_alone(self, engine):
        signal = SAMPLES["noise"]((12,))
        for stencil in (aniso.DeltaStencil(), aniso.DeltaStencil(0.0, 0.0)):
            limit = aniso.stability.stable_step(EDGE, stencil, 0.5, ndim=1)
            assert limit == pytest.approx(0.5**2 / 2)
            result = engine.diffuse(
                signal, EDGE, 300 * limit, stencil=stencil, spacing=0.5, scheme=aniso.Explicit(limit)
            )
            assert np.linalg.norm(result) <= np.linalg.norm(signal)

    def test_fixed_points_of_a_signal_stay(self, engine):
        signal = SAMPLES["noise"]((12,))
        mask = np.arange(12) % 5 == 0
        result = engine.diffuse(signal, aniso.Homogeneous(), 400.0, fixed=mask, scheme=aniso.FSI(20))
        # Between them the steady state is a straight line.
        np.testing.assert_array_equal(result[mask], signal[mask])
        np.testing.assert_allclose(
            result[:11], np.interp(np.arange(11), [0, 5, 10], signal[[0, 5, 10]]), atol=1e-6
        )


@every_engine
class TestWideKernels:
    @pytest.mark.parametrize("shape", [(1, 1), (1, 5), (4, 3), (3, 20)])
    @pytest.mark.parametrize(
        "model",
        [
            aniso.EdgeEnhancing(5.0, sigma=30.0),
            aniso.PeronaMalik(5.0, sigma=30.0),
            aniso.CoherenceEnhancing(5.0, sigma=10.0, rho=30.0),
            aniso.CoherenceEnhancing(5.0, sigma=0.0, rho=50.0),
        ],
        ids=repr,
    )
    def test_a_kernel_may_be_wider_than_the_image(self, engine, shape, model):
        image = SAMPLES["noise"](shape)
        result = engine.diffuse(image, model, 2.0)
        assert np.isfinite(result).all()
        assert result.mean() == pytest.approx(image.mean(), rel=1e-12)

    def test_an_image_smoothed_to_a_constant_diffuses_homogeneously(self, engine):
        image = SAMPLES["noise"]((4, 5))
        expected = engine.diffuse(image, aniso.Homogeneous(), 1.0)
        result = engine.diffuse(image, aniso.EdgeEnhancing(5.0, sigma=50.0), 1.0)
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-8)

    def test_sigma_is_measured_in_units_of_length(self, engine):
        image = image_of()
        fine = engine.diffuse(image, aniso.EdgeEnhancing(12.0, 0.5), 1.0, spacing=0.5)
        coarse = engine.diffuse(image, aniso.EdgeEnhancing(6.0, 1.0), 4.0, spacing=1.0)
        engine.assert_equal(fine, coarse)

    def test_rho_is_measured_in_units_of_length(self, engine):
        image = image_of()
        fine = engine.diffuse(image, aniso.CoherenceEnhancing(8.0, 0.5, 1.0), 1.0, spacing=0.5)
        coarse = engine.diffuse(image, aniso.CoherenceEnhancing(4.0, 1.0, 2.0), 4.0, spacing=1.0)
        engine.assert_equal(fine, coarse)


@every_engine
class TestNoWidthAndNoTime:
    @every_dtype
    @every_scheme
    def test_no_time_changes_nothing(self, engine, dtype, scheme):
        image = image_of().astype(dtype)
        np.testing.assert_array_equal(engine.diffuse(image, EDGE, 0.0, scheme=scheme), image)

    @pytest.mark.parametrize(
        "model",
        [
            aniso.EdgeEnhancing(5.0, sigma=0.0),
            aniso.PeronaMalik(5.0, sigma=0.0),
            aniso.CoherenceEnhancing(5.0, sigma=0.0, rho=0.0),
            aniso.CoherenceEnhancing(5.0, sigma=0.0, rho=0.0, min_diffusivity=0.0),
        ],
        ids=repr,
    )
    def test_no_smoothing_is_the_limit_of_little_smoothing(self, engine, model):
        image = image_of()
        sharp = engine.diffuse(image, model, 1.0)
        little = {name: 1e-3 for name in ("sigma", "rho") if hasattr(model, name)}
        blurred = engine.diffuse(image, dataclasses.replace(model, **little), 1.0)
        assert np.isfinite(sharp).all()
        engine.assert_equal(blurred, sharp)

    def test_where_nothing_diffuses_nothing_limits_the_time(self, engine):
        image = image_of()
        still = aniso.FixedTensor(np.zeros((2, 2, 12, 10)))
        for scheme in (aniso.Explicit(), aniso.FED(2), aniso.FSI(2)):
            engine.assert_equal(engine.diffuse(image, still, 1e6, scheme=scheme), image)


class TestTypes:
    @every_engine
    @every_dtype
    def test_floats_of_four_and_eight_bytes_are_kept(self, engine, dtype):
        assert engine.diffuse(image_of().astype(dtype), EDGE, 1.0).dtype == dtype

    @every_engine
    @pytest.mark.parametrize("dtype", "bBhHiIlLqQ")
    def test_integers_give_float32_in_their_own_grey_scale(self, engine, dtype):
        dtype = np.dtype(dtype)
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
    @pytest.mark.parametrize("layout", variants())
    @pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
    def test_any_layout_gives_the_same(self, engine, layout, dtype):
        image = image_of().round().astype(dtype)
        expected = engine.diffuse(image, EDGE, 1.0)
        laid_out = variants()[layout](image)
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


@every_engine
class TestScaleSpace:
    TIMES = (0.0, 0.5, 2.0, 2.25)

    @every_dtype
    @every_scheme
    @every_model
    def test_each_image_is_computed_from_the_one_before(self, engine, name, scheme, dtype):
        image, model = image_of().astype(dtype), MODELS[name](SHAPE)
        current = image
        snapshots = list(engine.scale_space(image, model, self.TIMES, scheme=scheme))
        assert [time for time, _ in snapshots] == list(self.TIMES)
        for (before, after), (_, snapshot) in zip(
            itertools.pairwise((0.0, *self.TIMES)), snapshots, strict=True
        ):
            current = engine.diffuse(current, model, after - before, scheme=scheme)
            assert snapshot.dtype == dtype
            engine.assert_equal(snapshot, current)

    @every_dtype
    @every_model
    def test_a_single_time_is_diffuse(self, engine, name, dtype):
        image, model = image_of().astype(dtype), MODELS[name](SHAPE)
        for scheme in SCHEMES:
            ((time, snapshot),) = engine.scale_space(image, model, [1.5], scheme=scheme)
            assert time == 1.5
            np.testing.assert_array_equal(snapshot, engine.diffuse(image, model, 1.5, scheme=scheme))

    def test_explicit_snapshots_are_diffuse_at_those_times(self, engine):
        image, scheme = image_of(), aniso.Explicit(0.25)
        for time, snapshot in engine.scale_space(image, EDGE, self.TIMES, scheme=scheme):
            engine.assert_equal(snapshot, engine.diffuse(image, EDGE, time, scheme=scheme))

    def test_nothing_is_computed_before_it_is_asked_for(self, engine):
        calls = []
        snapshots = engine.scale_space(
            image_of(),
            EDGE,
            [1.0, 2.0, 50.0],
            scheme=aniso.Explicit(0.25),
            progress=lambda done, total: calls.append((done, total)),
        )
        assert calls == []
        next(snapshots)
        assert calls == [(0.25 * k, 50.0) for k in (1, 2, 3, 4)]
        next(snapshots)
        assert len(calls) == 8

    def test_nothing_is_computed_twice(self, engine, monkeypatch):
        evolution, cycles = engines.load(engine.name), []

        class Counting(evolution):  # type: ignore[misc, valid-type]
            def advance(self, cycle):
                cycles.append(cycle)
                super().advance(cycle)

        monkeypatch.setattr(engines, "load", lambda *args, **kwargs: Counting)
        list(engine.scale_space(image_of(), EDGE, [1.0, 1.5, 4.0], scheme=aniso.Explicit(0.25)))
        assert len(cycles) == 4 + 2 + 10

    def test_each_image_is_a_new_array(self, engine):
        for axis in (None, 0, -1):
            image = colours(SAMPLES["edges"], SHAPE) if axis is not None else image_of()
            image = image if axis != 0 else np.moveaxis(image, -1, 0)
            options = {"channel_axis": axis, "scheme": aniso.Explicit(0.25)}
            expected = [
                snapshot.copy() for _, snapshot in engine.scale_space(image, EDGE, self.TIMES, **options)
            ]
            seen = [image]
            snapshots = engine.scale_space(image, EDGE, self.TIMES, **options)
            for (_, snapshot), unharmed in zip(snapshots, expected, strict=True):
                np.testing.assert_array_equal(snapshot, unharmed)
                assert not any(np.shares_memory(snapshot, other) for other in seen)
                snapshot[:] = -1.0  # which must not reach the images that follow
                seen.append(snapshot)

    def test_the_image_is_read_when_it_is_called(self, engine):
        image = image_of()
        expected = engine.diffuse(image, EDGE, 1.0)
        snapshots = engine.scale_space(image, EDGE, [1.0])
        image[:] = 0.0
        np.testing.assert_array_equal(next(snapshots)[1], expected)

    def test_it_may_be_left_early(self, engine):
        snapshots = engine.scale_space(image_of(), EDGE, [1.0, 1e9], progress=True)
        next(snapshots)
        snapshots.close()

    def test_times_may_be_an_array(self, engine):
        snapshots = engine.scale_space(image_of(), EDGE, np.linspace(0, 1, 3))
        assert [time for time, _ in snapshots] == [0.0, 0.5, 1.0]


@every_engine
class TestProgress:
    @every_scheme
    @pytest.mark.parametrize("time", [0.7, 1.0, 3.3, 10.0])
    def test_a_function_hears_of_the_time_done_up_to_the_end(self, engine, scheme, time):
        calls = []
        engine.diffuse(image_of(), EDGE, time, scheme=scheme, progress=lambda *call: calls.append(call))
        done = [call[0] for call in calls]
        assert {total for _, total in calls} == {time}
        assert done == sorted(done)
        assert done[0] > 0
        assert done[-1] == time
        limit = aniso.stability.stable_step(EDGE)
        assert len(calls) == len(list(scheme.plan(time, limit)))

    def test_a_scale_space_reports_the_whole_way(self, engine):
        calls = []
        snapshots = engine.scale_space(
            image_of(), EDGE, [1.0, 3.0, 7.7], progress=lambda *call: calls.append(call)
        )
        ends = [calls[-1][0] for _ in snapshots]
        assert ends == pytest.approx([1.0, 3.0, 7.7], rel=1e-14)
        assert ends[-1] == 7.7
        assert {total for _, total in calls} == {7.7}
        assert [done for done, _ in calls] == sorted(done for done, _ in calls)

    def test_true_writes_a_bar(self, engine, capsys):
        engine.diffuse(image_of(), EDGE, 2.0, progress=True)
        written = "".join(capsys.readouterr())
        assert "diffusing" in written
        assert "100%" in written

    @pytest.mark.parametrize("progress", [None, False])
    def test_nothing_is_written_otherwise(self, engine, capsys, progress):
        engine.diffuse(image_of(), EDGE, 2.0, progress=progress)
        assert capsys.readouterr() == ("", "")

    @pytest.mark.parametrize("progress", [None, True, lambda done, total: None])
    def test_watching_changes_nothing(self, engine, progress):
        expected = engine.diffuse(image_of(), EDGE, 2.0)
        result = engine.diffuse(image_of(), EDGE, 2.0, progress=progress)
        np.testing.assert_array_equal(result, expected)

    def test_an_exception_in_the_function_ends_the_diffusion(self, engine):
        def stop(done, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            engine.diffuse(image_of(), EDGE, 1e9, scheme=aniso.FED(10**6), progress=stop)


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
