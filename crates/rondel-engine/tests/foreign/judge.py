"""Evaluates formulas with Reelay and RTAMT, for tests/foreign.rs.

A case is a line of three fields with tabs between them: the judge, the formula, and the rows of the trace with `|`
between them. A row is its time and its fields: `3 a=1 x=2.5`. The answer is a line of numbers, or of `error` and why.
"""

import sys

import reelay
import rtamt


def discrete(formula, rows):
    """Reelay in discrete time: the verdict at every row."""
    monitor = reelay.discrete_timed_monitor(pattern=formula, condense=False)
    return [int(monitor.update(row)["value"]) for _, row in rows]


def dense(formula, rows):
    """Reelay in dense time: the verdict half a second after every second between the first row and the last.

    Between two rows Reelay leaves out a change to false and back: it gets a row every second, mostly without fields.
    """
    monitor = reelay.dense_timed_monitor(pattern=formula)
    seconds, fields = range(rows[0][0], rows[-1][0] + 1), dict(rows)
    changes = [change for time in seconds for change in monitor.update({"time": time, **fields.get(time, {})})]
    verdicts, known = [], 0
    for second in seconds[:-1]:
        while changes and changes[0]["time"] <= second:
            known = int(changes.pop(0)["value"])
        verdicts.append(known)
    return verdicts


def robustness(formula, rows):
    """RTAMT in discrete time: the robustness at every row."""
    specification = rtamt.StlDiscreteTimeSpecification()
    for name in ["x", "y", "result"]:
        specification.declare_var(name, "float")
    specification.spec = f"result = {formula}"
    specification.parse()
    data = {name: [row[name] for _, row in rows] for name in ["x", "y"]}
    return [value for _, value in specification.evaluate({"time": list(range(len(rows))), **data})]


JUDGES = {"discrete": discrete, "dense": dense, "robustness": robustness}


def row_of(text):
    time, *fields = text.split(" ")
    pairs = (field.split("=") for field in fields)
    return int(time), {name: value == "1" if name in "ab" else float(value) for name, value in pairs}


for line in sys.stdin:
    judge, formula, rows = line.rstrip("\n").split("\t")
    try:
        print(*JUDGES[judge](formula, [row_of(row) for row in rows.split("|")]), flush=True)
    except Exception as error:
        print("error", repr(error).replace("\n", " "), flush=True)
