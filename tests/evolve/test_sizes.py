"""diffuse() on images of all sizes, with kernels of all widths, and for no time."""

import dataclasses
import itertools

import numpy as np
import pytest

import aniso
from tests.evolve.cases import EDGE, every_dtype, every_engine, every_model, image_of
from tests.registry import MODELS, SAMPLES, SCHEMES, colours, in_turn

SIZES = ((1,), (2,), (9,), (1, 1), (1, 2), (2, 1), (1, 9), (9, 1), (2, 2), (2, 7), (3, 3))


@every_engine
@every_model
class TestSizes:
    """Every engine and model meets every size; over the models, every size meets every scheme."""

    def test_the_smallest_images_are_images(self, engine, name):
        for shape, scheme in zip(SIZES, itertools.cycle(in_turn(SCHEMES, name)), strict=False):
            image = SAMPLES["noise"](shape)
            result = engine.diffuse(image, MODELS[name](shape), 2.0, scheme=scheme)
            assert result.shape == shape
            assert np.isfinite(result).all()
            assert result.mean() == pytest.approx(image.mean(), rel=1e-12)
            assert np.linalg.norm(result) <= np.linalg.norm(image) * (1 + 1e-12)

    def test_a_single_pixel_stays(self, engine, name):
        for shape in ((1,), (1, 1)):
            image = np.full(shape, 7.25)
            result = engine.diffuse(image, MODELS[name](shape), 10.0, scheme=aniso.FED(3))
            np.testing.assert_array_equal(result, image)

    def test_a_signal_is_an_image_of_one_row(self, engine, name):
        kinds = [(1.0, None), (0.6, 2), (1.0, 2), (0.6, None)]  # spacing and channels
        for length, (spacing, channels) in zip((1, 2, 3, 10), in_turn(kinds, name), strict=True):
            axis = None if channels is None else -1
            signal = SAMPLES["noise"]((length,))
            if channels is not None:
                signal = colours(SAMPLES["noise"], (length,), channels)
            model = row_model = MODELS[name]((length,))
            if isinstance(model, aniso.FixedTensor):
                # The tensors of the row: along x as those of the signal, along y anything.
                along = np.broadcast_to(model.tensor[0, 0], (2, length + 1))
                row_model = aniso.FixedTensor.from_entries(along, 0 * along, 0 * along + 0.3)
            options = {"scheme": aniso.Explicit(0.1), "spacing": spacing, "channel_axis": axis}
            result = engine.diffuse(signal, model, 1.0, **options)
            row = engine.diffuse(signal[np.newaxis], row_model, 1.0, **options)
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
    def test_a_kernel_may_be_wider_than_the_image(self, engine, model):
        for shape in ((1, 1), (1, 5), (4, 3), (3, 20)):
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
    def test_no_time_changes_nothing(self, engine, dtype):
        image = image_of().astype(dtype)
        for scheme in SCHEMES:
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
