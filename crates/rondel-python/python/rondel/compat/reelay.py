"""The interface of Reelay: monitors of formulas in its format.

Programs run with this import in place of ``import reelay``::

    import rondel.compat.reelay as reelay

    monitor = reelay.discrete_timed_monitor(pattern="{speed > 13} since[:3] {lights_on}", condense=False)
    print(monitor.update({"speed": 9.3, "lights_on": True}))
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Union

from rondel import Monitor, Report, SpecificationError

from ._place import Place

__all__ = ["DenseTimedMonitor", "DiscreteTimedMonitor", "dense_timed_monitor", "discrete_timed_monitor"]

Output = dict[str, Union[bool, int, float]]
NANOSECONDS = 1_000_000_000

_TOPIC = "row"
#: A variable of a quantifier, outside of texts in quotes.
_REFERENCE = re.compile(r"""'[^']*'|"[^"]*"|(?P<name>\*\s*[A-Za-z_])""")


def discrete_timed_monitor(
    pattern: str, semantics: str = "boolean", t_name: str = "time", y_name: str = "value", condense: bool = True
) -> DiscreteTimedMonitor:
    """A monitor for which every row is a step."""
    return DiscreteTimedMonitor(pattern, semantics, t_name, y_name, condense)


def dense_timed_monitor(
    pattern: str,
    semantics: str = "boolean",
    piecewise: str = "constant",
    t_name: str = "time",
    y_name: str = "value",
) -> DenseTimedMonitor:
    """A monitor for rows with times, in seconds."""
    return DenseTimedMonitor(pattern, semantics, piecewise, t_name, y_name)


class DiscreteTimedMonitor:
    """A monitor for which every row is a step."""

    def __init__(self, pattern: str, semantics: str, t_name: str, y_name: str, condense: bool) -> None:
        self._is_robust = _is_robust(pattern, semantics)
        self._monitor = _monitor(pattern, f"{'@robust ' if self._is_robust else ''}@time(steps)")
        self._names = t_name, y_name
        self._condense = condense
        self._step = -1
        self._last: bool | float | None = None

    def update(self, row: Mapping[str, Any]) -> Output:
        """Evaluates a row. With ``condense`` the result is empty where the value stays."""
        self._step += 1
        report = self._monitor.push(_TOPIC, dict(row), time_ns=self._step)[-1]
        value = _value(report, self._is_robust)
        time_name, value_name = self._names
        if not self._condense:
            return {value_name: value}
        last, self._last = self._last, value
        return {} if value == last else {time_name: self._step, value_name: value}

    def now(self) -> dict[str, int]:
        """The number of the last row, from 0."""
        return {self._names[0]: self._step}


class DenseTimedMonitor:
    """A monitor for rows with times: each holds until the next one."""

    def __init__(self, pattern: str, semantics: str, piecewise: str, t_name: str, y_name: str) -> None:
        if piecewise not in ("constant", "linear"):
            raise AttributeError("piecewise must be either 'constant' or 'linear'.")
        self._is_robust = _is_robust(pattern, semantics)
        if piecewise == "linear" and (self._is_robust or _has_references(pattern)):
            subject = "robustness" if self._is_robust else "specifications with data references"
            raise AttributeError(f"linear interpolation is not available for {subject}: use piecewise='constant'")
        model = "@interpolate(linear)" if piecewise == "linear" else "@time(dense)"
        self._monitor = _monitor(pattern, f"{'@robust ' if self._is_robust else ''}{model}")
        self._names = t_name, y_name
        self._now: float = 0.0
        self._has_rows = False
        #: Changes that the next row may still replace: times in nanoseconds with values.
        self._waiting: list[tuple[int, bool | float]] = []
        self._last: bool | float | None = None

    def update(self, row: Mapping[str, Any]) -> list[Output]:
        """Adds a row, and returns the changes of the value before its time."""
        seconds = row[self._names[0]]
        time = round(Fraction(seconds if isinstance(seconds, int) else float(seconds)) * NANOSECONDS)
        if not self._has_rows and time > 0:
            # Time begins at 0, without any value.
            self._keep(self._monitor.push(_TOPIC, {}, time_ns=0))
        self._has_rows = True
        self._keep(self._monitor.advance(time_ns=time))
        self._keep(self._monitor.push(_TOPIC, dict(row), time_ns=time))
        self._now = float(seconds)
        return self._changes(time)

    def now(self) -> dict[str, float]:
        """The time of the last row."""
        return {self._names[0]: self._now}

    def _keep(self, reports: list[Report]) -> None:
        for report in reports:
            if report.verdict == "inconclusive":
                continue
            about = report.time_ns if report.about_ns is None else report.about_ns
            # The value at a time point alone is replaced by that of the interval after it.
            while self._waiting and self._waiting[-1][0] >= about:
                self._waiting.pop()
            self._waiting.append((about, _value(report, self._is_robust)))

    def _changes(self, until: int) -> list[Output]:
        ready = [change for change in self._waiting if change[0] < until]
        self._waiting = self._waiting[len(ready) :]
        time_name, value_name = self._names
        found: list[Output] = []
        for time, value in ready:
            if value != self._last:
                found.append({time_name: time / NANOSECONDS, value_name: value})
            self._last = value
        return found


def _is_robust(pattern: str, semantics: str) -> bool:
    if semantics not in ("boolean", "robustness"):
        raise AttributeError("semantics must be either 'boolean' or 'robustness'.")
    if semantics == "robustness" and _has_references(pattern):
        raise AttributeError(
            "robustness is not available for specifications with data references: use semantics='boolean'"
        )
    return semantics == "robustness"


def _has_references(pattern: str) -> bool:
    return any(match["name"] for match in _REFERENCE.finditer(pattern))


def _value(report: Report, is_robust: bool) -> bool | float:
    if is_robust:
        # The format has no unknown values.
        return report.robustness if report.robustness is not None else float("nan")
    return report.verdict == "satisfied"


def _monitor(pattern: str, attributes: str) -> Monitor:
    """The monitor of a pattern. Only a quantifier over values without an end may keep all of them."""
    try:
        return _parsed(pattern, attributes)
    except SpecificationError as error:
        if not _has_references(pattern):
            raise
        try:
            return _parsed(pattern, f"@unbounded {attributes}")
        except SpecificationError:
            raise error from None


def _parsed(pattern: str, attributes: str) -> Monitor:
    marks = "#" * (1 + max((len(run) for run in re.findall(r'"(#*)', pattern)), default=0))
    before = f"topic {_TOPIC}\n{attributes}\nproperty value = rye{marks}\""
    try:
        return Monitor(f'{before}{pattern}"{marks}\n', emit="every")
    except SpecificationError as error:
        raise _placed(error, pattern, len(before)) from None


def _placed(error: SpecificationError, pattern: str, offset: int) -> SpecificationError:
    """The error with the places that it has in the pattern."""
    if not error.diagnostics:
        return error
    found, parts = [], []
    for code, message, begin, end, advice in error.diagnostics:
        begin, end = max(0, begin - offset), max(0, end - offset)
        found.append((code, message, begin, end, advice))
        text = f"error[{code}]: {message}" + (f"; {advice}" if advice else "")
        parts.append(Place(pattern, begin, end).describe(text))
    placed = SpecificationError("\n".join(parts))
    placed.diagnostics = found
    return placed
