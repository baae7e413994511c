"""The plugin of pytest: deployments around tests."""

import pathlib
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

import pytest

import rondel

pytest_plugins = ["pytester"]

# Tests in tests forget modules that they import; an extension module cannot be loaded twice.
assert rondel.__version__

DEPLOYMENT = """
specification: tank.rondel
mqtt: {{ broker: 127.0.0.1:{port} }}
topics:
  tank: {{ source: mqtt:tank, time: stamp }}
  valve: {{ source: mqtt:valve, time: stamp }}
verdicts: {{ to: mqtt:verdict }}
"""
SPECIFICATION = """
topic tank { level: float }
topic valve { open: bool }

@requirement("R-12") @severity(critical)
property low for each name in tank.name = tank.level < 40

property closes = valve.open -> eventually[0, 2 s] not valve.open
""".replace("{ level: float }", "{ level: float, name: string }")
HELPERS = """
import json, os, pathlib, signal, subprocess, sys, time
import pytest, rondel

def publish(topic, **message):
    lines = "".join(json.dumps(each) + "\\n" for each in [message])
    subprocess.run(
        [rondel.find_program(), "publish", "--mqtt-broker", "127.0.0.1:PORT", "--to", "mqtt:" + topic],
        input=lines, text=True, check=True, timeout=30, capture_output=True,
    )

def use(level=1.0):
    publish("valve", open=False, stamp=0.0)
    publish("tank", level=level, name="A", stamp=1.0)

"""


@pytest.fixture
def run(pytester, monkeypatch, broker):
    """Run tests beside a deployment on a broker."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    # The folders of runs are left behind in none of the cases.
    folders = pytester.mkdir("folders")
    monkeypatch.setenv("TMPDIR", str(folders))
    (pytester.path / "tank.rondel").write_text(SPECIFICATION)
    (pytester.path / "rondel.yaml").write_text(DEPLOYMENT.format(port=broker))

    def run(source, *arguments):
        pytester.makepyfile(HELPERS.replace("PORT", str(broker)) + source)
        command = [sys.executable, "-m", "pytest", "-p", "rondel.pytest_plugin", "-p", "no:cacheprovider", *arguments]
        result = pytester.run(*command, timeout=120)
        assert not list(folders.glob("rondel-*/verdicts.db")), "files are left behind"
        assert not _processes(pytester.path), "processes are left behind"
        return result

    return run


def _processes(folder):
    """The processes that were started with a file in this folder."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in path.read_bytes() and b"--store=" in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_satisfied_run_passes(run, pytester):
    run("def test(rondel_deployment):\n    run = rondel_deployment('rondel.yaml')\n    assert run.is_running\n    use()\n    run.wait_for('low', 'satisfied')\n", "--junitxml=report.xml").assert_outcomes(passed=1)
    [case] = xml.etree.ElementTree.parse(pytester.path / "report.xml").iter("testcase")
    properties = [(entry.get("name"), entry.get("value")) for entry in case.iter("property")]
    assert properties == [("rondel.low", "satisfied"), ("rondel.closes", "satisfied"), ("requirement", "R-12")]


def test_violation_fails_the_test_with_its_explanation(run):
    source = "def test(rondel_deployment):\n    run = rondel_deployment('rondel.yaml')\n    use(41.0)\n    run.wait_for('low', 'violated')\n"
    result = run(source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "rondel.yaml: low is violated",
            'low?"A"?: violated at 1 s, severity critical, requirement R-12',
            "    tank.level * 41",
            "    tank.level < 40  false",
            "  violated      low (R-12)",
            "  satisfied     closes",
        ]
    )


@pytest.mark.parametrize(
    "body, outcome, text",
    [
        ("run.expect_violation('low'); use(41.0); run.wait_for('low', 'violated')", "passed", None),
        (
            "run.expect_violation('low'); use(); run.wait_for('low', 'satisfied')",
            "failed",
            "low: expected violated, but it is satisfied",
        ),
        ("run.expect_violation('lwo'); use()", "failed", "lwo: expected violated, but there is no such property*"),
        ("pass", "failed", "closes: inconclusive; no message came on `valve`"),
        ("use(41.0); run.wait_for('low', 'violated'); assert 'body' == 3", "failed", "low?*?: violated at 1 s*"),
        ("use(41.0); run.wait_for('low', 'violated'); run.expect_violation('low')", "passed", None),
        ("run.wait_for('low', 'violated', within=0.3)", "failed", "*low was not violated within 0.3 s: it had no verdict"),
        ("os.kill(run.pid, signal.SIGKILL)", "failed", "rondel.yaml: the monitor was ended by SIGKILL during the test*"),
        ("os.kill(run.pid, signal.SIGTERM)", "failed", "rondel.yaml: the monitor ended with status 0 during the test*"),
        ("use(); os.kill(run.pid, signal.SIGKILL); run.wait_for('low', 'violated')", "failed", "*the monitor has ended*"),
        ("os.kill(run.pid, signal.SIGSTOP)", "failed", "*did not end within 1 s of SIGTERM, and was killed*"),
        ("use(41.0); run.wait_for('low', 'violated'); os.kill(run.pid, signal.SIGKILL)", "failed", "low?*?: violated at 1 s*"),
    ],
)
def test_ends_of_a_run(run, body, outcome, text):
    # A run that is stopped is not waited for as long as on a busy machine.
    options = ", stop_within=1" if "SIGSTOP" in body else ""
    result = run(f"def test(rondel_deployment):\n    run = rondel_deployment('rondel.yaml'{options})\n    {body}\n")
    result.assert_outcomes(**{outcome: 1})
    if text is not None:
        result.stdout.fnmatch_lines([text])


