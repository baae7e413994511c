"""Browser, pages and fake servers. RONDEL_CHROMIUM is the browser, RONDEL_PROGRAM the program for the test against it."""

import contextlib
import os
import pathlib

import pytest
from playwright.sync_api import expect, sync_playwright

import scenes
from fake import Fake

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[3]


def is_idle():
    """Whether the machine has done little else in the last minute: only then times by the clock have limits."""
    return os.getloadavg()[0] < (os.cpu_count() or 1)


# Milliseconds: other work on the machine slows the browser down.
PATIENCE = 30_000
expect.set_options(timeout=PATIENCE)
WIDE = {"width": 1280, "height": 800}
VIEWS = ["#/overview", "#/property/keep_distance", "#/topics/scan", "#/incidents", "#/losses", "#/specification"]


def pytest_configure(config):
    config.addinivalue_line("markers", "quick: one test of each kind, for `make test-page QUICK=1`")


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ.get("RONDEL_CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox", "--force-color-profile=srgb", "--font-render-hinting=none"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Opens pages; at the end of the test, none of them may have had an error that the test does not expect."""
    with contextlib.ExitStack() as stack:
        errors = []

        def open_page(address="", *, expect_errors=False, setup=None, **options):
            context = browser.new_context(**{"viewport": WIDE, "timezone_id": "Europe/Berlin", "locale": "en-GB", "color_scheme": "light", "reduced_motion": "reduce", **options})
            stack.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on("dialog", lambda dialog: (errors.append(f"dialog {dialog.message}"), dialog.dismiss()))
            if not expect_errors:
                page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
            if setup:
                setup(page)
            page.goto(address)
            return page

        open_page.errors = errors
        yield open_page
        assert not errors, errors


@pytest.fixture
def serve():
    """Starts fake servers."""
    with contextlib.ExitStack() as stack:

        def serve(scene=scenes.fleet, **options):
            fake = Fake(scene, **options).start()
            stack.callback(fake.stop)
            return fake

        yield serve


def rows(page):
    """The rows of a list that are in view, from the top."""
    return page.evaluate("""() => [...document.querySelectorAll('.rows .row:not([hidden])')]
        .sort((a, b) => a.getAttribute('aria-rowindex') - b.getAttribute('aria-rowindex')).map((row) => [...row.querySelectorAll('.cell')].map((cell) => cell.textContent))""")


def settle(page, milliseconds=1000):
    """Waits until the page is connected, and then for what it loads after that."""
    page.wait_for_function("() => document.querySelector('#connection').classList.contains('is-live')")
    page.wait_for_timeout(milliseconds)


def names(page):
    return [row[1] for row in rows(page)]


def wait_rows(page, count=None):
    page.wait_for_function("(n) => { const r = document.querySelectorAll('.rows .row:not([hidden])').length; return n === null ? r > 0 : r === n }", arg=count)


def open_with_keys(page, text):
    """Searches the overview for a property, and opens the only one that is found."""
    page.keyboard.press("/")
    page.keyboard.type(text)
    wait_rows(page, 1)
    page.keyboard.press("Escape")
    page.get_by_role("grid").focus()
    page.keyboard.press("Enter")
