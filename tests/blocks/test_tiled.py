"""Dask arrays: in blocks as in one piece, whatever the blocks."""

import itertools
import os
import pickle
import re
import signal
import time
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import aniso
from aniso import arrays
from aniso.blocks import costs, groups, halo, lazy
from aniso.blocks.stages import Pipeline
from aniso.blocks.stores import cluster
from aniso.settings import Settings
from tests.processes import PATIENCE, wait_until
from tests.registry import DTYPES, MODELS, SAMPLES, SCHEMES, VOLUME_MODELS, VOLUME_SAMPLES, colours, in_turn

SHAPE = (23, 19)
TIME = 1.5
#: Blocks of many sizes: one, several, smaller than the halo, of one pixel, uneven.
CHUNKS = (SHAPE, (11, 11), (6, 5), ((12, 1, 10), (3, 16)), (1, 19))
#: The same for volumes.
VOLUME = (14, 11, 13)
VOLUME_TIME = 0.6
VOLUME_CHUNKS = (VOLUME, (8, 8, 8), (5, 11, 4), ((9, 1, 4), (3, 8), (13,)))

every_model = pytest.mark.parametrize("name", MODELS)
every_scheme = pytest.mark.parametrize("scheme", SCHEMES, ids=repr)


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def slack(dtype):
    """Relative to the range of grey values."""
    return {"float32": 2e-5, "float64": 1e-9}[np.dtype(dtype).name]


def assert_same(blocks, whole):
    assert blocks.dtype == whole.dtype
    assert abs(blocks - whole).max() <= slack(whole.dtype) * np.ptp(whole)


def assert_blocks_do_not_show(array, chunkings, name, model, time):
    """Every model meets every chunking, and over the models every chunking meets every scheme."""
    schemes = itertools.cycle(in_turn(SCHEMES, name))
    for chunks, scheme in zip(chunkings, schemes, strict=False):
        blocks = da.from_array(array, chunks=chunks)
        result = aniso.diffuse(blocks, model, time, scheme=scheme)
        assert result.chunks == blocks.chunks
        assert_same(result.compute(), aniso.diffuse(array, model, time, scheme=scheme))


@every_model
@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_do_not_show(name, dtype):
    image, model = SAMPLES["edges"](SHAPE).astype(dtype), MODELS[name](SHAPE)
    assert_blocks_do_not_show(image, CHUNKS, name, model, TIME)


