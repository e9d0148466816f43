"""The explorer in a browser, from the outside: `aniso explore` runs on its own, Chromium clicks."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

import aniso
from aniso.explorer.choosing.choices import methods, parameters_of
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
    still_pixels,
    type_number,
)
from tests.processes import wait_until

pytestmark = [pytest.mark.slow, needs_browser]


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


def test_the_kind_of_noise_is_a_choice_and_a_note_says_why_nothing_changes(page):
    noise, values = control(page, "noise"), page.locator(".panel .values")
    kind = noise.get_by_role("combobox", name="Kind of noise")
    automatic = noise.get_by_role("button", name="Noise automatic")
    expect(kind).to_have_value("auto")
    kind.select_option("rician")
    expect(values).to_contain_text("Rician(")
    expect(automatic).to_have_attribute("aria-pressed", "true")
    settled(page)
    program, _ = copied_and_downloaded(page)
    assert "aniso.denoise(image, noise='rician')" in program
    expect(values).not_to_contain_text("note")
    noise.get_by_role("textbox").fill("0")
    noise.get_by_role("textbox").press("Enter")
    expect(kind).to_have_value("given")
    expect(values.locator("dt").last).to_have_text("note")
    expect(values.locator("dd").last).to_contain_text("the image is left unchanged")
    noise.get_by_role("button", name="Reset Noise").click()
    expect(kind).to_have_value("auto")


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


def test_the_learned_diffusion_hides_what_it_does_not_have(page):
    expect(page.get_by_label("Task", exact=True)).to_have_count(1)
    method = page.get_by_label("Method", exact=True)  # one control has this name
    expect(method).to_have_count(1)
    expect(method).to_have_value("auto")
    for chosen, shown in (("learned", 0), ("auto", 1)):
        method.select_option(chosen)
        for name in ("contrast", "time", "mix"):
            expect(control(page, name)).to_have_count(shown)
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
    wait_until(lambda: (pixels(page) != fitted).any())
    zoomed = still_pixels(page)
    expect(page.locator(".readout")).to_contain_text("%")
    page.keyboard.down("f")
    expect(page.locator(".tag.before")).to_have_text("after")
    expect(page.locator(".tag.after")).to_have_text("before")
    wait_until(lambda: (pixels(page) != zoomed).any())
    page.keyboard.up("f")
    expect(page.locator(".tag.after")).to_have_text("after")
    wait_until(lambda: (pixels(page) == zoomed).all())
    page.keyboard.down("f")
    expect(page.locator(".tag.before")).to_have_text("after")
    page.evaluate("window.dispatchEvent(new Event('blur'))")  # the key will be released elsewhere
    expect(page.locator(".tag.before")).to_have_text("before")
    page.get_by_role("button", name="Fit").click()
    wait_until(lambda: (pixels(page) == fitted).all())


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
    choose_method(page, "Upsample")
    settled(page)
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


def test_a_refused_value_is_told(page):
    choose_method(page, "Diffuse")
    settled(page)  # other methods have a sigma too
    alert = page.get_by_role("alert")
    type_number(page, "sigma", "-2", lambda limit: expect(alert).to_contain_text("Sigma must", timeout=limit))
    type_number(
        page, "sigma", "1.5", lambda limit: expect(page.locator(".error")).to_be_hidden(timeout=limit)
    )
    settled(page)


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
