"""Results in notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ._native import RondelError

if TYPE_CHECKING:
    from ._results import PropertyResult, Results

# A drawing repeats the check: one that took longer, in seconds, is not drawn unless that is requested.
_MOST_SECONDS = 5


def html(results: Results) -> str:
    """The properties as a table, with the drawing below it."""
    heads = ("property", "verdict", "violations", "first violation")
    head = "".join(f"<th style='text-align:left'>{text}</th>" for text in heads)
    rows = "".join(_row(entry) for entry in results.properties)
    notes = "".join(f"<p>{escape(line)}</p>" for line in results.warnings)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{notes}{_drawing(results)}"


def _row(entry: PropertyResult) -> str:
    verdict = entry.verdict + "".join(f"<br>vacuous: {escape(reason)}" for reason in entry.vacuous)
    first = "" if entry.first_violation is None else f"{entry.first_violation} s"
    cells = (escape(entry.name), verdict, str(entry.violations), first)
    return "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in cells) + "</tr>"


def _drawing(results: Results) -> str:
    if results.summary["seconds"] > _MOST_SECONDS:
        return "<p>The check was long: <code>plot()</code> repeats it for the drawing.</p>"
    try:
        return results.plot().svg
    except (RondelError, OSError) as error:
        return f"<p>No drawing: {escape(str(error))}</p>"
