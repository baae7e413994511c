"""A `dict` and the same message as text: equal verdicts and counts, whichever way the values take."""

import json
import math

import pytest

import rondel

#: Compares all types that a field of a message may have, and whether it is there.
SPEC = """
topic s { x: float, n: int, flag: bool }
property float_ = s.x < 10
property int_ = s.n < 10
property bool_ = s.flag
property known_ = known(s.x)
property later = s.x > 5 -> eventually[0, 2 s] s.n > 5
"""
VALUES = [
    0.0,
    -0.0,
    2.5,
    11.0,
    1e300,
    math.nan,
    math.inf,
    -math.inf,
    3,
    12,
    -(2**53),
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    10**400,
    True,
    False,
    None,
    "4",
    [1.0],
    {"x": 1.0},
]


def outcome(monitor, message, is_text):
    """Everything that a monitor reports on a message between two others."""
    reports = []
    for time, each in ((1.0, {"x": 1.0, "n": 1, "flag": True}), (2.0, message), (9.0, {"x": 2.0, "n": 6})):
        # An infinity is written as the decoder of rows reads it.
        text = json.dumps(each, separators=(",", ":")).replace("Infinity", "1e999")
        reports += monitor.push("s", text if is_text else each, time=time)
    monitor.finish()
    summary = monitor.summary()
    properties = [(own.name, own.verdict, own.violations, own.vacuous) for own in summary.properties]
    notices = [notice.json() for notice in monitor.notices()]
    return [report.json() for report in reports], properties, summary.checked, summary.not_evaluated, notices


@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_both_ways_agree(value, explain):
    for message in (
        {"x": value},
        {"n": value},
        {"flag": value},
        {"x": value, "n": value, "flag": value},
        {"flag": True, "n": 7, "x": value},
        {"other": value, "x": 3.0},
    ):
        both = [outcome(rondel.Monitor(SPEC, explain=explain), message, is_text) for is_text in (False, True)]
        assert both[0] == both[1], message


def test_names_that_are_not_interned_are_found():
    monitor = rondel.Monitor(SPEC)
    name = "".join(["fl", "ag"])
    [report] = [r for r in monitor.push("s", {name: False}, time=1.0) if r.property == "bool_"]
    assert report.verdict == "violated"


class Text(str):
    pass


class Number(float):
    pass


class Message(dict):
    pass


@pytest.mark.parametrize("message", [{Text("x"): 11.0}, {"x": Number(11.0)}, Message(x=11.0)], ids=repr)
def test_subclasses_count_as_their_base(message):
    monitor = rondel.Monitor("topic s { x: float }  property p = s.x < 10")
    [report] = monitor.push("s", message, time=1.0)
    assert report.verdict == "violated"


@pytest.mark.parametrize(
    "message, error",
    [
        ({"x": 1.0, 2: 3.0}, "the name of a field is not a string"),
        ({"x": 1.0, "other": object()}, "field 'other': a object has no form"),
    ],
)
def test_errors_in_what_is_not_read_are_raised(message, error):
    monitor = rondel.Monitor("topic s { x: float }  property p = s.x < 10")
    with pytest.raises(TypeError, match=error):
        monitor.push("s", message, time=1.0)
    # Nothing of it was evaluated.
    assert monitor.summary().checked == 0


def test_texts_that_are_no_unicode_are_refused():
    monitor = rondel.Monitor("topic s { x: float }  property p = s.x < 10")
    for message in ({"x": 1.0, "other": "\ud800"}, {"\ud800": 1.0}):
        with pytest.raises(UnicodeEncodeError):
            monitor.push("s", message, time=1.0)
    assert monitor.summary().checked == 0


def test_integers_of_many_digits_are_refused_where_they_are_not_read():
    monitor = rondel.Monitor("topic s { x: float }  property p = s.x < 10")
    with pytest.raises(ValueError, match="4300 digits"):
        monitor.push("s", {"x": 11.0, "other": 10**5000}, time=1.0)
    assert monitor.summary().checked == 0


@pytest.mark.parametrize(
    "others",
    [
        {"other": "a" * (17 << 20)},
        {"a" * (17 << 20): 1},
        {f"other{i}": "a" * 60_000 for i in range(300)},
        {f"other{i}": "\x01" * 60_000 for i in range(50)},
    ],
    ids=["value", "name", "many", "escaped"],
)
def test_large_messages_are_omitted_also_for_what_is_not_read(others):
    both = [outcome(rondel.Monitor(SPEC), {"x": 11.0, **others}, is_text) for is_text in (False, True)]
    assert both[0] == both[1]
    reports, _, checked, _, notices = both[0]
    assert checked == 2
    assert any('"oversized"' in notice for notice in notices), notices
    assert not any('"time":2' in report for report in reports), reports


def test_long_texts_within_the_limit_are_taken():
    for length in (10, 1 << 16, 1 << 20):
        monitor = rondel.Monitor("topic s { x: float }  property p = s.x < 10")
        [report] = monitor.push("s", {"x": 11.0, "other": "a" * length}, time=1.0)
        assert report.verdict == "violated"


@pytest.mark.parametrize("finish", ["close", "finish"])
def test_monitors_that_have_ended_take_no_values(finish):
    monitor = rondel.Monitor("topic s { x: float }  property p = s.x < 10")
    monitor.push("s", {"x": 1.0}, time=1.0)
    getattr(monitor, finish)()
    with pytest.raises(ValueError):
        monitor.push("s", {"x": 1.0}, time=2.0)


def test_shared_topics_are_noticed():
    # A topic on which a property remembers earlier messages is inspected first.
    monitor = rondel.Monitor("topic s { x: float }  property p = changed(s.x) -> s.x < 10")
    for step in range(3000):
        monitor.push("s", {"x": float(step % 7), "robot": step % 3}, time=step * 0.1)
    kinds = [notice.kind for notice in monitor.notices()]
    assert kinds == ["shared"]
    assert monitor.summary().checked == 3000
