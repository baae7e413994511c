"""The examples of the page about pytest, and the launch test."""

import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time
import types

import pytest

import rondel

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/how-to/pytest.md"
LAUNCH = ROOT / "examples/launch_testing"
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"file=(\S+)")


def pattern(shown):
    """`…` stands for any lines, and in a line for any text."""
    lines = (
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line.rstrip()).replace("…", ".*") + r" *\n"
        for line in shown.splitlines()
    )
    return re.compile("".join(lines))


def test_examples_of_the_page(tmp_path, broker):
    pytest.importorskip("hypothesis")
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "80"}
    # There pytest prints longer summaries.
    for name in ("CI", "BUILD_NUMBER"):
        environment.pop(name, None)
    compared = 0
    for language, words, text in BLOCK.findall(PAGE.read_text()):
        if (file := FILE.search(words)) is not None:
            (tmp_path / file[1]).write_text(text.replace("localhost:1883", f"127.0.0.1:{broker}"))
        elif language == "console":
            command, shown = text.removeprefix("$ ").split("\n", 1)
            name, *arguments = shlex.split(command)
            assert name == "pytest"
            run = subprocess.run(
                [sys.executable, "-m", "pytest", "-p", "rondel.pytest_plugin", "-p", "no:cacheprovider", *arguments],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert pattern(shown).fullmatch(run.stdout), f"{command}\n{run.stdout}{run.stderr}"
            compared += 1
    assert compared == 4


def test_junit_of_the_page(tmp_path):
    blocks = [(language, FILE.search(words), text) for language, words, text in BLOCK.findall(PAGE.read_text())]
    for _, file, text in blocks:
        if file is not None:
            (tmp_path / file[1]).write_text(text)
    [shown] = [text for language, _, text in blocks if language == "xml"]
    command = [sys.executable, "-m", "pytest", "-p", "rondel.pytest_plugin", "--junitxml=report.xml", "test_drive.py"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120)
    assert "".join(shown.splitlines()) in (tmp_path / "report.xml").read_text()


@pytest.fixture
def launch_test(tmp_path, monkeypatch, broker):
    """The launch test with objects in place of launch, and a broker in place of ROS 2."""

    class Action:
        def __init__(self, *arguments, **named):
            self.arguments, self.named = arguments, named

    names = ["launch", "launch.actions", "launch_ros", "launch_ros.actions", "launch_testing", "launch_testing.actions"]
    modules = {name: types.ModuleType(name) for name in names}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    modules["launch"].LaunchDescription = list
    for module, name in [("launch", "ExecuteProcess"), ("launch_ros", "Node"), ("launch_testing", "ReadyToTest")]:
        setattr(modules[f"{module}.actions"], name, Action)
    modules["launch_testing"].post_shutdown_test = lambda: lambda tests: tests

    for name in ("test_talker.py", "talker.rondel", "talker.yaml"):
        text = (LAUNCH / name).read_text()
        text = text.replace("ros2: {}", f"mqtt: {{ broker: 127.0.0.1:{broker} }}")
        text = text.replace("ros2:/chatter", "mqtt:chatter").replace(" : std_msgs/msg/String", " { data: string }")
        (tmp_path / name).write_text(text)
    example = types.ModuleType("example")
    example.__file__ = str(tmp_path / "test_talker.py")
    exec(compile((tmp_path / "test_talker.py").read_text(), example.__file__, "exec"), example.__dict__)
    return example


@pytest.mark.parametrize("data, status", [("Hello World: 1", 0), ("World: 1", 1), (None, 4)])
def test_monitor_of_the_launch_test(launch_test, broker, data, status):
    description, context = launch_test.generate_test_description()
    monitor = context["monitor"]
    assert description[0] is monitor
    process = subprocess.Popen(monitor.named["cmd"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        for line in process.stderr:
            if line.startswith(b"ready after"):
                break
        if data is not None:
            publish = [rondel.find_program(), "publish", f"--mqtt-broker=127.0.0.1:{broker}", "--to=mqtt:chatter"]
            subprocess.run(publish, input=f'{{"data": "{data}"}}\n', text=True, check=True, timeout=30, capture_output=True)
            # Messages on their way arrive.
            time.sleep(0.3)
        # As launch ends processes.
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert process.returncode == status, output

    tests = launch_test.TestVerdicts("test_no_violation")
    info = {monitor: types.SimpleNamespace(returncode=process.returncode)}
    judge = lambda: tests.test_no_violation(info, {monitor: [types.SimpleNamespace(text=output)]}, monitor)
    if status == 0:
        judge()
    else:
        with pytest.raises(AssertionError, match="greets" if status == 1 else "4 != 0"):
            judge()


def test_page_shows_the_launch_test():
    [block] = [text for _, words, text in BLOCK.findall(PAGE.read_text()) if "generate_test_description" in text]
    assert block in (LAUNCH / "test_talker.py").read_text()
