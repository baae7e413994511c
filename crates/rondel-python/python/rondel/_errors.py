"""Errors of the command as exceptions."""

from __future__ import annotations

import json
import re
import signal
from typing import TYPE_CHECKING, Any

from ._native import RondelError, SpecificationError

if TYPE_CHECKING:
    from ._results import Results


class RecordingError(RondelError):
    """A recording cannot be read, or not to its end.

    ``results`` has the verdicts before that place and those of the other recordings; ``None`` if nothing was checked.
    """

    def __init__(self, text: str, results: Results | None = None) -> None:
        # All arguments, so that other processes get them, too.
        super().__init__(text, results)
        self.results = results

    def __str__(self) -> str:
        return str(self.args[0])


class ViolationError(RondelError):
    """A property is violated. ``results`` has the violations."""

    def __init__(self, text: str, results: Results) -> None:
        super().__init__(text, results)
        self.results = results

    def __str__(self) -> str:
        return str(self.args[0])


class InconclusiveError(RondelError):
    """No property is violated, but one is not decided. ``results`` has the reasons."""

    def __init__(self, text: str, results: Results) -> None:
        super().__init__(text, results)
        self.results = results

    def __str__(self) -> str:
        return str(self.args[0])


class RunError(RondelError):
    """A run has failed, or is not complete.

    ``exit_status`` is that of the command, negative with the number of a signal that ended it; ``summary`` is that of a
    run that has lost messages or verdicts, and ``None`` of one that ended early.
    """

    def __init__(self, text: str, exit_status: int, summary: dict[str, Any] | None) -> None:
        super().__init__(text, exit_status, summary)
        self.exit_status = exit_status
        self.summary = summary

    def __str__(self) -> str:
        return str(self.args[0])


# The exit statuses of the command.
SATISFIED, VIOLATED, MISUSE, UNREAD, INCONCLUSIVE, NETWORK = range(6)

# Where a file could not be written, which has the status of a recording that cannot be read.
_UNWRITTEN = re.compile(r"^error: cannot (?:write|store) ", re.MULTILINE)
# A specification that is right, but checks nothing.
_EMPTY = "has no property, so there is nothing to check"
# Advice for a command line.
_HINT = "For more information, try '--help'."
_HEADING = re.compile(r"^error\[(E\d+)\]: (.*)$", re.MULTILINE)
_PLACE = re.compile(r"^ *--> (.*):(\d+):(\d+)$", re.MULTILINE)
_MARK = re.compile(r"^ +\| +(\^+)", re.MULTILINE)
_HELP = re.compile(r"^ +=\ help: (.*(?:\n {8,}.*)*)", re.MULTILINE)


def split_summary(errors: str) -> tuple[str, dict[str, Any] | None]:
    """Split standard error into messages and the object of ``--summary json``."""
    lines = errors.split("\n")
    for number in range(len(lines) - 1, -1, -1):
        if lines[number].startswith("{"):
            try:
                summary = json.loads(lines[number])
            except ValueError:
                continue
            return "\n".join(lines[:number] + lines[number + 1 :]), summary
    return "\n".join(lines), None


def failure(status: int, messages: str, text: str | None) -> RondelError:
    """The exception for a status that is no result; ``text`` is that of the specification, if it is in no file."""
    messages = messages.replace("--> -:", "--> specification:").replace("error: - has", "error: the specification has")
    messages = messages.removesuffix("\n").removesuffix(_HINT).strip()
    if status < 0:
        return RondelError(killed(status, messages))
    if status == MISUSE and (found := diagnostics(messages, text)):
        error = SpecificationError(messages)
        error.diagnostics = found
        return error
    if status == MISUSE and messages.endswith(_EMPTY):
        return SpecificationError(messages)
    if status == UNREAD and not _UNWRITTEN.search(messages):
        return RecordingError(messages)
    return RondelError(messages or f"the command ended with status {status}")


def killed(status: int, messages: str) -> str:
    """The sentence about a command that a signal has ended."""
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"the command was ended by {name}" + (f"\n{messages}" if messages else "")


def diagnostics(messages: str, text: str | None) -> list[tuple[str, str, int, int, str | None]]:
    """The mistakes of a specification, as ``SpecificationError.diagnostics`` has them, from their text."""
    headings = list(_HEADING.finditer(messages))
    found = []
    for heading, following in zip(headings, [*headings[1:], None]):
        part = messages[heading.end() : following.start() if following else len(messages)]
        place, mark, advice = _PLACE.search(part), _MARK.search(part), _HELP.search(part)
        begin = end = 0
        if place:
            begin = _offset(place[1], int(place[2]), int(place[3]), text)
            end = begin + (len(mark[1]) if mark else 1)
        lines = advice[1].splitlines() if advice else []
        found.append((heading[1], heading[2], begin, end, "\n".join(line.strip() for line in lines) or None))
    return found


def _offset(name: str, line: int, column: int, text: str | None) -> int:
    """The position of a place in a text or file, in characters; 0 if that cannot be read."""
    if text is None:
        try:
            with open(name, encoding="utf-8", newline="") as file:
                text = file.read()
        except (OSError, ValueError):
            return 0
    lines = text.split("\n")
    return sum(len(before) + 1 for before in lines[: line - 1]) + column - 1
