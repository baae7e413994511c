"""Verdicts as tables."""

from __future__ import annotations

import importlib
import json
from typing import Any

from ._reports import CommandReport


def columns(reports: list[CommandReport]) -> dict[str, list[Any]]:
    """The verdicts as columns.

    A parameter ``x`` is the column ``parameters.x``, of texts where its values are of several types.
    """
    found: dict[str, list[Any]] = {
        name: [getattr(report, name) for report in reports]
        for name in ("recording", "property", "verdict", "time", "time_ns", "about", "about_ns", "step", "robustness")
    }
    found["severity"] = [report.severity for report in reports]
    names = dict.fromkeys(name for report in reports for name in report.parameters)
    for name in names:
        values = [report.parameters.get(name) for report in reports]
        if len({type(value) for value in values if value is not None}) > 1:
            values = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        found[f"parameters.{name}"] = values
    return found


_TYPES = {
    "recording": "string",
    "property": "string",
    "verdict": "string",
    "time": "float64",
    "time_ns": "int64",
    "about": "float64",
    "about_ns": "int64",
    "step": "int64",
    "robustness": "float64",
    "severity": "string",
}


def arrow(reports: list[CommandReport]) -> Any:
    """The verdicts as a table of PyArrow."""
    pyarrow = _imported("pyarrow", "to_arrow")
    found = columns(reports)
    types = {name: getattr(pyarrow, kind)() for name, kind in _TYPES.items()}
    return pyarrow.table({name: pyarrow.array(values, types.get(name)) for name, values in found.items()})


def pandas(reports: list[CommandReport]) -> Any:
    """The verdicts as a table of pandas."""
    module = _imported("pandas", "to_pandas")
    # Integers with gaps would become floats.
    types = {**_TYPES, "about_ns": "Int64", "step": "Int64"}
    found = columns(reports)
    return module.DataFrame({name: module.Series(values, dtype=types.get(name)) for name, values in found.items()})


def polars(reports: list[CommandReport]) -> Any:
    """The verdicts as a table of Polars."""
    module = _imported("polars", "to_polars")
    words = {"string": "String", "float64": "Float64", "int64": "Int64"}
    types = {name: getattr(module, words[kind]) for name, kind in _TYPES.items()}
    found = columns(reports)
    return module.DataFrame({name: module.Series(name, values, types.get(name)) for name, values in found.items()})


def _imported(name: str, method: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{method}() needs {name}: pip install {name}", name=name) from error
