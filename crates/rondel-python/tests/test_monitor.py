"""Monitors: messages, times, reports, snapshots, errors."""

import copy
import datetime
import gc
import json
import math
import pickle
import sys
import threading

import pytest

import rondel

LEVEL = "topic tank { level: float, name: string }  property low = tank.level < 40"
ALIVE = "topic odom { x: float }  property alive = age(odom) <= 200 ms"


def verdicts(reports):
    return [(report.property, report.verdict, report.time) for report in reports]


def test_verdicts_that_change_are_reported():
    monitor = rondel.Monitor(LEVEL)
    assert verdicts(monitor.push("tank", {"level": 38.0}, time=1.0)) == [("low", "satisfied", 1.0)]
    assert monitor.push("tank", {"level": 39.0}, time=2.0) == []
    [report] = monitor.push("tank", {"level": 41}, time=3.0)
    assert (report.verdict, report.time_ns, report.step) == ("violated", 3_000_000_000, 2)
    assert report.json() == '{"property":"low","time":3,"step":2,"verdict":"violated"}'
    summary = monitor.summary()
    assert (summary.checked, summary.is_violated) == (3, True)
    assert [(p.name, p.verdict, p.violations) for p in summary.properties] == [("low", "violated", 1)]
    assert summary.properties[0].first_violation == 3.0


def test_time_alone_decides():
    monitor = rondel.Monitor(ALIVE)
    monitor.push("odom", {"x": 0.5}, time=1.0)
    assert 1.2 <= monitor.deadline <= 1.201
    [report] = monitor.advance(1.5)
    assert (report.verdict, report.step) == ("violated", None)


def test_end_decides_what_waits():
    monitor = rondel.Monitor("topic s {x: float}  property p = s.x > 0 -> eventually[0, 2 s] s.x < 0")
    monitor.push("s", {"x": 1.0}, time=0.1)
    monitor.finish()
    [entry] = monitor.summary().properties
    assert entry.verdict == "inconclusive"


@pytest.mark.parametrize(
    "time, expected",
    [
        (0.25, 250_000_000),
        (datetime.datetime(1970, 1, 2, 0, 0, 0, 1, tzinfo=datetime.timezone.utc), 86_400_000_001_000),
        (datetime.datetime(2026, 3, 1, 12, 30, 15, 999_999, tzinfo=datetime.timezone.utc), 1_772_368_215_999_999_000),
        (datetime.datetime(1969, 12, 31, 23, 59, 59, tzinfo=datetime.timezone.utc), -1_000_000_000),
    ],
)
def test_times_are_exact(time, expected):
    [report] = rondel.Monitor(LEVEL).push("tank", {"level": 1.0}, time=time)
    assert report.time_ns == expected


def test_nanoseconds_have_their_own_name():
    [report] = rondel.Monitor(LEVEL).push("tank", {"level": 1.0}, time_ns=5)
    assert report.time_ns == 5


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({"time": 3}, TypeError, "seconds or nanoseconds"),
        ({"time": True}, TypeError, "seconds or nanoseconds"),
        ({"time": "now"}, TypeError, "time"),
        ({"time": math.nan}, ValueError, "out of range"),
        ({"time": 1e300}, ValueError, "out of range"),
        ({"time": datetime.datetime(2026, 1, 1)}, ValueError, "time zone"),
        ({"time": 1.0, "time_ns": 1}, TypeError, "not both"),
        ({}, ValueError, "give the time"),
    ],
)
def test_times_are_not_guessed(arguments, error, text):
    with pytest.raises(error, match=text):
        rondel.Monitor(LEVEL).push("tank", {"level": 1.0}, **arguments)


def test_times_of_numpy():
    numpy = pytest.importorskip("numpy")
    [report] = rondel.Monitor(LEVEL).push("tank", {"level": 1.0}, time=numpy.float64(1.5))
    assert report.time == 1.5
    with pytest.raises(TypeError, match="seconds or nanoseconds"):
        rondel.Monitor(LEVEL).push("tank", {"level": 1.0}, time=numpy.int64(3))


def test_messages_may_be_json():
    monitor = rondel.Monitor(LEVEL)
    assert monitor.push("tank", '{"level": 41.0}', time=1.0)[0].verdict == "violated"
    assert monitor.push("tank", b'{"level": 1.0}', time=2.0)[0].verdict == "satisfied"

    class Text(str):
        pass

    assert monitor.push("tank", Text('{"level": 41.0}'), time=3.0)[0].verdict == "violated"


