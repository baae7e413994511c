"""The views on a fleet of robots: order, filters, links, time ranges, keys, narrow screens, the printer."""

import re
import urllib.parse

import pytest
import scenes
from conftest import VIEWS, names, open_with_keys, rows, settle, wait_rows
from playwright.sync_api import expect


def fragment(page):
    view, _, query = page.evaluate("location.hash").partition("?")
    return view, {key: values[0] for key, values in urllib.parse.parse_qs(query).items()}


@pytest.mark.quick
def test_overview_is_worst_first(open_page, serve):
    page = open_page(serve().url)
    wait_rows(page, 14)
    assert names(page)[0].startswith("keep_distance")  # critical, without an owner
    assert names(page)[1].startswith("docking_finishes")  # violated, in hands
    assert [row[0] for row in rows(page)][2:4] == ["inconclusive", "no verdict"]
    assert {row[0] for row in rows(page)[4:]} == {"satisfied"}
    assert rows(page)[0][5] == "2 of 48"
    expect(page.locator("#open-incidents")).to_have_text("1")


def test_new_violation_comes_to_the_top(open_page, serve):
    fake = serve()
    page = open_page(fake.url)
    wait_rows(page, 14)
    fake.set("speed_limit", "violated")
    page.wait_for_function("() => [...document.querySelectorAll('.rows .row')].find((r) => r.getAttribute('aria-rowindex') === '2').textContent.includes('speed_limit')")
    expect(page.locator("#open-incidents")).to_have_text("2")


@pytest.mark.quick
def test_change_loads_the_rows_of_its_property_only(open_page, serve):
    fake = serve()
    page = open_page(fake.url)
    settle(page)
    fake.requests.clear()
    for verdict in ("violated", "satisfied", "violated"):
        fake.set("lidar_alive", verdict)
        page.wait_for_timeout(1000)
    row = page.locator(".rows .row", has_text="lidar_alive")
    expect(row).to_contain_text("3×")  # once before
    queries = [urllib.parse.parse_qs(path.partition("?")[2]) for path in fake.requests if "overview" in path and "width=0" in path]
    assert queries and all(query["properties"] == ['["lidar_alive"]'] for query in queries)
    expect(page.get_by_label("Severity").locator("option")).to_have_count(5)  # the values of all properties


def test_filters_stay_in_the_address(open_page, serve):
    fake = serve()
    page = open_page(fake.url)
    wait_rows(page, 14)
    page.get_by_role("searchbox").fill("SAF-0")
    wait_rows(page, 4)
    page.get_by_label("Severity").select_option("critical")
    page.get_by_role("button", name=re.compile("satisfied")).click()
    wait_rows(page, 2)
    assert fragment(page) == ("#/overview", {"search": "SAF-0", "severity": "critical", "verdict": "satisfied"})
    again = open_page(page.url)
    wait_rows(again, 2)
    assert names(again) == names(page)
    page.get_by_label("Network").select_option("mqtt")
    wait_rows(page, 0)
    expect(page.locator("main [role=status]")).to_have_text("0 of 14 properties")


def test_links_keep_the_time_range(open_page, serve):
    fake = serve()
    page = open_page(fake.url)
    wait_rows(page)
    page.get_by_label("Length of the time range").select_option("1800")
    page.get_by_role("link", name="keep_distance").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("keep_distance")
    assert fragment(page) == ("#/property/keep_distance", {"range": "1800"})
    page.go_back()
    assert fragment(page) == ("#/overview", {"range": "1800"})


@pytest.mark.quick
def test_property_shows_text_values_signals_and_instances(open_page, serve):
    page = open_page(f"{serve().url}#/property/keep_distance")
    expect(page.locator(".annotated")).to_contain_text("property keep_distance for each robot in scan.robot")
    expect(page.locator(".margin .live-value")).to_have_count(2)
    expect(page.locator(".chart h3")).to_have_text(["Verdict", "Robustness", "scan.distance", "velocity.speed"])
    assert re.fullmatch(r"scan.distance: [−0-9.]+ to [0-9.]+", page.locator(".chart-number .plot").first.get_attribute("aria-label"))
    wait_rows(page)
    assert [row[:2] for row in rows(page)[:3]] == [["violated", "robot=7"], ["violated", "robot=31"], ["satisfied", "robot=1"]]
    expect(page.locator(".instances-part .note")).to_have_text("48, 2 violated")


def test_instances_are_searched_and_chosen(open_page, serve):
    fake = serve()
    page = open_page(f"{fake.url}#/property/keep_distance")
    page.get_by_label("Search parameters").fill("31")
    wait_rows(page, 1)
    page.locator(".instance-list .rows .row:not([hidden])").click()
    expect(page.locator(".selection")).to_contain_text("robot=31")
    assert fragment(page)[1]["instance"] == '{"robot":31}'
    page.wait_for_timeout(300)
    assert any("parameters=%7B%22robot%22%3A31%7D" in path for path in fake.requests)
    page.get_by_role("button", name="All instances").click()
    expect(page.locator(".selection")).to_be_empty()


