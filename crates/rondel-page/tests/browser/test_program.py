"""The page of the real program, on a live run. RONDEL_PROGRAM is the program; without it, these tests are skipped."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request

import pytest
from conftest import names, settle, wait_rows
from playwright.sync_api import expect

PROGRAM = os.environ.get("RONDEL_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="RONDEL_PROGRAM is not set")

SPECIFICATION = """topic trace { speed: float, brake: bool, mode: string, robot: int }

@severity(critical)
@requirement("SAF-1")
@robust
property slow = trace.speed <= 10.0

property brakes = trace.speed > 8.0 -> once[0, 2 s] trace.brake

property by_robot for each robot in trace.robot = trace.speed <= 11.0
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until_served(url, process):
    """Waits until a process serves the page."""
    end = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(f"{url}api/v1/state", timeout=1).close()
            return
        except OSError:
            assert process.poll() is None and time.monotonic() < end, "the page is not served"
            time.sleep(0.1)


def network_section(name, folder):
    """The section of a network in deployments, the options of a publisher, and the broker."""
    port = free_port()
    match name:
        case "zenoh":
            return f'zenoh: {{ listen: ["tcp/127.0.0.1:{port}"] }}', ["--zenoh-connect", f"tcp/127.0.0.1:{port}"], None
        case "dds":
            domain = 100 + os.getpid() % 100
            return f"dds: {{ domain: {domain}, interface: lo }}", ["--dds-domain", str(domain), "--dds-interface", "lo"], None
    program = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin")
    if program is None:
        pytest.skip("the MQTT broker mosquitto is not installed")
    (folder / "mosquitto.conf").write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n")
    broker = subprocess.Popen([program, "-c", folder / "mosquitto.conf"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return f'mqtt: {{ broker: "127.0.0.1:{port}" }}', ["--mqtt-broker", f"127.0.0.1:{port}"], broker


class Run:
    """`rondel run` with a page, and a publisher of 10 messages a second."""

    def __init__(self, folder, network):
        self.folder, self.port, self.address = folder, free_port(), f"{network}:test/trace"
        section, self.options, self.broker = network_section(network, folder)
        (folder / "spec.rondel").write_text(SPECIFICATION)
        (folder / "rondel.yaml").write_text(f"""specification: spec.rondel
{section}
topics: {{ trace: "{self.address}" }}
store: verdicts.db
page: {{ listen: "127.0.0.1:{self.port}" }}
""")
        self.monitor = self.publisher = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def start(self):
        self.monitor = subprocess.Popen([PROGRAM, "run", "--explain", "rondel.yaml"], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=(self.folder / "monitor.log").open("w"))
        wait_until_served(self.url, self.monitor)
        self.publisher = subprocess.Popen([PROGRAM, "publish", "--to", self.address, *self.options], stdin=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def publish(self, **values):
        self.publisher.stdin.write(json.dumps({"speed": 5.0, "brake": False, "mode": "drive", "robot": 1, **values}) + "\n")
        self.publisher.stdin.flush()

    def drive(self, count, **values):
        for _ in range(count):
            self.publish(**values)
            time.sleep(0.1)

    def stop(self):
        for process in (self.publisher, self.monitor):
            if process and process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()


@pytest.fixture
def run(tmp_path: pathlib.Path, request):
    run = Run(tmp_path, getattr(request, "param", "zenoh"))
    try:
        yield run.start()
    finally:
        run.stop()
        if run.broker:
            run.broker.kill()
            run.broker.wait()


@pytest.mark.quick
@pytest.mark.parametrize("run", ["zenoh", "dds", "mqtt"], indirect=True)
def test_live_run(open_page, run):
    run.drive(10)
    page = open_page(run.url)
    wait_rows(page, 3)
    run.drive(5, speed=12.5, robot=7)
    page.wait_for_function("() => document.querySelector('.rows .row[aria-rowindex=\"2\"]')?.textContent.includes('violated')")
    assert set(names(page)) >= {"by_robot"} or any(name.startswith("by_robot") for name in names(page))
    page.goto(f"{run.url}#/property/slow")
    expect(page.locator(".annotated")).to_contain_text("property slow = trace.speed <= 10.0")
    run.drive(15, speed=12.5)
    expect(page.locator(".chart h3")).to_have_text(["Verdict", "Robustness", "trace.speed"])
    expect(page.locator(".violation").first).to_contain_text("open")
    page.locator(".violation").first.click()
    expect(page.locator(".explanation")).to_contain_text("12.5")
    page.goto(f"{run.url}#/topics/trace")
    run.drive(5, mode="<img src=x onerror=window.hacked=1>")
    expect(page.locator(".tree")).to_contain_text("<img src=x onerror=")
    assert page.evaluate("window.hacked") is None
    page.goto(f"{run.url}#/specification")
    expect(page.locator(".source")).to_contain_text("property by_robot for each robot")


@pytest.mark.quick
def test_first_view_loads_few_files(open_page, run):
    run.drive(3)
    responses = []
    page = open_page(run.url, setup=lambda page: page.on("response", lambda response: responses.append(response)))
    wait_rows(page, 3)
    settle(page, 0)
    found = [(urllib.parse.urlsplit(response.url).path, response) for response in responses]
    files = {path: int(response.headers["content-length"]) for path, response in found if not path.startswith("/api/") and path != "/icon.svg"}
    assert sorted(files) == ["/", "/main.js", "/style.css", "/theme.js"]
    assert sum(files.values()) < 60_000
    assert {path for path, _ in found if path.startswith("/api/")} == {f"/api/v1/{name}" for name in ("overview", "state", "losses", "events")}


def test_restart_of_the_monitor(open_page, run):
    run.drive(10)
    page = open_page(run.url, expect_errors=True)
    wait_rows(page, 3)
    run.stop()
    expect(page.locator("#banner")).to_contain_text(re.compile("Connection lost since|The run has ended"))
    assert page.evaluate("document.documentElement.classList.contains('unseen')")
    run.start()
    run.drive(10)
    expect(page.locator("#connection")).to_have_text(re.compile("live|not ready"))


def test_page_of_the_store(open_page, run):
    run.drive(10)
    run.drive(10, speed=12.5)
    run.stop()
    port = free_port()
    server = subprocess.Popen([PROGRAM, "page", "verdicts.db", "--listen", f"127.0.0.1:{port}"], cwd=run.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until_served(f"http://127.0.0.1:{port}/", server)
        page = open_page(f"http://127.0.0.1:{port}/")
        wait_rows(page, 3)
        expect(page.locator("#connection")).to_have_text("store")
        page.goto(f"http://127.0.0.1:{port}/#/property/slow")
        expect(page.locator(".violation").first).to_contain_text("stale")
    finally:
        server.terminate()
        server.wait(10)


@pytest.mark.quick
def test_playground_of_a_recording(open_page, tmp_path):
    (tmp_path / "spec.rondel").write_text(SPECIFICATION)
    lines = [json.dumps({"topic": "trace", "time": i, "data": {"speed": 5.0 + i, "brake": False, "mode": "drive", "robot": i % 2}}) for i in range(10)]
    (tmp_path / "t.jsonl").write_text("\n".join(lines) + "\n")
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    server = subprocess.Popen([PROGRAM, "check", "-q", f"--page=127.0.0.1:{port}", "--save-to", "saved.rondel", "spec.rondel", "t.jsonl"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=(tmp_path / "check.log").open("w"))
    try:
        end = time.monotonic() + 20
        while True:
            try:
                urllib.request.urlopen(f"{url}api/v1/state", timeout=1).close()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < end, (tmp_path / "check.log").read_text()
                time.sleep(0.1)
        page = open_page(f"{url}#/playground")
        text = page.get_by_role("textbox", name="Specification")
        first = page.locator(".judged > li").first
        expect(first).to_contain_text(re.compile("violated.*slow"))
        expect(page.locator(".plots h3")).to_contain_text(["slow", "brakes", "by_robot", "trace.speed"])
        text.fill(SPECIFICATION.replace("<= 10.0", "<= 100.0"))
        expect(first).to_contain_text(re.compile("satisfied.*slow"))
        text.fill(SPECIFICATION.replace("trace.speed <= 10.0", "trace.sped <= 10.0"))
        expect(page.locator(".is-wrong").first).to_contain_text("sped")
        page.get_by_role("button", name="Save to saved.rondel").click()
        expect(page.locator("main [role=status]")).to_contain_text(re.compile("Saved to|errors"))
        page.wait_for_timeout(500)
        assert "trace.sped" in (tmp_path / "saved.rondel").read_text()
        page.get_by_role("button", name="Examples").click()
        expect(first).to_contain_text("violated")
    finally:
        server.terminate()
        server.wait(10)
