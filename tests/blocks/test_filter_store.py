"""Zarr stores filtered by plans: the same bits as in memory and for Dask arrays, also after interruptions."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr as zarr_package

import aniso
from aniso.blocks.halo import Region, without_margins
from aniso.blocks.stages import Diffuse, Pipeline, Stage, State
from aniso.blocks.stores import cluster, journal, passes
from aniso.blocks.stores.zarr_array import open_array
from aniso.io.picture import as_dtype
from aniso.settings import Settings
from tests.blocks.stores import ome_group, result_of
from tests.processes import PATIENCE, kill, started, wait_until

pytestmark = pytest.mark.slow

# A group may hold groups and arrays, which types cannot tell apart.
zarr: Any = zarr_package

IMAGE = aniso.samples.shapes(72, noise=20.0).image[:, :61]
VOLUME = aniso.samples.balls(22, noise=20.0).image[:, :20, :18]
RINGS = aniso.samples.rings(72).image.astype(np.float32)
COLOUR = np.stack([IMAGE, IMAGE[::-1]], -1)


class TestSameBits:
    """In memory, as a Dask array, and as a store."""

    @pytest.mark.parametrize(
        ("image", "dtype", "channel_axis", "chunks", "block", "limit"),
        [
            (IMAGE, "float32", None, (16, 16), (48, 32), 6),
            (IMAGE, "float64", None, (30, 40), (60, 40), 20),
            (IMAGE, "uint8", None, (72, 61), (72, 61), 1000),
            (COLOUR, "float32", -1, (32, 32, 1), (64, 32), 25),
            (COLOUR, "uint8", -1, (32, 32, 1), (64, 32), 40),
            (VOLUME, "float64", None, (10, 10, 10), (10, 20, 20), 6),
            (VOLUME, "float32", None, (8, 20, 18), (8, 20, 18), 8),
        ],
        ids=["narrow halos", "wide halos", "one block", "colour", "integers", "volume", "slabs"],
    )
    def test_denoise(self, tmp_path, scheduler, cut, dtype, image, channel_axis, chunks, block, limit):
        pixels = as_dtype(image, dtype)
        expected, plan = aniso.denoise(pixels, channel_axis=channel_axis, return_info=True)
        assert plan.model is not None
        lazy = aniso.denoise(da.from_array(pixels, chunks=chunks), channel_axis=channel_axis)
        np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), expected)
        zarr.create_array(str(tmp_path / "in.zarr"), data=pixels, chunks=chunks)
        cut(block, limit)
        done = aniso.filter_store(
            tmp_path / "in.zarr",
            tmp_path / "out.zarr",
            "denoise",
            channel_axis=channel_axis,
            scheduler=scheduler,
        )
        assert replace(done.plan, channel_axis=channel_axis) == plan
        assert (done.passes == 1) == (limit == 1000)
        found = result_of(tmp_path / "out.zarr")
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, as_dtype(expected, dtype))

    @pytest.mark.parametrize(
        ("image", "chunks", "block", "limit"),
        [(RINGS, (24, 24), (48, 48), 40), (VOLUME, (11, 11, 11), (11, 22, 22), 24)],
        ids=["image", "volume"],
    )
    def test_enhance(self, tmp_path, scheduler, cut, image, chunks, block, limit):
        expected, plan = aniso.enhance(image, return_info=True)
        zarr.create_array(str(tmp_path / "in.zarr"), data=image, chunks=chunks)
        cut(block, limit)
        done = aniso.filter_store(
            tmp_path / "in.zarr", tmp_path / "out.zarr", aniso.enhance, scheduler=scheduler
        )
        assert done.plan == plan
        assert done.passes > 1
        np.testing.assert_array_equal(result_of(tmp_path / "out.zarr"), expected)

    def test_frames_are_filtered_alike(self, tmp_path, scheduler, cut):
        frames = np.stack([np.moveaxis(COLOUR, -1, 0), np.moveaxis(COLOUR[:, ::-1] + 5, -1, 0)])
        source = ome_group(tmp_path / "in.zarr", frames, "tcyx", (1, 1, 0.5, 1.0), chunks=(2, 1, 20, 20))
        cut((40, 40), 30)
        done = aniso.filter_store(source, tmp_path / "out.zarr", aniso.denoise, scheduler=scheduler)
        _, plan = aniso.denoise(frames, channel_axis=1, frame_axis=0, spacing=(1.0, 2.0), return_info=True)
        assert done.plan == plan
        assert done.passes > 1
        for found, frame in zip(result_of(tmp_path / "out.zarr"), frames, strict=True):
            np.testing.assert_array_equal(found, plan.apply(frame))

    def test_a_plan_from_another_image(self, tmp_path, scheduler, cut):
        _, plan = aniso.denoise(IMAGE[:40], return_info=True)
        zarr.create_array(str(tmp_path / "in.zarr"), data=IMAGE, chunks=(16, 16))
        cut((48, 32), 16)
        restored = aniso.Plan.from_json(plan.to_json())
        done = aniso.filter_store(tmp_path / "in.zarr", tmp_path / "out.zarr", restored, scheduler=scheduler)
        assert done.plan == plan
        np.testing.assert_array_equal(result_of(tmp_path / "out.zarr"), plan.apply(IMAGE))

    def test_diffuse(self, tmp_path, scheduler, cut):
        model, scheme, stencil = aniso.CoherenceEnhancing(5.0, rho=2.0), aniso.FED(3), aniso.DeltaStencil(0.3)
        zarr.create_array(str(tmp_path / "in.zarr"), data=IMAGE, chunks=(16, 16))
        cut((32, 32), 1)
        options: dict[str, Any] = {"model": model, "time": 3.0, "scheme": scheme, "stencil": stencil}
        told: list[float] = []
        done = aniso.filter_store(
            tmp_path / "in.zarr",
            tmp_path / "out.zarr",
            "diffuse",
            scheduler=scheduler,
            progress=lambda done, total: told.append(done / total),
            **options,
        )
        assert done.passes == 3
        assert told == sorted(told)
        assert told[-1] == 1.0
        expected = aniso.diffuse(IMAGE, model, 3.0, scheme=scheme, stencil=stencil)
        np.testing.assert_array_equal(result_of(tmp_path / "out.zarr"), expected)
        np.testing.assert_array_equal(done.plan.apply(IMAGE), expected)

    def test_windows_of_a_large_array(self, tmp_path, scheduler):
        """Here the choice is made on windows, of which some lie across chunks."""
        image = aniso.samples.shapes(900, noise=20.0).image.astype(np.float32)
        options: dict[str, Any] = {"contrast": 9.0, "time": 1.0}
        expected, plan = aniso.denoise(image, **options, return_info=True)
        zarr.create_array(str(tmp_path / "in.zarr"), data=image, chunks=(256, 200))
        done = aniso.filter_store(
            tmp_path / "in.zarr", tmp_path / "out.zarr", "denoise", scheduler=scheduler, **options
        )
        assert done.plan == plan
        np.testing.assert_array_equal(result_of(tmp_path / "out.zarr"), expected)


@dataclass(frozen=True)
class Pad(Stage):
    """Continue the image into the margins, as its border says."""

    margins: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        return self.margins

    def run(self, state: State, region: Region, tick: Callable[[], object]) -> None:
        inside = without_margins(region.needed, self.margins, self.shape)
        wide = [
            (part.start + m - whole.start, whole.stop - part.stop - m)
            for part, whole, m in zip(inside, region.needed, self.margins, strict=True)
        ]
        state["image"] = np.pad(state["image"], [(0, 0), *wide], mode="edge")


@pytest.mark.parametrize(
    ("margins", "chunks", "block", "limit"),
    [((5, 9), (16, 16), (16, 32), 1), ((20, 3), (30, 40), (30, 40), 24), ((7, 7), (72, 61), (72, 61), 1)],
)
def test_pipelines_with_margins(tmp_path, scheduler, margins, chunks, block, limit):
    """The stores between passes are wider than the array, and blocks still begin at chunks."""
    grid = tuple(n + 2 * m for n, m in zip(IMAGE.shape, margins, strict=True))
    prepared = Settings(spacings=(1.0, 1.0), threads=1).prepare(aniso.EdgeEnhancing(9.0, 0.5), grid)
    diffusion = Diffuse("image", "image", prepared, tuple(prepared.plan(1.0)))
    pipeline = Pipeline(IMAGE.shape, (Pad(margins, IMAGE.shape), diffusion), margins)
    zarr.create_array(str(tmp_path / "in.zarr"), data=IMAGE, chunks=chunks)
    run = passes.StoreRun(open_array(tmp_path / "in.zarr"), pipeline, {}, block, limit)
    assert len(run.passes) > 1
    for _, region in run.regions(run.passes[0]):
        inside = without_margins(region.core, margins, IMAGE.shape)
        starts = [part.start for part in inside]
        assert all(start % side == 0 for start, side in zip(starts, run.chunk_sides, strict=True))
        for start, m, first, side in zip(starts, margins, run.offset, run.chunk_sides, strict=True):
            assert start == 0 or (start + m + first) % side == 0
    with cluster.connect(scheduler, 1, None) as client:
        passes.carry_out(run, tmp_path / "out.zarr", client, lambda done, total: None)
    expected = pipeline.run(IMAGE[np.newaxis])[0]
    np.testing.assert_array_equal(result_of(tmp_path / "out.zarr"), expected)


def test_stores_between_passes_hold_only_what_later_passes_read(tmp_path, scheduler, cut):
    zarr.create_array(str(tmp_path / "in.zarr"), data=IMAGE, chunks=(16, 16))
    cut((48, 32), 6)
    target, seen = tmp_path / "out.zarr", []

    def look(done, total):
        seen.append({path.name for path in Path(str(journal.folder_of(target))).glob("*.zarr")})

    done = aniso.filter_store(tmp_path / "in.zarr", target, "denoise", scheduler=scheduler, progress=look)
    assert done.passes > 5
    images = {name for names in seen for name in names if name.endswith("-image.zarr")}
    assert images == {f"pass-{done.passes - 1:04}-image.zarr"}  # the image itself is read from the source
    # At most three images are needed later, and three are written.
    assert max(map(len, seen)) <= 6
    assert any("mixture" not in name for names in seen for name in names)
    for number in range(done.passes):
        written = {name for names in seen for name in names if name.startswith(f"pass-{number:04}")}
        assert 1 <= len(written) <= 3


_SCRIPT = """
    import sys, time
    from pathlib import Path
    import aniso
    from aniso.blocks.stores import budget, journal

    budget.block_and_limit = lambda *_: ((32, 32), 6)
    source, target = map(Path, sys.argv[1:3])

    def stop(done, total):
        if len(sys.argv) > 3 and journal.complete_blocks(journal.folder_of(target), 2):
            time.sleep(1e4)  # in the third pass

    if __name__ == "__main__":
        options = {"workers": 2, "memory": "1GB", "progress": stop}
        aniso.filter_store(source, target, "denoise", method="diffusion", **options)
