"""Fixtures of several tests."""

import os
import shutil
import socket
import subprocess
import sys
import textwrap
import time

import pytest


@pytest.fixture
def broker(tmp_path_factory):
    """The port of an MQTT broker on loopback."""
    # Debian installs it in /usr/sbin.
    program = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin")
    if program is None:
        if os.environ.get("RONDEL_TEST_REQUIRE_BROKER") or os.environ.get("CI"):
            pytest.fail("the MQTT broker mosquitto is not installed: run `make setup`")
        pytest.skip("the MQTT broker mosquitto is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = tmp_path_factory.mktemp("broker") / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n")
    process = subprocess.Popen([program, "-c", settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline, "mosquitto does not listen"
                time.sleep(0.01)
        yield port
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Puts a program of Python in the place of the command."""

    def put(text):
        program = tmp_path / "fake"
        program.write_text(f"#!{sys.executable}\nimport os, signal, sys, time\n" + textwrap.dedent(text))
        program.chmod(0o755)
        monkeypatch.setenv("RONDEL_PROGRAM", str(program))

    return put


@pytest.fixture
def lines(tmp_path):
    """Writes a recording of the level of a tank, one message per second."""

    def write(levels, name="tank.jsonl", begin=0):
        path = tmp_path / name
        text = (f'{{"topic": "tank", "time": {begin + i}, "level": {level}}}\n' for i, level in enumerate(levels))
        path.write_text("".join(text))
        return path

    return write
