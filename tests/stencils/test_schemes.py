"""Schemes: plans that reach their time, are stable, and are as accurate as they should be."""

import itertools
import math
import pickle

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

import aniso
from tests.registry import ENGINES, SAMPLES, SCHEMES, random_tensors

by_name = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)

times = st.floats(1e-3, 1e3)
limits = st.floats(1e-2, 1e2)
cycle_counts = st.integers(1, 12)


@st.composite
def plans(draw):
    """A scheme with a time and a limit that it accepts; at most a thousand explicit steps."""
    time, limit = draw(times), draw(limits)
    kind = draw(st.sampled_from([aniso.Explicit, aniso.FED, aniso.FSI]))
    if kind is not aniso.Explicit:
        return kind(draw(cycle_counts)), time, limit
    step = draw(st.none() | st.floats(0.01 * limit, limit))
    return kind(step), min(time, 1000 * (step or 0.9 * limit)), limit


def covered_time(cycle):
    """The derivative of the cycle's polynomial at 0: how far it carries where A is small."""
    now = before = 0.0
    for weight, tau in cycle.steps:
        now, before = weight * (now + tau) + (1 - weight) * before, now
    return now


def amplification(cycles, eigenvalue):
    """What the cycles make of a mode of A with this eigenvalue (or eigenvalues)."""
    total = np.ones_like(eigenvalue, dtype=float)
    for cycle in cycles:
        now = before = np.ones_like(eigenvalue, dtype=float)
        for weight, tau in cycle.steps:
            now, before = weight * (now + tau * eigenvalue * now) + (1 - weight) * before, now
        total = total * now
    return total


class TestPlans:
    @given(plans())
    def test_the_time_is_reached_exactly(self, plan):
        scheme, time, limit = plan
        cycles = list(scheme.plan(time, limit))
        assert math.fsum(cycle.time for cycle in cycles) == pytest.approx(time, rel=1e-13)
        for cycle in set(cycles):
            assert covered_time(cycle) == pytest.approx(cycle.time, rel=1e-10)

    @given(plans())
    def test_no_mode_is_amplified(self, plan):
        scheme, time, limit = plan
        modes = -np.linspace(0, 2 / limit, 301)
        for cycle in set(scheme.plan(time, limit)):
            assert abs(amplification([cycle], modes)).max() <= 1 + 1e-6

    @given(times, limits, cycle_counts)
    def test_fed_and_fsi_are_the_same_polynomial(self, time, limit, count):
        fed, fsi = aniso.FED(count).plan(time, limit), aniso.FSI(count).plan(time, limit)
        modes = -np.linspace(0, 2 / limit, 101)
        np.testing.assert_allclose(amplification(fed, modes), amplification(fsi, modes), rtol=0, atol=1e-10)

    @given(times, limits, cycle_counts)
    def test_fed_takes_the_published_steps(self, time, limit, count):
        cycles = list(aniso.FED(count).plan(time, limit))
        assert len(cycles) == count
        n = len(cycles[0].steps)
        # The shortest cycle that covers the time: n steps reach n(n+1)/3 times the limit.
        assert limit * n * (n + 1) / 3 >= time / count * (1 - 1e-7)
        assert n == 1 or limit * (n - 1) * n / 3 < time / count
        scale = 3 * time / (count * limit * n * (n + 1))
        published = [
            scale * limit / (2 * math.cos(math.pi * (2 * k + 1) / (4 * n + 2)) ** 2) for k in range(n)
        ]
        assert all(weight == 1 for cycle in cycles for weight, _ in cycle.steps)
        for cycle in cycles:
            np.testing.assert_allclose(sorted(tau for _, tau in cycle.steps), published, rtol=1e-9)

    @given(times, limits, cycle_counts)
    def test_fsi_takes_the_published_extrapolations(self, time, limit, count):
        cycles = list(aniso.FSI(count).plan(time, limit))
        fed = next(aniso.FED(count).plan(time, limit))
        assert len(cycles) == count
        for cycle in cycles:
            n = len(cycle.steps)
            assert n == len(fed.steps)
            step = limit * 3 * time / (count * limit * n * (n + 1))
            for k, (weight, tau) in enumerate(cycle.steps):
                assert weight == pytest.approx((4 * k + 2) / (2 * k + 3), rel=1e-14)
                assert tau == pytest.approx(step, rel=1e-12)
            assert step <= limit * (1 + 1e-7)

    def test_a_cycle_that_just_fits_gets_no_step_more(self):
        for n in range(1, 200):
            for limit in (0.5, 1 / 3, 0.1):
                (cycle,) = aniso.FED(1).plan(limit * n * (n + 1) / 3, limit)
                assert len(cycle.steps) == n

    @pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
    def test_no_time_needs_no_step(self, scheme):
        assert list(scheme.plan(0.0, 0.5)) == []

    @pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
    def test_a_plan_also_exists_where_nothing_limits_the_step(self, scheme):
        cycles = list(scheme.plan(7.0, math.inf))
        assert sum(cycle.time for cycle in cycles) == pytest.approx(7.0)
        assert sum(map(covered_time, cycles)) == pytest.approx(7.0)

    def test_steps_in_leja_order_are_as_far_apart_as_can_be(self):
        (cycle,) = aniso.FED(1).plan(0.5 * 30 * 31 / 3, 0.5)
        points = [1 / tau for _, tau in cycle.steps]
        assert points[0] == max(points)
        for k in range(1, len(points)):
            products = [math.prod(abs(p - q) for q in points[:k]) for p in points[k:]]
            assert products[0] >= max(products) * (1 - 1e-9)


