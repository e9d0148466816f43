"""Structure tensors, orientation, coherence and diffusion tensors: known answers, oracles and laws."""

import math
import warnings
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import torch
from scipy import ndimage
from skimage import feature

import aniso
from aniso.formulas import views
from oracles import eigenvector_models, eigenvector_volumes
from tests.registry import DTYPES, ENGINES, SAMPLES, VOLUME_MODELS, VOLUME_SAMPLES

IMAGE, VOLUME = (23, 19), (9, 11, 8)
SPACINGS: Any = {IMAGE: (1.3, 0.8), VOLUME: (0.7, 1.0, 1.4)}
SCALES: Any = {"sigma": 0.9, "rho": 1.6}
ANGLES = np.deg2rad(np.arange(-85, 95, 10))

every_shape = pytest.mark.parametrize("shape", [IMAGE, VOLUME], ids=["image", "volume"])
every_map = pytest.mark.parametrize("function", [aniso.structure_tensor, aniso.orientation, aniso.coherence])
volume_driven = {name: model for name, model in VOLUME_MODELS.items() if name != "fixed tensor"}


def sample(shape):
    return (VOLUME_SAMPLES if len(shape) == 3 else SAMPLES)["edges"](shape)


def wave(angle, wavelength=9.0, shape=(64, 64), spacing=(1.0, 1.0)):
    """Stripes along this angle, from x towards y."""
    y, x = (h * np.arange(n) for h, n in zip(spacing, shape, strict=True))
    return np.sin(2 * np.pi / wavelength * (y[:, None] * math.cos(angle) - x * math.sin(angle)))


def apart(first, second):
    """How far two directions are apart, in radians."""
    return abs((first - second + np.pi / 2) % np.pi - np.pi / 2)


def matrices(tensor):
    """The two axes of matrices last."""
    return np.moveaxis(tensor, (0, 1), (-2, -1))


class TestStructureTensor:
    @pytest.mark.parametrize("channels", [1, 3])
    @every_shape
    def test_is_the_mean_of_the_textbook_cells_around_a_pixel(self, shape, channels):
        image = np.stack([np.roll(sample(shape), 2 * k, -1) for k in range(channels)])
        oracle = eigenvector_volumes if len(shape) == 3 else eigenvector_models
        cells = oracle.structure_tensors(image, *SCALES.values(), SPACINGS[shape])
        cells = np.moveaxis(cells, (-2, -1), (0, 1))
        if len(shape) == 2:
            cells = cells[::-1, ::-1]  # x first there
        expected = sum(views.corners(cells, len(shape))) / 2 ** len(shape)
        found = aniso.structure_tensor(image, **SCALES, spacing=SPACINGS[shape], channel_axis=0)
        np.testing.assert_allclose(found, expected, atol=1e-6 * abs(expected).max())

    def test_is_that_of_scikit_image_times_what_its_filter_keeps_of_a_wave(self):
        # A Sobel filter is the mean of the gradients in four cells, of which a wave keeps
        # cos(k_x/2)·cos(k_y/2); here the squares of the gradients are averaged instead.
        for angle in ANGLES[::3]:
            image, k = wave(angle, 11.0), 2 * np.pi / 11
            seen = ndimage.gaussian_filter(image, 1.0)
            their = feature.structure_tensor(seen, sigma=6.0, order="rc")
            kept = math.cos(0.5 * k * math.cos(angle)) * math.cos(0.5 * k * math.sin(angle))
            found = aniso.structure_tensor(image, sigma=1.0, rho=6.0)
            inner = np.s_[26:38, 26:38]
            expected = [entry[inner] / 64 for entry in their] if _raw_sobel() else [e[inner] for e in their]
            for (i, j), entry in zip(((0, 0), (0, 1), (1, 1)), expected, strict=True):
                np.testing.assert_allclose(found[i, j][inner] * kept**2, entry, atol=2e-3 * found.max())

    def test_a_ramp(self):
        y, x = np.indices((40, 40))
        found = aniso.structure_tensor(2.0 * y - 3.0 * x, spacing=(0.5, 2.0), rho=1.0)[..., 20, 20]
        np.testing.assert_allclose(found, np.array([[16, -6], [-6, 2.25]]), rtol=1e-12)

    @every_shape
    def test_is_symmetric_and_has_no_negative_eigenvalue(self, shape):
        tensor = aniso.structure_tensor(sample(shape), **SCALES, spacing=SPACINGS[shape])
        assert np.array_equal(tensor, tensor.swapaxes(0, 1))
        values = np.linalg.eigvalsh(matrices(tensor))
        assert (values >= -1e-12 * values.max()).all()


