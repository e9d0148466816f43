"""Models: their tensors against a transcription with eigenvectors, and models as data."""

import dataclasses
import math
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import aniso
from aniso import engines
from aniso.engines import reference
from aniso.parameters import of_model
from oracles import eigenvector_models as oracle
from tests.registry import ENGINES, MODELS, SAMPLES, colours, random_tensors, rational

DIFFUSIVITIES = {**oracle.DIFFUSIVITIES, "callable": rational}
SPACINGS = ((1.0, 1.0), (1.5, 0.7))
SHAPE = (7, 9)
#: Where the mirrored image is all boundary, and kernels are wider than the image.
NARROW = ((1, 8), (8, 1), (2, 2), (1, 1), (2, 5), (3, 1))


def library_diffusivity(name):
    return rational if name == "callable" else name


def channels_first(image, channels):
    return np.moveaxis(colours(image, SHAPE, channels), -1, 0)


def assert_tensors_equal(model, image, spacing, expected):
    """Every cell, those on the boundary included."""
    problem = engines.Problem(model, aniso.DeltaStencil(), spacing)
    a, b, c = reference.diffusion_tensor(image, problem)
    actual = np.moveaxis(np.array([[a, b], [b, c]]), (0, 1), (2, 3))
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("spacing", SPACINGS)
@pytest.mark.parametrize("channels", [1, 3])
class TestAgainstEigenvectors:
    """On all samples."""

    @pytest.mark.parametrize("name", DIFFUSIVITIES)
    @pytest.mark.parametrize(("contrast", "sigma"), [(8.0, 0.8), (20.0, 0.0)])
    def test_edge_enhancing(self, channels, spacing, name, contrast, sigma):
        model = aniso.EdgeEnhancing(contrast, sigma, library_diffusivity(name))
        for sample in SAMPLES.values():
            image = channels_first(sample, channels)
            expected = oracle.edge_enhancing(image, spacing, contrast, sigma, DIFFUSIVITIES[name])
            assert np.ptp(expected[..., 0, 1]) > 0.02  # or the test would show little
            assert_tensors_equal(model, image, spacing, expected)

    @pytest.mark.parametrize("name", DIFFUSIVITIES)
    def test_edge_continuing(self, channels, spacing, name):
        model = aniso.EdgeContinuing(8.0, 0.6, 1.2, library_diffusivity(name))
        for sample in SAMPLES.values():
            image = channels_first(sample, channels)
            expected = oracle.edge_continuing(image, spacing, 8.0, 0.6, 1.2, DIFFUSIVITIES[name])
            assert_tensors_equal(model, image, spacing, expected)

    @pytest.mark.parametrize(("sigma", "rho", "eps"), [(0.5, 1.5, 1e-3), (0.0, 4.0, 0.0), (1.0, 0.0, 0.1)])
    def test_coherence_enhancing(self, channels, spacing, sigma, rho, eps):
        model = aniso.CoherenceEnhancing(4.0, sigma, rho, eps)
        for sample in SAMPLES.values():
            image = channels_first(sample, channels)
            expected = oracle.coherence_enhancing(image, spacing, 4.0, sigma, rho, eps)
            assert np.ptp(expected) > 0.02
            assert_tensors_equal(model, image, spacing, expected)

    @pytest.mark.parametrize("name", DIFFUSIVITIES)
    def test_perona_malik(self, channels, spacing, name):
        model = aniso.PeronaMalik(12.0, 0.5, library_diffusivity(name))
        for sample in SAMPLES.values():
            image = channels_first(sample, channels)
            expected = oracle.scalar(image, spacing, 12.0, 0.5, DIFFUSIVITIES[name])
            assert_tensors_equal(model, image, spacing, expected)


