"""Plans of enhance: the same bits in memory and for Dask arrays, after a round trip, and with windows."""

import json
import math
from dataclasses import replace
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import aniso
from aniso.blocks import sample
from aniso.blocks.halo import regions
from aniso.blocks.stages import whole_region
from aniso.settings import Settings
from aniso.verbs.corrections import FillGaps, KeepToLines, PutBack
from aniso.verbs.enhance import EnhancePlan
from aniso.verbs.extension import Extend

pytestmark = pytest.mark.slow

RINGS = aniso.samples.rings(80, period=8.0, seed=5).image
COLOUR = np.stack([RINGS, 255 - aniso.samples.fingerprint(80, seed=4).image, RINGS.T], -1)
LAYERS = aniso.samples.layers((28, 18, 20), period=6.0, gaps=3, noise=20.0, seed=3).image
FIBRES = aniso.samples.fibres(20, gaps=3, noise=20.0, seed=3).image


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def check_blocks(image, chunks, **options):
    expected, plan = aniso.enhance(image, return_info=True, **options)
    for size in chunks:
        result, same = aniso.enhance(da.from_array(image, chunks=size), return_info=True, **options)
        assert same == plan
        assert isinstance(result, da.Array)
        np.testing.assert_array_equal(result.compute(), expected)


class TestBlocksGiveTheBitsOfMemory:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
    def test_images(self, dtype):
        uneven = ((1, 50, 7, 22), (30, 0, 49, 1))
        check_blocks(RINGS.clip(0, 255).astype(dtype), [37, uneven])

    def test_chunks_that_are_much_smaller_than_the_reach(self):
        check_blocks(RINGS[:40, :33], [9])

    @pytest.mark.parametrize("refine", [True, False])
    def test_channels(self, refine):
        check_blocks(COLOUR, [(40, 80, 1), (80, 33, 3)], channel_axis=-1, refine=refine)
        check_blocks(COLOUR.T.astype(np.float32), [(2, 37, 51)], channel_axis=0, refine=refine)

    def test_spacing(self):
        check_blocks(RINGS[::2], [(20, 33)], spacing=(2.0, 1.0))

    @pytest.mark.parametrize("plates", [True, False])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_volumes(self, plates, dtype):
        image = LAYERS if plates else FIBRES
        check_blocks(image.astype(dtype), [(13, 20, 11)], plates=plates)

    def test_volumes_with_channels_and_spacing(self):
        volume = np.stack([LAYERS, LAYERS[::-1]])[:, ::2]
        check_blocks(volume, [(1, 14, 9, 20)], channel_axis=0, spacing=(2.0, 1.0, 1.0))

    def test_thin_and_constant_ones(self):
        check_blocks(np.random.default_rng(0).normal(100, 5, (3, 50)), [(2, 20)])
        check_blocks(np.full((50, 40), 7.0), [20])

    def test_several_windows(self, monkeypatch):
        monkeypatch.setitem(sample._VALUES, 2, 9 * 24**2)
        check_blocks(RINGS, [45])


def _plan(**changes: Any) -> EnhancePlan:
    _, plan = aniso.enhance(RINGS, return_info=True)
    return replace(plan, **changes)


class TestReach:
    """A stage on blocks with a halo as wide as it says gives the bits of the whole; with less it does not."""

    @pytest.mark.parametrize("spacings", [(1.0, 1.0), (2.0, 1.0)])
    @pytest.mark.parametrize("kind", [Extend, FillGaps, KeepToLines, PutBack])
    def test_images(self, kind, spacings):
        # Noise has few lines, and far away from them nothing changes.
        self.check(kind, (70, 90), spacings, share=0.35 if kind is KeepToLines else 0.67)

    @pytest.mark.parametrize("kind", [Extend, FillGaps, PutBack])
    def test_volumes(self, kind):
        self.check(kind, (24, 30, 34), (1.0, 1.5, 1.0), share=0.5)

    def test_lines_in_volumes(self):
        # Blocks as large as the reach: noise next to layers.
        self.check(KeepToLines, (80, 12, 12), (1.0, 1.0, 1.0), share=0.2)

    @pytest.mark.parametrize("axis", [0, 1])
    def test_lines_that_cross_the_boundary_where_sources_are_farthest(self, axis):
        pipeline = _pipeline((70, 70), (1.0, 1.0))
        stage = pipeline.stages[0]
        slope = math.sqrt(0.02 / 1.04)  # a² = c/(1 + 2c), see Extend.reach
        place = np.indices((70, 70), float)
        across, along = place[axis], place[1 - axis]
        image = np.sin((math.sqrt(1 - slope**2) * across - slope * along) * 2 * math.pi / 5)[np.newaxis]
        assert same(pipeline, stage, stage.reach, image)
        assert not same(pipeline, stage, [far - 3 for far in stage.reach], image)

    def check(self, kind, shape, spacings, share):
        pipeline = _pipeline(shape, spacings)
        for stage in [stage for stage in pipeline.stages if isinstance(stage, kind)][-2:]:
            count, grid = (1, shape) if kind is Extend else (3, pipeline.grid)
            # Faint lines of all directions: noise of few grey values.
            state = np.random.default_rng(0).integers(0, 3, (count, *grid)).astype(float)
            assert same(pipeline, stage, stage.reach, state)
            assert not same(pipeline, stage, [int(share * far) for far in stage.reach], state)


