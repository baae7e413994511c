"""The playground: errors where they are, verdicts and plots at once, examples, limits, saving."""

import re
import urllib.parse

import pytest
from conftest import settle
from play import EXAMPLES, Play
from playwright.sync_api import expect
from scenes import HOSTILE
from test_access import violations

TEXT = "topic speed { value: float }\n\n// ä 💥\nproperty braking = speed.value <= 10\nproperty other = true\n"
WRONG = TEXT.replace("speed.value", "nothing.value")


def open_playground(open_page, serve, play, **options):
    fake = serve(playground=play)
    page = open_page(f"{fake.url}#/playground", **options)
    expect(page.locator(".judged > li").first).to_be_visible()
    return page


def editor(page):
    return page.get_by_role("textbox", name="Specification")


def wait_for_violation(page):
    expect(page.locator(".judged")).to_contain_text("violated 1×")


@pytest.mark.quick
def test_edited_text_has_verdicts_and_plots_at_once(open_page, serve):
    play = Play()
    page = open_playground(open_page, serve, play)
    editor(page).fill(TEXT)
    wait_for_violation(page)
    expect(page.locator(".judged > li")).to_have_count(2)
    expect(page.locator(".plots h3")).to_have_text(["braking", "other", "speed.value"])
    assert play.attempts[-1] == {"specification": TEXT, "recording": "drive.jsonl"}
    page.locator(".judged .violations button").click()
    expect(page.locator(".explanation")).to_contain_text("10.11")
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
    query = urllib.parse.parse_qs(page.evaluate("location.hash").partition("?")[2])
    assert query["violation"] == ["braking 0"]
    # The text stays while another view is open.
    page.goto(page.url.partition("#")[0] + "#/specification")
    page.goto(page.url.partition("#")[0] + "#/playground")
    expect(editor(page)).to_have_value(TEXT)
    page.get_by_role("button", name="Begin again").click()
    expect(editor(page)).not_to_have_value(TEXT)


@pytest.mark.quick
def test_error_is_underlined_where_it_is(open_page, serve):
    page = open_playground(open_page, serve, Play())
    editor(page).fill(WRONG)
    expect(page.locator(".is-wrong")).to_have_text("nothing")
    expect(editor(page)).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("list", name="Errors and warnings")).to_contain_text("error in line 4: unknown topic 'nothing'")
    expect(page.locator("main [role=status]")).to_contain_text("The specification has errors")
    assert page.locator(".judged").evaluate("(e) => e.classList.contains('outdated')")
    # The copy under the textarea has the same lines in the same places.
    area, mark = editor(page).bounding_box(), page.locator(".is-wrong").bounding_box()
    style = editor(page).evaluate("(e) => { const s = getComputedStyle(e); return [s.paddingTop, s.lineHeight, s.fontSize, s.fontFamily].join() }")
    assert style == page.locator(".editor-back").evaluate("(e) => { const s = getComputedStyle(e); return [s.paddingTop, s.lineHeight, s.fontSize, s.fontFamily].join() }")
    line = (mark["y"] + mark["height"] / 2 - area["y"] - 10) / 19.5
    assert 3 < line < 4, line
    page.locator(".diagnostic").click()
    selected = editor(page).evaluate("(e) => e.value.slice(e.selectionStart, e.selectionEnd)")
    assert selected == "nothing"
    page.keyboard.type("speed")
    expect(page.locator(".diagnostic")).to_have_count(0)
    expect(page.locator(".is-wrong")).to_have_count(0)
    wait_for_violation(page)
    # Keys of the page are letters here.
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme ?? null") is None


def test_marks_follow_the_scrolled_text(open_page, serve):
    page = open_playground(open_page, serve, Play())
    editor(page).fill("// line\n" * 300 + "x" * 500 + " nothing")
    expect(page.locator(".is-wrong")).to_have_count(1)
    editor(page).evaluate("(e) => e.scrollTo(1e6, 1e6)")
    page.wait_for_function("() => { const [a, b] = ['.editor textarea', '.editor-back'].map((s) => document.querySelector(s)); return a.scrollTop > 0 && a.scrollTop === b.scrollTop && a.scrollLeft === b.scrollLeft }")