@pytest.mark.parametrize(
    "call, text",
    [
        ("'none.yaml'", "there is no deployment *none.yaml"),
        ("'bad.yaml'", "bad.yaml: the monitor ended with status 2 before it was ready*"),
        ("'away.yaml', ready_within=0.5", "away.yaml: the monitor was not ready within 0.5 s*"),
        ("'rondel.yaml', '--store=x.db'", "`--store=x.db` is set by `rondel_deployment`: leave it out"),
        ("'rondel.yaml', '--nothing'", "rondel.yaml: the monitor ended with status 2 before it was ready*"),
        ("'rondel.yaml', expect={'low': 'bad'}", "`expect` has 'low': 'bad'*"),
    ],
)
def test_runs_that_do_not_start(run, pytester, call, text):
    (pytester.path / "bad.yaml").write_text("specification: tank.rondel\ntopcs: {}\n")
    # No broker listens on this port.
    (pytester.path / "away.yaml").write_text(DEPLOYMENT.format(port=1))
    result = run(f"def test(rondel_deployment):\n    rondel_deployment({call})\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([text])


def test_reason_is_shown_where_a_network_is_away(run, pytester):
    (pytester.path / "away.yaml").write_text(DEPLOYMENT.format(port=1))
    result = run("def test(rondel_deployment):\n    rondel_deployment('away.yaml', ready_within=5)\n")
    result.stdout.fnmatch_lines(["    *warning: cannot reach MQTT broker 127.0.0.1:1*"])


def test_run_with_a_number_of_messages_ends_by_itself(run):
    source = "def test(rondel_deployment):\n    run = rondel_deployment('rondel.yaml', '--count=2')\n    use()\n"
    run(source + "    while run.is_running: time.sleep(0.05)\n").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "end, text",
    [
        ("print(SUMMARY, file=sys.stderr); sys.exit(5)", "rondel.yaml: the monitor ended with status 5"),
        # As `--strict` after a connection that was lost.
        ("print(SUMMARY, file=sys.stderr); sys.exit(4)", "rondel.yaml: the monitor ended with status 4"),
        ("print('{', file=sys.stderr)", "rondel.yaml: the monitor printed no summary*"),
        ("print(SUMMARY, file=sys.stderr)", None),
    ],
)
def test_ends_that_no_property_explains(run, pytester, monkeypatch, end, text):
    program = pytester.path / "fake"
    program.write_text(
        f"""#!{sys.executable}
import os, signal, socket, sys

SUMMARY = '{{"properties": [{{"property": "p", "verdict": "satisfied", "violations": 0}}]}}'

def stop(*_):
    {end}
    sys.exit(0)

signal.signal(signal.SIGTERM, stop)
address = os.environ["NOTIFY_SOCKET"]
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
    notify.sendto(b"READY=1", chr(0) + address[1:] if address.startswith("@") else address)
while True:
    signal.pause()
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("RONDEL_PROGRAM", str(program))
    result = run("def test(rondel_deployment):\n    rondel_deployment('rondel.yaml')\n")
    if text is None:
        result.assert_outcomes(passed=1)
    else:
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines([text])


def test_inconclusive_run_is_allowed(run):
    source = "def test(rondel_deployment):\n    rondel_deployment('rondel.yaml', allow_inconclusive=True)\n"
    run(source + "    publish('tank', level=1.0, name='A', stamp=1.0)\n").assert_outcomes(passed=1)
    # Not that nothing came, unless every verdict is expected.
    result = run(source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["nothing was seen: no message was evaluated"])
    expected = "expect={'low': 'inconclusive', 'closes': 'inconclusive'}"
    run(source.replace("allow_inconclusive=True", expected)).assert_outcomes(passed=1)


def test_other_fixtures_may_start_a_run(run):
    result = run(
        """
@pytest.fixture
def monitored(rondel_deployment):
    return rondel_deployment("rondel.yaml", allow_inconclusive=True)

@pytest.fixture
def fails(monitored):
    assert "setup" == 3

def test_used(monitored):
    use(41.0)
    monitored.wait_for("low", "violated")

def test_fails(fails):
    pass
"""
    )
    result.assert_outcomes(failed=1, errors=1)


def test_two_runs_judge_one_test(run, pytester):
    text = (pytester.path / "rondel.yaml").read_text()
    (pytester.path / "other.yaml").write_text(text.replace("mqtt:verdict", "mqtt:others"))
    start = "    runs = [rondel_deployment('rondel.yaml'), rondel_deployment('other.yaml')]\n"
    result = run(f"def test(rondel_deployment):\n{start}    use(41.0)\n    for run in runs: run.wait_for('low', 'violated')\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["rondel.yaml: low is violated", "other.yaml: low is violated"])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_killed_tests_leave_no_run_behind(run, pytester):
    # The fixture `run` prepares the files.
    source = "def test(rondel_deployment):\n    rondel_deployment('rondel.yaml')\n    pathlib.Path('started').touch()\n    time.sleep(60)\n"
    pytester.makepyfile(HELPERS + source)
    command = [sys.executable, "-m", "pytest", "-p", "rondel.pytest_plugin"]
    tests = subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.DEVNULL)
    try:
        _until((pytester.path / "started").exists)
        assert _processes(pytester.path)
    finally:
        tests.send_signal(signal.SIGKILL)
        tests.wait()
    _until(lambda: not _processes(pytester.path))


def _until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
