"""The Euclidean norm never grows, whatever the engine, the model, the stencil and the spacing."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import aniso
from aniso.stencil import SplitStencil
from tests.laws.cases import every_engine, every_model, every_model_of_images
from tests.registry import GRIDS, IMAGES, SYMMETRIES, VOLUME_SYMMETRIES, scaled_contrast

SLACK = 1e-12
#: Stencil, spacing, channels, steps: enough to catch steps that are too long, as test_laws.py shows.
CASES = {
    "images": (
        (aniso.DeltaStencil(), (1.0, 1.0), 1, 100),
        (aniso.DeltaStencil(), (0.7, 1.6), 3, 50),
        (aniso.DeltaStencil.named("standard"), (1.3, 1.0), 1, 20),
        (aniso.DeltaStencil(0.1, -0.8), (1.0, 0.5), 2, 20),
        (aniso.DeltaStencil.named("forward-forward"), (1.0, 1.0), 1, 20),
        (aniso.DeltaStencil.named("cell-centred"), (1.0, 2.0), 1, 20),
    ),
    "volumes": (
        (aniso.DeltaStencil(), (1.0, 1.0, 1.0), 1, 20),
        (aniso.DeltaStencil.named("standard"), (1.3, 1.0, 0.8), 1, 10),
        (aniso.DeltaStencil(0.1, -0.8), (1.0, 0.5, 0.7), 2, 10),
        (aniso.DeltaStencil.named("forward-forward"), (1.0, 1.0, 1.0), 1, 10),
        (aniso.DeltaStencil.named("cell-centred"), (1.0, 2.0, 1.0), 1, 10),
        (SplitStencil(0.1), (1.0, 1.0, 1.0), 1, 10),  # where its bound is sharp
    ),
}
every_case = pytest.mark.parametrize(
    ("grid", "name", "case"),
    [
        pytest.param(grid, name, case, id=f"{grid.name}-{name}-{number}")
        for grid in GRIDS
        for name in grid.models
        for number, case in enumerate(CASES[grid.name])
    ],
)


def centred(grid, channels=None):
    """Noise without its mean, whose norm would hide that of the rest."""
    image = grid.image(np.float64, channels, "noise")
    return image - grid.mean(image)


def refused(engine, grid, stencil):
    """Whether the engine has no loops for this stencil; it says so, and computes nothing else instead."""
    if engine.name != "cpu" or not isinstance(stencil, SplitStencil):
        return False
    with pytest.raises(NotImplementedError, match="reference"):
        engine.diffuse(np.zeros(grid.shape), aniso.Homogeneous(), 0.1, stencil=stencil)
    return True


def assert_no_norm_exceeds_the_last(snapshots):
    norms = [np.linalg.norm(image) for _, image in snapshots]
    for before, after in itertools.pairwise(norms):
        assert after <= before * (1 + SLACK)


def assert_no_growth(engine, grid, name, stencil, spacing, channels, steps):
    """Over some of the largest stable steps."""
    model = grid.model(name)
    step = aniso.stability.stable_step(model, stencil, spacing, grid.ndim)
    snapshots = engine.scale_space(
        centred(grid, channels),
        model,
        step * np.arange(steps + 1),
        stencil=stencil,
        spacing=spacing,
        channel_axis=-1,
        scheme=aniso.Explicit(step),
    )
    assert_no_norm_exceeds_the_last(snapshots)


@every_engine
@every_case
def test_no_norm_grows_at_the_largest_step(engine, grid, name, case):
    stencil, *rest = case
    if not refused(engine, grid, stencil):
        assert_no_growth(engine, grid, name, stencil, *rest)


def assert_no_growth_in_cycles(engine, grid, name):
    for kind in (aniso.FED, aniso.FSI):
        snapshots = engine.scale_space(
            centred(grid),
            grid.model(name),
            5.0 * np.arange(4),
            stencil=aniso.DeltaStencil(0.1, -0.8),
            spacing=(1.0, 0.7, 1.2)[: grid.ndim],
            scheme=kind(1),
        )
        assert_no_norm_exceeds_the_last(snapshots)


@every_engine
@every_model
def test_no_norm_grows_from_cycle_to_cycle(engine, grid, name):
    assert_no_growth_in_cycles(engine, grid, name)


def assert_no_growth_with_a_free_stencil(engine, name):
    # Where δ exceeds (a + c)/2 it is cut, but given tensors refuse it.
    highest = 0.0 if name == "fixed tensor" else 0.5
    cells = tuple(n + 1 for n in IMAGES.shape)
    stencil = aniso.FreeStencil(np.random.default_rng(4).uniform(-0.5, highest, cells))
    assert_no_growth(engine, IMAGES, name, stencil, (0.9, 1.4), 1, 20)


@every_engine
@every_model_of_images
def test_a_free_stencil_is_stable_too(engine, name):
    assert_no_growth_with_a_free_stencil(engine, name)


def small(ndim, largest):
    return npst.arrays(
        np.float64,
        npst.array_shapes(min_dims=ndim, max_dims=ndim, min_side=1, max_side=largest),
        elements=st.floats(-200, 200, width=32),
    )


def spacings(ndim):
    return st.tuples(*[st.floats(0.3, 3)] * ndim)


contrasts = st.floats(0.1, 100)
stencils = st.builds(aniso.DeltaStencil, st.floats(0, 0.5), st.floats(-1, 1))
image_driven = st.one_of(
    st.builds(
        aniso.EdgeEnhancing,
        contrasts,
        st.floats(0, 4),
        st.sampled_from(["weickert", "charbonnier", "perona-malik", "exponential"]),
    ),
    st.builds(aniso.EdgeContinuing, contrasts, st.floats(0, 2), st.floats(0, 2)),
    st.builds(
        aniso.CoherenceEnhancing, contrasts, st.floats(0, 3), st.floats(0, 5), st.floats(0, 1), st.booleans()
    ),
    st.builds(aniso.PeronaMalik, contrasts, st.floats(0, 4)),
    st.just(aniso.Homogeneous()),
)
problems = st.one_of(
    st.tuples(small(2, 6), spacings(2), st.sampled_from(SYMMETRIES)),
    st.tuples(small(3, 4), spacings(3), st.sampled_from(VOLUME_SYMMETRIES)),
)


@every_engine
@settings(max_examples=80)
@given(problem=problems, model=image_driven, stencil=stencils)
def test_any_parameters_keep_the_mean_let_no_norm_grow_and_turn(engine, problem, model, stencil):
    image, spacing, symmetry = problem
    step = aniso.stability.stable_step(model, stencil, spacing, image.ndim)
    options = {"stencil": stencil, "scheme": aniso.Explicit(step)}
    result = engine.diffuse(image, model, 2 * step, spacing=spacing, **options)
    assert np.linalg.norm(result) <= np.linalg.norm(image) * (1 + SLACK)
    assert abs(result.mean() - image.mean()) <= 1e-12 * abs(image).max()
    straight = engine.diffuse(image, model, step, spacing=spacing, **options)
    turned = engine.diffuse(symmetry.image(image), model, step, spacing=symmetry.spacing(spacing), **options)
    np.testing.assert_allclose(turned, symmetry.image(straight), rtol=0, atol=1e-9 * abs(image).max())


@every_engine
@settings(max_examples=40)
@given(image=small(2, 6), model=image_driven, exponent=st.integers(-12, 12))
def test_any_scale_commutes(engine, image, model, exponent):
    factor = 10.0**exponent
    expected = factor * engine.diffuse(image, model, 1.0)
    result = engine.diffuse(factor * image, scaled_contrast(model, factor), 1.0)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-9 * abs(factor * image).max())
