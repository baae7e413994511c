"""Options of specifications."""

from __future__ import annotations

from enum import Enum


class Semantics(Enum):
    """The variables whose distances count; the interface-aware semantics of STL."""

    STANDARD = "standard"
    OUTPUT_ROBUSTNESS = "output-robustness"
    INPUT_VACUITY = "input-vacuity"
    INPUT_ROBUSTNESS = "input-robustness"
    OUTPUT_VACUITY = "output-vacuity"

    def __str__(self) -> str:
        return self.value


class Language(Enum):
    """The implementation of the monitors; accepted, and without effect."""

    PYTHON = "python"
    CPP = "C++"

    def __str__(self) -> str:
        return self.value


class TimeInterpretation(Enum):
    """The model of time."""

    DISCRETE = "discrete_time"
    DENSE = "dense-time"

    def __str__(self) -> str:
        return self.value


class StlIOType(Enum):
    """The direction of a variable."""

    IN = 0
    OUT = 1
    UNDEFINED = 2