def test_nested_fields_lists_and_numpy():
    numpy = pytest.importorskip("numpy")
    monitor = rondel.Monitor("topic t { p: { q: float }, a: [float] }  property s = t.p.q < 1 and (all x in t.a: x < 3)")
    [report] = monitor.push("t", {"p": {"q": 0.5}, "a": [1, 2.5]}, time=1.0)
    assert report.verdict == "satisfied"
    message = {"p": {"q": numpy.float32(0.5)}, "a": numpy.array([1.0, 4.0])}
    assert monitor.push("t", message, time=2.0)[0].verdict == "violated"


def test_nan_is_not_evaluated():
    monitor = rondel.Monitor(LEVEL)
    monitor.push("tank", {"level": 1.0}, time=1.0)
    [report] = monitor.push("tank", {"level": math.nan}, time=2.0)
    assert report.verdict == "inconclusive"
    assert any("NaN" in sentence for sentence in monitor.summary().not_evaluated)


def test_infinity_is_a_number():
    [report] = rondel.Monitor(LEVEL).push("tank", {"level": math.inf}, time=1.0)
    assert report.verdict == "violated"


def test_wrong_values_name_the_field():
    monitor = rondel.Monitor(LEVEL)
    with pytest.raises(TypeError, match="field 'a.b': a set has no form"):
        monitor.push("tank", {"a": {"b": {1, 2}}}, time=1.0)
    with pytest.raises(TypeError, match="name of a field"):
        monitor.push("tank", {1: 2}, time=1.0)
    deep = {}
    for _ in range(100):
        deep = {"a": deep}
    with pytest.raises(ValueError, match="levels"):
        monitor.push("tank", deep, time=1.0)
    circle = []
    circle.append(circle)
    with pytest.raises(ValueError, match="levels"):
        monitor.push("tank", {"level": circle}, time=1.0)
    assert monitor.summary().checked == 0


def test_messages_that_cannot_be_read_are_counted():
    monitor = rondel.Monitor(LEVEL)
    monitor.push("tank", {"level": 1.0}, time=1.0)
    with pytest.raises(rondel.MessageError):
        monitor.push("tank", "{", time=2.0)
    assert monitor.summary().is_inconclusive


def test_unknown_topics_are_named():
    with pytest.raises(ValueError, match="no topic 'tnk'; it has tank"):
        rondel.Monitor(LEVEL).push("tnk", {}, time=1.0)


def test_mistakes_have_places():
    with pytest.raises(rondel.SpecificationError) as caught:
        rondel.Monitor("# Größe\ntopic a { x: int }  property p = a.y > 0")
    [(code, message, start, end, _)] = caught.value.diagnostics
    assert message == "unknown field 'y' in topic 'a'"
    assert "# Größe\ntopic a { x: int }  property p = a.y > 0"[start:end] == "y"
    assert "^" in str(caught.value) and code in str(caught.value)


def test_parameters_and_explanations():
    text = "topic f { id: string, date: int }  property o for each i in f.id = changed(f.date) -> f.date > prev(f.date)"
    monitor = rondel.Monitor(text, explain=True)
    monitor.push("f", {"id": "KL1", "date": 7}, time=1.0)
    [report] = monitor.push("f", {"id": "KL1", "date": 5}, time=2.0)
    assert (report.verdict, report.parameters) == ("violated", {"i": "KL1"})
    assert isinstance(report.explanation, list) and report.explanation


def test_addresses_name_topics():
    monitor = rondel.Monitor('topic s "/fleet/speed" { x: float }  property p = s.x < 3')
    assert monitor.push("/fleet/speed", {"x": 1.0}, time=1.0)[0].verdict == "satisfied"


def test_parameters_of_addresses():
    text = 'topic s "fleet/{robot}/speed" { x: float }  property p for each r in s.robot = s.x < 3'
    monitor = rondel.Monitor(text)
    reports = monitor.push("fleet/r1/speed", {"x": 1.0}, time=1.0)
    reports += monitor.push_many("fleet/r2/speed", {"time": [2.0], "x": [9.0]})
    assert [(r.parameters, r.verdict) for r in reports] == [({"r": "r1"}, "satisfied"), ({"r": "r2"}, "violated")]
    with pytest.raises(ValueError, match="push to a name that matches 'fleet/{robot}/speed'"):
        monitor.push("s", {"x": 1.0}, time=3.0)


