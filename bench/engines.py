"""Measures the programs of examples/engines with one and two workers, and the command beside them, over the recordings of a
fleet. All verdicts must be those of a plain loop.

Run by `make bench-engines`, with a Python that has the engines and an optimised rondel with its command. Recordings are
made here, in a temporary folder. All take turns; prints a table in Markdown.
"""

import argparse
import functools
import importlib.metadata
import pathlib
import sys
import tempfile
import time

import machine
from rondel._program import find_program

import rondel

sys.path.insert(0, str(machine.ROOT / "examples/engines"))
import fleet  # noqa: E402
import test_engines as engines  # noqa: E402

WORKERS = (1, 2)
#: Name, distribution, program.
ENGINES = [
    ("Ray Data", "ray", "with_ray.py"),
    ("Dask", "dask", "with_dask.py"),
    ("Spark", "pyspark", "with_spark.py"),
    ("Bytewax", "bytewax", "with_bytewax.py"),
]


def installed():
    """Name with version, and program, of the engines that this Python has."""
    for name, distribution, program in ENGINES:
        try:
            yield f"{name} {importlib.metadata.version(distribution)}", program
        except importlib.metadata.PackageNotFoundError:
            print(f"{name} is not installed, and is left out", file=sys.stderr)


def command(folder, workers):
    begin = time.perf_counter()
    results = rondel.check(engines.SPECIFICATION, folder, jobs=workers, emit="violations")
    seconds = time.perf_counter() - begin
    return sum(entry.violations for entry in results.properties), seconds


def cases(folder):
    """Name, workers, and a function that runs it and returns its seconds."""
    rows, stream = engines.loop(folder), engines.violations(folder)
    number = sum(row["violations"] for row in rows)

    def run(name, program, workers):
        if program == "with_bytewax.py":
            found, seconds = engines.stream(folder, workers)
            is_equal = engines.by_time(found) == stream
        elif program:
            found, seconds = engines.run(program, folder, workers)
            is_equal = engines.in_order(found) == rows
        else:
            found, seconds = command(folder, workers)
            is_equal = found == number
        if not is_equal:
            raise SystemExit(f"{name}: the results differ from those of a plain loop")
        return seconds

    programs = [("`rondel.check` with `jobs`", None), *installed()]
    return [(name, workers, functools.partial(run, name, program, workers)) for workers in WORKERS for name, program in programs]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", type=int, default=engines.ROBOTS, help="recordings of 30 s (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=3, help="turns of each case (default: %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, help="a file for the table (default: standard output)")
    arguments = parser.parse_args()
    head = machine.head(find_program())
    found = {}
    with tempfile.TemporaryDirectory(prefix="rondel-bench-") as name:
        folder = pathlib.Path(name)
        for robot in range(arguments.recordings):
            fleet.write(folder / f"robot-{robot:03}.mcap", robot)
        for turn, (engine, workers, call) in machine.turns(cases(folder), arguments.repeat):
            seconds = call()
            found.setdefault(engine, {}).setdefault(workers, []).append(seconds)
            print(f"turn {turn + 1}, {engine}, {workers}: {seconds:.2f} s", file=sys.stderr, flush=True)
    rows = [
        [engine, *(machine.spread(of[workers], 2) for workers in WORKERS), machine.ratio(of[1], of[2])] for engine, of in found.items()
    ]
    text = f"{head}\n\n" + machine.table(["engine", "1 worker, s", "2 workers, s", "speed-up"], rows)
    text += (
        f"\n{arguments.recordings} recordings of 30 s. Python {sys.version.split()[0]}. Median (least to most) of {arguments.repeat} turns. Seconds "
        "are those that a program prints, without the start of the engine; for Bytewax, of the whole processes. The verdicts "
        "are those of a plain loop.\n"
    )
    machine.write(text, arguments.out)


if __name__ == "__main__":
    main()
