"""Writes the Parquet tables of the tests with `pyarrow`, which is not among their requirements: write.py FOLDER."""

import datetime
import json
import pathlib
import sys

import pyarrow
from pyarrow import parquet

folder = pathlib.Path(sys.argv[1])
ROWS = 120
START = 1_700_000_000_000_000_000


def message(i):
    """The time, topic and fields of a message."""
    time = START + i * 100_000_000
    if i % 4 == 0:
        gear = {"report": i // 8 % 3, "manual": i % 3 == 0, "note": "" if i % 5 == 0 else str(i % 20)}
        return time, "gear", gear
    ranges = [None, [], [i / 8, i / 4], [0.5, None]][i // 4 % 4]
    speed = {"twist": {"linear": {"x": i * 7 % 90 / 8}}}
    return time, "/odom", speed | ({} if ranges is None else {"ranges": ranges})


messages = [message(i) for i in range(ROWS)]
lines = [json.dumps({"time": time / 1e9, "topic": topic, "data": data}) for time, topic, data in messages]
(folder / "messages.jsonl").write_text("\n".join(lines) + "\n")


def column(name, type):
    return pyarrow.array([data.get(name) for _, _, data in messages], type)


linear = pyarrow.struct([("linear", pyarrow.struct([("x", pyarrow.float64())]))])
points = pyarrow.list_(pyarrow.struct([("x", pyarrow.float64())]))
times = [time for time, _, _ in messages]
topics = pyarrow.array([topic for _, topic, _ in messages])
columns = {
    "topic": topics,
    "report": column("report", pyarrow.uint8()),
    "manual": column("manual", pyarrow.bool_()),
    "note": column("note", pyarrow.string()),
    "twist": column("twist", linear),
    "ranges": column("ranges", pyarrow.list_(pyarrow.float32())),
    "points": pyarrow.array([[{"x": 1.0}]] * ROWS, points),
}


def write(name, time, columns=columns, **options):
    table = pyarrow.table({"time": time, **columns})
    parquet.write_table(table, folder / f"{name}.parquet", row_group_size=50, **options)


nanoseconds = pyarrow.array(times, pyarrow.timestamp("ns", "UTC"))
write("plain", nanoseconds, compression="none", use_dictionary=False, store_schema=False)
write("snappy", nanoseconds.cast(pyarrow.timestamp("us")), compression="snappy")
write("zstd", nanoseconds.cast(pyarrow.timestamp("ms")), compression="zstd", data_page_version="2.0")
write("gzip", nanoseconds, compression="gzip", use_deprecated_int96_timestamps=True)
write("lz4", pyarrow.array([time / 1e9 for time in times]), compression="lz4", version="1.0")
write("delta", pyarrow.array(times), compression="zstd", use_dictionary=False, column_encoding={
    "time": "DELTA_BINARY_PACKED", "topic": "DELTA_BYTE_ARRAY", "note": "DELTA_LENGTH_BYTE_ARRAY",
    "twist.linear.x": "BYTE_STREAM_SPLIT", "report": "PLAIN", "manual": "PLAIN",
})
write("brotli", nanoseconds, compression="brotli")

# Names of columns that begin with topics.
flat = {
    "/odom/twist/linear/x": [data.get("twist", {}).get("linear", {}).get("x") for _, _, data in messages],
    "gear/report": [data.get("report") for _, _, data in messages],
    "gear/manual": [data.get("manual") for _, _, data in messages],
    "gear/note": [data.get("note") for _, _, data in messages],
}
table = pyarrow.table({"__time": [time / 1e9 for time in times], **flat})
parquet.write_table(table, folder / "columns.parquet", row_group_size=50)

# Values of every kind.
kinds = {
    "time": pyarrow.array([datetime.datetime(2026, 11, 22, 18, 16, second) for second in range(3)]),
    "decimal": pyarrow.array(["1.50", "-0.05", None], pyarrow.string()).cast(pyarrow.decimal128(30, 2)),
    "large": pyarrow.array([2**64 - 1, 0, None], pyarrow.uint64()),
    "negative": pyarrow.array([-(2**63), -1, None], pyarrow.int64()),
    "half": pyarrow.array([0.5, -65504.0, float("inf")], pyarrow.float16()),
    "single": pyarrow.array([0.1, float("nan"), float("-inf")], pyarrow.float32()),
    "day": pyarrow.array([datetime.date(2026, 11, 22), None, datetime.date(1969, 12, 31)]),
    "stamp": pyarrow.array([1_500_000, None, -1], pyarrow.timestamp("us")),
    "words": pyarrow.array([["a\"b", "", None], [], None], pyarrow.list_(pyarrow.string())),
    "text": pyarrow.array(["12", "", None]),
}
parquet.write_table(pyarrow.table(kinds), folder / "kinds.parquet")