def _pipeline(shape, spacings):
    plan = _plan(spacings=spacings, wavelength=5.0, sigma=0.6, rho=1.75, window=4.0)
    plan = replace(plan, departures=(2.0,) * 3, energies=(3.0,) * 4)
    return plan.pipeline(shape, Settings(spacings=spacings))


def same(pipeline, stage, halo, state):
    """Whether all blocks with this halo agree with the whole."""
    first = isinstance(stage, Extend)
    channels = {"image": 1} if first else {"image": 1, "diffused": 1, "trust": 1}
    whole = run_on(stage, state, channels, whole_region(pipeline.grid))
    for region in regions(tuple((n // 3, n - n // 3) for n in pipeline.grid), halo):
        window = pipeline.source_window(region.needed) if first else region.needed
        part = run_on(stage, state[(slice(None), *window)], channels, region)
        if not np.array_equal(part, whole[(slice(None), *region.core)]):
            return False
    return True


def run_on(stage, stacked, channels, region):
    """All images after a stage, for the block alone."""
    images = np.split(stacked, np.cumsum(list(channels.values()))[:-1])
    state = {name: image.copy() for name, image in zip(channels, images, strict=True)}
    stage.run(state, region, lambda: None)
    return np.concatenate([state[name][(slice(None), *region.inner)] for name in stage.channels(channels)])


class TestJson:
    @pytest.mark.parametrize("options", [{}, {"refine": False}, {"noise": 30.0, "wavelength": 9.0}])
    def test_a_round_trip_gives_the_same_bits(self, options):
        expected, plan = aniso.enhance(RINGS, return_info=True, **options)
        again = aniso.Plan.from_json(plan.to_json())
        assert again == plan
        np.testing.assert_array_equal(again.apply(RINGS), expected)
        np.testing.assert_array_equal(again.apply(da.from_array(RINGS, chunks=60)).compute(), expected)

    def test_a_plan_filters_images_of_other_sizes(self):
        result = _plan().apply(RINGS[:50])
        assert result.shape == (50, 80)
        assert result.std() < RINGS[:50].std()

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"departures": [1.0]}, "a departure for each diffusion"),
            ({"energies": []}, "must have 4 energies"),
            ({"wavelength": -3.0}, "must be positive"),
            ({"spacings": [1.0]}, "for images or volumes"),
            ({"window": 0.0}, "must be positive"),
            ({"first": "long"}, "plan.first has the value 'long'"),
        ],
    )
    def test_damaged_plans_are_rejected(self, changes, message):
        values = json.loads(_plan().to_json()) | changes
        with pytest.raises(ValueError, match=message):
            aniso.Plan.from_json(json.dumps(values))


class TestWindows:
    def test_a_large_image_is_judged_by_windows(self, monkeypatch):
        image = aniso.samples.fingerprint(256, noise=30.0, seed=3)
        whole, plan = aniso.enhance(image.image, return_info=True)
        monkeypatch.setitem(sample._VALUES, 2, 30_000)
        result, chosen = aniso.enhance(image.image, return_info=True)
        assert chosen != plan
        for name in ("noise", "wavelength", "contrast", "time"):
            assert getattr(chosen, name) == pytest.approx(getattr(plan, name), rel=0.2)
        assert chosen.interrupted == pytest.approx(plan.interrupted, abs=0.01)
        errors = [np.std(one - image.truth) for one in (result, whole)]
        assert errors[0] < 1.03 * errors[1]

    def test_windows_without_lines_do_not_count(self, monkeypatch):
        image = np.zeros((300, 300))
        image[100:200, 100:200] = aniso.samples.rings(100, noise=0.0).image - 127
        monkeypatch.setitem(sample._VALUES, 2, 20_000)
        result, plan = aniso.enhance(image, return_info=True)
        assert plan.diffusions == 4
        assert plan.wavelength == pytest.approx(12, rel=0.3)
        assert min(plan.departures + plan.energies) > 0
        assert np.isfinite(result).all()

    def test_most_of_an_image_may_be_constant(self):
        image = np.zeros((90, 90), np.float32)
        image[20:60, 20:60] = aniso.samples.rings(40, period=8.0, noise=10.0).image
        assert np.isfinite(aniso.enhance(image)).all()
