"""What is particular to the cpu engine: threads, processes, compilation and its cache."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aniso
from aniso import engines
from aniso.cancelling import watched
from aniso.engines.cpu import cache, generate
from aniso.engines.cpu.evolution import Evolution
from aniso.engines.cpu.threads import ThreadTeam, default_threads, uninterrupted
from tests import bounds, interrupts
from tests.engines.kernel_files import RUN
from tests.processes import PATIENCE, started, wait_until
from tests.registry import SAMPLES, colours

SOURCE = Path(aniso.__file__).parent
EDGES = aniso.EdgeEnhancing(contrast=12.0)
LINES = aniso.CoherenceEnhancing(contrast=8.0, rho=2.0)

#: Wide and high enough for several tiles, and for several threads.
LARGE = (140, 1100)
#: The same with the fixture `small_tiles`.
SMALL = (40, 50)

#: Every way through the engine: one step, with averages, several channels, long and short cycles.
WAYS: dict[str, tuple[Any, Any, int | None]] = {
    "fused": (EDGES, aniso.Explicit(), None),
    "averaged": (LINES, aniso.Explicit(), None),
    "averaged cycle": (LINES, aniso.FED(cycles=1), None),
    "colour": (EDGES, aniso.Explicit(), -1),
    "FED": (EDGES, aniso.FED(cycles=1), None),
    "FSI": (EDGES, aniso.FSI(cycles=1), None),
    "long FSI": (EDGES, aniso.FSI(cycles=1), -1),
}


def filtered(way, threads=None, shape=LARGE, dtype="float32", engine="cpu"):
    model, scheme, channel_axis = WAYS[way]
    image = colours(SAMPLES["edges"], shape) if channel_axis else SAMPLES["edges"](shape)
    return aniso.diffuse(
        image.astype(dtype),
        model,
        80.0 if way == "long FSI" else 2.0,
        scheme=scheme,
        channel_axis=channel_axis,
        threads=threads,
        engine=engine,
    )


class TestThreads:
    @pytest.mark.parametrize("way", WAYS)
    def test_any_number_of_them_gives_the_same_bits(self, way, small_tiles):
        alone = filtered(way, threads=1, shape=SMALL)
        for threads in (2, 3):
            np.testing.assert_array_equal(filtered(way, threads=threads, shape=SMALL), alone)

    @pytest.mark.parametrize("way", WAYS)
    def test_tiles_do_not_show(self, way, small_tiles):
        expected = filtered(way, dtype="float64", engine="reference", shape=SMALL)
        np.testing.assert_allclose(filtered(way, dtype="float64", shape=SMALL), expected, rtol=0, atol=1e-9)

    @pytest.mark.parametrize("way", ["fused", "FED"])
    def test_tiles_of_full_size_do_not_show_either(self, way):
        expected = filtered(way, dtype="float64", engine="reference")
        np.testing.assert_allclose(filtered(way, dtype="float64"), expected, rtol=0, atol=1e-9)

    def test_eight_callers_at_once_do_not_disturb_each_other(self):
        ways = [*WAYS, "fused", "FED"]
        expected = [filtered(way) for way in ways]
        with ThreadPoolExecutor(8) as callers:
            for actual, wanted in zip(callers.map(filtered, ways), expected, strict=True):
                np.testing.assert_array_equal(actual, wanted)

    @pytest.mark.parametrize("way", WAYS)
    def test_none_is_left_behind(self, way, small_tiles):
        filtered(way, threads=3, shape=SMALL)
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("aniso")]

    def test_none_is_left_behind_by_a_scale_space_that_is_given_up(self):
        snapshots = aniso.scale_space(SAMPLES["edges"](LARGE), EDGES, [1.0, 2.0], threads=3)
        next(snapshots)
        snapshots.close()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("aniso")]

    def test_the_environment_sets_their_number(self, monkeypatch):
        monkeypatch.setenv("ANISO_NUM_THREADS", "5")
        assert default_threads() == 5
        monkeypatch.delenv("ANISO_NUM_THREADS")
        assert 1 <= default_threads() <= (os.cpu_count() or 1)

    @pytest.mark.parametrize("wanted", ["0", "-1", "two", "1.5", ""])
    def test_a_number_that_is_none_is_refused(self, monkeypatch, wanted):
        monkeypatch.setenv("ANISO_NUM_THREADS", wanted)
        with pytest.raises(ValueError, match=f"ANISO_NUM_THREADS.*got {wanted!r}. Unset it"):
            aniso.diffuse(SAMPLES["edges"](LARGE), EDGES, 1.0)


class TestThreadTeam:
    def test_every_task_is_done_once(self):
        team = ThreadTeam(3)
        done: list[int] = []
        team.run(done.append, 1000)
        team.close()
        assert sorted(done) == list(range(1000))

    @pytest.mark.parametrize("threads", [1, 3])
    def test_a_watched_thread_can_be_stopped_between_tasks(self, threads):
        done, lock = [], threading.Lock()

        def task(number):
            with lock:
                done.append(number)
            time.sleep(0.001)

        def check():
            if len(done) >= 5:
                raise TimeoutError

        with contextlib.closing(ThreadTeam(threads)) as team:
            with watched(check), pytest.raises(TimeoutError):
                team.run(task, 1000)
            assert 5 <= len(done) < 100
            other = threading.Thread(target=team.run, args=(task, 50))
            with watched(check):  # does not concern other threads
                other.start()
                other.join()
            before = len(done)
            team.run(task, 50)
        assert len(done) == before + 50
        assert before >= 55

    def test_an_error_in_any_thread_reaches_the_caller(self):
        team = ThreadTeam(3)

        def task(number):
            if number == 57:
                raise RuntimeError("57")

        for _ in range(20):
            with pytest.raises(RuntimeError, match="57"):
                team.run(task, 100)
        team.close()


def run(script, *arguments, source=SOURCE, **environment):
    """A script in a process of its own, with the package from this folder."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(source.parent), **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


