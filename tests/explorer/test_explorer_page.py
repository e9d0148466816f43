"""The explorer in a browser, from the outside: `aniso explore` runs on its own, Chromium clicks."""

import base64
import contextlib
import os
import re
import shlex
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright
from typer.testing import CliRunner

import aniso
from aniso.cli import app
from aniso.explorer.choosing.choices import methods, parameters_of
from benchmarks.explorer_process import browser_path, explorer

WAIT = 30_000  # milliseconds: the machine may be busy
expect.set_options(timeout=WAIT)

pytestmark = pytest.mark.skipif(
    browser_path() is None,
    reason="there is no Chromium here; on Debian and Ubuntu: apt-get install chromium",
)


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        running = playwright.chromium.launch(executable_path=browser_path(), args=options)
        yield running
        running.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    shapes = np.clip(aniso.samples.shapes(128, noise=20.0).image, 0, 255).astype(np.uint8)
    aniso.io.write(folder / "shapes.png", shapes)
    volume = np.random.default_rng(0).normal(100, 10, (9, 30, 40)).astype(np.float32)
    aniso.io.write(folder / "volume.npy", volume)
    (folder / "broken.png").write_bytes((folder / "shapes.png").read_bytes()[:300])
    return folder


@pytest.fixture(scope="module")
def server(files):
    with explorer(files / "shapes.png") as running:
        yield running


@pytest.fixture
def page(browser, server):
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(WAIT)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    with opened(context, server[0]) as tab:
        yield tab
    context.close()


@contextlib.contextmanager
def opened(context, address):
    """A tab that shows its first result, and notes what it draws, asks for, and complains about."""
    tab = context.new_page()
    tab.asked, tab.wrong = [], []
    tab.on("request", lambda request: tab.asked.append(request.url))
    tab.on("pageerror", lambda error: tab.wrong.append(str(error)))
    tab.on("console", lambda message: tab.wrong.append(message.text) if message.type == "error" else None)
    tab.add_init_script(
        "window.drawn = []; window.addEventListener('aniso:drawn', (event) => drawn.push(event.detail))"
    )
    tab.goto(address)
    settled(tab)
    yield tab
    assert tab.wrong == []
    tab.goto("about:blank")  # so that the page says that it is closed
    tab.close()


def settled(tab):
    """Wait for the result at full resolution."""
    expect(tab.locator(".status")).to_contain_text("full resolution", timeout=WAIT)
    expect(tab.locator(".viewer")).to_have_attribute("aria-busy", "false", timeout=WAIT)


def copied_and_downloaded(tab):
    """The text of "Copy as Python", and the file of "Download"."""
    tab.get_by_role("button", name="Copy as Python").click()
    program = tab.get_by_role("textbox", name="The same result as Python").input_value()
    tab.get_by_role("button", name="Close", exact=True).click()
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Download").click()
    return program, download.value