@pytest.mark.parametrize("shape", NARROW)
@pytest.mark.parametrize("sigma", [0.0, 1.0, 4.0])
def test_narrow_images_against_eigenvectors(shape, sigma):
    image, spacing = SAMPLES["noise"](shape)[np.newaxis], (1.0, 1.0)
    for name, g in DIFFUSIVITIES.items():
        model = aniso.EdgeEnhancing(5.0, sigma, library_diffusivity(name))
        assert_tensors_equal(model, image, spacing, oracle.edge_enhancing(image, spacing, 5.0, sigma, g))
    expected = oracle.coherence_enhancing(image, spacing, 5.0, sigma, 3.0, 1e-3)
    assert_tensors_equal(aniso.CoherenceEnhancing(5.0, sigma, 3.0), image, spacing, expected)


STENCILS = (
    aniso.DeltaStencil(),
    aniso.DeltaStencil.named("standard"),
    aniso.DeltaStencil(0.2, -0.5),
    aniso.DeltaStencil.named("forward-backward"),
)

#: Name → the model, and the oracle's tensors of an image with this spacing.
PROCESSES: dict[str, tuple[Any, Callable[..., Any]]] = {
    **{
        f"edge, {name}": (
            aniso.EdgeEnhancing(12.0, 0.8, library_diffusivity(name)),
            partial(oracle.edge_enhancing, contrast=12.0, sigma=0.8, g=g),
        )
        for name, g in DIFFUSIVITIES.items()
    },
    "coherence": (
        aniso.CoherenceEnhancing(8.0, 0.5, 1.5),
        partial(oracle.coherence_enhancing, contrast=8.0, sigma=0.5, rho=1.5, eps=1e-3),
    ),
    "perona-malik": (
        aniso.PeronaMalik(12.0, 0.5),
        partial(oracle.scalar, contrast=12.0, sigma=0.5, g=oracle.perona_malik),
    ),
    "homogeneous": (
        aniso.Homogeneous(),
        lambda u, _: np.broadcast_to(np.eye(2), (u.shape[1] + 1, u.shape[2] + 1, 2, 2)),
    ),
}


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
class TestStepsAgainstEigenvectors:
    @pytest.mark.parametrize("spacing", SPACINGS)
    @pytest.mark.parametrize("channels", [1, 3])
    @pytest.mark.parametrize("process", PROCESSES)
    def test_five_steps(self, engine, process, channels, spacing):
        model, tensors = PROCESSES[process]
        image = channels_first(SAMPLES["edges"], channels)
        step = 0.2
        expected = oracle.explicit_steps(image, lambda u: tensors(u, spacing), 5, step, spacing)
        actual = engine.diffuse(
            image, model, 5 * step, scheme=aniso.Explicit(step), spacing=spacing, channel_axis=0
        )
        assert abs(actual - image).max() > 1
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)

    @pytest.mark.parametrize("stencil", STENCILS, ids=str)
    @pytest.mark.parametrize("process", ["edge, weickert", "coherence"])
    def test_two_steps_with_other_stencils(self, engine, process, stencil):
        model, tensors = PROCESSES[process]
        spacing, step = SPACINGS[1], 0.08
        image = channels_first(SAMPLES["noise"], 1)
        choice = (stencil.alpha, stencil.gamma, stencil.beta)
        expected = oracle.explicit_steps(image, lambda u: tensors(u, spacing), 2, step, spacing, *choice)
        actual = engine.diffuse(
            image[0], model, 2 * step, stencil=stencil, scheme=aniso.Explicit(step), spacing=spacing
        )
        np.testing.assert_allclose(actual, expected[0], rtol=0, atol=1e-9)

    @pytest.mark.parametrize("shape", NARROW)
    def test_narrow_images(self, engine, shape):
        model, tensors = PROCESSES["edge, weickert"]
        image = SAMPLES["noise"](shape)
        expected = oracle.explicit_steps(
            image[np.newaxis], lambda u: tensors(u, (1.0, 1.0)), 3, 0.4, (1.0, 1.0)
        )
        actual = engine.diffuse(image, model, 1.2, scheme=aniso.Explicit(0.4))
        np.testing.assert_allclose(actual, expected[0], rtol=0, atol=1e-9)

    @pytest.mark.parametrize("spacing", SPACINGS)
    @pytest.mark.parametrize("stencil", [STENCILS[0], STENCILS[1]], ids=str)
    def test_given_tensors_follow_the_matrix(self, engine, stencil, spacing):
        model = random_tensors(SHAPE)
        image = SAMPLES["noise"](SHAPE)
        (c, b), (_, a) = model.tensor
        step = aniso.stability.stable_step(model, stencil, spacing)
        rate = aniso.stencil.matrix(a, b, c, stencil, spacing)
        expected = image.ravel()
        for _ in range(4):
            expected = expected + step * (rate @ expected)
        actual = engine.diffuse(
            image, model, 4 * step, stencil=stencil, scheme=aniso.Explicit(step), spacing=spacing
        )
        np.testing.assert_allclose(actual.ravel(), expected, rtol=0, atol=1e-9)

    def test_delta_given_per_cell_follows_the_matrix(self, engine):
        shape = (5, 6)
        cells = (6, 7)
        free = aniso.FreeStencil(np.random.default_rng(3).uniform(-0.5, 0.9, cells))
        image = SAMPLES["noise"](shape)
        one, zero = np.ones(cells), np.zeros(cells)
        for spacing in SPACINGS:
            rate = aniso.stencil.matrix(one, zero, one, free, spacing)
            expected = image.ravel() + 0.05 * (rate @ image.ravel())
            actual = engine.diffuse(image, aniso.Homogeneous(), 0.05, stencil=free, spacing=spacing)
            np.testing.assert_allclose(actual.ravel(), expected, rtol=0, atol=1e-9)


