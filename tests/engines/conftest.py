"""What tests of engines share."""

import contextlib
import io
import shutil
import textwrap
from pathlib import Path

import pytest

from aniso.engines.cpu import base, evolution, volume_evolution
from tests.engines.kernel_files import RUN, files, run


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles so small that small images and volumes have several along each axis, for several threads."""
    monkeypatch.setattr(base, "_ALONE", 0)
    for module, largest in ((evolution, 16), (volume_evolution, 5)):

        def spans(length, size, largest=largest):
            return base.spans(length, min(size, largest))

        monkeypatch.setattr(module, "equal_spans", spans)
    monkeypatch.setattr(volume_evolution, "spans", spans)


@pytest.fixture(scope="module")
def expected():
    """What the script prints."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(textwrap.dedent(RUN), {})
    return output.getvalue()


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A folder with the kernels of the script; copy it."""
    folder = tmp_path_factory.mktemp("warm") / "kernels"
    assert run(folder).stderr == ""
    assert len(files(folder)) == 2
    return folder


@pytest.fixture
def folder(warm, tmp_path):
    return Path(shutil.copytree(warm, tmp_path / "kernels"))
