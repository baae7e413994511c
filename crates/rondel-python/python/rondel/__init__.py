"""Rondel: runtime verification for publish/subscribe systems.

A :class:`Monitor` checks messages against a specification::

    import rondel

    monitor = rondel.Monitor(
        "topic s {x: float}\\n"
        "property p = s.x > 0 -> eventually[0, 2 s] s.x < 0"
    )
    for report in monitor.push("s", {"x": 1.0}, time=0.1):
        print(report.property, report.verdict, report.time)
    monitor.advance(3.0)
    print(monitor.summary())
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._types import Emit

try:
    from ._native import (
        MessageError,
        Monitor,
        Notice,
        PropertySummary,
        Report,
        RondelError,
        SnapshotError,
        SpecificationError,
        Summary,
        __version__,
    )
except ImportError as error:
    import sysconfig

    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise ImportError("rondel does not support free-threaded Python: use a build of Python with the GIL") from error
    raise

__all__ = [
    "MessageError",
    "Monitor",
    "Notice",
    "PropertySummary",
    "Report",
    "RondelError",
    "SnapshotError",
    "SpecificationError",
    "Summary",
    "__version__",
]


def _restore(specification: str, snapshot: bytes, emit: Emit, explain: bool) -> Monitor:
    """Continue a monitor from its pickle."""
    return Monitor.restore(specification, snapshot, emit=emit, explain=explain)
