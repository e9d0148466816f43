"""What tests of the explorer share."""

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

import aniso
from aniso.explorer.choosing.scene import Scene, Source
from benchmarks.explorer_process import browser_path, explorer
from tests.explorer.pages import WAIT, opened


@pytest.fixture(scope="module")  # Playwright keeps an event loop in this thread, which other modules need
def browser():
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        running = playwright.chromium.launch(executable_path=browser_path(), args=options, timeout=WAIT)
        yield running
        running.close()


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    shapes = np.clip(aniso.samples.shapes(128, noise=20.0).image, 0, 255).astype(np.uint8)
    aniso.io.write(folder / "shapes.png", shapes)
    volume = np.random.default_rng(0).normal(100, 10, (9, 30, 40)).astype(np.float32)
    aniso.io.write(folder / "volume.npy", volume)
    (folder / "broken.png").write_bytes((folder / "shapes.png").read_bytes()[:300])
    return folder


@pytest.fixture(scope="session")
def server(files):
    with explorer(files / "shapes.png") as running:
        yield running


@pytest.fixture
def page(browser, server):
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    with opened(context, server[0]) as tab:
        yield tab
    context.close()


@pytest.fixture(scope="session")
def shapes():
    return Scene(Source.of_sample("shapes"))
