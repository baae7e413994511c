"""Results in notebooks, as HTML.

Notebooks have light and dark backgrounds: text keeps their colour, and a verdict has a background of its own. Its mark
differs, too, so that nothing depends on the colours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

from ._native import RondelError

if TYPE_CHECKING:
    from ._native import Summary
    from ._reports import CommandReport
    from ._results import PropertyResult, Results

# A drawing repeats the check: one that took longer, in seconds, is not drawn unless that is requested.
_MOST_SECONDS = 5
# The number of violations in a table, of time points in an explanation, and of characters of a value.
_MOST_ROWS = 10
_MOST_TIMES = 5
_MOST_CHARACTERS = 200

# The marks and colours of the HTML reports. The contrast of each is at least 5 to 1.
_BADGES = {
    "satisfied": ("&#10003;", "#fff", "#00704f"),
    "violated": ("&#10007;", "#fff", "#a84a00"),
    "inconclusive": ("?", "#222", "#f0e442"),
    "vacuous": ("?", "#222", "#56b4e9"),
}
_BOTH = "vertical-align:top;padding:.25em .75em;border-bottom:1px solid rgba(128,128,128,.4)"
_TEXT = f"text-align:left;white-space:normal;overflow-wrap:break-word;max-width:30em;{_BOTH}"
_NUMBER = f"text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums;{_BOTH}"


def html(results: Results) -> str:
    """The properties as a table, with the violations and the drawing below it."""
    found = results.properties
    has_robustness = any(entry.least_robustness is not None for entry in found)
    heads = ["property", "verdict", "#violations", "#first violation"] + ["#least robustness"] * has_robustness
    rows = [_property(entry)[: len(heads)] for entry in found]
    messages = results.summary["events"]
    title = f"<p>{badge(_overall(results))} {_counted(len(found), 'property', 'properties')}, {_counted(messages, 'message')}</p>"
    notes = "".join(f"<p style='white-space:pre-wrap'>{escape(line)}</p>" for line in results.warnings)
    listed = verdicts(results.violations) if results.violations else ""
    return f"<div>{title}{_table(heads, rows)}{notes}{listed}{_drawing(results)}</div>"


def verdicts(reports: list[CommandReport]) -> str:
    """The first verdicts of a list as a table, with explanations to unfold."""
    if not reports:
        return "<p>no verdicts</p>"
    shown = reports[:_MOST_ROWS]
    word = "violation" if all(report.verdict == "violated" for report in reports) else "verdict"
    rest = f"<p>The first {len(shown)} of {_counted(len(reports), word)}.</p>" if len(reports) > len(shown) else ""
    return f"{_table(*_columns(shown))}{rest}"


def summary(of: Summary) -> str:
    """The summary of a monitor as a table."""
    found = of.properties
    has_robustness = any(entry.least_robustness is not None for entry in found)
    heads = ["property", "verdict", "#violations", "#first violation"] + ["#least robustness"] * has_robustness
    rows = [
        [escape(entry.name), badge(entry.verdict), str(entry.violations), _seconds(entry.first_violation), _number(entry.least_robustness)]
        for entry in found
    ]
    lines = [*of.not_evaluated, *(f"`{name}` has not seen the messages before the snapshot" for name in of.restarted)]
    notes = "".join(f"<p>{escape(line)}</p>" for line in lines)
    title = f"<p>{_counted(len(found), 'property', 'properties')}, {_counted(of.checked, 'message')}</p>"
    return f"<div>{title}{_table(heads, [row[: len(heads)] for row in rows])}{notes}</div>"


def badge(verdict: str) -> str:
    """A verdict with its mark and colours."""
    mark, text, background = _BADGES.get(verdict, ("!", "#fff", "#555"))
    style = f"color:{text};background:{background};padding:.1em .5em;border-radius:.3em;white-space:nowrap"
    return f"<span style='{style}'>{mark} {escape(verdict)}</span>"


def picture(svg: str) -> str:
    """A drawing on white, for which its colours are made. It shrinks with the notebook while its text is legible."""
    drawn = svg.replace("<svg ", "<svg style='max-width:100%;min-width:720px;height:auto;display:block' ", 1)
    return f"<div style='overflow-x:auto;background:#fff;margin:.5em 0'>{drawn}</div>"


def _overall(results: Results) -> str:
    if results.is_violated:
        return "violated"
    if results.is_inconclusive:
        return "inconclusive"
    return "satisfied" if results.is_satisfied else "not read to the end"


def _property(entry: PropertyResult) -> list[str]:
    shown = "vacuous" if entry.vacuous and entry.verdict == "satisfied" else entry.verdict
    verdict = badge(shown) + "".join(f"<div>{escape(reason)}</div>" for reason in entry.vacuous)
    return [
        escape(entry.name),
        verdict,
        str(entry.violations),
        _seconds(entry.first_violation),
        _number(entry.least_robustness),
    ]


def _columns(reports: list[CommandReport]) -> tuple[list[str], list[list[str]]]:
    """The columns of verdicts: only those that one of them has."""
    rows: list[dict[str, str]] = []
    for report in reports:
        row = {"property": escape(report.property), "verdict": badge(report.verdict)}
        row["#time"] = _seconds(report.time if report.about is None else report.about)
        if report.recording is not None:
            row["recording"] = escape(report.recording)
        if instance := {**report.parameters, **report.values}:
            row["instance"] = _values(instance)
        if report.robustness is not None:
            row["#robustness"] = _number(report.robustness)
        if report.severity is not None:
            row["severity"] = escape(report.severity)
        if report.explanation:
            row["explanation"] = _explanation(report.explanation)
        rows.append(row)
    order = dict.fromkeys(name for row in rows for name in row if name != "explanation")
    heads = [*order, *(["explanation"] if any("explanation" in row for row in rows) else [])]
    return heads, [[row.get(name, "") for name in heads] for row in rows]


def _explanation(points: list[dict[str, Any]]) -> str:
    """The last time points of an explanation, to unfold."""
    last = points[-_MOST_TIMES:]
    lines = []
    for point in last:
        lines.append(f"<div>{_seconds(point.get('time'))}: {_values(point.get('values', {}))}</div>")
    rest = f"<div>{len(points) - len(last)} earlier time points</div>" if len(points) > len(last) else ""
    return f"<details><summary>values</summary>{rest}{''.join(lines)}</details>"


def _table(heads: Iterable[str], rows: list[list[str]]) -> str:
    """A table of cells in HTML; a column whose head begins with ``#`` has numbers."""
    heads = list(heads)
    styles = [_NUMBER if head.startswith("#") else _TEXT for head in heads]
    head = "".join(f"<th style='{style}'>{text.removeprefix('#')}</th>" for text, style in zip(heads, styles))
    body = "".join(
        "<tr>" + "".join(f"<td style='{style}'>{cell}</td>" for cell, style in zip(row, styles)) + "</tr>" for row in rows
    )
    return (
        "<div style='overflow-x:auto'><table style='border-collapse:collapse;margin:.5em 0'>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _seconds(time: float | None) -> str:
    return "" if time is None else f"{time} s"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _values(values: dict[str, Any]) -> str:
    """Values with their names."""
    return ", ".join(f"{escape(str(name))} = {_value(value)}" for name, value in values.items())


def _value(value: object) -> str:
    """A value as in JSON, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    return escape(text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…")


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _drawing(results: Results) -> str:
    if results.summary["seconds"] > _MOST_SECONDS:
        return "<p>The check was long: <code>plot()</code> repeats it for the drawing.</p>"
    try:
        return picture(results.plot().svg)
    except (RondelError, OSError) as error:
        return f"<p>No drawing: {escape(str(error))}</p>"
