"""Laws: what holds for every engine, every model and, where it makes sense, every scheme."""

import sys
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import aniso
from aniso import engines
from aniso.models import DIFFUSIVITIES
from tests.registry import (
    DTYPES,
    ENGINES,
    MODELS,
    SAMPLES,
    SCHEMES,
    SYMMETRIES,
    Engine,
    colours,
    rational,
    scaled_contrast,
)

SHAPE = (16, 13)
SPACING = (0.8, 1.3)
STEP = 0.25  # below the limit of all models for this spacing and the default stencil
TIME = 8 * STEP

every_engine = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_model = pytest.mark.parametrize("name", MODELS)
every_scheme = pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
every_symmetry = pytest.mark.parametrize("symmetry", SYMMETRIES, ids=lambda s: s.name)


def noisy(dtype, sample="edges", shape=SHAPE):
    return SAMPLES[sample](shape).astype(dtype)


def mean(image):
    return image.mean(axis=(0, 1), dtype=np.float64)


@every_engine
@every_dtype
@every_model
class TestEveryModel:
    spacing = SPACING

    @every_scheme
    def test_the_mean_is_kept(self, engine, dtype, name, scheme):
        image = noisy(dtype)
        result = engine.diffuse(image, MODELS[name](SHAPE), TIME, scheme=scheme)
        assert abs(result - image).max() > 0.1  # something happened
        assert abs(mean(result) - mean(image)) <= engine.tolerance(dtype) * abs(image).max()

    def test_the_mean_of_every_channel_is_kept(self, engine, dtype, name):
        image = colours(SAMPLES["edges"], SHAPE).astype(dtype)
        result = engine.diffuse(image, MODELS[name](SHAPE), TIME, channel_axis=-1)
        slack = engine.tolerance(dtype) * abs(image).max()
        assert (abs(mean(result) - mean(image)) <= slack).all()

    @every_scheme
    def test_a_constant_image_stays(self, engine, dtype, name, scheme):
        for value in (0.0, -7.3, 1e4):
            image = np.full(SHAPE, value, dtype)
            result = engine.diffuse(image, MODELS[name](SHAPE), TIME, scheme=scheme)
            engine.assert_equal(result, image)

    @every_symmetry
    def test_turning_the_image_turns_the_result(self, engine, dtype, name, symmetry):
        image, model = noisy(dtype), MODELS[name](SHAPE)
        straight = engine.diffuse(image, model, TIME, spacing=self.spacing, scheme=aniso.Explicit(STEP))
        turned = engine.diffuse(
            symmetry.image(image),
            symmetry.model(model),
            TIME,
            spacing=symmetry.spacing(self.spacing),
            scheme=aniso.Explicit(STEP),
        )
        engine.assert_equal(turned, symmetry.image(straight))

    def test_turning_a_colour_image_turns_the_result(self, engine, dtype, name):
        image, model = colours(SAMPLES["edges"], SHAPE).astype(dtype), MODELS[name](SHAPE)
        straight = engine.diffuse(image, model, TIME, channel_axis=-1)
        for symmetry in SYMMETRIES:
            turned = engine.diffuse(symmetry.image(image), symmetry.model(model), TIME, channel_axis=-1)
            engine.assert_equal(turned, symmetry.image(straight))

    @pytest.mark.parametrize("constant", [-100.0, 1000.0])
    def test_adding_a_constant_commutes(self, engine, dtype, name, constant):
        image, model = noisy(dtype), MODELS[name](SHAPE)
        lifted = image + np.dtype(dtype).type(constant)
        expected = engine.diffuse(image, model, TIME) + np.dtype(dtype).type(constant)
        slack = 10 * engine.tolerance(dtype) * abs(lifted).max()  # what lifting rounds off
        result = engine.diffuse(lifted, model, TIME)
        assert abs(result - expected).max() <= slack

    @pytest.mark.parametrize("factor", [1e-6, 0.1, 255.0, 1e6])
    def test_scaling_image_and_contrast_together_commutes(self, engine, dtype, name, factor):
        image, model = noisy(dtype), MODELS[name](SHAPE)
        scale = np.dtype(dtype).type(factor)
        expected = scale * engine.diffuse(image, model, TIME)
        result = engine.diffuse(scale * image, scaled_contrast(model, float(scale)), TIME)
        assert result.dtype == dtype
        slack = 10 * engine.tolerance(dtype) * abs(expected).max()  # what scaling rounds off
        assert abs(result - expected).max() <= slack

    def test_negating_the_image_negates_the_result(self, engine, dtype, name):
        image, model = noisy(dtype), MODELS[name](SHAPE)
        engine.assert_equal(engine.diffuse(-image, model, TIME), -engine.diffuse(image, model, TIME))

    @every_scheme
    def test_three_equal_channels_equal_grey(self, engine, dtype, name, scheme):
        image, model = noisy(dtype), MODELS[name](SHAPE)
        grey = engine.diffuse(image, model, TIME, scheme=scheme)
        result = engine.diffuse(np.stack([image] * 3, -1), model, TIME, scheme=scheme, channel_axis=-1)
        engine.assert_equal(result, np.stack([grey] * 3, -1))

    def test_one_channel_equals_grey(self, engine, dtype, name):
        image, model = noisy(dtype), MODELS[name](SHAPE)
        grey = engine.diffuse(image, model, TIME)
        result = engine.diffuse(image[np.newaxis], model, TIME, channel_axis=0)
        np.testing.assert_array_equal(result[0], grey)

    @pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
    def test_channels_may_lie_along_any_axis(self, engine, dtype, name, axis):
        image, model = colours(SAMPLES["edges"], SHAPE, 2).astype(dtype), MODELS[name](SHAPE)
        last = engine.diffuse(image, model, STEP, channel_axis=-1)
        moved = engine.diffuse(np.moveaxis(image, -1, axis), model, STEP, channel_axis=axis)
        np.testing.assert_array_equal(moved, np.moveaxis(last, -1, axis))

    @every_scheme
    def test_the_input_is_never_modified(self, engine, dtype, name, scheme):
        for image in (noisy(dtype), colours(SAMPLES["edges"], SHAPE).astype(dtype)):
            before = image.copy()
            mask = np.zeros(SHAPE, bool)
            mask[3] = True
            axis = -1 if image.ndim == 3 else None
            model = MODELS[name](SHAPE)
            result = engine.diffuse(image, model, TIME, scheme=scheme, fixed=mask, channel_axis=axis)
            np.testing.assert_array_equal(image, before)
            assert not np.shares_memory(result, image)
            assert mask.sum() == SHAPE[1]

    def test_read_only_input_serves(self, engine, dtype, name):
        image, model = noisy(dtype), MODELS[name](SHAPE)
        expected = engine.diffuse(image, model, STEP)
        image.flags.writeable = False
        result = engine.diffuse(image, model, STEP)
        np.testing.assert_array_equal(result, expected)
        result[0, 0] = 0  # the result is the caller's

    @every_scheme
    def test_two_runs_are_bit_equal(self, engine, dtype, name, scheme):
        image, model = noisy(dtype), MODELS[name](SHAPE)
        first, second = (engine.diffuse(image, model, TIME, scheme=scheme) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_a_larger_time_from_a_snapshot_equals_the_direct_run(self, engine, dtype, name):
        image, model, scheme = noisy(dtype), MODELS[name](SHAPE), aniso.Explicit(STEP)
        direct = engine.diffuse(image, model, 8 * STEP, scheme=scheme)
        snapshot = engine.diffuse(image, model, 3 * STEP, scheme=scheme)
        engine.assert_equal(engine.diffuse(snapshot, model, 5 * STEP, scheme=scheme), direct)
        *_, (_, last) = engine.scale_space(image, model, [STEP, 3 * STEP, 4 * STEP, 8 * STEP], scheme=scheme)
        engine.assert_equal(last, direct)

    @every_scheme
    def test_fixed_pixels_keep_their_bits(self, engine, dtype, name, scheme):
        image, model = colours(SAMPLES["edges"], SHAPE, 2).astype(dtype), MODELS[name](SHAPE)
        mask = np.random.default_rng(0).random(SHAPE) < 0.3
        mask[0, 0] = mask[-1, -1] = True
        result = engine.diffuse(image, model, TIME, scheme=scheme, fixed=mask, channel_axis=-1)
        np.testing.assert_array_equal(result[mask], image[mask])
        assert (result[~mask] != image[~mask]).mean() > 0.9

    @every_scheme
    def test_no_time_gives_the_image_back(self, engine, dtype, name, scheme):
        image = noisy(dtype)
        result = engine.diffuse(image, MODELS[name](SHAPE), 0, scheme=scheme)
        np.testing.assert_array_equal(result, image)
        assert not np.shares_memory(result, image)

    @pytest.mark.parametrize("scheme", SCHEMES[:1] + SCHEMES[2:], ids=repr)
    @pytest.mark.parametrize("channels", [None, 3])
    def test_every_engine_computes_what_the_reference_does(self, engine, dtype, name, scheme, channels):
        image = noisy(dtype) if channels is None else colours(SAMPLES["edges"], SHAPE).astype(dtype)
        options = {
            "scheme": scheme,
            "spacing": self.spacing,
            "channel_axis": None if channels is None else -1,
        }
        model = MODELS[name](SHAPE)
        expected = aniso.diffuse(image.astype(np.float64), model, TIME, engine="reference", **options)
        engine.assert_equal(engine.diffuse(image, model, TIME, **options), expected)


@every_engine
@every_dtype
@pytest.mark.parametrize("name", ["homogeneous", "fixed tensor"])
def test_linear_diffusion_knows_no_scale(engine, dtype, name):
    """Not even one whose squares overflow."""
    image, model = noisy(dtype), MODELS[name](SHAPE)
    scale = np.dtype(dtype).type({"float32": 1e30, "float64": 1e200}[dtype])
    expected = engine.diffuse(image, model, TIME) * scale
    assert abs(engine.diffuse(scale * image, model, TIME) - expected).max() <= 1e-5 * expected.max()


@every_engine
@every_dtype
class TestDiffusivitiesOfTheUsersOwn:
    """One that is written like a built-in one does what that does; so all laws hold for it too."""

    @staticmethod
    def charbonnier(r):
        return (1 + r) ** -0.5

    @pytest.mark.parametrize("channels", [1, 3])
    @pytest.mark.parametrize("kind", [aniso.EdgeEnhancing, aniso.PeronaMalik])
    def test_it_equals_the_built_in_one(self, engine, dtype, kind, channels):
        image = colours(SAMPLES["edges"], SHAPE, channels).astype(dtype)
        own, built_in = (
            engine.diffuse(image, kind(12.0, 1.0, g), TIME, spacing=SPACING, channel_axis=-1)
            for g in (self.charbonnier, "charbonnier")
        )
        assert own.dtype == dtype
        slack = max(engine.tolerance(dtype), 1e-8)  # ψ = (1 − g)/r is a difference quotient here
        assert abs(own - built_in).max() <= slack * abs(built_in).max()

    def test_tiny_and_huge_images(self, engine, dtype):
        for factor in (1e-6, 1e6):
            image = (factor * SAMPLES["edges"](SHAPE)).astype(dtype)
            model = aniso.EdgeEnhancing(12.0 * factor, 1.0, self.charbonnier)
            expected = engine.diffuse(image, aniso.EdgeEnhancing(12.0 * factor, 1.0, "charbonnier"), TIME)
            result = engine.diffuse(image, model, TIME)
            assert abs(result - expected).max() <= max(engine.tolerance(dtype), 1e-8) * abs(expected).max()


@every_engine
class TestStrongContrasts:
    """Where gradients are thousands of times the contrast, rounding must not pose as structure."""

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("diffusivity", list(DIFFUSIVITIES))
    @pytest.mark.parametrize("contrast", [1e-1, 10.0])
    def test_three_equal_channels_equal_grey(self, engine, dtype, diffusivity, contrast):
        y, x = np.mgrid[:48, :48]
        noise = np.random.default_rng(0).normal(0, 100, x.shape)
        grey = (np.where(3 * x + 4 * y > 160, 60000, 500) + noise).astype(dtype)
        model = aniso.EdgeEnhancing(contrast, 1.0, diffusivity)
        colour = engine.diffuse(np.stack([grey] * 3, -1), model, 5.0, channel_axis=-1)
        error = abs(colour[..., 1] - engine.diffuse(grey, model, 5.0)).max()
        assert error <= 50 * engine.tolerance(dtype) * 60000

    def test_a_callable_on_channels_without_a_common_direction(self, engine):
        y, x = np.mgrid[:32, :32]
        crossed = np.stack([100.0 * x, 100.0 * y], -1).astype(np.float32)
        model = aniso.EdgeEnhancing(1.0, 1.0, rational)
        assert np.isfinite(engine.diffuse(crossed, model, 1.0, channel_axis=-1)).all()


@every_engine
@every_model
class TestStability:
    """The Euclidean norm never grows, however long the largest stable step is taken."""

    SLACK = 1e-12
    CASES = (
        (aniso.DeltaStencil(), (1.0, 1.0), 1, 1000),
        (aniso.DeltaStencil(), (0.7, 1.6), 3, 1000),
        (aniso.DeltaStencil.named("standard"), (1.3, 1.0), 1, 200),
        (aniso.DeltaStencil(0.1, -0.8), (1.0, 0.5), 2, 200),
        (aniso.DeltaStencil.named("forward-forward"), (1.0, 1.0), 1, 200),
        (aniso.DeltaStencil.named("cell-centred"), (1.0, 2.0), 1, 200),
    )

    def assert_no_growth(self, snapshots):
        before = np.inf
        for _, image in snapshots:
            now = np.linalg.norm(image)
            assert now <= before * (1 + self.SLACK)
            before = now

    @pytest.mark.parametrize(("stencil", "spacing", "channels", "steps"), CASES, ids=str)
    def test_at_the_largest_step(self, engine, name, stencil, spacing, channels, steps):
        model = MODELS[name](SHAPE)
        image = colours(SAMPLES["noise"], SHAPE, channels)
        if steps == 1000:
            image = image - image.mean(axis=(0, 1))  # or its norm hides that of the rest
        step = aniso.stability.stable_step(model, stencil, spacing)
        snapshots = engine.scale_space(
            image,
            model,
            step * np.arange(steps + 1),
            stencil=stencil,
            spacing=spacing,
            channel_axis=-1,
            scheme=aniso.Explicit(step),
        )
        self.assert_no_growth(snapshots)

    @pytest.mark.parametrize("kind", [aniso.FED, aniso.FSI])
    def test_after_every_cycle(self, engine, name, kind):
        model = MODELS[name](SHAPE)
        image = SAMPLES["noise"](SHAPE) - 100
        stencil = aniso.DeltaStencil(0.1, -0.8)
        snapshots = engine.scale_space(
            image, model, 10.0 * np.arange(8), stencil=stencil, spacing=(1.0, 0.7), scheme=kind(2)
        )
        self.assert_no_growth(snapshots)

    def test_a_free_stencil_is_stable_too(self, engine, name):
        model = MODELS[name](SHAPE)
        # Where δ exceeds (a + c)/2 it is cut, but given tensors refuse it.
        highest = 0.0 if name == "fixed tensor" else 0.5
        cells = (SHAPE[0] + 1, SHAPE[1] + 1)
        stencil = aniso.FreeStencil(np.random.default_rng(4).uniform(-0.5, highest, cells))
        spacing = (0.9, 1.4)
        step = aniso.stability.stable_step(model, stencil, spacing)
        snapshots = engine.scale_space(
            SAMPLES["noise"](SHAPE) - 100,
            model,
            step * np.arange(200),
            stencil=stencil,
            spacing=spacing,
            scheme=aniso.Explicit(step),
        )
        self.assert_no_growth(snapshots)


@every_engine
class TestMembersWithBeta:
    """δ = α(a + c) + βb knows left from right: transposing and turning it upside down is all it allows."""

    @staticmethod
    def both(engine, stencil, symmetry):
        image, model = SAMPLES["edges"](SHAPE), aniso.EdgeEnhancing(30.0, 1.0, "charbonnier")
        straight = engine.diffuse(image, model, TIME, stencil=stencil)
        turned = engine.diffuse(symmetry.image(image), model, TIME, stencil=stencil)
        return turned, symmetry.image(straight)

    @pytest.mark.parametrize("member", ["forward-forward", "forward-backward"])
    @every_symmetry
    def test_they_are_not_equivariant_where_b_changes_sign(self, engine, member, symmetry):
        stencil = aniso.DeltaStencil.named(member)
        turned, straight = self.both(engine, stencil, symmetry)
        if symmetry.name in ("transposition", "half turn", "other diagonal"):
            engine.assert_equal(turned, straight)
        else:
            assert abs(turned - straight).max() > 0.01

    @every_symmetry
    def test_all_others_are(self, engine, symmetry):
        for stencil in (aniso.DeltaStencil(0.0, 1.0), aniso.DeltaStencil(0.3, -0.7)):
            engine.assert_equal(*self.both(engine, stencil, symmetry))


small_images = npst.arrays(
    np.float64,
    npst.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6),
    elements=st.floats(-200, 200, width=32),
)
stencils = st.builds(aniso.DeltaStencil, st.floats(0, 0.5), st.floats(-1, 1))
spacings = st.tuples(st.floats(0.3, 3), st.floats(0.3, 3))
image_driven = st.one_of(
    st.builds(
        aniso.EdgeEnhancing,
        st.floats(0.1, 100),
        st.floats(0, 4),
        st.sampled_from(list(DIFFUSIVITIES)),
    ),
    st.builds(
        aniso.CoherenceEnhancing,
        st.floats(0.1, 100),
        st.floats(0, 3),
        st.floats(0, 5),
        st.floats(0, 1),
    ),
    st.builds(aniso.PeronaMalik, st.floats(0.1, 100), st.floats(0, 4)),
    st.just(aniso.Homogeneous()),
)