def test_robustness():
    monitor = rondel.Monitor("topic s { x: float }  @robust property p = s.x < 3", emit="every")
    [report] = monitor.push("s", {"x": 1.0}, time=1.0)
    assert report.robustness == 2.0
    assert monitor.summary().properties[0].least_robustness == 2.0


def test_snapshots_continue():
    monitor = rondel.Monitor(LEVEL)
    monitor.push("tank", {"level": 41.0}, time=1.0)
    for other in (
        rondel.Monitor.restore(LEVEL, monitor.snapshot()),
        pickle.loads(pickle.dumps(monitor)),
        copy.deepcopy(monitor),
    ):
        assert other.push("tank", {"level": 42.0}, time=2.0) == []
        assert other.push("tank", {"level": 1.0}, time=3.0)[0].verdict == "satisfied"
        assert other.summary().checked == 3
    assert monitor.summary().checked == 1


def test_damaged_snapshots_are_refused():
    snapshot = rondel.Monitor(LEVEL).snapshot()
    for damaged in (b"", b"x", snapshot[:-1], bytes([snapshot[0] ^ 1]) + snapshot[1:]):
        with pytest.raises(rondel.SnapshotError):
            rondel.Monitor.restore(LEVEL, damaged)


def test_edited_properties_restart():
    text = LEVEL + "  property named = tank.name == \"a\""
    monitor = rondel.Monitor(text)
    monitor.push("tank", {"level": 50.0, "name": "a"}, time=1.0)
    assert monitor.summary().is_violated and monitor.summary().restarted == []
    edited = text.replace("40", "41")
    later = rondel.Monitor.restore(edited, monitor.snapshot())
    assert [notice.kind for notice in later.notices()] == ["edited"]
    later.push("tank", {"level": 1.0, "name": "a"}, time=2.0)
    # Also of copies, and of later snapshots.
    for other in (later, copy.deepcopy(later), rondel.Monitor.restore(edited, later.snapshot())):
        summary = other.summary()
        assert summary.restarted == ["low"]
        assert (summary.is_satisfied, summary.is_violated, summary.is_inconclusive) == (False, False, True)
        assert "restarted: low" in repr(summary) and "`low` has not seen" in summary._repr_html_()
    later.push("tank", {"level": 50.0, "name": "a"}, time=3.0)
    assert later.summary().is_violated and not later.summary().is_inconclusive
    # The edited property continues now; a new one has not seen the messages before, either.
    longer = rondel.Monitor.restore(edited + "  property further = tank.level < 90", later.snapshot())
    assert longer.summary().restarted == ["low", "further"]


def test_snapshots_of_unchanged_specifications_restart_nothing():
    monitor = rondel.Monitor(LEVEL)
    monitor.push("tank", {"level": 1.0}, time=1.0)
    summary = rondel.Monitor.restore(LEVEL, monitor.snapshot()).summary()
    assert summary.is_satisfied and summary.restarted == [] and "restarted" not in repr(summary)


def test_snapshots_of_other_specifications_are_refused():
    with pytest.raises(rondel.SnapshotError):
        rondel.Monitor.restore(LEVEL.replace("40", "41"), rondel.Monitor(LEVEL).snapshot())


def test_summaries_have_no_truth_value():
    with pytest.raises(TypeError, match="use is_satisfied, is_violated or is_inconclusive"):
        bool(rondel.Monitor(LEVEL).summary())


@pytest.mark.parametrize("text", ["", "// nothing", "topic tank { level: float }"])
def test_specifications_without_a_property_are_refused(text, tmp_path):
    with pytest.raises(rondel.SpecificationError, match="has no property, so there is nothing to check$") as refused:
        rondel.Monitor(text)
    assert refused.value.diagnostics == []
    with pytest.raises(rondel.SpecificationError):
        rondel.Monitor.restore(text, rondel.Monitor(LEVEL).snapshot())
    recording = tmp_path / "a.jsonl"
    recording.write_text('{"time": 1, "topic": "tank", "level": 1}\n')
    with pytest.raises(rondel.SpecificationError) as checked:
        rondel.check(recording, text=text)
    assert str(checked.value) == str(refused.value)


def test_the_least_integer_is_no_time():
    monitor = rondel.Monitor(LEVEL)
    for call in (lambda time: monitor.push("tank", {"level": 1.0}, time_ns=time), lambda time: monitor.advance(time_ns=time)):
        with pytest.raises(OverflowError, match="the least time is -9223372036854775807"):
            call(-(2**63))
    with pytest.raises(ValueError, match="row 1: the column 'time' has a time out of range"):
        monitor.push_many("tank", {"time": [5, -(2**63)], "level": [1.0, 1.0]}, time_ns="time")
    assert monitor.summary().checked == 0
    [report] = monitor.push("tank", {"level": 1.0}, time_ns=1 - 2**63)
    assert report.time_ns == 1 - 2**63