def test_examples_are_clicked_through(open_page, serve):
    play = Play()
    page = open_playground(open_page, serve, play)
    expect(page.get_by_label("Messages, one in JSON a line")).to_be_hidden()
    page.get_by_role("button", name="Examples").click()
    expect(editor(page)).to_have_value(EXAMPLES[0]["specification"])
    expect(page.locator(".lead")).to_have_text(EXAMPLES[0]["about"])
    wait_for_violation(page)
    page.get_by_label("Messages, one in JSON a line").fill("other")
    page.get_by_role("button", name="Next example").click()
    expect(editor(page)).to_have_value(EXAMPLES[1]["specification"])
    expect(page.get_by_role("button", name="Next example")).to_be_disabled()
    page.go_back()
    expect(page.get_by_label("Messages, one in JSON a line")).to_have_value("other")
    page.wait_for_timeout(1000)
    assert {"specification": EXAMPLES[0]["specification"], "messages": "other"} in play.attempts


@pytest.mark.quick
def test_check_that_is_cut_off_says_so(open_page, serve):
    play = Play()
    page = open_playground(open_page, serve, play, expect_errors=True)
    play.status, play.reason = 422, "the check was cut off after 8 s"
    editor(page).fill(TEXT)
    expect(page.locator("main [role=alert]")).to_have_text(" The check was cut off after 8 s")
    # Another viewer: it tries again.
    play.status, play.reason = 429, "the playground checks for another viewer"
    editor(page).fill(TEXT + "\n")
    page.wait_for_timeout(2500)
    assert sum(attempt["specification"] == TEXT + "\n" for attempt in play.attempts) >= 2
    play.status = 200
    wait_for_violation(page)
    expect(page.locator("main [role=alert]")).to_have_count(0)


def test_text_is_saved_only_where_that_is_allowed(open_page, serve):
    play = Play(file="fleet.rondel")
    page = open_playground(open_page, serve, play)
    editor(page).fill(TEXT)
    page.get_by_role("button", name="Save to fleet.rondel").click()
    expect(page.locator("main [role=status]")).to_have_text(re.compile("Saved to fleet.rondel|messages in"))
    page.wait_for_timeout(300)
    assert play.saved == [TEXT]
    other = open_playground(open_page, serve, Play())
    expect(other.get_by_role("button", name=re.compile("Save"))).to_have_count(0)


def test_save_waits_for_a_check_of_another_viewer(open_page, serve):
    play = Play(file="fleet.rondel")
    page = open_playground(open_page, serve, play, expect_errors=True)
    editor(page).fill(TEXT)
    wait_for_violation(page)
    play.busy = 2
    page.get_by_role("button", name="Save to fleet.rondel").click()
    expect(page.locator("main [role=status]")).to_have_text("Saved to fleet.rondel.")
    expect(page.locator("main [role=alert]")).to_have_count(0)
    assert (play.busy, play.saved) == (0, [TEXT])


def test_run_has_no_playground(open_page, serve):
    page = open_page(serve().url)
    settle(page, 300)
    expect(page.get_by_role("link", name="Playground")).to_have_count(0)
    page.keyboard.press("6")
    assert "playground" not in page.evaluate("location.hash")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_are_not_executed(open_page, serve, text):
    play = Play(file=text, recordings=[text])
    page = open_playground(open_page, serve, play)
    result = play.result(TEXT)
    result["properties"][0].update(name=text, remark=text)
    result["properties"][0]["violations"][0].update(parameters=text, values={text: text}, evidence=[{"time": 6.0, "after": True, "topic": text, "values": {text: text, "__proto__": text}}])
    result["signals"][0].update(name=text)
    result["remarks"] = [text]
    result["diagnostics"] = [{**Play.diagnostic(text, re.search("", text)), "severity": "warning", "message": text, "help": text, "end": 10**9}]
    play.result = lambda _: result
    editor(page).fill(text)
    wait_for_violation(page)
    page.locator(".judged .violations button").click()
    expect(page.locator(".explanation")).to_be_visible()
    page.locator(".diagnostic").click()
    assert page.evaluate("window.hacked") is None


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [{"width": 1280, "height": 800}, {"width": 360, "height": 640}], ids=["wide", "narrow"])
def test_playground_keeps_to_the_rules(open_page, serve, theme, size):
    page = open_playground(open_page, serve, Play(), color_scheme=theme, viewport=size)
    editor(page).fill(TEXT)
    wait_for_violation(page)
    page.locator(".judged .violations button").click()
    page.wait_for_timeout(300)
    assert not violations(page)
    assert page.evaluate("() => ['html', 'body', 'main'].every((s) => { const e = document.querySelector(s); return e.scrollWidth <= e.clientWidth })")
    editor(page).fill(WRONG)
    expect(page.locator(".diagnostic")).to_have_count(1)
    assert not violations(page)
