"""The HTML report of the real program, opened from disk. RONDEL_PROGRAM is the program; without it, these tests are skipped.
RONDEL_PICTURES=write writes the picture of the documents."""

import io
import json
import os
import subprocess

import pytest
from conftest import names, open_with_keys, rows, settle, wait_rows
from PIL import Image
from playwright.sync_api import expect
from test_access import violations
from test_pictures import FOLDER, SIZE, TOLERATED, share_of_difference

PROGRAM = os.environ.get("RONDEL_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="RONDEL_PROGRAM is not set")

SPECIFICATION = """topic gear { report: int }
topic speed { value: float, mode: string }
topic door
@requirement("SYS-1") @requirement("SYS-2") @severity(critical)
property standstill = changed(gear.report) -> abs(speed.value) < 0.1
@requirement("SYS-3") @severity(warning)
property slow = speed.value < 50.0
property by_mode for each m in speed.mode = speed.value < 20.0 or speed.mode == "c"
@time(dense) property recent = once[0, 2 s] speed.value < 100.0
property closed = on(door) -> speed.value < 0.1
"""
BEGIN = 1_795_939_200  # 2026-11-29 08:00:00 UTC
HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>\u202e\"'"


def lines(messages):
    return "".join(json.dumps(message) + "\n" for message in messages)


def speed(i, value, **further):
    return {"topic": "speed", "time": BEGIN + i, "data": {"value": value, "mode": "ab"[i % 2], **further}}


def drive(missing=range(30, 35)):
    """A minute: the gear changes once at standstill and once at speed."""
    yield {"topic": "gear", "time": BEGIN, "data": {"report": 1}}
    for i in range(1, 61):
        if i in missing:
            continue
        value = 0.0 if i < 10 else 10.0 + 15 * (i % 20 > 15)
        yield {**speed(i, value), "origin": {"publisher": 1, "number": i}}
        if i in (5, 20):
            yield {"topic": "gear", "time": BEGIN + i + 0.5, "data": {"report": i}}


@pytest.fixture
def write(tmp_path):
    """Checks recordings, given as messages by file name, and returns the path of the report."""

    def write(specification=SPECIFICATION, **recordings):
        (tmp_path / "drive.rondel").write_text(specification)
        files = []
        for name, messages in (recordings or {"drive": drive()}).items():
            files.append(f"{name}.jsonl")
            (tmp_path / files[-1]).write_text(lines(messages))
        command = [PROGRAM, "check", "-q", "--report=html=report.html", "drive.rondel", *files]
        # Remarks have local times.
        environment = {**os.environ, "TZ": "UTC"}
        finished = subprocess.run(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120, check=False)
        assert finished.returncode in (0, 1, 4), finished.stderr
        return tmp_path / "report.html"

    return write


@pytest.fixture
def open_report(open_page, write):
    """Opens a report; it may request nothing but itself."""

    def open_report(address="", file=None, wait=True, **options):
        file = file or write()
        requests = []
        page = open_page(f"{file.as_uri()}{address}", setup=lambda page: page.on("request", lambda request: requests.append(request.url)), **options)
        if wait:
            settle(page, 300)
        page.requested = lambda: [url for url in requests if url.split("#")[0] != file.as_uri()]
        return page

    return open_report


@pytest.mark.quick
def test_report_opens_without_a_network(open_report):
    page = open_report()
    wait_rows(page, 5)
    expect(page.locator("#connection")).to_have_text("report")
    for view in ["#/losses", "#/specification", "#/recordings", "#/property/standstill"]:
        page.evaluate("(view) => { location.hash = view }", view)
        page.wait_for_timeout(300)
    assert page.requested() == []


def test_worst_property_is_first_and_filters_narrow(open_report, write):
    page = open_report(file=write(drive=drive(missing=())))
    wait_rows(page, 5)
    listed = rows(page)
    assert [row[:2] for row in listed[:2]] == [["violated", "standstillSYS-1, SYS-2"], ["violated", "by_mode"]]
    page.get_by_placeholder("Search names").fill("sys-3")
    wait_rows(page, 1)
    assert names(page)[0].startswith("slow")
    page.get_by_placeholder("Search names").fill("")
    page.get_by_label("Severity", exact=True).select_option("critical")
    wait_rows(page, 1)
    page.get_by_label("Severity", exact=True).select_option("")
    page.get_by_label("Requirement", exact=True).select_option("SYS-2")
    wait_rows(page, 1)
    page.get_by_label("Requirement", exact=True).select_option("")
    page.locator(".chip.is-none").click()
    wait_rows(page, 1)
    assert "closed" in names(page)[0] and "no message came on `door`" in names(page)[0]


def test_explanation_is_marked_in_the_plots(open_report):
    page = open_report("#/property/standstill")
    canvas = page.locator(".chart", has_text="speed.value").first.locator("canvas")
    before = canvas.evaluate("(c) => c.toDataURL()")
    page.locator(".violation").first.click()
    why = page.locator(".explanation")
    expect(why).to_contain_text("abs(speed.value) < 0.1")
    expect(why).to_contain_text("false")
    page.wait_for_timeout(500)
    titles = page.locator(".chart h3").all_text_contents()
    assert titles[0] == "Verdict" and {"gear.report", "speed.value"} <= set(titles)
    label = page.locator(".chart", has_text="gear.report").first.locator(".plot").get_attribute("aria-label")
    assert label.startswith("gear.report: "), label
    selected = page.url
    assert "violation=1" in selected and canvas.evaluate("(c) => c.toDataURL()") != before
    # The same range without the mark.
    page.evaluate("(hash) => { location.hash = hash }", "#" + selected.split("#")[1].replace("violation=1&", ""))
    expect(why).to_have_count(0)
    page.wait_for_timeout(300)
    unmarked = canvas.evaluate("(c) => c.toDataURL()")
    page.go_back()
    expect(why).to_be_visible()
    page.wait_for_timeout(300)
    assert canvas.evaluate("(c) => c.toDataURL()") != unmarked


def test_signals_of_an_instance_are_those_of_its_violation(open_report):
    page = open_report("#/property/by_mode")
    page.locator(".violation", has_text='"a"').first.click()
    page.wait_for_timeout(500)
    expect(page.locator(".explanation tr", has_text="speed.mode").first.locator("b")).to_have_text('"a"')
    titles = page.locator(".chart h3").all_text_contents()
    assert any('["a"]' in title for title in titles) and not any('["b"]' in title for title in titles)


def test_losses_are_shown(open_report):
    page = open_report("#/losses")
    wait_rows(page)
    assert "recent" in rows(page)[0][0] and rows(page)[0][1] == "messages missed"
    page.evaluate("() => { location.hash = '#/property/recent' }")
    expect(page.get_by_text("Shaded: the monitor was blind.")).to_be_visible()


def test_environment_and_specification_are_shown(open_report):
    page = open_report("#/recordings")
    facts = page.locator(".environment")
    expect(facts).to_contain_text("rondel check -q drive.rondel drive.jsonl")
    expect(facts).to_contain_text("Rondel 0.")
    expect(page.locator(".table")).to_contain_text("messages")
    page.evaluate("() => { location.hash = '#/specification' }")
    expect(page.locator(".source")).to_contain_text("property standstill")
    expect(page.locator('[data-line="5"] .badge')).to_have_text("violated")


def test_specification_of_several_files_is_one_text(open_report, write, tmp_path):
    (tmp_path / "limits.rondel").write_text("topic speed { value: float, mode: string }\nproperty slow = speed.value < 1.0\n")
    page = open_report("#/specification", file=write('use "limits.rondel"\n\nproperty still = speed.value < 3.0\n', drive=[speed(i, 2.0) for i in range(3)]))
    signs = page.locator(".code-row", has=page.locator(".badge"))
    expect(signs).to_have_count(2)
    assert [text.split("property ")[1].split(" ")[0] for text in signs.all_text_contents()] == ["slow", "still"]
    page.get_by_role("link", name="still", exact=True).click()
    page.get_by_role("link", name="of the specification").click()
    expect(page.locator(".is-target")).to_contain_text("property still")


def test_recordings_are_chosen(open_report, write):
    fast = [speed(i, 60.0) for i in range(5)]
    file = write(drive=drive(), fast=fast, door=[{"topic": "door", "time": BEGIN}])
    page = open_report(file=file)
    assert page.url.endswith("#/recordings")
    page.get_by_role("link", name="fast.jsonl").click()
    wait_rows(page, 5)
    page.locator(".chip.is-violated[aria-pressed]").click()
    page.wait_for_timeout(500)
    assert any(name.startswith("slow") for name in names(page))
    page.get_by_label("Recording", exact=True).select_option("0")
    expect(page.locator("#recording")).to_have_value("0")
    page.wait_for_function("() => [...document.querySelectorAll('.rows .row:not([hidden])')].some((row) => row.textContent.includes('violatedstandstill'))")
    assert "recording=" not in page.url
    page.evaluate("() => { location.hash = '#/overview?recording=99' }")
    expect(page.locator("p.problem")).to_contain_text("this is `drive.jsonl`")
    page.get_by_label("Recording", exact=True).select_option("1")
    expect(page.locator("p.problem")).to_have_count(0)


def test_address_of_an_unknown_property_shows_no_verdict(open_report):
    page = open_report("#/property/no_such", expect_errors=True)
    expect(page.locator("main [role=alert]")).to_contain_text("The report has no property `no_such`")
    expect(page.get_by_text("vacuous")).to_be_hidden()
    expect(page.get_by_role("heading", name="Instances")).to_be_hidden()


def test_time_of_violations_that_is_not_measured_says_so(open_report, write):
    specification = "topic speed { value: float, mode: string }\nproperty stops = speed.value > 9.0 -> eventually[0, 5 s] speed.value < 3.0\n"
    page = open_report(file=write(specification, drive=[speed(i, 20.0 if i < 30 else 0.0) for i in range(40)]))
    wait_rows(page, 1)
    assert rows(page)[0][3] == "–"
    expect(page.get_by_title("not measured", exact=False)).to_be_visible()
    expect(page.get_by_role("status").last).to_have_text("1 property")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", ["#/overview", "#/property/standstill?violation=1", "#/losses", "#/specification", "#/recordings"])
def test_views_keep_to_the_rules(open_report, view, theme):
    page = open_report(view, color_scheme=theme)
    page.wait_for_timeout(500)
    assert not violations(page)


@pytest.mark.parametrize("view", ["#/overview", "#/property/standstill?violation=1", "#/losses", "#/specification", "#/recordings"])
def test_narrow_views_are_readable(open_report, write, view):
    page = open_report(view, file=write(first_recording_with_a_long_name=drive(), second=drive()), viewport={"width": 360, "height": 640})
    page.wait_for_timeout(500)
    assert not violations(page)
    assert page.evaluate("() => ['html', 'body', 'main'].every((s) => { const e = document.querySelector(s); return e.scrollWidth <= e.clientWidth })")


def test_keys_reach_everything(open_report):
    page = open_report()
    wait_rows(page, 5)
    page.keyboard.press("2")
    expect(page.get_by_role("heading", name="Losses")).to_be_visible()
    page.keyboard.press("4")
    expect(page.get_by_role("heading", name="Recordings")).to_be_visible()
    page.keyboard.press("1")
    open_with_keys(page, " standstill ")
    expect(page.get_by_role("heading", level=1)).to_have_text("standstill")
    expect(page.get_by_role("heading", name="standstill")).to_be_visible()
    page.keyboard.press("?")
    expect(page.locator("#help")).to_contain_text("vacuous")
    page.keyboard.press("Escape")
    page.keyboard.press("+")
    page.keyboard.press("0")
    assert "from=" not in page.url and "range=" not in page.url


def test_printed_overview_has_every_explanation(open_report):
    page = open_report(color_scheme="dark")
    wait_rows(page, 5)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    printed = page.locator(".printed")
    expect(printed).to_contain_text("abs(speed.value) < 0.1")
    expect(printed).to_contain_text("rondel check")
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(printed).to_have_count(0)


def test_readers_without_scripts_see_a_table(open_report):
    page = open_report(wait=False, java_script_enabled=False)
    expect(page.get_by_role("cell", name="standstill")).to_be_visible()
    expect(page.locator(".plain .is-violated").first).to_have_text("violated")
    expect(page.locator("main")).to_be_hidden()


def test_hostile_texts_do_not_run(open_report, write):
    specification = f"topic speed {{ value: float, mode: string }}\n@requirement({json.dumps(HOSTILE, ensure_ascii=False)})\nproperty by_mode for each m in speed.mode = speed.value < 1.0 or speed.mode == {json.dumps(HOSTILE[:9])}\n"
    page = open_report(file=write(specification, drive=[speed(i, 2.0, mode=HOSTILE) for i in range(3)]))
    wait_rows(page, 1)
    page.get_by_role("link", name="by_mode").click()
    page.locator(".violation").first.click()
    expect(page.locator(".why")).to_be_visible()
    for view in ["#/specification", "#/recordings", "#/losses"]:
        page.evaluate("(view) => { location.hash = view }", view)
        page.wait_for_timeout(200)
    assert page.evaluate("() => window.hacked") is None
    assert page.locator("img").count() == 0 and page.requested() == []


def test_no_other_script_runs(open_report):
    page = open_report(expect_errors=True)
    page.evaluate("""() => { const script = document.createElement('script'); script.textContent = 'window.hacked = 1'; document.head.append(script);
        const image = document.createElement('img'); image.setAttribute('onerror', 'window.hacked = 2'); image.src = 'data:,'; document.body.append(image) }""")
    page.wait_for_timeout(300)
    assert page.evaluate("() => window.hacked") is None


def test_a_thousand_violations_are_a_small_file(open_report, write):
    limits = "".join(f"property p{i} = speed.value < {i}.5\n" for i in range(50))
    specification = f"topic speed {{ value: float, mode: string }}\n{limits}"
    file = write(specification, drive=[speed(i, 60.123456 if i % 40 == 39 else 0.0) for i in range(900)])
    assert file.stat().st_size < 1_000_000
    page = open_report(file=file)
    wait_rows(page)
    page.evaluate("() => { location.hash = '#/property/p7' }")
    expect(page.locator(".violations-part")).to_contain_text("This report has the first 20 of 22 violations.")


def test_report_looks_as_in_the_documents(open_report, write):
    page = open_report("#/property/standstill", file=write(drive=drive(missing=())), timezone_id="UTC", viewport={"width": 1280, "height": 720})
    page.locator(".violation").first.click()
    page.wait_for_timeout(1500)
    page.mouse.move(0, 0)
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    file = FOLDER / "report-property.png"
    if os.environ.get("RONDEL_PICTURES") == "write":
        image.quantize(200, dither=Image.Dither.NONE).save(file, optimize=True)
    assert file.stat().st_size < SIZE
    known = Image.open(file).convert("RGB")
    assert known.size == image.size and share_of_difference(known, image) < TOLERATED
