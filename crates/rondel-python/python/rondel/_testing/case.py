"""Checks of recordings in a test."""

from __future__ import annotations

import json
from dataclasses import replace

import rondel

from .judgement import Expectations, Judgement, judge, of_summary
from .marker import Marker, UsageError
from .text import Violation

OWN = ("emit", "explain", "text", "formula")
"""Arguments of :func:`rondel.check` that the marker sets itself."""


class Check:
    """The check of the recordings of a marker. It is run once."""

    def __init__(self, marker: Marker) -> None:
        self._marker = marker
        self._results: rondel.Results | None = None

    def run(self) -> rondel.Results:
        """Check the recordings, unless this has been done, and return the results.

        Raises:
            UsageError: a file does not exist, or an argument is wrong.
            RondelError: the specification has mistakes, or a recording cannot be read.
        """
        if self._results is None:
            self._results = self._run()
        return self._results

    def _run(self) -> rondel.Results:
        marker = self._marker
        for name in OWN:
            if name in marker.options:
                raise UsageError(f"the marker `rondel` has no argument `{name}`")
        if not marker.specification.is_file():
            raise UsageError(f"there is no specification {marker.specification}")
        for recording in marker.recordings:
            if not recording.exists():
                raise UsageError(f"there is no recording {recording}")
        try:
            return rondel.check(marker.specification, *marker.recordings, explain=True, **marker.options)
        except (TypeError, ValueError, TimeoutError) as error:
            raise UsageError(f"the marker `rondel`: {error}") from error

    def judgement(self) -> Judgement:
        """Check the recordings, and return the judgement of their verdicts."""
        results = self.run()
        marker = self._marker
        recordings = ", ".join(recording.name for recording in marker.recordings)
        outcome = of_summary(
            f"{marker.specification.name} on {recordings}",
            results.summary,
            is_strict=bool(marker.options.get("strict")),
        )
        outcome = replace(
            outcome,
            is_violated=results.is_violated,
            is_inconclusive=results.is_inconclusive or outcome.is_inconclusive,
            violations=[Violation.of_json(json.loads(report.json())) for report in results.violations],
            requirements=_requirements(results),
            problems=self._empty(results),
        )
        return judge(outcome, Expectations(marker.expect, marker.allow_inconclusive))

    def _empty(self, results: rondel.Results) -> list[str]:
        """Return a sentence about each recording that checks nothing, unless a verdict is expected of every property."""
        if all(entry.name in self._marker.expect for entry in results.properties):
            return []
        return [
            f"the recording {entry['recording']} has no messages for these topics"
            for entry in results.summary["recordings"]
            if not entry["events"]
        ]


def _requirements(results: rondel.Results) -> dict[str, list[str]]:
    """Return the requirements of each property that has any."""
    found = {report.property: report.requirement for report in results.verdicts}
    if all(entry.name in found for entry in results.properties):
        return {name: requirement.split(", ") for name, requirement in found.items() if requirement}
    # Of properties without a verdict, only the report has them.
    report = json.loads(results.report("json") or "{}")
    return {entry["name"]: entry["requirements"] for entry in report["properties"] if entry["requirements"]}