class TestOrientation:
    @pytest.mark.parametrize("spacing", [(1.0, 1.0), (0.6, 1.0), (1.0, 0.45)], ids=str)
    def test_waves_of_all_angles(self, spacing):
        for angle in ANGLES:
            image = wave(angle, 14.0, (96, 96), spacing)
            found = aniso.orientation(image, rho=4.0, spacing=spacing)[36:60, 36:60]
            assert apart(found, angle).max() < np.deg2rad(0.6)
            assert aniso.coherence(image, rho=4.0, spacing=spacing)[36:60, 36:60].min() > 0.99

    def test_a_wave_has_the_angle_that_its_cells_see(self):
        for angle in ANGLES:
            k = 2 * np.pi / 9
            # The slopes in a cell are as tan(k_y/2) and tan(k_x/2).
            seen = math.atan2(math.tan(k / 2 * math.sin(angle)), math.tan(k / 2 * math.cos(angle)))
            found = aniso.orientation(wave(angle, shape=(96, 96)), rho=6.0)[44:52, 44:52]
            assert apart(found, seen).max() < 1e-4

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_angles_lie_above_minus_90_degrees(self, dtype):
        upright = wave(np.pi / 2).astype(dtype)
        for image in (upright, upright + 1e-9 * wave(0.3).astype(dtype), upright - 1e-9 * wave(0.3)):
            found = aniso.orientation(image.astype(dtype))
            assert ((found > -np.pi / 2) & (found <= np.pi / 2)).all()
            assert apart(found, np.pi / 2).max() < 1e-6

    def test_is_the_eigenvector_of_the_smallest_eigenvalue(self):
        for shape in (IMAGE, VOLUME):
            options: Any = {**SCALES, "spacing": SPACINGS[shape]}
            values, vectors = np.linalg.eigh(matrices(aniso.structure_tensor(sample(shape), **options)))
            found = aniso.orientation(sample(shape), **options)
            if len(shape) == 2:
                found = np.stack([np.sin(found), np.cos(found)])
            clear = values[..., 1] - values[..., 0] > 1e-6 * values[..., -1]
            assert clear.mean() > 0.9
            alike = abs((np.moveaxis(vectors[..., 0], -1, 0) * found).sum(axis=0))
            assert alike[clear].min() > 1 - 1e-9
            np.testing.assert_allclose((found**2).sum(axis=0), 1, rtol=1e-12)

    def test_of_opposite_vectors_one_is_chosen(self):
        z, y, x = aniso.orientation(sample(VOLUME), **SCALES)
        assert ((x > 0) | ((x == 0) & ((y > 0) | ((y == 0) & (z > 0))))).all()

    @pytest.mark.parametrize("direction", [(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 2, 2), (2, -3, 1)])
    def test_lines_in_volumes(self, direction):
        spacing = (0.8, 1.0, 1.25)
        along = np.array(direction) / np.linalg.norm(direction)
        first = np.cross(along, [0.3, 0.5, 0.8])
        first /= np.linalg.norm(first)
        place = np.moveaxis(np.indices((40, 36, 32)), 0, -1) * spacing
        volume = sum(np.sin(0.6 * place @ across) for across in (first, np.cross(along, first)))
        found = aniso.orientation(volume, rho=4.0, spacing=spacing)[:, 16:24, 14:22, 12:20]
        assert abs(np.tensordot(along, found, 1)).min() > math.cos(np.deg2rad(2))
        inner = np.s_[16:24, 14:22, 12:20]
        assert aniso.coherence(volume, rho=4.0, spacing=spacing, plates=False)[inner].min() > 0.75


