"""The plugin of pytest: specifications judge tests.

pytest loads it by its entry point at every start. Everything else of this package is imported with the first test that
uses it.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ._results import Results
    from ._testing.case import Check
    from ._testing.deployment import JudgedDeployment as JudgedDeployment
    from ._testing.factories import DeploymentFactory as DeploymentFactory
    from ._testing.factories import MonitorFactory as MonitorFactory
    from ._testing.judgement import Judged
    from ._testing.marker import Marker
    from ._testing.monitor import JudgedMonitor as JudgedMonitor
    from ._types import Emit, Verdict

# The modules of the types that annotations of tests use.
_TYPES = {
    "DeploymentFactory": "factories",
    "JudgedDeployment": "deployment",
    "JudgedMonitor": "monitor",
    "MonitorFactory": "factories",
}

MARKER = "rondel"
USAGE = (
    "rondel(specification, recording=None, expect=None, allow_inconclusive=False, **options): "
    "check recordings against a specification of Rondel; the test fails if a property is violated or inconclusive. "
    "Paths are relative to the test file, options are those of rondel.check."
)


@dataclass
class _Case:
    """The state of a test that uses this plugin."""

    markers: list[Marker] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    """The checks of recordings, in the order of the markers, the closest first."""
    judged: list[Judged] = field(default_factory=list)
    """Monitors and deployments that judge the test at its end."""
    has_monitor: bool = False
    """Whether a monitor of the closest marker is among them."""
    properties: list[tuple[str, str]] = field(default_factory=list)
    """Properties of the report that come from this plugin."""


if not TYPE_CHECKING:
    # Type checkers would take any name for one of these.

    def __getattr__(name: str) -> object:
        if name not in _TYPES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        return getattr(importlib.import_module(f"._testing.{_TYPES[name]}", __package__), name)


CASE = pytest.StashKey[_Case]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", USAGE)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Forget an earlier run of the same test, such as those of plugins that repeat failed ones."""
    if CASE in item.stash:
        earlier = item.stash[CASE].properties
        item.user_properties[:] = [each for each in item.user_properties if each not in earlier]
        del item.stash[CASE]


def _case(item: pytest.Item) -> _Case:
    """Return the state of a test, which its markers begin."""
    if CASE not in item.stash:
        case = _Case()
        markers = list(item.iter_markers(MARKER))
        if markers:
            from ._testing.marker import parse

            case.markers = [parse(marker.args, marker.kwargs, item.path.parent) for marker in markers]
        # Only once all arguments are right.
        item.stash[CASE] = case
    return item.stash[CASE]


def _checks(item: pytest.Item) -> list[Check]:
    """Return the checks of all markers with a recording; each is run once."""
    case = _case(item)
    if not case.checks:
        from ._testing.case import Check

        case.checks = [Check(marker) for marker in case.markers if marker.recordings]
    return case.checks


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Judge the recordings of a test before its body, and its monitors and deployments after it."""
    if CASE not in item.stash and item.get_closest_marker(MARKER) is None:
        return (yield)
    with _failures():
        case = _case(item)
        _require_use(case)
        checks = _checks(item)
        for check in checks:
            check.run()
    if failure := _judge(item, case, checks):
        pytest.fail(failure, pytrace=False)
    try:
        result = yield
    except KeyboardInterrupt:
        raise
    except BaseException:
        # The failure of the body comes first: that of the monitors is shown beside it.
        if failure := _judge(item, case, case.judged):
            item.add_report_section("call", "rondel: failure", failure)
        raise
    if failure := _judge(item, case, case.judged):
        pytest.fail(failure, pytrace=False)
    return result


def _require_use(case: _Case) -> None:
    """Refuse a marker that checks nothing."""
    for number, marker in enumerate(case.markers):
        if marker.recordings or number == 0 and case.has_monitor:
            continue
        from ._testing.marker import UsageError

        raise UsageError(
            f"the marker `rondel` with {marker.specification.name} has no `recording`, and no monitor uses it: nothing "
            "would be checked. Name a recording, or use the fixture `rondel_monitor`"
        )


def _judge(item: pytest.Item, case: _Case, judged: Sequence[Judged]) -> str:
    """Return the texts of all failures. The verdicts become properties and a section of the report."""
    failures = []
    for each in judged:
        judgement = each.judgement()
        new = [entry for entry in judgement.properties if entry not in case.properties]
        case.properties.extend(new)
        item.user_properties.extend(new)
        item.add_report_section("call", "rondel", judgement.overview)
        failures.append(judgement.failure)
    return "\n\n".join(filter(None, failures))


class _failures:
    """Turns errors of this package into failures of the test, without a traceback of the plugin."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            return
        from ._testing.marker import UsageError

        kinds: tuple[type[BaseException], ...] = (UsageError, OSError, UnicodeDecodeError, ImportError)
        if not isinstance(error, kinds):
            from . import RondelError

            kinds = (RondelError,)
        if isinstance(error, kinds):
            raise pytest.fail.Exception(str(error), pytrace=False) from None


