"""Files, masks, volumes and results in the tabs of a browser, and the end of tabs."""

import os
import re
import shlex
import signal
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect
from typer.testing import CliRunner

import aniso
from aniso.cli import app
from benchmarks.explorer_process import explorer
from tests.explorer.pages import (
    WAIT,
    choose_method,
    control,
    copied_and_downloaded,
    needs_browser,
    opened,
    pixels,
    settled,
    slide,
)
from tests.processes import PATIENCE, wait_until

pytestmark = [pytest.mark.slow, needs_browser]


def test_a_lost_connection_leaves_everything_as_it_was(page, files):
    with page.expect_response(lambda answer: "/file?" in answer.url):  # it resets choices
        page.set_input_files("#open-file", files / "shapes.png")
    choose_method(page, "Diffuse")
    slide(page, "Time slider", 0.4)
    settled(page)
    time_chosen = control(page, "time").locator(".number").input_value()
    page.wait_for_function("ackedMessageId >= nextMessageId")  # the server has forgotten what was sent
    page.evaluate("window.same = true; socket.disconnect()")
    page.wait_for_timeout(5000)  # longer than a hiccup
    page.evaluate("socket.connect()")
    page.wait_for_function("socket.connected && did_handshake")
    page.evaluate("drawn.length = 0")
    control(page, "sigma").locator(".number").fill("1.5")
    control(page, "sigma").locator(".number").press("Enter")
    page.wait_for_function("drawn.length > 0")
    settled(page)
    assert page.evaluate("window.same")
    expect(page.get_by_role("button", name="Diffuse")).to_have_attribute("aria-pressed", "true")
    expect(control(page, "time").locator(".number")).to_have_value(time_chosen)
    expect(control(page, "sigma").locator(".number")).to_have_value("1.5")


def test_a_page_that_is_loaded_anew_says_so(page):
    choose_method(page, "Diffuse")
    settled(page)
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("was reloaded")
    expect(page.get_by_role("button", name="Denoise")).to_have_attribute("aria-pressed", "true")


def test_a_mask_is_drawn_and_filled_in(page):
    choose_method(page, "Inpaint")
    settled(page)
    page.get_by_role("button", name="Brush").click()
    expect(page.locator(".viewer")).to_have_class(re.compile("painting"))
    box = page.locator(".stage").bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 300, steps=6)
    page.mouse.up()
    unknown = page.locator(".panel .values dd").first
    expect(unknown).to_have_text(re.compile(r"^0\.0\d+$"), timeout=WAIT)  # the fraction of unknown pixels
    page.get_by_role("button", name="Clear").click()
    expect(unknown).to_have_text("0", timeout=WAIT)


def test_a_volume_is_dropped_and_sliced(page, files):
    page.set_input_files("#open-file", files / "volume.npy")
    expect(page.locator(".status")).to_contain_text("volume.npy: 9 × 30 × 40, float32")
    expect(page.locator(".slices")).to_contain_text("slice 4, of 0 to 8")
    page.get_by_label("Slices along").select_option("2")
    expect(page.locator(".slices")).to_contain_text("slice 20, of 0 to 39")
    settled(page)
    page.get_by_role("button", name="After", exact=True).click()
    shown = pixels(page)
    page.get_by_role("slider", name="Slice", exact=True).evaluate(
        "(slider) => { slider.value = 7; slider.dispatchEvent(new Event('input')); }"
    )
    expect(page.locator(".slices")).to_contain_text("slice 7, of 0 to 39")
    settled(page)
    expect(page.locator(".status")).to_contain_text("9 × 30 × 40 in")
    wait_until(lambda: (pixels(page) != shown).any())  # the same result, another slice of it


def test_a_volume_as_one_or_slice_by_slice(page, files, tmp_path, monkeypatch):
    page.set_input_files("#open-file", files / "volume.npy")
    expect(page.locator(".status")).to_contain_text("volume.npy: 9 × 30 × 40, float32")
    choose_method(page, "Diffuse")
    page.get_by_label("Model").select_option("coherence-enhancing")
    expect(control(page, "plates")).to_be_visible()
    page.evaluate("drawn.length = 0")
    for k in range(6):
        slide(page, "Time slider", 0.3 + 0.03 * k)
    page.wait_for_function("drawn.some((each) => each.preview && each.words.includes('slices'))")
    settled(page)
    expect(page.locator(".status")).to_contain_text("9 × 30 × 40 in")
    program, download = copied_and_downloaded(page)
    assert download.suggested_filename == "volume_diffused.npy"
    download.save_as(tmp_path / "downloaded.npy")
    monkeypatch.chdir(tmp_path)
    aniso.io.write("volume.npy", aniso.io.read(files / "volume.npy"))
    exec(program, {})
    assert np.array_equal(np.load("downloaded.npy"), np.load("volume_diffused.npy"))
    page.get_by_role("button", name="This slice").click()
    expect(page.locator(".status")).to_contain_text("30 × 40 in")
    expect(page.locator(".status")).not_to_contain_text("9 × 30 × 40 in")
    expect(control(page, "plates")).to_have_count(0)
    settled(page)


