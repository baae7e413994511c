"""The interface of RTAMT in discrete time: its documented examples, and its operators with the expected numbers."""

import math
import re
import types

import pytest
import rondel.compat.rtamt as rtamt
from rtamt_specification import parsed, specification

INF = math.inf
#: Samples of the operator cases.
A = [100.0, -1.0, -2.0, 5.0, -1.0]
B = [20.0, -2.0, 10.0, 4.0, -1.0]


#: Formulas of values and of the past: the result along with time and over the whole trace.
PAST = [
    ("5", [5, 5, 5, 5, 5]),
    ("k", [2.5] * 5),
    ("5 > 3", [2, 2, 2, 2, 2]),
    ("a", A),
    ("a + b", [120, -3, 8, 9, -2]),
    ("a - b", [80, 1, -12, 1, 0]),
    ("a * b", [2000, 2, -20, 20, 1]),
    ("a / b", [5, 0.5, -0.2, 1.25, 1]),
    ("-a", [-100, 1, 2, -5, 1]),
    ("abs(a)", [100, 1, 2, 5, 1]),
    ("sqrt(abs(a))", [10, 1, math.sqrt(2), math.sqrt(5), 1]),
    ("exp(a - 100)", [1, math.exp(-101), math.exp(-102), math.exp(-95), math.exp(-101)]),
    ("pow(b, 2)", [400, 4, 100, 16, 1]),
    ("ln(abs(a))", [math.log(100), 0, math.log(2), math.log(5), 0]),
    ("log(abs(b), 2)", [math.log2(20), 1, math.log2(10), 2, 0]),
    ("a <= b", [-80, -1, 12, -1, 0]),
    ("a < b", [-80, -1, 12, -1, 0]),
    ("a >= b", [80, 1, -12, 1, 0]),
    ("a > b", [80, 1, -12, 1, 0]),
    ("a == b", [-80, -1, -12, -1, 0]),
    ("a !== b", [80, 1, 12, 1, 0]),
    ("not a", [-100, 1, 2, -5, 1]),
    ("a and b", [20, -2, -2, 4, -1]),
    ("a or b", [100, -1, 10, 5, -1]),
    ("a -> b", [20, 1, 10, 4, 1]),
    ("a implies b", [20, 1, 10, 4, 1]),
    ("a iff b", [-80, -1, -12, -1, 0]),
    ("a <-> b", [-80, -1, -12, -1, 0]),
    ("a xor b", [80, 1, 12, 1, 0]),
    ("rise(a)", [100, -100, -2, 2, -5]),
    ("fall(a)", [-100, 1, -1, -5, 1]),
    ("prev a", [INF, 100, -1, -2, 5]),
    ("s_prev a", [-INF, 100, -1, -2, 5]),
    ("once a", [100, 100, 100, 100, 100]),
    ("historically a", [100, -1, -2, -2, -2]),
    ("a since b", [20, -1, 10, 5, -1]),
    ("once[0:1] a", [100, 100, -1, 5, 5]),
    ("once[1,2] a", [-INF, 100, 100, -1, 5]),
    ("once[0, two s] a", [100, 100, 100, 5, 5]),
    ("historically[0:1] a", [100, -1, -2, -2, -1]),
    ("historically[1:2] a", [INF, 100, -1, -2, -2]),
    ("a since[0:1] b", [20, -1, 10, 5, -1]),
    # Values of temporal formulas are computed with.
    ("abs(once[1,2] a)", [INF, 100, 100, 1, 5]),
    ("a + once[0:1] b", [120, 19, 8, 15, 3]),
    ("(historically a) iff (once b)", [-80, -21, -22, -22, -22]),
    ("abs(prev abs(prev a))", [INF, INF, 100, 1, 2]),
    # Precedence.
    ("a or b and not a", [100, -1, 2, 5, -1]),
    ("a >= 2 and b >= 2 or a <= 0", [18, 1, 2, 2, 1]),
    ("once a since b", [20, 20, 20, 20, 20]),
    ("prev a >= b", [INF, 80, 1, -12, 1]),
    ("a -> b -> a", [100, -1, -2, 5, -1]),
    ("O[0:1] a & ! b | Y b", [INF, 20, -2, 10, 4]),
]

