"""What holds for every test run: hypothesis profiles, and no silent skips in CI."""

import os

import pytest
from hypothesis import settings

IN_CI = bool(os.environ.get("CI"))

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the tests run side by side; PyTorch reads this
os.environ.setdefault("MPLBACKEND", "Agg")  # no test opens a window

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
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


def pytest_configure(config):
    is_xdist_worker = hasattr(config, "workerinput")
    if IN_CI and not is_xdist_worker:
        config.pluginmanager.register(NoSkips(), "no-skips")