@pytest.mark.parametrize("name", VOLUME_MODELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_do_not_show_in_volumes(name, dtype):
    volume, model = VOLUME_SAMPLES["edges"](VOLUME).astype(dtype), VOLUME_MODELS[name](VOLUME)
    assert_blocks_do_not_show(volume, VOLUME_CHUNKS, name, model, VOLUME_TIME)


@pytest.mark.parametrize("scheme", [aniso.Explicit(), aniso.FSI(cycles=4)], ids=repr)
@pytest.mark.parametrize("name", VOLUME_MODELS)
def test_an_exchange_after_every_cycle(monkeypatch, name, scheme):
    """Small blocks do many cycles between two exchanges; large ones would exchange after each."""
    monkeypatch.setattr(lazy, "group_stages", lambda stages, *_: groups.cut_stages(stages, 0))
    volume, model = VOLUME_SAMPLES["noise"](VOLUME), VOLUME_MODELS[name](VOLUME)
    result = aniso.diffuse(da.from_array(volume, chunks=(7, 6, 13)), model, VOLUME_TIME, scheme=scheme)
    assert_same(result.compute(), aniso.diffuse(volume, model, VOLUME_TIME, scheme=scheme))


@every_model
def test_channels_spacing_and_mask(name):
    image, model = colours(SAMPLES["edges"], SHAPE), MODELS[name](SHAPE)
    mask = np.random.default_rng(0).random(SHAPE) < 0.2
    options: dict[str, Any] = {"spacing": (0.8, 1.3), "channel_axis": -1}
    whole = aniso.diffuse(image, model, TIME, fixed=mask, **options)
    blocks = da.from_array(image, chunks=(16, 10, 2))
    for fixed in (mask, da.from_array(mask, chunks=(9, 19))):
        result = aniso.diffuse(blocks, model, TIME, fixed=fixed, **options)
        assert result.chunks == blocks.chunks
        assert_same(result.compute(), whole)
    np.testing.assert_array_equal(result.compute()[mask], image[mask])


@pytest.mark.parametrize("name", VOLUME_MODELS)
def test_channels_spacing_and_mask_in_volumes(name):
    volume, model = colours(VOLUME_SAMPLES["edges"], VOLUME, 2), VOLUME_MODELS[name](VOLUME)
    mask = np.random.default_rng(0).random(VOLUME) < 0.2
    options: dict[str, Any] = {"spacing": (1.4, 0.8, 1.0), "channel_axis": -1, "fixed": mask}
    blocks = da.from_array(volume, chunks=(9, 11, 6, 1))
    result = aniso.diffuse(blocks, model, VOLUME_TIME, **options).compute()
    assert_same(result, aniso.diffuse(volume, model, VOLUME_TIME, **options))
    np.testing.assert_array_equal(result[mask], volume[mask])


@pytest.mark.parametrize("engine", ["reference", "torch"])
def test_other_engines(engine):
    image, model = SAMPLES["noise"](SHAPE), aniso.EdgeEnhancing(12.0)
    result = aniso.diffuse(da.from_array(image, chunks=10), model, TIME, engine=engine)
    assert_same(result.compute(), aniso.diffuse(image, model, TIME, engine=engine))


def test_a_stencil_given_per_cell():
    image, model = SAMPLES["noise"](SHAPE), aniso.Homogeneous()
    stencil = aniso.FreeStencil(np.random.default_rng(0).uniform(0, 1, (24, 20)))
    result = aniso.diffuse(da.from_array(image, chunks=10), model, TIME, stencil=stencil)
    assert_same(result.compute(), aniso.diffuse(image, model, TIME, stencil=stencil))


def test_nothing_is_computed_before_it_is_asked_for():
    def fails(block):
        raise AssertionError("computed")

    lazy = da.map_blocks(fails, chunks=((8, 8), (8, 8)), dtype=np.float32, meta=np.empty((0, 0), np.float32))
    assert aniso.diffuse(lazy, aniso.Homogeneous(), 1.0).shape == (16, 16)


def test_no_time_and_integers():
    image = np.arange(48, dtype=np.uint8).reshape(6, 8)
    result = aniso.diffuse(da.from_array(image, chunks=3), aniso.Homogeneous(), 0.0)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result.compute(), image)


