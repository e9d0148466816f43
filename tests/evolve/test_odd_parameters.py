"""Numbers of the wrong type or far beyond what can be computed with are refused in a sentence."""

from typing import Any

import numpy as np
import pytest

import aniso
from aniso import estimates, stability, stencil

# Not as their types say.
samples: Any = aniso.samples
nn: Any = aniso.nn

IMAGE = np.random.default_rng(0).normal(100, 20, (9, 10))
HUGE = np.full((4, 5), 1e200)


@pytest.mark.parametrize(
    ("scheme", "time", "message"),
    [
        (aniso.Explicit(), 1e9, "explicit steps"),
        (aniso.Explicit(), 1e300, "also take scheme=aniso.FED"),
        (aniso.FED(2), 1e20, "Take more cycles"),
        (aniso.FSI(2), 1.7e308, "Take more cycles"),
    ],
)
def test_a_time_that_would_never_end(scheme, time, message):
    with pytest.raises(ValueError, match=message):
        scheme.plan(time, 0.25)


@pytest.mark.parametrize("cycles", [10**8, 10**400])
def test_cycles_that_would_never_end(cycles):
    with pytest.raises(ValueError, match="cycles must be at most"):
        aniso.FED(cycles)


@pytest.mark.parametrize("spacing", [1e-200, 1e200, (1.0, 1e-16), 5e-324])
def test_lengths_whose_squares_are_no_numbers(spacing):
    for call in (
        lambda: stability.stable_step(aniso.Homogeneous(), spacing=spacing),
        lambda: aniso.diffuse(IMAGE, aniso.Homogeneous(), 1.0, spacing=spacing),
        lambda: estimates.wavelength(IMAGE, spacing=spacing),
    ):
        with pytest.raises(ValueError, match="Choose another unit of length"):
            call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: aniso.FixedTensor.from_entries(HUGE, 0 * HUGE, HUGE),
        lambda: aniso.FixedTensor.from_matrix(1e200 * np.eye(3), (4, 4, 4)),
        lambda: stencil.collapse_ghost_cells(HUGE, 0 * HUGE, HUGE),
        lambda: stability.spectral_bound(aniso.DeltaStencil(), 1e300, 1.0),
    ],
)
def test_tensors_whose_products_are_no_numbers(call):
    with pytest.raises(ValueError, match="too large to compute with"):
        call()


@pytest.mark.parametrize("shape", ["ab", 1e160, (2.5, 3), (0, 3), (-1, 2), [[1], [2, 3]]])
def test_a_shape_that_is_none(shape):
    with pytest.raises(ValueError, match="shape must be"):
        aniso.FixedTensor.from_matrix(np.eye(2), shape)


def test_an_infinite_tensor_of_a_signal():
    with pytest.raises(ValueError, match="holds 2 values that are NaN or infinite"):
        aniso.FixedTensor(np.array([[[1.0, np.inf, 1.0]]]))


class TestWidths:
    @pytest.mark.parametrize("name", ["sigma", "rho"])
    @pytest.mark.parametrize("width", [1.1e4, 1e9, 1e300, 1.7e308])
    def test_over_far_too_many_pixels(self, name, width):
        options: dict[str, Any] = {name: width}
        with pytest.raises(ValueError, match=f"{name}=.*would reach over"):
            aniso.diffuse(IMAGE, aniso.EdgeContinuing(**options), 1.0)
        with pytest.raises(ValueError, match=f"{name}=.*would reach over"):
            estimates.contrast(IMAGE, **options)

    @pytest.mark.parametrize("width", [9.0, 1e3, 9e3])
    def test_wider_than_the_image_is_allowed(self, width):
        for shape in ((1, 1), (1, 9), (3, 4, 5), (7,)):
            image = np.random.default_rng(0).normal(100, 20, shape)
            assert np.isfinite(aniso.diffuse(image, aniso.EdgeContinuing(sigma=width, rho=width), 1.0)).all()

    def test_over_far_too_many_pixels_along_one_axis(self):
        with pytest.raises(ValueError, match="along one axis"):
            aniso.diffuse(IMAGE, aniso.EdgeEnhancing(sigma=1.0), 1e-18, spacing=(1e-9, 1.0))


@pytest.mark.parametrize("contrast", [1e-150, 1e150])
def test_contrasts_whose_squares_are_no_numbers(contrast):
    with pytest.raises(ValueError, match="to compute with"):
        aniso.EdgeEnhancing(contrast=contrast)