#: Formulas of the future, over the whole trace.
FUTURE = [
    ("next a", [-1, -2, 5, -1, INF]),
    ("s_next a", [-1, -2, 5, -1, -INF]),
    ("always a", [-2, -2, -2, -1, -1]),
    ("eventually a", [100, 5, 5, 5, -1]),
    ("a until b", [20, -1, 10, 4, -1]),
    ("always[0,1] a", [-1, -2, -2, -1, -1]),
    ("always[1,1] a", [-1, -2, 5, -1, INF]),
    ("eventually[0,1] a", [100, -1, 5, 5, -1]),
    ("eventually[3:9] a", [5, -1, -INF, -INF, -INF]),
    ("a until[0,1] b", [20, -1, 10, 4, -1]),
    ("a unless[0,1] b", [20, -1, 10, 4, -1]),
    ("a unless b", [20, -1, 10, 4, -1]),
    # The past within the future, and the other way round.
    ("always (once[0:1] a)", [-1, -1, -1, 5, 5]),
    ("once (eventually[0:1] a)", [100, 100, 100, 100, 100]),
    ("(once[1:1] a) and (next b)", [-INF, 10, -1, -2, 5]),
    ("abs(next a) - prev b", [-INF, -18, 7, -9, INF]),
]


@pytest.mark.parametrize("text, expected", PAST)
def test_formula_of_the_past(text, expected):
    online, offline = parsed(f"out = {text}"), parsed(text)
    assert [online.update(time, [("a", a), ("b", b)]) for time, (a, b) in enumerate(zip(A, B))] == pytest.approx(expected)
    times = [0, 1, 2, 3, 4]
    result = offline.evaluate({"time": times, "a": A, "b": B})
    assert [time for time, _ in result] == times
    assert [value for _, value in result] == pytest.approx(expected)


@pytest.mark.parametrize("text, expected", FUTURE)
def test_formula_of_the_future(text, expected):
    result = parsed(text).evaluate({"time": [0, 1, 2, 3, 4], "a": A, "b": B})
    assert [value for _, value in result] == pytest.approx(expected)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("next a", A),
        ("eventually[0:1] a", [100, 100, -1, 5, 5]),
        ("always[0,2](eventually[0:1] a)", [100, 100, -1, -1, -1]),
        ("a until[0:1] b", [20, 20, -1, 10, 4]),
        ("a until[1:2] a", [100, 100, -1, -2, -2]),
        ("(a until[0:2] b) or (b until[2:2] a)", [100, 20, 20, -1, 10]),
        ("always[1:2] a", [100, -1, -2, -2, -1]),
        # The present is delayed like the future, and nothing is known of the time before the first sample.
        ("(a >= b) and (eventually[0:1] b)", [-INF, 20, 1, -12, 1]),
        ("(historically[0:1] a) or next b", [20, 100, 10, 4, -1]),
    ],
)
def test_pastified_formula(text, expected):
    spec = parsed(text)
    spec.pastify()
    assert [spec.update(time, [("a", a), ("b", b)]) for time, (a, b) in enumerate(zip(A, B))] == expected


@pytest.mark.parametrize(
    "text, place, message",
    [
        ("out = a >=", "1:10", "expected an expression, found the end of the specification"),
        ("a >= onec[0:1] b", "1:5", "'onec' is not declared; did you mean 'once'?"),
        ("a > c", "1:4", "'c' is not declared: declare it with declare_var('c', 'float')"),
        ("a/b > 1", "1:0", "'a/b' is not declared: '/' may be part of a name, put spaces around it to divide"),
        ("a != b", "1:2", "unequal is written '!=='"),
        ("a >= 1\nand\n\talways[2:1] b", "3:8", "the bounds are in the wrong order"),
        ("once[0:1.5] a", "1:7", "must be a multiple of the sampling period, 1 s"),
        ("once[0:x] a", "1:7", "the bound 'x' is not a constant"),
        ("once[0:2 h] a", "1:9", "expected a unit (s, ms, us, ns)"),
        ("once[:2] a", "1:5", "expected a bound"),
        ("(a > 1", "1:6", "expected ')'"),
        ("a > 1 b", "1:6", "expected the end of the formula, or an operator"),
        ("a # b", "1:2", "unexpected character '#'"),
        ("a.x > 1", "1:0", "'a' is a float and has no field 'x'"),
        ("cos(a)", "1:0", "'cos' is not declared; the functions are abs, exp, ln, log, pow, sqrt"),
        ("a > 1\nadn b > 1", "2:0", "'adn' is not declared; did you mean 'and'?"),
        ("speed x\na > x", "1:0", "'speed' is not declared"),
        ("not " * 100 + "a", "1:", "more than 80 operators inside each other"),
        (" and ".join(["a"] * 500), "1:0", "more than 80 operators inside each other"),
        ("", "", "the specification is empty"),
    ],
)
def test_mistake_names_its_place(text, place, message):
    with pytest.raises(rtamt.RTAMTException) as error:
        parsed(text)
    assert place in str(error.value)
    assert message in str(error.value)


