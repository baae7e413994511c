"""The page never shows as present what it does not see: lost and silent connections, restarts, reloads, clocks, tokens."""

import re
import time

import pytest
import scenes
from conftest import PATIENCE, is_idle, names, rows, settle, wait_rows
from playwright.sync_api import expect

UNSEEN = "document.documentElement.classList.contains('unseen')"


def green(page):
    """Whether anything on the page has the colour of `satisfied`: computed colours of signs, and pixels of the timelines."""
    return page.evaluate("""() => {
        const isGreen = ([r, g, b]) => g > 90 && g > 1.5 * r && g > 1.15 * b;
        const parse = (c) => (c.match(/[\\d.]+/g) ?? [0, 0, 0]).map(Number);
        for (const e of document.querySelectorAll('main *')) {
            const style = getComputedStyle(e);
            for (const key of ['color', 'backgroundColor', 'fill']) {
                const value = parse(style[key]);
                if ((value.length < 4 || value[3] > 0) && isGreen(value) && e.getClientRects().length) return `${key} of ${e.className.baseVal ?? e.className}`;
            }
        }
        for (const canvas of document.querySelectorAll('main canvas')) {
            if (!canvas.width || !canvas.height) continue;
            const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200 && isGreen(data.subarray(i, i + 3))) return 'canvas';
        }
        return null;
    }""")


def wait_green(page, is_green):
    """Waits until something is green, or nothing."""
    end = time.monotonic() + PATIENCE / 1000
    while (green(page) is not None) != is_green:
        assert time.monotonic() < end, green(page)
        page.wait_for_timeout(200)


@pytest.mark.parametrize("view", ["#/overview", "#/property/speed_limit", "#/specification"])
def test_lost_connection_is_visible_and_nothing_stays_green(open_page, serve, view):
    fake = serve()
    page = open_page(fake.url + view, expect_errors=True)
    wait_green(page, True)
    fake.stop()
    expect(page.locator("#banner")).to_contain_text(re.compile(r"Connection lost since 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d"))
    expect(page.locator("#connection")).to_have_text("connection lost")
    wait_green(page, False)
    page.wait_for_timeout(1200)
    assert page.evaluate(UNSEEN) and green(page) is None
    fake.start()
    expect(page.locator("#banner")).to_be_hidden()
    wait_green(page, True)
    assert not page.evaluate(UNSEEN)


def test_silent_connection_is_lost(open_page, serve):
    fake = serve()
    page = open_page(fake.url, expect_errors=True)
    expect(page.locator("#connection")).to_have_text("live")
    fake.is_silent = True
    expect(page.locator("#banner")).to_contain_text("Nothing arrives from the monitor")
    assert page.evaluate(UNSEEN)
    fake.is_silent = False
    expect(page.locator("#connection")).to_have_text("live")


@pytest.mark.quick
def test_restarted_monitor_is_shown_from_its_new_state(open_page, serve):
    fake = serve()
    page = open_page(fake.url, expect_errors=True)
    wait_rows(page, 14)
    fake.stop()
    expect(page.locator("#banner")).to_be_visible()
    del fake.scene.properties["keep_distance"]
    fake.start()
    expect(page.locator("#banner")).to_be_hidden()
    wait_rows(page, 13)
    assert names(page)[0].startswith("docking_finishes")


def test_monitor_that_is_not_there_at_first(open_page, serve):
    fake = serve()
    fake.is_silent = False
    page = open_page(fake.url, expect_errors=True, setup=lambda page: page.route("**/api/**", lambda route: route.abort()))
    expect(page.locator("#banner")).to_contain_text("No connection to the monitor")
    # The page also connects by itself, and the button then goes away.
    page.get_by_role("button", name="Connect now").click()
    page.unroute("**/api/**")
    wait_rows(page, 14)


def test_reload_removes_the_property_that_is_open(open_page, serve):
    fake = serve()
    page = open_page(f"{fake.url}#/property/lidar_alive", expect_errors=True)
    expect(page.locator(".uplot")).to_have_count(2)
    del fake.scene.properties["lidar_alive"]
    fake.reset()
    expect(page.locator("main [role=alert]")).to_contain_text("The specification no longer has this property")
    assert page.locator(".plots-part").evaluate("(e) => e.classList.contains('gone')")


def test_end_of_the_run(open_page, serve):
    fake = serve()
    page = open_page(fake.url, expect_errors=True)
    settle(page, 0)
    fake.end()
    expect(page.locator("#banner")).to_contain_text("The run has ended")
    fake.stop()
    expect(page.locator("#banner")).to_contain_text("The run has ended")
    page.wait_for_timeout(1000)
    expect(page.locator("#banner")).to_contain_text("The run has ended")
    assert page.evaluate(UNSEEN)


