"""Types of texts. Type checkers read them; nothing imports them when a program runs."""

from typing import Literal, TypeAlias

Emit: TypeAlias = Literal["change", "every", "violations"]

Verdict: TypeAlias = Literal["satisfied", "violated", "inconclusive"]