def test_a_file_can_be_dropped(page, files):
    content = (files / "shapes.png").read_bytes()
    page.evaluate(
        """(bytes) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(bytes)], 'dropped.png'));
            window.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, cancelable: true }));
        }""",
        list(content),
    )
    expect(page.locator(".status")).to_contain_text("dropped.png: 128 × 128")


def test_a_broken_file_is_told_and_the_page_lives_on(page, files):
    page.set_input_files("#open-file", files / "broken.png")
    expect(page.get_by_role("alert")).to_contain_text("broken.png")
    expect(page.locator(".status")).to_contain_text("shapes.png")
    page.get_by_role("button", name="Close the message").click()
    expect(page.locator(".error")).to_be_hidden()
    choose_method(page, "Diffuse")
    settled(page)


def test_a_plan_is_saved_and_diffusion_has_none(page, files):
    choose_method(page, "Denoise")
    settled(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save plan").click()
    assert download.value.suggested_filename == "denoise_plan.json"
    plan = aniso.Plan.from_json(download.value.path().read_text("utf-8"))
    image = aniso.io.read(files / "shapes.png").pixels
    assert plan == aniso.denoise(image, return_info=True)[1]
    choose_method(page, "Diffuse")
    expect(page.get_by_role("heading", name="Values used")).to_be_hidden(timeout=WAIT)
    settled(page)
    page.get_by_role("button", name="Save plan").click()
    expect(page.get_by_role("alert")).to_contain_text("Diffuse chooses nothing")
    page.get_by_role("button", name="Close the message").click()


def test_copy_and_download(page, files, tmp_path, monkeypatch):
    choose_method(page, "Diffuse")
    slide(page, "Time slider", 0.4)
    settled(page)
    page.get_by_role("button", name="Copy as command").click()
    expect(page.locator(".recipe")).to_contain_text("Copied.")
    words = page.get_by_role("textbox", name="The same result as command").input_value()
    assert words.startswith("aniso diffuse ")
    page.wait_for_function("async (words) => (await navigator.clipboard.readText()) === words", arg=words)
    by_command = words
    page.get_by_role("button", name="Close", exact=True).click()
    program, download = copied_and_downloaded(page)
    assert download.suggested_filename == "shapes_diffused.png"
    download.save_as(tmp_path / "downloaded.png")
    monkeypatch.chdir(tmp_path)
    exec(program, {})
    results = [aniso.io.read(tmp_path / name) for name in ("downloaded.png", "shapes_diffused.png")]
    assert results[0].dtype == np.uint8
    assert np.array_equal(results[0].pixels, results[1].pixels)
    (tmp_path / "shapes_diffused.png").unlink()
    answer = CliRunner().invoke(app, shlex.split(by_command)[1:], prog_name="aniso")
    assert answer.exit_code == 0, answer.output
    assert np.array_equal(aniso.io.read(tmp_path / "shapes_diffused.png").pixels, results[0].pixels)


def test_two_tabs_do_not_disturb_each_other(page, browser, server):
    context = browser.new_context()
    with opened(context, server[0]) as other:
        choose_method(other, "Diffuse")
        other.get_by_label("Sample").select_option("rings")
        expect(other.locator(".status")).to_contain_text("rings")
        settled(other)
        expect(page.locator(".status")).to_contain_text("shapes.png")
        expect(page.get_by_role("button", name="Denoise")).to_have_attribute("aria-pressed", "true")
    context.close()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_closed_tab_gives_its_memory_back(browser, server, tmp_path):
    def figure(name):
        status = Path(f"/proc/{server[1].pid}/status").read_text("utf-8")
        return int(re.findall(rf"{name}:\s+(\d+)", status)[0])

    large = np.random.default_rng(0).random((2500, 2500))
    path = aniso.io.write(tmp_path / "large.npy", large)
    context = browser.new_context()
    with opened(context, server[0]) as tab:
        tab.set_input_files("#open-file", path)
        expect(tab.locator(".status")).to_contain_text("large.npy", timeout=WAIT)
        full, threads = figure("VmRSS"), figure("Threads")  # reading a file may have started another thread
    context.close()
    wait_until(lambda: figure("VmRSS") <= full - 10_000 and figure("Threads") < threads)


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_an_end_with_an_open_tab_leaves_no_files_behind(browser, files, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with explorer() as (address, process, said):
        context = browser.new_context()
        context.set_default_timeout(WAIT)
        tab = context.new_page()
        tab.goto(address)
        tab.set_input_files("#open-file", files / "shapes.png")
        expect(tab.locator(".status")).to_contain_text("shapes.png")
        (folder,) = tmp_path.glob("aniso-explorer-*")
        wait_until(lambda: list(folder.iterdir()) == [])  # what was uploaded is not needed any more
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE) == 0
        context.close()
    assert list(tmp_path.glob("aniso-explorer-*")) == []
    assert said[1:] == ["The explorer was stopped.\n"]  # on both streams
