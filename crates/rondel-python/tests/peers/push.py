"""Measures the cost of one message of two fields: `Monitor.push` beside RTAMT and Reelay, by turns.

Run by `make bench-peers` after cost.py, with a Python that has an optimised rondel; packages that are not installed are
left out. The dicts exist before the clock starts, as those of a receiver do; the row with "new dicts" makes one for each
message. Prints the median and the least of the rounds, in nanoseconds.
"""

import argparse
import importlib.util
import logging
import statistics
import time

import rondel

logging.disable(logging.WARNING)

#: The samples of a round of a package that takes some hundred nanoseconds; slower ones have a part of them.
SAMPLES = 100_000
BOUND = 10


def samples(count):
    return [{"a": float(step % 7), "b": float(step % 5)} for step in range(count)]


def pushed(count, text):
    """The nanoseconds of a message that is pushed to a monitor of this specification."""
    monitor = rondel.Monitor(text)
    messages = samples(count)
    push = monitor.push
    # Topics are inspected during their first messages.
    for step in range(1000):
        push("s", messages[step], time=step * 0.01)
    begin = time.perf_counter_ns()
    for step, message in enumerate(messages):
        push("s", message, time=10.0 + step * 0.01)
    return (time.perf_counter_ns() - begin) / count


def pushed_new(count):
    """As `pushed`, with a dict that is made for each message."""
    monitor = rondel.Monitor(BOTH)
    push = monitor.push
    begin = time.perf_counter_ns()
    for step in range(count):
        push("s", {"a": step * 0.5, "b": 3.0}, time=step * 0.01)
    return (time.perf_counter_ns() - begin) / count


def pushed_text(count):
    """As `pushed`, of a field that is a text: the message is written as JSON."""
    monitor = rondel.Monitor("topic s { a: float, name: string }  property p = s.name == \"x\" -> s.a < 100")
    messages = [{"a": float(step % 7), "name": "x"} for step in range(count)]
    push = monitor.push
    begin = time.perf_counter_ns()
    for step, message in enumerate(messages):
        push("s", message, time=step * 0.01)
    return (time.perf_counter_ns() - begin) / count


def loop(count):
    """The nanoseconds of the loop around `push`, with a call that does nothing."""
    messages = samples(count)

    def push(topic, message, time):
        return []

    begin = time.perf_counter_ns()
    for step, message in enumerate(messages):
        push("s", message, time=step * 0.01)
    return (time.perf_counter_ns() - begin) / count


def rtamt_updated(count):
    import rtamt

    spec = rtamt.StlDiscreteTimeSpecification()
    for name in "ab":
        spec.declare_var(name, "float")
    spec.spec = f"(a >= 3) implies (once[0:{BOUND}] (b >= 3))"
    spec.parse()
    data = [[("a", message["a"]), ("b", message["b"])] for message in samples(count)]
    begin = time.perf_counter_ns()
    for step, sample in enumerate(data):
        spec.update(step, sample)
    return (time.perf_counter_ns() - begin) / count


def reelay_updated(count):
    import reelay

    monitor = reelay.discrete_timed_monitor(pattern=f"{{a >= 3}} -> once[0:{BOUND}]{{b >= 3}}", condense=True)
    messages = samples(count)
    begin = time.perf_counter_ns()
    for message in messages:
        monitor.update(message)
    return (time.perf_counter_ns() - begin) / count


TOPIC = "topic s { a: float, b: float }  "
BOTH = TOPIC + "property p = s.a + s.b < 100"
TIMED = TOPIC + "property p = s.a >= 3 -> once[0, 100 ms] s.b >= 3"

#: The name, the function, and the part of the samples.
CASES = [
    ("rondel, a comparison of both fields", lambda count: pushed(count, BOTH), 1),
    ("rondel, once within a bound", lambda count: pushed(count, TIMED), 1),
    ("rondel, new dicts", pushed_new, 1),
    ("rondel, a field that is a text", pushed_text, 1),
    ("a function of Python that does nothing", loop, 1),
]
PEERS = [
    ("reelay", "reelay, once within a bound", reelay_updated, 4),
    ("rtamt", "rtamt, once within a bound", rtamt_updated, 50),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="rounds, in which all take turns")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="messages of a round")
    arguments = parser.parse_args()
    installed = [case for package, *case in PEERS if importlib.util.find_spec(package)]
    cases = [*CASES, *installed]
    rounds = {name: [] for name, *_ in cases}
    for _ in range(arguments.rounds):
        for name, measured, part in cases:
            rounds[name].append(measured(max(arguments.samples // part, 1000)))
    print(f"{'one message':42} {'median':>10} {'least':>10}")
    for name, all_of_it in rounds.items():
        print(f"{name:42} {statistics.median(all_of_it):7.0f} ns {min(all_of_it):7.0f} ns")


if __name__ == "__main__":
    main()
