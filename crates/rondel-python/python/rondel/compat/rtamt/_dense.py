"""Evaluation in dense time: every sample holds until the next one."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence

from rondel import Monitor, Report

from ._discrete import robustness
from ._plan import TOPIC, ZERO, Stage

#: Times in nanoseconds with the values from then on.
Signal = list[tuple[int, float]]

NANOSECONDS = 1_000_000_000


class Segments:
    """Monitors of stages that look back, advanced by pieces of signals."""

    def __init__(self, result: Stage) -> None:
        self._result = result
        self._stages = [_Running(stage) for stage in result.all()]
        #: Samples of each variable after the time up to which all are known.
        self._waiting: dict[str, Signal] = {name: [] for name in result.names()}
        #: The latest time of each variable.
        self.latest: dict[str, int] = {}
        #: The result that was returned last.
        self._value: float | None = None

    @property
    def names(self) -> set[str]:
        """The variables that are read."""
        return set(self._waiting)

    def push(self, pieces: Mapping[str, Signal]) -> Signal:
        """Adds samples, and returns the changes of the result up to where all variables are known."""
        for name, piece in pieces.items():
            if name in self._waiting and piece:
                self._waiting[name].extend(piece)
                self.latest[name] = max(time for time, _ in piece)
        if len(self.latest) < len(self._waiting) or not self.latest:
            return []
        until = min(self.latest.values())
        inputs: dict[str, Signal] = {}
        for name, waiting in self._waiting.items():
            waiting.sort(key=lambda sample: sample[0])
            at = bisect.bisect_right(waiting, until, key=lambda sample: sample[0])
            inputs[name], self._waiting[name] = waiting[:at], waiting[at:]
        values: dict[int, Signal] = {}
        for running in self._stages:
            values[id(running.stage)] = running.push(inputs, values, until)
        found: Signal = []
        for time, value in values[id(self._result)]:
            if self._value is None or not _is_same(self._value, value):
                found.append((time, value))
            self._value = value
        return found


def evaluate(result: Stage, signals: Mapping[str, Signal], reach: int) -> Signal:
    """The changes of a stage over whole signals, whose last values hold; `reach` is at least its horizon."""
    names = result.names()
    if any(not signals.get(name) for name in names):
        return []
    start = max((signals[name][0][0] for name in names), default=0)
    last = max((signals[name][-1][0] for name in names), default=start)
    end = last + reach + NANOSECONDS
    whole = {name: _from(signals[name], start) for name in names}
    known: dict[int, Signal] = {}
    # A reversed trace begins later by what a formula looks ahead, so that its values up to `end` have all their future.
    later = end + reach
    for stage in result.all():
        is_reversed = stage.direction == "future"
        inputs: Mapping[str, Signal] = whole
        inner: Mapping[int, Signal] = known
        if is_reversed:
            inputs = {name: _reversed(signal, later) for name, signal in whole.items()}
            inner = {key: _reversed(signal, later) for key, signal in known.items()}
        first, stop = (0, later - start) if is_reversed else (start, end)
        found = _Running(stage, first).push(inputs, inner, stop)
        found = _merged(_until(found, stop))
        known[id(stage)] = _until(_reversed(found, later), end) if is_reversed else found
    changes = _until(known[id(result)], last + 1)
    if changes and changes[-1][0] < last:
        changes.append((last, changes[-1][1]))
    return changes


class _Running:
    """The monitor of a stage."""

    def __init__(self, stage: Stage, start: int | None = None) -> None:
        self.stage = stage
        self._monitor = Monitor(stage.specification, emit="every")
        fields = [*stage.variables.values(), *stage.stages]
        self._message: dict[str, float] = {}
        self._missing = set(fields)
        # Times are counted from the first message, so that they are exact as seconds, too.
        self._start = start if not fields else None
        #: Changes of the result that the next samples may still replace.
        self._waiting: Signal = []
        if stage.has_zero:
            self._message[ZERO] = 0.0
        if not fields:
            self._start = start or 0
            self._begin(self._start)

    def push(self, inputs: Mapping[str, Signal], inner: Mapping[int, Signal], until: int) -> Signal:
        """Evaluates changes up to `until`, and returns those of the result up to it."""
        changes = [
            *((time, field, value) for name, field in self.stage.variables.items() for time, value in inputs[name]),
            *((time, field, value) for field, stage in self.stage.stages.items() for time, value in inner[id(stage)]),
        ]
        changes.sort(key=lambda change: change[0])
        for at, (time, field, value) in enumerate(changes):
            self._message[field] = value
            self._missing.discard(field)
            is_last = at + 1 == len(changes) or changes[at + 1][0] > time
            if not self._missing and is_last:
                self._begin(time)
        if self._start is not None:
            self._keep(self._monitor.advance(time_ns=until - self._start))
        ready = [change for change in self._waiting if change[0] <= until]
        self._waiting = self._waiting[len(ready) :]
        return ready

    def _begin(self, time: int) -> None:
        """Evaluates the present values at a time."""
        if self._start is None:
            self._start = time
        if not self._waiting and self.stage.shift and time == self._start:
            # Nothing is known of the time before the first sample.
            self._waiting.append((time, -math.inf))
        self._keep(self._monitor.push(TOPIC, self._message, time_ns=time - self._start))

    def _keep(self, reports: Sequence[Report]) -> None:
        start = self._start or 0
        for report in reports:
            about = report.time_ns if report.about_ns is None else report.about_ns
            time = start + about + self.stage.shift
            # The value at a time point alone is replaced by that of the interval after it.
            while self._waiting and self._waiting[-1][0] >= time:
                self._waiting.pop()
            self._waiting.append((time, robustness(report)))


def _from(signal: Signal, start: int) -> Signal:
    """A signal from a time on."""
    at = bisect.bisect_right(signal, start, key=lambda sample: sample[0]) - 1
    return [(start, signal[at][1]), *signal[at + 1 :]] if at >= 0 else signal


def _merged(signal: Signal) -> Signal:
    """A signal without samples that change nothing."""
    found: Signal = []
    for time, value in signal:
        if not found or not _is_same(found[-1][1], value):
            found.append((time, value))
    return found


def _reversed(signal: Signal, end: int) -> Signal:
    """A signal up to `end` in reversed time: time 0 is `end`."""
    stops = [*(time for time, _ in signal[1:]), end]
    return [(end - stop, value) for (_, value), stop in zip(reversed(signal), reversed(stops))]


def _until(signal: Signal, end: int) -> Signal:
    return [change for change in signal if change[0] < end]


def _is_same(left: float, right: float) -> bool:
    return left == right or math.isnan(left) and math.isnan(right)
