"""Take the pictures of explorer.md in Chromium: python -m docs.images.explorer."""

import io
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from benchmarks.explorer_process import browser_path, explorer

FOLDER = Path(__file__).parent


def take_picture(page: Page, name: str, colours: int = 128, rare: bool = False) -> None:
    """Save a screenshot with a small palette, for a small file; `rare` preserves rare colours."""
    page.wait_for_timeout(800)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    small = picture.resize((960, 600), Image.Resampling.LANCZOS)
    method = Image.Quantize.MAXCOVERAGE if rare else Image.Quantize.MEDIANCUT
    few = small.quantize(colours, method, dither=Image.Dither.NONE)
    few.save(FOLDER / f"{name}.png", optimize=True)


def wait_for_result(page: Page) -> None:
    """Wait for the result at full resolution."""
    expect(page.locator(".status")).to_contain_text("full resolution", timeout=60_000)


def main() -> None:
    """Take all pictures."""
    with explorer() as (address, _, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        # The first result includes compilation: show that of a second tab. A reload would show a message.
        for _ in range(2):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(address)
            wait_for_result(page)
        take_picture(page, "explorer", 160)

        page.get_by_label("Sample").select_option("fingerprint")
        expect(page.locator(".status")).to_contain_text("fingerprint")
        page.get_by_role("button", name="Diffuse", exact=True).click()
        page.get_by_label("Model").select_option("coherence-enhancing")
        expect(page.locator(".control[data-name=rho]")).to_be_visible()
        wait_for_result(page)
        page.get_by_role("button", name="Tensors").click()
        take_picture(page, "explorer_tensors", 72, rare=True)
        page.get_by_role("button", name="Tensors").click()

        page.get_by_label("Sample").select_option("layers")
        expect(page.locator(".status")).to_contain_text("64 × 64 × 64 in", timeout=60_000)
        page.get_by_label("Slices along").select_option("1")
        page.locator(".stage").hover(position={"x": 30, "y": 30})
        wait_for_result(page)
        take_picture(page, "explorer_volume", 96, rare=True)
        page.close()

        dark = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="dark")
        dark.goto(address)
        wait_for_result(dark)
        dark.get_by_role("button", name="Stencil", exact=True).click()
        dark.get_by_label("Named member").select_option("nonnegativity")
        expect(dark.get_by_text("Ring test:")).to_contain_text("changed")
        take_picture(dark, "explorer_stencil")
        browser.close()


if __name__ == "__main__":
    main()