def test_monitor_that_is_not_ready(open_page, serve):
    fake = serve()
    fake.reasons = ["zenoh is not connected"]
    page = open_page(fake.url)
    expect(page.locator("#banner")).to_contain_text("The monitor is not ready: zenoh is not connected")
    fake.reasons = []
    expect(page.locator("#banner")).to_be_hidden()


@pytest.mark.quick
def test_page_whose_store_is_behind_has_no_colours(open_page, serve):
    fake = serve()
    page = open_page(fake.url)
    wait_green(page, True)
    fake.behind_since = fake.now() - 5
    fake.reasons = ["the store v.db has not accepted verdicts: disk full"]
    expect(page.locator("#banner")).to_contain_text(re.compile(r"The page lags behind since 20\d\d-.*: all verdicts are from before"))
    expect(page.locator("#banner")).to_contain_text("disk full")
    expect(page.locator("#connection")).to_have_text("not ready")
    wait_green(page, False)
    page.wait_for_timeout(1200)
    assert page.evaluate(UNSEEN) and green(page) is None
    fake.behind_since, fake.reasons = None, []
    expect(page.locator("#banner")).to_be_hidden()
    wait_green(page, True)
    assert not page.evaluate(UNSEEN)


@pytest.mark.parametrize("shift", [-86_400, 86_400])
def test_clock_of_the_browser_is_a_day_off(open_page, serve, shift):
    page = open_page(serve(shift=shift).url)
    wait_rows(page)
    assert re.fullmatch(r"4[2-9] s|5\d s", rows(page)[0][3])
    left = page.evaluate("() => { const c = document.querySelector('canvas.lanes'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; return d.some((v, i) => i % 4 === 3 && v > 0) }")
    assert left  # timelines are in view


def test_verdicts_of_a_long_gone_monitor_get_no_younger(open_page, serve):
    """A machine that slept notices: its clock has advanced although nothing arrived."""
    fake = serve()
    page = open_page(fake.url, expect_errors=True)
    expect(page.locator("#connection")).to_have_text("live")
    fake.is_silent = True
    page.evaluate("() => { const now = Date.now; Date.now = () => now() + 3600e3 }")
    expect(page.locator("#connection")).to_have_text("connection lost")


@pytest.mark.quick
def test_token_comes_from_the_address_and_leaves_it(open_page, serve):
    fake = serve(token="s3cret")
    page = open_page(f"{fake.url}#/overview?token=s3cret&range=300")
    wait_rows(page)
    assert page.evaluate("location.hash") == "#/overview?range=300"
    assert all("s3cret" not in path for path in fake.requests)
    page.reload()
    wait_rows(page)
    assert page.context.cookies() == []


def test_requests_carry_the_credentials_of_the_browser(open_page, serve):
    """As a certificate for mutual TLS: the browser has one rule for certificates and cookies, of which the latter are seen here."""
    fake, sent = serve(), []

    def setup(page):
        page.context.add_cookies([{"name": "certificate", "value": "1", "url": fake.url}])
        page.on("request", lambda request: sent.append(request))

    page = open_page(fake.url, setup=setup)
    wait_rows(page)
    assert any("/api/v1/events" in request.url for request in sent)
    assert [request.url for request in sent if "certificate=1" not in request.all_headers().get("cookie", "")] == []


def test_wrong_token_is_answered_with_a_form(open_page, serve):
    fake = serve(token="s3cret")
    page = open_page(f"{fake.url}#token=wrong", expect_errors=True)
    expect(page.locator("#banner")).to_contain_text("A token is needed. The token is wrong.")
    page.get_by_label("Token").fill("s3cret")
    page.get_by_role("button", name="Connect").click()
    wait_rows(page)
    expect(page.locator("#banner")).to_be_hidden()


def test_recording_counts_from_its_begin(open_page, serve):
    fake = serve(lambda now: scenes.fleet(2000.0), at=2000.0)
    fake.kind = "check"
    page = open_page(fake.url)
    wait_rows(page)
    expect(page.locator("#connection")).to_have_text("recording")
    assert rows(page)[0][3] == "42 s"
    expect(page.locator(".range option:checked")).to_have_text("30 min 18 s")  # the whole recording
    page.goto(f"{fake.url}#/losses")
    wait_rows(page)
    assert rows(page)[0][3] == "1699.8 s"


def test_first_view_is_there_in_time(open_page, serve):
    fake = serve()
    page = open_page(fake.url)
    wait_rows(page)
    took = []
    for _ in range(5):
        page.reload()
        wait_rows(page)
        took.append(page.evaluate("() => performance.now()"))
    print(f"first view after {sorted(round(t) for t in took)} ms")
    assert not is_idle() or min(took) < 300
