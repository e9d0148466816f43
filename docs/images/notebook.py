"""Take the picture of a notebook in Chromium: python -m docs.images.notebook. Needs nbconvert."""

import http.server
import io
import tempfile
import threading
from functools import partial
from pathlib import Path

import nbclient
import nbconvert
import nbformat
from PIL import Image
from playwright.sync_api import sync_playwright

from benchmarks.explorer_process import browser_path

FOLDER = Path(__file__).parent
CELLS = """
import aniso

image = aniso.samples.lighthouse(256, noise=30.0).image
clean, plan = aniso.denoise(image, channel_axis=-1, return_info=True)
plan
---
aniso.scale_space(image, aniso.EdgeEnhancing(contrast=12), [0, 2, 8, 32], channel_axis=-1)
---
exploration = aniso.explore(image)
exploration
"""


def main() -> None:
    """Run the notebook, show it in a browser, and save a picture with a small palette."""
    cells = [nbformat.v4.new_code_cell(text.strip()) for text in CELLS.split("---")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(notebook, timeout=300)
    with client.setup_kernel(), tempfile.TemporaryDirectory() as folder:
        for number, cell in enumerate(notebook.cells):
            client.execute_cell(cell, number)
        text, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
        Path(folder, "notebook.html").write_text(text, "utf-8")
        handler = partial(http.server.SimpleHTTPRequestHandler, directory=folder)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, sync_playwright() as play:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            browser = play.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
            for _ in range(2):  # the first result includes compilation
                page = browser.new_page(viewport={"width": 1000, "height": 1500})
                page.goto(f"http://localhost:{server.server_port}/notebook.html")
                status = page.frame_locator("iframe").locator(".status")
                status.get_by_text("full resolution").wait_for(timeout=120_000)
            page.wait_for_timeout(1000)
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            picture.quantize(160, dither=Image.Dither.NONE).save(FOLDER / "notebook.png", optimize=True)
            browser.close()
            server.shutdown()


if __name__ == "__main__":
    main()