@pytest.fixture
def rondel_results(request: pytest.FixtureRequest) -> Results:
    """The results of `rondel.check` for the recordings of the closest marker `rondel`."""
    with _failures():
        checks = _checks(request.node)
        if not checks:
            from ._testing.marker import UsageError

            raise UsageError("`rondel_results` needs a marker `rondel` with a `recording`")
        return checks[0].run()


@pytest.fixture
def rondel_monitor_factory(request: pytest.FixtureRequest) -> Generator[MonitorFactory]:
    """Create monitors that judge the test at its end, from the text of a specification or its file."""
    case = _case_of(request)
    made: list[JudgedMonitor] = []

    def create(
        specification: str | os.PathLike[str],
        *,
        emit: Emit = "change",
        expect: Mapping[str, Verdict] | None = None,
        allow_inconclusive: bool = False,
    ) -> JudgedMonitor:
        from ._testing.monitor import create

        with _failures():
            monitor = create(
                specification, request.path.parent, emit=emit, expect=expect, allow_inconclusive=allow_inconclusive
            )
            made.append(monitor)
            case.judged.append(monitor)
            return monitor

    yield create
    for monitor in made:
        monitor.close()


@pytest.fixture
def rondel_monitor(request: pytest.FixtureRequest, rondel_monitor_factory: MonitorFactory) -> JudgedMonitor:
    """A monitor of the specification of the closest marker `rondel`, which judges the test at its end."""
    case = _case_of(request)
    markers = case.markers
    if not markers:
        pytest.fail('`rondel_monitor` needs a marker: write `@pytest.mark.rondel("spec.rondel")`', pytrace=False)
    marker = markers[0]
    if marker.options and not marker.recordings:
        names = ", ".join(f"`{name}`" for name in marker.options)
        pytest.fail(f"`rondel_monitor` does not use {names}: these are options of a check", pytrace=False)
    # Beside a recording, the expectations are about that.
    expect: Mapping[str, Verdict] = {} if marker.recordings else marker.expect
    monitor = rondel_monitor_factory(marker.specification, expect=expect, allow_inconclusive=marker.allow_inconclusive)
    case.has_monitor = True
    return monitor


@pytest.fixture
def rondel_deployment(request: pytest.FixtureRequest) -> Generator[DeploymentFactory]:
    """Start `rondel run` on deployments, and wait until they are ready. They end and judge the test after its body."""
    case = _case_of(request)
    started: list[JudgedDeployment] = []

    def start(
        deployment: str | os.PathLike[str],
        *arguments: str,
        expect: Mapping[str, Verdict] | None = None,
        allow_inconclusive: bool = False,
        ready_within: float = 20.0,
        stop_within: float = 10.0,
        settle: float = 0.5,
        env: Mapping[str, str] | None = None,
    ) -> JudgedDeployment:
        from ._testing.deployment import JudgedDeployment

        with _failures():
            run = JudgedDeployment(
                request.path.parent / deployment,
                *arguments,
                expect=expect,
                allow_inconclusive=allow_inconclusive,
                ready_within=ready_within,
                stop_within=stop_within,
                settle=settle,
                env=env,
            )
            run.start()
            started.append(run)
            case.judged.append(run)
            return run

    try:
        yield start
    finally:
        for run in started:
            run.close()


def _case_of(request: pytest.FixtureRequest) -> _Case:
    with _failures():
        return _case(request.node)
