"""The interface of Reelay: its documented examples, and cases of its monitors with the expected results."""

import math

import pytest
import rondel
import rondel.compat.reelay as reelay

INF = math.inf
T, F = True, False

#: Speeds and lights of a car, a row each.
SPEEDS = [3.3, 6.3, 9.3, 13.3, 13.4, 13.3, 13.2, 13.2]
LIGHTS = [F, F, T, F, F, F, F, F]
ROWS = [{"speed": speed, "lights_on": light} for speed, light in zip(SPEEDS, LIGHTS)]

#: Messages of sensors: which one, and whether it was calibrated (c) or sent data (s).
SENSORS = ["1c", "2c", "1s", "1s", "1s", "1c", "2s", "1s", "1s", "2s"]
CALIBRATED = "{sensor_id: *sensor, action: calibrated}"
SENT = "{sensor_id: *sensor, action: send_data}"

#: A door with a warning: time, open, suppressed, warning. The second ends in a warning in spite of the suppression.
CORRECT = [(0, F, F, F), (1, T, F, F), (6, T, F, T), (7, T, T, F)]
FAULTY = [*CORRECT, (8, T, T, T)]
DOOR = [
    "(historically[0:5]{door_open} and not {dow_suppressed}) -> {door_open_warning}",
    "{door_open_warning} -> historically[0:5]{door_open}",
    "{door_open_warning} -> not {dow_suppressed}",
]


def sensor(text):
    return {"sensor_id": text[0], "action": {"c": "calibrated", "s": "send_data"}[text[1]]}


def door(time, is_open, is_suppressed, warns):
    return {"time": time, "door_open": is_open, "dow_suppressed": is_suppressed, "door_open_warning": warns}


@pytest.mark.parametrize(
    "pattern, rows, expected",
    [
        ("{speed > 13.0} since[:3] {lights_on}", ROWS, [F, F, T, T, T, T, F, F]),
        ("once[0:2]{lights_on}", ROWS, [F, F, T, T, T, F, F, F]),
        ("historically{speed < 13.3}", ROWS, [T, T, T, F, F, F, F, F]),
        ("pre{lights_on: true}", ROWS, [F, F, F, T, F, F, F, F]),
        ("{other}", ROWS, [F] * 8),
        (f"forall[sensor]. {SENT} implies once[:4]{CALIBRATED}", [sensor(text) for text in SENSORS],
         [T, T, T, T, T, T, F, T, T, F]),
        # Without an upper bound every value is kept.
        (f"forall[sensor]. {SENT} -> once{CALIBRATED}", [sensor(text) for text in [*SENSORS, "3s"]], [T] * 10 + [F]),
        ("{a: 'x\"#y'}", [{"a": "x\"#y"}, {"a": "x"}], [T, F]),
    ],
)
def test_discrete_truths(pattern, rows, expected):
    monitor = reelay.discrete_timed_monitor(pattern=pattern, semantics="boolean", condense=False)
    assert [monitor.update(row) for row in rows] == [{"value": value} for value in expected]
    assert monitor.now() == {"time": len(rows) - 1}
    condensing = reelay.discrete_timed_monitor(pattern=pattern, t_name="step", y_name="verdict")
    changes = [
        {} if at > 0 and expected[at - 1] == value else {"step": at, "verdict": value} for at, value in enumerate(expected)
    ]
    assert [condensing.update(row) for row in rows] == changes


def test_discrete_robustness():
    monitor = reelay.discrete_timed_monitor(
        pattern="{speed > 13.0} since[:3] {lights_on: true}", semantics="robustness", t_name="index", y_name="rval"
    )
    expected = [(0, -INF), None, (2, INF), (3, 0.3), None, None, (6, -INF), None]
    results = [monitor.update(row) for row in ROWS]
    assert [bool(result) for result in results] == [entry is not None for entry in expected]
    for result, entry in zip(results, expected):
        assert entry is None or (result["index"], result["rval"]) == (entry[0], pytest.approx(entry[1], 0.001))
    monitor = reelay.discrete_timed_monitor(pattern="{speed > 13.0}", semantics="robustness", condense=False)
    assert monitor.update({"speed": 14.5}) == {"value": 1.5}


