"""Compares rondel.compat with the packages that it stands for, on random formulas and signals.

Run by `make test-peers`, with a Python that has rtamt and reelay. A failure prints its seed: `RONDEL_SEED=17` repeats it
alone, `RONDEL_CASES=10` runs ten times as many. What the packages define differently is left out:

| package | left out | reason |
|---|---|---|
| rtamt, dense | `p since q`, `p until q` but for `p since (p and q)` | there `p` must hold where `q` does |
| rtamt, dense | `since`, `until` with a lower bound above zero | two conditions there, which other times of `q` may meet |
| rtamt, online | times before the horizon of a future formula | there with parts of the future |
| rtamt, discrete | variables directly below `always[a:b]`, `eventually[a:b]` | there the columns of the caller grow |
| rtamt, interface-aware | `xor` | has no variables there |
| reelay, dense | `p since q` but for `p since (p and q)` | as above |
| reelay | robustness of `since` with a lower bound above zero | contradicts the truth of the same formula there |
| reelay | robustness of `{p}` | 1 or 0 there, with `{p: true}` infinite |
| reelay | `once[0:0]`, `historically[0:0]` | unbounded there |
"""

import logging
import math
import os
import random
import sys
import warnings

import reelay
import rtamt
from rondel.compat import reelay as our_reelay
from rondel.compat import rtamt as our_rtamt

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

NAMES = ["a", "b", "c"]


def bounds(rng, is_timed):
    if not is_timed:
        return ""
    lower = rng.randrange(3)
    return f"[{lower}:{lower + rng.randrange(4)}]"


def leaf(rng):
    left, right = rng.choice(NAMES), rng.choice([*NAMES, str(rng.randrange(-8, 9) / 2)])
    return rng.choice(
        [
            f"({left} {rng.choice(['<', '<=', '>', '>=', '==', '!=='])} {right})".replace("-", "0 - "),
            f"({left} + {rng.choice(NAMES)} >= 2 * {rng.choice(NAMES)})",
            f"(abs({left} - {rng.choice(NAMES)}) <= 1.5)",
            f"abs({left})",
        ]
    )


def formula(rng, depth, unary, until, model):
    """A formula with operators of `unary`, pairs of a name and whether it may have bounds, and of `until`."""
    if depth == 0 or rng.random() < 0.15:
        return leaf(rng)
    one = formula(rng, depth - 1, unary, until, model)
    kind = rng.randrange(10)
    if kind == 0:
        return f"(not {one})"
    if kind < 5:
        name, is_timed, is_untimed = rng.choice(unary)
        is_timed = is_timed and (not is_untimed or rng.random() < 0.7)
        return f"({name}{bounds(rng, is_timed)} ({one}))"
    other = formula(rng, depth - 1, unary, until, model)
    if kind < 8:
        return f"({one} {rng.choice(['and', 'or', '->', 'iff', 'xor'])} {other})"
    if kind == 8:
        return f"(abs({one}) {rng.choice(['+', '-'])} {other} >= 0.5)"
    name, is_untimed = rng.choice(until)
    timed = "" if is_untimed and rng.random() < 0.4 else bounds(rng, True)
    if model == "dense":
        timed = timed and f"[0:{rng.randrange(4)}]"
        return f"({one} {name}{timed} ({one} and {other}))"
    return f"({one} {name}{timed} {other})"


def specification(package, text, model, semantics="STANDARD"):
    make = package.StlDiscreteTimeSpecification if model == "steps" else package.StlDenseTimeSpecification
    spec = make(semantics=package.Semantics[semantics])
    for name in NAMES:
        spec.declare_var(name, "float")
    spec.set_var_io_type("a", "input")
    spec.spec = text
    spec.parse()
    return spec


def number(rng):
    return rng.randrange(-8, 9) / 2


