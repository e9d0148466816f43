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

AXES = (0, 1, 2)

every_engine = pytest.mark.parametrize("engine", VOLUME_ENGINES, ids=lambda engine: engine.name)
every_model = pytest.mark.parametrize("name", MODELS)


def stacked(image, axis, depth=DEPTH):
    return np.stack([image] * depth, axis)


def assert_every_slice_is_the_image(
    engine, model, image, axes=AXES, spacing=(1.0, 1.0), own_spacing=1.0, depth=DEPTH, **options
):
    """To 1e-12 of the grey values, which are of order 100, in double precision."""
    flat = aniso.diffuse(image, model, TIME, spacing=spacing, engine="reference", **options)
    assert abs(flat - image).max() > 1  # something happened
    for axis in axes:
        triple = list(spacing)
        triple.insert(axis, own_spacing)
        volume = engine.diffuse(stacked(image, axis, depth), model, TIME, spacing=tuple(triple), **options)
        expected = stacked(flat, axis, depth)
        np.testing.assert_allclose(volume, expected, rtol=0, atol=1e-12 * abs(flat).max())


@every_engine
@every_model
class TestEverySlice:
    def test_schemes(self, engine, name):
        """Along an axis each: schemes know nothing of axes."""
        for axis, scheme in enumerate((aniso.Explicit(0.2), aniso.FED(2), aniso.FSI(2))):
            image = SAMPLES["edges"](SHAPE)
            assert_every_slice_is_the_image(engine, MODELS[name], image, [axis], scheme=scheme)

    @pytest.mark.parametrize(
        ("stencil", "axes"),
        [((0.1, -0.7), AXES), ((0.44, 0.98), AXES), ((0.0, 0.0), [1]), ((0.5, 0.0), [2])],
        ids=str,
    )
    def test_stencils_and_spacings(self, engine, name, stencil, axes):
        assert_every_slice_is_the_image(
            engine,
            MODELS[name],
            SAMPLES["noise"](SHAPE),
            axes,
            spacing=(0.8, 1.3),
            own_spacing=0.9,
            stencil=aniso.DeltaStencil(*stencil),
            scheme=aniso.Explicit(0.1),
        )

    def test_colours(self, engine, name):
        if name in ONE_CHANNEL_ONLY:
            return
        image, scheme = colours(SAMPLES["edges"], SHAPE), aniso.Explicit(0.2)
        assert_every_slice_is_the_image(engine, MODELS[name], image, channel_axis=-1, scheme=scheme)

    def test_a_single_slice(self, engine, name):
        image, scheme = SAMPLES["edges"](SHAPE), aniso.Explicit(0.2)
        assert_every_slice_is_the_image(engine, MODELS[name], image, depth=1, scheme=scheme)


@every_engine
@pytest.mark.parametrize("member", ["forward-forward", "forward-backward"])
def test_members_with_beta(engine, member):
    model, image = aniso.EdgeEnhancing(12.0, 0.5, "charbonnier"), SAMPLES["edges"](SHAPE)
    stencil, scheme = aniso.DeltaStencil.named(member), aniso.Explicit(0.1)
    assert_every_slice_is_the_image(engine, model, image, stencil=stencil, scheme=scheme)


@every_engine
def test_lines_only_follow_the_axis_instead(engine):
    """In a stack nothing changes along the axis: that is the line, and slices stay but for ε."""
    model = aniso.CoherenceEnhancing(8.0, 0.5, 1.5, 0.0, plates=False)
    volume = stacked(SAMPLES["edges"](SHAPE), 0)
    np.testing.assert_allclose(engine.diffuse(volume, model, TIME), volume, rtol=0, atol=1e-10)
