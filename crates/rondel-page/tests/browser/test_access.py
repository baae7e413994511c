"""Rules of WCAG 2.2 AA by axe, in both themes, wide and narrow, also while the connection is lost."""

import pytest
import scenes
from conftest import HERE, VIEWS, settle
from playwright.sync_api import expect

AXE = HERE / "node_modules/axe-core/axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def violations(page):
    page.evaluate(AXE.read_text())
    result = page.evaluate("(tags) => axe.run(document, { runOnly: { type: 'tag', values: tags } })", RULES)
    return [f"{v['id']}: {v['help']}: {n['html'][:160]} {n['any'][0]['message'][:160] if n['any'] else ''}" for v in result["violations"] for n in v["nodes"]]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_views_keep_to_the_rules(open_page, serve, view, theme):
    page = open_page(serve(may_act=True).url + view, color_scheme=theme)
    settle(page, 1200)
    assert not violations(page)


@pytest.mark.parametrize("view", ["#/overview", "#/property/keep_distance?range=1800"])
def test_narrow_views_keep_to_the_rules(open_page, serve, view):
    page = open_page(serve().url + view, viewport={"width": 360, "height": 640})
    settle(page, 1200)
    assert not violations(page)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lost_connection_keeps_to_the_rules(open_page, serve, theme):
    fake = serve()
    page = open_page(fake.url, color_scheme=theme, expect_errors=True)
    settle(page, 800)
    fake.stop()
    expect(page.locator("#banner")).to_be_visible()
    page.wait_for_timeout(300)
    assert not violations(page)


@pytest.mark.quick
def test_dialogs_keep_to_the_rules(open_page, serve):
    page = open_page(f"{serve(may_act=True).url}#/incidents")
    page.get_by_role("button", name="Acknowledge").first.click()
    assert not violations(page)
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert not violations(page)


def test_verdicts_differ_without_colours(open_page, serve):
    """Every verdict has a shape and a word of its own, and bars of another height in timelines."""
    page = open_page(serve().url)
    settle(page, 800)
    signs = page.evaluate("() => [...document.querySelectorAll('.rows .row:not([hidden]) .verdict')].map((c) => [c.textContent, c.querySelector('use').getAttribute('href')])")
    assert len({tuple(sign) for sign in signs}) == 4 and len({sign[1] for sign in signs}) == 4
    heights = page.evaluate("""async () => { const { drawBar } = await import('./verdicts.js'); return ['violated', 'inconclusive', 'satisfied', 'none'].map((verdict) => {
        const canvas = document.createElement('canvas'); const c = canvas.getContext('2d'); drawBar(c, verdict, 0, 20, 0, 100);
        const { data } = c.getImageData(10, 0, 1, 100); let n = 0; for (let i = 3; i < data.length; i += 4) n += data[i] > 0; return n }) }""")
    assert heights == [100, 70, 28, 0]


def test_hostile_names_keep_to_the_rules(open_page, serve):
    page = open_page(serve(scenes.hostile).url)
    settle(page, 800)
    assert not violations(page)
