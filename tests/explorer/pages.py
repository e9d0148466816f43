"""A page of the explorer in a browser, for tests."""

import base64
import contextlib

import numpy as np
import pytest
from playwright.sync_api import expect

from benchmarks.explorer_process import browser_path
from tests.processes import PATIENCE, wait_until

WAIT = 1000 * PATIENCE  # milliseconds
expect.set_options(timeout=WAIT)
needs_browser = pytest.mark.skipif(
    browser_path() is None,
    reason="there is no Chromium here; on Debian and Ubuntu: apt-get install chromium",
)


@contextlib.contextmanager
def opened(context, address):
    """A tab that shows its first result, and notes what it draws, asks for, and complains about."""
    context.set_default_timeout(WAIT)
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
    assert tab.wrong == [], tab.wrong
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


def choose_method(tab, name):
    """Choose a method, and wait until the explorer has done so: it replaces all controls."""
    method = tab.get_by_role("button", name=name, exact=True)
    method.click()
    expect(method).to_have_attribute("aria-pressed", "true", timeout=WAIT)


def type_number(tab, name, number, answer):
    """Type a number until it is answered: a control that is replaced meanwhile forgets what was typed."""
    for _ in range(20):
        field = control(tab, name).locator(".number")
        field.fill(number)
        field.press("Enter")
        try:
            answer(5000)
            return
        except AssertionError:
            continue
    answer(1)


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


def still_pixels(tab):
    """What the canvas shows when it has come to rest."""
    shown = [pixels(tab)]

    def rests():
        tab.wait_for_timeout(100)
        shown.append(pixels(tab))
        return (shown[-1] == shown[-2]).all()

    wait_until(rests)
    return shown[-1]


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