@every_engine
@settings(max_examples=150)
@given(image=small_images, model=image_driven, stencil=stencils, spacing=spacings)
def test_any_parameters_keep_the_mean_and_let_no_norm_grow(engine, image, model, stencil, spacing):
    step = aniso.stability.stable_step(model, stencil, spacing)
    result = engine.diffuse(
        image, model, 5 * step, stencil=stencil, spacing=spacing, scheme=aniso.Explicit(step)
    )
    assert np.linalg.norm(result) <= np.linalg.norm(image) * (1 + 1e-12)
    assert abs(result.mean() - image.mean()) <= 1e-12 * abs(image).max()


@every_engine
@settings(max_examples=100)
@given(
    image=small_images,
    model=image_driven,
    stencil=stencils,
    spacing=spacings,
    symmetry=st.sampled_from(SYMMETRIES),
)
def test_any_parameters_are_equivariant(engine, image, model, stencil, spacing, symmetry):
    step = 0.5 * aniso.stability.stable_step(model, stencil, spacing)
    straight = engine.diffuse(
        image, model, step, stencil=stencil, spacing=spacing, scheme=aniso.Explicit(step)
    )
    turned = engine.diffuse(
        symmetry.image(image),
        model,
        step,
        stencil=stencil,
        spacing=symmetry.spacing(spacing),
        scheme=aniso.Explicit(step),
    )
    np.testing.assert_allclose(turned, symmetry.image(straight), rtol=0, atol=1e-9 * abs(image).max())


