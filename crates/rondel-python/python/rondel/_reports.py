"""Verdicts of the command."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._types import Verdict


# Below this number of seconds, a float is closer to the right nanosecond than to any other one.
_EXACT = 1e6


class CommandReport:
    """A verdict of the command on a property: the attributes of :class:`rondel.Report`, and further ones."""

    __slots__ = ("_members", "_text")
    _members: dict[str, Any]
    _text: str

    def __init__(self, text: str) -> None:
        """Read a line of the command, as networks get it."""
        members = json.loads(text)
        if not isinstance(members, dict) or "verdict" not in members:
            raise ValueError(f"no verdict: {text}")
        self._members = members
        self._text = text

    def _exact(self, name: str) -> int | None:
        """A time in nanoseconds."""
        seconds: int | float | None = self._members.get(name)
        if seconds is None:
            return None
        if isinstance(seconds, int):
            return seconds * 1_000_000_000
        if abs(seconds) < _EXACT:
            return round(seconds * 1e9)
        return int(Decimal(json.loads(self._text, parse_float=Decimal)[name]).scaleb(9))

    @property
    def recording(self) -> str | None:
        """The recording, where several are checked; otherwise ``None``."""
        return self._members.get("trace")

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the instance by name; empty without any."""
        return dict(self._members.get("key", {}))

    @property
    def verdict(self) -> Verdict:
        """``"satisfied"``, ``"violated"`` or ``"inconclusive"``."""
        verdict: Verdict = self._members["verdict"]
        return verdict

    @property
    def time(self) -> float:
        """The time in seconds at which the verdict became certain."""
        return float(self._members["time"])

    @property
    def time_ns(self) -> int:
        """The same in nanoseconds."""
        return self._exact("time") or 0

    @property
    def about(self) -> float | None:
        """The time in seconds that the verdict is about, where that differs; otherwise ``None``."""
        about = self._members.get("about")
        return None if about is None else float(about)

    @property
    def about_ns(self) -> int | None:
        """The same in nanoseconds."""
        return self._exact("about")

    @property
    def step(self) -> int | None:
        """The number of the message at which it became certain, from 0; ``None`` if time alone decided it."""
        return self._members.get("step")

    @property
    def robustness(self) -> float | None:
        """The robustness, where it is known."""
        if "robustness" not in self._members:
            return None
        value = self._members["robustness"]
        if value is not None:
            return float(value)
        # JSON has no infinite numbers.
        return {"satisfied": math.inf, "violated": -math.inf}.get(self.verdict, math.nan)

    @property
    def severity(self) -> str | None:
        """The value of the attribute ``@severity``."""
        return self._members.get("severity")

    @property
    def requirement(self) -> str | None:
        """The value of the attribute ``@requirement``."""
        return self._members.get("requirement")

    @property
    def values(self) -> dict[str, Any]:
        """Values of quantified variables for which the property is violated; empty without any."""
        return dict(self._members.get("values", {}))

    @property
    def because_of(self) -> str | None:
        """The property that mutes this one."""
        return self._members.get("because_of")

    @property
    def explanation(self) -> list[dict[str, Any]] | None:
        """The explanation of a violation: the time points with the values that caused it; ``None`` without one."""
        return self._members.get("evidence")

    def json(self) -> str:
        """The verdict as networks publish it, with all members."""
        return self._text

    # The last one: it hides the decorator.
    @property
    def property(self) -> str:
        """The name of the property."""
        name: str = self._members["property"]
        return name

    def __repr__(self) -> str:
        return f"<CommandReport {self._text}>"

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, CommandReport) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[type[CommandReport], tuple[str]]:
        return CommandReport, (self._text,)


class Reports(list[CommandReport]):
    """A list of verdicts, which notebooks show as a table."""

    def _repr_html_(self) -> str:
        from . import _page

        return _page.verdicts(self)
