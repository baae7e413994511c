"""Checks of recordings by the command: results, options, errors."""

import concurrent.futures
import copy
import datetime
import json
import math
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import xml.etree.ElementTree

import pytest

import rondel

ROOT = pathlib.Path(__file__).resolve().parents[3]
VEHICLE = ROOT / "examples/vehicle.rondel"
DRIVE = ROOT / "examples/vehicle.jsonl"
LEVEL = "topic tank { level: float }\nproperty low = tank.level < 40\n"
TABLE = "time,topic,level\n"


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Puts a program of Python in the place of the command."""

    def put(text):
        program = tmp_path / "fake"
        program.write_text(f"#!{sys.executable}\nimport os, signal, sys, time\n" + textwrap.dedent(text))
        program.chmod(0o755)
        monkeypatch.setenv("RONDEL_PROGRAM", str(program))

    return put


@pytest.fixture
def lines(tmp_path):
    """Writes a recording of the level of a tank, one message per second."""

    def write(levels, name="tank.jsonl", begin=0):
        path = tmp_path / name
        text = (f'{{"topic": "tank", "time": {begin + i}, "level": {level}}}\n' for i, level in enumerate(levels))
        path.write_text("".join(text))
        return path

    return write


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


def test_explanations_are_optional():
    [report] = rondel.check(VEHICLE, DRIVE, explain=True).violations
    assert report.explanation[-1]["values"]["gear.report"] == 2
    assert report.explanation[-1]["time"] == 7.5


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


def test_robustness_is_a_series(lines):
    text = "topic tank { level: float }\n@robust property low = tank.level < 40\nproperty other = tank.level < 50"
    results = rondel.check(lines([38, 41.5, 39]), text=text)
    series = results.robustness("low")
    assert (series.times, series.values) == ([0.0, 1.0, 2.0], [2.0, -1.5, 1.0])
    assert series.times_ns == [0, 1_000_000_000, 2_000_000_000]
    assert (len(series), results.properties[0].least_robustness) == (3, -1.5)
    with pytest.raises(ValueError, match="@robust"):
        results.robustness("other")
    with pytest.raises(ValueError, match="low, other"):
        results.robustness("level")


def test_robustness_of_instances(tmp_path):
    recording = tmp_path / "a.jsonl"
    recording.write_text('{"topic": "pose", "time": 1, "id": 7, "x": 5}\n{"topic": "pose", "time": 2, "id": 8, "x": 1}\n')
    text = "topic pose { id: int, x: float }\n@robust property near for each id in pose.id = pose.x < 3"
    results = rondel.check(recording, text=text)
    with pytest.raises(ValueError, match="choose one"):
        results.robustness("near")
    assert results.robustness("near", {"id": 8}).values[-1] == 2.0
    with pytest.raises(ValueError, match="none of"):
        results.robustness("near", {"id": 9})


def test_tables_of_three_libraries(lines):
    results = rondel.check(lines([38, 41, 39]), text=LEVEL)
    times = [0, 1_000_000_000, 2_000_000_000]
    verdicts = ["satisfied", "violated", "satisfied"]
    arrow, pandas, polars = results.to_arrow(), results.to_pandas(), results.to_polars()
    for table in (arrow.to_pydict(), pandas.to_dict("list"), polars.to_dict(as_series=False)):
        assert (table["time_ns"], table["verdict"], table["step"]) == (times, verdicts, [0, 1, 2])
    assert str(pandas["time_ns"].dtype) == "int64"
    empty = rondel.check(lines([]), text=LEVEL)
    assert (empty.to_arrow().num_rows, len(empty.to_pandas()), len(empty.to_polars())) == (0, 0, 0)
    assert empty.to_arrow().schema == arrow.schema
    assert empty.to_polars().schema == polars.schema


def test_missing_library_is_named(lines, monkeypatch):
    results = rondel.check(lines([1]), text=LEVEL)
    for name in ("pyarrow", "pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    for name, method in (("pyarrow", "to_arrow"), ("pandas", "to_pandas"), ("polars", "to_polars")):
        with pytest.raises(ImportError, match=f"pip install {name}"):
            getattr(results, method)()


def test_plot_is_a_drawing(tmp_path):
    results = rondel.check(VEHICLE, DRIVE)
    drawing = results.plot()
    assert xml.etree.ElementTree.fromstring(drawing.svg).tag.endswith("svg")
    assert drawing is results.plot()
    assert drawing._repr_svg_() == drawing.svg
    drawing.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == drawing.svg
    drawing.save(str(tmp_path / "a.html"))
    assert "<html" in (tmp_path / "a.html").read_text()
    with pytest.raises(ValueError, match=".svg or .html"):
        drawing.save(tmp_path / "a.png")
    page = results._repr_html_()
    assert drawing.svg.removeprefix("<svg") in page
    assert "7.5 s" in page


def test_reports_of_every_form(tmp_path):
    results = rondel.check(VEHICLE, DRIVE)
    root = xml.etree.ElementTree.fromstring(results.report("junit"))
    assert [case.get("name") for case in root.iter("testcase") if list(case)] == ["gear_change_at_standstill"]
    assert json.loads(results.report("sarif"))["version"] == "2.1.0"
    assert json.loads(results.report("json"))["rondel_report"] == 1
    assert results.report("tap").startswith("TAP version 14")
    assert "::error" in results.report("github")
    assert "<svg" in results.report("svg")
    assert results.report("mcap", tmp_path / "a.mcap") is None
    assert (tmp_path / "a.mcap").read_bytes().startswith(b"\x89MCAP")
    with pytest.raises(ValueError, match="name"):
        results.report("mcap")
    with pytest.raises(ValueError, match="junit, sarif"):
        results.report("pdf")
    with pytest.raises(rondel.RondelError, match="cannot write the report"):
        results.report("junit", tmp_path / "missing" / "a.xml")


def test_reports_are_those_of_the_results(lines):
    results = rondel.check(lines([1]), text=LEVEL)
    lines([50])
    with pytest.raises(rondel.RondelError, match="have changed since the check: it was satisfied, and is now violated"):
        results.report("tap")


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


def test_specification_with_mistakes(tmp_path):
    file = tmp_path / "wrong.rondel"
    file.write_text("# ü\ntopic tank { level: float }\nproperty low = tank.levle < 40 and tank.x\n")
    with pytest.raises(rondel.SpecificationError) as error:
        rondel.check(file, DRIVE)
    text = file.read_text()
    codes = [(code, text[begin:end]) for code, _, begin, end, _ in error.value.diagnostics]
    assert codes[0] == ("E0301", "levle")
    assert f"--> {file}:3:21" in str(error.value)
    assert "^^^^^" in str(error.value)


@pytest.mark.parametrize("formula", [False, True])
def test_mistakes_are_those_of_a_monitor(formula, lines):
    text = "tank.level <" if formula else "topic tank { level: float }  property low = tank.levle < 40"
    with pytest.raises(rondel.SpecificationError) as error:
        rondel.check(lines([1]), **({"formula": text} if formula else {"text": text}))
    if formula:
        [(_, _, begin, _, _)] = error.value.diagnostics
        assert begin == len(text)
        return
    with pytest.raises(rondel.SpecificationError) as other:
        rondel.Monitor(text)
    assert error.value.diagnostics == other.value.diagnostics
    assert str(error.value) == str(other.value).strip()


def test_missing_files(tmp_path):
    with pytest.raises(rondel.RondelError, match="cannot read the specification .*missing.rondel"):
        rondel.check(tmp_path / "missing.rondel", DRIVE)
    with pytest.raises(rondel.RecordingError, match="cannot open .*missing.jsonl") as error:
        rondel.check(VEHICLE, tmp_path / "missing.jsonl")
    assert error.value.results is None


def test_unreadable_recording_keeps_the_others(lines, tmp_path):
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"topic": "tank", "time": 1, "level": 50}\n{"topic": "tank", "time": 2, "lev')
    with pytest.raises(rondel.RecordingError, match="broken.jsonl:2") as error:
        rondel.check(broken, lines([1]), text=LEVEL)
    results = error.value.results
    assert [(report.recording, report.verdict) for report in results.verdicts] == [
        (str(broken), "violated"),
        (str(tmp_path / "tank.jsonl"), "satisfied"),
    ]
    assert not (results.is_satisfied or results.is_violated or results.is_inconclusive)
    assert "not ok" in results.report("tap")
    assert rondel.check(broken, text=LEVEL, on_error="skip").is_violated


def test_no_recording(tmp_path):
    (tmp_path / "a.mcap").write_text("no recording")
    with pytest.raises(rondel.RecordingError, match="a.mcap"):
        rondel.check(tmp_path / "a.mcap", text=LEVEL)
    with pytest.raises(rondel.RecordingError):
        rondel.check(ROOT / "README.md", text=LEVEL)
    with pytest.raises(rondel.RondelError, match="is a specification"):
        rondel.check(VEHICLE, VEHICLE)


def test_store_that_cannot_be_written(lines, tmp_path):
    with pytest.raises(rondel.RondelError, match="missing"):
        rondel.check(lines([1]), text=LEVEL, store=tmp_path / "missing" / "a.db")


def test_names_with_dashes(lines, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-q").write_text(LEVEL)
    lines([50], "--strict")
    lines([50], "-")
    assert rondel.check("-q", "--strict").summary["events"] == 1
    assert rondel.check("-q", "-").summary["events"] == 1


@pytest.mark.parametrize(
    "paths, options, error",
    [
        ((), {}, TypeError),
        (("a.rondel",), {}, TypeError),
        ((), {"text": LEVEL}, TypeError),
        ((3, "a"), {}, TypeError),
        ((["a"], "b"), {}, TypeError),
        (("", "b"), {}, ValueError),
        (("a", b"b"), {}, TypeError),
        (("a\0", "b"), {}, ValueError),
        (("a", "b"), {"explian": True}, TypeError),
        (("a", "b"), {"explain": 1}, TypeError),
        (("a", "b"), {"emit": "all"}, ValueError),
        (("a", "b"), {"emit": 3}, TypeError),
        (("a", "b"), {"jobs": "2"}, TypeError),
        (("a", "b"), {"jobs": True}, TypeError),
        (("a", "b"), {"workers": "auto"}, TypeError),
        (("a", "b"), {"start": 3}, TypeError),
        (("a", "b"), {"start": float("inf")}, ValueError),
        (("a", "b"), {"start": datetime.datetime(2026, 1, 1)}, ValueError),
        (("a", "b"), {"to": datetime.timedelta(seconds=-1)}, ValueError),
        (("a", "b"), {"to": b"1"}, TypeError),
        (("a", "b"), {"topics": []}, ValueError),
        (("a", "b"), {"topics": ["a,b"]}, ValueError),
        (("a", "b"), {"topics": 3}, TypeError),
        (("a", "b"), {"timeout": "3"}, TypeError),
        (("a", "b"), {"timeout": 0}, ValueError),
        (("a", "b"), {"timeout": float("nan")}, ValueError),
        (("a",), {"text": "\ud800"}, ValueError),
        (("a",), {"text": b"x"}, TypeError),
    ],
)
def test_wrong_arguments(paths, options, error):
    with pytest.raises(error):
        rondel.check(*paths, **options)


def test_wrong_values_are_refused_by_the_command():
    with pytest.raises(rondel.RondelError, match="--jobs"):
        rondel.check(VEHICLE, DRIVE, jobs=0)
    with pytest.raises(rondel.RondelError, match="--workers"):
        rondel.check(VEHICLE, DRIVE, workers=0)
    with pytest.raises(rondel.RondelError, match="--from yesterday"):
        rondel.check(VEHICLE, DRIVE, start="yesterday")


def test_workers_have_the_verdicts_of_one_thread():
    one, two = (rondel.check(VEHICLE, DRIVE, workers=workers) for workers in (1, 2))
    assert [(v.property, v.time, v.verdict) for v in two.verdicts] == [
        (v.property, v.time, v.verdict) for v in one.verdicts
    ]
    assert one.exit_status == two.exit_status


def test_timeout_ends_the_command(fake, tmp_path):
    fake(f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)")
    # On a busy machine the command may not have begun when a short time is over.
    for timeout in 1, 4, 16:
        start = time.monotonic()
        with pytest.raises(TimeoutError, match=f"{timeout}.0 s"):
            rondel.check("a", "b", timeout=timeout)
        assert time.monotonic() - start < timeout + 30
        if (tmp_path / "pid").exists():
            break
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_interrupt_ends_the_command(fake, tmp_path):
    fake(f"signal.signal(signal.SIGINT, signal.SIG_IGN)\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)")
    program = [sys.executable, "-c", "import rondel; rondel.check('a', 'b')"]
    process = subprocess.Popen(program, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in process.communicate(timeout=60)[1]
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_killed_command(fake):
    fake("os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(rondel.RondelError, match="SIGKILL"):
        rondel.check("a", "b")


@pytest.mark.parametrize("output", ["print('no verdict')", "print('{}')", "print('[1]')"])
def test_output_of_another_program(fake, output):
    fake(f"print('{{}}', file=sys.stderr)\n{output}")
    with pytest.raises(rondel.RondelError, match="no verdict"):
        rondel.check("a", "b")
    fake("sys.exit(0)")
    with pytest.raises(rondel.RondelError, match="status 0"):
        rondel.check("a", "b")


def test_other_threads_run_meanwhile(fake, tmp_path):
    begun, seen = tmp_path / "begun", tmp_path / "seen"
    # It ends well only if another thread sees it running.
    fake(f"""
        open({str(begun)!r}, "w").close()
        deadline = time.monotonic() + 30
        while not os.path.exists({str(seen)!r}):
            if time.monotonic() > deadline: sys.exit("nobody has seen it")
            time.sleep(0.01)
        print('{{"properties": []}}', file=sys.stderr)
    """)
    with concurrent.futures.ThreadPoolExecutor() as threads:
        checked = threads.submit(rondel.check, "a", "b")
        while not (begun.exists() or checked.done()):
            time.sleep(0.01)
        seen.touch()
        assert checked.result().properties == []


def test_environment_does_not_colour(lines, monkeypatch):
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    with pytest.raises(rondel.SpecificationError) as error:
        rondel.check(lines([1]), formula="(")
    assert "\x1b" not in str(error.value)


def test_results_can_be_copied_and_pickled():
    results = rondel.check(VEHICLE, DRIVE)
    for other in (copy.deepcopy(results), pickle.loads(pickle.dumps(results))):
        assert other.verdicts == results.verdicts
        assert other.report("tap") == results.report("tap")
        assert len({*results.verdicts, *other.verdicts}) == len(results.verdicts)


def test_results_work_after_a_fork():
    results = rondel.check(VEHICLE, DRIVE)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if rondel.check(VEHICLE, DRIVE).is_violated and results.report("tap") else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_deployment_in_the_place_of_the_specification(tmp_path, lines):
    (tmp_path / "tank.rondel").write_text(LEVEL)
    (tmp_path / "rondel.yaml").write_text("specification: tank.rondel\ntopics:\n  tank: { source: zenoh:tank }\n")
    assert rondel.check(tmp_path / "rondel.yaml", lines([50])).is_violated
    (tmp_path / "rondel.yaml").write_text("specification: tank.rondel\ntopcs: {}\n")
    with pytest.raises(rondel.RondelError, match="topcs"):
        rondel.check(tmp_path / "rondel.yaml", lines([50]))


@pytest.mark.parametrize("timeout", [0, -1.0, math.nan, math.inf, 1e300])
def test_limits_that_are_none(timeout):
    with pytest.raises(ValueError, match="timeout"):
        rondel.check(VEHICLE, DRIVE, timeout=timeout)


def test_text_in_one_line_is_no_path():
    with pytest.raises(ValueError, match="text="):
        rondel.check("topic tank { level: float }  property low = tank.level < 40", DRIVE)


def test_errors_reach_other_processes(lines):
    results = rondel.check(lines([50]), text=LEVEL)
    with pytest.raises(rondel.ViolationError) as violation:
        results.raise_for_violations()
    copied = pickle.loads(pickle.dumps(violation.value))
    assert (str(copied), copied.results.exit_status) == (str(violation.value), 1)
    run = pickle.loads(pickle.dumps(rondel.RunError("it failed", 5, {"checked": 3})))
    assert (str(run), run.exit_status, run.summary) == ("it failed", 5, {"checked": 3})
    recording = pickle.loads(pickle.dumps(rondel.RecordingError("cannot read", results)))
    assert (str(recording), recording.results.is_violated) == ("cannot read", True)


def test_files_that_cannot_be_written_are_no_recordings(lines, tmp_path):
    missing = tmp_path / "missing"
    with pytest.raises(rondel.RondelError, match="missing") as error:
        rondel.check(lines([1]), text=LEVEL, store=missing / "verdicts.db")
    assert not isinstance(error.value, rondel.RecordingError)
    drawing = rondel.check(lines([1, 2]), text=LEVEL).plot()
    for name in "plot.svg", "plot.html":
        with pytest.raises(rondel.RondelError, match="cannot write"):
            drawing.save(missing / name)


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