def test_homogeneous_diffusion_spreads_like_a_gaussian():
    image = np.zeros((41, 41))
    image[20, 20] = 1.0
    result = aniso.diffuse(image, aniso.Homogeneous(), 6.0)
    offsets = np.arange(41) - 20
    for axis in (0, 1):
        profile = result.sum(axis=1 - axis)
        assert (profile * offsets).sum() == pytest.approx(0, abs=1e-12)
        assert (profile * offsets**2).sum() == pytest.approx(2 * 6.0, rel=1e-6)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_second_moments_grow_with_the_tensor(engine):
    """In units of length, off-diagonal entry and its sign included; any stencil."""
    tensor = np.array([[0.3, -0.25], [-0.25, 0.9]])  # axis 0 first
    shape, spacing = (31, 33), (1.25, 0.8)
    image = np.zeros(shape)
    image[15, 16] = 1.0
    model = aniso.FixedTensor.from_matrix(tensor, shape)
    for stencil in STENCILS:
        result = engine.diffuse(
            image, model, 1.0, stencil=stencil, spacing=spacing, scheme=aniso.Explicit(0.1)
        )
        y = (np.arange(31) - 15)[:, np.newaxis] * spacing[0]
        x = (np.arange(33) - 16) * spacing[1]
        moments = [[(result * p * q).sum() for q in (y, x)] for p in (y, x)]
        np.testing.assert_allclose(moments, 2 * 1.0 * tensor, atol=1e-12)


class TestBehaviour:
    """What the models are for."""

    def test_edges_stay_and_noise_goes(self):
        sample = aniso.samples.shapes(64, noise=15.0)

        def error(image):
            return np.sqrt(((image - sample.truth) ** 2).mean())

        kept = error(aniso.diffuse(sample.image, aniso.EdgeEnhancing(6.0), 4.0))
        times = [0.25, 0.5, 0.75, 1.0]
        blurred = (u for _, u in aniso.scale_space(sample.image, aniso.Homogeneous(), times))
        assert kept < 0.4 * error(sample.image)
        assert kept < 0.6 * min(map(error, blurred))

    def test_gaps_close(self):
        sample = aniso.samples.fingerprint(96, noise=10.0)
        model = aniso.CoherenceEnhancing(contrast=5.0, sigma=1.0, rho=5.0)
        result = aniso.diffuse(sample.image, model, 12.0)
        damage = (sample.image - sample.truth)[sample.gaps].mean()
        left = (result - sample.truth)[sample.gaps].mean()
        assert sample.gaps.sum() > 50
        assert abs(left) < 0.6 * abs(damage)


# Models as data

