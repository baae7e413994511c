"""Names and values that try to become markup, code or another address: they are shown, and nothing is executed."""

import urllib.parse

import pytest
import scenes
from conftest import names, settle, wait_rows
from playwright.sync_api import expect
from scenes import HOSTILE

NAME = urllib.parse.quote(HOSTILE[0], safe="")


def check(page, fake):
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.querySelectorAll('main img, main script, main iframe, main object, main svg [onload]').length") == 0
    assert page.evaluate("[...document.querySelectorAll('a')].every((a) => a.getAttribute('href').startsWith('#'))")
    assert page.evaluate("({}).polluted") is None and page.evaluate("Object.keys(Object.prototype).length") == 0
    assert all(path.startswith(("/api/v1/", "/")) and "onerror" not in path.partition("?")[0] for path in fake.requests if not path.startswith("/api"))


@pytest.mark.parametrize("view", ["overview", f"property/{NAME}", f"topics/{NAME}", "incidents", "losses", "specification", f"specification?line={NAME}", f"overview?search={NAME}&severity={NAME}&requirement={NAME}&network={NAME}&sort={NAME}", f"property/{NAME}?instance={NAME}&violation={NAME}&isearch={NAME}", f"{NAME}/{NAME}?range={NAME}"])
def test_nothing_is_executed(open_page, serve, view):
    fake = serve(scenes.hostile, may_act=True)
    page = open_page(f"{fake.url}#/{view}")
    settle(page, 900)
    check(page, fake)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_each_property_opens(open_page, serve, name):
    fake = serve(scenes.hostile)
    page = open_page(f"{fake.url}#/property/{urllib.parse.quote(name, safe='')}")
    expect(page.locator(".chart h3")).to_have_count(3)
    page.locator(".violation").first.click()
    expect(page.locator(".explanation")).to_be_visible()
    page.wait_for_timeout(300)
    check(page, fake)


@pytest.mark.quick
def test_names_are_shown_as_they_are(open_page, serve):
    page = open_page(serve(scenes.hostile).url)
    wait_rows(page, len(HOSTILE))
    shown = " ".join(names(page))
    assert "<img src=x onerror=" in shown and "<script>" in shown
    assert "\\u202egnirts" in shown and "\\u000abreak\\u0009tab\\u0000null" in shown  # direction and control characters are visible


def test_dialogs_show_names_as_they_are(open_page, serve):
    fake = serve(scenes.hostile, may_act=True)
    page = open_page(f"{fake.url}#/incidents")
    page.get_by_role("button", name="Silence").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    check(page, fake)


@pytest.mark.quick
def test_policy_blocks_what_a_mistake_would_let_in(open_page, serve):
    page = open_page(serve().url, expect_errors=True)
    page.evaluate("() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; document.body.append(s); const d = document.createElement('div'); d.setAttribute('onclick', 'window.hacked = 2'); document.body.append(d); d.click(); }")
    assert page.evaluate("window.hacked") is None


def test_huge_messages_stay_usable(open_page, serve):
    fake = serve()
    fake.scene.messages["scan"] = {"text": "x" * 10_000_000, "deep": nested(200), "wide": list(range(100_000)), "keys": {f"k{i}": i for i in range(20_000)}}
    page = open_page(f"{fake.url}#/topics/scan")
    expect(page.locator(".tree")).to_contain_text("10,000,000 characters")
    page.locator(".tree summary", has_text="wide").click()
    assert page.evaluate("document.querySelectorAll('.tree *').length") < 2000
    page.get_by_role("button", name="10,000,000 characters").click()
    assert page.evaluate("document.querySelector('.tree').textContent.length") < 40_000


def nested(depth):
    value = 1
    for _ in range(depth):
        value = {"a": value}
    return value


def test_answers_that_are_no_json(open_page, serve):
    fake = serve()
    page = open_page(fake.url, expect_errors=True)
    wait_rows(page, 14)
    for stream in list(fake.streams):
        stream.put("event: changes\ndata: {broken\n\nevent: <img>\ndata: []\n\n: comment\n\nid: 9\n\nevent: changes\ndata: {\"changes\":null}\n\n")
    fake.set("speed_limit", "violated")
    page.wait_for_function("() => document.querySelector('#open-incidents').textContent === '2'")
    page.route("**/api/v1/topics*", lambda route: route.fulfill(status=200, content_type="application/json", body="<html>"))
    page.goto(f"{fake.url}#/topics")
    page.wait_for_timeout(500)
    expect(page.locator("#connection")).to_have_text("live")