@pytest.mark.parametrize("engine", ["cpu", "torch", "reference"])
@pytest.mark.parametrize("scale", [1e20, 1e30, 1e-20, 1e-28])
@pytest.mark.parametrize("kind", [aniso.PeronaMalik, aniso.EdgeEnhancing, aniso.CoherenceEnhancing])
def test_single_precision_far_from_ordinary_grey_values(kind, scale, engine):
    """The square of such a gradient overflows in single precision; results still scale with the image."""
    image = np.random.default_rng(0).normal(0, 1, (12, 14))
    ordinary = aniso.diffuse(image, kind(contrast=0.5, sigma=0.5), 1.0, engine=engine)
    scaled = aniso.diffuse(
        (image * scale).astype(np.float32), kind(contrast=0.5 * scale, sigma=0.5), 1.0, engine=engine
    )
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled / scale, ordinary, rtol=0, atol=1e-5)


def test_single_precision_far_from_ordinary_grey_values_in_blocks():
    import dask.array

    image = (np.random.default_rng(0).normal(0, 1, (12, 14)) * 1e20).astype(np.float32)
    model = aniso.PeronaMalik(contrast=1e20)
    lazy = aniso.diffuse(dask.array.from_array(image, chunks=5), model, 1.0)
    # Between blocks, results in double precision are rounded to single precision.
    np.testing.assert_allclose(lazy.compute(), aniso.diffuse(image, model, 1.0), rtol=1e-5, atol=1e13)


def test_rows_of_unequal_length():
    ragged: Any = [[1.0, 2.0], [3.0]]
    for call in (
        lambda: aniso.denoise(ragged),
        lambda: aniso.inpaint(ragged),
        lambda: aniso.upsample(ragged, 2),
        lambda: estimates.noise_level(ragged),
        lambda: aniso.scale_space_figure(ragged, aniso.Homogeneous(), [0]),
    ):
        with pytest.raises(ValueError, match=r"image must be an array.*Give rows of equal length"):
            call()


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: samples.rings("3"), TypeError, "size must be a whole number"),
        (lambda: samples.rings((1, 2)), TypeError, "size must be a whole number"),
        (lambda: samples.lighthouse(2**31), ValueError, "at most 65,536"),
        (lambda: samples.shapes(8, noise="3"), TypeError, "noise must be a number"),
        (lambda: samples.fingerprint(8, noise=1e308), ValueError, "noise must lie in"),
        (lambda: samples.rings(8, period=5e-324), ValueError, "period must be positive"),
        (lambda: samples.rings(8, seed=-1), ValueError, "seed must be at least 0"),
        (lambda: samples.ring_pattern(8, radius={}), TypeError, "radius must be a number"),
        (lambda: samples.ring_pattern(8, k_max=1e300), ValueError, "k_max must lie in"),
        (lambda: samples.balls(5.0), TypeError, "shape must be a whole number"),
        (lambda: samples.balls(5, count=0.5), TypeError, "count must be a whole number"),
        (lambda: samples.layers(5, gaps=(1, 2)), TypeError, "gaps must be a whole number"),
        (lambda: samples.ring_tensor([]), TypeError, "size must be a whole number"),
    ],
)
def test_options_of_samples(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


@pytest.mark.parametrize("options", [{"channel_axis": "3"}, {"channel_axis": 1.0}, {"columns": 2.5}])
def test_options_of_figures(options):
    with pytest.raises(TypeError, match="must be a whole number"):
        aniso.scale_space_figure(IMAGE, aniso.Homogeneous(), [0], **options)


class TestModules:
    @pytest.mark.parametrize("learn", [3, np.float32(2), int, [1], (None,), {"contrast": 1}])
    def test_what_is_learned(self, learn):
        with pytest.raises(TypeError, match="learn must be a sequence of names"):
            nn.DiffusionBlock(aniso.EdgeEnhancing(), learn=learn)

    @pytest.mark.parametrize(
        "options",
        [{"device": "meta2"}, {"device": 1e-310}, {"dtype": "float32"}, {"dtype": "x", "device": "cpu"}],
    )
    @pytest.mark.parametrize("name", ["DiffusionBlock", "TensorDiffusion", "SteeredDiffusionNet"])
    def test_devices_and_types_that_are_none(self, name, options):
        model = (aniso.EdgeEnhancing(),) if name == "DiffusionBlock" else ()
        with pytest.raises(ValueError, match="there can be no parameters with"):
            getattr(nn, name)(*model, **options)

    def test_whole_numbers_as_parameters(self):
        import torch

        with pytest.raises(TypeError, match="must be floating point numbers"):
            nn.DiffusionBlock(aniso.EdgeEnhancing(), dtype=torch.int32)

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: nn.Interval("x", 0.0, 1.0), "value must be a number"),
            (lambda: nn.Interval(0.5, {}, 1.0), "bound must be a number"),
            (lambda: nn.Interval(0.5, 1.0, 1.0), "low must be less than high"),
            (lambda: nn.Positive((1, 2)), "value must be a number"),
            (lambda: nn.Positive(0.0), "value must lie in"),
            (lambda: nn.LearnedDiffusivity(-1), "diffusivity must be one of"),
            (
                lambda: nn.LearnedDiffusivity(lambda r: 1 / (1 + r), 2.0),
                "degree must be a whole number",
            ),
            (lambda: nn.LearnedDiffusivity(lambda r: 1 / (1 + r), 0), "degree must be at least 1"),
            (lambda: nn.pretrained({}), "there is no trained net"),
            (lambda: nn.DiffusionBlock(aniso.EdgeEnhancing(sigma=1e9)), "sigma=1e.09 is the width"),
        ],
    )
    def test_parts(self, make, message):
        with pytest.raises((TypeError, ValueError), match=message):
            make()


