"""Measures the cost of a sample: `update` of rondel.compat.rtamt and of RTAMT, the least of five rounds.

Run by `make bench-peers`, with a Python that has rtamt and an optimised rondel.
"""

import logging
import time

import rtamt
from rondel.compat import rtamt as our_rtamt

logging.disable(logging.WARNING)

#: Formulas, whether they are pastified, and samples of a round.
CASES = [
    ("(a >= 3) implies (eventually[0:5] (b >= 3))", True, 5000),
    ("once[0:100] (a >= 3)", False, 5000),
    ("a until[0:20] b", True, 2000),
    ("a until[0:100] b", True, 200),
]
ROUNDS = 5


def microseconds(package, text, is_pastified, count):
    spec = package.StlDiscreteTimeSpecification()
    for name in "ab":
        spec.declare_var(name, "float")
    spec.spec = text
    spec.parse()
    if is_pastified:
        spec.pastify()
    samples = [[("a", float(step % 7)), ("b", float(step % 5))] for step in range(count)]
    spec.update(0, samples[0])
    begin = time.perf_counter()
    for step, sample in enumerate(samples):
        spec.update(step + 1, sample)
    return (time.perf_counter() - begin) / count * 1e6


def main():
    print(f"{'formula':50} {'rtamt':>10} {'rondel':>10}")
    for text, is_pastified, count in CASES:
        # Rounds alternate, so that both meet the same load of the machine.
        rounds = [
            [microseconds(package, text, is_pastified, count) for package in (rtamt, our_rtamt)] for _ in range(ROUNDS)
        ]
        theirs, ours = (min(column) for column in zip(*rounds))
        print(f"{text:50} {theirs:7.1f} us {ours:7.1f} us")


if __name__ == "__main__":
    main()