def test_mistake_shows_the_line():
    with pytest.raises(rtamt.RTAMTException) as error:
        parsed("a >= 1 and\nalwasy[0:2] b")
    assert str(error.value).splitlines()[1:] == ["  alwasy[0:2] b", "  ^^^^^^"]


def test_mistake_in_a_sub_specification_names_its_text():
    spec = specification("c > 1")
    spec.add_sub_spec("c = a +")
    with pytest.raises(rtamt.RTAMTException, match="1:7: .*found the end"):
        spec.parse()


@pytest.mark.parametrize("text", ["always a", "eventually a", "a until b", "a and next b", "eventually[0:1] a"])
def test_future_needs_bounds_and_pastify_online(text):
    with pytest.raises(rtamt.RTAMTException, match="looks ahead"):
        parsed(text).update(0, [("a", 1.0), ("b", 1.0)])
    if "[" not in text and "next" not in text:
        with pytest.raises(rtamt.RTAMTException, match="cannot pastify an unbounded"):
            parsed(text).pastify()


def test_calls_in_the_wrong_order():
    with pytest.raises(rtamt.RTAMTException, match=r"call parse\(\) first"):
        specification("a").update(0, [("a", 1.0)])
    with pytest.raises(rtamt.RTAMTException, match="no column 'time'"):
        parsed("a").evaluate({"a": [1.0]})
    with pytest.raises(rtamt.RTAMTException, match="no column 'b'"):
        parsed("a > b").evaluate({"time": [0], "a": [1.0]})
    with pytest.raises(rtamt.RTAMTException, match="column 'a' has 1 rows, 'time' 2"):
        parsed("a").evaluate({"time": [0, 1], "a": [1.0]})


def test_trace_without_samples():
    assert parsed("once a").evaluate({"time": [], "a": []}) == []
    assert parsed("once a", dense=True).evaluate(["a", []]) == []
    spec = parsed("a and b", dense=True)
    assert spec.update(["a", [[0, 1.0]]]) == []
    assert spec.update(["b", [[0, 1.0]]], ["other", [[0, 3.0]]]) == [[0, 1.0]]


def test_value_stays_until_it_is_set_again():
    spec = parsed("a - b")
    for dataset in [("a", 3.0)], [("a", 3.0), ("z", 1.0)]:
        with pytest.raises(rtamt.RTAMTException, match="update: there are no samples of 'b'"):
            spec.update(0, dataset)
    assert spec.update(0, [("a", 3.0), ("b", 0.0)]) == 3.0
    assert spec.update(1, [("b", 1.0)]) == 2.0
    assert spec.update(2, []) == 2.0


def test_computation_without_a_result_is_nan():
    spec = parsed("sqrt(a) >= 1")
    assert math.isnan(spec.update(0, [("a", -1.0)]))
    assert spec.update(1, [("a", 4.0)]) == 1.0
    assert parsed("a / b").update(0, [("a", 1.0), ("b", 0.0)]) == INF


@pytest.mark.parametrize("value", [None, "fast", [1.0]])
def test_value_that_is_no_number(value):
    with pytest.raises(rtamt.RTAMTException, match="the value of 'a' is .*, not a number"):
        parsed("a").update(0, [("a", value)])
    with pytest.raises(rtamt.RTAMTException, match="the value of 'a' is .*, not a number"):
        parsed("a").evaluate({"time": [0], "a": [value]})
    with pytest.raises(rtamt.RTAMTException, match="the value of 'a' is .*, not a number"):
        parsed("a", dense=True).update(["a", [[0, value]]])


def test_unknown_and_infinite_values():
    spec = parsed("a >= 1")
    assert spec.update(0, [("a", INF)]) == INF
    assert math.isnan(spec.update(1, [("a", math.nan)]))
    assert spec.update(2, [("a", 3)]) == 2


def test_reset_forgets_samples():
    spec = parsed("once a")
    assert [spec.update(0, [("a", 3.0)]), spec.update(1, [("a", 1.0)])] == [3.0, 3.0]
    spec.reset()
    assert spec.update(0, [("a", 1.0)]) == 1.0
    assert spec.sampling_violation_counter == 0


