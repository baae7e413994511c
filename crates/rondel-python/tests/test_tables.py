"""Tables: columns of Arrow, dicts of columns."""

import datetime
import math

import pytest

import rondel

SPEC = "topic s { x: float, name: string, p: { q: int }, ok: bool, a: [float] }  property p = s.x < 3"


def test_dict_of_columns():
    monitor = rondel.Monitor(SPEC)
    reports = monitor.push_many("s", {"time": [1.0, 2.0, 3.0], "x": [1, 5.0, None], "name": ["a", None, "c"]})
    assert [(r.verdict, r.time) for r in reports] == [("satisfied", 1.0), ("violated", 2.0)]
    assert monitor.summary().checked == 3


@pytest.mark.parametrize(
    "fields, column, values, row",
    [
        ("x: float", "x", [1.0, None, 9.0], lambda value: {"x": value}),
        ("p: { x: float }", "p.x", [1.0, None, 9.0], lambda value: {"p": {"x": value}}),
        ("p: { x: float }", "p", [{"x": 1.0}, None, {"x": 9.0}], lambda value: {"p": value}),
        ("p: { x: float }", "p", [{"x": 1.0}, {"x": None}, {"x": 9.0}], lambda value: {"p": value}),
    ],
)
def test_null_is_a_field_that_is_not_there(fields, column, values, row):
    pyarrow = pytest.importorskip("pyarrow")
    path = "s.x" if column == "x" else "s.p.x"
    text = f"topic s {{ {fields} }}  property p = {path} < 3"
    table = pyarrow.table({"time": [1.0, 2.0, 3.0], column: values})
    of_table = [report.json() for report in rondel.Monitor(text, emit="every").push_many("s", table)]
    monitor = rondel.Monitor(text, emit="every")
    messages = [row(values[0]), {}, row(values[2])]
    each = [monitor.push("s", message, time=1.0 + i) for i, message in enumerate(messages)]
    assert of_table == [report.json() for reports in each for report in reports]
    # The value of before still holds.
    assert ["satisfied" in of_table[0], "satisfied" in of_table[1], "violated" in of_table[2]] == [True] * 3


def test_null_in_a_list_is_an_element():
    pyarrow = pytest.importorskip("pyarrow")
    monitor = rondel.Monitor("topic s { a: [float] }  property p = len(s.a) == 2")
    table = pyarrow.table({"time": [1.0, 2.0], "a": [[1.0, None], [1.0]]})
    assert [report.verdict for report in monitor.push_many("s", table)] == ["satisfied", "violated"]


def test_nan_is_unknown_unless_the_table_marks_missing_values_by_it():
    pandas, numpy = pytest.importorskip("pandas"), pytest.importorskip("numpy")
    columns = {"time": numpy.arange(3.0), "x": numpy.array([1.0, numpy.nan, 9.0])}
    reports = rondel.Monitor(SPEC).push_many("s", columns)
    assert [report.verdict for report in reports] == ["satisfied", "inconclusive", "violated"]
    # pandas hands it over as null.
    reports = rondel.Monitor(SPEC).push_many("s", pandas.DataFrame(columns))
    assert [report.verdict for report in reports] == ["satisfied", "violated"]


