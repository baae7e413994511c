"""The programs of this folder give the verdicts of a plain loop: `make test-engines`. bench/engines.py runs them as well."""

import json
import operator
import os
import pathlib
import re
import socket
import subprocess
import sys
import time

import fleet
import pytest

import rondel

FOLDER = pathlib.Path(__file__).parent
SPECIFICATION = FOLDER / "fleet.rondel"
ROBOTS = 200


@pytest.fixture(scope="session")
def recordings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    for robot in range(ROBOTS):
        fleet.write(folder / f"robot-{robot:03}.mcap", robot)
    return folder


@pytest.fixture(scope="session")
def damaged(tmp_path_factory):
    """A sound recording, one that is cut off, one that is empty, and one that is no MCAP file."""
    folder = tmp_path_factory.mktemp("damaged")
    fleet.write(folder / "robot-007.mcap", 7)
    content = (folder / "robot-007.mcap").read_bytes()
    (folder / "cut.mcap").write_bytes(content[: len(content) // 2])
    (folder / "empty.mcap").write_bytes(b"")
    (folder / "text.mcap").write_text("no recording")
    return folder


def run(program, folder, workers=2):
    """The rows that a program prints, in any order, and the seconds that it says."""
    # Spark starts the Python of PATH otherwise.
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "RAY_USAGE_STATS_ENABLED": "0"}
    ended = subprocess.run(
        [sys.executable, FOLDER / program, SPECIFICATION, folder, str(workers)],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    return rows, float(re.findall(r"recordings in ([0-9.]+) s", ended.stderr)[-1])


def stream(folder, processes=2):
    """The rows that processes of Bytewax print, and their seconds."""
    flow = f"with_bytewax:flow({str(SPECIFICATION)!r}, {str(folder)!r})"
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(processes)]
    addresses = ";".join(f"127.0.0.1:{server.getsockname()[1]}" for server in sockets)
    for server in sockets:
        server.close()
    begin = time.monotonic()
    started = []
    try:
        for number in range(processes):
            options = ["-i", str(number), "-a", addresses] if processes > 1 else []
            command = [sys.executable, "-m", "bytewax.run", *options, flow]
            started.append(subprocess.Popen(command, cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        ended = [process.communicate(timeout=600) for process in started]
    finally:
        for process in started:
            process.kill()
    seconds = time.monotonic() - begin
    assert all(process.returncode == 0 for process in started), [errors[-5000:] for _, errors in ended]
    # A process prints as well that it waits for the other one.
    rows = [json.loads(line) for output, _ in ended for line in output.splitlines() if line.startswith("{")]
    return rows, seconds


def in_order(rows):
    return sorted(rows, key=lambda row: (row["recording"], row["property"]))


def loop(folder):
    """The rows of a plain loop."""
    rows = []
    for path in sorted(folder.glob("*.mcap")):
        try:
            results = rondel.check(SPECIFICATION, path)
        except rondel.RecordingError as error:
            rows.append({"recording": str(path), "property": "", "verdict": "", "violations": 0, "problem": str(error)})
            continue
        for entry in results.properties:
            row = {"recording": str(path), "property": entry.name, "verdict": entry.verdict, "violations": entry.violations}
            rows.append({**row, "problem": ""})
    return in_order(rows)


@pytest.fixture(scope="session")
def expected(recordings):
    rows = loop(recordings)
    assert len(rows) == 3 * ROBOTS
    for name in ("cool", "spared", "obeys"):
        verdicts = [row["verdict"] for row in rows if row["property"] == name]
        assert 10 <= verdicts.count("violated") < ROBOTS / 2, name
    return rows


@pytest.mark.parametrize("program", ["with_ray.py", "with_dask.py", "with_spark.py"])
def test_verdicts_are_those_of_a_loop(program, recordings, expected):
    assert in_order(run(program, recordings)[0]) == expected


@pytest.mark.parametrize("program", ["with_ray.py", "with_dask.py", "with_spark.py"])
def test_damaged_recordings_do_not_end_the_job(program, damaged):
    rows = loop(damaged)
    assert [row["problem"] != "" for row in rows] == [True, True, False, False, False, True]
    assert in_order(run(program, damaged)[0]) == rows


def by_time(rows):
    return sorted(rows, key=operator.itemgetter("recording", "property", "time"))


def violations(folder):
    """The rows of the stream, from a check of the recordings."""
    rows = []
    for report in rondel.check(SPECIFICATION, folder, emit="violations").violations:
        row = json.loads(report.json())
        row["recording"] = pathlib.Path(row.pop("trace")).stem
        rows.append(row)
    return by_time(rows)


def test_violations_of_the_stream_are_those_of_a_loop(recordings):
    pytest.importorskip("bytewax")
    expected = violations(recordings)
    assert by_time(stream(recordings)[0]) == expected
    assert len(expected) > ROBOTS / 10


def test_monitor_of_the_stream_continues_from_its_snapshot(recordings):
    pytest.importorskip("bytewax")
    from with_bytewax import Messages, Watch

    text = SPECIFICATION.read_text()
    messages = [value for _, value in Messages([]).rows(recordings / "robot-007.mcap")]
    whole, first = Watch(text, None), Watch(text, None)
    expected = [report.json() for value in messages for report in whole.on_item(value)[0]]
    half = len(messages) * 3 // 4
    found = [report.json() for value in messages[:half] for report in first.on_item(value)[0]]
    second = Watch(text, first.snapshot())
    found += [report.json() for value in messages[half:] for report in second.on_item(value)[0]]
    assert found == expected
    assert len(expected) > 1