class TestExplicitSteps:
    @given(times, limits)
    def test_the_default_is_at_most_nine_tenths_of_the_limit_and_no_shorter_than_needed(self, time, limit):
        time = min(time, 1000 * limit)
        cycles = list(aniso.Explicit().plan(time, limit))
        steps = [tau for cycle in cycles for _, tau in cycle.steps]
        assert max(steps) <= 0.9 * limit * (1 + 1e-8)
        assert max(steps) == min(steps)
        assert len(steps) == 1 or time / (len(steps) - 1) > 0.9 * limit

    def test_the_time_is_cut_into_equal_steps_of_at_most_the_given_length(self):
        cycles = list(aniso.Explicit(step=0.4).plan(1.0, 0.5))
        assert [cycle.steps for cycle in cycles] == [((1.0, 1 / 3),)] * 3

    def test_a_time_that_is_a_multiple_of_the_step_gets_no_step_more(self):
        for count in (1, 3, 7, 10, 99, 1000):
            assert len(list(aniso.Explicit(0.1).plan(0.1 * count, 0.5))) == count

    def test_the_limit_itself_is_accepted(self):
        assert len(list(aniso.Explicit(0.5).plan(5.0, 0.5))) == 10

    def test_a_step_beyond_the_limit_is_refused_with_the_limit(self):
        with pytest.raises(ValueError, match=r"step of 0.51 exceeds 0.5, the largest stable") as error:
            aniso.Explicit(0.51).plan(4.0, 0.5)
        assert "Use step=0.5 or less, or None" in str(error.value)

    @pytest.mark.parametrize("time", [0.0, 0.01, 4.0])
    def test_diffuse_refuses_a_step_beyond_the_limit(self, time):
        """However short the time."""
        image = SAMPLES["noise"]((6, 7))
        limit = aniso.stability.stable_step(aniso.EdgeEnhancing(), spacing=(1.0, 0.5))
        aniso.diffuse(image, aniso.EdgeEnhancing(), time, scheme=aniso.Explicit(limit), spacing=(1.0, 0.5))
        with pytest.raises(ValueError, match=f"exceeds {limit:.6g}, the largest stable step"):
            aniso.diffuse(
                image,
                aniso.EdgeEnhancing(),
                time,
                scheme=aniso.Explicit(1.001 * limit),
                spacing=(1.0, 0.5),
            )
        with pytest.raises(ValueError, match=f"Use step={limit:.6g} or less"):
            next(
                aniso.scale_space(
                    image,
                    aniso.EdgeEnhancing(),
                    [time, 10.0],
                    scheme=aniso.Explicit(1.001 * limit),
                    spacing=(1.0, 0.5),
                )
            )

    @pytest.mark.parametrize("step", [0, -0.1, math.inf, math.nan])
    def test_steps_that_lead_nowhere_are_refused(self, step):
        with pytest.raises(ValueError, match=f"step must be .*got {step}") as error:
            aniso.Explicit(step)
        assert "Use step=None" in str(error.value)

    @pytest.mark.parametrize("step", ["0.1", True, 1j, [0.1]], ids=repr)
    def test_steps_that_are_no_numbers_are_refused(self, step):
        with pytest.raises(TypeError, match="step must be a number, got"):
            aniso.Explicit(step)


