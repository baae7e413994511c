"""The judgement of verdicts: whether a test passes, and the text of its failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from .text import Violation, seconds, violations

UNSEEN = "nothing was seen: no message was evaluated"
"""The problem of a monitor or a run without messages, also where verdicts may be inconclusive."""


@dataclass(frozen=True)
class Judgement:
    """The result of a specification in a test."""

    failure: str
    """The text of the failure; empty if the test passes."""
    overview: str
    """A line for each property."""
    properties: tuple[tuple[str, str], ...]
    """Names and values for reports, such as JUnit."""


class Judged(Protocol):
    """A source of verdicts that judges a test."""

    def judgement(self) -> Judgement:
        """Return the judgement of all verdicts, which are complete from then on."""


@dataclass(frozen=True)
class Expectations:
    """The verdicts with which a test passes."""

    verdicts: Mapping[str, str] = field(default_factory=dict)
    """Expected verdicts of single properties; of all others, satisfied."""
    allow_inconclusive: bool = False
    """Whether the others may be inconclusive."""


@dataclass(frozen=True)
class Outcome:
    """The verdicts of all properties at the end."""

    subject: str
    verdicts: Mapping[str, str]
    """The verdict of each property: violated if it was once."""
    is_violated: bool
    """Whether the whole is violated. A property that an assert judges does not count, here and below."""
    is_inconclusive: bool
    inconclusive: Mapping[str, Sequence[str]]
    """The properties that are inconclusive or vacuous, with the reasons."""
    unevaluated: Sequence[str] = ()
    """Sentences about messages that were not evaluated."""
    violations: Sequence[Violation] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    """Number of violations of each property."""
    requirements: Mapping[str, Sequence[str]] = field(default_factory=dict)
    judged_by_asserts: frozenset[str] = frozenset()
    """Properties whose violations count only for an assert."""
    problems: Sequence[str] = ()
    """Sentences about anything else that fails the test."""
    checked: int | None = None
    """Number of messages that were evaluated, where that is no problem of its own."""


def of_summary(subject: str, summary: Mapping[str, Any], is_strict: bool = False) -> Outcome:
    """Return the outcome of the command, from the object of `--summary json`, without violations."""
    entries = summary["properties"]
    judged_by_asserts = frozenset(entry["property"] for entry in entries if entry.get("asserted"))
    verdicts = {entry["property"]: _verdict(entry) for entry in entries}
    inconclusive = {}
    for entry in entries:
        name = entry["property"]
        vacuous = [each["text"] for each in entry.get("vacuous", ()) if is_strict or each.get("kind") != "premise"]
        if name not in judged_by_asserts and (vacuous or verdicts[name] == "inconclusive"):
            inconclusive[name] = vacuous
    return Outcome(
        subject=subject,
        verdicts=verdicts,
        is_violated=any(verdicts[name] == "violated" for name in verdicts if name not in judged_by_asserts),
        is_inconclusive=bool(inconclusive),
        inconclusive=inconclusive,
        unevaluated=[_unevaluated(entry) for entry in summary.get("not_evaluated", ())],
        counts={entry["property"]: entry["violations"] for entry in entries},
        judged_by_asserts=judged_by_asserts,
    )


def _verdict(entry: Mapping[str, Any]) -> str:
    return "violated" if entry["violations"] else entry["verdict"] or "inconclusive"


def _unevaluated(entry: Mapping[str, Any]) -> str:
    topic = f" on `{entry['topic']}`" if entry.get("topic") else ""
    first = entry.get("first") or {}
    details = [seconds(first["time"])] if first.get("time") is not None else []
    details += [first["detail"]] if first.get("detail") else []
    text = f": first {', '.join(details)}" if details else ""
    reason = str(entry["reason"]).replace("_", " ")
    return f"{entry['count']} not evaluated{topic}, {reason}{text}"


def judge(outcome: Outcome, expectations: Expectations) -> Judgement:
    """Judge the verdicts of all properties."""
    violated, inconclusive = _violated(outcome, expectations), _undecided(outcome, expectations)
    unmet = [name for name, verdict in expectations.verdicts.items() if outcome.verdicts.get(name) != verdict]
    if inconclusive is None and _is_unseen(outcome, expectations):
        outcome = replace(outcome, problems=(*outcome.problems, UNSEEN))
    failures = [
        "\n".join(outcome.problems),
        _violations(outcome, violated),
        "\n".join(_unmet(outcome, name, expectations.verdicts[name]) for name in unmet),
        "" if inconclusive is None else _inconclusive(outcome, inconclusive),
        "" if outcome.verdicts else "there is no property: nothing was checked",
    ]
    failure = "\n\n".join(filter(None, failures))
    # The first line is all that some reports show.
    headline = [
        *(problem.splitlines()[0] for problem in outcome.problems),
        *(f"{name} is violated" for name in violated),
        *(f"{name} is not {expectations.verdicts[name]}" for name in unmet if name not in violated),
        *(f"{name} is {_inconclusive_word(outcome, name)}" for name in inconclusive or ()),
    ]
    return Judgement(
        failure=f"{outcome.subject}{': ' if headline else ''}{', '.join(headline)}\n\n{failure}" if failure else "",
        overview="\n".join([outcome.subject, *(_line(outcome, name) for name in outcome.verdicts)]),
        properties=_properties(outcome),
    )


def _is_unseen(outcome: Outcome, expectations: Expectations) -> bool:
    """Whether no message was evaluated, and not every property has an expected verdict."""
    return outcome.checked == 0 and any(name not in expectations.verdicts for name in outcome.verdicts)


def _violated(outcome: Outcome, expectations: Expectations) -> list[str]:
    """The properties whose violations fail the test."""
    if not outcome.is_violated:
        return []
    counting = (name for name in outcome.verdicts if name not in outcome.judged_by_asserts)
    return [
        name
        for name in counting
        if outcome.verdicts[name] == "violated" and expectations.verdicts.get(name) != "violated"
    ]


def _violations(outcome: Outcome, names: Sequence[str]) -> str:
    found = [each for each in outcome.violations if each.property in names]
    shown = {each.property for each in found}
    rest = [f"{name}: violated" for name in names if name not in shown]
    return "\n".join(filter(None, [violations(found, outcome.counts), *rest]))


def _unmet(outcome: Outcome, name: str, expected: str) -> str:
    """The sentence about an expectation that is not met."""
    if name in outcome.verdicts:
        return f"{name}: expected {expected}, but it is {outcome.verdicts[name]}"
    return f"{name}: expected {expected}, but there is no such property; there is {', '.join(outcome.verdicts)}"


def _undecided(outcome: Outcome, expectations: Expectations) -> list[str] | None:
    """The inconclusive properties that fail the test; `None` if it may pass."""
    if expectations.allow_inconclusive or not outcome.is_inconclusive:
        return None
    names = [name for name in outcome.inconclusive if expectations.verdicts.get(name) != "inconclusive"]
    return names if names or not outcome.inconclusive else None


def _inconclusive(outcome: Outcome, names: Sequence[str]) -> str:
    """The inconclusive properties, and the reasons."""
    lines = [
        "; ".join([f"{name}: {_inconclusive_word(outcome, name)}", *outcome.inconclusive[name]]) for name in names
    ]
    if not lines and not outcome.unevaluated:
        lines.append("inconclusive: a verdict is open at the end, or a topic, field or time that is needed never came")
    return "\n".join([*lines, *outcome.unevaluated])


def _inconclusive_word(outcome: Outcome, name: str) -> str:
    verdict = outcome.verdicts[name]
    return verdict if verdict == "inconclusive" else f"vacuously {verdict}"


def _line(outcome: Outcome, name: str) -> str:
    of = ", ".join(outcome.requirements.get(name, ()))
    return f"  {outcome.verdicts[name]:<12}  {name}" + (f" ({of})" if of else "")


def _properties(outcome: Outcome) -> tuple[tuple[str, str], ...]:
    requirements = dict.fromkeys(each for name in outcome.verdicts for each in outcome.requirements.get(name, ()))
    return (
        *((f"rondel.{name}", verdict) for name, verdict in outcome.verdicts.items()),
        *(("requirement", requirement) for requirement in requirements),
    )