class TestCoherence:
    def test_is_that_of_the_eigenvalues(self):
        for shape in (IMAGE, VOLUME):
            options: Any = {**SCALES, "spacing": SPACINGS[shape]}
            values = np.linalg.eigvalsh(matrices(aniso.structure_tensor(sample(shape), **options)))
            low, middle, high = values[..., 0], values[..., -2], values[..., -1]
            found = aniso.coherence(sample(shape), **options)
            np.testing.assert_allclose(found, ((high - low) / (high + low)) ** 2, atol=1e-12)
            lines = aniso.coherence(sample(shape), **options, plates=False)
            expected = found if len(shape) == 2 else ((middle - low) / (high + low)) ** 2
            np.testing.assert_allclose(lines, expected, atol=1e-12)

    def test_plates_are_lines_only_if_they_count(self):
        volume = np.broadcast_to(np.sin(0.7 * np.arange(24.0)), (24, 24, 24))
        assert aniso.coherence(volume).min() > 1 - 1e-9
        assert aniso.coherence(volume, plates=False).max() < 1e-9

    @pytest.mark.parametrize("dtype", DTYPES)
    @every_shape
    def test_lies_between_0_and_1(self, shape, dtype):
        found = aniso.coherence(sample(shape).astype(dtype), sigma=0.0, rho=0.0)
        assert found.min() >= 0
        assert found.max() <= 1


