"""Laws: what holds for every engine, every model and, where it makes sense, every scheme.

A test takes all schemes, symmetries or factors of its law in turn: `--showlocals` names the one that failed.
"""

import dataclasses
import sys
import types
from typing import Any

import numpy as np
import pytest

import aniso
from aniso import engines
from aniso.engines import reference
from tests.laws.cases import every_dtype, every_engine, every_model, every_model_of_images, every_pair
from tests.laws.test_stability_laws import (
    CASES,
    assert_no_growth,
    assert_no_growth_in_cycles,
    assert_no_growth_with_a_free_stencil,
)
from tests.registry import IMAGES, SCHEMES, VOLUME_SYMMETRIES, VOLUMES, Engine, scaled_contrast

#: One scheme of each kind; FED and FSI also go on within a cycle with the tensor that it began with.
KINDS = (SCHEMES[0], SCHEMES[2], SCHEMES[3])
#: A scheme that looks at the last image alone, and one that looks at the last two.
ONE_AND_TWO_IMAGES = (SCHEMES[0], SCHEMES[3])


class TestEveryModel:
    """Times are steps of the grid, few of them: an engine that breaks a law does so in the first ones.

    Two laws are tried with each engine, model and precision: they say that nothing is lost, and that results
    are those of the reference. The others are tried with all pairs of them.
    """

    @every_engine
    @every_dtype
    @every_model
    def test_the_mean_of_every_channel_is_kept(self, engine, dtype, grid, name):
        model, time = grid.model(name), 4 * grid.step
        for channels, scheme in [(2, SCHEMES[0]), *((None, scheme) for scheme in SCHEMES)]:
            image = grid.image(dtype, channels)
            axis = None if channels is None else -1
            result = engine.diffuse(image, model, time, scheme=scheme, channel_axis=axis)
            assert abs(result - image).max() > 0.1  # something happened
            slack = engine.tolerance(dtype) * abs(image).max()
            assert (abs(grid.mean(result) - grid.mean(image)) <= slack).all()

    @every_pair
    def test_a_constant_image_stays(self, engine, dtype, grid, name):
        for value, scheme in [(0.0, SCHEMES[0]), (-7.3, SCHEMES[0]), *((1e4, scheme) for scheme in KINDS)]:
            image = np.full(grid.shape, value, dtype)
            result = engine.diffuse(image, grid.model(name), 2 * grid.step, scheme=scheme)
            engine.assert_equal(result, image)

    @every_pair
    def test_turning_the_image_turns_the_result(self, engine, dtype, grid, name):
        """Grey images with a spacing for each axis; in single precision colour images."""
        grey = dtype == "float64"
        image, model = grid.image(dtype, None if grey else 3), grid.model(name)
        spacing = grid.spacing if grey else (1.0,) * grid.ndim
        axis, scheme = None if grey else -1, aniso.Explicit(grid.step)
        time = 2 * grid.step
        straight = engine.diffuse(image, model, time, spacing=spacing, scheme=scheme, channel_axis=axis)
        # With 48 symmetries, every fifth has all mirrorings and all orders of the axes.
        for symmetry in grid.symmetries if grey or grid.ndim == 2 else grid.symmetries[::5]:
            turned = engine.diffuse(
                symmetry.image(image),
                symmetry.model(model),
                time,
                spacing=symmetry.spacing(spacing),
                scheme=scheme,
                channel_axis=axis,
            )
            engine.assert_equal(turned, symmetry.image(straight))

    @every_pair
    def test_adding_a_constant_and_negating_commute(self, engine, dtype, grid, name):
        image, model, time = grid.image(dtype), grid.model(name), 4 * grid.step
        straight = engine.diffuse(image, model, time)
        engine.assert_equal(engine.diffuse(-image, model, time), -straight)
        for constant in map(np.dtype(dtype).type, (-100, 1000)):
            lifted = image + constant
            slack = 10 * engine.tolerance(dtype) * abs(lifted).max()  # what lifting rounds off
            assert abs(engine.diffuse(lifted, model, time) - (straight + constant)).max() <= slack

    @every_pair
    def test_scaling_image_and_contrast_together_commutes(self, engine, dtype, grid, name):
        image, model, time = grid.image(dtype), grid.model(name), 4 * grid.step
        straight = engine.diffuse(image, model, time)
        for scale in map(np.dtype(dtype).type, (1e-6, 255.0, 1e6)):
            result = engine.diffuse(scale * image, scaled_contrast(model, float(scale)), time)
            assert result.dtype == dtype
            slack = 10 * engine.tolerance(dtype) * abs(scale * straight).max()  # what scaling rounds off
            assert abs(result - scale * straight).max() <= slack

    @every_pair
    def test_three_equal_channels_and_one_channel_equal_grey(self, engine, dtype, grid, name):
        image, model, time = grid.image(dtype), grid.model(name), 4 * grid.step
        for scheme in ONE_AND_TWO_IMAGES:
            grey = engine.diffuse(image, model, time, scheme=scheme)
            three = engine.diffuse(np.stack([image] * 3, -1), model, time, scheme=scheme, channel_axis=-1)
            engine.assert_equal(three, np.stack([grey] * 3, -1))
        one = engine.diffuse(image[np.newaxis], model, time, scheme=scheme, channel_axis=0)
        np.testing.assert_array_equal(one[0], grey)

    @every_pair
    def test_channels_may_lie_along_any_axis(self, engine, dtype, grid, name):
        image, model = grid.image(dtype, 2), grid.model(name)
        last = engine.diffuse(image, model, grid.step, channel_axis=-1)
        for axis in (0, 1, -2):
            moved = engine.diffuse(np.moveaxis(image, -1, axis), model, grid.step, channel_axis=axis)
            np.testing.assert_array_equal(moved, np.moveaxis(last, -1, axis))

    @every_pair
    def test_the_input_is_never_modified_and_may_be_read_only(self, engine, dtype, grid, name):
        for channels, scheme in ((None, SCHEMES[0]), (2, SCHEMES[0]), (2, SCHEMES[3])):
            image = grid.image(dtype, channels)
            before = image.copy()
            image.flags.writeable = False
            mask = np.zeros(grid.shape, bool)
            mask[3] = True
            kept = mask.copy()
            axis = None if channels is None else -1
            model, time = grid.model(name), 2 * grid.step
            result = engine.diffuse(image, model, time, scheme=scheme, fixed=mask, channel_axis=axis)
            np.testing.assert_array_equal(image, before)
            np.testing.assert_array_equal(mask, kept)
            assert not np.shares_memory(result, image)
            result[:] = 0  # the result is the caller's

    @every_pair
    def test_fixed_pixels_keep_their_bits(self, engine, dtype, grid, name):
        image, model = grid.image(dtype, 2), grid.model(name)
        mask = np.random.default_rng(0).random(grid.shape) < 0.3
        mask[(0,) * grid.ndim] = mask[(-1,) * grid.ndim] = True
        for scheme in KINDS:
            result = engine.diffuse(image, model, 4 * grid.step, scheme=scheme, fixed=mask, channel_axis=-1)
            np.testing.assert_array_equal(result[mask], image[mask])
            assert (result[~mask] != image[~mask]).mean() > 0.9

    @every_pair
    def test_two_runs_are_bit_equal(self, engine, dtype, grid, name):
        image, model = grid.image(dtype), grid.model(name)
        for scheme in ONE_AND_TWO_IMAGES:
            first, second = (engine.diffuse(image, model, 4 * grid.step, scheme=scheme) for _ in range(2))
            np.testing.assert_array_equal(first, second)

    @every_pair
    def test_no_time_gives_the_image_back(self, engine, dtype, grid, name):
        image = grid.image(dtype)
        for scheme in SCHEMES:
            result = engine.diffuse(image, grid.model(name), 0, scheme=scheme)
            np.testing.assert_array_equal(result, image)
            assert not np.shares_memory(result, image)

    @every_pair
    def test_a_larger_time_from_a_snapshot_equals_the_direct_run(self, engine, dtype, grid, name):
        image, model, scheme = grid.image(dtype), grid.model(name), aniso.Explicit(grid.step)
        direct = engine.diffuse(image, model, 5 * grid.step, scheme=scheme)
        snapshot = engine.diffuse(image, model, 2 * grid.step, scheme=scheme)
        engine.assert_equal(engine.diffuse(snapshot, model, 3 * grid.step, scheme=scheme), direct)
        times = [grid.step, 3 * grid.step, 5 * grid.step]
        *_, (_, last) = engine.scale_space(image, model, times, scheme=scheme)
        engine.assert_equal(last, direct)

    @every_pair
    def test_semi_iterative_cycles_reach_what_fast_explicit_ones_reach(self, engine, dtype, grid, name):
        image, model = grid.image(dtype), grid.model(name)
        fed, fsi = (engine.diffuse(image, model, 3.0, scheme=kind(1)) for kind in (aniso.FED, aniso.FSI))
        assert abs(fed - fsi).max() <= 4 * engine.tolerance(dtype) * abs(image).max()

    @every_engine
    @every_dtype
    @every_model
    def test_every_engine_computes_what_the_reference_does(self, engine, dtype, grid, name):
        model, time = grid.model(name), 4 * grid.step
        for channels, scheme in [(3, SCHEMES[0]), *((None, scheme) for scheme in KINDS)]:
            image = grid.image(dtype, channels)
            options: dict[str, Any] = {
                "scheme": scheme,
                "spacing": grid.spacing,
                "channel_axis": None if channels is None else -1,
            }
            expected = aniso.diffuse(image.astype(np.float64), model, time, engine="reference", **options)
            engine.assert_equal(engine.diffuse(image, model, time, **options), expected)


