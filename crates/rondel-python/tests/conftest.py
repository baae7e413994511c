"""Fixtures of several tests."""

import os
import shutil
import socket
import subprocess
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