@pytest.mark.parametrize("kind", [aniso.FED, aniso.FSI])
class TestCycles:
    @pytest.mark.parametrize("cycles", [0, -3])
    def test_less_than_one_is_refused(self, kind, cycles):
        with pytest.raises(ValueError, match=f"cycles must be at least 1, got {cycles}"):
            kind(cycles)

    @pytest.mark.parametrize("cycles", [2.0, "5", None, True, math.nan], ids=repr)
    def test_what_is_no_whole_number_is_refused(self, kind, cycles):
        with pytest.raises(TypeError, match=r"cycles must be a whole number, got .*cycles=5"):
            kind(cycles)

    def test_numpy_integers_serve(self, kind):
        assert kind(np.int32(3)) == kind(3)
        assert repr(kind(np.int32(3))) == f"{kind.__name__}(cycles=3)"


@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_schemes_are_data(scheme):
    assert eval(repr(scheme), {type(scheme).__name__: type(scheme)}) == scheme
    copy = pickle.loads(pickle.dumps(scheme))
    assert copy == scheme
    assert hash(copy) == hash(scheme)
    with pytest.raises((AttributeError, TypeError)):
        scheme.cycles = 3
    with pytest.raises((AttributeError, TypeError)):
        scheme.step = 0.1


# On problems


def frozen_problem(shape=(9, 11), spacing=(1.0, 1.4)):
    model = random_tensors(shape)
    (c, b), (_, a) = model.tensor
    rate = aniso.stencil.matrix(a, b, c, spacing=spacing).toarray()
    return model, SAMPLES["noise"](shape), rate, spacing


def error_of(actual, expected):
    """Relative to what is left of the image apart from its mean."""
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected - expected.mean())