IMAGE_DRIVEN = (aniso.EdgeEnhancing, aniso.CoherenceEnhancing, aniso.PeronaMalik)
WITHOUT_ARRAYS = [make(SHAPE) for name, make in MODELS.items() if name != "fixed tensor"]


@pytest.mark.parametrize("model", WITHOUT_ARRAYS, ids=repr)
class TestModelsWithoutArrays:
    def test_repr_can_be_evaluated(self, model):
        assert eval(repr(model), vars(aniso) | {type(model).__name__: type(model)}) == model

    def test_pickle_gives_an_equal_model(self, model):
        copy = pickle.loads(pickle.dumps(model))
        assert copy == model
        assert hash(copy) == hash(model)

    def test_fields_cannot_be_set(self, model):
        for name in [*(field.name for field in dataclasses.fields(model)), "new"]:
            with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
                setattr(model, name, 1.0)


def test_different_parameters_are_different_models():
    models = {make(SHAPE) for name, make in MODELS.items() if name != "fixed tensor"}
    assert len(models) == len(MODELS) - 1
    assert aniso.EdgeEnhancing(3) == aniso.EdgeEnhancing(contrast=3.0)
    assert len({aniso.EdgeEnhancing(3), aniso.PeronaMalik(3)}) == 2


def test_a_model_with_a_function_of_the_module_is_hashable_and_picklable():
    model = aniso.EdgeEnhancing(2.0, 1.0, rational)
    assert pickle.loads(pickle.dumps(model)) == model
    assert hash(model) == hash(aniso.EdgeEnhancing(2.0, 1.0, rational))


def test_numbers_become_floats():
    given: tuple[Any, ...] = (np.float32(2), np.int64(1), 4, 0)
    model = aniso.CoherenceEnhancing(*given)
    values = dataclasses.astuple(model)[:4]
    assert values == (2.0, 1.0, 4.0, 0.0)
    assert {type(value) for value in values} == {float}


@pytest.mark.parametrize("kind", IMAGE_DRIVEN)
def test_every_parameter_explains_itself(kind):
    """What the command line and the explorer are made from."""
    parameters = of_model(kind).values()
    assert parameters
    for parameter in parameters:
        about = parameter.about
        assert about.symbol or about.switch
        assert isinstance(about.unit, str)
        assert len(about.meaning) > 20
        if about.switch:
            assert isinstance(parameter.default, bool)
        elif about.choices:
            assert parameter.default in about.choices
            assert set(about.choices) == set(oracle.DIFFUSIVITIES)
        else:
            assert about.low <= parameter.default <= about.high
            assert parameter.default > about.low or not about.open_low


NUMERIC = [
    (kind, parameter)
    for kind in IMAGE_DRIVEN
    for parameter in of_model(kind).values()
    if parameter.kind == "number"
]


def test_a_switch_is_true_or_false():
    with pytest.raises(TypeError, match="plates must be True or False, got 1"):
        aniso.CoherenceEnhancing(plates=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "parameter"), NUMERIC, ids=lambda x: getattr(x, "name", None))
class TestNumericParameters:
    def test_the_stated_range_is_the_accepted_one(self, kind, parameter):
        low, high = parameter.about.low, parameter.about.high
        name = parameter.name
        outside = [math.nextafter(low, -math.inf), -1.0]
        if parameter.about.open_low:
            outside.append(low)
        else:
            assert getattr(kind(**{name: low}), name) == low
        if high < math.inf:
            assert getattr(kind(**{name: high}), name) == high
            outside.append(math.nextafter(high, math.inf))
        for value in outside:
            with pytest.raises(ValueError, match=rf"{name} must lie in .*, got {value}: ") as error:
                kind(**{name: value})
            assert parameter.about.meaning in str(error.value)

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_numbers_that_are_none_are_refused(self, kind, parameter, value):
        with pytest.raises(ValueError, match=rf"{parameter.name} must .*got {value}"):
            kind(**{parameter.name: value})

    @pytest.mark.parametrize("value", ["3", None, True, 1j, [1.0], np.array([1.0, 2.0])], ids=str)
    def test_what_is_no_number_is_refused(self, kind, parameter, value):
        with pytest.raises(TypeError, match=rf"{parameter.name} must be a number, got"):
            kind(**{parameter.name: value})


