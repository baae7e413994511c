"""Checks of recordings by the command."""

from __future__ import annotations

import os

from ._arguments import Arguments, Paths, StrPath, Texts, Time, duration, path
from ._arguments import text as text_argument
from ._command import Call
from ._errors import INCONCLUSIVE, SATISFIED, UNREAD, VIOLATED, RecordingError, failure, split_summary
from ._native import RondelError
from ._reports import CommandReport
from ._results import Results
from ._types import Emit, OnError, OnReset, Stamp, Syntax, TimeModel, TimeUnit, Workers


def check(
    *paths: StrPath,
    text: str | None = None,
    formula: str | None = None,
    emit: Emit = "change",
    explain: bool = False,
    syntax: Syntax | None = None,
    time: TimeModel | None = None,
    unbounded: bool = False,
    schemas: Paths | None = None,
    time_field: str | None = None,
    time_unit: TimeUnit | None = None,
    stamp: Stamp | None = None,
    start: Time | None = None,
    to: Time | None = None,
    topics: Texts | None = None,
    topic: str | None = None,
    columns: Texts | None = None,
    time_format: str | None = None,
    merge: bool = False,
    jobs: int | None = None,
    workers: Workers | None = None,
    on_error: OnError | None = None,
    reset: OnReset | None = None,
    strict: bool = False,
    resume: StrPath | None = None,
    snapshot_to: StrPath | None = None,
    store: StrPath | None = None,
    timeout: float | None = None,
) -> Results:
    """Check recordings against a specification, as ``rondel check`` does.

    The first path is the specification, or a deployment (``.yaml``); the others are recordings, each checked from its
    own beginning. With ``text``, a specification, or ``formula`` all paths are recordings. ``start`` is the option
    ``--from``; every other keyword is the option of its name. ``timeout`` is a limit in seconds.

    Raises:
        SpecificationError: the specification has mistakes.
        RecordingError: a recording cannot be read, or not to its end; ``results`` has the others.
        RondelError: any other reason why there is no result.
        TimeoutError: the check takes more than ``timeout`` seconds.
    """
    options = Arguments()
    options.text("--formula", "formula", formula)
    options.one_of("--syntax", "syntax", syntax, ("rondel", "rye"))
    options.one_of("--time", "time", time, ("steps", "points", "dense", "linear"))
    options.flag("--unbounded", "unbounded", unbounded)
    options.paths("--schemas", "schemas", schemas)
    options.text("--time-field", "time_field", time_field)
    options.one_of("--time-unit", "time_unit", time_unit, ("s", "ms", "us", "ns"))
    options.one_of("--stamp", "stamp", stamp, ("log", "publish"))
    options.time("--from", "start", start)
    options.time("--to", "to", to)
    options.joined("--topics", "topics", topics)
    options.text("--topic", "topic", topic)
    options.joined("--columns", "columns", columns)
    options.text("--time-format", "time_format", time_format)
    options.flag("--merge", "merge", merge)
    options.integer("--jobs", "jobs", jobs)
    options.workers(workers)
    options.one_of("--on-error", "on_error", on_error, ("stop", "skip"))
    options.one_of("--reset", "reset", reset, ("restart", "inconclusive", "ignore"))
    options.flag("--strict", "strict", strict)
    options.path("--resume", "resume", resume)
    kept = Arguments()
    kept.path("--snapshot-to", "snapshot_to", snapshot_to)
    kept.path("--store", "store", store)
    # Validated here; what is repeated for another form sets it otherwise.
    Arguments().one_of("--emit", "emit", emit, ("change", "every", "violations"))
    Arguments().flag("--explain", "explain", explain)
    call = Call(
        paths=_paths(paths, text, formula),
        text=text,
        formula=formula,
        selection=options.all,
        emit=None if emit == "change" else emit,
        explain=explain,
        kept=kept.all,
        snapshot=None if snapshot_to is None else path("snapshot_to", snapshot_to),
        resume=None if resume is None else path("resume", resume),
        timeout=duration("timeout", timeout),
    )
    return _result(call)


def _paths(paths: tuple[StrPath, ...], text: str | None, formula: str | None) -> list[str]:
    """The paths as arguments."""
    if text is not None and formula is not None:
        raise TypeError("text and formula exclude each other")
    if text is not None:
        text_argument("text", text)
    has_file = text is None and formula is None
    if not paths and has_file:
        raise TypeError("the specification is missing: check(SPECIFICATION, RECORDING, ...)")
    if len(paths) <= has_file:
        raise TypeError("no recording to check: name one or more after the specification")
    if has_file and isinstance(paths[0], str) and set("{\n") & set(paths[0]) and not os.path.exists(paths[0]):
        raise ValueError("the specification is the path of a file; write text=... for its text")
    names = ["the specification"] if has_file else []
    return [path(names[i] if i < len(names) else "a recording", value) for i, value in enumerate(paths)]


def _result(call: Call) -> Results:
    """Run the command, and read its output."""
    ended = call.check()
    messages, summary = split_summary(ended.errors)
    if ended.status not in (SATISFIED, VIOLATED, INCONCLUSIVE, UNREAD) or summary is None:
        raise failure(ended.status, messages, call.source)
    try:
        verdicts = [CommandReport(line) for line in ended.output.split("\n") if line]
    except ValueError as error:
        raise RondelError(f"the command printed no verdict: {error}") from error
    results = Results(ended.status, verdicts, summary, messages, call)
    if ended.status != UNREAD:
        return results
    if summary.get("unread"):
        raise RecordingError(messages.strip(), results)
    raise failure(ended.status, messages, call.source)
