"""Results of checks in other forms: explanations, robustness, tables, drawings, reports, copies."""

import copy
import json
import pickle
import sys
import xml.etree.ElementTree

import pytest

import rondel
from samples import DRIVE, LEVEL, VEHICLE


def test_explanations_are_optional():
    [report] = rondel.check(VEHICLE, DRIVE, explain=True).violations
    assert report.explanation[-1]["values"]["gear.report"] == 2
    assert report.explanation[-1]["time"] == 7.5


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


def test_results_can_be_copied_and_pickled():
    results = rondel.check(VEHICLE, DRIVE)
    for other in (copy.deepcopy(results), pickle.loads(pickle.dumps(results))):
        assert other.verdicts == results.verdicts
        assert other.report("tap") == results.report("tap")
        assert len({*results.verdicts, *other.verdicts}) == len(results.verdicts)
