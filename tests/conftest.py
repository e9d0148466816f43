"""What holds for every test run: hypothesis profiles, the quick lane, and no silent skips in CI."""

import importlib.util
import inspect
import os
import re
import signal

import pytest
from hypothesis import settings

IN_CI = bool(os.environ.get("CI"))

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the tests run side by side; PyTorch reads this
os.environ.setdefault("MPLBACKEND", "Agg")  # no test opens a window
HAS_GPU = any(os.path.exists(device) for device in ("/dev/nvidia0", "/dev/kfd"))
if not HAS_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # kernels run on the CPU; Triton reads this when it is imported

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell script
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests interrupt themselves and their children

settings.register_profile("local", deadline=None, max_examples=50)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, print_blob=True)
settings.load_profile("ci" if IN_CI else "local")


class NoSkips:
    """Fails a session in which anything but a CUDA test was skipped.

    It reads reports, which pytest-xdist hands from its workers to the controller.
    A module that skips itself on import counts: there, no marker can be seen.
    """

    def __init__(self):
        self.skipped = []

    def pytest_runtest_logreport(self, report):
        expected_failure = hasattr(report, "wasxfail")
        if report.skipped and not expected_failure and "cuda" not in report.keywords:
            self.skipped.append(report.nodeid)

    def pytest_collectreport(self, report):
        if report.skipped:
            self.skipped.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        if self.skipped and session.exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        if self.skipped:
            terminalreporter.section("skipped in CI, where only CUDA tests may be", red=True)
            for nodeid in self.skipped:
                terminalreporter.write_line(nodeid)


# The quick lane: collecting all tests takes half a minute, so `pytest -m quick` expands only what it runs.

WITHOUT_TORCH = importlib.util.find_spec("torch") is None
WITHOUT_TRITON = WITHOUT_TORCH or importlib.util.find_spec("triton") is None  # as on macOS and Windows
#: The tests of the triton engine, which import it.
collect_ignore_glob = ["engines/test_triton*.py"] if WITHOUT_TRITON else []


def is_quick(config):
    return config.option.markexpr == "quick"


def pytest_ignore_collect(collection_path, config):
    """Leave out files without a quick test and, where PyTorch is missing, files that import it."""
    if not is_quick(config) or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text("utf-8")
    needs_torch = re.search(r"^(import torch|from torch|from tests\.nn\.nn_registry)\b", text, re.M)
    return "pytest.mark.quick" not in text or (WITHOUT_TORCH and needs_torch is not None) or None


def pytest_pycollect_makeitem(collector, name, obj):
    """Leave out functions without the mark before their parameters are multiplied."""
    if not is_quick(collector.config) or not inspect.isfunction(obj):
        return None
    marks = [*collector.iter_markers(), *getattr(obj, "pytestmark", ())]
    return None if any(mark.name == "quick" for mark in marks) else []


def pytest_collection_modifyitems(config, items):
    """Skip what the quick lane would run on PyTorch where that is missing."""
    if not (WITHOUT_TORCH and is_quick(config)):
        return
    for item in items:
        parameters = getattr(item, "callspec", None)
        engine = parameters and parameters.params.get("engine")
        if getattr(engine, "name", engine) == "torch":
            item.add_marker(pytest.mark.skip(reason="PyTorch is not installed"))


def pytest_report_header(config):
    if WITHOUT_TORCH and is_quick(config):
        return "PyTorch is not installed: its engine is skipped, and aniso.nn is left out"
    return None


def pytest_configure(config):
    if is_quick(config):
        config.option.doctestmodules = False  # collecting the examples takes longer than all quick tests
    if WITHOUT_TRITON:  # whose modules the examples would be looked for in
        config.option.ignore_glob = [*(config.option.ignore_glob or []), "*/aniso/engines/triton/*"]
    is_xdist_worker = hasattr(config, "workerinput")
    if IN_CI and not is_xdist_worker:
        config.pluginmanager.register(NoSkips(), "no-skips")