@by_name
class TestFrozenProblem:
    @pytest.mark.parametrize("cycles", [1, 3])
    @pytest.mark.parametrize("fixed", [False, True])
    def test_fed_and_fsi_agree(self, engine, cycles, fixed):
        model, image, _, spacing = frozen_problem()
        mask = (np.arange(image.size).reshape(image.shape) % 7 == 0) if fixed else None
        fed, fsi = (
            engine.diffuse(image, model, 60.0, scheme=scheme, spacing=spacing, fixed=mask)
            for scheme in (aniso.FED(cycles), aniso.FSI(cycles))
        )
        np.testing.assert_allclose(fed, fsi, rtol=0, atol=1e-10)

    def test_both_agree_on_colours(self, engine):
        image = np.random.default_rng(0).normal(100, 20, (8, 9, 3))
        model = aniso.EdgeEnhancing(10.0)
        fed, fsi = (
            engine.diffuse(image, model, 20.0, scheme=scheme, channel_axis=-1)
            for scheme in (aniso.FED(2), aniso.FSI(2))
        )
        np.testing.assert_allclose(fed, fsi, rtol=0, atol=1e-9)

    @pytest.mark.parametrize(
        ("scheme", "bound"),
        [
            (aniso.Explicit(step=0.002), 2e-3),
            (aniso.FED(cycles=400), 1e-2),
            (aniso.FSI(cycles=400), 1e-2),
        ],
        ids=repr,
    )
    def test_many_small_steps_approach_the_exponential(self, engine, scheme, bound):
        model, image, rate, spacing = frozen_problem()
        exact = (scipy.linalg.expm(3.0 * rate) @ image.ravel()).reshape(image.shape)
        assert error_of(image, exact) > 0.5
        actual = engine.diffuse(image, model, 3.0, scheme=scheme, spacing=spacing)
        assert error_of(actual, exact) < bound

    @pytest.mark.parametrize("kind", [aniso.FED, aniso.FSI])
    def test_the_error_falls_linearly_with_the_number_of_cycles(self, engine, kind):
        """A step edge, homogeneous diffusion: the cosine series is the exact answer."""
        signal = np.where(np.arange(96) < 40, 30.0, 200.0)
        time = 800.0
        eigenvalues = -2 + 2 * np.cos(np.pi * np.arange(96) / 96)
        spectrum = scipy.fft.dct(signal, norm="ortho") * np.exp(time * eigenvalues)
        exact = scipy.fft.idct(spectrum, norm="ortho")
        counts = [4, 8, 16, 32]
        errors = [
            error_of(engine.diffuse(signal, aniso.Homogeneous(), time, scheme=kind(n)), exact) for n in counts
        ]
        slope = np.polyfit(np.log(counts), np.log(errors), 1)[0]
        assert slope == pytest.approx(-1, abs=0.1)

    def test_the_explicit_scheme_has_order_one(self, engine):
        model, image, rate, spacing = frozen_problem()
        exact = (scipy.linalg.expm(2.0 * rate) @ image.ravel()).reshape(image.shape)
        steps = [0.1, 0.05, 0.025, 0.0125]
        errors = [
            error_of(
                engine.diffuse(image, model, 2.0, scheme=aniso.Explicit(step), spacing=spacing),
                exact,
            )
            for step in steps
        ]
        slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
        assert slope == pytest.approx(1, abs=0.1)

    def test_one_cycle_of_15_and_40_of_2_on_a_step_edge(self, engine):
        """The known cost of accuracy: 4e-2 with 15 steps, 1e-3 with 80, where 80 explicit ones suffice."""
        signal = np.where(np.arange(64) < 32, 0.0, 1.0)
        eigenvalues = -2 + 2 * np.cos(np.pi * np.arange(64) / 64)
        spectrum = scipy.fft.dct(signal, norm="ortho") * np.exp(40.0 * eigenvalues)
        exact = scipy.fft.idct(spectrum, norm="ortho")
        for cycles, steps, expected in ((1, 15, 4e-2), (40, 80, 1e-3)):
            scheme = aniso.FED(cycles)
            assert sum(len(cycle.steps) for cycle in scheme.plan(40.0, 0.5)) == steps
            result = engine.diffuse(signal, aniso.Homogeneous(), 40.0, scheme=scheme)
            error = np.linalg.norm(result - exact) / np.linalg.norm(exact)
            assert error == pytest.approx(expected, rel=0.4)


@by_name
@pytest.mark.parametrize("kind", [aniso.FED, aniso.FSI])
def test_the_error_falls_with_the_number_of_cycles_where_the_tensor_follows_the_image(engine, kind):
    image = SAMPLES["edges"]((12, 14)) + SAMPLES["noise"]((12, 14)) / 10
    model = aniso.EdgeEnhancing(10.0, 1.0, "charbonnier")
    fine = aniso.diffuse(image, model, 8.0, scheme=aniso.Explicit(0.004))  # by the fastest engine
    counts = [2, 4, 8, 16]
    errors = [error_of(engine.diffuse(image, model, 8.0, scheme=kind(n)), fine) for n in counts]
    slope = np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert slope == pytest.approx(-1, abs=0.25)
    assert errors[-1] < 0.02


