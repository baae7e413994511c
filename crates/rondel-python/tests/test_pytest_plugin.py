"""The plugin of pytest: the marker, results, monitors."""

import importlib.metadata
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import pytest

import rondel

pytest_plugins = ["pytester"]

# Tests in tests forget modules that they import; an extension module cannot be loaded twice.
assert rondel.__version__

PROJECT = pathlib.Path(__file__).resolve().parents[1]
STOP = """
topic brake { pressed: bool }
topic speed { value: float }

@requirement("SYS-017") @severity(critical)
property stops = brake.pressed -> eventually[0, 2 s] speed.value < 0.1

@requirement("SYS-018") @requirement("SYS-019")
property limit = speed.value < 10
"""
LEVEL = "topic tank { level: float }  @requirement(R1) property low = tank.level < 40"


def drive(*speeds):
    """A recording: the brake is pressed at 1 s, and the speed has these values each second."""
    messages = [{"time": float(time), "topic": "speed", "value": value} for time, value in enumerate(speeds)]
    messages.append({"time": 1.0, "topic": "brake", "pressed": True})
    messages.append({"time": 1.5, "topic": "brake", "pressed": False})
    messages.sort(key=lambda message: message["time"])
    return "".join(json.dumps(message) + "\n" for message in messages)


SATISFIED = drive(9.0, 4.0, 0.0, 0.0, 0.0)
VIOLATED = drive(9.0, 4.0, 4.0, 4.0, 0.0)
OTHER = '{"time": 1, "topic": "x", "y": 1}\n'
IDLE = '{"time": 1, "topic": "speed", "value": 1.0}\n'


