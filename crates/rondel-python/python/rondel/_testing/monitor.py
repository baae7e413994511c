"""A monitor that judges a test."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import rondel

from .._types import Emit, Verdict
from .judgement import Expectations, Judgement, Outcome, judge
from .marker import UsageError, expectations
from .text import Violation

KEPT = 1000
"""Violations that are kept with their explanations; further ones are counted."""


class JudgedMonitor:
    """A :class:`rondel.Monitor` that keeps the violations until the end of the test.

    It has the methods and attributes of the monitor, whose verdicts it returns.
    """

    def __init__(
        self,
        specification: str,
        *,
        name: str,
        emit: Emit = "change",
        expect: Mapping[str, Verdict] | None = None,
        allow_inconclusive: bool = False,
    ) -> None:
        self._monitor = rondel.Monitor(specification, emit=emit, explain=True)
        self._name = name
        self._expect: dict[str, Verdict] = {}
        self._allow_inconclusive = allow_inconclusive
        self._violations: list[Violation] = []
        self._is_finished = False
        self._judgement: Judgement | None = None
        for property, verdict in (expect or {}).items():
            self._expected(property, verdict)

    def expect_violation(self, *properties: str) -> None:
        """Require that these properties are violated by the end of the test. Their violations do not fail it."""
        __tracebackhide__ = True
        if not properties:
            raise UsageError("`expect_violation` names no property")
        for property in properties:
            self._expected(property, "violated")

    def _expected(self, property: str, verdict: Verdict) -> None:
        __tracebackhide__ = True
        if property not in self._monitor.properties:
            known = ", ".join(self._monitor.properties)
            raise UsageError(f"{self._name} has no property '{property}'; it has {known}")
        self._expect[property] = verdict

    def push(
        self,
        topic: str,
        message: dict[str, Any] | str | bytes,
        time: float | datetime | None = None,
        *,
        time_ns: int | None = None,
    ) -> list[rondel.Report]:
        """Evaluate a message, and return the verdicts that it decides."""
        return self._keep(self._monitor.push(topic, message, time, time_ns=time_ns))

    def push_many(
        self, topic: str, table: Any, *, time: str | None = None, time_ns: str | None = None
    ) -> list[rondel.Report]:
        """Evaluate the rows of a table."""
        return self._keep(self._monitor.push_many(topic, table, time=time, time_ns=time_ns))

    def advance(self, time: float | datetime | None = None, *, time_ns: int | None = None) -> list[rondel.Report]:
        """Let time pass without a message."""
        return self._keep(self._monitor.advance(time, time_ns=time_ns))

    def finish(self) -> list[rondel.Report]:
        """End the trace. The fixture does this at the end of a test that has not done it."""
        reports = self._keep(self._monitor.finish())
        self._is_finished = True
        return reports

    @property
    def deadline(self) -> float | None:
        """The next time at which a verdict may change without a message."""
        return self._monitor.deadline

    @property
    def properties(self) -> list[str]:
        """The names of the properties."""
        return self._monitor.properties

    @property
    def topics(self) -> list[str]:
        """The names of the topics."""
        return self._monitor.topics

    @property
    def violations(self) -> list[Violation]:
        """The violations so far, at most the first 1000."""
        return list(self._violations)

    def notices(self) -> list[rondel.Notice]:
        """Take the notices since the last call."""
        return self._monitor.notices()

    def summary(self) -> rondel.Summary:
        """Return the counts of messages, and the verdicts of each property."""
        return self._monitor.summary()

    def snapshot(self) -> bytes:
        """Return the whole state as bytes."""
        return self._monitor.snapshot()

    def close(self) -> None:
        """End the trace, if this has not been done, and free the state."""
        self.judgement()
        self._monitor.close()

    def _keep(self, reports: list[rondel.Report]) -> list[rondel.Report]:
        for report in reports:
            if report.verdict == "violated" and len(self._violations) < KEPT:
                self._violations.append(Violation.of_json(json.loads(report.json())))
        return reports

    def judgement(self) -> Judgement:
        """End the trace, and return the judgement of its verdicts."""
        if self._judgement is None:
            if not self._is_finished:
                self.finish()
            self._judgement = self._judge(self.summary())
        return self._judgement

    def _judge(self, summary: rondel.Summary) -> Judgement:
        entries = summary.properties
        outcome = Outcome(
            subject=self._name,
            verdicts={entry.name: entry.verdict for entry in entries},
            is_violated=summary.is_violated,
            is_inconclusive=any(entry.is_inconclusive for entry in entries),
            inconclusive={entry.name: entry.vacuous for entry in entries if entry.is_inconclusive},
            unevaluated=summary.not_evaluated,
            violations=self._violations,
            counts={entry.name: entry.violations for entry in entries},
            requirements={entry.name: entry.requirements for entry in entries if entry.requirements},
            judged_by_asserts=frozenset(entry.name for entry in entries if entry.is_asserted),
            checked=summary.checked,
        )
        return judge(outcome, Expectations(self._expect, self._allow_inconclusive))


def create(
    specification: str | os.PathLike[str],
    folder: Path,
    *,
    emit: Emit,
    expect: Mapping[str, Verdict] | None,
    allow_inconclusive: bool,
) -> JudgedMonitor:
    """Create a monitor of the text of a specification, or of its file, relative to the folder."""
    if isinstance(specification, str) and is_text(specification):
        text, name = specification, "specification"
    else:
        path = folder / specification
        text, name = path.read_text(encoding="utf-8"), path.name
    try:
        return JudgedMonitor(
            text, name=name, emit=emit, expect=expectations(expect), allow_inconclusive=allow_inconclusive
        )
    except rondel.SpecificationError as error:
        # Places in a file have its name.
        error.args = (str(error).replace(" --> specification:", f" --> {name}:"), *error.args[1:])
        raise


def is_text(specification: str) -> bool:
    """Whether this is the text of a specification; otherwise it is the path of a file."""
    return "\n" in specification or not specification.endswith((".rondel", ".rye"))