def test_closed_monitors():
    with rondel.Monitor(LEVEL) as monitor:
        monitor.push("tank", {"level": 1.0}, time=1.0)
    monitor.close()
    for call in (monitor.summary, monitor.snapshot, monitor.finish, lambda: monitor.push("tank", {}, time=2.0)):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_settings_are_checked():
    with pytest.raises(ValueError, match="emit"):
        rondel.Monitor(LEVEL, emit="all")


def test_threads_share_a_monitor():
    monitor = rondel.Monitor("topic s { x: int }  property p = s.x >= 0")

    def push(start):
        for i in range(200):
            monitor.push("s", {"x": i}, time_ns=start + i)

    threads = [threading.Thread(target=push, args=(k * 1000,)) for k in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert monitor.summary().checked == 800


def test_values_that_push_while_they_are_written():
    monitor = rondel.Monitor("topic s { x: int }  property p = s.x >= 0")

    class Pushes:
        def tolist(self):
            monitor.push("s", {"x": 1}, time=1.0)
            return 2

    monitor.push("s", {"x": Pushes()}, time=2.0)
    assert monitor.summary().checked == 2


def test_nothing_leaks():
    monitor = rondel.Monitor(LEVEL, emit="every")

    def push(start):
        for i in range(start, start + 1000):
            monitor.push("tank", {"level": float(i), "name": "a" * i}, time=float(i))
        gc.collect()
        return sys.getallocatedblocks()

    before = push(0)
    # One object that leaks a message would be 1000 blocks.
    assert push(1000) - before < 500
    assert monitor.summary().checked == 2000


def test_properties_that_cannot_be_monitored_have_places():
    text = """topic login { user: int, ok: bool }
        property p = exists u. not login{user: u}
        property q = forall u. login{user: u} or login.ok"""
    with pytest.raises(rondel.SpecificationError, match="cannot monitor variable 'u'") as error:
        rondel.Monitor(text)
    found = [(code, text[begin:end]) for code, _, begin, end, _ in error.value.diagnostics]
    assert found == [("E0701", "login{user: u}")] * 2
    assert all(advice for *_, advice in error.value.diagnostics)
    assert rondel.SpecificationError("other").diagnostics == []


def test_summary_of_properties():
    text = """
        topic a { x: float }
        topic b
        @requirement("R1") @requirement("R2") property low = a.x < 3
        property asserted = a.x < 1
        assert mostly = share(asserted) >= 0.1
        property idle = on(b) -> once on(a)
    """
    monitor = rondel.Monitor(text)
    for time, x in (1.0, 0.0), (2.0, 5.0), (3.0, 0.0):
        monitor.push("a", {"x": x}, time=time)
    monitor.finish()
    summary = monitor.summary()
    entries = {entry.name: entry for entry in summary.properties}
    low, asserted, idle = entries["low"], entries["asserted"], entries["idle"]
    assert (low.verdict, low.violations, low.first_violation, low.first_violation_ns) == ("violated", 1, 2.0, 2_000_000_000)
    assert (low.requirements, low.is_asserted, low.is_inconclusive, low.vacuous) == (["R1", "R2"], False, False, [])
    assert asserted.is_asserted and not asserted.is_inconclusive
    assert idle.is_inconclusive and any("`b`" in reason for reason in idle.vacuous)
    # As those of `check`: a violation comes first.
    assert (summary.is_satisfied, summary.is_violated, summary.is_inconclusive) == (False, True, False)


def test_reports_have_the_attributes_of_those_of_the_command():
    text = """
        topic a { x: int }
        @requirement("R1") @severity(critical) property p = a.x > 0 -> eventually[0, 2 s] a.x < 0
    """
    begin = 1_700_000_000_000_000_001
    monitor = rondel.Monitor(text, explain=True)
    monitor.push("a", {"x": 1}, time_ns=begin)
    [report] = monitor.push("a", {"x": 1}, time_ns=begin + 3_000_000_000)
    monitor.close()
    assert (report.verdict, report.about_ns) == ("violated", begin)
    assert (report.requirement, report.severity, report.values, report.because_of) == ("R1", "critical", {}, None)
    assert json.loads(report.json())["evidence"] == report.explanation