SMALL_RUN = """
    import numpy as np, aniso, sys
    image = np.add.outer(np.arange(20.0) ** 2, np.arange(30.0)).astype("float32")
    model = aniso.EdgeEnhancing(contrast=9)
    print(repr(float(aniso.diffuse(image, model, 2.0, engine=sys.argv[1]).std())))
"""


class TestProcesses:
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
    def test_a_forked_child_can_go_on(self):
        script = """
            import os, warnings, numpy as np, aniso
            warnings.simplefilter("ignore", DeprecationWarning)
            image = np.add.outer(np.arange(300.0), np.arange(400.0) ** 1.5).astype("float32")
            model = aniso.EdgeEnhancing(contrast=9)
            first = aniso.diffuse(image, model, 2.0, threads=2)
            child = os.fork()
            if child == 0:
                same = np.array_equal(aniso.diffuse(image, model, 2.0, threads=2), first)
                os._exit(7 if same else 8)
            print("child:", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
        assert run(script).stdout == "child: 7\n"

    def test_ctrl_c_ends_a_long_run_and_its_threads(self):
        script = """
            import signal, threading, numpy as np, aniso
            signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
            image = np.add.outer(np.arange(1000.0), np.arange(1000.0) ** 1.5).astype("float32")
            model = aniso.EdgeEnhancing(contrast=9)
            say = lambda done, total: print("going", flush=True) if done < 1 else None
            try:
                aniso.diffuse(image, model, 1e6, threads=2, progress=say)
            except KeyboardInterrupt:
                print("interrupted,", threading.active_count(), "thread", flush=True)
        """
        words = [sys.executable, "-c", textwrap.dedent(script)]
        with started(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "going\n"
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=PATIENCE)
        assert rest.endswith("interrupted, 1 thread\n")


class TestCache:
    @pytest.mark.slow
    def test_a_changed_formula_is_never_met_by_a_stale_kernel(self, tmp_path):
        folder = {"ANISO_CACHE_DIR": str(tmp_path / "cache")}
        before = run(SMALL_RUN, "cpu", **folder).stdout
        changed = tmp_path / "changed" / "aniso"
        shutil.copytree(SOURCE, changed, ignore=shutil.ignore_patterns("__pycache__"))
        formula = changed / "formulas" / "cell.py"
        text = formula.read_text("utf-8")
        assert "return a * x + b * y" in text
        formula.write_text(text.replace("return a * x + b * y", "return 0.5 * a * x + b * y"), "utf-8")
        after, reference = (
            float(run(SMALL_RUN, engine, source=changed, **folder).stdout) for engine in ("cpu", "reference")
        )
        assert after == pytest.approx(reference, rel=1e-5)
        assert after != pytest.approx(float(before), rel=1e-5)

    def test_where_nothing_can_be_stored_it_works_and_warns_once(self, tmp_path):
        (tmp_path / "file").write_text("in the way")
        answer = run(RUN + RUN, ANISO_CACHE_DIR=str(tmp_path / "file" / "cache"))
        assert answer.returncode == 0
        assert len(answer.stdout.splitlines()) == 2
        assert answer.stderr.count("cannot keep compiled kernels") == 1
        assert "ANISO_CACHE_DIR" in answer.stderr

    def test_an_unwritable_home_is_no_hindrance(self, tmp_path):
        (tmp_path / "home").write_text("no folder")
        home = str(tmp_path / "home")
        answer = run(RUN, HOME=home, XDG_CACHE_HOME="", LOCALAPPDATA=home, ANISO_CACHE_DIR="")
        assert answer.returncode == 0
        assert answer.stderr.count("cannot keep compiled kernels") == 1


class TestCompilation:
    @pytest.mark.slow
    def test_single_precision_stays_single(self, monkeypatch, tmp_path):
        monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
        caches = generate._loops, generate._tensor_loops
        for known in caches:
            known.cache_clear()
        model = aniso.EdgeEnhancing(diffusivity="exponential")
        image = SAMPLES["edges"]((20, 30)).astype(np.float32)
        aniso.diffuse(image, model, 1.0, spacing=0.5, engine="cpu")
        fused = generate.loops(image.dtype, True).image_steps.inspect_llvm()
        tensors = generate.tensor_loops(model.tensor_formula(1), image.dtype, True).tensor_row.inspect_llvm()
        for known in caches:
            known.cache_clear()
        for llvm in (*fused.values(), tensors):
            assert "fmul" in llvm
            assert "fpext" not in llvm

    def test_formulas_are_not_restated(self):
        """What the loops call comes from the formulas; the loops define none of it themselves."""
        own = "".join(
            (SOURCE / "engines" / "cpu" / f"{name}.py").read_text("utf-8")
            for name in ("arithmetic", "kernels", "tensors")
        )
        for name in ("modes", "fluxes", "corner_shares", "hourglass_weight", "explicit_step", "structure"):
            assert f"{name}(" in own
            assert f"def {name}(" not in own

    def test_a_diffusivity_that_numba_cannot_compile_is_refused(self):
        table = {"a": 1.0}

        def diffusivity(r):
            return np.vectorize(lambda x: table["a"] / (1 + x))(r)

        model = aniso.EdgeEnhancing(contrast=9, diffusivity=diffusivity)
        with pytest.raises(TypeError, match=r"cannot be compiled by Numba.*engine='reference'"):
            aniso.diffuse(np.eye(9), model, 1.0, engine="cpu")
        assert np.isfinite(aniso.diffuse(np.eye(9), model, 1.0, engine="reference")).all()

    def test_a_diffusivity_that_is_compiled_already_serves(self):
        import numba

        compiled = numba.njit(lambda r: 1 / (1 + 0.2 * r))
        own = aniso.EdgeEnhancing(contrast=9, diffusivity=lambda r: 1 / (1 + 0.2 * r))
        image = SAMPLES["edges"]((20, 30))
        np.testing.assert_allclose(
            aniso.diffuse(image, aniso.EdgeEnhancing(contrast=9, diffusivity=compiled), 2.0),
            aniso.diffuse(image, own, 2.0, engine="reference"),
            rtol=1e-12,
        )


class TestAccuracyInSinglePrecision:
    """After 50 steps: 2e-5 of the grey range at most on samples, RMS 1e-6 on noise."""

    @pytest.mark.parametrize("model", [EDGES, LINES, aniso.PeronaMalik(contrast=12.0)], ids=repr)
    @pytest.mark.parametrize("sample", ["rings", "fingerprint", "shapes"])
    def test_on_samples(self, model, sample):
        image = getattr(aniso.samples, sample)(64).image
        single, double = self._both(image, model)
        assert abs(single - double).max() <= 2e-5 * np.ptp(image)

    @pytest.mark.parametrize("model", [EDGES, aniso.PeronaMalik(contrast=12.0)], ids=repr)
    def test_on_noise(self, model):
        image = SAMPLES["noise"]((64, 64))
        single, double = self._both(image, model)
        assert np.sqrt(((single - double) ** 2).mean()) <= 1e-6 * np.ptp(image)

    def _both(self, image, model):
        single = image.astype(np.float32)
        scheme = aniso.Explicit(step=0.25)
        return (
            aniso.diffuse(single, model, 12.5, engine="cpu", scheme=scheme).astype(np.float64),
            aniso.diffuse(single.astype(np.float64), model, 12.5, engine="reference", scheme=scheme),
        )


@pytest.mark.parametrize("rho", [3.0, 10.0])
@pytest.mark.parametrize("shape", [(40, 60), (5, 9)])
def test_a_long_integration_kernel_is_exact(rho, shape):
    model, image = aniso.CoherenceEnhancing(contrast=8.0, sigma=1.0, rho=rho), SAMPLES["edges"](shape)
    np.testing.assert_allclose(
        aniso.diffuse(image, model, 2.0, engine="cpu"),
        aniso.diffuse(image, model, 2.0, engine="reference"),
        atol=1e-9,
    )


class TestInterrupts:
    """A slice of `python -m tests.interrupts`."""

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for a single child")
    def test_later_calls_are_not_harmed(self):
        tally = interrupts.interrupt(20, seed=1, names=["fused", "colour FSI", "snapshots"])
        assert not tally.faults, tally.table()
        assert tally.sent == 20

    def test_an_evolution_that_was_interrupted_is_not_used_again(self, monkeypatch):
        problem = engines.Problem(EDGES, aniso.DeltaStencil(), (1.0, 1.0))
        cycle = next(iter(aniso.Explicit().plan(0.2, 0.2)))
        evolution = Evolution(SAMPLES["edges"]((20, 30))[np.newaxis], problem)
        evolution.advance(cycle)

        def interrupted(team, task, count):
            raise KeyboardInterrupt

        monkeypatch.setattr(ThreadTeam, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            evolution.advance(cycle)
        monkeypatch.undo()
        with pytest.raises(RuntimeError, match="interrupted within a step and cannot go on"):
            evolution.advance(cycle)
        evolution.close()
        with pytest.raises(RuntimeError, match=r"interrupted within a step.*Start again"):
            evolution.image  # noqa: B018

    def test_an_evolution_that_is_closed_keeps_its_image_only(self):
        problem = engines.Problem(EDGES, aniso.DeltaStencil(), (1.0, 1.0))
        evolution = Evolution(SAMPLES["edges"]((20, 30))[np.newaxis], problem)
        evolution.close()
        with pytest.raises(RuntimeError, match="is closed and cannot go on"):
            evolution.advance(next(iter(aniso.Explicit().plan(0.2, 0.2))))
        assert evolution.image.shape == (1, 20, 30)

    def test_a_pass_that_is_interrupted_leaves_no_task_behind(self):
        team, done = ThreadTeam(4), []

        def task(number):
            if number == 5 and threading.current_thread() is threading.main_thread():
                raise KeyboardInterrupt
            time.sleep(0.001)
            done.append(number)

        for _ in range(20):
            try:
                team.run(task, 50)
            except KeyboardInterrupt:
                after = len(done)
                time.sleep(0.01)
                assert len(done) == after
        team.close()

    def test_helpers_that_nobody_ends_end_by_themselves(self):
        team = ThreadTeam(3)
        team.run(lambda number: time.sleep(0.001), 10)
        wait_until(lambda: not any(thread.name == "aniso" for thread in threading.enumerate()))
        done: list[int] = []
        team.run(done.append, 100)  # others take their place
        team.close()
        assert sorted(done) == list(range(100))

    def test_a_function_that_must_not_be_interrupted_ends_before_the_interrupt_is_raised(self):
        ended = []

        def long():
            signal.raise_signal(signal.SIGINT)
            time.sleep(0.1)
            ended.append(1)

        with pytest.raises(KeyboardInterrupt):
            uninterrupted(long)()
        assert ended
        with pytest.raises(ValueError, match="its own"):
            uninterrupted(_raise)()


def _raise():
    raise ValueError("its own error")


def test_kernels_stay_within_their_arrays():
    """A slice of `python -m tests.bounds`."""
    words = ["--cases", "40", "--models", "edge", "coherence", "--dtypes", "float32"]
    with started(bounds.command(words), env=bounds.environment()) as process:
        assert process.wait(5 * PATIENCE) == 0  # it compiles the kernels with checks


class TestThreadLimits:
    def test_without_further_threads_the_caller_computes_alone(self, monkeypatch):
        def refuse(*_):
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr("aniso.engines.cpu.threads._thread.start_new_thread", refuse)
        done: list[int] = []
        team = ThreadTeam(4)
        team.run(done.append, 10)
        team.close()
        assert sorted(done) == list(range(10))
        assert uninterrupted(lambda: 7)() == 7

    def test_a_pass_that_is_over_does_not_keep_the_arrays(self):
        team = ThreadTeam(4)
        array = np.zeros(10)
        held = weakref.ref(array)
        team.run(partial(np.copyto, array), 10)
        del array
        team.close()
        assert held() is None

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
    def test_a_forked_child_does_not_wait_for_a_lock_of_a_thread_it_does_not_have(self):
        program = """
            import os, threading, numpy as np, aniso
            from aniso.engines.cpu import generate
            image = np.eye(12)
            expected = aniso.diffuse(image, aniso.Homogeneous(), 1.0, engine="cpu")
            taken, release = threading.Event(), threading.Event()
            def hold():
                with generate._ONE_AT_A_TIME:
                    taken.set()
                    release.wait()
            threading.Thread(target=hold, daemon=True).start()
            taken.wait()
            child = os.fork()
            if child == 0:
                same = (aniso.diffuse(image, aniso.Homogeneous(), 1.0, engine="cpu") == expected).all()
                os._exit(0 if same else 1)
            import time
            for _ in range(2400):
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended:
                    break
                time.sleep(0.05)
            else:
                os.kill(child, 9)
            print(ended == child and os.WEXITSTATUS(status) == 0)
            release.set()
        """
        answer = run(program)
        assert answer.stdout.strip() == "True", answer.stderr