def is_same(left, right):
    # There NaN, as of the difference of infinities, is lost or not by the order of operands.
    if math.isnan(left) or math.isnan(right):
        return True
    # Reelay's infinity is the greatest number in some operators.
    if min(abs(left), abs(right)) > 1e308:
        return (left > 0) == (right > 0)
    return left == right or math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)


SEMANTICS = [*["STANDARD"] * 4, "OUTPUT_ROBUSTNESS", "INPUT_ROBUSTNESS", "OUTPUT_VACUITY", "INPUT_VACUITY"]
PAST = [("once", True, True), ("historically", True, True), ("prev", False, True), ("s_prev", False, True),
        ("rise", False, True), ("fall", False, True)]
FUTURE = [("eventually", True, True), ("always", True, True), ("next", False, True), ("s_next", False, True)]
BOUNDED = [("eventually", True, False), ("always", True, False)]
DENSE = [("once", True, True), ("historically", True, True), ("eventually", True, True), ("always", True, True)]


def rtamt_offline(rng):
    text = formula(rng, 3, rng.choice([PAST, FUTURE, PAST + FUTURE]), [("since", True), ("until", True)], "steps")
    count, semantics = rng.randrange(2, 25), rng.choice(SEMANTICS)
    text = text if semantics == "STANDARD" else text.replace("xor", "iff")
    data = {"time": list(range(count)), **{name: [number(rng) for _ in range(count)] for name in NAMES}}
    columns = {name: list(column) for name, column in data.items()}
    theirs = specification(rtamt, text, "steps", semantics).evaluate(columns)
    ours = specification(our_rtamt, text, "steps", semantics).evaluate(data)
    return text, (semantics, data), ours, theirs[:count]


def rtamt_online(rng):
    text = formula(rng, 3, PAST, [("since", True)], "steps")
    samples = [[(name, number(rng)) for name in NAMES] for _ in range(rng.randrange(1, 25))]
    semantics = rng.choice(SEMANTICS)
    text = text if semantics == "STANDARD" else text.replace("xor", "iff")
    theirs, ours = (specification(package, text, "steps", semantics) for package in (rtamt, our_rtamt))
    return (
        text,
        (semantics, samples),
        [[time, ours.update(time, sample)] for time, sample in enumerate(samples)],
        [[time, theirs.update(time, sample)] for time, sample in enumerate(samples)],
    )


def rtamt_pastified(rng):
    """Behind its horizon, an evaluation along with time has the values of one over the whole trace."""
    from rondel.compat.rtamt._pastify import horizon

    text = formula(rng, 2, BOUNDED, [("until", False)], "steps")
    count = rng.randrange(2, 30)
    data = {"time": list(range(count)), **{name: [number(rng) for _ in range(count)] for name in NAMES}}
    theirs = specification(rtamt, text, "steps").evaluate({name: list(column) for name, column in data.items()})
    spec = specification(our_rtamt, text, "steps")
    ahead = horizon(spec._assertions[-1].formula)
    spec.pastify()
    ours = [spec.update(time, [(name, data[name][time]) for name in NAMES]) for time in range(count)]
    return text, data, [[time, value] for time, value in enumerate(ours[ahead:])], theirs[: max(0, count - ahead)]


def signal(rng, last):
    times = sorted(rng.sample(range(1, 2 * last), rng.randrange(1, last)))
    return [[0, number(rng)], *([time / 2, number(rng)] for time in times), [last, number(rng)]]


def at(points, time):
    """The value of a signal at a time."""
    return ([math.nan] + [value for begin, value in points if begin <= time])[-1]


def rtamt_dense(rng):
    text = formula(rng, 3, DENSE, [("since", True), ("until", True)], "dense")
    last = rng.randrange(3, 15)
    data = [[name, signal(rng, last)] for name in NAMES]
    theirs = specification(rtamt, text, "dense").evaluate(*data)
    ours = specification(our_rtamt, text, "dense").evaluate(*data)
    times = [time / 2 + 0.25 for time in range(2 * last)]
    return text, data, [[time, at(ours, time)] for time in times], [[time, at(theirs, time)] for time in times]