@pytest.fixture
def run(pytester, monkeypatch):
    """Run tests beside a specification and its recordings."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makefile(".rondel", stop=STOP)
    pytester.makefile(".jsonl", satisfied=SATISFIED, violated=VIOLATED, other=OTHER, idle=OTHER + IDLE)

    def run(source, *arguments):
        pytester.makepyfile(source)
        return pytester.runpytest_inprocess("-p", "rondel.pytest_plugin", "-p", "no:cacheprovider", *arguments)

    return run


def marked(arguments, body="pass", fixtures=""):
    return f"import pytest, rondel\n\n@pytest.mark.rondel({arguments})\ndef test({fixtures}):\n    {body}\n"


def test_satisfied_recording_passes(run):
    run(marked('"stop.rondel", recording="satisfied.jsonl"')).assert_outcomes(passed=1)


def test_violation_fails_the_test_with_its_explanation(run):
    result = run(marked('"stop.rondel", recording=["satisfied.jsonl", "violated.jsonl"]', "print('body')"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "stop.rondel on satisfied.jsonl, violated.jsonl: stops is violated",
            "stops: violated at 3 s, about 1 s, severity critical, requirement SYS-017 in *violated.jsonl",
            "    time * 1 s *",
            "    brake.pressed * true *",
            "*  violated      stops (SYS-017)",
            "*  satisfied     limit (SYS-018, SYS-019)",
            "FAILED *::test*",
        ]
    )
    # Neither the plugin nor the body is shown.
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")
    result.stdout.no_fnmatch_line("body")


def test_violations_are_shortened(run, pytester):
    pytester.makefile(".jsonl", many="".join(f'{{"time": {t}, "topic": "speed", "value": {9 + t % 2 * 2}}}\n' for t in range(100)))
    result = run(marked('"stop.rondel", recording="many.jsonl"'))
    result.stdout.fnmatch_lines(["limit: violated at 1 s*", "limit: violated at 5 s*", "limit: 47 further violations"])
    result.stdout.no_fnmatch_line("limit: violated at 7 s*")


@pytest.mark.parametrize(
    "arguments, outcome, text",
    [
        ('recording="other.jsonl"', "failed", "stops: inconclusive; no message came on `brake`*"),
        # Nothing was checked.
        ('recording="other.jsonl", allow_inconclusive=True', "failed", "the recording *other.jsonl has no messages for these topics"),
        (
            'recording=["satisfied.jsonl", "other.jsonl"], allow_inconclusive=True',
            "failed",
            "the recording *other.jsonl has no messages for these topics",
        ),
        ('recording="other.jsonl", expect={"stops": "inconclusive"}, allow_inconclusive=True', "failed", "*no messages*"),
        ('recording="idle.jsonl", allow_inconclusive=True', "passed", None),
        ('recording="idle.jsonl"', "failed", "stops: inconclusive; no message came on `brake`*"),
        ('recording="violated.jsonl", allow_inconclusive=True', "failed", "stops: violated*"),
        ('recording="violated.jsonl", expect={"stops": "violated"}', "passed", None),
        ('recording="satisfied.jsonl", expect={"stops": "violated"}', "failed", "stops: expected violated, but it is satisfied"),
        ('recording="violated.jsonl", expect={"limit": "violated"}', "failed", "limit: expected violated, but it is satisfied"),
        ('recording="other.jsonl", expect={"stops": "inconclusive"}', "failed", "limit: inconclusive*"),
        ('recording="other.jsonl", expect={"stops": "inconclusive", "limit": "inconclusive"}', "passed", None),
        ('recording="satisfied.jsonl", expect={"stop": "violated"}', "failed", "stop: *no such property; there is stops, limit"),
        ('recording="satisfied.jsonl", expect={"stops": "broken"}', "failed", "`expect` has 'stops': 'broken'*"),
        ('recording="satisfied.jsonl", expect=["stops"]', "failed", "`expect` is *write a dict*"),
        ('recording="satisfied.jsonl", allow_inconclusive="yes"', "failed", "`allow_inconclusive` is 'yes'*"),
        ('recording="satisfied.jsonl", strikt=True', "failed", "the marker `rondel`: *'strikt'*"),
        ('recording="satisfied.jsonl", emit="every"', "failed", "the marker `rondel` has no argument `emit`"),
        ("recording=[]", "failed", "`recording` is empty*"),
        ("recording=3", "failed", "`recording` is 3: write a path"),
        ("", "failed", "the marker `rondel` with stop.rondel has no `recording`*"),
        ('recording="missing.mcap"', "failed", "there is no recording *missing.mcap"),
    ],
)
def test_arguments_of_the_marker(run, arguments, outcome, text):
    result = run(marked(f'"stop.rondel", {arguments}'))
    result.assert_outcomes(**{outcome: 1})
    if text is not None:
        result.stdout.fnmatch_lines([text])


def test_vacuous_property_is_not_green(run, pytester):
    pytester.makefile(".rondel", vacuous="topic speed\ntopic stop\nproperty halt = on(stop) -> once on(speed)")
    result = run(marked('"vacuous.rondel", recording="satisfied.jsonl"'))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["halt: vacuously satisfied; no message came on `stop`*"])


def test_assert_decides_instead_of_its_property(run, pytester):
    pytester.makefile(".rondel", some="topic speed { value: float }\nproperty slow = speed.value < 5\nassert count(violated slow) <= 3")
    run(marked('"some.rondel", recording="satisfied.jsonl"')).assert_outcomes(passed=1)
    pytester.makefile(".rondel", some="topic speed { value: float }\nproperty slow = speed.value < 5\nassert count(violated slow) <= 0")
    result = run(marked('"some.rondel", recording="satisfied.jsonl"'))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["some.rondel on satisfied.jsonl: *violated"])
    result.stdout.no_fnmatch_line("slow: violated*")


def test_mistake_in_a_specification_fails_its_test_only(run, pytester):
    pytester.makefile(".rondel", bad="topic tank { level: float }\nproperty low = tank.levle < 40")
    source = marked('"bad.rondel", recording="satisfied.jsonl"') + "\ndef test_other(): pass\n"
    result = run(source)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        ["error?E0301?: unknown field 'levle' in topic 'tank'; did you mean 'level'?", " --> *bad.rondel:2:21", "*     ^^^^^"]
    )
    run(marked('"none.rondel", recording="satisfied.jsonl"')).stdout.fnmatch_lines(["there is no specification *none.rondel"])


def test_mistake_during_collection_shows_its_place(run):
    source = "import rondel\n\nMONITOR = rondel.Monitor('topic s { x: float }  property p = s.y < 3')\n\ndef test(): pass\n"
    result = run(source)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*error?E0301?: unknown field 'y'*", "* --> specification:1:38", "* | *^"])


def test_damaged_recording_fails(run, pytester):
    pytester.makefile(".jsonl", damaged='{"time": 1, "topic": "speed", "value":')
    result = run(marked('"stop.rondel", recording="damaged.jsonl"'))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*damaged.jsonl:1:*: the text ends inside a value"])


def test_missing_command_fails(run, monkeypatch):
    monkeypatch.setenv("RONDEL_PROGRAM", "/nowhere/rondel")
    result = run(marked('"stop.rondel", recording="satisfied.jsonl"'))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["RONDEL_PROGRAM names /nowhere/rondel*"])


def test_results_are_a_fixture(run):
    body = "assert rondel_results.summary['events'] == 7 and rondel_results.is_satisfied"
    run(marked('"stop.rondel", recording="satisfied.jsonl"', body, "rondel_results")).assert_outcomes(passed=1)
    run(marked('"stop.rondel", recording="violated.jsonl"', "pass", "rondel_results")).assert_outcomes(failed=1)
    run("def test(rondel_results): pass").assert_outcomes(errors=1)


def test_markers_of_classes_modules_and_parameters(run):
    result = run(
        """
        import unittest
        import pytest

        pytestmark = pytest.mark.rondel("stop.rondel", recording="satisfied.jsonl")

        def test_module(): pass

        # The recording of the module is checked as well.
        @pytest.mark.rondel("stop.rondel", recording="violated.jsonl")
        class TestClass:
            def test_class(self): pass

        @pytest.mark.parametrize("number", [
            1,
            pytest.param(2, marks=pytest.mark.rondel("stop.rondel", recording="violated.jsonl")),
        ])
        def test_parameter(number): pass

        class TestUnit(unittest.TestCase):
            def test_unit(self): pass

            @pytest.mark.rondel("stop.rondel", recording="violated.jsonl")
            def test_violated(self): pass
        """,
        "-rA",
    )
    result.assert_outcomes(passed=3, failed=3)
    result.stdout.fnmatch_lines_random(["FAILED *::test_class*", "FAILED *::test_parameter?2?*", "FAILED *::test_violated*"])


def test_skipped_and_expected_failures(run):
    result = run(
        """
        import pytest

        @pytest.mark.skip
        @pytest.mark.rondel("none.rondel", recording="missing.jsonl")
        def test_skipped(): pass

        @pytest.mark.xfail
        @pytest.mark.rondel("stop.rondel", recording="violated.jsonl")
        def test_expected(): pass

        @pytest.mark.rondel("stop.rondel", recording="satisfied.jsonl")
        def test_skips(): pytest.skip()
        """
    )
    result.assert_outcomes(skipped=2, xfailed=1)


def test_verdicts_and_requirements_reach_junit(run, pytester):
    run(
        marked('"stop.rondel", recording="violated.jsonl"')
        + f'\ndef test_monitor(rondel_monitor_factory):\n    monitor = rondel_monitor_factory({LEVEL!r})\n'
        + '    monitor.push("tank", {"level": 1.0}, time=1.0)\n',
        "--junitxml=report.xml",
    )
    report = xml.etree.ElementTree.parse(pytester.path / "report.xml")
    cases = {case.get("name"): case for case in report.iter("testcase")}
    properties = {
        name: [(entry.get("name"), entry.get("value")) for entry in case.iter("property")] for name, case in cases.items()
    }
    assert properties["test"] == [
        ("rondel.stops", "violated"),
        ("rondel.limit", "satisfied"),
        ("requirement", "SYS-017"),
        ("requirement", "SYS-018"),
        ("requirement", "SYS-019"),
    ]
    assert properties["test_monitor"] == [("rondel.low", "satisfied"), ("requirement", "R1")]
    assert "stops: violated at 3 s" in cases["test"].find("failure").get("message")


def test_requirement_of_a_property_without_verdict(run, pytester):
    pytester.makefile(".rondel", each='topic x\ntopic f { id: string }\n@requirement("R9")\nproperty p for each i in f.id = on(f)')
    run(marked('"each.rondel", recording="other.jsonl"'), "--junitxml=report.xml").assert_outcomes(failed=1)
    assert '<property name="requirement" value="R9" />' in (pytester.path / "report.xml").read_text()


def test_monitor_of_the_marker(run):
    push = 'rondel_monitor.push("brake", {"pressed": False}, time=1.0); rondel_monitor.push("speed", {"value": %s}, time=1.0)'
    run(marked('"stop.rondel"', push % "1.0", "rondel_monitor")).assert_outcomes(passed=1)
    result = run(marked('"stop.rondel"', push % "11.0", "rondel_monitor"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["stop.rondel: limit is violated", "limit: violated at 1 s, requirement SYS-018, SYS-019", "    speed.value < 10  false"]
    )
    run(marked('"stop.rondel", expect={"limit": "violated"}', push % "11.0", "rondel_monitor")).assert_outcomes(passed=1)
    result = run(marked('"stop.rondel", expect={"limits": "violated"}', push % "11.0", "rondel_monitor"))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["stop.rondel has no property 'limits'; it has stops, limit"])
    run(marked('"stop.rondel"', "pass", "rondel_monitor")).stdout.fnmatch_lines(["stops: inconclusive*"])
    run("def test(rondel_monitor): pass").stdout.fnmatch_lines(["`rondel_monitor` needs a marker*"])


def test_end_decides_open_verdicts_of_a_monitor(run):
    body = 'rondel_monitor.push("speed", {"value": 1.0}, time=0.0); rondel_monitor.push("brake", {"pressed": True}, time=1.0)'
    result = run(marked('"stop.rondel"', body, "rondel_monitor"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["stops: inconclusive*"])


FACTORY = f"""
    import pathlib
    import pytest, rondel
    TEXT = {LEVEL!r}

    @pytest.fixture
    def monitor(rondel_monitor_factory):
        return rondel_monitor_factory(TEXT)
