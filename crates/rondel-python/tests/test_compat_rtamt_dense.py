"""The interface of RTAMT in dense time: its documented examples, and its operators with the expected signals."""

import math
import random

import pytest
import rondel.compat.rtamt as rtamt
from rtamt_specification import parsed, specification

INF = math.inf
#: Signals of the cases in dense time.
X = [[0, 1.0], [2, 5.0], [3, -1.0]]
Y = [[0, 2.0], [1, 3.0], [4, 0.0]]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("7", [[0, 7], [INF, 7]]),
        ("a >= 2", [[0, -1], [2, 3], [3, -3]]),
        ("a + b", [[0, 3], [1, 4], [2, 8], [3, 2], [4, -1]]),
        ("a and b", [[0, 1], [2, 3], [3, -1], [4, -1]]),
        ("a iff b", [[0, -1], [1, -2], [3, -4], [4, -1]]),
        ("once a", [[0, 1], [2, 5], [3, 5]]),
        ("once[1:2] a", [[0, -INF], [1, 1], [3, 5]]),
        ("historically[0:2] (a > 0)", [[0, 1], [3, -1]]),
        ("eventually[0:2] a", [[0, 5], [3, -1]]),
        ("eventually[0:500 ms] a", [[0, 1], [1.5, 5], [3, -1]]),
        ("always[1:2] (a > 0)", [[0, 1], [1, -1], [3, -1]]),
        ("always a", [[0, -1], [3, -1]]),
        ("a >= once[0:1] b", [[0, -1], [1, -2], [2, 2], [3, -4], [4, -4]]),
        ("a since b", [[0, 2], [1, 3], [4, 0]]),
        ("a until[0:2] b", [[0, 2], [1, 3], [4, 0]]),
        ("historically[0:1] (eventually[0:1] a)", [[0, 1], [2, 5], [3, -1]]),
    ],
)
def test_dense_formula(text, expected):
    assert parsed(text, dense=True).evaluate(["a", X], ["b", Y]) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a >= 2", [[[0, -1], [2, 3], [3, -3]], [[6, 0], [9, 1]]]),
        ("a + b", [[[0, 3], [1, 4], [2, 8], [3, 2]], [[4, -1], [6, 2], [8, 3]]]),
        ("once[1:2] a", [[[0, -INF], [1, 1], [3, 5]], [[5, -1], [7, 2]]]),
        ("eventually[0:2] a", [[[0, 1], [2, 5]], [[5, -1], [6, 2], [9, 3]]]),
        ("a until[0:2] b", [[[0, -INF], [2, 2]], [[3, 3], [6, 0]]]),
    ],
)
def test_dense_formula_online(text, expected):
    spec = parsed(text, dense=True)
    spec.pastify()
    assert [spec.update(["a", X], ["b", Y]), spec.update(["a", [[6, 2.0], [9, 3.0]]], ["b", [[8, 1.0]]])] == expected


def test_dense_result_waits_for_every_variable():
    spec = parsed("a and b", dense=True)
    assert spec.update(["a", [[1, 2], [4.1, 1], [5, 2], [6.1, 1]]], ["b", [[1.2, 1]]]) == [[1.2, 1]]
    assert spec.update(["a", []], ["b", [[3.7, 3], [7.5, 2]]]) == [[3.7, 2], [4.1, 1], [5, 2], [6.1, 1]]
    assert spec.update(["a", [[6.7, 4], [9.9, 5]]], ["b", [[8.1, 6]]]) == [[6.7, 3], [7.5, 2], [8.1, 4]]


def test_dense_result_does_not_depend_on_pieces():
    """Signals in random pieces have the result of the whole ones."""
    formulas = ["once[1:2] a", "historically[0:3] (a > b)", "abs(once[0:2] a) - b", "a since[0:4] (a and b)", "a until[1:3] b"]
    for seed in range(20):
        rng = random.Random(seed)
        text = formulas[seed % len(formulas)]
        signals = {
            name: [[time / 2, rng.randrange(-8, 9) / 2] for time in [0, *sorted(rng.sample(range(1, 24), 9)), 24]]
            for name in "ab"
        }
        whole, pieces = parsed(text, dense=True), parsed(text, dense=True)
        whole.pastify()
        pieces.pastify()
        expected = whole.update(*([name, signal] for name, signal in signals.items()))
        found, rest = [], {name: list(signal) for name, signal in signals.items()}
        while any(rest.values()):
            cuts = {name: rng.randrange(4) for name in "ab"}
            found += pieces.update(*([name, rest[name][:cut]] for name, cut in cuts.items()))
            rest = {name: rest[name][cut:] for name, cut in cuts.items()}
        assert changes(found) == changes(expected), (seed, text)


def changes(signal):
    """A signal without samples that change nothing; of several at one time the last counts."""
    last = dict(map(tuple, signal))
    times = sorted(last)
    return [(time, last[time]) for at, time in enumerate(times) if at == 0 or last[times[at - 1]] != last[time]]


