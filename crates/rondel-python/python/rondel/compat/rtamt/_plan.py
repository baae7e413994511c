"""Translation of formulas into specifications of Rondel.

A formula of STL is a signal of numbers, and everything may be computed with it: ``abs(once a) - b``. In Rondel the
robustness of a formula is such a signal, and only values are computed with. So a formula becomes one or more stages. A
stage is a property with robustness; its values are a field of the stages that compute with them. Formulas without such
mixtures have a single stage.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from ._formula import COMPARISONS, FUTURE, OF_SAMPLES, PAST, Node

Semantics = Literal["standard", "output-robustness", "input-robustness", "output-vacuity", "input-vacuity"]
#: The order in which a stage reads its rows. That of the future reads them backwards: what lies ahead lies behind then.
Direction = Literal["past", "future", "ahead"]

TOPIC = "signals"
PROPERTY = "result"
#: The field that is zero in every message: a comparison of constants alone has no distance in Rondel.
ZERO = "zero"
#: The operands of ``precedes`` in discrete time, with their values before the first sample.
PADDING = {"left": math.inf, "right": -math.inf}


@dataclass(eq=False)
class Stage:
    """A property of Rondel, and the fields that it reads."""

    direction: Direction
    model: Literal["steps", "dense"]
    formula: str = ""
    #: Fields with the values of variables: names in messages, by the names of the user.
    variables: dict[str, str] = field(default_factory=dict)
    #: Fields with the values of other stages.
    stages: dict[str, Stage] = field(default_factory=dict)
    has_zero: bool = False
    #: Distance that a stage of direction ``ahead`` looks ahead: its values are those of so long ago.
    shift: int = 0

    @property
    def specification(self) -> str:
        """The specification of the stage."""
        names = [*self.variables.values(), *self.stages, *([ZERO] if self.has_zero else [])]
        fields = ", ".join(f"{name}: float" for name in names)
        schema = f" {{ {fields} }}" if fields else ""
        return (
            f"topic {TOPIC}{schema}\n\n"
            f"@robust @time({self.model})\nproperty {PROPERTY} = {self.formula}\n"
        )

    def names(self) -> set[str]:
        """The variables that it and the stages before it read."""
        return {name for stage in self.all() for name in stage.variables}

    def all(self) -> Iterator[Stage]:
        """The stages that this one needs, each after those that it reads, and then this one."""
        seen: set[int] = set()

        def visit(stage: Stage) -> Iterator[Stage]:
            if id(stage) not in seen:
                seen.add(id(stage))
                for inner in stage.stages.values():
                    yield from visit(inner)
                yield stage

        return visit(self)


class Planner:
    """Divides formulas into stages. Equal formulas share a stage."""

    def __init__(self, model: Literal["steps", "dense"], semantics: Semantics, io_types: dict[str, str]) -> None:
        self._model: Literal["steps", "dense"] = model
        self._semantics = semantics
        self._io_types = io_types
        self._stages: dict[Node, Stage] = {}

    def plan(self, node: Node) -> Stage:
        """The stage with the values of a formula."""
        stage = self._stages.get(node)
        if stage is None:
            if self._model == "dense":
                _check_dense(node)
            stage = self._stages[node] = Stage(self._direction(node), self._model)
            writer = _Writer(self, stage)
            stage.formula = writer.until(node) if stage.direction == "ahead" else writer.top(node)
        return stage

    def _direction(self, node: Node) -> Direction:
        """The direction of the outermost temporal operators."""
        if node.operator in FUTURE:
            return "future"
        if node.operator == "precedes":
            return "ahead"
        if node.operator in PAST:
            return "past"
        if node.operator in _TRUTHS:
            for operand in node.operands:
                if any(_temporal(operand)):
                    inner = self._direction(operand)
                    return "past" if inner == "ahead" else inner
        return "past"

    def is_boolean(self, node: Node) -> bool:
        """Whether a comparison counts as true or false only, without a distance."""
        return self._semantics.endswith("robustness") and self._is_outside(node)

    def is_vacuous(self, node: Node) -> bool:
        """Whether a comparison counts as zero."""
        return self._semantics.endswith("vacuity") and self._is_outside(node)

    def _is_outside(self, node: Node) -> bool:
        """Whether a comparison has no variable of the direction that the semantics measures."""
        wanted = self._semantics.partition("-")[0]
        heads = (name.partition(".")[0] for name in node.fields())
        return not any(self._io_types.get(head, "output") == wanted for head in heads)


def _check_dense(node: Node) -> None:
    if node.operator in OF_SAMPLES:
        raise node.place.error(f"'{node.operator}' is not defined in dense time")
    for operand in node.operands:
        _check_dense(operand)


def _temporal(node: Node) -> Iterator[bool]:
    if node.operator in FUTURE or node.operator in PAST:
        yield True
    for operand in node.operands:
        yield from _temporal(operand)


#: Operators with a robustness of Rondel that is the same.
_TRUTHS = frozenset(["and", "or", "not", "->"])
_ARITHMETIC = frozenset(["+", "-", "*", "/"])


class _Writer:
    """Writes the formula of a stage."""

    def __init__(self, planner: Planner, stage: Stage) -> None:
        self._planner = planner
        self._stage = stage

    def top(self, node: Node) -> str:
        """The formula of the property."""
        text = self._truth(node)
        return text[1:-1] if _is_enclosed(text) else text

    def until(self, node: Node) -> str:
        """The formula of ``precedes``: the same as ``until``, known when its bounds have passed."""
        stage = self._stage
        stage.shift = node.bounds[1] if node.bounds else 0
        if stage.model == "dense":
            left, right = (self._truth(operand) for operand in node.operands)
        else:
            # Fields of its own, for the values before the first sample: see `PADDING`.
            left, right = (f"({TOPIC}.{name} >= 0.0)" for name in PADDING)
            stage.stages.update(zip(PADDING, map(self._planner.plan, node.operands)))
        return f"{left} until{self._bounds(node)} {right}"

    def _truth(self, node: Node) -> str:
        """A formula whose robustness is the value of the node."""
        operator, operands = node.operator, node.operands
        if operator in FUTURE or operator in PAST:
            return self._temporal(node)
        if operator in COMPARISONS and not self._planner.is_vacuous(node):
            left, right = (self._number(operand) for operand in operands)
            if _is_constant(left) and _is_constant(right):
                left = f"({left} + {self._zero()})"
            text = f"({left} {operator} {right})"
            return f"(if {text} then true else false)" if self._planner.is_boolean(node) else text
        if operator == "not" or operator == "negative" and not _is_value(operands[0]):
            return f"(not {self._truth(operands[0])})"
        if operator in _TRUTHS:
            left, right = (self._truth(operand) for operand in operands)
            return f"({left} {operator} {right})"
        text = self._number(node)
        if _is_constant(text):
            text = f"{text} + {self._zero()}"
        return f"({text} >= 0.0)"

    def _temporal(self, node: Node) -> str:
        """A formula with a temporal operator; of another direction, the values of its stage."""
        stage = self._stage
        is_future = node.operator in FUTURE
        if node.operator == "precedes" or is_future != (stage.direction == "future"):
            return f"({self._input(node)} >= 0.0)"
        return self._written(node, [self._truth(operand) for operand in node.operands])

    def _written(self, node: Node, operands: list[str]) -> str:
        operator, bounds = node.operator, self._bounds(node)
        first = operands[0]
        if operator in ("once", "eventually", "delay"):
            return f"(once{bounds} {first})"
        if operator in ("historically", "always"):
            return f"(historically{bounds} {first})"
        if operator in ("since", "until"):
            return f"({first} since{bounds} {operands[1]})"
        if operator in ("prev", "next"):
            return f"(historically[1,1] {first})"
        if operator in ("s_prev", "s_next"):
            return f"(once[1,1] {first})"
        if operator == "rise":
            return f"({first} and not once[1,1] {first})"
        return f"(not {first} and historically[1,1] {first})"

    def _bounds(self, node: Node) -> str:
        if node.bounds is None:
            return ""
        write = str if self._stage.model == "steps" else _duration
        return f"[{write(node.bounds[0])}, {write(node.bounds[1])}]"

    def _number(self, node: Node) -> str:
        """An expression with the value of the node."""
        operator = node.operator
        if operator == "number":
            return _float(node.value)
        if operator == "field":
            return f"{TOPIC}.{self._variable(node.name)}"
        if operator in FUTURE or operator in PAST or self._planner.is_boolean(node) and operator in COMPARISONS:
            return self._input(node)
        if operator in COMPARISONS and self._planner.is_vacuous(node):
            return "0.0"
        operands = [self._number(operand) for operand in node.operands]
        if operator in ("not", "negative"):
            return f"(-{operands[0]})"
        if operator in ("abs", "sqrt", "exp"):
            return f"{operator}({operands[0]})"
        if operator == "ln":
            return f"log({operands[0]})"
        left, right = operands
        if operator in _ARITHMETIC:
            return f"({left} {operator} {right})"
        return _POINTWISE[operator](left, right)

    def _variable(self, name: str) -> str:
        """The field with a variable."""
        known = self._stage.variables
        if name not in known:
            base = re.sub(r"\W", "_", name)
            base = f"{base}_" if base in _RESERVED or re.match(r"s\d|_", base) else base
            taken = set(known.values())
            known[name] = next(text for text in _numbered(base) if text not in taken)
        return known[name]

    def _input(self, node: Node) -> str:
        """The field with the values of another stage."""
        inner = self._planner.plan(node)
        for name, stage in self._stage.stages.items():
            if stage is inner:
                return f"{TOPIC}.{name}"
        name = f"s{len(self._stage.stages) + 1}"
        self._stage.stages[name] = inner
        return f"{TOPIC}.{name}"

    def _zero(self) -> str:
        self._stage.has_zero = True
        return f"{TOPIC}.{ZERO}"


#: Values of operators over the values of their operands.
_POINTWISE: dict[str, Callable[[str, str], str]] = {
    "pow": lambda left, right: f"pow({left}, {right})",
    "log": lambda value, base: f"(log({value}) / log({base}))",
    "and": lambda left, right: f"min({left}, {right})",
    "or": lambda left, right: f"max({left}, {right})",
    "->": lambda left, right: f"max(-{left}, {right})",
    "iff": lambda left, right: f"(-abs({left} - {right}))",
    "xor": lambda left, right: f"abs({left} - {right})",
    "==": lambda left, right: f"(-abs({left} - {right}))",
    "!=": lambda left, right: f"abs({left} - {right})",
    "<": lambda left, right: f"({right} - {left})",
    "<=": lambda left, right: f"({right} - {left})",
    ">": lambda left, right: f"({left} - {right})",
    ">=": lambda left, right: f"({left} - {right})",
}
#: Names that cannot be those of fields here.
_RESERVED = frozenset([ZERO, "true", "false"])


def _is_value(node: Node) -> bool:
    """Whether a node is computed from values at one time point."""
    return not any(_temporal(node)) and node.operator not in COMPARISONS


def _is_constant(text: str) -> bool:
    """Whether an expression reads no field; comparisons that count as zero may leave none."""
    return f"{TOPIC}." not in text


def _numbered(base: str) -> Iterator[str]:
    yield base
    number = 2
    while True:
        yield f"{base}_{number}"
        number += 1


def _float(value: float) -> str:
    text = repr(float(value))
    return f"({text})" if text.startswith("-") else text


def _duration(nanoseconds: int) -> str:
    for unit, length in (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)):
        if nanoseconds % length == 0:
            return f"{nanoseconds // length} {unit}"
    return f"{nanoseconds} ns"


def _is_enclosed(text: str) -> bool:
    """Whether the first parenthesis of a text ends with the last one."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return at == len(text) - 1 and text.startswith("(")
    return False