def test_violation_is_explained_in_the_plot(open_page, serve):
    page = open_page(f"{serve().url}#/property/keep_distance?range=1800")
    page.locator(".violation").nth(1).click()
    expect(page.locator(".explanation tbody tr")).to_have_count(4)
    expect(page.locator(".explanation")).to_contain_text("scan.distance")
    view, query = fragment(page)
    assert {"violation", "from", "until"} <= query.keys()
    again = open_page(page.url)
    expect(again.locator(".violation[aria-expanded=true]")).to_have_count(1)


def test_zoom_by_keys_and_dragging(open_page, serve):
    page = open_page(f"{serve().url}#/property/keep_distance")
    expect(page.locator(".uplot")).to_have_count(4)
    page.keyboard.press("+")
    assert fragment(page)[1] == {"range": "300"}
    page.keyboard.press("ArrowLeft")
    query = fragment(page)[1]
    assert float(query["until"]) - float(query["from"]) == pytest.approx(300, abs=0.01)
    box = page.locator(".chart-number .u-over").first.bounding_box()
    y = box["y"] + 20
    page.mouse.move(box["x"] + box["width"] * 0.25, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=4)
    page.mouse.up()
    query = fragment(page)[1]
    assert float(query["until"]) - float(query["from"]) == pytest.approx(75, abs=2)
    page.keyboard.press("0")
    assert "until" not in fragment(page)[1]


def test_overview_zooms_by_dragging_and_does_not_open_a_row(open_page, serve):
    fake = serve()
    page = open_page(fake.url)
    wait_rows(page)
    box = page.locator(".rows .row:not([hidden]) .lane").nth(3).bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 10, steps=4)
    page.mouse.up()
    view, query = fragment(page)
    assert view == "#/overview" and float(query["until"]) - float(query["from"]) == pytest.approx(300, abs=5)
    page.wait_for_timeout(400)
    assert any(int(width) > 240 for path in fake.requests for width in re.findall(r"overview.*width=(\d+)", path))


def test_everything_can_be_done_with_keys(open_page, serve):
    page = open_page(serve().url)
    wait_rows(page)
    open_with_keys(page, "lidar")
    expect(page.get_by_role("heading", level=1)).to_have_text("lidar_alive")
    for key, text in [("2", "Incidents"), ("4", "Losses"), ("1", "Overview")]:
        page.keyboard.press(key)
        expect(page.locator("nav [aria-current]")).to_contain_text(text)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keys and signs")
    page.get_by_label("Use single keys").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    expect(page.locator("nav [aria-current]")).to_contain_text("Overview")


def test_focus_stays_on_the_navigation_and_leaves_views_that_go(open_page, serve):
    page = open_page(serve().url)
    wait_rows(page)
    page.get_by_role("link", name="Topics").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("grid", name="Topics")).to_be_visible()
    assert page.evaluate("document.activeElement.textContent") == "Topics"
    page.get_by_role("link", name="Overview").click()
    page.get_by_role("link", name="lidar_alive").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("lidar_alive")
    assert page.evaluate("document.activeElement.id") == "main"