def rye(rng, depth, model, semantics):
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(["{p: true}", "{q: true}", "{p: false}", f"{{x {rng.choice(['>', '<', '>=', '<='])} {rng.randrange(-3, 4)}}}"])
    lower = rng.randrange(4)
    timed = rng.choice(["", f"[{lower}:]", f"[:{lower + 1}]", f"[{lower}:{max(1, lower + rng.randrange(5))}]"])
    within = f"[:{lower + 1}]" if semantics == "robustness" else timed
    one, other = rye(rng, depth - 1, model, semantics), rye(rng, depth - 1, model, semantics)
    right = f"(({one}) and ({other}))" if model == "dense" else f"({other})"
    return rng.choice(
        [
            f"(not ({one}))",
            f"(once{timed} ({one}))",
            f"(historically{timed} ({one}))",
            f"(({one}) and ({other}))",
            f"(({one}) or ({other}))",
            f"(({one}) -> ({other}))",
            f"(({one}) since{within} {right})",
        ]
    )


def row(rng):
    truths = {name: rng.random() < 0.5 for name in ["p", "q"] if rng.random() < 0.7}
    return {**truths, "x": float(rng.randrange(-4, 5))}


def reelay_discrete(rng):
    semantics = rng.choice(["boolean", "robustness"])
    # Of two infinities that count as equal here, Reelay reports the change.
    condense = semantics == "boolean" and rng.random() < 0.5
    text = rye(rng, 3, "steps", semantics)
    rows = [{"p": True, "q": True, **row(rng)} for _ in range(rng.randrange(1, 25))]
    results = []
    for package in (our_reelay, reelay):
        monitor = package.discrete_timed_monitor(pattern=text, semantics=semantics, condense=condense)
        results.append([[at, tuple(sorted(monitor.update(row).items()))] for at, row in enumerate(rows)])
    return text, (semantics, rows), *results


def reelay_dense(rng):
    """A row every second: between two rows Reelay leaves out a change to false and back."""
    semantics = rng.choice(["boolean", "robustness"])
    text = rye(rng, 3, "dense", semantics)
    rows = [{"p": False, "q": False, **row(rng), "time": float(time)} for time in range(rng.randrange(2, 20))]
    results = []
    for package in (our_reelay, reelay):
        monitor = package.dense_timed_monitor(pattern=text, semantics=semantics)
        changes = [change for row in rows for change in monitor.update(row)]
        points = [[change["time"], float(change["value"])] for change in changes]
        results.append([[time + 0.5, at(points, time + 0.5)] for time in range(len(rows) - 1)])
    return text, (semantics, rows), *results


CASES = [(rtamt_offline, 600), (rtamt_online, 400), (rtamt_pastified, 200), (rtamt_dense, 500),
         (reelay_discrete, 400), (reelay_dense, 400)]


def differs(ours, theirs):
    def is_equal(left, right):
        if isinstance(left, tuple):
            return len(left) == len(right) and all(name == other and is_same(float(x), float(y))
                                                   for (name, x), (other, y) in zip(left, right))
        return is_same(left, right)

    return len(ours) != len(theirs) or any(
        time != other or not is_equal(left, right) for (time, left), (other, right) in zip(ours, theirs)
    )


def main():
    only, factor = os.environ.get("RONDEL_SEED"), int(os.environ.get("RONDEL_CASES", "1"))
    for case, count in CASES:
        compared = 0
        for seed in [int(only)] if only else range(count * factor):
            text, data, ours, theirs = case(random.Random(seed))
            compared += len(ours)
            if differs(ours, theirs):
                sys.exit(f"{case.__name__}, seed {seed}: {text}\n{data}\nours   {ours}\ntheirs {theirs}")
        print(f"{case.__name__}: {count * factor if not only else 1} formulas, {compared} values compared")


if __name__ == "__main__":
    main()
