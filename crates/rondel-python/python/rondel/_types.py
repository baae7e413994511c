"""Types of texts. Type checkers read them; `import rondel` does not import them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

Emit: TypeAlias = Literal["change", "every", "violations"]

Verdict: TypeAlias = Literal["satisfied", "violated", "inconclusive"]

Syntax: TypeAlias = Literal["rondel", "rye"]

TimeModel: TypeAlias = Literal["steps", "points", "dense", "linear"]

TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns"]

Stamp: TypeAlias = Literal["log", "publish"]

OnError: TypeAlias = Literal["stop", "skip"]

OnReset: TypeAlias = Literal["restart", "inconclusive", "ignore"]

OnAuditError: TypeAlias = Literal["stop", "continue"]

Workers: TypeAlias = int | Literal["auto"]

Form: TypeAlias = Literal["junit", "sarif", "tap", "github", "json", "html", "svg", "mcap"]


class NetworkOptions(TypedDict, total=False):
    """The options of networks of a run in short form."""

    zenoh_connect: str | Iterable[str]
    zenoh_listen: str | Iterable[str]
    zenoh_mode: Literal["peer", "client", "router"]
    zenoh_config: str | os.PathLike[str]
    dds_domain: int
    dds_interface: str
    dds_peer: str | Iterable[str]
    dds_history: int
    dds_security: str | os.PathLike[str]
    dds_lease: str
    mqtt_broker: str
    mqtt_version: Literal["5", "3.1.1"]
    mqtt_qos: Literal[0, 1, 2]
    mqtt_user: str
    mqtt_password_file: str | os.PathLike[str]
    mqtt_password_env: str
    mqtt_ca: str | os.PathLike[str]
    mqtt_certificate: str | os.PathLike[str]
    mqtt_key: str | os.PathLike[str]
    mqtt_client_id: str
    kafka_broker: str | Iterable[str]
    kafka_start: Literal["latest", "earliest"]
    kafka_config: str | os.PathLike[str]
    slow_consumer: str
    resend: str
    exit_on_unreachable: bool


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
    def about_ns(self) -> int | None: ...
    @property
    def step(self) -> int | None: ...
    @property
    def robustness(self) -> float | None: ...
    @property
    def severity(self) -> str | None: ...
    @property
    def requirement(self) -> str | None: ...
    @property
    def values(self) -> dict[str, Any]: ...
    @property
    def because_of(self) -> str | None: ...
    @property
    def explanation(self) -> list[dict[str, Any]] | None: ...
    def json(self) -> str: ...
    # The last one: it hides the decorator.
    @property
    def property(self) -> str: ...