class TestDiffusivities:
    @pytest.mark.parametrize("kind", [aniso.EdgeEnhancing, aniso.PeronaMalik])
    @pytest.mark.parametrize("value", ["gauss", "Weickert", 3.0, None])
    def test_an_unknown_one_is_refused_with_the_names(self, kind, value):
        with pytest.raises(ValueError, match="diffusivity must be one of") as error:
            kind(diffusivity=value)
        assert repr(value) in str(error.value)
        for name in oracle.DIFFUSIVITIES:
            assert f'"{name}"' in str(error.value)

    @pytest.mark.parametrize(
        "g",
        [
            lambda r: 2 / (1 + r),  # not 1 on flat ground
            lambda r: 1 + r,  # beyond 1
            lambda r: 1 - r,  # below 0
            lambda r: 1.0,  # not one value per r
            lambda r: np.where(r > 0, np.nan, 1.0),
        ],
    )
    def test_one_out_of_range_is_refused_with_its_values(self, g):
        with pytest.raises(ValueError, match=r"must be 1 at r = 0 and lie in \(0, 1\]") as error:
            aniso.EdgeEnhancing(diffusivity=g)
        assert "got" in str(error.value)
        assert "step size limit does not hold" in str(error.value)

    def test_one_that_fails_on_arrays_is_refused_with_the_remedy(self):
        with pytest.raises(ValueError, match="must work on arrays, but failed") as error:
            aniso.PeronaMalik(diffusivity=lambda r: math.exp(-r))
        assert "Use numpy.exp" in str(error.value)
        assert isinstance(error.value.__cause__, TypeError)

    def test_one_that_falls_to_zero_is_accepted(self):
        model = aniso.EdgeEnhancing(1.0, 0.0, lambda r: np.exp(-r * r))
        assert np.isfinite(aniso.diffuse(SAMPLES["edges"](SHAPE), model, 1.0, engine="reference")).all()


