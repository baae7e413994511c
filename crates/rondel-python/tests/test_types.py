"""Types as users' programs see them."""

import os
import pathlib
import subprocess
import sys

import rondel

PROGRAM = """
import rondel

results = rondel.check("a", "b", explain=True)
reveal_type(results)  # Results
reveal_type(results.violations[0])  # CommandReport
rondel.check("a", "b", explian=True)  # error: Unexpected keyword
rondel.check("a", "b", emit="all")  # error: incompatible type
rondel.chek  # error: no attribute


def name(report: rondel.AnyReport) -> str:
    return report.property


name(results.violations[0])
name(rondel.Monitor("").push("a", {}, 1.0)[0])


async def watch() -> None:
    rondel.run("a.yaml", mqtt_qoss=1)  # error: Unexpected keyword
    async with rondel.run("a.yaml", mqtt_qos=1) as run:
        async for report in run:
            reveal_type(report)  # CommandReport
"""


def test_types_of_a_program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    package = pathlib.Path(rondel.__file__).parent.parent
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "program.py"]
    environment = {**os.environ, "MYPYPATH": str(package)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    found = [line for line in run.stdout.splitlines() if "program.py:" in line and "defined in" not in line]
    expected = [
        (number, line.split("# ")[1].removeprefix("error: ")) for number, line in enumerate(PROGRAM.split("\n"), 1) if "# " in line
    ]
    assert len(found) == len(expected), run.stdout
    for line, (number, words) in zip(found, expected):
        assert line.startswith(f"program.py:{number}:") and words in line, line
