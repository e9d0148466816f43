"""A real viewer for tests, without a screen: Qt draws into memory, and Xvfb provides OpenGL."""

import os
import threading
import time
import warnings

import pytest

from benchmarks.virtual_display import start_display
from tests.processes import PATIENCE


@pytest.fixture(scope="session")
def display(tmp_path_factory):
    """A display for OpenGL; napari keeps its settings in a folder of the test run."""
    name = start_display()
    if name is None:
        pytest.skip("Xvfb is not installed")
    folder = tmp_path_factory.mktemp("napari")
    changes = {
        "DISPLAY": name,
        "QT_QPA_PLATFORM": "offscreen",
        "QT_API": "pyqt6",
        "NAPARI_CONFIG": str(folder / "settings.yaml"),
        "LIBGL_ALWAYS_SOFTWARE": "1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in changes.items():
            patch.setenv(name, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of napari and its packages
            import napari
            from npe2 import PluginManager, PluginManifest

            import aniso.napari

            manager = PluginManager.instance()
            manager.discover()
            if "aniso" not in manager:  # the package was installed before it had a manifest
                path = os.path.join(os.path.dirname(aniso.napari.__file__), "napari.yaml")
                manager.register(PluginManifest.from_file(path))
        yield napari


@pytest.fixture(scope="module")
def window(display):
    """A viewer that the tests of a module share: one takes a second."""
    viewer = display.Viewer(show=False)
    yield viewer
    viewer.close()


@pytest.fixture
def viewer(window):
    """The viewer without layers and widgets."""
    window.dims.ndisplay = 2
    yield window
    window.window.remove_dock_widget("all")
    window.layers.clear()
    pump(0.02)


@pytest.fixture
def errors(display):
    """The messages of napari's notifications that are errors."""
    from napari.utils.notifications import notification_manager

    notification_manager.records.clear()
    return lambda: [
        str(record.message) for record in notification_manager.records if record.severity.value == "error"
    ]


def pump(seconds):
    """Let Qt work for some time."""
    wait_for(lambda: False, seconds, wanted=False)


def wait_for(condition, seconds=PATIENCE, *, wanted=True):
    """Let Qt work until a condition holds; return the seconds it took."""
    from qtpy.QtWidgets import QApplication

    start = time.perf_counter()
    while not condition() and time.perf_counter() - start < seconds:
        QApplication.processEvents()
        time.sleep(0.002)
    assert condition() or not wanted, "it took too long"
    return time.perf_counter() - start


def threads():
    """Names of our threads that run."""
    return [each.name for each in threading.enumerate() if each.name.startswith("aniso ")]
