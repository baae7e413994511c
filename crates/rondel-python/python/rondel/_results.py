"""Results of a check."""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING, Any, NoReturn

from . import _page, _tables
from ._arguments import StrPath, path
from ._command import Call
from ._drawing import Drawing
from ._errors import INCONCLUSIVE, SATISFIED, VIOLATED, InconclusiveError, ViolationError
from ._native import RondelError
from ._reports import CommandReport, Reports

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped, unused-ignore]
    import polars
    import pyarrow  # type: ignore[import-untyped, unused-ignore]

    from ._types import Form, Verdict

_WORDS = {SATISFIED: "satisfied", VIOLATED: "violated", INCONCLUSIVE: "inconclusive"}
_FORMS = ("junit", "sarif", "tap", "github", "json", "html", "svg", "mcap")


class PropertyResult:
    """The verdicts of a property over all recordings."""

    def __init__(self, members: dict[str, Any], first_violation_ns: int | None) -> None:
        self._members = members
        self._first_violation_ns = first_violation_ns

    @property
    def name(self) -> str:
        """The name; of an assert its sentence."""
        name: str = self._members["property"]
        return name

    @property
    def verdict(self) -> Verdict:
        """The verdict of all: violated if it was once."""
        verdict: Verdict = self._members["verdict"]
        return verdict

    @property
    def violations(self) -> int:
        """The number of times that it became violated."""
        return int(self._members["violations"])

    @property
    def first_violation(self) -> float | None:
        """The time in seconds that the first violation is about; ``None`` without one."""
        first = self._members.get("first")
        return None if first is None else float(first["time"])

    @property
    def first_violation_ns(self) -> int | None:
        """The same in nanoseconds."""
        return self._first_violation_ns

    @property
    def seconds_violated(self) -> float | None:
        """For how long it was violated in all, in seconds; ``None`` where that is not measured."""
        spent = self._members.get("in_violation")
        return None if spent is None else spent.get("seconds")

    @property
    def least_robustness(self) -> float | None:
        """The least robustness; ``None`` where it is not requested by ``@robust``."""
        return self._members.get("least_robustness")

    @property
    def is_asserted(self) -> bool:
        """Whether asserts decide instead of it."""
        return bool(self._members.get("asserted", False))

    @property
    def is_inconclusive(self) -> bool:
        """Whether it is not decided: its verdict is inconclusive, or a message that it needs never came."""
        is_idle = any(reason["kind"] != "premise" for reason in self._members.get("vacuous", []))
        return not self.is_asserted and (self.verdict == "inconclusive" or is_idle)

    @property
    def vacuous(self) -> list[str]:
        """Reasons why the verdict would be the same without the system, as sentences; empty if it is meaningful."""
        return [reason["text"] for reason in self._members.get("vacuous", [])]

    def __repr__(self) -> str:
        vacuous = ", vacuous" if self.vacuous else ""
        return f"<{self.name}: {self.verdict}{vacuous}, violated {self.violations} times>"


class Robustness:
    """The robustness of a property over time."""

    def __init__(self, property: str, reports: list[CommandReport]) -> None:
        self.property = property
        self._reports = reports

    @property
    def times(self) -> list[float]:
        """The times in seconds that the values are about."""
        return [report.time if report.about is None else report.about for report in self._reports]

    @property
    def times_ns(self) -> list[int]:
        """The same in nanoseconds."""
        return [_about_ns(report) for report in self._reports]

    @property
    def values(self) -> list[float]:
        """The robustness at each time, negative where the property is violated."""
        return [report.robustness for report in self._reports if report.robustness is not None]

    def __len__(self) -> int:
        return len(self._reports)

    def __repr__(self) -> str:
        return f"<Robustness of {self.property}: {len(self)} values>"