"""


class TestInterruptions:
    def filtering(self, tmp_path, *words):
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(_SCRIPT))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return started([sys.executable, script, *words], env=environment)

    @pytest.mark.skipif(sys.platform == "win32", reason="there are no groups of processes")
    def test_a_run_that_is_killed_gives_the_same_bits(self, tmp_path):
        expected, plan = aniso.denoise(IMAGE, method="diffusion", return_info=True)
        assert plan.mixed > 1  # stores between passes hold several images
        source, target = tmp_path / "in.zarr", tmp_path / "out.zarr"
        zarr.create_array(str(source), data=IMAGE, chunks=(16, 16))
        with self.filtering(tmp_path, source, target, "stop") as process:
            wait_until(lambda: journal.complete_blocks(journal.folder_of(target), 2), process)
            kill(process)
        assert not target.exists()
        with self.filtering(tmp_path, source, target) as again:
            again.communicate(timeout=PATIENCE)
        assert again.returncode == 0
        np.testing.assert_array_equal(result_of(target), expected)
        assert not journal.folder_of(target).exists()

    def test_another_plan_does_not_go_on(self, tmp_path, scheduler, cut):
        class Stopped(Exception):
            pass

        def stop(done, total):
            if done > total / 2:
                raise Stopped

        source, target = tmp_path / "in.zarr", tmp_path / "out.zarr"
        zarr.create_array(str(source), data=IMAGE, chunks=(16, 16))
        cut((32, 32), 12)
        _, plan = aniso.denoise(IMAGE, method="diffusion", return_info=True)
        with pytest.raises(Stopped):
            aniso.filter_store(source, target, plan, scheduler=scheduler, progress=stop)
        with pytest.raises(ValueError, match=r"interrupted run with another noise \(.* there, 7\.0 now\)"):
            aniso.filter_store(source, target, replace(plan, noise=7.0), scheduler=scheduler)
        with pytest.raises(ValueError, match="with another engine"):
            aniso.filter_store(source, target, plan, scheduler=scheduler, engine="reference")
        notes: dict[str, str] = {}
        aniso.filter_store(
            source, target, "denoise", method="diffusion", scheduler=scheduler, note=notes.__setitem__
        )
        assert "is continued" in notes["continued"]
        np.testing.assert_array_equal(result_of(target), plan.apply(IMAGE))


def grey_plan():
    return aniso.denoise(IMAGE, contrast=9.0, time=1.0, return_info=True)[1]


class TestBadInput:
    @pytest.mark.parametrize(
        ("given", "options", "kind", "words"),
        [
            ("sharpen", {}, TypeError, "one of denoise.*got 'sharpen'"),
            (7, {}, TypeError, "plan_or_verb must be a plan"),
            ("denoise", {"wavelength": 3}, TypeError, "denoise has no parameter 'wavelength'"),
            ("denoise", {"noise": -1.0}, ValueError, "noise"),
            ("denoise", {"stencil": aniso.FreeStencil(np.zeros((73, 62)))}, ValueError, "FreeStencil"),
            ("denoise", {"spacing": "metres"}, ValueError, "spacing must be"),
            ("denoise", {"engine": "gpu"}, ValueError, "engine must be"),
            ("denoise", {"workers": 0}, ValueError, "workers must be at least 1"),
            ("denoise", {"memory": "lots"}, ValueError, "'lots' is not a memory size. Give e.g. 4GB"),
            ("denoise", {"memory": -5}, ValueError, "-5 is not a memory size"),
            ("denoise", {"progress": 3}, TypeError, "progress must be"),
            ("diffuse", {}, TypeError, "diffuse needs the parameter"),
            ("diffuse", {"model": aniso.EdgeEnhancing(), "time": -1.0}, ValueError, "time must be"),
            ("diffuse", {"model": 3, "time": 1.0}, TypeError, "model must be"),
            (
                "diffuse",
                {"model": aniso.EdgeEnhancing(), "time": 1.0, "scheme": aniso.Explicit(3.0)},
                ValueError,
                "largest stable step",
            ),
            (
                "diffuse",
                {"model": aniso.EdgeEnhancing(), "time": 1.0, "scheme": 3},
                TypeError,
                "scheme must be",
            ),
            (grey_plan, {"noise": 3.0}, ValueError, "a plan has all parameters of denoise, got noise"),
            (grey_plan, {"spacing": 2.0}, ValueError, "a plan has all parameters of denoise, got spacing"),
            (grey_plan, {"channel_axis": 0}, ValueError, "one axis besides|an image has two axes"),
        ],
    )
    def test_is_rejected_before_anything_is_written(self, tmp_path, given, options, kind, words):
        zarr.create_array(str(tmp_path / "in.zarr"), data=IMAGE, chunks=(16, 16))
        plan_or_verb = given() if given is grey_plan else given
        with pytest.raises(kind, match=words):
            aniso.filter_store(tmp_path / "in.zarr", tmp_path / "out.zarr", plan_or_verb, **options)
        assert os.listdir(tmp_path) == ["in.zarr"]

    def test_arrays_are_not_stores(self, tmp_path):
        with pytest.raises(TypeError, match=r"must be given as str or os.PathLike, got ndarray. For arrays"):
            aniso.filter_store(IMAGE, tmp_path / "out.zarr", "denoise")  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("array", "channel_axis", "words"),
        [(VOLUME, None, "is for images, got"), (COLOUR, -1, "is for one channel, got")],
    )
    def test_a_plan_for_other_arrays(self, tmp_path, array, channel_axis, words):
        zarr.create_array(str(tmp_path / "in.zarr"), data=array, chunks=array.shape)
        with pytest.raises(ValueError, match=words):
            aniso.filter_store(
                tmp_path / "in.zarr", tmp_path / "out.zarr", grey_plan(), channel_axis=channel_axis
            )
        assert os.listdir(tmp_path) == ["in.zarr"]

    def test_a_damaged_chunk_in_the_sample(self, tmp_path):
        zarr.create_array(str(tmp_path / "in.zarr"), data=IMAGE, chunks=(16, 16))
        (tmp_path / "in.zarr" / "c" / "1" / "0").write_bytes(b"no chunk")
        with pytest.raises(OSError, match=r"chunk c/1/0 of .*in\.zarr cannot be read.*corrupt"):
            aniso.filter_store(tmp_path / "in.zarr", tmp_path / "out.zarr", "denoise")

    def test_a_plan_for_another_spacing_is_noted(self, tmp_path, scheduler):
        source = ome_group(tmp_path / "in.zarr", IMAGE, "yx", (0.5, 1.0), chunks=(72, 61))
        notes: dict[str, str] = {}
        plan = grey_plan()
        aniso.filter_store(source, tmp_path / "out.zarr", plan, scheduler=scheduler, note=notes.__setitem__)
        assert notes["plan"] == "the plan is for a spacing of 1 × 1, which is used in place of 1 × 2"
        np.testing.assert_array_equal(result_of(tmp_path / "out.zarr"), plan.apply(IMAGE))


def test_plans_are_read_in_a_new_process():
    """The class of a plan is found although its verb was not used before."""
    program = "import aniso, sys; print(aniso.Plan.from_json(sys.stdin.read()).verb)"
    answer = subprocess.run(
        [sys.executable, "-c", program],
        input=grey_plan().to_json(),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert answer.stdout.strip() == "denoise"
