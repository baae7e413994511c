"""Results as notebooks show them."""

import copy
import html.parser
import json
import pickle

import pytest

import rondel
from rondel import _page

LEVEL = "topic tank { level: float }\nproperty low = tank.level < 40\n"
HOSTILE = "<img src=x onerror=alert(1)>&\"'</script>"
VOID = {"br", "img", "hr", "input", "meta"}


class Page(html.parser.HTMLParser):
    """Reads a page: its tags must be closed, and none of them may run a script."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert not any(name.startswith("on") for name, _ in attributes), attributes
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)


@pytest.fixture
def levels(tmp_path):
    def write(values, name="tank.jsonl"):
        path = tmp_path / name
        path.write_text("".join(f'{{"topic":"tank","time":{i},"level":{value}}}\n' for i, value in enumerate(values)))
        return path

    return write


def test_results_show_properties_violations_and_drawing(levels):
    page = Page(rondel.check(levels([38, 41, 39]), text=LEVEL, explain=True)._repr_html_())
    assert "✗ violated 1 property, 3 messages" in page.text
    assert all(part in page.text for part in ("low", "1.0 s", "tank.level = 41"))
    assert "robustness" not in page.text
    assert page.tags.count("table") == 2
    assert page.tags.count("svg") == 1
    assert page.tags.count("details") == 1


def test_verdicts_differ_by_marks_too():
    marks = [Page(_page.badge(verdict)).text for verdict in ("satisfied", "violated", "inconclusive", "vacuous")]
    assert marks == ["✓ satisfied", "✗ violated", "? inconclusive", "? vacuous"]


def luminance(colour):
    digits = colour.removeprefix("#")
    parts = [int(digit, 16) / 15 for digit in digits] if len(digits) == 3 else [byte / 255 for byte in bytes.fromhex(digits)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_verdicts_are_legible():
    for _, text, background in _page._BADGES.values():
        darker, lighter = sorted((luminance(text), luminance(background)))
        assert (lighter + 0.05) / (darker + 0.05) >= 5, (text, background)


def test_vacuous_property_does_not_look_satisfied(tmp_path):
    recording = tmp_path / "a.jsonl"
    recording.write_text('{"topic":"pose","time":1}\n{"topic":"pose","time":3}\n')
    page = Page(rondel.check(recording, text="topic estop\ntopic pose\nproperty halt = on(estop) -> on(pose)")._repr_html_())
    assert "? vacuous" in page.text
    assert "satisfied" not in page.text.split("estop")[0]


def test_robustness_is_shown_where_there_is_one(levels):
    results = rondel.check(levels([38, 41.5]), text=LEVEL.replace("property", "@robust property"))
    page = Page(results._repr_html_())
    assert "least robustness" in page.text
    assert "-1.5" in page.text


def test_first_of_many_violations_are_shown(levels):
    results = rondel.check(levels([38, 41] * 500), text=LEVEL)
    page = Page(results.violations._repr_html_())
    assert "The first 10 of 500 violations." in page.text
    assert page.tags.count("tr") == 11
    assert "The first 10 of 1,000 verdicts." in Page(results.verdicts._repr_html_()).text
    assert "no verdicts" in Page(rondel.check(levels([1]), text=LEVEL).violations._repr_html_()).text


def test_lists_of_verdicts_are_lists(levels):
    results = rondel.check(levels([38, 41]), text=LEVEL)
    assert results.verdicts == list(results.verdicts)
    assert results.violations == [results.verdicts[1]]
    assert pickle.loads(pickle.dumps(results.violations)) == results.violations
    assert copy.copy(results.violations) == results.violations


@pytest.mark.parametrize("name", [HOSTILE, "]]>\u2028\x85", "{0}%s\\", "ü" * 3000])
def test_hostile_values_are_escaped(tmp_path, name):
    recording = tmp_path / "a.jsonl"
    lines = ({"topic": "pose", "time": i, "name": name, "mode": name, "x": i} for i in range(4))
    recording.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = (
        "topic pose { name: string, mode: string, x: float }\n"
        '@robust @severity(high) property near for each name in pose.name = pose.mode != "" -> pose.x < 2'
    )
    results = rondel.check(recording, text=text, explain=True)
    assert results.is_violated
    for shown in (results, results.verdicts, results.violations, results.plot()):
        page = Page(shown._repr_html_())
        assert not {"script", "img"} & set(page.tags)
    assert len(results.violations._repr_html_()) < 10_000


def test_hostile_names_of_files_are_escaped(tmp_path):
    folder = tmp_path / "<script>alert(1)<"
    folder.mkdir()
    for name in ("a.jsonl", "<img src=x>.jsonl"):
        (folder / name).write_text('{"topic":"tank","time":1,"level":50}\n')
    page = Page(rondel.check(folder, text=LEVEL)._repr_html_())
    assert not {"script", "img"} & set(page.tags)
    assert "<img src=x>.jsonl" in page.text


def test_failed_drawing_leaves_the_table(levels):
    recording = levels([38, 41])
    results = rondel.check(recording, text=LEVEL)
    recording.unlink()
    page = Page(results._repr_html_())
    assert "No drawing: " in page.text
    assert "✗ violated" in page.text


def test_recording_without_messages(levels):
    page = Page(rondel.check(levels([]), text=LEVEL)._repr_html_())
    assert "? inconclusive 1 property, 0 messages" in page.text


def test_drawing_has_a_light_background(levels):
    drawing = rondel.check(levels([38, 41]), text=LEVEL).plot()
    assert "background:#fff" in drawing._repr_html_()


def test_summary_of_a_monitor_is_a_table():
    monitor = rondel.Monitor(LEVEL.replace("property", "@robust property"))
    assert "? inconclusive" in Page(monitor.summary()._repr_html_()).text
    monitor.push("tank", {"level": 41.5}, time=1.0)
    monitor.push("tank", {"level": float("nan")}, time=2.0)
    page = Page(monitor.summary()._repr_html_())
    for part in ("1 property, 2 messages", "✗ violated", "1.0 s", "-1.5"):
        assert part in page.text
    assert all(sentence in page.text for sentence in monitor.summary().not_evaluated)
