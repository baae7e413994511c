"""Checks of recordings by the command: results and options."""

import datetime
import pathlib

import pytest

import rondel
from samples import DRIVE, LEVEL, VEHICLE

TABLE = "time,topic,level\n"


def test_results_of_an_example():
    results = rondel.check(VEHICLE, DRIVE)
    assert (results.exit_status, results.is_violated) == (1, True)
    assert (results.is_satisfied, results.is_inconclusive, results.warnings) == (False, False, [])
    assert [(p.name, p.verdict, p.violations, p.first_violation, p.first_violation_ns) for p in results.properties] == [
        ("gear_change_at_standstill", "violated", 1, 7.5, 7_500_000_000),
        ("speed_limit", "satisfied", 0, None, None),
        ("brake_before_reverse", "satisfied", 0, None, None),
    ]
    assert results.properties[0].seconds_violated == 0.05
    [report] = results.violations
    assert (report.property, report.time, report.time_ns, report.step) == (
        "gear_change_at_standstill",
        7.5,
        7_500_000_000,
        168,
    )
    assert (report.severity, report.about, report.about_ns, report.explanation) == ("critical", None, None, None)
    assert (report.recording, report.parameters, report.robustness, report.values) == (None, {}, None, {})
    assert len(results.verdicts) == 6
    assert results.summary["events"] == 200
    assert results.not_evaluated == []
    assert repr(results) == "<Results: violated, 3 properties, 200 messages>"


def test_verdicts_are_those_of_a_monitor(lines):
    levels = [38, 41.5, 39, 38, 45]
    monitor = rondel.Monitor(LEVEL)
    pushed = [monitor.push("tank", {"level": level}, time=float(i)) for i, level in enumerate(levels)]
    expected = [report.json() for reports in pushed for report in reports]
    results = rondel.check(lines(levels), text=LEVEL)
    assert [report.json() for report in results.verdicts] == expected
    names = [name for name in dir(rondel.AnyReport) if not name.startswith("_")]
    report, other = results.verdicts[0], monitor.push("tank", {"level": 1}, time=9.0)[0]
    assert all(hasattr(report, name) and hasattr(other, name) for name in names)


def test_path_and_text_are_not_confused(lines, tmp_path):
    specification = tmp_path / "tank.rondel"
    specification.write_text(LEVEL)
    recording = lines([38, 41])
    for path in (specification, str(specification), pathlib.PurePath(specification)):
        assert rondel.check(path, recording).is_violated
    assert rondel.check(recording, text=LEVEL).is_violated
    assert rondel.check(recording, formula="level < 42").is_satisfied
    with pytest.raises(ValueError, match="text="):
        rondel.check(LEVEL, recording)
    with pytest.raises(TypeError, match="exclude"):
        rondel.check(recording, text=LEVEL, formula="x")


def test_options_select_verdicts(lines):
    recording = lines([38, 41, 42, 39])
    assert len(rondel.check(recording, text=LEVEL, emit="every").verdicts) == 4
    assert [r.time for r in rondel.check(recording, text=LEVEL, emit="violations").verdicts] == [1.0]
    dense = "topic tank { level: float }\nproperty p = once[0, 1 s] tank.level > 41"
    assert rondel.check(recording, text=dense, time="points").exit_status in (0, 1)


def test_options_select_messages(tmp_path):
    table = tmp_path / "tank.csv"
    table.write_text(TABLE + "".join(f"{1_700_000_000 + i},tank,{i}\n" for i in range(60)))
    begin = datetime.datetime.fromtimestamp(1_700_000_000, datetime.timezone.utc)
    east = datetime.timezone(datetime.timedelta(hours=5, minutes=45))

    def events(**options):
        return rondel.check(table, text=LEVEL, **options).summary["events"]

    assert events() == 60
    assert events(start=1_700_000_010.0) == 50
    assert events(start=begin + datetime.timedelta(seconds=10), to=1_700_000_019.0) == 10
    assert events(start=(begin + datetime.timedelta(seconds=10)).astimezone(east), to="+19") == 10
    assert events(start=datetime.timedelta(seconds=10), to=datetime.timedelta(seconds=19)) == 10
    assert events(topics=["tank"]) == events(topics="ta$*") == 60
    with pytest.raises(rondel.RondelError, match="--topics"):
        events(topics="none")


def test_several_recordings(lines):
    paths = [lines([38, 41], "a.jsonl"), lines([1, 2], "b ü\u2028.jsonl")]
    results = rondel.check(*paths, text=LEVEL)
    assert [report.recording for report in results.verdicts] == [str(paths[0]), str(paths[0]), str(paths[1])]
    assert [row["result"] for row in results.summary["recordings"]] == ["violated", "satisfied"]
    assert rondel.check(paths[0].parent, text=LEVEL).summary["events"] == 4


def test_parameters_and_exact_times(tmp_path):
    recording = tmp_path / "robots.jsonl"
    recording.write_text(
        '{"topic": "pose", "time": 1772368215.123456789, "name": "é\\u2028", "x": 5}\n'
        '{"topic": "pose", "time": 1772368215.123456790, "name": "time\\":3", "x": 1}\n'
    )
    text = "topic pose { name: string, x: float }\nproperty near for each name in pose.name = pose.x < 3"
    results = rondel.check(recording, text=text)
    assert [report.time_ns for report in results.verdicts] == [1772368215123456789, 1772368215123456790]
    assert [report.parameters["name"] for report in results.verdicts] == ["é\u2028", 'time":3']
    assert results.properties[0].first_violation_ns == 1772368215123456789
    assert results.to_arrow().column("parameters.name").to_pylist() == ["é\u2028", 'time":3']