@every_engine
@settings(max_examples=60)
@given(image=small_images, model=image_driven, exponent=st.integers(-12, 12))
def test_any_scale_commutes(engine, image, model, exponent):
    factor = 10.0**exponent
    expected = factor * engine.diffuse(image, model, 1.0)
    result = engine.diffuse(factor * image, scaled_contrast(model, factor), 1.0)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-9 * abs(factor * image).max())


class TestLawsCanFail:
    """Engines that are wrong on purpose are caught."""

    class Leaky:
        """Loses a thousandth of the image in every cycle."""

        def __init__(self, image, problem):
            self.image = image.astype(np.float64)

        def advance(self, cycle):
            self.image = self.flow(self.image) * 0.999

        def close(self):
            pass

        @staticmethod
        def flow(u):
            """Some diffusion: a tenth of the way to the mean."""
            return u + 0.1 * (u.mean(axis=(1, 2), keepdims=True) - u)

    class Windy(Leaky):
        """Blows everything a little to the right."""

        def advance(self, cycle):
            self.image = 0.9 * self.image + 0.1 * np.roll(self.image, 1, axis=2)

    class Absolute(Leaky):
        """Pulls towards a grey value of its own."""

        def advance(self, cycle):
            self.image = self.image + 0.1 * (50.0 - self.image)

    class Restless(Leaky):
        """Never does the same twice."""

        def advance(self, cycle):
            self.image = self.flow(self.image) + np.random.default_rng().normal(0, 1e-3, self.image.shape)

    class Growing(Leaky):
        """Sharpens."""

        def advance(self, cycle):
            self.image = self.image + 0.01 * (self.image - self.flow(self.image))

    class Forgetful(Leaky):
        """Tires after three cycles."""

        def __init__(self, image, problem):
            super().__init__(image, problem)
            self.cycles = 0

        def advance(self, cycle):
            self.cycles += 1
            self.image = self.image if self.cycles > 3 else self.flow(self.image)

    @pytest.fixture
    def register(self, monkeypatch):
        def registered(evolution):
            module = types.ModuleType("broken_engine")
            module.Evolution = evolution  # type: ignore[attr-defined]
            monkeypatch.setitem(sys.modules, "broken_engine", module)
            row = engines.Engine(name="broken", module="broken_engine", summary="broken on purpose")
            monkeypatch.setitem(engines.ENGINES, "broken", row)
            return Engine("broken", float32=5e-7, float64=2e-13)

        return registered

    def laws_broken_by(self, engine, name="homogeneous", spacing=SPACING):
        """Names of the laws that fail with this engine and model, a scheme or symmetry chosen for them."""
        laws, args = TestEveryModel(), (engine, "float64", name)
        laws.spacing = spacing
        scheme, left_right = SCHEMES[0], SYMMETRIES[1]
        steps = (aniso.DeltaStencil(), (1.0, 1.0), 1, 100)
        verdicts = {
            "mean": lambda: laws.test_the_mean_is_kept(*args, scheme),
            "constant": lambda: laws.test_a_constant_image_stays(*args, scheme),
            "mirror": lambda: laws.test_turning_the_image_turns_the_result(*args, left_right),
            "lift": lambda: laws.test_adding_a_constant_commutes(*args, 1000.0),
            "scale": lambda: laws.test_scaling_image_and_contrast_together_commutes(*args, 0.1),
            "twice": lambda: laws.test_two_runs_are_bit_equal(*args, scheme),
            "snapshot": lambda: laws.test_a_larger_time_from_a_snapshot_equals_the_direct_run(*args),
            "fixed": lambda: laws.test_fixed_pixels_keep_their_bits(*args, scheme),
            "norm": lambda: TestStability().test_at_the_largest_step(engine, name, *steps),
            "reference": lambda: laws.test_every_engine_computes_what_the_reference_does(*args, scheme, None),
        }
        broken = set()
        for law, verdict in verdicts.items():
            try:
                verdict()
            except AssertionError:
                broken.add(law)
        return broken

    @pytest.mark.parametrize(
        ("evolution", "laws"),
        [
            (Leaky, {"mean", "constant", "lift"}),
            (Windy, {"mirror"}),
            (Absolute, {"mean", "constant", "lift", "scale"}),
            (Restless, {"mean", "constant", "twice", "mirror"}),
            (Growing, {"norm"}),
            (Forgetful, {"snapshot"}),
        ],
        ids=lambda value: getattr(value, "__name__", None),
    )
    def test_a_wrong_engine_breaks_its_law(self, register, evolution, laws):
        broken = self.laws_broken_by(register(evolution))
        assert broken >= laws | {"fixed", "reference"}

    @pytest.mark.quick
    @every_engine
    @every_model
    def test_a_right_engine_breaks_none(self, engine, name):
        # One precision and one spacing: other kernels would have to be compiled for other ones.
        assert not self.laws_broken_by(engine, name, spacing=(1.0, 1.0))
