"""Laws of some models and images only: linear diffusion, own diffusivities, strong edges, tiny volumes."""

import itertools
from typing import Any

import numpy as np
import pytest

import aniso
from aniso.stencil import SplitStencil
from tests.laws.cases import every_diffusivity, every_dtype, every_engine, every_grid
from tests.laws.test_stability_laws import refused
from tests.registry import IMAGES, SAMPLES, SYMMETRIES, VOLUMES, random_tensors, rational

every_symmetry = pytest.mark.parametrize("symmetry", SYMMETRIES, ids=lambda s: s.name)


@every_engine
@every_dtype
@every_grid
@pytest.mark.parametrize("name", ["homogeneous", "fixed tensor"])
def test_linear_diffusion_knows_no_scale(engine, dtype, grid, name):
    """Not even one whose squares overflow."""
    image, model, time = grid.image(dtype), grid.model(name), 4 * grid.step
    scale = np.dtype(dtype).type({"float32": 1e30, "float64": 1e200}[dtype])
    expected = engine.diffuse(image, model, time) * scale
    assert abs(engine.diffuse(scale * image, model, time) - expected).max() <= 1e-5 * expected.max()


@every_engine
@every_grid
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.float32, np.float64], ids=str)
def test_double_precision_is_kept_and_everything_else_becomes_single(engine, grid, dtype):
    result = engine.diffuse(grid.image(dtype), aniso.EdgeEnhancing(12.0), grid.step)
    assert result.dtype == (np.float64 if dtype is np.float64 else np.float32)


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
        image = IMAGES.image(dtype, channels)
        own, built_in = (
            engine.diffuse(image, kind(12.0, 1.0, g), 2.0, spacing=IMAGES.spacing, channel_axis=-1)
            for g in (self.charbonnier, "charbonnier")
        )
        assert own.dtype == dtype
        slack = max(engine.tolerance(dtype), 1e-8)  # ψ = (1 − g)/r is a difference quotient here
        assert abs(own - built_in).max() <= slack * abs(built_in).max()

    def test_tiny_and_huge_images(self, engine, dtype):
        for factor in (1e-6, 1e6):
            image = (factor * IMAGES.image(np.float64)).astype(dtype)
            model = aniso.EdgeEnhancing(12.0 * factor, 1.0, self.charbonnier)
            expected = engine.diffuse(image, aniso.EdgeEnhancing(12.0 * factor, 1.0, "charbonnier"), 2.0)
            result = engine.diffuse(image, model, 2.0)
            assert abs(result - expected).max() <= max(engine.tolerance(dtype), 1e-8) * abs(expected).max()


@every_engine
class TestStrongContrasts:
    """Where gradients are thousands of times the contrast, rounding must not pose as structure."""

    @every_dtype
    @every_diffusivity
    @pytest.mark.parametrize(
        ("size", "ndim", "contrast", "time"), [(32, 2, 0.1, 4.0), (32, 2, 10.0, 4.0), (12, 3, 1.0, 1.0)]
    )
    def test_three_equal_channels_equal_grey(self, engine, dtype, diffusivity, size, ndim, contrast, time):
        distance = sum(k * x for k, x in zip((3, 4, -2), np.indices((size,) * ndim)[::-1], strict=False))
        noise = np.random.default_rng(0).normal(0, 100, distance.shape)
        grey = (np.where(distance > 2.3 * size, 60000, 500) + noise).astype(dtype)
        model = aniso.EdgeEnhancing(contrast, 1.0, diffusivity)
        colour = engine.diffuse(np.stack([grey] * 3, -1), model, time, channel_axis=-1)
        error = abs(colour[..., 1] - engine.diffuse(grey, model, time)).max()
        assert error <= 50 * engine.tolerance(dtype) * 60000

    def test_a_callable_on_channels_without_a_common_direction(self, engine):
        y, x = np.mgrid[:32, :32]
        crossed = np.stack([100.0 * x, 100.0 * y], -1).astype(np.float32)
        model = aniso.EdgeEnhancing(1.0, 1.0, rational)
        assert np.isfinite(engine.diffuse(crossed, model, 1.0, channel_axis=-1)).all()


@every_engine
class TestMembersWithBeta:
    """δ = α(a + c) + βb knows left from right: transposing and turning it upside down is all it allows."""

    @staticmethod
    def both(engine, stencil, symmetry):
        image, model = SAMPLES["edges"](IMAGES.shape), aniso.EdgeEnhancing(30.0, 1.0, "charbonnier")
        straight = engine.diffuse(image, model, 2.0, stencil=stencil)
        turned = engine.diffuse(symmetry.image(image), model, 2.0, stencil=stencil)
        return turned, symmetry.image(straight)

    @pytest.mark.parametrize("member", ["forward-forward", "forward-backward"])
    @every_symmetry
    def test_they_are_not_equivariant_where_b_changes_sign(self, engine, member, symmetry):
        turned, straight = self.both(engine, aniso.DeltaStencil.named(member), symmetry)
        if symmetry.name in ("transposition", "half turn", "other diagonal"):
            engine.assert_equal(turned, straight)
        else:
            assert abs(turned - straight).max() > 0.01

    @every_symmetry
    def test_all_others_are(self, engine, symmetry):
        for stencil in (aniso.DeltaStencil(0.0, 1.0), aniso.DeltaStencil(0.3, -0.7)):
            engine.assert_equal(*self.both(engine, stencil, symmetry))


@every_engine
@every_dtype
def test_volumes_of_any_size(engine, dtype):
    """Where the mirrored volume is all boundary: what the reference does, and the mean is kept."""
    names = ("edge, weickert", "edge, continuing", "coherence", "coherence, lines only", "fixed tensor")
    options: dict[str, Any] = {"spacing": VOLUMES.spacing}
    for shape, name in itertools.product(itertools.product((1, 2, 3), repeat=3), names):
        volume, model = VOLUMES.samples["noise"](shape).astype(dtype), VOLUMES.models[name](shape)
        result = engine.diffuse(volume, model, VOLUMES.step, **options)
        assert np.isfinite(result).all()
        slack = engine.tolerance(dtype) * abs(volume).max()
        assert abs(VOLUMES.mean(result) - VOLUMES.mean(volume)) <= slack
        wide = volume.astype(np.float64)
        engine.assert_equal(result, aniso.diffuse(wide, model, VOLUMES.step, engine="reference", **options))


@every_engine
@every_dtype
@pytest.mark.parametrize(
    "stencil", [SplitStencil(0.4), SplitStencil(0.0), aniso.DeltaStencil(0.0, beta=1.0)], ids=str
)
def test_stencils_of_volumes_follow_the_matrix(engine, dtype, stencil):
    if refused(engine, VOLUMES, stencil):
        return
    model, volume, spacing = random_tensors(VOLUMES.shape), VOLUMES.image(dtype), VOLUMES.spacing
    step = aniso.stability.stable_step(model, stencil, spacing, 3)
    a = aniso.volumes.matrix(model.tensor, stencil, spacing)
    expected = volume.astype(np.float64).ravel()
    for _ in range(3):
        expected = expected + step * (a @ expected)
    result = engine.diffuse(
        volume, model, 3 * step, stencil=stencil, spacing=spacing, scheme=aniso.Explicit(step)
    )
    engine.assert_equal(result, expected.reshape(VOLUMES.shape))
