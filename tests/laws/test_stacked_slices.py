"""A volume that is constant along an axis evolves, slice by slice, as the image does."""

import numpy as np
import pytest

import aniso
from tests.registry import SAMPLES, VOLUME_ENGINES, colours

SHAPE, DEPTH = (7, 6), 4
TIME = 1.5
MODELS = {
    "edge, weickert": aniso.EdgeEnhancing(12.0),
    "edge, charbonnier": aniso.EdgeEnhancing(12.0, 0.5, "charbonnier"),
    "edge, own": aniso.EdgeEnhancing(12.0, 0.5, lambda r: 1 / (1 + 0.2 * r)),
    "edge, continuing, local": aniso.EdgeContinuing(12.0, 0.5, 0.0),
    "coherence": aniso.CoherenceEnhancing(8.0, 0.5, 1.5),
    "coherence, local": aniso.CoherenceEnhancing(8.0, 0.0, 0.0, 0.1),
    "perona-malik": aniso.PeronaMalik(12.0),
    "homogeneous": aniso.Homogeneous(),
}
#: With several channels J has full rank, and the rule for edges that continue knows a third direction.
ONE_CHANNEL_ONLY = ("edge, continuing, local",)

every_axis = pytest.mark.parametrize("axis", [0, 1, 2])
every_engine = pytest.mark.parametrize("engine", VOLUME_ENGINES, ids=lambda engine: engine.name)
every_model = pytest.mark.parametrize("name", MODELS)


def stacked(image, axis, depth=DEPTH):
    return np.stack([image] * depth, axis)


def assert_every_slice_is_the_image(volume, image, axis):
    """To 1e-12 of the grey values, which are of order 100, in double precision."""
    expected = stacked(image, axis, volume.shape[axis])
    np.testing.assert_allclose(volume, expected, rtol=0, atol=1e-12 * abs(image).max())


def both(engine, model, axis, image, spacing=(1.0, 1.0), own_spacing=1.0, depth=DEPTH, **options):
    """The evolved stack and the evolved image."""
    triple = list(spacing)
    triple.insert(axis, own_spacing)
    volume = engine.diffuse(stacked(image, axis, depth), model, TIME, spacing=tuple(triple), **options)
    return volume, aniso.diffuse(image, model, TIME, spacing=spacing, engine="reference", **options)


@every_engine
@every_axis
@every_model
class TestEverySlice:
    @pytest.mark.parametrize(
        "scheme", [aniso.Explicit(0.2), aniso.FED(2), aniso.FSI(2)], ids=lambda s: type(s).__name__
    )
    def test_schemes(self, engine, axis, name, scheme):
        volume, image = both(engine, MODELS[name], axis, SAMPLES["edges"](SHAPE), scheme=scheme)
        assert abs(image - SAMPLES["edges"](SHAPE)).max() > 1
        assert_every_slice_is_the_image(volume, image, axis)

    @pytest.mark.parametrize("stencil", [(0.0, 0.0), (0.1, -0.7), (0.44, 0.98), (0.5, 0.0)], ids=str)
    def test_stencils_and_spacings(self, engine, axis, name, stencil):
        volume, image = both(
            engine,
            MODELS[name],
            axis,
            SAMPLES["noise"](SHAPE),
            spacing=(0.8, 1.3),
            own_spacing=0.9,
            stencil=aniso.DeltaStencil(*stencil),
            scheme=aniso.Explicit(0.1),
        )
        assert_every_slice_is_the_image(volume, image, axis)

    def test_colours(self, engine, axis, name):
        if name in ONE_CHANNEL_ONLY:
            return
        image = colours(SAMPLES["edges"], SHAPE)
        volume, flat = both(engine, MODELS[name], axis, image, channel_axis=-1, scheme=aniso.Explicit(0.2))
        assert_every_slice_is_the_image(volume, flat, axis)

    def test_a_single_slice(self, engine, axis, name):
        volume, flat = both(
            engine, MODELS[name], axis, SAMPLES["edges"](SHAPE), depth=1, scheme=aniso.Explicit(0.2)
        )
        assert_every_slice_is_the_image(volume, flat, axis)


@every_engine
@every_axis
def test_members_with_beta(engine, axis):
    model = aniso.EdgeEnhancing(12.0, 0.5, "charbonnier")
    for member in ("forward-forward", "forward-backward"):
        volume, image = both(
            engine,
            model,
            axis,
            SAMPLES["edges"](SHAPE),
            stencil=aniso.DeltaStencil.named(member),
            scheme=aniso.Explicit(0.1),
        )
        assert_every_slice_is_the_image(volume, image, axis)


@every_engine
def test_lines_only_follow_the_axis_instead(engine):
    """In a stack nothing changes along the axis: that is the line, and slices stay but for ε."""
    model = aniso.CoherenceEnhancing(8.0, 0.5, 1.5, 0.0, plates=False)
    volume = stacked(SAMPLES["edges"](SHAPE), 0)
    np.testing.assert_allclose(engine.diffuse(volume, model, TIME), volume, rtol=0, atol=1e-10)
