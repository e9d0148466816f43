"""Laws in volumes: those of `test_laws`, on volumes so small that all engines and models can afford them."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import aniso
from aniso.models import DIFFUSIVITIES
from aniso.stencil import SplitStencil
from tests.registry import (
    DTYPES,
    SCHEMES,
    VOLUME_ENGINES,
    VOLUME_MODELS,
    VOLUME_SAMPLES,
    VOLUME_SYMMETRIES,
    colours,
    random_tensors,
    scaled_contrast,
)

SHAPE = (7, 6, 5)
SPACING = (0.8, 1.3, 1.0)
STEP = 0.2  # below the limit of all models for this spacing and the default stencil
TIME = 2 * STEP

every_engine = pytest.mark.parametrize("engine", VOLUME_ENGINES, ids=lambda engine: engine.name)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_model = pytest.mark.parametrize("name", VOLUME_MODELS)


def refused(engine, stencil):
    """Whether the engine has no loops for this stencil; it says so, and computes nothing else instead."""
    if engine.name != "cpu" or not isinstance(stencil, SplitStencil):
        return False
    with pytest.raises(NotImplementedError, match="reference"):
        engine.diffuse(np.zeros(SHAPE), aniso.Homogeneous(), 0.1, stencil=stencil)
    return True


def noisy(dtype, shape=SHAPE):
    return VOLUME_SAMPLES["edges"](shape).astype(dtype)


def coloured(dtype, channels=3):
    return colours(VOLUME_SAMPLES["edges"], SHAPE, channels).astype(dtype)


def mean(volume):
    return volume.mean(axis=(0, 1, 2), dtype=np.float64)


@every_engine
@every_dtype
@every_model
class TestEveryModel:
    def test_the_mean_of_every_channel_is_kept(self, engine, dtype, name):
        volume = coloured(dtype, 2)
        for scheme in SCHEMES:
            result = engine.diffuse(volume, VOLUME_MODELS[name](SHAPE), TIME, scheme=scheme, channel_axis=-1)
            assert abs(result - volume).max() > 0.1  # something happened
            assert (abs(mean(result) - mean(volume)) <= engine.tolerance(dtype) * abs(volume).max()).all()

    def test_a_constant_volume_stays(self, engine, dtype, name):
        for value in (0.0, -7.3, 1e4):
            volume = np.full(SHAPE, value, dtype)
            engine.assert_equal(engine.diffuse(volume, VOLUME_MODELS[name](SHAPE), STEP), volume)

    def test_adding_a_constant_and_negating_commute(self, engine, dtype, name):
        volume, model = noisy(dtype), VOLUME_MODELS[name](SHAPE)
        straight = engine.diffuse(volume, model, TIME)
        engine.assert_equal(engine.diffuse(-volume, model, TIME), -straight)
        lifted = engine.diffuse(volume + np.dtype(dtype).type(1000), model, TIME)
        slack = 10 * engine.tolerance(dtype) * abs(lifted).max()  # what lifting rounds off
        assert abs(lifted - np.dtype(dtype).type(1000) - straight).max() <= slack

    def test_scaling_volume_and_contrast_together_commutes(self, engine, dtype, name):
        volume, model = noisy(dtype), VOLUME_MODELS[name](SHAPE)
        straight = engine.diffuse(volume, model, TIME)
        for factor in (1e-6, 255.0, 1e6):
            scale = np.dtype(dtype).type(factor)
            result = engine.diffuse(scale * volume, scaled_contrast(model, float(scale)), TIME)
            assert result.dtype == dtype
            slack = 10 * engine.tolerance(dtype) * abs(scale * straight).max()
            assert abs(result - scale * straight).max() <= slack

    def test_three_equal_channels_and_one_channel_equal_grey(self, engine, dtype, name):
        volume, model = noisy(dtype), VOLUME_MODELS[name](SHAPE)
        grey = engine.diffuse(volume, model, TIME)
        result = engine.diffuse(np.stack([volume] * 3, -1), model, TIME, channel_axis=-1)
        engine.assert_equal(result, np.stack([grey] * 3, -1))
        one = engine.diffuse(volume[np.newaxis], model, TIME, channel_axis=0)
        np.testing.assert_array_equal(one[0], grey)

    def test_channels_may_lie_along_any_axis(self, engine, dtype, name):
        volume, model = coloured(dtype, 2), VOLUME_MODELS[name](SHAPE)
        last = engine.diffuse(volume, model, STEP, channel_axis=-1)
        for axis in (0, 1, 2, -2):
            moved = engine.diffuse(np.moveaxis(volume, -1, axis), model, STEP, channel_axis=axis)
            np.testing.assert_array_equal(moved, np.moveaxis(last, -1, axis))

    def test_the_input_is_never_modified_and_may_be_read_only(self, engine, dtype, name):
        volume = coloured(dtype, 2)
        before = volume.copy()
        volume.flags.writeable = False
        mask = np.zeros(SHAPE, bool)
        mask[3] = True
        for scheme in SCHEMES[::2]:
            model = VOLUME_MODELS[name](SHAPE)
            result = engine.diffuse(volume, model, TIME, scheme=scheme, fixed=mask, channel_axis=-1)
            np.testing.assert_array_equal(volume, before)
            assert not np.shares_memory(result, volume)
            result[0, 0, 0] = 0  # the result is the caller's
        assert mask.sum() == SHAPE[1] * SHAPE[2]

    def test_fixed_voxels_keep_their_bits(self, engine, dtype, name):
        volume, model = coloured(dtype, 2), VOLUME_MODELS[name](SHAPE)
        mask = np.random.default_rng(0).random(SHAPE) < 0.3
        mask[0, 0, 0] = mask[-1, -1, -1] = True
        for scheme in SCHEMES[1:]:
            result = engine.diffuse(volume, model, TIME, scheme=scheme, fixed=mask, channel_axis=-1)
            np.testing.assert_array_equal(result[mask], volume[mask])
            assert (result[~mask] != volume[~mask]).mean() > 0.9

    def test_two_runs_are_bit_equal_and_no_time_gives_the_volume_back(self, engine, dtype, name):
        volume, model = noisy(dtype), VOLUME_MODELS[name](SHAPE)
        first, second = (engine.diffuse(volume, model, TIME) for _ in range(2))
        np.testing.assert_array_equal(first, second)
        result = engine.diffuse(volume, model, 0)
        np.testing.assert_array_equal(result, volume)
        assert not np.shares_memory(result, volume)

    def test_a_larger_time_from_a_snapshot_equals_the_direct_run(self, engine, dtype, name):
        volume, model, scheme = noisy(dtype), VOLUME_MODELS[name](SHAPE), aniso.Explicit(STEP)
        direct = engine.diffuse(volume, model, 3 * STEP, scheme=scheme)
        *_, (_, last) = engine.scale_space(volume, model, [STEP, 3 * STEP], scheme=scheme)
        engine.assert_equal(last, direct)

    def test_semi_iterative_cycles_reach_what_fast_explicit_ones_reach(self, engine, dtype, name):
        volume, model = noisy(dtype), VOLUME_MODELS[name](SHAPE)
        fed, fsi = (engine.diffuse(volume, model, 3.0, scheme=kind(1)) for kind in (aniso.FED, aniso.FSI))
        assert abs(fed - fsi).max() <= 4 * engine.tolerance(dtype) * abs(volume).max()

    @pytest.mark.parametrize("channels", [None, 3])
    def test_every_engine_computes_what_the_reference_does(self, engine, dtype, name, channels):
        volume = noisy(dtype) if channels is None else coloured(dtype)
        model = VOLUME_MODELS[name](SHAPE)
        for scheme in (SCHEMES[0], SCHEMES[3]):
            options: dict[str, Any] = {
                "scheme": scheme,
                "spacing": SPACING,
                "channel_axis": None if channels is None else -1,
            }
            expected = aniso.diffuse(volume.astype(np.float64), model, TIME, engine="reference", **options)
            engine.assert_equal(engine.diffuse(volume, model, TIME, **options), expected)


@every_engine
@every_model
class TestSymmetries:
    """All 48 of the cube, with a spacing for each axis."""

    def test_turning_the_volume_turns_the_result(self, engine, name):
        volume, model = noisy("float64"), VOLUME_MODELS[name](SHAPE)
        scheme = aniso.Explicit(STEP)
        straight = engine.diffuse(volume, model, STEP, spacing=SPACING, scheme=scheme)
        for symmetry in VOLUME_SYMMETRIES:
            turned = engine.diffuse(
                symmetry.image(volume),
                symmetry.model(model),
                STEP,
                spacing=symmetry.spacing(SPACING),
                scheme=scheme,
            )
            engine.assert_equal(turned, symmetry.image(straight))

    def test_turning_a_colour_volume_turns_the_result(self, engine, name):
        volume, model = coloured("float32"), VOLUME_MODELS[name](SHAPE)
        straight = engine.diffuse(volume, model, STEP, channel_axis=-1)
        for symmetry in VOLUME_SYMMETRIES[::5]:
            turned = engine.diffuse(symmetry.image(volume), symmetry.model(model), STEP, channel_axis=-1)
            engine.assert_equal(turned, symmetry.image(straight))


def test_there_are_48_symmetries():
    shapes = {symmetry.image(noisy("float64")).tobytes() for symmetry in VOLUME_SYMMETRIES}
    assert len(shapes) == len(VOLUME_SYMMETRIES) == 48


@every_engine
@every_model
class TestStability:
    """The Euclidean norm never grows at the largest stable step."""

    CASES = (
        (aniso.DeltaStencil(), (1.0, 1.0, 1.0), 1, 20),
        (aniso.DeltaStencil.named("standard"), (1.3, 1.0, 0.8), 1, 10),
        (aniso.DeltaStencil(0.1, -0.8), (1.0, 0.5, 0.7), 2, 10),
        (aniso.DeltaStencil.named("forward-forward"), (1.0, 1.0, 1.0), 1, 10),
        (aniso.DeltaStencil.named("cell-centred"), (1.0, 2.0, 1.0), 1, 10),
        (SplitStencil(0.1), (1.0, 0.6, 1.0), 1, 10),
    )

    def assert_no_growth(self, snapshots):
        before = np.inf
        for _, volume in snapshots:
            now = np.linalg.norm(volume)
            assert now <= before * (1 + 1e-12)
            before = now

    @pytest.mark.parametrize(("stencil", "spacing", "channels", "steps"), CASES, ids=str)
    def test_at_the_largest_step(self, engine, name, stencil, spacing, channels, steps):
        model = VOLUME_MODELS[name](SHAPE)
        if refused(engine, stencil):
            return
        volume = colours(VOLUME_SAMPLES["noise"], SHAPE, channels)
        volume = volume - volume.mean(axis=(0, 1, 2))  # or its norm hides that of the rest
        step = aniso.stability.stable_step(model, stencil, spacing, 3)
        snapshots = engine.scale_space(
            volume,
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
        snapshots = engine.scale_space(
            VOLUME_SAMPLES["noise"](SHAPE) - 100,
            VOLUME_MODELS[name](SHAPE),
            5.0 * np.arange(4),
            stencil=aniso.DeltaStencil(0.1, -0.8),
            spacing=(1.0, 0.7, 1.2),
            scheme=kind(1),
        )
        self.assert_no_growth(snapshots)


@every_engine
@every_dtype
@pytest.mark.parametrize("shape", tuple(itertools.product((1, 2, 3), repeat=3)), ids=str)
def test_volumes_of_any_size(engine, dtype, shape):
    """Where the mirrored volume is all boundary: what the reference does, and the mean is kept."""
    volume = VOLUME_SAMPLES["noise"](shape).astype(dtype)
    for name in ("edge, weickert", "edge, continuing", "coherence", "coherence, lines only", "fixed tensor"):
        model = VOLUME_MODELS[name](shape)
        result = engine.diffuse(volume, model, STEP, spacing=SPACING)
        assert np.isfinite(result).all()
        assert abs(mean(result) - mean(volume)) <= engine.tolerance(dtype) * abs(volume).max()
        expected = aniso.diffuse(volume.astype(np.float64), model, STEP, spacing=SPACING, engine="reference")
        engine.assert_equal(result, expected)


@every_engine
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.float32, np.float64], ids=str)
def test_double_precision_is_kept_and_everything_else_becomes_single(engine, dtype):
    result = engine.diffuse(noisy(np.float64).astype(dtype), aniso.EdgeEnhancing(12.0), STEP)
    assert result.dtype == (np.float64 if dtype is np.float64 else np.float32)


@every_engine
@every_dtype
@pytest.mark.parametrize(
    "stencil", [SplitStencil(0.4), SplitStencil(0.0), aniso.DeltaStencil(0.0, beta=1.0)], ids=str
)
def test_other_stencils_follow_the_matrix(engine, dtype, stencil):
    model, volume = random_tensors(SHAPE), noisy(dtype)
    if refused(engine, stencil):
        return
    step = aniso.stability.stable_step(model, stencil, SPACING, 3)
    a = aniso.volumes.matrix(model.tensor, stencil, SPACING)
    expected = volume.astype(np.float64).ravel()
    for _ in range(3):
        expected = expected + step * (a @ expected)
    result = engine.diffuse(
        volume, model, 3 * step, stencil=stencil, spacing=SPACING, scheme=aniso.Explicit(step)
    )
    engine.assert_equal(result, expected.reshape(SHAPE))


@every_engine
@every_dtype
@pytest.mark.parametrize("name", ["homogeneous", "fixed tensor"])
def test_linear_diffusion_knows_no_scale(engine, dtype, name):
    """Not even one whose squares overflow."""
    volume, model = noisy(dtype), VOLUME_MODELS[name](SHAPE)
    scale = np.dtype(dtype).type({"float32": 1e30, "float64": 1e200}[dtype])
    expected = engine.diffuse(volume, model, TIME) * scale
    assert abs(engine.diffuse(scale * volume, model, TIME) - expected).max() <= 1e-5 * expected.max()


@every_engine
@every_dtype
@pytest.mark.parametrize("diffusivity", list(DIFFUSIVITIES))
def test_three_equal_channels_equal_grey_where_gradients_are_far_above_the_contrast(
    engine, dtype, diffusivity
):
    """Rounding must not pose as structure along the edge."""
    z, y, x = np.mgrid[:12, :12, :12]
    noise = np.random.default_rng(0).normal(0, 100, x.shape)
    grey = (np.where(3 * x + 4 * y - 2 * z > 28, 60000, 500) + noise).astype(dtype)
    model = aniso.EdgeEnhancing(1.0, 1.0, diffusivity)
    colour = engine.diffuse(np.stack([grey] * 3, -1), model, 1.0, channel_axis=-1)
    error = abs(colour[..., 1] - engine.diffuse(grey, model, 1.0)).max()
    assert error <= 50 * engine.tolerance(dtype) * 60000


small_volumes = npst.arrays(
    np.float64,
    npst.array_shapes(min_dims=3, max_dims=3, min_side=1, max_side=4),
    elements=st.floats(-200, 200, width=32),
)
models = st.one_of(
    st.builds(
        aniso.EdgeEnhancing,
        st.floats(0.1, 100),
        st.floats(0, 3),
        st.sampled_from(list(DIFFUSIVITIES)),
    ),
    st.builds(aniso.EdgeContinuing, st.floats(0.1, 100), st.floats(0, 2), st.floats(0, 2)),
    st.builds(
        aniso.CoherenceEnhancing,
        st.floats(0.1, 100),
        st.floats(0, 2),
        st.floats(0, 3),
        st.floats(0, 1),
        st.booleans(),
    ),
    st.just(aniso.Homogeneous()),
)
stencils = st.builds(aniso.DeltaStencil, st.floats(0, 0.5), st.floats(-1, 1))


@every_engine
@settings(max_examples=40)
@given(
    volume=small_volumes,
    model=models,
    stencil=stencils,
    spacing=st.tuples(*[st.floats(0.3, 3)] * 3),
    symmetry=st.sampled_from(VOLUME_SYMMETRIES),
)
def test_any_parameters_keep_the_mean_let_no_norm_grow_and_turn(
    engine, volume, model, stencil, spacing, symmetry
):
    step = aniso.stability.stable_step(model, stencil, spacing, 3)
    options = {"stencil": stencil, "scheme": aniso.Explicit(step)}
    result = engine.diffuse(volume, model, 2 * step, spacing=spacing, **options)
    assert np.linalg.norm(result) <= np.linalg.norm(volume) * (1 + 1e-12)
    assert abs(result.mean() - volume.mean()) <= 1e-12 * abs(volume).max()
    straight = engine.diffuse(volume, model, step, spacing=spacing, **options)
    turned = engine.diffuse(symmetry.image(volume), model, step, spacing=symmetry.spacing(spacing), **options)
    np.testing.assert_allclose(turned, symmetry.image(straight), rtol=0, atol=1e-9 * abs(volume).max())
