"""The arguments of the marker `rondel`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from .._types import Verdict

VERDICTS: tuple[str, ...] = get_args(Verdict)


class UsageError(Exception):
    """Wrong arguments of the marker or of a fixture."""


@dataclass(frozen=True)
class Marker:
    """A specification, and the recordings to check with it."""

    specification: Path
    recordings: tuple[Path, ...] = ()
    expect: Mapping[str, Verdict] = field(default_factory=dict)
    allow_inconclusive: bool = False
    """Whether a property may be inconclusive at the end."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of :func:`rondel.check`."""


def parse(arguments: tuple[Any, ...], named: Mapping[str, Any], folder: Path) -> Marker:
    """Return the marker with these arguments; paths are relative to the folder of the test file."""
    if len(arguments) != 1:
        raise UsageError(
            f"`rondel` takes one specification and named arguments, not {len(arguments)} positional arguments: "
            'write `@pytest.mark.rondel("spec.rondel", recording="drive.mcap")`'
        )
    options = dict(named)
    expect = expectations(options.pop("expect", None))
    allow_inconclusive = options.pop("allow_inconclusive", False)
    if not isinstance(allow_inconclusive, bool):
        raise UsageError(f"`allow_inconclusive` is {allow_inconclusive!r}: write True or False")
    return Marker(
        specification=_path(arguments[0], folder, "the specification"),
        recordings=_recordings(options.pop("recording", None), folder),
        expect=expect,
        allow_inconclusive=allow_inconclusive,
        options=options,
    )


def expectations(value: Any) -> dict[str, Verdict]:
    """Check the argument `expect`: a dict of properties and verdicts."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UsageError(f'`expect` is {value!r}: write a dict, such as {{"stops": "violated"}}')
    for name, verdict in value.items():
        if not isinstance(name, str) or verdict not in VERDICTS:
            raise UsageError(
                f"`expect` has {name!r}: {verdict!r}; write the name of a property, and {', '.join(map(repr, VERDICTS))}"
            )
    return dict(value)


def _recordings(value: Any, folder: Path) -> tuple[Path, ...]:
    if value is None:
        return ()
    values = value if isinstance(value, (list, tuple)) else [value]
    if not values:
        raise UsageError("`recording` is empty: nothing would be checked")
    return tuple(_path(each, folder, "`recording`") for each in values)


def _path(value: Any, folder: Path, what: str) -> Path:
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise UsageError(f"{what} is {value!r}: write a path")
    return folder / os.fspath(value)