@pytest.mark.slow
class TestKilled:
    """Two real processes, one of which is really killed while it has work and results."""

    def test_a_worker_that_dies_does_not_change_the_result(self, tmp_path):
        sample, model = VOLUME_SAMPLES["edges"]((24, 20, 22)), aniso.EdgeEnhancing(12.0, sigma=0.5)
        blocks = da.from_array(sample, chunks=(12, 10, 8))
        number = blocks.npartitions

        def in_two_halves(block, block_info=None):
            while len(os.listdir(tmp_path)) >= number // 2 and not (tmp_path / "killed").exists():
                time.sleep(0.01)
            (tmp_path / str(block_info[0]["chunk-location"])).touch()
            return block

        with cluster.connect(None, 2, "1GB") as client:
            pids = list(client.run(os.getpid).values())
            result = aniso.diffuse(blocks.map_blocks(in_two_halves, dtype=blocks.dtype), model, TIME)
            future: Any = client.compute(result)
            wait_until(lambda: len(os.listdir(tmp_path)) >= number // 2)
            os.kill(pids[0], signal.SIGKILL)
            assert not future.done()
            (tmp_path / "killed").touch()
            found = future.result(timeout=PATIENCE)
            assert sorted(client.run(os.getpid).values()) != sorted(pids)  # it has been replaced
        assert_same(found, aniso.diffuse(sample, model, TIME))


class TestReach:
    """A cycle looks exactly as far as its reach says: not less, and not much more."""

    @every_model
    @every_scheme
    def test_pixels_beyond_it_do_not_matter_and_those_at_it_may(self, name, scheme):
        shape = (61, 61)
        model = MODELS[name](shape)
        limit = aniso.stability.stable_step(model)
        cycle = next(iter(scheme.plan(1.0, limit)))
        far, _ = halo.reach(cycle, model, (1.0, 1.0))
        image = SAMPLES["noise"](shape)
        changed = image.copy()
        changed[30, 30] += 50.0
        once = type(scheme)(1) if hasattr(scheme, "cycles") else aniso.Explicit(cycle.time)
        one, other = (aniso.diffuse(each, model, cycle.time, scheme=once) for each in (image, changed))
        difference = abs(one - other).max(axis=0)
        seen = np.flatnonzero(difference) - 30
        assert abs(seen).max() <= far
        if not isinstance(model, aniso.Homogeneous | aniso.FixedTensor):
            assert abs(seen).max() >= far - 1


def explicit_steps(count, shape, sigma=0.5):
    """Explicit steps of edge-enhancing diffusion, one stage each."""
    prepared = Settings(spacings=(1.0,) * len(shape)).prepare(aniso.EdgeEnhancing(3.0, sigma), shape)
    cycles = [aniso.schemes.Cycle(0.1, ((0.1, 1.0),))] * count
    return Pipeline.diffuse(shape, prepared, cycles).parts()


class TestExchanges:
    def test_halos_grow_with_the_cycles(self):
        steps = explicit_steps(5, (40, 40))
        far = steps[0].reach[0]
        found = groups.cut_stages(steps, 2 * far + 1)
        assert [len(group.steps) for group in found] == [2, 2, 1]
        assert [group.halo for group in found] == [(2 * far,) * 2, (2 * far,) * 2, (far,) * 2]

    def test_a_single_stage_may_be_wider_than_the_limit(self):
        assert [len(group.steps) for group in groups.cut_stages(explicit_steps(3, (40, 40)), 0)] == [1, 1, 1]

    def test_small_blocks_exchange_more_seldom(self):
        steps = explicit_steps(64, (9000, 9000))
        numbers = [len(groups.group_stages(steps, 1, (n, n), 4)) for n in (64, 1024, 8192)]
        assert numbers[0] < numbers[-1]

    def test_what_is_chosen_costs_least(self):
        for block in ((100, 100), (2000, 500), (64, 64, 64)):
            steps = explicit_steps(30, block)
            best = groups.group_stages(steps, 1, block, 4)
            least = groups.estimate_seconds(best, block, 4)
            for limit in groups.halo_limits(steps):
                other = groups.cut_stages(steps, limit)
                assert least <= groups.estimate_seconds(other, block, 4)

    def test_tasks_hold_only_their_part_of_given_tensors(self):
        model = aniso.FixedTensor.from_matrix([[1.0, 0.2], [0.2, 0.5]], (200, 200))
        result = aniso.diffuse(da.zeros((200, 200), chunks=20), model, 0.2)
        graph: Any = result.__dask_graph__()
        layer = graph.layers[result.name]
        tasks = [task for key, task in layer.items() if key[0] == result.name]
        assert len(tasks) == 100
        assert max(len(pickle.dumps(task)) for task in tasks) < 0.2 * len(pickle.dumps(model))

    def test_cycles_cost_more_with_more_of_everything(self):
        edges = aniso.EdgeEnhancing(3.0)

        def seconds(steps=1, model=edges, channels=1, ndim=2, itemsize=4):
            cycle = aniso.schemes.Cycle(1.0, ((1.0, 0.1),) * steps)
            return costs.cycle_seconds(cycle, model, channels, (1.0,) * ndim, itemsize)

        wide, wider = (aniso.CoherenceEnhancing(1.0, rho=rho) for rho in (3.0, 6.0))
        assert seconds() < seconds(steps=4) < seconds(steps=8) < seconds(steps=8, channels=3)
        assert seconds() < seconds(model=wide) < seconds(model=wider) < seconds(model=wider, ndim=3)
        assert seconds(itemsize=8) == 2 * seconds()


#: Calls of all that takes Dask arrays.
VERBS = {
    "diffuse": lambda image: aniso.diffuse(image, aniso.EdgeEnhancing(12.0), 1.0),
    "denoise": aniso.denoise,
    "enhance": aniso.enhance,
    "inpaint": aniso.inpaint,
}
every_verb = pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)