def test_dense_until_at_a_jump():
    """`b` follows `a` without a gap: until holds up to the jump, by the definition in robustness over real times."""
    a, b = [[0, 1.0], [5, -1.0], [9, -1.0]], [[0, -1.0], [5, 1.0], [7, -1.0], [9, -1.0]]
    result = parsed("a until[0:10] b", dense=True).evaluate(["a", a], ["b", b])

    def value(signal, time):
        return [value for begin, value in signal if begin <= time][-1]

    quarters = [quarter / 4 for quarter in range(40)]
    for time in quarters[:36]:
        ends = [end for end in quarters if time <= end <= time + 10]
        expected = max(
            min([value(b, end), *(value(a, between) for between in quarters if time <= between < end)]) for end in ends
        )
        assert value(result, time) == expected, time
    assert result == [[0, 1], [7, -1], [9, -1]]


@pytest.mark.parametrize("text", ["prev a", "s_next a", "rise(a > 1)", "fall(a)", "a and next b"])
def test_operators_of_samples_are_refused_in_dense_time(text):
    with pytest.raises(rtamt.RTAMTException, match="is not defined in dense time"):
        parsed(text, dense=True).evaluate(["a", X], ["b", Y])


def test_dense_samples_that_come_twice_or_late():
    spec = parsed("once[0:2] a", dense=True)
    assert spec.update(["a", [[0, 1.0], [4, 3.0]]]) == [[0, 1], [4, 3]]
    for piece in [[0, 1.0], [4, 3.0]], [[2, 8.0], [5, 0.0]], [[5, 1.0], [5, 2.0]]:
        with pytest.raises(rtamt.RTAMTException, match="the times of 'a' must increase"):
            spec.update(["a", piece])
    # Nothing was evaluated. A piece may begin with the last time.
    assert spec.update(["a", [[4, 3.0], [5, 0.0]]]) == []
    with pytest.raises(rtamt.RTAMTException, match="the times of 'a' must increase"):
        parsed("once a", dense=True).evaluate(["a", [[5, 5.0], [1, 1.0]]])


def test_dense_names_that_are_not_declared():
    for call in parsed("once a", dense=True).evaluate, parsed("once a", dense=True).update:
        with pytest.raises(rtamt.RTAMTException, match="no samples of 'a'; not declared: 'z'"):
            call(["z", [[0, 1.0]]])
    with pytest.raises(rtamt.RTAMTException, match="no samples of 'a'"):
        parsed("once a", dense=True).evaluate()


def test_dense_pastified_formula_over_whole_signals():
    for text in ["eventually[0:2] a", "a until[0:2] b", "(a until[1:2] b) or always[0:1] a"]:
        online, offline = parsed(text, dense=True), parsed(text, dense=True)
        online.pastify()
        offline.pastify()
        signals = ["a", X], ["b", [*Y[:2], [3, 0.0]]]
        # At the last sample, `until` is not certain before time passes.
        results = [changes(evaluate(*signals)) for evaluate in (online.update, offline.evaluate)]
        assert results[0][:2] == results[1][:2] and len(results[0]) >= 2


def test_dense_unit():
    spec = specification("eventually[0:2 s] (a >= 1)", dense=True)
    spec.unit = "ms"
    spec.parse()
    assert spec.evaluate(["a", [[0, 0.0], [2500, 4.0], [2600, 0.0]]]) == [[0, -1], [500, 3], [2600, -1]]


def test_documented_dense_examples():
    spec = rtamt.StlDenseTimeSpecification()
    spec.name = "online"
    spec.declare_var("a", "float")
    spec.spec = "a>=2"
    spec.parse()
    # RTAMT repeats values that do not change; here only changes are returned.
    assert spec.update(["a", [(0, 3), (3, 2)]], ["b", [(0, 2), (2, 5), (4, 1), (7, -7)]]) == [[0, 1], [3, 0]]
    assert spec.update(["a", [(5, 6), (6, -2), (8, 7), (11, -1)]], ["b", [(10, 4)]]) == [[5, 4], [6, -4], [8, 5], [11, -3]]
    assert spec.update(["a", [(13, -6), (15, 0)]], ["b", [(15, 0)]]) == [[13, -8], [15, -2]]
    spec = rtamt.StlDenseTimeSpecification()
    for name, direction in [("req", "input"), ("gnt", "output"), ("out", "output")]:
        spec.declare_var(name, "float")
        spec.set_var_io_type(name, direction)
    spec.spec = "out = always((req>=3) implies (eventually[0:5](gnt>=3)))"
    spec.parse()
    req = [[0.0, 0.0], [3.0, 6.0], [5.0, 0.0], [11.0, 0.0]]
    gnt = [[0.0, 0.0], [7.0, 6.0], [9.0, 0.0], [11.0, 0.0]]
    assert spec.evaluate(["req", req], ["gnt", gnt]) == [[0, 3], [11, 3]]
