"""Runs against live networks: their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ._arguments import Arguments, Paths, StrPath, Texts, many, path, text
from ._arguments import duration as duration_argument
from ._run import Run

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._types import Emit, NetworkOptions, OnAuditError, Syntax, TimeModel, TimeUnit, Workers

# The options of networks with texts, paths or integers, by the names of their keywords.
_TEXTS = (
    "zenoh_mode",
    "dds_interface",
    "dds_lease",
    "mqtt_broker",
    "mqtt_version",
    "mqtt_user",
    "mqtt_password_env",
    "mqtt_client_id",
    "kafka_start",
    "slow_consumer",
    "resend",
)
_REPEATED = ("zenoh_connect", "zenoh_listen", "dds_peer", "kafka_broker")
_PATHS = (
    "zenoh_config",
    "dds_security",
    "mqtt_password_file",
    "mqtt_ca",
    "mqtt_certificate",
    "mqtt_key",
    "kafka_config",
)
_INTEGERS = ("dds_domain", "dds_history", "mqtt_qos")
_FLAGS = ("exit_on_unreachable",)


def run(
    file: StrPath | None = None,
    *,
    formula: str | None = None,
    topic: str | Mapping[str, str] | None = None,
    publish: Texts | None = None,
    emit: Emit | None = None,
    explain: bool = False,
    syntax: Syntax | None = None,
    time: TimeModel | None = None,
    unbounded: bool = False,
    schemas: Paths | None = None,
    time_from: str | None = None,
    time_unit: TimeUnit | None = None,
    count: int | None = None,
    duration: float | None = None,
    resume: StrPath | None = None,
    snapshot_to: StrPath | None = None,
    snapshot_every: int | None = None,
    store: StrPath | None = None,
    audit: StrPath | None = None,
    audit_on_error: OnAuditError | None = None,
    allow_run: int | None = None,
    wait_subscribers: int | None = None,
    metrics: str | None = None,
    control: bool = True,
    stop_timeout: int = 5,
    strict: bool = False,
    workers: Workers | None = None,
    **network: Unpack[NetworkOptions],
) -> Run:
    """Check a live network, as ``rondel run`` does, and iterate over the verdicts.

    ``file`` is a deployment (``.yaml``); or a specification with ``topic``, an address or addresses by the names of
    topics. Verdicts go to this iteration, and where the deployment or ``publish`` say. ``duration`` ends the run after
    that many seconds, ``control=False`` is ``--no-control``; every other keyword is the option of its name.

    Raises:
        TypeError, ValueError: an argument is wrong. Errors of the run are raised when it is started and iterated over:
            ``SpecificationError``, ``RunError`` or another ``RondelError``.
    """
    if (file is None) == (formula is None):
        raise TypeError("one is needed: the deployment or specification, or a formula")
    options = Arguments("run", "--format=json", "--summary=json", "--publish=stdout")
    options.text("--formula", "formula", formula)
    for address in _addresses(topic):
        options.text("--topic", "topic", address)
    for address in many("publish", publish) if publish is not None else ():
        if text("publish", address) != "stdout":
            options.text("--publish", "publish", address)
    options.one_of("--emit", "emit", emit, ("change", "every", "violations"))
    options.flag("--explain", "explain", explain)
    options.one_of("--syntax", "syntax", syntax, ("rondel", "rye"))
    options.one_of("--time", "time", time, ("steps", "points", "dense", "linear"))
    options.flag("--unbounded", "unbounded", unbounded)
    options.paths("--schemas", "schemas", schemas)
    options.text("--time-from", "time_from", time_from)
    options.one_of("--time-unit", "time_unit", time_unit, ("s", "ms", "us", "ns"))
    options.integer("--count", "count", count)
    options.path("--resume", "resume", resume)
    options.path("--snapshot-to", "snapshot_to", snapshot_to)
    options.integer("--snapshot-every", "snapshot_every", snapshot_every)
    options.path("--store", "store", store)
    options.path("--audit", "audit", audit)
    options.one_of("--audit-on-error", "audit_on_error", audit_on_error, ("stop", "continue"))
    options.integer("--allow-run", "allow_run", allow_run)
    options.integer("--wait-subscribers", "wait_subscribers", wait_subscribers)
    options.text("--metrics", "metrics", metrics)
    options.flag("--no-control", "control", not control if isinstance(control, bool) else control)
    if stop_timeout is None:
        raise TypeError("stop_timeout: an int is needed, not NoneType")
    options.integer("--stop-timeout", "stop_timeout", stop_timeout)
    options.flag("--strict", "strict", strict)
    options.workers(workers)
    _add_network(options, dict(network))
    if file is not None:
        options.all += ["--", path("file", file)]
    return Run(options.all, stop_timeout, duration_argument("duration", duration))


def _addresses(topic: str | Mapping[str, str] | None) -> list[str]:
    """The values of ``--topic``."""
    if topic is None:
        return []
    if isinstance(topic, str):
        return [topic]
    if not isinstance(topic, Mapping):
        raise TypeError(f"topic: an address or a dict of addresses by topic is needed, not {type(topic).__name__}")
    return [f"{text('topic', name)}={text('topic', address)}" for name, address in topic.items()]


def _add_network(options: Arguments, network: dict[str, object]) -> None:
    """Add the options of networks."""
    for name, value in network.items():
        option = "--" + name.replace("_", "-")
        if name in _TEXTS:
            options.text(option, name, value)
        elif name in _REPEATED:
            for one in many(name, value) if value is not None else ():
                options.text(option, name, one)
        elif name in _PATHS:
            options.path(option, name, value)
        elif name in _INTEGERS:
            options.integer(option, name, value)
        elif name in _FLAGS:
            options.flag(option, name, value)
        else:
            raise TypeError(f"run() got an unexpected keyword argument '{name}'")
