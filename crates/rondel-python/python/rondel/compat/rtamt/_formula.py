"""Formulas of STL as trees."""

from __future__ import annotations

from dataclasses import dataclass, field

from rondel.compat import _place


class RTAMTException(Exception):
    """A specification with a mistake, or a call that does not fit it."""

    message: str

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return f"RTAMT Exception: {self.message}"


class Place(_place.Place):
    """A range of characters of a specification."""

    def error(self, message: str) -> RTAMTException:
        """An error that shows the place. Columns are counted from 0, as RTAMT does."""
        return RTAMTException(self.describe(message, first_column=0))


NOWHERE = Place("", 0, 0)

#: Bounds in steps, or in nanoseconds in dense time.
Bounds = tuple[int, int]


@dataclass(frozen=True)
class Node:
    """A formula or an expression: in STL with robustness both are signals of numbers.

    The operator of a leaf is ``number``, with ``value``, or ``field``, with ``name``. All others have the name that they
    have in specifications; ``delay`` and ``precedes`` result from :func:`._pastify.pastify`.
    """

    operator: str
    operands: tuple[Node, ...] = ()
    bounds: Bounds | None = None
    name: str = ""
    value: float = 0.0
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    def with_operands(self, *operands: Node) -> Node:
        """The same operator on other operands."""
        return Node(self.operator, operands, self.bounds, self.name, self.value, self.place)

    def fields(self) -> set[str]:
        """The names of the variables in it."""
        if self.operator == "field":
            return {self.name}
        return set().union(*(operand.fields() for operand in self.operands))


COMPARISONS = frozenset(["<", "<=", ">", ">=", "==", "!="])
FUTURE = frozenset(["always", "eventually", "until", "next", "s_next"])
PAST = frozenset(["historically", "once", "since", "prev", "s_prev", "rise", "fall", "delay", "precedes"])
#: Operators over neighbouring samples, which dense time does not have.
OF_SAMPLES = frozenset(["prev", "s_prev", "next", "s_next", "rise", "fall"])