"""


@pytest.mark.parametrize(
    "body, outcome, text",
    [
        ('monitor.push("tank", {"level": 1.0}, time=1.0)', "passed", None),
        ('monitor.push("tank", {"level": 99.0}, time=1.0)', "failed", "low: violated at 1 s, requirement R1"),
        ('monitor.push("tank", {"level": 99.0}, time=1.0); monitor.finish()', "failed", "low: violated at 1 s*"),
        ('monitor.push("tank", {"level": 99.0}, time=1.0); monitor.close()', "failed", "low: violated at 1 s*"),
        ('monitor.push_many("tank", {"time": [1.0], "level": [99.0]}); monitor.advance(2.0)', "failed", "low: violated*"),
        ('monitor.expect_violation("low"); monitor.push("tank", {"level": 99.0}, time=1.0)', "passed", None),
        ('monitor.expect_violation("low"); monitor.push("tank", {"level": 1.0}, time=1.0)', "failed", "low: expected violated*"),
        ('monitor.expect_violation("lwo")', "failed", "*has no property 'lwo'; it has low"),
        ("monitor.expect_violation()", "failed", "*names no property"),
        ("pass", "failed", "low: inconclusive; no message came on `tank`*"),
        ('monitor.push("tank", {"level": 99.0}, time=1.0); assert "body" == 3', "failed", "low: violated at 1 s*"),
        ('monitor.push("tank", {"level": 99.0}, time=1.0); pytest.skip()', "skipped", None),
        ("assert monitor.properties == ['low'] and monitor.topics == ['tank']; assert 0", "failed", "*assert 0"),
    ],
)
def test_monitors_of_the_factory(run, body, outcome, text):
    result = run(f"{FACTORY}\n    def test(monitor): {body}\n")
    result.assert_outcomes(**{outcome: 1})
    if text is not None:
        result.stdout.fnmatch_lines([text])


@pytest.mark.parametrize(
    "other, pushes, outcome",
    [
        # Another property is vacuous.
        ("property halt = on(stop) -> once on(tank)", "", "failed"),
        ("property halt = on(stop) -> once on(tank)", 'monitor.push("stop", {}, time=3.0)', "passed"),
        # The violated property has an open verdict at the end, or lacks messages.
        ("property low2 = tank.level < 40 -> eventually[0, 9 s] tank.level < 0", 'monitor.push("tank", {"level": 1.0}, time=2.0)', "failed"),
        ("", 'monitor.push("tank", {"level": float("nan")}, time=2.0)', "passed"),
    ],
)
def test_expected_violation_beside_others(run, other, pushes, outcome):
    result = run(
        f"""
        def test(rondel_monitor_factory):
            monitor = rondel_monitor_factory({LEVEL + " topic stop " + other!r})
            monitor.expect_violation("low")
            monitor.push("tank", {{"level": 99.0}}, time=1.0)
            {pushes or "pass"}
        """
    )
    result.assert_outcomes(**{outcome: 1})


def test_open_verdict_of_a_violated_property_is_no_failure(run):
    text = "topic a { x: int }  property p = a.x > 0 -> eventually[0, 2 s] a.x < 0"
    result = run(
        f"""
        def test(rondel_monitor_factory):
            monitor = rondel_monitor_factory({text!r}, expect={{"p": "violated"}})
            for time in 1.0, 9.0:
                monitor.push("a", {{"x": 1}}, time=time)
        """
    )
    result.assert_outcomes(passed=1)


def test_factory_takes_texts_and_paths(run):
    result = run(
        f"""{FACTORY}
    def test_path(rondel_monitor_factory):
        first, second = rondel_monitor_factory("stop.rondel"), rondel_monitor_factory(pathlib.Path("stop.rondel"))
        assert first.properties == second.properties == ["stops", "limit"]
        for monitor in first, second:
            monitor.push("speed", {{"value": 99.0}}, time=1.0)
        second.expect_violation("limit")

    def test_missing(rondel_monitor_factory):
        rondel_monitor_factory("none.rondel")

    def test_mistake(rondel_monitor_factory):
        rondel_monitor_factory("topic tank")

    def test_expected(rondel_monitor_factory):
        rondel_monitor_factory(TEXT, expect={{"low": "inconclusive"}})
    """
    )
    result.assert_outcomes(failed=3, passed=1)
    result.stdout.fnmatch_lines(["limit: violated at 1 s*", "*none.rondel*"])


@pytest.mark.parametrize(
    "arguments, push, outcome",
    [
        ("allow_inconclusive=True", "pass", "failed"),
        ("allow_inconclusive=True", "monitor.advance(5.0)", "failed"),
        # No message that can be read.
        ("allow_inconclusive=True", "with pytest.raises(rondel.MessageError): monitor.push('tank', '{', time=1.0)", "failed"),
        ("allow_inconclusive=True", 'monitor.push("tank", {}, time=1.0)', "passed"),
        ('allow_inconclusive=True, expect={"low": "inconclusive"}', "pass", "failed"),
        ('expect={"low": "inconclusive", "high": "inconclusive"}', "pass", "passed"),
    ],
)
def test_monitor_without_messages_fails(run, arguments, push, outcome):
    text = LEVEL + " property high = tank.level > 3"
    source = f"""
        import pytest, rondel

        def test(rondel_monitor_factory):
            monitor = rondel_monitor_factory({text!r}, {arguments})
            {push}
    """
    result = run(source)
    result.assert_outcomes(**{outcome: 1})
    if outcome == "failed":
        result.stdout.fnmatch_lines(["nothing was seen: no message was evaluated"])


def test_repeated_test_begins_again(run, pytester):
    pytester.makeconftest(
        """
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            runtestprotocol(item, nextitem=nextitem, log=False)
            for report in runtestprotocol(item, nextitem=nextitem, log=False):
                item.ihook.pytest_runtest_logreport(report=report)
            return True
        """
    )
    run(marked('"stop.rondel", recording="satisfied.jsonl"'), "--junitxml=report.xml").assert_outcomes(passed=1)
    assert (pytester.path / "report.xml").read_text().count('name="rondel.stops"') == 1


def test_marker_is_registered(run):
    run(marked('"stop.rondel", recording="satisfied.jsonl"'), "--strict-markers").assert_outcomes(passed=1)
    assert "@pytest.mark.rondel(specification, recording=None" in run("", "--markers").stdout.str()


def test_pytest_finds_the_plugin_and_loads_nothing_else(pytester, monkeypatch):
    """The entry point of the project, as an installer would write it."""
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    [(name, module)] = project["entry-points"]["pytest11"].items()
    installed = pytester.mkdir("installed") / "rondel-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: rondel\nVersion: 0\n")
    (installed / "entry_points.txt").write_text(f"[pytest11]\n{name} = {module}\n")
    monkeypatch.setenv("PYTHONPATH", f"{installed.parent}:{pathlib.Path(rondel.__file__).parents[1]}")
    pytester.makepyfile(
        """
        import sys

        def test(request):
            assert request.config.pluginmanager.has_plugin("rondel")
            loaded = {name for name in sys.modules if name.startswith("rondel")}
            assert loaded == {"rondel", "rondel.pytest_plugin"}, loaded
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_import_does_not_import_pytest():
    program = (
        "import sys, rondel; rondel.Monitor; rondel.check; "
        "print([name for name in ('pytest', '_pytest', 'rondel.pytest_plugin', 'rondel._testing') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "[]"


def test_names_of_the_package_are_lazy():
    program = "import sys, rondel; print('rondel._native' in sys.modules, 'Monitor' in dir(rondel), hasattr(rondel, 'Mon'))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.split() == ["False", "True", "False"]
    assert importlib.metadata.version("pytest") >= "8"


TYPED = """
import pytest
import rondel
from rondel.pytest_plugin import DeploymentFactory, JudgedDeployment, JudgedMonitor, MonitorFactory


@pytest.mark.rondel("stop.rondel", recording="satisfied.jsonl")
def test(
    rondel_results: rondel.Results,
    rondel_monitor_factory: MonitorFactory,
    rondel_deployment: DeploymentFactory,
) -> None:
    monitor: JudgedMonitor = rondel_monitor_factory("stop.rondel", expect={"limit": "violated"}, allow_inconclusive=True)
    monitor.push("speed", {"value": 99.0}, time=1.0)
    if not rondel_results.is_satisfied:
        run: JudgedDeployment = rondel_deployment("rondel.yaml", "--strict", expect={"limit": "violated"})
        run.wait_for("limit", "violated")
"""


def test_fixtures_have_types(run, pytester, monkeypatch):
    run(TYPED).assert_outcomes(passed=1)
    monkeypatch.setenv("MYPYPATH", str(pathlib.Path(rondel.__file__).parents[1]))
    [source] = pytester.path.glob("test_*.py")
    check = pytester.run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", source)
    assert check.ret == 0, check.outlines


def test_unknown_names_of_the_plugin():
    import rondel.pytest_plugin

    with pytest.raises(AttributeError, match="has no attribute 'Judged'"):
        rondel.pytest_plugin.Judged