@pytest.mark.parametrize("ndim", ["2", 2.0, [2], np.array([2, 3]), 4])
def test_dimensions_that_are_none(ndim):
    with pytest.raises((TypeError, ValueError), match="ndim must be"):
        stability.stable_step(aniso.Homogeneous(), ndim=ndim)
    with pytest.raises((TypeError, ValueError), match="ndim must be"):
        stability.spectral_bound(aniso.DeltaStencil(), 1.0, 1.0, ndim=ndim)


def test_an_array_in_place_of_a_stencil_or_a_name():
    one: Any = np.ones((4, 5))
    with pytest.raises(TypeError, match="stencil must be"):
        stencil.entries(one, 0 * one, one, stencil=one)
    with pytest.raises(ValueError, match="there is no photograph"):
        samples.photograph(one)


def test_a_negative_zero_of_noise():
    sample = samples.fingerprint(4, noise=-0.0)
    assert (sample.image == sample.truth)[~sample.gaps].all()


@pytest.mark.parametrize("verb", [aniso.denoise, aniso.enhance])
@pytest.mark.parametrize("scale", [1e20, 1e-25])
def test_grey_values_whose_squares_are_no_numbers(verb, scale):
    """In single precision the estimated risk would be infinite, or 0 for all that was tried."""
    image = IMAGE * scale
    with pytest.raises(ValueError, match="float32 is not enough"):
        verb(image.astype(np.float32))
    ordinary, scaled = verb(IMAGE), verb(image)  # double precision is
    np.testing.assert_allclose(scaled, ordinary * scale, rtol=1e-6)


def test_noise_whose_square_is_no_number():
    for noise in (1e30, 1e-30, 1e300):
        with pytest.raises(ValueError, match="noise reaches"):
            aniso.denoise(IMAGE.astype(np.float32), noise=noise)


@pytest.mark.parametrize("verb", [aniso.inpaint, lambda image: aniso.upsample(image, 2)])
@pytest.mark.parametrize(("dtype", "scale"), [("float32", 1e36), ("float64", 1e200)])
def test_grey_values_whose_sums_are_no_numbers(verb, dtype, scale):
    with pytest.raises(ValueError, match=f"{dtype} is not enough"):
        verb((IMAGE * scale).astype(dtype))


def test_numbers_beyond_double_precision():
    huge = np.full((4, 5), np.longdouble("1e4000"))
    for call in (
        lambda: aniso.diffuse(huge, aniso.Homogeneous(), 1.0),
        lambda: aniso.upsample(huge, 2),
        lambda: aniso.FreeStencil(huge),
        lambda: aniso.FixedTensor.from_entries(huge, 0 * huge, huge),
    ):
        with pytest.raises(ValueError, match="NaN or infinite"):
            call()