class TestBadInput:
    model = aniso.EdgeEnhancing(12.0)

    @every_verb
    def test_unknown_chunks(self, verb):
        numbers = da.from_array(np.arange(40.0), chunks=10)
        image = da.stack([numbers[numbers > 5]] * 3)
        with pytest.raises(ValueError, match="compute_chunk_sizes"):
            verb(image)

    @every_verb
    def test_objects(self, verb):
        with pytest.raises(TypeError, match="dtype, got object"):
            verb(da.from_array(np.array([["a", "b"]], object), chunks=1))

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_the_block_of_a_nan_is_named(self, bad):
        image = np.zeros((30, 40), np.float32)
        image[17, 25] = bad
        result = aniso.diffuse(da.from_array(image, chunks=10), self.model, 1.0)
        with pytest.raises(ValueError, match=r"block \(1, 2\).*index \(17, 25\)"):
            result.compute()

    @pytest.mark.parametrize("verb", [aniso.denoise, aniso.enhance])
    @pytest.mark.parametrize("shape", [(30, 40), (300, 290)], ids=["in one window", "in windows"])
    def test_also_where_it_is_found_in_the_sample(self, verb, shape):
        image = np.zeros(shape, np.float32)
        image[20:, 30:] = np.nan
        with pytest.raises(ValueError, match=r"block \(\d+, \d+\) holds NaN") as refused:
            verb(da.from_array(image, chunks=10))
        found = re.findall(r"\((\d+), (\d+)\)", str(refused.value))
        (row, column), (y, x) = ((int(a), int(b)) for a, b in found)
        assert (row, column) == (y // 10, x // 10)
        assert np.isnan(image[y, x])

    def test_known_pixels_of_inpainting(self):
        image = np.zeros((30, 40), np.float32)
        image[17, 25] = np.inf
        mask = np.zeros(image.shape, bool)
        mask[3:16, 3:20] = True
        lazy_image = da.from_array(image, chunks=10)
        with pytest.raises(ValueError, match=r"block \(1, 2\).*index \(17, 25\)"):
            aniso.inpaint(lazy_image, mask, contrast=1.0)
        _, plan = aniso.inpaint(np.zeros_like(image), mask, contrast=1.0, return_info=True)
        result = plan.apply(lazy_image, mask)
        with pytest.raises(ValueError, match=r"block \(1, 2\).*index \(17, 25\)"):
            result.compute()

    def test_numbers_that_become_too_large(self):
        image = np.zeros((30, 40), np.float32)
        image[::2] = 3e38
        options: dict[str, Any] = {"spacing": 0.1}
        with pytest.raises(ArithmeticError, match="range of float32"):
            aniso.diffuse(image, aniso.EdgeEnhancing(1e11), 0.1, **options)
        result = aniso.diffuse(da.from_array(image, chunks=10), aniso.EdgeEnhancing(1e11), 0.1, **options)
        with pytest.raises(ArithmeticError, match="range of float32"):
            result.compute()

    def test_nan_is_looked_for_once_and_not_at_every_exchange(self, monkeypatch):
        monkeypatch.setattr(lazy, "group_stages", lambda stages, *_: groups.cut_stages(stages, 0))
        looked, original = [], lazy.check_pixels

        def counted(*given):
            looked.append(1)
            return original(*given)

        monkeypatch.setattr(lazy, "check_pixels", counted)
        monkeypatch.setattr(arrays, "check_image", lambda *_: pytest.fail("a second look"))
        image = da.from_array(np.zeros((20, 20), np.float32), chunks=10)
        aniso.diffuse(image, self.model, 3.0).compute()
        assert len(looked) == 4

    def test_a_signal(self):
        with pytest.raises(ValueError, match="compute"):
            aniso.diffuse(da.zeros(30, chunks=10), self.model, 1.0)

    def test_progress(self):
        with pytest.raises(ValueError, match="ProgressBar"):
            aniso.diffuse(da.zeros((30, 30), chunks=10), self.model, 1.0, progress=True)

    def test_a_mask_of_another_shape(self):
        mask = da.zeros((30, 31), chunks=10, dtype=bool)
        with pytest.raises(ValueError, match="fixed has shape"):
            aniso.diffuse(da.zeros((30, 30), chunks=10), self.model, 1.0, fixed=mask)

    def test_what_holds_for_arrays_holds_here(self):
        image = da.zeros((30, 30), chunks=10)
        with pytest.raises(ValueError, match="largest stable step"):
            aniso.diffuse(image, self.model, 1.0, scheme=aniso.Explicit(3.0))
        with pytest.raises(ValueError, match="time must be"):
            aniso.diffuse(image, self.model, -1.0)