def test_there_are_48_symmetries_of_the_cube():
    volume = VOLUMES.image("float64")
    turned = {symmetry.image(volume).tobytes() for symmetry in VOLUME_SYMMETRIES}
    assert len(turned) == len(VOLUME_SYMMETRIES) == 48


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

    class Hasty(reference.Evolution):
        """Right, but takes steps that are a fiftieth too long."""

        factor = 1.02

        def advance(self, cycle):
            steps = tuple((weight, self.factor * tau) for weight, tau in cycle.steps)
            super().advance(dataclasses.replace(cycle, steps=steps))

    @pytest.fixture
    def register(self, monkeypatch):
        def registered(evolution):
            name = f"broken: {evolution.__name__}"  # one for each: an engine that was loaded is remembered
            module = types.ModuleType(name)
            module.Evolution = evolution  # type: ignore[attr-defined]
            monkeypatch.setitem(sys.modules, name, module)
            row = engines.Engine(name=name, module=name, summary="broken on purpose")
            monkeypatch.setitem(engines.ENGINES, name, row)
            return Engine(name, float32=5e-7, float64=2e-13)

        return registered

    def laws_broken_by(self, engine, name="homogeneous", grid=IMAGES):
        """Names of the laws that fail with this engine and model, in double precision."""
        laws, args = TestEveryModel(), (engine, "float64", grid, name)
        ordinary = (aniso.DeltaStencil(), 1.0, 1, 100)
        verdicts = {
            "mean": laws.test_the_mean_of_every_channel_is_kept,
            "constant": laws.test_a_constant_image_stays,
            "mirror": laws.test_turning_the_image_turns_the_result,
            "lift": laws.test_adding_a_constant_and_negating_commute,
            "scale": laws.test_scaling_image_and_contrast_together_commutes,
            "channels": laws.test_three_equal_channels_and_one_channel_equal_grey,
            "input": laws.test_the_input_is_never_modified_and_may_be_read_only,
            "twice": laws.test_two_runs_are_bit_equal,
            "snapshot": laws.test_a_larger_time_from_a_snapshot_equals_the_direct_run,
            "fixed": laws.test_fixed_pixels_keep_their_bits,
            "norm": lambda engine, _, grid, name: assert_no_growth(engine, grid, name, *ordinary),
            "reference": laws.test_every_engine_computes_what_the_reference_does,
        }
        broken = set()
        for law, verdict in verdicts.items():
            try:
                verdict(*args)
            except AssertionError:
                broken.add(law)
        return broken

    @pytest.mark.parametrize(
        ("evolution", "laws"),
        [
            (Leaky, {"mean", "constant", "lift", "fixed"}),
            (Windy, {"mirror", "fixed"}),
            (Absolute, {"mean", "constant", "lift", "scale", "fixed"}),
            (Restless, {"mean", "constant", "twice", "mirror", "channels", "fixed"}),
            (Growing, {"norm", "fixed"}),
            (Forgetful, {"snapshot", "fixed"}),
            (Hasty, {"norm"}),
        ],
        ids=lambda value: getattr(value, "__name__", None),
    )
    def test_a_wrong_engine_breaks_its_law(self, register, evolution, laws):
        assert self.laws_broken_by(register(evolution)) >= laws | {"reference"}

    @pytest.mark.parametrize(
        ("factor", "law"),
        [
            *((1.05, (assert_no_growth, IMAGES, "homogeneous", *case)) for case in CASES["images"]),
            *((1.2, (assert_no_growth, VOLUMES, "homogeneous", *case)) for case in CASES["volumes"]),
            (1.4, (assert_no_growth_in_cycles, IMAGES, "homogeneous")),
            (1.4, (assert_no_growth_in_cycles, VOLUMES, "homogeneous")),
            (1.4, (assert_no_growth_with_a_free_stencil, "homogeneous")),
        ],
    )
    def test_steps_that_are_too_long_break_every_norm_law(self, register, factor, law):
        """However few its steps are; on these small grids the bounds are not quite attained."""
        broken = register(type(f"Hasty {factor}", (self.Hasty,), {"factor": factor}))
        check, *rest = law
        with pytest.raises(AssertionError):
            check(broken, *rest)

    @pytest.mark.quick
    @every_engine
    @every_model_of_images
    def test_a_right_engine_breaks_none(self, engine, name):
        # One precision and one spacing: other kernels would have to be compiled for other ones.
        unit = dataclasses.replace(IMAGES, spacing=(1.0, 1.0))
        assert not self.laws_broken_by(engine, name, unit)