@pytest.mark.parametrize(
    "seconds, expected",
    [
        ("0", 0),
        ("-0.000000001", -1),
        ("999999.999999999", 999_999_999_999_999),
        ("-999999.123456789", -999_999_123_456_789),
        ("1772368215.123456789", 1_772_368_215_123_456_789),
        ("9223372036.854775807", 9_223_372_036_854_775_807),
        ("-9223372036.854775808", -9_223_372_036_854_775_808),
        ("1772368215", 1_772_368_215_000_000_000),
    ],
)
def test_times_are_exact(seconds, expected):
    text = f'{{"property":"p","key":{{"time":2.5}},"time":{seconds},"about":{seconds},"step":3,"verdict":"violated","evidence":[]}}'
    report = rondel.CommandReport(text)
    assert (report.time_ns, report.about_ns, report.time) == (expected, expected, float(seconds))


def test_thousands_of_violations(lines):
    results = rondel.check(lines([38, 41] * 10_000), text=LEVEL, emit="violations")
    assert len(results.violations) == results.properties[0].violations == 10_000
    assert len(results.to_pandas()) == 10_000
    assert len(results.report("html")) < 2_000_000


def test_empty_recording_is_inconclusive(lines):
    results = rondel.check(lines([]), text=LEVEL)
    assert (results.exit_status, results.is_inconclusive) == (4, True)
    with pytest.raises(rondel.InconclusiveError) as error:
        results.raise_for_violations()
    assert error.value.results is results
    results.raise_for_violations(allow_inconclusive=True)


def test_vacuous_verdicts_are_shown(tmp_path):
    recording = tmp_path / "a.jsonl"
    recording.write_text('{"topic": "pose", "time": 1}\n{"topic": "pose", "time": 3}\n')
    results = rondel.check(recording, text="topic estop\ntopic pose\nproperty halt = on(estop) -> on(pose)")
    assert results.is_inconclusive
    [reason] = results.properties[0].vacuous
    assert "estop" in reason
    assert "vacuous" in results._repr_html_()
    with pytest.raises(rondel.InconclusiveError, match="estop"):
        results.raise_for_violations()


def test_messages_that_are_not_evaluated(tmp_path):
    recording = tmp_path / "a.jsonl"
    recording.write_text('{"topic": "tank", "time": 1, "level": 3}\n{"topic": "tank", "time": 2, "level": "x"}\n')
    [entry] = rondel.check(recording, text=LEVEL).not_evaluated
    assert (entry["reason"], entry["topic"], entry["count"]) == ("other_field_type", "tank", 1)


def test_truth_value_is_refused():
    results = rondel.check(VEHICLE, DRIVE)
    with pytest.raises(TypeError, match="is_satisfied"):
        bool(results)
    with pytest.raises(rondel.ViolationError, match="gear_change_at_standstill: violated once, first at 7.5 s"):
        results.raise_for_violations()


def test_satisfied_results_raise_nothing(lines):
    rondel.check(lines([1, 2]), text=LEVEL).raise_for_violations()


def test_repeated_check_leaves_snapshots_and_stores(lines, tmp_path):
    text = "topic tank { level: float }\nproperty p = tank.level > 40 -> eventually[0, 5 s] tank.level < 10"
    state, store = tmp_path / "a.snapshot", tmp_path / "a.db"
    first = rondel.check(lines([1, 41]), text=text, snapshot_to=state, store=store)
    before = state.read_bytes(), store.read_bytes()
    first.report("tap")
    assert (state.read_bytes(), store.read_bytes()) == before
    second = rondel.check(lines([45, 46, 47, 48, 49, 50], begin=2), text=text, resume=state, snapshot_to=state)
    assert second.is_violated
    with pytest.raises(rondel.RondelError, match="cannot be repeated"):
        second.plot()
    assert "cannot be repeated" in second._repr_html_()


def test_workers_have_the_verdicts_of_one_thread():
    one, *others = (rondel.check(VEHICLE, DRIVE, workers=workers) for workers in (1, 2, "auto"))
    for other in others:
        assert [(v.property, v.time, v.verdict) for v in other.verdicts] == [
            (v.property, v.time, v.verdict) for v in one.verdicts
        ]
        assert one.exit_status == other.exit_status


def test_deployment_in_the_place_of_the_specification(tmp_path, lines):
    (tmp_path / "tank.rondel").write_text(LEVEL)
    (tmp_path / "rondel.yaml").write_text("specification: tank.rondel\ntopics:\n  tank: { source: zenoh:tank }\n")
    assert rondel.check(tmp_path / "rondel.yaml", lines([50])).is_violated
    (tmp_path / "rondel.yaml").write_text("specification: tank.rondel\ntopcs: {}\n")
    with pytest.raises(rondel.RondelError, match="topcs"):
        rondel.check(tmp_path / "rondel.yaml", lines([50]))


def test_properties_have_the_attributes_of_those_of_a_monitor(lines):
    text = LEVEL + "topic stop\nproperty halt = on(stop) -> once on(tank)\nproperty calm = tank.level < 20\nassert often = share(calm) >= 0.1\n"
    monitor = rondel.Monitor(text)
    monitor.push("tank", {"level": 38}, time=0.0)
    monitor.push("tank", {"level": 10}, time=1.0)
    monitor.push("tank", {"level": 10}, time=2.0)
    monitor.finish()
    names = ["name", "verdict", "violations", "first_violation", "first_violation_ns", "is_asserted", "is_inconclusive", "vacuous"]

    def attributes(entries):
        return [[getattr(entry, name) for name in names] for entry in entries]

    results = rondel.check(lines([38, 10, 10]), text=text)
    found = attributes(results.properties)
    assert found == attributes(monitor.summary().properties)
    assert {row[0]: row[6] for row in found}["halt"] is True
