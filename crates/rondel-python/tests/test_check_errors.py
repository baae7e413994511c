"""Checks with mistakes: specifications, files and arguments that cannot be used."""

import datetime
import math
import pickle

import pytest

import rondel
from samples import DRIVE, LEVEL, ROOT, VEHICLE


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
        (("a", "b"), {"workers": "2"}, ValueError),
        (("a", "b"), {"workers": 2.0}, TypeError),
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
