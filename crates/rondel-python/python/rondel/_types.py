"""Types of texts. Type checkers read them; `import rondel` does not import them."""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

Emit: TypeAlias = Literal["change", "every", "violations"]

Verdict: TypeAlias = Literal["satisfied", "violated", "inconclusive"]

Syntax: TypeAlias = Literal["rondel", "rye"]

TimeModel: TypeAlias = Literal["steps", "points", "dense", "linear"]

TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]

Stamp: TypeAlias = Literal["log", "publish"]

OnError: TypeAlias = Literal["stop", "skip"]

OnReset: TypeAlias = Literal["restart", "inconclusive", "ignore"]

Form: TypeAlias = Literal["junit", "sarif", "tap", "github", "json", "html", "svg", "mcap"]


class AnyReport(Protocol):
    """A verdict of a monitor or of the command: a ``Report`` or a ``CommandReport``."""

    @property
    def parameters(self) -> dict[str, Any]: ...
    @property
    def verdict(self) -> Verdict: ...
    @property
    def time(self) -> float: ...
    @property
    def time_ns(self) -> int: ...
    @property
    def about(self) -> float | None: ...
    @property
    def step(self) -> int | None: ...
    @property
    def robustness(self) -> float | None: ...
    @property
    def severity(self) -> str | None: ...
    @property
    def explanation(self) -> list[dict[str, Any]] | None: ...
    def json(self) -> str: ...
    # The last one: it hides the decorator.
    @property
    def property(self) -> str: ...
