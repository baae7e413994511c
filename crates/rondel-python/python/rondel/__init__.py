"""Rondel: runtime verification for publish/subscribe systems.

:func:`check` checks recordings and :func:`run` live networks, with the command `rondel` that comes with the package.
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
    from ._check import check
    from ._drawing import Drawing
    from ._errors import InconclusiveError, RecordingError, RunError, ViolationError
    from ._live import run
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
    from ._program import find_program
    from ._reports import CommandReport
    from ._results import PropertyResult, Results, Robustness
    from ._run import Run
    from ._types import AnyReport, Emit

__all__ = [
    "AnyReport",
    "CommandReport",
    "Drawing",
    "InconclusiveError",
    "MessageError",
    "Monitor",
    "Notice",
    "PropertyResult",
    "PropertySummary",
    "RecordingError",
    "Report",
    "Results",
    "Robustness",
    "RondelError",
    "Run",
    "RunError",
    "SnapshotError",
    "SpecificationError",
    "Summary",
    "ViolationError",
    "__version__",
    "check",
    "find_program",
    "run",
]

# The modules of all names, imported when one is used: monitors need none of the command, and pytest imports this package
# at every start for its plugin.
_MODULES = {
    "AnyReport": "_types",
    "CommandReport": "_reports",
    "Drawing": "_drawing",
    "InconclusiveError": "_errors",
    "MessageError": "_native",
    "Monitor": "_native",
    "Notice": "_native",
    "PropertyResult": "_results",
    "PropertySummary": "_native",
    "RecordingError": "_errors",
    "Report": "_native",
    "Results": "_results",
    "Robustness": "_results",
    "RondelError": "_native",
    "Run": "_run",
    "RunError": "_errors",
    "SnapshotError": "_native",
    "SpecificationError": "_native",
    "Summary": "_native",
    "ViolationError": "_errors",
    "__version__": "_native",
    "check": "_check",
    "find_program": "_program",
    "run": "_live",
}

if not TYPE_CHECKING:
    # Type checkers would take any name for one of these.

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        try:
            module = importlib.import_module(f".{_MODULES[name]}", __name__)
        except ImportError as error:
            import sysconfig

            if sysconfig.get_config_var("Py_GIL_DISABLED"):
                raise ImportError(
                    "rondel does not support free-threaded Python: use a build of Python with the GIL"
                ) from error
            raise
        value = getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _restore(specification: str, snapshot: bytes, emit: Emit, explain: bool) -> Monitor:
    """Continue a monitor from its pickle."""
    from ._native import Monitor

    return Monitor.restore(specification, snapshot, emit=emit, explain=explain)