@pytest.mark.parametrize("values", [[1.0, None, 9.0, None], [None, 4.0, None, 1.0]])
def test_tables_and_their_recordings_have_equal_verdicts(tmp_path, values):
    text = "topic s { x: float }  property p = s.x < 3"
    columns = {"time": [1.0, 2.0, 3.0, 4.0], "x": values}
    pushed = [(r.verdict, r.time) for r in rondel.Monitor(text).push_many("s", columns)]
    rows = ["time,x", *(f"{time},{'' if x is None else x}" for time, x in zip(*columns.values()))]
    (tmp_path / "s.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "s.rondel").write_text(text)
    checked = rondel.check(tmp_path / "s.rondel", tmp_path / "s.csv")
    assert [(v.verdict, v.time) for v in checked.verdicts if v.step is not None] == pushed


def test_rows_equal_messages():
    rows = 500
    columns = {"time": [i / 10 for i in range(rows)], "x": [math.sin(i) * 4 for i in range(rows)]}
    many = rondel.Monitor(SPEC, emit="every")
    all_at_once = [r.json() for r in many.push_many("s", columns)]
    one = rondel.Monitor(SPEC, emit="every")
    each = [r.json() for t, x in zip(*columns.values()) for r in one.push("s", {"x": x}, time=t)]
    assert all_at_once == each and len(each) == rows


@pytest.mark.parametrize("library", ["pyarrow", "polars", "pandas"])
def test_tables_of_libraries(library):
    module = pytest.importorskip(library)
    columns = {
        "time": [1.0, 2.0, 3.0],
        "x": [1.0, 5.0, 2.0],
        "name": ["a", "b", None],
        "p.q": [1, 2, 3],
        "ok": [True, False, True],
    }
    if library == "pyarrow":
        table = module.table(columns)
    else:
        table = module.DataFrame(columns)
    monitor = rondel.Monitor("topic s { x: float, p: { q: int }, name: string, ok: bool }  property p = s.x < 3 and s.p.q < 3")
    verdicts = [r.verdict for r in monitor.push_many("s", table)]
    assert verdicts == ["satisfied", "violated"]


def test_types_of_arrow():
    pyarrow = pytest.importorskip("pyarrow")
    stamps = [datetime.datetime(2026, 1, 1, 0, 0, s, tzinfo=datetime.timezone.utc) for s in range(3)]
    table = pyarrow.table(
        {
            "time": pyarrow.array(stamps, pyarrow.timestamp("us", "UTC")),
            "s": pyarrow.array([{"u": 1, "l": [1.0, 2.0]}, {"u": 2, "l": []}, None]),
            "d": pyarrow.array(["x", "y", "x"]).dictionary_encode(),
            "f": pyarrow.array([1.0, math.nan, 3.0], pyarrow.float32()),
            "u": pyarrow.array([1, 2**63, 3], pyarrow.uint64()),
        }
    )
    monitor = rondel.Monitor('topic t { s: { u: int }, d: string, f: float }  property p = t.d == "x"', emit="every")
    reports = monitor.push_many("t", table)
    assert [r.verdict for r in reports] == ["satisfied", "violated", "satisfied"]
    assert reports[1].time_ns == 1_767_225_601_000_000_000


def test_batches_and_nanoseconds():
    pyarrow = pytest.importorskip("pyarrow")
    batch = pyarrow.record_batch({"t": [1, 2], "x": [1.0, 9.0]})
    table = pyarrow.Table.from_batches([batch, batch.set_column(0, "t", pyarrow.array([3, 4]))])
    reports = rondel.Monitor(SPEC).push_many("s", table, time_ns="t")
    assert [r.time_ns for r in reports] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "columns, error, text",
    [
        ({"x": [1.0]}, ValueError, "no column 'time'"),
        ({"time": [1], "x": [1.0]}, TypeError, "integers"),
        ({"time": ["a"], "x": [1.0]}, TypeError, "no time"),
        ({"time": [1.0, None], "x": [1.0, 2.0]}, ValueError, "row 1"),
        ({"time": [1.0], "x": [1.0, 2.0]}, ValueError, "2 rows"),
        ({"time": [1.0, 2.0], "x": [1.0, "a"]}, TypeError, "column 'x', row 1"),
        ({"time": [1.0], "x": [{1}]}, TypeError, "column 'x', row 0"),
        ({"time": [1.0], "x": [2**70]}, ValueError, "out of range"),
        ({}, ValueError, "it has none"),
        ({"time": [1.0], "y": [1.0]}, ValueError, "no column 'x', which the specification reads from topic 's'; it has time, y"),
        ({"time": [1.0], "x": ["fast"]}, TypeError, "column 'x' has the type Utf8, and .* reads values of the type float"),
        ({"time": [1.0], 1: [1.0]}, TypeError, "name of a column"),
        ({"time": [1.0], "x": [datetime.datetime(2026, 1, 1)]}, ValueError, "column 'x', row 0: the datetime has no time zone"),
        ([1, 2], TypeError, "is no table"),
        ({"time": [1.0], "x": [1], "x.y": [2]}, TypeError, "same field"),
    ],
)
def test_mistakes_are_named(columns, error, text):
    with pytest.raises(error, match=text):
        rondel.Monitor(SPEC).push_many("s", columns)


