"""Groups of stages: what they read and write, how wide each stage is computed, and what is in memory."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import aniso
from aniso.blocks import halo
from aniso.blocks.groups import cut_stages
from aniso.blocks.stages import Diffuse, Flow, Pipeline, Stage, Take
from aniso.settings import Settings
from aniso.verbs.flatness import REACH
from tests.registry import SAMPLES

IMAGE = SAMPLES["noise"]((64, 60)).astype(np.float32)


@dataclass(frozen=True)
class Blur(Stage):
    """The sum of all pixels within a distance along the first axis."""

    source: str
    target: str
    far: int

    @property
    def reach(self):
        return (self.far, 0)

    def run(self, state, region, tick):
        padded = np.pad(state[self.source], ((0, 0), (self.far, self.far), (0, 0)))
        length = state[self.source].shape[1]
        state[self.target] = sum(padded[:, k : k + length] for k in range(2 * self.far + 1))

    def flow(self, before):
        return Flow({self.source}, {self.target: before[self.source]})


@dataclass(frozen=True)
class Add(Stage):
    """Add an image to another one."""

    source: str
    target: str
    reach = (0, 0)

    def run(self, state, region, tick):
        state[self.target] += state[self.source]

    def flow(self, before):
        return Flow({self.source, self.target}, {self.target: before[self.target]})


#: Two sums that start from the image, the first one in two stages, and one that nobody needs.
STAGES = (
    Blur("image", "part", 2),
    Blur("part", "part", 1),
    Blur("image", "unused", 30),
    Blur("image", "total", 4),
    Add("part", "total"),
    Take("total", 2),
)


class TestHalos:
    def test_side_by_side_the_widest_counts(self):
        (group,) = cut_stages(STAGES, 4)
        assert group.reads == {"image": (4, 0)}
        assert group.writes == ("image",)
        assert [step.halo for step in group.steps] == [(3, 0), (1, 0), (4, 0), (0, 0), (0, 0)]

    def test_what_nobody_reads_is_not_computed(self):
        stages = [step.stage for group in cut_stages(STAGES, 0) for step in group.steps]
        assert [*STAGES[:2], *STAGES[3:]] == stages

    def test_images_are_read_as_wide_as_needed_and_written_where_they_change(self):
        first, second, third = cut_stages(STAGES, 0)
        assert (first.reads, first.writes) == ({"image": (2, 0)}, ("part",))
        assert (second.reads, second.writes) == ({"part": (1, 0)}, ("part",))
        assert (third.reads, third.writes) == ({"image": (4, 0), "part": (0, 0)}, ("image",))
        assert first.after == second.before == second.after == third.before == {"image": 1, "part": 1}

    @pytest.mark.parametrize("length", [100, 7])
    @pytest.mark.parametrize("limit", [0, 3, 4])
    def test_blocks_and_their_slabs_give_the_bits_of_the_whole(self, limit, length):
        expected = Pipeline(IMAGE.shape, STAGES).run(IMAGE[np.newaxis])
        state = {"image": IMAGE[np.newaxis]}
        for group in cut_stages(STAGES, limit):
            made = {name: np.empty((1, *IMAGE.shape), np.float32) for name in group.writes}
            for region in halo.regions(((10, 30, 24), (60,)), group.halo):
                parts = {
                    name: state[name][(slice(None), *region.narrow(far).needed)].copy()
                    for name, far in group.reads.items()
                }
                slabs = list(region.slabs(length, 0))
                assert (len(slabs) > 1) == (length == 7)
                for window, found in group.run_in_slabs(parts, region, slabs):
                    for name, pixels in found.items():
                        made[name][(slice(None), *window)] = pixels
            state |= made
        np.testing.assert_array_equal(state["image"], expected)

    def test_slabs_end_at_chunks(self):
        first, inner, last = halo.regions(((2 + 24, 24, 18 + 2), (60,)), (0, 0))
        stops = [[slab.core[0].stop for slab in region.slabs(8, 2)] for region in (first, inner, last)]
        assert stops == [[10, 18, 26], [34, 42, 50], [58, 66, 70]]

    def test_length_of_slabs(self):
        """Little is computed twice, and slabs consist of chunks."""
        prepared = Settings(spacings=(1.0, 1.0)).prepare(aniso.EdgeEnhancing(3.0), (400, 400))
        cycle = aniso.schemes.Cycle(0.1, ((1.0, 0.1),))
        (group,) = cut_stages((Diffuse("image", "image", prepared, (cycle,)),) * 2, 1000)
        reach = group.steps[-1].halo[0]
        assert reach == 5
        assert group.slab_length(400, 16) == 144  # 3 slabs: 2 borders of 2 * 5 pixels are 5 % of 400
        assert group.slab_length(100, 16) == 112
        assert group.slab_length(10**6, 16) == 125008


@pytest.fixture(scope="module")
def mixture():
    """The stages of denoise."""
    plan = aniso.denoise(aniso.samples.shapes(96, noise=20.0).image, method="diffusion", return_info=True)[1]
    assert len(plan.paths) > 1
    return plan.pipeline((96, 96), Settings(spacings=(1.0, 1.0))).parts()


class TestMixture:
    def test_the_halo_is_that_of_one_path(self, mixture):
        (group,) = cut_stages(mixture, 1000)
        ways = [0]
        for stage in mixture:
            # A path begins with the image.
            ways.append(
                stage.reach[0] if getattr(stage, "source", "") == "image" else ways.pop() + stage.reach[0]
            )
        assert max(ways) - REACH <= group.halo[0] <= max(ways)
        assert group.halo[0] < 0.7 * sum(stage.reach[0] for stage in mixture)

    def test_the_image_is_never_written_between_passes(self, mixture):
        *groups, last = cut_stages(mixture, 0)
        assert len(groups) > 5
        assert all("image" not in group.writes for group in groups)
        assert last.writes == ("image",)
        assert any("mixture" not in group.reads for group in groups[1:])
        flat = [number for number, group in enumerate(groups) if "flat" in group.writes]
        assert len(flat) == 1
        assert all("flat_mixture" not in group.after for group in groups[flat[0] :])


def test_channels_are_counted_in_memory():
    prepared = Settings(spacings=(1.0, 1.0)).prepare(aniso.EdgeEnhancing(3.0), (40, 40))
    stage = Diffuse("image", "image", prepared, (aniso.schemes.Cycle(0.1, ((1.0, 0.1),)),))
    double = replace(stage, cycles=(aniso.schemes.Cycle(0.2, ((1.0, 0.1),) * 2),))
    long = replace(stage, cycles=(aniso.schemes.Cycle(0.9, ((1.0, 0.1),) * 9),))
    extrapolated = replace(stage, cycles=(aniso.schemes.Cycle(0.9, ((1.5, 0.1),) * 9),))
    # The image and its successor; of cycles that take several passes, a tensor, which channels share; the
    # image before and its successor.
    assert stage.working({"image": 1}, 2) == 2
    assert stage.working({"image": 3}, 2) == 6
    assert double.working({"image": 3}, 2) == 6
    assert long.working({"image": 1}, 2) == 2 + 3
    assert long.working({"image": 3}, 2) == 6 + 3
    assert extrapolated.working({"image": 1}, 2) == 4 + 3
    assert extrapolated.working({"image": 1}, 3) == 4 + 6
