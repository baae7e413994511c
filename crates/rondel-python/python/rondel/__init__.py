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
    from ._types import Emit

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

# The extension module is loaded with its first name: pytest imports this package at every start, for its plugin.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'rondel' has no attribute '{name}'")
        try:
            from . import _native
        except ImportError as error:
            import sysconfig

            if sysconfig.get_config_var("Py_GIL_DISABLED"):
                raise ImportError(
                    "rondel does not support free-threaded Python: use a build of Python with the GIL"
                ) from error
            raise
        value = globals()[name] = getattr(_native, name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _restore(specification: str, snapshot: bytes, emit: Emit, explain: bool) -> Monitor:
    """Continue a monitor from its pickle."""
    from ._native import Monitor

    return Monitor.restore(specification, snapshot, emit=emit, explain=explain)