def test_columns_that_are_not_read_may_contain_anything():
    columns = {"time": [1.0], "x": [1.0], "other": [{1}], "name": [3]}
    assert len(rondel.Monitor(SPEC).push_many("s", columns)) == 1


def test_columns_without_values():
    monitor = rondel.Monitor(SPEC)
    monitor.push_many("s", {"time": [1.0, 2.0], "x": [None, None]})
    assert monitor.summary().checked == 2


def test_dictionaries_without_values():
    pyarrow = pytest.importorskip("pyarrow")
    nulls, none = pyarrow.array([None, None], "int8"), pyarrow.array([], "string")
    table = pyarrow.table({"time": [1.0, 2.0], "kind": pyarrow.DictionaryArray.from_arrays(nulls, none)})
    monitor = rondel.Monitor('topic s { kind: string }  property p = s.kind == "a"')
    monitor.push_many("s", table)
    assert monitor.summary().checked == 2


def test_floats_are_no_integers():
    monitor = rondel.Monitor("topic s { n: int }  property p = s.n < 3")
    with pytest.raises(TypeError, match="Int64"):
        monitor.push_many("s", {"time": [1.0], "n": [1.5]})


def test_columns_of_times():
    spec = "topic s { at: time }  property p = s.at - prev(s.at) <= 1 ms"
    at = [datetime.datetime(2026, 1, 1, microsecond=us, tzinfo=datetime.timezone.utc) for us in (1, 1001, 2002)]
    monitor = rondel.Monitor(spec, emit="every")
    reports = monitor.push_many("s", {"time": at, "at": at})
    assert [report.verdict for report in reports] == ["inconclusive", "satisfied", "violated"]
    assert reports[1].time_ns % 1_000_000_000 == 1_001_000


def test_lists_and_structures():
    pyarrow = pytest.importorskip("pyarrow")
    spec = "topic s { p: { q: int }, a: [float] }  property p = s.p.q < 2 and (all x in s.a: x < 3)"
    for kind in (pyarrow.list_(pyarrow.float64()), pyarrow.large_list(pyarrow.float64()), pyarrow.list_(pyarrow.float64(), 2)):
        table = pyarrow.table(
            {
                "time": pyarrow.array([0.0, 1.0, 2.0, 3.0]),
                "p": pyarrow.array([{"q": 9}, {"q": 1}, {"q": 1}, {"q": 2}]),
                "a": pyarrow.array([[9.0, 9.0], [1.0, 2.0], [1.0, 4.0], [1.0, 1.0]], kind),
            }
        )
        # Slices begin within their buffers.
        reports = rondel.Monitor(spec, emit="every").push_many("s", table.slice(1))
        assert [report.verdict for report in reports] == ["satisfied", "violated", "violated"]


def test_tables_with_times_of_libraries():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame({"x": [1.0, 9.0], "time": pandas.to_datetime([1, 2], unit="s", utc=True)})
    for table in (frame, polars.from_pandas(frame)):
        reports = rondel.Monitor(SPEC).push_many("s", table)
        assert [report.time for report in reports] == [1.0, 2.0]
    frame["kind"] = pandas.Categorical(["a", "b"])
    monitor = rondel.Monitor('topic s { kind: string }  property p = s.kind == "a"')
    assert [report.verdict for report in monitor.push_many("s", frame)] == ["satisfied", "violated"]


def test_dict_of_arrays_of_numpy():
    numpy = pytest.importorskip("numpy")
    columns = {"time": numpy.arange(3.0), "x": numpy.array([1.0, numpy.nan, 9.0])}
    reports = rondel.Monitor(SPEC).push_many("s", columns)
    assert [report.verdict for report in reports] == ["satisfied", "inconclusive", "violated"]


def test_times_that_step_back_are_counted():
    monitor = rondel.Monitor(SPEC)
    monitor.push_many("s", {"time": [1.0, 3.0, 2.0], "x": [1.0, 2.0, 2.5]})
    assert monitor.summary().checked == 3


def test_empty_tables():
    assert rondel.Monitor(SPEC).push_many("s", {"time": [], "x": []}) == []