class TestFixedTensor:
    def test_entries_and_matrix_agree_on_the_axes(self):
        one = np.ones((4, 6))
        by_letters = aniso.FixedTensor.from_entries(3 * one, 0.5 * one, 2 * one)
        by_matrix = aniso.FixedTensor.from_matrix([[2.0, 0.5], [0.5, 3.0]], (3, 5))
        assert by_letters == by_matrix
        assert by_letters.image_shape == (3, 5)
        assert by_letters != aniso.FixedTensor.from_matrix([[3.0, 0.5], [0.5, 2.0]], (3, 5))
        assert by_letters != aniso.FixedTensor.from_matrix([[2.0, 0.5], [0.5, 3.0]], (5, 3))
        assert by_letters != "something else"

    def test_the_axes_are_those_of_the_image(self):
        image = SAMPLES["noise"]((6, 7))
        along_rows = aniso.FixedTensor.from_matrix([[0.0, 0.0], [0.0, 1.0]], (6, 7))
        result = aniso.diffuse(image, along_rows, 200.0, stencil=aniso.DeltaStencil(0.0, 0.0))
        np.testing.assert_allclose(result, np.broadcast_to(image.mean(1)[:, None], (6, 7)))

    def test_it_keeps_a_copy_that_cannot_be_written(self):
        given = np.zeros((2, 2, 4, 4))
        given[0, 0] = 1.0
        model = aniso.FixedTensor(given)
        given[0, 0] = 7.0
        assert (model.tensor[0, 0] == 1).all()
        with pytest.raises(ValueError, match="read-only"):
            model.tensor[0, 0, 0, 0] = 2.0
        with pytest.raises(dataclasses.FrozenInstanceError):
            model.tensor = given  # type: ignore[misc]

    def test_pickle_gives_an_equal_model_that_cannot_be_written(self):
        model = random_tensors(SHAPE)
        copy = pickle.loads(pickle.dumps(model))
        assert copy == model
        assert not copy.tensor.flags.writeable

    def test_it_is_not_hashable(self):
        with pytest.raises(TypeError, match="unhashable"):
            hash(random_tensors(SHAPE))

    def test_its_repr_is_short(self):
        assert repr(random_tensors((7, 9))) == "FixedTensor(<2 × 2 tensors over 8 × 10 cells>)"

    @pytest.mark.parametrize(
        "shape", [(), (2,), (2, 2), (3, 3, 4, 4), (2, 2, 4), (2, 3, 4, 4), (4, 4, 2, 2), (1, 1, 4, 4)]
    )
    def test_a_wrong_shape_is_refused(self, shape):
        with pytest.raises(ValueError, match=r"tensor must have shape \(2, 2, H\+1, W\+1\)") as error:
            aniso.FixedTensor(np.ones(shape))
        assert f"got {shape}" in str(error.value)
        assert "from_matrix(D, shape)" in str(error.value)

    def test_asymmetric_tensors_are_refused_with_the_cell(self):
        tensor = np.zeros((2, 2, 4, 5))
        tensor[0, 0] = tensor[1, 1] = 1.0
        tensor[0, 1, 2, 3] = 0.25
        with pytest.raises(ValueError, match=r"cell \(2, 3\) is not symmetric: 0.25 against 0.0"):
            aniso.FixedTensor(tensor)

    def test_indefinite_tensors_are_refused_with_the_eigenvalue(self):
        tensor = np.zeros((2, 2, 4, 5))
        tensor[0, 0] = tensor[1, 1] = 1.0
        tensor[:, :, 1, 2] = [[1.0, 2.0], [2.0, 1.0]]
        with pytest.raises(ValueError, match=r"cell \(1, 2\) is not positive semidefinite.* -1 "):
            aniso.FixedTensor(tensor)

    def test_a_negative_diffusivity_of_a_signal_is_refused(self):
        with pytest.raises(ValueError, match="not positive semidefinite"):
            aniso.FixedTensor(np.array([[[1.0, -0.5, 1.0]]]))

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_numbers_that_are_none_are_refused_with_their_place(self, bad):
        tensor = np.zeros((2, 2, 4, 5))
        tensor[1, 1, 2, 1] = bad
        with pytest.raises(ValueError, match=r"1 values that are NaN or infinite.*2, 1\)"):
            aniso.FixedTensor(tensor)

    def test_a_matrix_of_the_wrong_size_is_refused(self):
        with pytest.raises(ValueError, match=r"must be a 2 × 2 matrix, got shape \(3, 3\)"):
            aniso.FixedTensor.from_matrix(np.eye(3), (8, 8))

    def test_float32_tensors_on_the_edge_of_semidefiniteness_are_accepted(self):
        angle = np.linspace(0, np.pi, 36).reshape(6, 6)
        entries = np.cos(angle) ** 2, np.sin(angle) * np.cos(angle), np.sin(angle) ** 2
        model = aniso.FixedTensor.from_entries(*(entry.astype(np.float32) for entry in entries))
        assert model.tensor.dtype == np.float64


@pytest.mark.parametrize(
    ("model", "eigenvalues"),
    [
        (aniso.EdgeEnhancing(), (1.0, 1.0)),
        (aniso.PeronaMalik(), (1.0, 1.0)),
        (aniso.CoherenceEnhancing(min_diffusivity=0.2), (1.0, 0.2)),
    ],
    ids=repr,
)
def test_no_tensor_exceeds_the_eigenvalues_that_the_step_limit_rests_on(model, eigenvalues):
    assert model.eigenvalue_bounds() == eigenvalues
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 3.0, 10.0, 1e4):
        for channels in (1, 3):
            image = rng.normal(0, scale, (channels, 12, 12))
            problem = engines.Problem(model, aniso.DeltaStencil(), (1.0, 1.0))
            a, b, c = reference.diffusion_tensor(image, problem)
            both = np.linalg.eigvalsh(np.moveaxis(np.array([[a, b], [b, c]]), (0, 1), (2, 3)))
            assert both.min() >= -1e-14
            assert both[..., 1].max() <= eigenvalues[0] + 1e-14
            assert both[..., 0].max() <= eigenvalues[1] + 1e-14
