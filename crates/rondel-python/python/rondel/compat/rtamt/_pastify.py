"""Formulas of the future as formulas of the past, which hold later by their horizon."""

from __future__ import annotations

from ._formula import FUTURE, Node


def horizon(node: Node) -> int:
    """The distance that a formula looks ahead, in steps or nanoseconds.

    Raises :class:`RTAMTException` for future operators without bounds.
    """
    inner = max((horizon(operand) for operand in node.operands), default=0)
    if node.operator in ("next", "s_next"):
        return inner + 1
    if node.operator not in ("always", "eventually", "until"):
        return inner
    if node.bounds is None:
        raise node.place.error(f"cannot pastify an unbounded {node.operator}: give it bounds")
    return inner + node.bounds[1]


def pastify(node: Node) -> Node:
    """The formula of the past that has the values of this one after its horizon."""
    return _shifted(node, horizon(node))


def _shifted(node: Node, distance: int) -> Node:
    """The formula of the past with the values of this one `distance` ago; at least its horizon."""
    operator = node.operator
    if operator in ("always", "eventually") and node.bounds is not None:
        begin, end = node.bounds
        inner = _shifted(node.operands[0], distance - end)
        name = "once" if operator == "eventually" else "historically"
        return inner if begin == end else Node(name, (inner,), (0, end - begin), place=node.place)
    if operator == "until" and node.bounds is not None:
        left, right = (_shifted(operand, distance - node.bounds[1]) for operand in node.operands)
        return Node("precedes", (left, right), node.bounds, place=node.place)
    if operator in ("next", "s_next"):
        return _shifted(node.operands[0], distance - 1)
    own = horizon(node)
    inner = node.with_operands(*(_shifted(operand, own) for operand in node.operands)) if _is_ahead(node) else node
    return _delay(inner, distance - own)


def _is_ahead(node: Node) -> bool:
    return node.operator in FUTURE or any(map(_is_ahead, node.operands))


def _delay(node: Node, distance: int) -> Node:
    if distance == 0 or not node.fields():
        return node
    return Node("delay", (node,), (distance, distance), place=node.place)
