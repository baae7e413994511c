"""The parser of specifications."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, NoReturn

from ._formula import COMPARISONS, Bounds, Node, Place
from ._lexer import SPELLINGS, Token, tokens

UNITS = ("s", "ms", "us", "ns")

#: Binding powers of operators between two operands. All group to the left.
_BETWEEN = {
    "xor": 1,
    "iff": 2,
    "->": 3,
    "or": 4,
    "and": 5,
    "since": 6,
    "unless": 7,
    "until": 8,
    **dict.fromkeys(COMPARISONS, 10),
    "+": 11,
    "-": 11,
    "*": 12,
    "/": 12,
}
#: Binding power of operators before an operand, such as ``not`` and ``always``.
_BEFORE = 9
_MINUS = 13
_FUNCTIONS = {"abs": 1, "exp": 1, "ln": 1, "log": 2, "pow": 2, "sqrt": 1}
_TIMED = frozenset(["always", "eventually", "once", "historically", "until", "since", "unless"])
_PREFIXES = frozenset(["not", "always", "eventually", "once", "historically", "prev", "s_prev", "next", "s_next"])
_TYPES = frozenset(["float", "int", "long", "complex", "real", "bool"])
#: Words that begin a declaration, or part of one.
_DECLARING = _TYPES | {"const", "input", "output", "specification", "from"}


#: Operators inside each other, so that neither Python nor Rondel reaches a limit.
_LEVELS = 80


class Bound(NamedTuple):
    """A bound as written: a number, and its unit if it has one."""

    value: Fraction
    unit: str | None
    place: Place


class Declaration(NamedTuple):
    """A declaration in the text of a specification: its kind, its words, its place."""

    kind: str
    words: tuple[str, ...]
    place: Place


@dataclass
class Names:
    """Names that formulas refer to."""

    #: Whether a variable, or a field of one, can be read.
    is_variable: Callable[[str, Place], bool]
    variables: Callable[[], list[str]]
    #: Imported types, which begin declarations.
    types: dict[str, object]
    constants: dict[str, float]
    #: The formulas of assertions by name.
    formulas: dict[str, Node]
    #: Converts two bounds.
    bounds: Callable[[Bound, Bound], Bounds]
    #: Carries out a declaration in the text.
    declare: Callable[[Declaration], None]


class Assertion(NamedTuple):
    """A named formula."""

    name: str | None
    formula: Node


class Parser:
    """Reads one text of a specification."""

    def __init__(self, text: str, names: Names) -> None:
        self._tokens = tokens(text)
        self._at = 0
        self._names = names
        self._level = 0

    def assertions(self) -> list[Assertion]:
        """Reads declarations and assertions up to the end of the text."""
        found: list[Assertion] = []
        while self._is_declaration():
            self._names.declare(self._declaration())
        while not found or self._next.kind != "end":
            name = None
            if self._next.kind == "name" and self._tokens[self._at + 1].kind == "=":
                name = self._take().text
                self._take()
            formula = self._expression(0)
            if _levels(formula) > _LEVELS:
                self._too_deep(formula.place)
            found.append(Assertion(name, formula))
            if name is not None:
                self._names.formulas[name] = formula
            if self._next.kind == ";":
                self._take()
            elif not self._begins_assertion() and self._next.kind != "end":
                self._unexpected("the end of the formula, or an operator")
        return found

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += token.kind != "end"
        return token

    def _expect(self, kind: str) -> Token:
        if self._next.kind != kind:
            self._unexpected("a name" if kind == "name" else f"'{kind}'")
        return self._take()

    def _unexpected(self, expected: str) -> NoReturn:
        token = self._next
        found = "the end of the specification" if token.kind == "end" else f"'{token.text}'"
        raise token.place.error(f"syntax error: expected {expected}, found {found}")

    def _begins_assertion(self) -> bool:
        """Whether another assertion follows: with a name, or on a line of its own."""
        last, token = self._tokens[self._at - 1].place, self._next
        is_named = token.kind == "name" and self._tokens[self._at + 1].kind == "="
        return is_named or "\n" in token.place.text[last.end : token.place.begin]

    def _is_declaration(self) -> bool:
        token = self._next
        is_word = token.kind == "name" and self._tokens[self._at + 1].kind == "name"
        return token.kind == "@" or is_word and (token.text in _DECLARING or token.text in self._names.types)

    def _declaration(self) -> Declaration:
        """Reads a declaration. An annotation has the words of its parentheses."""
        first = self._take()
        if first.kind == "@":
            self._expect("name")
            self._expect("(")
            variable = self._expect("name").text
            self._expect(",")
            words = [variable, self._expect("name").text]
            self._expect(")")
            return Declaration("topic", tuple(words), first.place)
        if first.text == "specification":
            return Declaration("specification", (self._expect("name").text,), first.place)
        if first.text == "from":
            module = self._expect("name").text
            if self._expect("name").text != "import":
                self._at -= 1
                self._unexpected("'import'")
            return Declaration("import", (module, self._expect("name").text), first.place)
        if first.text == "const":
            kind, name = self._expect("name").text, self._expect("name").text
            self._expect("=")
            return Declaration("const", (kind, name, self._literal()), first.place)
        direction = first.text if first.text in ("input", "output") else "output"
        kind = self._expect("name").text if first.text in ("input", "output") else first.text
        name = self._expect("name").text
        if self._next.kind == "=":
            # An initial value: messages set it before it is read.
            self._take()
            self._literal()
        return Declaration("variable", (direction, kind, name), first.place)

    def _literal(self) -> str:
        sign = "-" if self._next.kind == "-" else ""
        if sign:
            self._take()
        return sign + self._expect("number").text.replace("_", "")

    def _expression(self, power: int) -> Node:
        self._level += 1
        if self._level > _LEVELS:
            self._too_deep(self._next.place)
        node = self._levelled(power)
        self._level -= 1
        return node

    def _too_deep(self, place: Place) -> NoReturn:
        raise place.error(f"the formula has more than {_LEVELS} operators inside each other")

    def _levelled(self, power: int) -> Node:
        left = self._operand()
        while True:
            operator = self._next
            binding = _BETWEEN.get(operator.kind, -1)
            if binding <= power:
                return left
            self._take()
            bounds = self._bounds(operator.kind)
            right = self._expression(binding)
            left = self._between(operator, bounds, left, right)

    def _between(self, operator: Token, bounds: Bounds | None, left: Node, right: Node) -> Node:
        place = Place(operator.place.text, left.place.begin, right.place.end)
        if operator.kind != "unless":
            return Node(operator.kind, (left, right), bounds, place=place)
        always = Node("always", (left,), bounds and (0, bounds[1]), place=place)
        return Node("or", (always, Node("until", (left, right), bounds, place=place)), place=place)

    def _operand(self) -> Node:
        token = self._next
        if token.kind in _PREFIXES:
            self._take()
            bounds = self._bounds(token.kind)
            operand = self._expression(_BEFORE)
            return Node(token.kind, (operand,), bounds, place=_span(token.place, operand.place))
        if token.kind == "-":
            self._take()
            operand = self._expression(_MINUS)
            return Node("negative", (operand,), place=_span(token.place, operand.place))
        if token.kind == "(":
            self._take()
            inner = self._expression(0)
            return _at(inner, _span(token.place, self._expect(")").place))
        if token.kind == "number":
            self._take()
            return Node("number", value=_number(token), place=token.place)
        if token.kind in ("rise", "fall"):
            return self._call(self._take(), 1)
        if token.kind == "name":
            self._take()
            if self._next.kind == "(" and token.text in _FUNCTIONS:
                return self._call(token, _FUNCTIONS[token.text])
            return self._reference(token)
        self._unexpected("an expression")

    def _call(self, function: Token, count: int) -> Node:
        self._expect("(")
        operands = [self._expression(0)]
        while len(operands) < count:
            self._expect(",")
            operands.append(self._expression(0))
        end = self._expect(")")
        return Node(function.text, tuple(operands), place=_span(function.place, end.place))

    def _reference(self, token: Token) -> Node:
        name = token.text
        names = self._names
        if name in names.constants:
            return Node("number", value=names.constants[name], place=token.place)
        if name in names.formulas:
            return _at(names.formulas[name], token.place)
        if names.is_variable(name, token.place):
            return Node("field", name=name, place=token.place)
        known = [*names.variables(), *names.constants, *names.formulas, *SPELLINGS, *_FUNCTIONS]
        close = difflib.get_close_matches(name, known, 1)
        if "/" in name:
            advice = ": '/' may be part of a name, put spaces around it to divide"
        elif close:
            advice = f"; did you mean '{close[0]}'?"
        elif self._next.kind == "(":
            advice = f"; the functions are {', '.join(_FUNCTIONS)}"
        else:
            advice = f": declare it with declare_var('{name}', 'float')"
        raise token.place.error(f"'{name}' is not declared{advice}")

    def _bounds(self, operator: str) -> Bounds | None:
        if operator not in _TIMED or self._next.kind != "[":
            return None
        self._take()
        begin = self._bound()
        if self._next.kind not in (":", ","):
            self._unexpected("':' or ','")
        self._take()
        end = self._bound()
        self._expect("]")
        bounds = self._names.bounds(begin, end)
        if bounds[0] > bounds[1]:
            raise _span(begin.place, end.place).error("the bounds are in the wrong order")
        return bounds

    def _bound(self) -> Bound:
        token = self._take()
        if token.kind == "number":
            value = Fraction(token.text.replace("_", ""))
        elif token.kind == "name" and token.text in self._names.constants:
            value = Fraction(str(self._names.constants[token.text]))
        elif token.kind == "name":
            raise token.place.error(f"the bound '{token.text}' is not a constant: declare it with declare_const")
        else:
            self._at -= token.kind != "end"
            self._unexpected("a bound: a number or a constant")
        place = token.place
        if value < 0:
            raise place.error("a bound is not negative")
        unit = None
        if self._next.kind == "name":
            if self._next.text not in UNITS:
                self._unexpected(f"a unit ({', '.join(UNITS)})")
            unit, place = self._next.text, _span(place, self._next.place)
            self._take()
        return Bound(value, unit, place)


def _levels(formula: Node) -> int:
    """The number of operators inside each other, counted without recursion."""
    deepest, level = 0, [formula]
    while level:
        deepest += 1
        level = [operand for node in level for operand in node.operands]
    return deepest


def _span(first: Place, last: Place) -> Place:
    return Place(first.text, first.begin, last.end)


def _at(node: Node, place: Place) -> Node:
    """The same formula at another place: in parentheses, or where its name is used."""
    return Node(node.operator, node.operands, node.bounds, node.name, node.value, place)


def _number(token: Token) -> float:
    try:
        return float(token.text.replace("_", ""))
    except ValueError:
        raise token.place.error(f"'{token.text}' is not a number") from None
