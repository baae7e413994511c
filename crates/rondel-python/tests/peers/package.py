"""Measures the Python package beside the command on the same data: `push_many` of a table, `check` of an MCAP recording,
`push` of a dict with two fields, and the import.

Run by `make bench-python`, with a Python that has PyArrow and an optimised rondel with its command. Data are made here, in
a temporary folder. All take turns; prints tables in Markdown.
"""

import argparse
import contextlib
import json
import pathlib
import random
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import push
import pyarrow
import pyarrow.parquet
import rondel
from rondel._program import find_program

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "bench"))
import machine  # noqa: E402

SEED = 7
BEGIN_NS = 1_790_000_000_000_000_000
PERIOD_NS = 1_000_000
#: Rows of a batch of Arrow, and of a row group of Parquet.
BATCH = 100_000

SPECIFICATION = """topic s { a: float, b: float }

property sum = s.a + s.b < 1.99
property answer = s.a > 0.999 -> once[0, 5 ms] s.b > 0.5
"""

IMPORT = "import time; begin = time.perf_counter(); import rondel; {use}; print(time.perf_counter() - begin)"


def make_table(rows):
    """A table of batches: `time` in seconds, `a`, `b`."""
    batches = []
    noise = random.Random(SEED)
    for begin in range(0, rows, BATCH):
        length = min(BATCH, rows - begin)
        times = [BEGIN_NS / 1e9 + (begin + row) * PERIOD_NS / 1e9 for row in range(length)]
        columns = [times, [noise.random() for _ in range(length)], [noise.random() for _ in range(length)]]
        batches.append(pyarrow.record_batch([pyarrow.array(column, pyarrow.float64()) for column in columns], names=["time", "a", "b"]))
    return pyarrow.Table.from_batches(batches)


def write_parquet(path, table):
    pyarrow.parquet.write_table(table, path, row_group_size=BATCH, compression="snappy")


def write_mcap(path, count):
    """An MCAP file with messages in JSON, in chunks without compression."""
    noise = random.Random(SEED)

    def record(opcode, content):
        return struct.pack("<BQ", opcode, len(content)) + content

    def text(value):
        return struct.pack("<I", len(value)) + value

    with path.open("wb") as file:
        file.write(b"\x89MCAP0\r\n" + record(0x01, text(b"") + text(b"")))
        schema = record(0x03, struct.pack("<H", 1) + text(b"s") + text(b"jsonschema") + text(b'{"type": "object"}'))
        channel = record(0x04, struct.pack("<HH", 1, 1) + text(b"s") + text(b"json") + struct.pack("<I", 0))
        for begin in range(0, count, 1000):
            content = [schema, channel]
            times = [BEGIN_NS + row * PERIOD_NS for row in range(begin, min(begin + 1000, count))]
            for number, stamp in enumerate(times, begin):
                data = json.dumps({"a": round(noise.random(), 6), "b": round(noise.random(), 6)}).encode()
                content.append(record(0x05, struct.pack("<HIQQ", 1, number, stamp, stamp) + data))
            whole = b"".join(content)
            head = struct.pack("<QQQI", times[0], times[-1], len(whole), 0) + text(b"")
            file.write(record(0x06, head + struct.pack("<Q", len(whole)) + whole))
        file.write(record(0x0F, bytes(4)) + record(0x02, bytes(20)) + b"\x89MCAP0\r\n")


def cpu():
    """CPU seconds of this process and of its children that have ended."""
    used = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def measured(call):
    """Seconds by the clock and of the processor."""
    begin, used = time.perf_counter(), cpu()
    call()
    return time.perf_counter() - begin, cpu() - used