@every_map
class TestLaws:
    @pytest.mark.parametrize("value", [0.0, 0.1, -1e30, 7e-20, 255.0])
    @every_shape
    def test_constant_images_have_no_structure(self, function, shape, value):
        image = np.full(shape, value)
        for each in (image, image.astype("float32"), torch.tensor(image), torch.tensor(image).float()):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert not np.asarray(function(each)).any()

    @every_shape
    def test_dask_arrays_give_the_same_bits(self, function, shape):
        image = np.stack([sample(shape), sample(shape)[::-1]], -1)
        options: Any = {**SCALES, "spacing": SPACINGS[shape], "channel_axis": -1}
        expected = function(image, **options)
        for chunks in (shape, tuple(n // 2 for n in shape), (5, 3, 4)[: len(shape)]):
            lazy = da.from_array(image, chunks=(*chunks, 1))
            found = function(lazy, **options)
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            with dask.config.set(scheduler="synchronous"):
                assert np.array_equal(found.compute(), expected)

    @pytest.mark.parametrize("dtype", DTYPES)
    @every_shape
    def test_batches_of_tensors_are_as_their_images(self, function, shape, dtype):
        images = np.stack([sample(shape), 3 * sample(shape)[::-1]]).astype(dtype)
        images = np.stack([images, np.roll(images, 3, -1)], 1)
        options: Any = {**SCALES, "spacing": SPACINGS[shape]}
        found = function(torch.tensor(images), **options)
        expected = np.stack([function(image, **options, channel_axis=0) for image in images])
        assert str(found.dtype) == f"torch.{dtype}"
        alone = function(torch.tensor(images[1]), **options, channel_axis=0)
        assert torch.allclose(found[1], alone, atol=1e-6 * float(abs(found).max()))
        if function is aniso.orientation:  # where nothing has a direction, rounding decides
            clear = np.stack(
                [aniso.coherence(image, **options, channel_axis=0, plates=False) for image in images]
            )
            clear = clear > 1e-4
            assert clear.mean() > 0.8
            found = found.numpy()
            if len(shape) == 2:
                assert apart(found, expected)[clear].max() < (1e-3 if dtype == "float32" else 1e-9)
            else:
                assert abs((found * expected).sum(1))[clear].min() > 1 - 1e-5
            return
        close = 2e-5 if dtype == "float32" else 1e-11
        np.testing.assert_allclose(found, expected, atol=close * abs(expected).max())

    @pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float16"])
    def test_other_types_than_doubles_give_floats(self, function, dtype):
        image = sample(IMAGE).astype(dtype)
        found = function(image)
        assert found.dtype == np.float32
        assert np.array_equal(found, function(image.astype("float32")))
        assert str(function(torch.tensor(image)).dtype) == "torch.float32"

    @pytest.mark.parametrize("power", [-130, -20, 3, 130])
    @every_shape
    def test_grey_values_scale(self, function, shape, power):
        image = sample(shape)
        factor = 2.0**power
        scaled = function(factor * image, **SCALES)
        size = factor**2 if function is aniso.structure_tensor else 1
        assert np.array_equal(scaled, size * function(image, **SCALES))

    def test_the_image_is_not_changed(self, function):
        image = sample(IMAGE)
        before = image.copy()
        function(image)
        assert np.array_equal(image, before)

    @pytest.mark.parametrize(
        ("image", "options", "error", "words"),
        [
            (np.full((4, 4), np.nan), {}, ValueError, "NaN or infinite"),
            (np.ones((4, 4), bool), {}, TypeError, "real numeric dtype"),
            (np.ones(4), {}, ValueError, "signal"),
            (np.ones((2, 2, 2, 2)), {}, ValueError, "got shape"),
            (np.ones((4, 0)), {}, ValueError, "empty"),
            (np.ones((4, 4)), {"sigma": -1}, ValueError, "sigma must lie in"),
            (np.ones((4, 4)), {"rho": np.nan}, ValueError, "rho must be a number"),
            (np.ones((4, 4)), {"rho": np.inf}, ValueError, "rho must be finite"),
            (np.ones((4, 4)), {"sigma": "1"}, TypeError, "sigma must be a number"),
            (np.ones((4, 4)), {"rho": 1e6}, ValueError, "pixels"),
            (np.ones((4, 4)), {"spacing": (1, 2, 3)}, ValueError, "spacing must be .* got 3 values"),
            (np.ones((4, 4)), {"channel_axis": 2}, ValueError, "channel_axis=2"),
            (torch.ones(4), {}, ValueError, "signal"),
            (torch.full((4, 4), torch.nan), {}, ValueError, "NaN"),
        ],
    )
    def test_bad_input_is_refused(self, function, image, options, error, words):
        with pytest.raises(error, match=words):
            function(image, **options)


def test_values_in_dask_arrays_are_refused_when_computed():
    lazy = aniso.coherence(da.from_array(np.full((8, 8), np.nan), chunks=4))
    with pytest.raises(ValueError, match="NaN or infinite"):
        lazy.compute(scheduler="synchronous")


def test_tensors_beyond_the_range_of_their_type_are_refused():
    image = 1e30 * sample(IMAGE).astype("float32")
    for each in (image, torch.tensor(image)):
        with pytest.raises(ArithmeticError, match="left the range of float32"):
            aniso.structure_tensor(each)
    assert np.allclose(aniso.coherence(image), aniso.coherence(sample(IMAGE).astype("float32")), atol=1e-5)


def test_plates_must_be_a_switch():
    with pytest.raises(TypeError, match="plates must be True or False"):
        aniso.coherence(np.ones((4, 4)), plates=1)  # type: ignore[arg-type]


def test_transposing_the_image_transposes_the_tensors():
    image = sample(IMAGE)
    tensor, other = (aniso.structure_tensor(each, **SCALES) for each in (image, image.T))
    np.testing.assert_allclose(other, tensor[::-1, ::-1].swapaxes(2, 3), atol=1e-12 * tensor.max())
    axes = (2, 0, 1)
    volume = sample(VOLUME)
    tensor = aniso.structure_tensor(volume, **SCALES)
    other = aniso.structure_tensor(volume.transpose(axes), **SCALES)
    moved = tensor[np.ix_(axes, axes)].transpose(0, 1, 4, 2, 3)
    np.testing.assert_allclose(other, moved, atol=1e-12 * tensor.max())


def test_turning_the_image_turns_directions():
    image = sample(IMAGE)
    found, turned = (aniso.orientation(each, **SCALES) for each in (image, np.rot90(image)))
    # Against the clock on the screen: y is downwards.
    assert apart(turned, np.rot90(found) - np.pi / 2).max() < 1e-9
    assert np.allclose(aniso.coherence(np.rot90(image), **SCALES), np.rot90(aniso.coherence(image, **SCALES)))


def test_gradients_flow_through_tensors():
    image = torch.tensor(sample(IMAGE), requires_grad=True)
    aniso.coherence(image, **SCALES).sum().backward()
    assert image.grad is not None
    assert bool(image.grad.isfinite().all() and image.grad.any())


class TestDiffusionTensor:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
    @pytest.mark.parametrize("name", volume_driven)
    @every_shape
    def test_a_fixed_tensor_takes_the_first_step(self, shape, name, engine, dtype):
        # Colours with doubles: engines compile less.
        coloured = dtype == "float64"
        image = (np.stack([sample(shape), sample(shape)[::-1]]) if coloured else sample(shape)).astype(dtype)
        options: Any = {"spacing": SPACINGS[shape], "channel_axis": 0 if coloured else None}
        model = volume_driven[name](shape)
        limit = aniso.stability.stable_step(model, spacing=SPACINGS[shape], ndim=len(shape))
        scheme = aniso.Explicit(0.8 * limit)
        first = engine.diffuse(image, model, scheme.step, scheme=scheme, **options)
        fixed = aniso.FixedTensor(aniso.diffusion_tensor(image, model, **options))
        found = engine.diffuse(image, fixed, scheme.step, scheme=scheme, **options)
        engine.assert_equal(found, first)

    @pytest.mark.parametrize("name", volume_driven)
    @every_shape
    def test_dask_arrays_and_tensors(self, shape, name):
        image, model = sample(shape), volume_driven[name](shape)
        expected = aniso.diffusion_tensor(image, model, spacing=SPACINGS[shape])
        found = aniso.diffusion_tensor(torch.tensor(image), model, spacing=SPACINGS[shape])
        np.testing.assert_allclose(found, expected, atol=1e-10)
        batch = torch.tensor(np.stack([image, 2 * image])[:, None])
        found = aniso.diffusion_tensor(batch, model, spacing=SPACINGS[shape])
        np.testing.assert_allclose(found[0], expected, atol=1e-10)
        for chunks in ((6, 5, 4), (50, 50, 50)):
            lazy = da.from_array(image, chunks=chunks[: len(shape)])
            blocks = aniso.diffusion_tensor(lazy, model, spacing=SPACINGS[shape])
            assert blocks.shape == expected.shape
            assert np.array_equal(blocks.compute(scheduler="synchronous"), expected)

    def test_blocks_may_be_empty(self):
        image, model = sample(IMAGE), aniso.EdgeEnhancing(12.0)
        lazy = da.from_array(image, chunks=((12, 11), (19,)))
        lazy = da.concatenate([lazy, lazy[:0]]).rechunk(((12, 0, 11, 0), (19,)))
        found = aniso.diffusion_tensor(lazy, model).compute(scheduler="synchronous")
        assert np.array_equal(found, aniso.diffusion_tensor(image, model))

    @pytest.mark.parametrize("model", [aniso.EdgeEnhancing, "edge-enhancing", None])
    def test_what_is_not_a_model_is_refused(self, model):
        with pytest.raises(TypeError, match="model must be a model whose tensor follows the image"):
            aniso.diffusion_tensor(sample(IMAGE), model)


def _raw_sobel():
    """Whether scikit-image leaves the factor 8 of its Sobel filter in: that of a ramp is then 64."""
    return feature.structure_tensor(np.tile(np.arange(32.0), (32, 1)), sigma=1.0)[2][16, 16] > 2