def wait_until(condition):
    """For what the browser does not see."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def choose_method(tab, name):
    tab.get_by_role("button", name=name, exact=True).click()


def control(tab, name):
    """A control of the tab that is in front."""
    return tab.locator(f".tab:not(.hidden) .control[data-name={name}]")


def slide(tab, name, to):
    """Move a slider with the keyboard's or a hand's events, to a share of its way."""
    tab.get_by_role("slider", name=name).evaluate(
        "(slider, to) => { slider.value = Math.round(1000 * to); slider.dispatchEvent(new Event('input')); "
        "slider.dispatchEvent(new Event('change')); }",
        to,
    )


def pixels(tab):
    """What the canvas shows."""
    shown = tab.locator(".stage canvas").evaluate(
        """async (canvas) => {
            for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
            const shown = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            let text = '';
            for (let at = 0; at < shown.length; at += 32768)
                text += String.fromCharCode(...shown.subarray(at, at + 32768));
            return btoa(text);
        }"""
    )
    return np.frombuffer(base64.b64decode(shown), np.uint8)


def test_it_opens_what_was_given_and_asks_nobody_else(page, server):
    expect(page.locator(".status")).to_contain_text("shapes.png: 128 × 128, uint8")
    expect(page).to_have_title("aniso explorer")
    home = server[0].partition("?")[0]
    assert page.url == home
    elsewhere = [url for url in page.asked if not url.startswith((home, "data:", "blob:"))]
    assert [url for url in elsewhere if not url.startswith("ws://127.0.0.1:")] == []
    assert len(page.asked) > 10


def test_auto_shows_what_it_chose_and_controls_have_units_reset_and_words(page):
    noise = control(page, "noise")
    assert 15 < float(noise.get_by_role("textbox").input_value()) < 25
    expect(noise.locator(".unit")).to_have_text("grey")
    expect(noise.locator(".meaning")).to_have_text("Standard deviation of the noise.")
    expect(noise.get_by_role("button", name="Noise automatic")).to_have_attribute("aria-pressed", "true")
    noise.get_by_role("textbox").fill("5")
    noise.get_by_role("textbox").press("Enter")
    expect(noise.get_by_role("button", name="Noise automatic")).to_have_attribute("aria-pressed", "false")
    expect(page.locator(".panel .values")).to_contain_text("5 grey values")
    noise.get_by_role("button", name="Reset Noise").click()
    expect(noise.get_by_role("button", name="Noise automatic")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".panel .values")).to_contain_text(re.compile(r"noise level(1[5-9]|2[0-5])\b"))


def test_every_method_gives_a_result(page):
    for method in reversed(methods()):  # it begins with the first
        page.evaluate("drawn.length = 0")
        choose_method(page, method.capitalize())
        for name, parameter in parameters_of(method, "edge-enhancing").items():
            expect(control(page, name)).to_have_count(0 if parameter.about.for_volumes else 1)
        page.wait_for_function("drawn.length > 0")
        settled(page)


def test_the_picture_follows_the_slider(page):
    choose_method(page, "Diffuse")
    settled(page)
    before = pixels(page)
    page.evaluate("drawn.length = 0")
    for k in range(12):
        slide(page, "Time slider", 0.3 + 0.05 * k)
    page.wait_for_function("drawn.some((each) => each.latency !== null)")
    settled(page)
    assert (pixels(page) != before).any()
    drawn = page.evaluate("drawn")
    stamps = [each["stamp"] for each in drawn if each.get("stamp")]
    assert stamps == sorted(stamps)
    expect(control(page, "time").locator(".number")).to_have_value("72.2")


def test_a_picture_that_was_replaced_is_no_error(page, server):
    asked = [url for url in page.asked if "/explorer/" in url]
    assert asked
    gone = re.sub(r"\d+$", "0", asked[-1])
    assert page.evaluate("(url) => fetch(url).then((answer) => answer.status)", gone) == 204
    last = page.evaluate("(url) => fetch(url).then((answer) => answer.status)", asked[-1])
    assert last == 200


def test_models_bring_their_own_controls(page):
    choose_method(page, "Diffuse")
    page.get_by_label("Model").select_option("coherence-enhancing")
    for name in ("contrast", "sigma", "rho", "min_diffusivity"):
        expect(control(page, name)).to_be_visible()
    settled(page)
    page.get_by_label("Model").select_option("homogeneous")
    expect(control(page, "rho")).to_have_count(0)
    settled(page)


def test_the_divider_by_mouse_and_keyboard(page):
    divider = page.get_by_role("slider", name="Divider between before and after")
    box = page.locator(".stage").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 300, steps=4)
    page.mouse.up()
    expect(divider).to_have_attribute("aria-valuenow", "25")
    divider.press("ArrowRight")
    expect(divider).to_have_attribute("aria-valuenow", "27")


def test_zoom_pan_and_flicker(page):
    stage = page.locator(".stage")
    stage.hover()
    fitted = pixels(page)
    page.mouse.wheel(0, -600)
    page.wait_for_timeout(100)
    zoomed = pixels(page)
    assert (zoomed != fitted).any()
    expect(page.locator(".readout")).to_contain_text("%")
    page.keyboard.down("f")
    expect(page.locator(".tag.before")).to_have_text("after")
    expect(page.locator(".tag.after")).to_have_text("before")
    assert (pixels(page) != zoomed).any()
    page.keyboard.up("f")
    expect(page.locator(".tag.after")).to_have_text("after")
    assert (pixels(page) == zoomed).all()
    page.keyboard.down("f")
    expect(page.locator(".tag.before")).to_have_text("after")
    page.evaluate("window.dispatchEvent(new Event('blur'))")  # the key will be released elsewhere
    expect(page.locator(".tag.before")).to_have_text("before")
    page.get_by_role("button", name="Fit").click()
    page.wait_for_timeout(200)
    assert (pixels(page) == fitted).all()


def test_the_difference(page):
    page.get_by_role("button", name="Difference").click()
    expect(page.locator(".tag.after")).to_contain_text("white is +")
    page.keyboard.press("d")
    expect(page.locator(".tag.after")).to_have_text("after")
    page.get_by_role("button", name="After", exact=True).click()
    page.keyboard.press("d")
    expect(page.locator(".tag.after")).to_contain_text("white is +")
    page.keyboard.press("d")
    expect(page.locator(".tag.after")).to_have_text("after")
    expect(page.get_by_role("button", name="After", exact=True)).to_have_attribute("aria-pressed", "true")


def test_the_status_is_about_the_image_that_is_shown(page, tmp_path):
    missing = np.random.default_rng(0).random((40, 50))
    missing[3, 4] = np.nan
    page.set_input_files("#open-file", aniso.io.write(tmp_path / "missing.npy", missing))
    expect(page.get_by_role("alert")).to_contain_text("Choose Inpaint")
    expect(page.locator(".status")).to_have_text("missing.npy: 40 × 50, float64")
    choose_method(page, "Inpaint")
    settled(page)
    expect(page.locator(".error")).to_be_hidden()


def test_overlays(page):
    plain = pixels(page)
    yellow = [0xFF, 0xD1, 0x66]  # lines of ellipses
    assert not (plain.reshape(-1, 4)[:, :3] == yellow).all(axis=1).any()
    page.get_by_role("button", name="Tensors").click()
    wait_until(lambda: (pixels(page).reshape(-1, 4)[:, :3] == yellow).all(axis=1).sum() > 500)
    page.get_by_role("button", name="Tensors").click()
    wait_until(lambda: (pixels(page) == plain).all())
    page.get_by_role("button", name="Stopped flow").click()

    def reddish():
        red, green, blue, _ = pixels(page).reshape(-1, 4).T.astype(int)
        return (red - np.maximum(green, blue) > 40).sum()

    wait_until(lambda: reddish() > 500)
    expect(page.get_by_role("img", name=re.compile("Histogram of gradients.*contrast"))).to_be_visible()


def test_the_film_plays_and_a_time_can_be_taken_from_it(page):
    choose_method(page, "Diffuse")
    settled(page)
    page.get_by_role("button", name="Play the scale space").click()
    expect(page.locator(".film output")).to_contain_text("of 10", timeout=WAIT)
    expect(page.get_by_role("button", name="Play the scale space")).to_be_visible(timeout=WAIT)
    film = page.get_by_role("slider", name="Time in the scale space")
    film.evaluate("(slider) => { slider.value = 500; slider.dispatchEvent(new Event('input')); }")
    expect(page.locator(".film output")).to_have_text("t = 2.5 of 10")
    page.get_by_role("button", name="Use this time").click()
    expect(control(page, "time").locator(".number")).to_have_value("2.5")
    settled(page)


def test_a_film_that_is_asked_for_before_the_result_is_there(page):
    page.get_by_label("Sample").select_option("fingerprint")
    expect(page.locator(".status")).to_contain_text("fingerprint")
    page.get_by_role("button", name="Difference").click()
    page.get_by_role("button", name="Play the scale space").click()
    expect(page.locator(".film output")).to_have_text(re.compile(r"t = \S+ of [1-9]"))
    expect(page.locator(".tag.after")).to_have_text(re.compile("^t = "))  # and not the difference
    settled(page)
    expect(page.get_by_role("button", name="Play the scale space")).to_be_visible()  # it has come to its end
    expect(page.locator(".error")).to_be_hidden()


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
    box = page.locator(".stage").bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 300, steps=6)
    page.mouse.up()
    unknown = page.locator(".panel .values dd").first
    expect(unknown).to_have_text(re.compile(r"^[1-9]\d{2,3}$"), timeout=WAIT)
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


def test_a_refused_value_is_told(page):
    choose_method(page, "Diffuse")
    settled(page)  # other methods have a sigma too
    number = control(page, "sigma").locator(".number")
    number.fill("-2")
    number.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Sigma must")
    number.fill("1.5")
    number.press("Enter")
    settled(page)
    expect(page.locator(".error")).to_be_hidden()


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


def test_the_stencil_tab(page):
    page.get_by_role("button", name="Stencil", exact=True).click()
    title = page.get_by_role("heading", name=re.compile("Ring test: .* changed"))
    expect(title).to_be_visible()
    sharp = title.text_content()
    page.get_by_label("Named member").select_option("standard")
    expect(title).not_to_have_text(sharp)
    limits = page.locator(".figures")
    expect(limits).to_contain_text("τ ≤ 0.3333")
    slide(page, "Alpha slider", 0.5)
    expect(limits).to_contain_text("τ ≤ 0.4")
    page.get_by_role("button", name="Use this stencil for the image").click()
    page.get_by_role("button", name="Image", exact=True).click()
    expect(page.locator(".panel").first).to_contain_text("Stencil α = 0.25, γ = 0")
    settled(page)


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
        threads = figure("Threads")
        tab.set_input_files("#open-file", path)
        expect(tab.locator(".status")).to_contain_text("large.npy", timeout=WAIT)
        full = figure("VmRSS")
    context.close()
    wait_until(lambda: figure("VmRSS") <= full - 10_000 and figure("Threads") < threads)


def test_everything_can_be_reached_by_keyboard_and_has_a_name(page):
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('.explorer button, .explorer input, .explorer select')]
            .filter((each) => each.checkVisibility())
            .filter((each) => !each.labels?.length && !each.getAttribute('aria-label'))
            .filter((each) => !each.textContent.trim())
            .map((each) => each.outerHTML)"""
    )
    assert nameless == []
    focused = "(({ activeElement: on }) => on.getAttribute('aria-label') || on.textContent.trim())(document)"
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate(focused))
    for name in ("Denoise", "Sample", "Noise slider", "Compare", "Play the scale space", "Copy as Python"):
        assert name in reached, (name, reached)
    assert "Divider between before and after" in reached


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_windows_light_and_dark(browser, server, scheme):
    context = browser.new_context(viewport={"width": 400, "height": 800}, color_scheme=scheme)
    with opened(context, server[0]) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") <= 400
        assert tab.locator(".stage").bounding_box()["width"] > 350
        paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = sum(map(int, re.findall(r"\d+", paper)[:3])) / 3
        assert (brightness < 64) == (scheme == "dark")
    context.close()


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_an_end_with_an_open_tab_leaves_no_files_behind(browser, files, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with explorer() as (address, process, said):
        context = browser.new_context()
        tab = context.new_page()
        tab.goto(address)
        tab.set_input_files("#open-file", files / "shapes.png")
        expect(tab.locator(".status")).to_contain_text("shapes.png")
        (folder,) = tmp_path.glob("aniso-explorer-*")
        wait_until(lambda: list(folder.iterdir()) == [])  # what was uploaded is not needed any more
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(60) == 0
        context.close()
    assert list(tmp_path.glob("aniso-explorer-*")) == []
    assert said[1:] == ["The explorer was stopped.\n"]  # on both streams