def command(program, specification, recording):
    ended = subprocess.run([program, "check", specification, recording], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if ended.returncode not in (0, 1):
        raise SystemExit(f"the command failed with status {ended.returncode}")


def violations_of_command(program, specification, recording):
    """Violations by property, and checked messages."""
    ended = subprocess.run([program, "check", "--summary", "json", specification, recording], check=False, capture_output=True, text=True)
    lines = [json.loads(line) for line in (ended.stdout + ended.stderr).splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(f"the command checks nothing: {ended.stderr}")
    return {entry["property"]: entry["violations"] for entry in lines[-1]["properties"]}, lines[-1]["events"]


def push_all(source):
    """Pushes tables to a new monitor. Returns it."""
    monitor = rondel.Monitor(SPECIFICATION)
    for table in source():
        monitor.push_many("s", table)
    monitor.finish()
    return monitor


def read_batches(path):
    with pyarrow.parquet.ParquetFile(path) as file:
        yield from (pyarrow.Table.from_batches([batch]) for batch in file.iter_batches(BATCH, use_threads=False))


def imported(use):
    """Milliseconds of `import rondel` and a use of it in a new interpreter."""
    ended = subprocess.run([sys.executable, "-c", IMPORT.format(use=use)], check=True, capture_output=True, text=True)
    return float(ended.stdout) * 1e3


def expect(name, found, expected):
    if found != expected:
        raise SystemExit(f"{name}: {found}, but the command has {expected}")


def by_turns(cases, repeat):
    """Results of named functions, which take turns after one round that warms up."""
    for _, call in cases:
        call()
    found = {name: [] for name, _ in cases}
    for number, (name, call) in machine.turns(cases, repeat):
        found[name].append(call())
        print(f"turn {number + 1}, {name}: {found[name][-1]}", file=sys.stderr, flush=True)
    return found


def comparison(title, found, mark):
    """A table of processes beside the command, the last case: seconds, and the ratios to the command turn by turn."""
    *others, last = found
    rows = []
    for name in (*others, last):
        clock, used = zip(*found[name])
        against = [measure[0] for measure in found[last]], [measure[1] for measure in found[last]]
        if name == last:
            ratios, judged = ["–", "–"], ["–", ""]
        else:
            ratios = [machine.ratio(clock, against[0]), machine.ratio(used, against[1])]
            is_met = statistics.median(a / b for a, b in zip(clock, against[0])) <= mark
            judged = [mark, "met" if is_met else "**missed**"]
        rows.append([name, machine.spread(clock, 3), ratios[0], machine.spread(used, 3), ratios[1], *judged])
    columns = [title, "seconds", "times the command", "CPU seconds", "times the command", "mark", ""]
    return machine.table(columns, rows)


def tables_against_command(arguments, program, folder):
    table, path = make_table(arguments.rows), folder / "s.parquet"
    write_parquet(path, table)
    specification = folder / "s.rondel"
    summary = push_all(lambda: [table]).summary()
    violations, events = violations_of_command(program, specification, path)
    expect("messages", summary.checked, events)
    expect("violations", {entry.name: entry.violations for entry in summary.properties}, violations)
    cases = [
        ("`push_many` of the table in memory", lambda: measured(lambda: push_all(lambda: [table]))),
        ("`push_many` of batches, read by PyArrow", lambda: measured(lambda: push_all(lambda: read_batches(path)))),
        ("`rondel check` of Parquet", lambda: measured(lambda: command(program, specification, path))),
    ]
    return comparison(f"{arguments.rows:,} rows", by_turns(cases, arguments.repeat), 1.3), violations


def check_against_command(arguments, program, folder):
    specification, path = folder / "s.rondel", folder / "s.mcap"
    write_mcap(path, arguments.messages)
    results = rondel.check(specification, path)
    violations, events = violations_of_command(program, specification, path)
    expect("messages", arguments.messages, events)
    expect("violations", {entry.name: entry.violations for entry in results.properties}, violations)
    cases = [
        ("`rondel.check` of MCAP", lambda: measured(lambda: rondel.check(specification, path))),
        ("`rondel check` of MCAP", lambda: measured(lambda: command(program, specification, path))),
    ]
    return comparison(f"{arguments.messages:,} messages", by_turns(cases, arguments.repeat), 1.05), violations


def single_figures(arguments):
    cases = [
        ("`push` of a dict with two fields, ns", lambda: push.pushed(push.SAMPLES, push.BOTH), 400),
        ("the loop around it, with a function that does nothing, ns", lambda: push.loop(push.SAMPLES), None),
        ("`import rondel`, ms", lambda: imported("pass"), 50),
        ("`import rondel`, and the first use of `rondel.Monitor`, ms", lambda: imported("rondel.Monitor"), None),
    ]
    found = by_turns([case[:2] for case in cases], max(arguments.repeat, 7))
    rows = []
    for name, _, mark in cases:
        judged = "" if mark is None else "met" if statistics.median(found[name]) <= mark else "**missed**"
        rows.append([name, machine.spread(found[name], 1), mark or "–", judged])
    return machine.table(["one message, one import", "median (least to most)", "mark", ""], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the table; 0 leaves it out, for a command without Parquet (default: %(default)s)")
    parser.add_argument("--messages", type=int, default=1_000_000, help="messages of the recording (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=5, help="turns of each case (default: %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, help="a file for the tables (default: standard output)")
    arguments = parser.parse_args()
    program = find_program()
    text = machine.head(program) + "\n\n"
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rondel-bench-")))
        (folder / "s.rondel").write_text(SPECIFICATION)
        single = single_figures(arguments)
        check, of_check = check_against_command(arguments, program, folder)
        tables, of_tables = tables_against_command(arguments, program, folder) if arguments.rows else ("", {})
    text += f"{tables}\n{check}\n{single}\n"
    text += (
        f"Python {sys.version.split()[0]}, PyArrow {pyarrow.__version__}. Median (least to most) of {arguments.repeat} turns. Whole processes of the "
        f"command, verdicts on change written to `/dev/null`, files in the page cache. Two properties over two fields, violated {sum(of_tables.values()):,} "
        f"times in the table and {sum(of_check.values()):,} times in the recording; the results of package and command are equal. `push`: of one property, each "
        f"turn of {push.SAMPLES:,} messages. `import`: in a new interpreter, without its start.\n"
    )
    machine.write(text, arguments.out)


if __name__ == "__main__":
    main()
