"""What tests of the command line share."""

import functools

import pytest

import aniso
from aniso import io
from aniso.verbs.table import VERBS
from tests.cli.command_calls import noisy


@pytest.fixture
def camera(tmp_path):
    """A folder with a noisy grey image."""
    io.write(tmp_path / "camera.png", noisy())
    return tmp_path


@pytest.fixture
def nothing_is_computed(monkeypatch):
    """Whoever computes, fails."""

    def computed(*_, **__):
        raise AssertionError("it was computed")

    for name in VERBS:
        refuse = functools.wraps(getattr(aniso, name))(lambda *_, **__: computed())  # with its options
        monkeypatch.setattr(aniso, name, refuse)
    for module, name in (("evolve", "diffuse"), ("cli.jobs.diffusing", "scale_space")):
        monkeypatch.setattr(f"aniso.{module}.{name}", computed)