def test_rows_are_chosen_with_arrows(open_page, serve):
    page = open_page(serve().url)
    wait_rows(page)
    page.get_by_role("grid").focus()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    # Rows are drawn with the next frame.
    row = page.locator("[aria-rowindex='4']")
    expect(row).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("grid")).to_have_attribute("aria-activedescendant", row.get_attribute("id"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("motor_temperature")


def test_times_are_local_or_utc(open_page, serve):
    at = 1_795_939_212.5  # 2026-11-29 08:00:12.5 UTC
    page = open_page(f"{serve(at=at).url}#/losses")
    wait_rows(page)
    assert rows(page)[0][3] == "08:55:12.300"
    page.keyboard.press("u")
    expect(page.locator("#zone")).to_have_text("UTC")
    page.wait_for_timeout(100)
    assert rows(page)[0][3] == "07:55:12.300"
    page.reload()
    expect(page.locator("#zone")).to_have_text("UTC")


@pytest.mark.quick
def test_topic_shows_its_last_message_as_a_tree(open_page, serve):
    page = open_page(f"{serve().url}#/topics")
    wait_rows(page, 10)
    assert "never" in page.locator(".rows").inner_text()
    page.get_by_role("link", name="scan").click()
    tree = page.locator(".tree")
    expect(tree).to_contain_text("lidar_front")
    tree.get_by_text("ranges").click()
    expect(tree.locator(".tree-body .tree-body > .tree-leaf")).to_have_count(100)
    tree.get_by_role("button", name="156 more").click()
    expect(tree.locator(".tree-body .tree-body > .tree-leaf")).to_have_count(200)
    page.wait_for_timeout(1500)
    expect(tree.locator(".tree-body .tree-body > .tree-leaf")).to_have_count(200)  # an opened branch stays


def test_topic_shows_its_publishers_where_they_are_known(open_page, serve):
    def scene(now):
        fleet = scenes.fleet(now)
        fleet.topics[0]["publishers"], fleet.topics[1]["publishers"] = 1, 2
        return fleet

    page = open_page(f"{serve(scene).url}#/topics")
    wait_rows(page, 10)
    texts = "\n".join(page.locator(".rows .row:not([hidden]) .notes").all_inner_texts())
    assert texts.count(", 1 publisher\n") == 1 and texts.count(", 2 publishers\n") == 1
    assert texts.count("publisher") == 2, "it is not known of other topics"


@pytest.mark.quick
def test_incident_is_acknowledged_and_silenced(open_page, serve):
    fake = serve(may_act=True)
    page = open_page(f"{fake.url}#/incidents")
    first = page.locator(".incident").first
    expect(first).to_contain_text("no owner")
    first.get_by_role("button", name="Acknowledge").click()
    page.get_by_label("Your name").fill("day shift")
    page.get_by_label("Comment").fill("looked at it")
    page.get_by_role("dialog").get_by_role("button", name="Acknowledge").click()
    expect(page.locator(".incident", has_text="keep_distance")).to_contain_text("day shift")
    parts, body = fake.posts[-1]
    assert parts[-1] == "acknowledgement" and body == {"operator": "day shift", "comment": "looked at it", "until": None, "replace": False}
    page.locator(".incident", has_text="keep_distance").get_by_role("button", name="Silence").click()
    page.get_by_role("dialog").get_by_role("button", name="Silence").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert fake.posts[-1][1]["parameters"] == {"robot": 7} and fake.posts[-1][1]["operator"] == "day shift"


def test_refused_action_is_shown_in_its_dialog(open_page, serve):
    page = open_page(f"{serve(may_act=True).url}#/incidents", expect_errors=True)
    page.locator(".incident").nth(1).get_by_role("button", name="Take over").click()
    page.get_by_label("Your name").fill("day shift")
    page.get_by_role("dialog").get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("Night shift takes care of it")


def test_page_is_read_only_without_actions(open_page, serve):
    page = open_page(f"{serve().url}#/incidents")
    expect(page.locator(".incident")).to_have_count(2)
    expect(page.get_by_role("button", name="Acknowledge")).to_have_count(0)
    expect(page.locator("main")).to_contain_text("Read-only")


@pytest.mark.quick
def test_specification_shows_verdicts_and_lines(open_page, serve):
    page = open_page(f"{serve().url}#/specification?line=16")
    expect(page.locator(".is-target")).to_contain_text("property keep_distance")
    expect(page.locator(".is-target .badge")).to_have_text("violated")
    page.get_by_label("Search declarations").fill("lidar")
    expect(page.locator(".outline li:not([hidden])")).to_have_count(1)


@pytest.mark.parametrize("view", VIEWS)
def test_narrow_screens_do_not_scroll_sideways(open_page, serve, view):
    page = open_page(serve().url + view, viewport={"width": 360, "height": 640})
    page.wait_for_timeout(700)
    widths = page.evaluate("() => ['html', 'body', 'main', '.grid'].map((s) => document.querySelector(s)).filter(Boolean).map((e) => e.scrollWidth - e.clientWidth)")
    assert all(width <= 0 for width in widths), widths
    outside = page.evaluate("""() => [...document.querySelectorAll('main *')].filter((e) => { const b = e.getBoundingClientRect(); return b.width && b.right > innerWidth + 1 && !e.closest('.table, .source, .grid, .u-wrap') })
        .map((e) => e.outerHTML.slice(0, 80))""")
    assert not outside


def test_printed_page_shows_all_rows(open_page, serve):
    page = open_page(serve().url, color_scheme="dark", viewport={"width": 1280, "height": 400})
    wait_rows(page)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    shown = page.evaluate("() => [...document.querySelectorAll('.rows .row:not([hidden])')].length")
    colour = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--surface').trim()")
    assert (shown, colour) == (14, "#ffffff")
    assert len(page.pdf()) > 5000
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme ?? 'auto'") == "auto"


def test_unknown_property_and_address(open_page, serve):
    fake = serve()
    page = open_page(f"{fake.url}#/property/no_such", expect_errors=True)
    expect(page.locator("main [role=alert]")).to_contain_text("There is no property `no_such`")
    expect(page.locator(".title-line .badge")).to_be_hidden()
    expect(page.get_by_role("heading", name="Instances")).to_be_hidden()
    page = open_page(f"{fake.url}#/nowhere/at?range=x&from=1&until=%E0%A4%A")
    expect(page.locator("main [role=alert]")).to_contain_text("There is no view `nowhere` here")
    page.locator("main").get_by_role("link", name="Overview").click()
    wait_rows(page, 14)
