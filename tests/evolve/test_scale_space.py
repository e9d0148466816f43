"""scale_space() and progress."""

import itertools

import numpy as np
import pytest

import aniso
from aniso import engines
from tests.evolve.cases import (
    EDGE,
    SHAPE,
    every_engine,
    every_model,
    every_scheme,
    image_of,
)
from tests.registry import DTYPES, MODELS, SAMPLES, SCHEMES, colours, in_turn


@every_engine
class TestScaleSpace:
    TIMES = (0.0, 0.5, 2.0, 2.25)

    @every_model
    def test_each_image_is_computed_from_the_one_before(self, engine, name):
        """Every scheme; the precisions alternate with it, and from model to model."""
        for scheme, dtype in zip(SCHEMES, 2 * in_turn(DTYPES, name), strict=True):
            image, model = image_of().astype(dtype), MODELS[name](SHAPE)
            current = image
            snapshots = list(engine.scale_space(image, model, self.TIMES, scheme=scheme))
            assert [time for time, _ in snapshots] == list(self.TIMES)
            steps = itertools.pairwise((0.0, *self.TIMES))
            for (before, after), (_, snapshot) in zip(steps, snapshots, strict=True):
                current = engine.diffuse(current, model, after - before, scheme=scheme)
                assert snapshot.dtype == dtype
                engine.assert_equal(snapshot, current)

    @every_model
    def test_a_single_time_is_diffuse(self, engine, name):
        for scheme, dtype in zip(SCHEMES, 2 * in_turn(DTYPES, name), strict=True):
            image, model = image_of().astype(dtype), MODELS[name](SHAPE)
            ((time, snapshot),) = engine.scale_space(image, model, [1.5], scheme=scheme)
            assert time == 1.5
            np.testing.assert_array_equal(snapshot, engine.diffuse(image, model, 1.5, scheme=scheme))

    def test_explicit_snapshots_are_diffuse_at_those_times(self, engine):
        image, scheme = image_of(), aniso.Explicit(0.25)
        for time, snapshot in engine.scale_space(image, EDGE, self.TIMES, scheme=scheme):
            engine.assert_equal(snapshot, engine.diffuse(image, EDGE, time, scheme=scheme))

    def test_nothing_is_computed_before_it_is_asked_for(self, engine):
        calls = []
        snapshots = engine.scale_space(
            image_of(),
            EDGE,
            [1.0, 2.0, 50.0],
            scheme=aniso.Explicit(0.25),
            progress=lambda done, total: calls.append((done, total)),
        )
        assert calls == []
        next(snapshots)
        assert calls == [(0.25 * k, 50.0) for k in (1, 2, 3, 4)]
        next(snapshots)
        assert len(calls) == 8

    def test_nothing_is_computed_twice(self, engine, monkeypatch):
        evolution, cycles = engines.load(engine.name), []

        class Counting(evolution):  # type: ignore[misc, valid-type]
            def advance(self, cycle):
                cycles.append(cycle)
                super().advance(cycle)

        monkeypatch.setattr(engines, "load", lambda *args, **kwargs: Counting)
        list(engine.scale_space(image_of(), EDGE, [1.0, 1.5, 4.0], scheme=aniso.Explicit(0.25)))
        assert len(cycles) == 4 + 2 + 10

    def test_each_image_is_a_new_array(self, engine):
        for axis in (None, 0, -1):
            image = colours(SAMPLES["edges"], SHAPE) if axis is not None else image_of()
            image = image if axis != 0 else np.moveaxis(image, -1, 0)
            options = {"channel_axis": axis, "scheme": aniso.Explicit(0.25)}
            expected = [
                snapshot.copy() for _, snapshot in engine.scale_space(image, EDGE, self.TIMES, **options)
            ]
            seen = [image]
            snapshots = engine.scale_space(image, EDGE, self.TIMES, **options)
            for (_, snapshot), unharmed in zip(snapshots, expected, strict=True):
                np.testing.assert_array_equal(snapshot, unharmed)
                assert not any(np.shares_memory(snapshot, other) for other in seen)
                snapshot[:] = -1.0  # which must not reach the images that follow
                seen.append(snapshot)

    def test_the_image_is_read_when_it_is_called(self, engine):
        image = image_of()
        expected = engine.diffuse(image, EDGE, 1.0)
        snapshots = engine.scale_space(image, EDGE, [1.0])
        image[:] = 0.0
        np.testing.assert_array_equal(next(snapshots)[1], expected)

    def test_it_may_be_left_early(self, engine):
        snapshots = engine.scale_space(image_of(), EDGE, [1.0, 1e9], progress=True)
        next(snapshots)
        snapshots.close()

    def test_times_may_be_an_array(self, engine):
        snapshots = engine.scale_space(image_of(), EDGE, np.linspace(0, 1, 3))
        assert [time for time, _ in snapshots] == [0.0, 0.5, 1.0]


@every_engine
class TestProgress:
    @every_scheme
    def test_a_function_hears_of_the_time_done_up_to_the_end(self, engine, scheme):
        for time in (0.7, 1.0, 3.3, 10.0):
            calls: list[tuple[float, float]] = []
            engine.diffuse(image_of(), EDGE, time, scheme=scheme, progress=lambda *call: calls.append(call))  # noqa: B023
            done = [call[0] for call in calls]
            assert {total for _, total in calls} == {time}
            assert done == sorted(done)
            assert done[0] > 0
            assert done[-1] == time
            limit = aniso.stability.stable_step(EDGE)
            assert len(calls) == len(list(scheme.plan(time, limit)))

    def test_a_scale_space_reports_the_whole_way(self, engine):
        calls = []
        snapshots = engine.scale_space(
            image_of(), EDGE, [1.0, 3.0, 7.7], progress=lambda *call: calls.append(call)
        )
        ends = [calls[-1][0] for _ in snapshots]
        assert ends == pytest.approx([1.0, 3.0, 7.7], rel=1e-14)
        assert ends[-1] == 7.7
        assert {total for _, total in calls} == {7.7}
        assert [done for done, _ in calls] == sorted(done for done, _ in calls)

    def test_true_writes_a_bar(self, engine, capsys):
        engine.diffuse(image_of(), EDGE, 2.0, progress=True)
        written = "".join(capsys.readouterr())
        assert "diffusing" in written
        assert "100%" in written

    @pytest.mark.parametrize("progress", [None, False])
    def test_nothing_is_written_otherwise(self, engine, capsys, progress):
        engine.diffuse(image_of(), EDGE, 2.0, progress=progress)
        assert capsys.readouterr() == ("", "")

    @pytest.mark.parametrize("progress", [None, True, lambda done, total: None])
    def test_watching_changes_nothing(self, engine, progress):
        expected = engine.diffuse(image_of(), EDGE, 2.0)
        result = engine.diffuse(image_of(), EDGE, 2.0, progress=progress)
        np.testing.assert_array_equal(result, expected)

    def test_an_exception_in_the_function_ends_the_diffusion(self, engine):
        def stop(done, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            engine.diffuse(image_of(), EDGE, 1e9, scheme=aniso.FED(10**6), progress=stop)
