"""Tokens of specifications."""

from __future__ import annotations

import re
from typing import NamedTuple

from ._formula import Place

#: Spellings of operators, by the name that this package uses.
SPELLINGS = {
    "not": ("not", "!"),
    "or": ("or", "|"),
    "and": ("and", "&"),
    "iff": ("iff", "<->"),
    "->": ("implies", "->"),
    "xor": ("xor",),
    "rise": ("rise",),
    "fall": ("fall",),
    "always": ("always", "G"),
    "eventually": ("eventually", "F"),
    "until": ("until", "U"),
    "unless": ("unless", "W"),
    "historically": ("historically", "H"),
    "once": ("once", "O"),
    "since": ("since", "S"),
    "next": ("next", "X"),
    "prev": ("prev", "Y"),
    "s_next": ("s_next", "sX"),
    "s_prev": ("s_prev", "sY"),
    "!=": ("!==",),
}
_NAMES = {spelling: name for name, spellings in SPELLINGS.items() for spelling in spellings}

_TOKEN = re.compile(
    r"""
      (?P<space> \s+ | //[^\r\n]* | /\*.*?\*/ )
    | (?P<number> (?: \d[\d_]*\.?[\d_]* | \.\d+ ) (?: [eE][+-]?\d+ )? )
    | (?P<name> [A-Za-z_$][A-Za-z0-9_$./]* )
    | (?P<symbol> <-> | -> | !== | == | <= | >= | [-+*/()\[\]{};:,@=<>!|&] )
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A word of a specification. The kind of an operator or a symbol is its name, otherwise ``name``, ``number`` or ``end``."""

    kind: str
    text: str
    place: Place


def tokens(text: str) -> list[Token]:
    """The tokens of a text; the last one is its end."""
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            place = Place(text, at, at + 1)
            raise place.error(f"unexpected character {text[at]!r}")
        place = Place(text, at, match.end())
        word = match.group()
        if text.startswith("!=", at) and word == "!":
            raise Place(text, at, at + 2).error("unexpected '!=': unequal is written '!=='")
        if match.lastgroup == "number":
            found.append(Token("number", word, place))
        elif match.lastgroup in ("name", "symbol"):
            kind = _NAMES.get(word, "name" if match.lastgroup == "name" else word)
            found.append(Token(kind, word, place))
        at = match.end()
    found.append(Token("end", "", Place(text, len(text), len(text))))
    return found
