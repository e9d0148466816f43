"""Signals, pipes and full disks, in processes of their own."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from aniso import io
from tests.cli.command_calls import PROGRAM, WIDE, contents, noisy
from tests.processes import PATIENCE, started

pytestmark = pytest.mark.slow

# The encoder stops in the middle, and says so.
SLOW = """
import dataclasses, sys, time
from aniso.io.formats import FORMATS
def write(path, picture):
    path.write_bytes(b"half a picture")
    print("writing", flush=True)
    time.sleep(1e4)
FORMATS["PNG"] = dataclasses.replace(FORMATS["PNG"], write=write)
from aniso.__main__ import main
main()
"""
# The engine says that it works.
WORKING = """
from aniso.engines.cpu.evolution import Evolution
advance = Evolution.advance
def said(self, cycle):
    advance(self, cycle)
    print("working", flush=True)
Evolution.advance = said
from aniso.__main__ import main
main()
"""
# Waits in a destructor, where Python ignores what is raised, and then for a lock.
DESTROYING = """
import threading, time
from aniso import __main__ as program
class Slow:
    def __del__(self):
        print("destroying", flush=True)
        time.sleep(1e4)
def run():
    Slow()
    lock = threading.Lock()
    with lock, lock:
        pass
program._run = run
program.main()
"""
# The signal handlers are there, and nothing that takes long to import.
STARTING = """
import sys
from aniso import __main__ as program
run = program._run
def said():
    print("numpy" in sys.modules, flush=True)
    run()
program._run = said
program.main()
"""


class TestInterruptions:
    @pytest.mark.parametrize(
        ("number", "code"),
        [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129), (signal.SIGKILL, -9)],
    )
    def test_in_the_middle_of_a_write(self, camera, number, code):
        (camera / "result.png").write_bytes(b"the old result")
        before = contents(camera)
        words = ["diffuse", "camera.png", "--time", "1", "-o", "result.png", "--force"]
        with started(
            [sys.executable, "-c", SLOW, *words], cwd=camera, env=WIDE, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # the tests may run under nohup
        ) as process:  # fmt: skip
            assert process.stdout.readline() == "writing\n"
            process.send_signal(number)
            _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == code
        after = contents(camera)
        if number == signal.SIGKILL:  # nobody could tidy up; the old file is there all the same
            after = {name: content for name, content in after.items() if not name.startswith(".")}
        else:
            assert errors == "aniso: interrupted; no file was left half-written.\n"
        assert after == before

    def test_in_the_middle_of_the_work(self, camera):
        np.save(camera / "large.npy", noisy((600, 600), "float32"))
        before = set(contents(camera))
        words = ["diffuse", "large.npy", "--time", "1e5", "--contrast", "0.1", "--threads", "2"]
        with started(
            [sys.executable, "-c", WORKING, *words],
            cwd=camera, env=WIDE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            assert process.stdout.readline() == b"working\n"
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, b"Traceback" in errors) == (143, False)
        assert set(contents(camera)) == before

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
    def test_in_a_destructor(self, camera, number, code):
        with started(
            [sys.executable, "-c", DESTROYING],
            cwd=camera, env=WIDE, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            assert process.stdout.readline() == "destroying\n"
            process.send_signal(number)
            _, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, errors) == (code, "aniso: interrupted; no file was left half-written.\n")


class TestAnImpatientFinger:
    @pytest.mark.parametrize("delay", [0.01, 0.05, 0.1, 0.2, 0.4])
    def test_ctrl_c_before_anything_was_done(self, camera, delay):
        """Python itself takes a moment to start; from then on, nothing heavy is imported unguarded."""
        words = ["diffuse", "camera.png", "--time", "1e6", "--contrast", "0.1"]  # it never gets there
        with started(
            [sys.executable, "-c", STARTING, *words],
            cwd=camera, env=WIDE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            assert process.stdout.readline() == b"False\n"
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, b"Traceback" in errors) == (130, False)
        assert set(os.listdir(camera)) == {"camera.png"}

    def test_ctrl_c_while_a_class_is_created(self, tmp_path):
        """Python 3.11 makes an error of its own of what is raised there."""
        program = textwrap.dedent("""
            import os, signal
            from aniso import __main__ as program

            class Attribute:
                def __set_name__(self, owner, name):
                    os.kill(os.getpid(), signal.SIGINT)

            program._run = lambda: type("Class", (), {"attribute": Attribute()})
            program.main()
        """)
        answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=WIDE)
        assert (answer.returncode, answer.stderr.count("\n")) == (130, 1)
        assert "interrupted" in answer.stderr


class TestListeners:
    """Standard output may be full, or closed by whoever has heard enough."""

    def piped(self, folder, *words):
        """The exit code, and standard error, if only one line is read."""
        with started(
            [*PROGRAM, *words], cwd=folder, env=WIDE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            process.stdout.readline()
            process.stdout.close()
            errors = process.stderr.read()
            process.wait(PATIENCE)
        return process.returncode, errors

    def test_enough_was_heard(self, camera):
        io.write(camera / "b.png", noisy(seed=1))
        io.write(camera / "c.png", noisy(seed=2))
        assert self.piped(camera, "info", "camera.png", "b.png", "c.png") == (141, b"")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device here")
    @pytest.mark.parametrize(
        "words", [("stencil",), ("stencil", "--json"), ("info", "camera.png"), ("--help",), ("--version",)]
    )
    def test_it_is_full(self, camera, words):
        with open("/dev/full", "w") as full:
            answer = subprocess.run(
                [*PROGRAM, *words], cwd=camera, env=WIDE, stdout=full, stderr=subprocess.PIPE, text=True
            )
        assert answer.returncode == 1
        assert answer.stderr == "aniso: standard output cannot be written: no space left on device.\n"

    def test_a_folder_that_is_gone_is_not_its_fault(self, camera):
        program = " ".join([*PROGRAM, "diffuse", "camera.png", "--time", "1"])
        script = f"mkdir gone && cd gone && rmdir ../gone && {program}"
        answer = subprocess.run(["sh", "-c", script], cwd=camera, env=WIDE, capture_output=True, text=True)
        assert answer.returncode == 1
        assert answer.stderr == "aniso: the working directory no longer exists. Change to another one.\n"

    def test_there_is_none(self, camera):
        command = " ".join([*PROGRAM, "info", "camera.png", ">&-", "2>&-"])
        assert subprocess.run(command, shell=True, cwd=camera, env=WIDE).returncode == 0


@pytest.mark.skipif(os.name != "posix", reason="calls the C library by name")
@pytest.mark.parametrize(
    ("end", "code"), [("sys.exit(3)", 3), ("sys.exit()", 0), ("sys.exit('no')", 1), ("1 / 0", 1)]
)
def test_daemon_threads_are_left_alone(end, code):
    """Python would stop them at its own end, which aborts the process while one of them compiles a kernel."""
    program = f"""
import atexit, ctypes, sys, threading, time
import aniso.__main__ as entry

# Stands for a thread in compiled code that cannot be ended: the orderly end of the process aborts it.
libc = ctypes.CDLL(None)
libc.__cxa_atexit(libc.abort, None, None)

def run():
    threading.Thread(target=time.sleep, args=({3 * PATIENCE},), daemon=True).start()
    atexit.register(print, "handlers ran")
    print("output")
    {end}

entry._run = run
entry.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == code
    assert done.stdout.splitlines() == ["output", "handlers ran"]
