"""Evaluation in discrete time: every sample is a step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rondel import Monitor, Report

from ._plan import PADDING, TOPIC, ZERO, Stage

#: The column with the numbers of samples; no name of a variable.
_TIMES = "sample.number"


class Steps:
    """Monitors of stages, advanced sample by sample."""

    def __init__(self, results: Sequence[Stage]) -> None:
        self._results = results
        order: dict[int, Stage] = {}
        for result in results:
            order.update((id(stage), stage) for stage in result.all())
        self._stages: list[tuple[Stage, Monitor, list[tuple[str, str]], list[tuple[str, int]]]] = []
        for stage in order.values():
            monitor = Monitor(stage.specification, emit="every")
            inner = [(field, id(inner)) for field, inner in stage.stages.items()]
            self._stages.append((stage, monitor, list(stage.variables.items()), inner))
            for step in range(stage.shift):
                monitor.push(TOPIC, PADDING, time_ns=step)
        self._count = 0

    def push(self, values: Mapping[str, float]) -> list[float]:
        """Evaluates a sample, and returns the values of the results."""
        known: dict[int, float] = {}
        for stage, monitor, variables, stages in self._stages:
            message = {field: values[name] for name, field in variables}
            for field, key in stages:
                message[field] = known[key]
            if stage.has_zero:
                message[ZERO] = 0.0
            reports = monitor.push(TOPIC, message, time_ns=stage.shift + self._count)
            known[id(stage)] = robustness(reports[-1])
        self._count += 1
        return [known[id(stage)] for stage in self._results]


def evaluate(result: Stage, columns: Mapping[str, Sequence[float]], count: int) -> list[float]:
    """The values of a stage over a whole trace of `count` samples."""
    known: dict[int, list[float]] = {}
    for stage in result.all():
        fields = {field: list(map(float, columns[name])) for name, field in stage.variables.items()}
        fields.update((field, known[id(inner)]) for field, inner in stage.stages.items())
        if stage.has_zero:
            fields[ZERO] = [0.0] * count
        if stage.shift:
            fields = {name: [PADDING[name]] * stage.shift + column for name, column in fields.items()}
        # What lies ahead of a sample lies behind it in the reversed trace.
        order = -1 if stage.direction == "future" else 1
        table: dict[str, list[float] | list[int]] = {name: column[::order] for name, column in fields.items()}
        table[_TIMES] = list(range(stage.shift + count))
        reports = Monitor(stage.specification, emit="every").push_many(TOPIC, table, time_ns=_TIMES)
        known[id(stage)] = [robustness(report) for report in reports][::order]
    return known[id(result)]


def robustness(report: Report) -> float:
    """The robustness of a report; NaN where a computation has no result."""
    return math.nan if report.robustness is None else report.robustness