class Results:
    """The verdicts, summary and reports of a check.

    ``exit_status`` is that of ``rondel check``: 0 satisfied, 1 violated, 4 inconclusive; 3 in a ``RecordingError``.
    ``verdicts`` are those that the option ``emit`` selects, ``summary`` is the object of ``--summary json``, and
    ``warnings`` are the lines of the command about recordings and the specification.
    """

    def __init__(
        self, exit_status: int, verdicts: list[CommandReport], summary: dict[str, Any], messages: str, call: Call
    ) -> None:
        self.exit_status = exit_status
        self.verdicts: list[CommandReport] = Reports(verdicts)
        self.summary = summary
        self.warnings = [line for line in messages.split("\n") if line]
        self._call = call
        self._robustness: list[CommandReport] | None = None
        self._drawing: Drawing | None = None

    @property
    def is_satisfied(self) -> bool:
        """Whether every property was decided, and none violated."""
        return self.exit_status == SATISFIED

    @property
    def is_violated(self) -> bool:
        """Whether a property was violated."""
        return self.exit_status == VIOLATED

    @property
    def is_inconclusive(self) -> bool:
        """Whether no property was violated, but one is not decided."""
        return self.exit_status == INCONCLUSIVE

    def __bool__(self) -> NoReturn:
        # Neither reading is safe: "there are results" would pass a violation, and "satisfied" is false without a
        # violation where a result is inconclusive.
        raise TypeError(
            "results have no truth value: use is_satisfied, is_violated, is_inconclusive, or raise_for_violations()"
        )

    @property
    def violations(self) -> list[CommandReport]:
        """The verdicts that are violations."""
        return Reports(report for report in self.verdicts if report.verdict == "violated")

    @property
    def properties(self) -> list[PropertyResult]:
        """The properties, in the order of the specification."""
        # The summary has its times as floats, the verdicts have them exactly.
        firsts: dict[tuple[str, float], CommandReport] = {}
        for report in self.violations:
            firsts.setdefault((report.property, report.time if report.about is None else report.about), report)
        found = []
        for members in self.summary["properties"]:
            exact = None
            if (first := members.get("first")) is not None:
                seconds = float(first["time"])
                report_of_first = firsts.get((members["property"], seconds))
                exact = round(seconds * 1e9) if report_of_first is None else _about_ns(report_of_first)
            found.append(PropertyResult(members, exact))
        return found

    @property
    def not_evaluated(self) -> list[dict[str, Any]]:
        """The messages that were not evaluated: ``reason``, ``topic``, ``count`` and ``first`` of each kind."""
        found: list[dict[str, Any]] = self.summary["not_evaluated"]
        return found

    def raise_for_violations(self, *, allow_inconclusive: bool = False) -> None:
        """Raise an exception unless every property is satisfied.

        Raises:
            ViolationError: a property is violated.
            InconclusiveError: none is, but one is not decided; not with ``allow_inconclusive``.
        """
        if self.is_violated:
            raise ViolationError(self._sentence("violated"), self)
        if self.is_inconclusive and not allow_inconclusive:
            raise InconclusiveError(self._sentence("inconclusive"), self)

    def _sentence(self, verdict: str) -> str:
        named = []
        for entry in self.properties:
            if entry.is_asserted:
                continue
            if verdict == "violated" and entry.verdict == verdict:
                first = "" if entry.first_violation is None else f", first at {entry.first_violation} s"
                times = "once" if entry.violations == 1 else f"{entry.violations} times"
                named.append(f"{entry.name}: violated {times}{first}")
            elif verdict != "violated" and (entry.verdict == verdict or entry.vacuous):
                named.append(f"{entry.name}: {'; '.join(entry.vacuous) or verdict}")
        return "\n".join(named) or "\n".join(self.warnings) or f"the result is {verdict}"

    def robustness(
        self, property: str, parameters: dict[str, Any] | None = None, recording: str | None = None
    ) -> Robustness:
        """Return the robustness of a property with ``@robust`` over time. The first call repeats the check.

        ``parameters`` selects an instance of a property with ``for each``, ``recording`` one of several recordings.
        """
        if not any(entry.name == property for entry in self.properties):
            names = ", ".join(entry.name for entry in self.properties)
            raise ValueError(f"there is no property {property}; the properties are {names}")
        if self._robustness is None:
            ended = self._call.repeat("check", ["--format=json", "--emit=every", "--quiet"], self.exit_status)
            every = (CommandReport(line) for line in ended.output.split("\n") if '"robustness":' in line)
            self._robustness = [report for report in every if report.robustness is not None]
        found = [report for report in self._robustness if report.property == property]
        if not found:
            raise ValueError(f"{property} has no robustness: write @robust before it")
        found = _one(found, "recording", lambda report: report.recording, recording)
        return Robustness(property, _one(found, "parameters", lambda report: report.parameters or None, parameters))

    def to_arrow(self) -> pyarrow.Table:
        """Return the verdicts as a table of PyArrow."""
        return _tables.arrow(self.verdicts)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the verdicts as a table of pandas."""
        return _tables.pandas(self.verdicts)

    def to_polars(self) -> polars.DataFrame:
        """Return the verdicts as a table of Polars."""
        found: polars.DataFrame = _tables.polars(self.verdicts)
        return found

    def plot(self) -> Drawing:
        """Draw verdicts and fields over time, as ``rondel plot`` does. The first call repeats the check."""
        if self._drawing is None:
            self._drawing = Drawing(self._call, self.exit_status)
        return self._drawing

    def report(self, form: Form, file: StrPath | None = None) -> str | None:
        """Write a report as ``rondel check --report`` does; without a file, return it. This repeats the check."""
        if form not in _FORMS:
            raise ValueError(f"{form!r} is no form of a report; the forms are {', '.join(_FORMS)}")
        if file is not None:
            self._write(form, path("file", file))
            return None
        if form == "mcap":
            raise ValueError("an MCAP file needs a name: report('mcap', FILE)")
        with tempfile.TemporaryDirectory(prefix="rondel-") as folder:
            written = os.path.join(folder, "report")
            self._write(form, written)
            with open(written, encoding="utf-8", newline="") as content:
                return content.read()

    def _write(self, form: str, file: str) -> None:
        ended = self._call.repeat("check", [f"--report={form}={file}", "--quiet"], self.exit_status)
        self._same(ended.status)

    def _same(self, status: int) -> None:
        """Refuse a report of other results."""
        if status != self.exit_status:
            raise RondelError(
                f"the recordings or the specification have changed since the check: it was {_WORDS[self.exit_status]}, "
                f"and is now {_WORDS[status]}"
                if self.exit_status in _WORDS
                else "a recording that could not be read has changed since the check"
            )

    def __repr__(self) -> str:
        word = _WORDS.get(self.exit_status, "not read to the end")
        return f"<Results: {word}, {len(self.properties)} properties, {self.summary['events']} messages>"

    def _repr_html_(self) -> str:
        return _page.html(self)


def _about_ns(report: CommandReport) -> int:
    about = report.about_ns
    return report.time_ns if about is None else about


def _one(found: list[CommandReport], name: str, of: Any, wanted: Any) -> list[CommandReport]:
    """The reports of one recording or instance, the wanted one or the only one."""
    values = {json.dumps(of(report), sort_keys=True): of(report) for report in found}
    if wanted is None and len(values) == 1:
        return found
    if wanted is not None and wanted in values.values():
        return [report for report in found if of(report) == wanted]
    shown = ", ".join(repr(value) for value in list(values.values())[:5]) + (", ..." if len(values) > 5 else "")
    if wanted is None:
        raise ValueError(f"choose one: {name} is one of {shown}")
    raise ValueError(f"{name}={wanted!r} is none of {shown}")
