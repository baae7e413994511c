"""Texts of failures: violations with the values that caused them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

VIOLATIONS = 3
"""Violations of a property that are shown; of further ones, the number."""
ROWS = 12
"""Rows of the table of an explanation."""
WIDTH = 16
"""Characters of a value in that table."""


@dataclass(frozen=True)
class Violation:
    """A violation of a property, from whichever source."""

    property: str
    time: float | None
    about: float | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    severity: str | None = None
    requirement: str | None = None
    explanation: Sequence[Mapping[str, Any]] = ()
    recording: str | None = None

    @staticmethod
    def of_json(members: Mapping[str, Any]) -> Violation:
        """Return the violation that this object of JSON describes, in the form in which verdicts are published."""
        return Violation(
            property=members["property"],
            time=members.get("time"),
            about=members.get("about"),
            parameters=members.get("key") or {},
            severity=members.get("severity"),
            requirement=members.get("requirement"),
            explanation=members.get("evidence") or (),
            recording=members.get("trace"),
        )

    def text(self) -> str:
        """Return a line, and the table of its explanation below."""
        key = f"[{', '.join(map(value, self.parameters.values()))}]" if self.parameters else ""
        parts = [f"violated at {seconds(self.time)}" if self.time is not None else "violated"]
        if self.about is not None:
            parts.append(f"about {seconds(self.about)}")
        if self.severity:
            parts.append(f"severity {self.severity}")
        if self.requirement:
            parts.append(f"requirement {self.requirement}")
        place = f" in {self.recording}" if self.recording else ""
        return "\n".join([f"{self.property}{key}: {', '.join(parts)}{place}", *table(self.explanation)])


def violations(found: Iterable[Violation], total: Mapping[str, int] | None = None) -> str:
    """Return the text of violations: the first of each property, and the number of the others.

    `total` has the number of violations of each property, where not all of them are in `found`.
    """
    groups: dict[str, list[Violation]] = {}
    for each in found:
        groups.setdefault(each.property, []).append(each)
    texts = []
    for name, group in groups.items():
        texts += [each.text() for each in group[:VIOLATIONS]]
        more = max((total or {}).get(name, 0), len(group)) - min(len(group), VIOLATIONS)
        if more > 0:
            texts.append(f"{name}: {more} further violation{'s' if more > 1 else ''}")
    return "\n".join(texts)


def table(points: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of an explanation: a column for each time point, a row for each value."""
    if not points:
        return []
    names = list(dict.fromkeys(name for point in points for name in point.get("values") or {}))
    rows = [["time", *(_time(point) for point in points)]]
    if any(point.get("topic") for point in points):
        rows.append(["message", *(str(point.get("topic") or "") for point in points)])
    for name in names[:ROWS]:
        values = [point.get("values") or {} for point in points]
        rows.append([name, *(value(of[name]) if name in of else "" for of in values)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *shown in rows:
        cells = [name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(shown, widths[1:], strict=True))]
        lines.append(f"    {'  '.join(cells)}".rstrip())
    if len(names) > ROWS:
        lines.append(f"    and {len(names) - ROWS} further values")
    return lines


def seconds(time: float) -> str:
    """Return a time with its unit."""
    return f"{time:.9f}".rstrip("0").rstrip(".") + " s"


def value(of: Any) -> str:
    """Return a value as the language writes it, shortened; an unknown one is `?`."""
    if of is None:
        return "?"
    if isinstance(of, bool):
        return "true" if of else "false"
    if isinstance(of, float):
        return f"{of:.6g}"
    text = f'"{of}"' if isinstance(of, str) else str(of)
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


def _time(point: Mapping[str, Any]) -> str:
    time = point.get("time")
    text = "?" if time is None else seconds(float(time))
    return f"after {text}" if point.get("after") else text