class TestRounding:
    """A cycle of 100 steps in single precision, written out here and by every engine."""

    @staticmethod
    def single_precision(steps, signal, rate):
        single = np.float32
        now = before = signal.astype(single)
        rate = rate.astype(single)
        for weight, tau in steps:
            weight, tau = single(weight), single(tau)
            now, before = weight * (now + tau * (rate @ now)) + (single(1) - weight) * before, now
        assert now.dtype == single
        return now

    @staticmethod
    def problem(length):
        rate = scipy.linalg.toeplitz([-2.0, 1.0, *[0.0] * 62])
        rate[0, 0] = rate[-1, -1] = -1.0
        return np.random.default_rng(0).uniform(0, 255, 64), rate, 0.5 * length * (length + 1) / 3

    @staticmethod
    def exact(steps, signal, rate):
        values, vectors = np.linalg.eigh(rate)
        cycle = [type("Steps", (), {"steps": steps})]
        return vectors @ (amplification(cycle, values) * (vectors.T @ signal))

    @pytest.mark.parametrize("kind", [aniso.FED, aniso.FSI])
    @pytest.mark.parametrize("length", [20, 50, 100, 300])
    def test_plans_stay_clean(self, kind, length):
        signal, rate, time = self.problem(length)
        (cycle,) = kind(1).plan(time, 0.5)
        assert len(cycle.steps) == length
        error = self.single_precision(cycle.steps, signal, rate) - self.exact(cycle.steps, signal, rate)
        assert abs(error).max() < 1e-5 * length * 255 / 10

    def test_ascending_order_would_not(self):
        signal, rate, time = self.problem(50)
        (cycle,) = aniso.FED(1).plan(time, 0.5)
        ascending = sorted(cycle.steps, key=lambda step: step[1])
        error = self.single_precision(ascending, signal, rate) - self.exact(ascending, signal, rate)
        assert abs(error).max() > 1e10

    @by_name
    @pytest.mark.parametrize("kind", [aniso.FED, aniso.FSI])
    @pytest.mark.parametrize(
        "model", [aniso.EdgeEnhancing(10.0), aniso.Homogeneous()], ids=["edge", "homogeneous"]
    )
    def test_engines_stay_clean(self, engine, kind, model):
        image = SAMPLES["edges"]((16, 18)).astype(np.float32)
        limit = aniso.stability.stable_step(model)
        time = limit * 100 * 101 / 3
        assert len(next(kind(1).plan(time, limit)).steps) == 100
        single = engine.diffuse(image, model, time, scheme=kind(1))
        double = aniso.diffuse(image.astype(np.float64), model, time, scheme=kind(1), engine="reference")
        assert single.dtype == np.float32
        # A tensor in single precision is known to 1e-7, which a time of 1683 makes visible at an edge.
        np.testing.assert_allclose(single, double, rtol=0, atol=1e-4 * 255)


class TestLargestStep:
    """The limit is needed where it bites, and no larger than the proof allows."""

    @staticmethod
    def steps_of(step, count):
        """A scheme that knows no limit."""
        from aniso.schemes import Cycle

        class Reckless:
            def plan(self, time, limit):
                return itertools.repeat(Cycle(step, ((1.0, step),)), count)

        return Reckless()

    @by_name
    def test_edge_enhancing_diffusion_blows_up_at_the_step_of_rank_one_tensors(self, engine):
        """In flat regions it diffuses in all directions: λ2 = 1, not 0."""
        stencil = aniso.DeltaStencil.named("standard")
        too_long = 2 / aniso.stability.spectral_bound(stencil, 1.0, 0.0)
        allowed = aniso.stability.stable_step(aniso.EdgeEnhancing(), stencil)
        assert allowed == pytest.approx(too_long / 2)
        image = SAMPLES["noise"]((16, 13))
        model = aniso.EdgeEnhancing(contrast=1e30)  # to which all of it is flat, and stays so
        start = np.linalg.norm(image)
        for step, grows in ((allowed, False), (too_long, True)):
            scheme = self.steps_of(step, 60)
            result = engine.diffuse(image, model, 60 * step, stencil=stencil, scheme=scheme)
            assert (np.linalg.norm(result) > 1e15 * start) == grows

    @by_name
    @pytest.mark.parametrize("stencil", [aniso.DeltaStencil(), aniso.DeltaStencil.named("standard")], ids=str)
    def test_a_step_two_percent_beyond_the_limit_lets_the_image_grow(self, engine, stencil):
        model = aniso.Homogeneous()
        spacing = (1.0, 0.6)
        limit = aniso.stability.stable_step(model, stencil, spacing)
        image = SAMPLES["noise"]((30, 31))
        results = {
            factor: engine.diffuse(
                image,
                model,
                600 * limit,
                stencil=stencil,
                spacing=spacing,
                scheme=self.steps_of(factor * limit, 600),
            )
            for factor in (1.0, 1.02)
        }
        assert np.linalg.norm(results[1.0]) <= np.linalg.norm(image)
        assert np.linalg.norm(results[1.02]) > 10 * np.linalg.norm(image)
