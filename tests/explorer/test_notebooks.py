"""Notebooks: plans and scale spaces show pictures, progress is a bar, and the explorer is in a frame."""

import base64
import http.client
import http.server
import io
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import nbclient
import nbformat
import numpy as np
import pytest
from PIL import Image

import aniso
from aniso.explorer.guard import IN_NOTEBOOKS, NO_FRAMES
from tests.processes import PATIENCE

pytestmark = pytest.mark.slow

GREY = aniso.samples.shapes(64, noise=20.0).image


def shown(html):
    """The pictures in a text."""
    found = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    return [np.array(Image.open(io.BytesIO(base64.b64decode(each)))) for each in found]


class TestPlans:
    def test_before_and_after(self):
        result, plan = aniso.denoise(GREY, return_info=True)
        before, after = shown(plan._repr_html_())
        low, high = GREY.min(), GREY.max()
        for picture, image in ((before, GREY), (after, result)):
            np.testing.assert_allclose(picture, np.clip((image - low) / (high - low), 0, 1) * 255, atol=0.51)
        assert "<td>" in plan._repr_html_()
        assert aniso.Plan.from_json(plan.to_json()) == plan
        assert shown(aniso.Plan.from_json(plan.to_json())._repr_html_()) == []

    @pytest.mark.parametrize("name", ["enhance", "inpaint", "upsample"])
    def test_other_verbs(self, name):
        options: Any = {"inpaint": {"mask": GREY > 200}, "upsample": {"factor": 2}}.get(name, {})
        _, plan = getattr(aniso, name)(GREY, return_info=True, **options)
        before, after = shown(plan._repr_html_())
        assert before.shape == (64, 64)
        assert after.shape == ((128, 128) if name == "upsample" else (64, 64))

    def test_colours_volumes_and_text(self):
        colour = aniso.samples.lighthouse(400).image
        _, plan = aniso.denoise(colour, channel_axis=-1, noise=20.0, return_info=True)
        assert [picture.shape for picture in shown(plan._repr_html_())] == [(134, 134, 3)] * 2
        volume = np.stack([GREY[:20, :24]] * 6)
        _, plan = aniso.denoise(volume, return_info=True)
        assert shown(plan._repr_html_())[0].shape == (20, 24)


def test_scale_spaces_show_some_images():
    space: Any = aniso.scale_space(GREY, aniso.Homogeneous(), [0, *range(1, 9)])
    assert next(space)[0] == 0
    pictures = shown(space._repr_html_())
    assert len(pictures) == 6
    assert pictures[0].std() > 1.3 * pictures[-1].std()
    assert [time for time, _ in space] == list(range(1, 9))  # showing them took none away
    space.close()


NOTEBOOK = """
import aniso
image = aniso.samples.shapes(48, noise=20.0).image
clean, plan = aniso.denoise(image, progress=True, return_info=True)
plan
---
aniso.scale_space(image, aniso.EdgeEnhancing(), [0, 2, 8])
---
exploration = aniso.explore(image)
exploration
---
exploration.close()
print(exploration.address)
"""


def test_a_notebook_runs(tmp_path):
    cells = [nbformat.v4.new_code_cell(text.strip()) for text in NOTEBOOK.split("---")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=int(PATIENCE), resources=resources).execute()
    plan, space, frame, last = (cell.outputs for cell in notebook.cells)
    bar, summary = plan
    assert bar["output_type"] == "display_data"
    assert bar["data"]["text/html"] == ""  # it is removed at the end
    assert len(shown(summary["data"]["text/html"])) == 2
    assert len(shown(space[0]["data"]["text/html"])) == 3
    assert "iframe" in frame[0]["data"]["text/html"]
    address = last[0]["text"].strip()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=PATIENCE)  # it was closed


@pytest.fixture(scope="module")
def exploration():
    found = aniso.explore(GREY.astype("float32"))
    yield found
    found.close()


def test_only_pages_of_this_machine_may_show_it(exploration):
    parts = urlsplit(exploration.address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    connection.request("GET", f"/?{parts.query}")
    policy = connection.getresponse().headers["Content-Security-Policy"]
    connection.close()
    assert policy.endswith(f"frame-ancestors {IN_NOTEBOOKS}")
    assert NO_FRAMES == "'none'"
    bare = exploration.address.split("?")[0]
    for path in ("", "explorer/plan"):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(bare + path)


def test_the_plan_is_what_the_page_shows(exploration, tmp_path, browser):
    assert exploration.plan is None
    (tmp_path / "notebook.html").write_text(f"<!doctype html>{exploration._repr_html_()}")
    handler = partial(_Quiet, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.goto(f"http://localhost:{server.server_port}/notebook.html")
        frame = page.frame_locator("iframe")
        frame.get_by_text("Values used").wait_for(timeout=1000 * PATIENCE)
        end = time.monotonic() + PATIENCE
        plan: Any = None
        while plan is None and time.monotonic() < end:
            page.wait_for_timeout(100)
            plan = exploration.plan
        assert plan == aniso.denoise(GREY.astype("float32"), return_info=True)[1]
        page.close()
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


def test_the_server_ends_with_the_notebook():
    program = "import aniso, numpy as np, os; e = aniso.explore(np.eye(8)); "
    program += "print(e._process.pid, flush=True); os._exit(1)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    number = int(answer.stdout)
    import psutil

    if psutil.pid_exists(number):
        psutil.Process(number).wait(30)


def test_errors():
    with pytest.raises(TypeError, match="real numeric dtype, got complex128"):
        aniso.explore(np.eye(4, dtype=complex))