@pytest.mark.parametrize(
    "unit, period, tolerance, text, times, violations",
    [
        ("s", None, 0.1, "eventually[0:5](b>=3)", [0, 1, 2], 0),
        ("s", None, 0.1, "eventually[0:5](b>=3)", [0, 1.02, 1.98], 0),
        ("s", None, 0.1, "eventually[0:5](b>=3)", [0, 1.02, 2.14], 1),
        ("s", (1, "s"), 0.2, "eventually[0:5](b>=3)", [0, 1.02, 2.14], 0),
        ("s", (500, "ms"), 0.1, "eventually[0.5:1.5](b>=3)", [0, 0.5, 1], 0),
        ("ms", (500, "ms"), 0.1, "eventually[500:1500](b>=3)", [0, 500, 1000], 0),
        ("ms", (1, "s"), 0.1, "eventually[500s:1500s](b>=3)", [0, 1000, 2000], 0),
        ("ms", (1, "s"), 0.1, "eventually[1:2 s](b>=3)", [0, 1000, 2000], 0),
    ],
)
def test_units_and_sampling(unit, period, tolerance, text, times, violations):
    spec = specification(f"out = (a>=3) implies ({text})")
    spec.unit = unit
    if period:
        spec.set_sampling_period(*period, tolerance)
    spec.parse()
    spec.pastify()
    for time in times:
        spec.update(time, [("a", 0.1), ("b", 0.3)])
    assert spec.sampling_violation_counter == violations


def test_bounds_are_multiples_of_the_period():
    spec = specification("out = always((a>=3) implies (eventually[500:1500](b>=3)))")
    spec.unit = "ms"
    spec.set_sampling_period(1, "s", 0.1)
    with pytest.raises(rtamt.RTAMTException, match="multiple of the sampling period, 1 s"):
        spec.parse()
    with pytest.raises(rtamt.RTAMTException, match="tolerance"):
        spec.set_sampling_period(1, "s", 1.5)


def test_documented_discrete_example():
    spec = rtamt.StlDiscreteTimeSpecification()
    spec.declare_var("a", "float")
    spec.declare_var("b", "float")
    spec.spec = "eventually[0,1] (a >= b)"
    spec.parse()
    spec.pastify()
    samples = [(100.0, 20.0), (-1.0, 2.0), (-2.0, -10.0)]
    assert [spec.update(time, [("a", a), ("b", b)]) for time, (a, b) in enumerate(samples)] == [80, 80, 8]


def test_sub_specifications_and_their_values():
    spec = specification("d = c >= - 2;")
    spec.add_sub_spec("c = a + b;")
    spec.parse()
    assert spec.update(0, [("a", 100.0), ("b", 20.0)]) == 122
    assert [spec.get_value(name) for name in "abcd"] == [100, 20, 120, 122]
    assert spec.evaluate({"time": [0, 1, 2], "a": [100.0, -1.0, -2.0], "b": [20.0, 2.0, 10.0]})[2] == [2, 10]
    assert spec.get_value("c") == [120, 1, 8]
    assert spec.get_value("d") == [122, 3, 10]
    assert parsed("p = a >= 3; q = p and b").update(0, [("a", 4.0), ("b", 2.0)]) == 1


def test_formula_of_several_sub_specifications():
    data = {"time": list(range(12)), "a": [0.0] * 3 + [6.0] * 2 + [0.0] * 7, "b": [0.0] * 7 + [6.0] * 2 + [0.0] * 3}
    whole = parsed("always((a>=3) implies (eventually[0:5]((b>=3) and (b<=10))))")
    parts = specification("always(premise implies response)")
    parts.add_sub_spec("premise = (a >= 3);")
    parts.add_sub_spec("response = (eventually[0:5]((b>=3) and (b<=10)));")
    parts.parse()
    assert parts.evaluate(data) == whole.evaluate(data)
    assert whole.evaluate(data)[0] == [0, 3]


def test_declarations_in_the_text(tmp_path):
    path = tmp_path / "limits.stl"
    path.write_text(
        "specification limits\ninput float speed\nconst float top = 12.5\n// as driven\nout = always[0:1](speed <= top)\n"
    )
    spec = rtamt.StlDiscreteTimeSpecification()
    spec.spec = spec.get_spec_from_file(str(path))
    spec.parse()
    assert (spec.name, spec.var_io_dict["speed"]) == ("limits", "input")
    assert spec.evaluate({"time": [0, 1], "speed": [10.0, 12.0]}) == [[0, 0.5], [1, 0.5]]
    with pytest.raises(rtamt.RTAMTException, match="does not exist"):
        spec.get_spec_from_file(str(tmp_path / "other.stl"))