@pytest.mark.parametrize(
    "pattern, options, rows, expected",
    [
        ("{speed > 12.0}", {}, [(0, 3), (10, 9), (12, 13), (14, 11), (15, 9), (18, 6), (19, None)],
         [(0, F), (12, T), (14, F)]),
        ("{speed > 12.0}", {"piecewise": "linear"}, [(0, 3), (10, 9), (12, 13), (14, 11), (15, 9), (18, 6), (19, 14)],
         [(0, F), (11.5, T), (13, F), (18.75, T)]),
        ("once[0:2]{speed > 12}", {"t_name": "at", "y_name": "is"}, [(0, 3), (2, 13), (3, 1), (9, 1)],
         [(0, F), (2, T), (5, F)]),
        # Time begins at 0, where nothing is known yet.
        ("{speed > 2}", {}, [(2.5, 3), (3.5, 1), (5, 4)], [(0, F), (2.5, T), (3.5, F)]),
        ("!{speed > 2}", {}, [(2.5, 3), (3.5, 1)], [(0, T), (2.5, F)]),
        ("once[1:2]{speed > 2}", {"semantics": "robustness"}, [(0, 3), (1, 1), (5, 1)], [(0, -INF), (1, 1), (3, -1)]),
    ],
)
def test_dense_values(pattern, options, rows, expected):
    monitor = reelay.dense_timed_monitor(pattern=pattern, **options)
    time_name, value_name = options.get("t_name", "time"), options.get("y_name", "value")
    results = []
    for time, speed in rows:
        row = {time_name: time} if speed is None else {time_name: time, "speed": float(speed)}
        results.extend(monitor.update(row))
    assert results == [{time_name: time, value_name: value} for time, value in expected]
    assert monitor.now() == {time_name: rows[-1][0]}


def test_dense_robustness():
    monitor = reelay.dense_timed_monitor(pattern="{speed > 130} since[:40] {lights_on: true}", semantics="robustness")
    results = []
    for time, speed, light in zip([0, 12, 14, 18, 21, 26, 45, 68], [33, 63, 93, 133, 134, 133, 132, 132], LIGHTS):
        results.extend(monitor.update({"time": float(time), "speed": speed, "lights_on": light}))
    assert [(result["time"], result["value"]) for result in results] == [(0, -INF), (14, INF), (18, 3), (45, 2), (58, -INF)]


def test_dense_data():
    monitor = reelay.dense_timed_monitor(pattern=f"forall[sensor]. {SENT} implies once[:40]{CALIBRATED}")
    times = [6, 12, 15, 24, 27, 32, 46, 49, 56, 62, 67]
    texts = ["1c", "2c", "1s", "1s", "1s", "1c", "2s", "1s", "1s", "2s", "1s"]
    results = monitor.update({"time": 0.0})
    for time, text in zip(times, texts):
        results.extend(monitor.update({"time": float(time), **sensor(text)}))
    assert results == [{"time": 0.0, "value": True}, {"time": 62.0, "value": False}]


@pytest.mark.parametrize("rows, violated", [(CORRECT, []), (FAULTY, [DOOR[2]])])
def test_documented_door(rows, violated):
    for pattern in DOOR:
        monitor, results = reelay.dense_timed_monitor(pattern=pattern), []
        for row in [*map(lambda row: door(*row), rows), {"time": rows[-1][0] + 1}]:
            results.extend(monitor.update(row))
        assert any(result["value"] is False for result in results) == (pattern in violated)


def test_time_that_steps_back():
    monitor = reelay.dense_timed_monitor(pattern="{a}")
    monitor.update({"time": 0.0, "a": True})
    assert monitor.update({"time": 2.0, "a": False}) == [{"time": 0.0, "value": True}]
    assert monitor.update({"time": 1.0, "a": False}) == []
    assert monitor.update({"time": 4.0, "a": True}) == [{"time": 2.0, "value": False}]


def test_row_without_a_time():
    with pytest.raises(KeyError, match="time"):
        reelay.dense_timed_monitor(pattern="{a}").update({"a": True})


@pytest.mark.parametrize(
    "pattern, message",
    [
        ("onec{a}", "1:1: error[E0102]: unknown operator 'onec'; did you mean 'once'?"),
        ("{a} and\n  {b", "2:5: "),
        ("{a} since {b} since {c}", "1:15: "),
    ],
)
def test_mistake_names_its_place(pattern, message):
    with pytest.raises(rondel.SpecificationError) as error:
        reelay.discrete_timed_monitor(pattern=pattern)
    assert message in str(error.value)
    assert all(0 <= begin <= end <= len(pattern) for _, _, begin, end, _ in error.value.diagnostics)


@pytest.mark.parametrize(
    "make, options, message",
    [
        (reelay.discrete_timed_monitor, {"semantics": "bool"}, "semantics must be"),
        (reelay.dense_timed_monitor, {"piecewise": "cubic"}, "piecewise must be"),
        (reelay.dense_timed_monitor, {"piecewise": "linear", "semantics": "robustness"}, "not available for robustness"),
        (reelay.dense_timed_monitor, {"pattern": "{k: *x}", "piecewise": "linear"}, "data references"),
        (reelay.discrete_timed_monitor, {"pattern": "exists[x]. {k: *x}", "semantics": "robustness"}, "data references"),
    ],
)
def test_options_that_do_not_fit(make, options, message):
    with pytest.raises(AttributeError, match=message):
        make(**{"pattern": "{a}", **options})