def test_assertions_on_lines_of_their_own():
    spec = rtamt.StlDiscreteTimeSpecification()
    spec.spec = """
    /** The distance to the vehicle ahead. **/
    specification gap
      float distance
      float speed
      bool ahead
      const float reaction = 0.5

      is_relevant = ahead - 0.5
      needed = speed * reaction + pow(speed, 2) / 10

      is_relevant -> (distance >= needed)
    """
    spec.parse()
    assert spec.update(0, [("distance", 30.0), ("speed", 10.0), ("ahead", True)]) == 15
    assert spec.update(1, [("ahead", False)]) == 15
    assert spec.update(2, [("distance", 10.0)]) == 0.5
    assert (spec.name, spec.get_value("needed")) == ("gap", 15)


def test_variables_that_are_objects(monkeypatch):
    module = types.ModuleType("measures")
    module.Measure = type("Measure", (), {"value": 0.0, "unit": "m"})
    monkeypatch.setitem(__import__("sys").modules, "measures", module)
    spec = rtamt.StlDiscreteTimeSpecification()
    spec.import_module("measures", "Measure")
    for name in ["m", "r"]:
        spec.declare_var(name, "Measure")
    spec.spec = "r.value = once (m.value >= 2)"
    spec.parse()
    measure = module.Measure()
    measure.value = 5.0
    assert spec.update(0, [("m", measure)]) == 3
    assert spec.get_value("r").value == 3
    for text, message in [("m > 1", "not a number"), ("m.unit > 1", "not a number"), ("m.x > 1", "no field")]:
        spec.spec = text
        with pytest.raises(rtamt.RTAMTException, match=message):
            spec.parse()
    with pytest.raises(rtamt.RTAMTException, match="import it with import_module"):
        spec.declare_var("n", "Length")
    with pytest.raises(rtamt.RTAMTException, match="cannot import module"):
        spec.import_module("no_such_module", "Length")


@pytest.mark.parametrize(
    "semantics, expected",
    [("STANDARD", 1), ("OUTPUT_ROBUSTNESS", INF), ("INPUT_ROBUSTNESS", 1), ("INPUT_VACUITY", 1), ("OUTPUT_VACUITY", 0)],
)
def test_interface_aware_semantics(semantics, expected):
    spec = specification("a >= 2", semantics=rtamt.Semantics[semantics])
    spec.set_var_io_type("a", "input")
    spec.parse()
    assert spec.update(0, [("a", 3.0)]) == expected
    assert spec.evaluate({"time": [0], "a": [3.0]}) == [[0, expected]]


@pytest.mark.parametrize(
    "semantics, expected",
    [("STANDARD", 1), ("OUTPUT_ROBUSTNESS", 1), ("INPUT_ROBUSTNESS", 4), ("INPUT_VACUITY", 1), ("OUTPUT_VACUITY", 0)],
)
def test_interface_aware_implication(semantics, expected):
    spec = specification("(a >= 2) and (a - b >= 2 or b >= 4)", semantics=rtamt.Semantics[semantics])
    spec.set_var_io_type("a", "input")
    spec.parse()
    spec.update(0, [("a", 3.0), ("b", 5.0)])
    result = spec.update(1, [("a", 3.0), ("b", 5.0)])
    # b >= 4 has no variable of the input: true without a distance, or vacuous.
    assert result == {"INPUT_ROBUSTNESS": 1, "INPUT_VACUITY": 0}.get(semantics, expected)


def test_vacuous_comparisons_leave_a_number():
    spec = specification("eventually[0:1] ((a >= 2) iff (b > 1))", semantics=rtamt.Semantics.INPUT_VACUITY)
    spec.parse()
    assert spec.evaluate({"time": [0, 1], "a": [3.0, 1.0], "b": [0.0, 1.0]}) == [[0, 0], [1, 0]]


def test_translation_is_a_specification():
    text = parsed("always[0:2] (a >= b)").rondel
    assert text == (
        "topic signals { a: float, b: float }\n\n"
        "@robust @time(steps)\nproperty result = historically[0, 2] (signals.a >= signals.b)\n"
    )
    assert re.findall("^property", parsed("abs(once a) > 1").rondel, re.MULTILINE) == ["property"] * 2


def test_equal_parts_are_evaluated_once():
    assert parsed("abs(once a) + pow(once a, 2)").rondel.count("property") == 2
