"""Arguments of the command from those of Python."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

StrPath: TypeAlias = "str | os.PathLike[str]"
Paths: TypeAlias = "StrPath | Iterable[StrPath]"
Texts: TypeAlias = "str | Iterable[str]"
Time: TypeAlias = "float | datetime.datetime | datetime.timedelta | str"


def path(name: str, value: object) -> str:
    """A path as an argument."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name}: a path (str or os.PathLike) is needed, not {type(value).__name__}")
    found = os.fspath(value)
    if not isinstance(found, str):
        found = os.fsdecode(found)
    if not found:
        raise ValueError(f"{name}: the path is empty")
    # A file whose name begins with a dash is neither an option nor standard input.
    return os.path.join(os.curdir, found) if found.startswith("-") else found


def text(name: str, value: object) -> str:
    """A text as an argument."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: a str is needed, not {type(value).__name__}")
    return value


def many(name: str, value: object) -> list[Any]:
    """One value or several ones."""
    if isinstance(value, (str, bytes, os.PathLike)):
        return [value]
    if not isinstance(value, Iterable):
        raise TypeError(f"{name}: a str or several are needed, not {type(value).__name__}")
    return list(value)


def seconds(name: str, value: float) -> str:
    """Seconds as a decimal number, to the nanosecond."""
    if not math.isfinite(value):
        raise ValueError(f"{name}: {value} is no time")
    return f"{value:.9f}"


def duration(name: str, value: object) -> float | None:
    """A duration in seconds, unless it is ``None``."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name}: seconds are needed, not {type(value).__name__}")
    # Longer than a thread can wait.
    if not 0 < value <= 1e9:
        raise ValueError(f"{name}: {value} s is not between 0 and 1e9 s")
    return float(value)


def time(name: str, value: object) -> str:
    """A time: seconds, a date, or a time after the beginning."""
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None or value.utcoffset() is None:
            raise ValueError(f"{name}: the datetime has no time zone: use datetime.timezone.utc or .astimezone()")
        return value.astimezone(datetime.timezone.utc).isoformat()
    if isinstance(value, datetime.timedelta):
        if value < datetime.timedelta():
            raise ValueError(f"{name}: {value} is before the beginning")
        return "+" + seconds(name, value.total_seconds())
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return seconds(name, value)
    if isinstance(value, int):
        raise TypeError(f"{name}: an int could be seconds or nanoseconds: write seconds as a float")
    raise TypeError(
        f"{name}: a time is a float in seconds, a datetime, a timedelta after the beginning, or a str, "
        f"not {type(value).__name__}"
    )


class Arguments:
    """A command line in the making. Values are joined to their options: one that begins with a dash is no option."""

    def __init__(self, *first: str) -> None:
        self.all = list(first)

    def _add(self, option: str, value: str) -> None:
        self.all.append(f"{option}={value}")

    def flag(self, option: str, name: str, value: object) -> None:
        """An option without a value."""
        if not isinstance(value, bool):
            raise TypeError(f"{name}: a bool is needed, not {type(value).__name__}")
        if value:
            self.all.append(option)

    def text(self, option: str, name: str, value: object) -> None:
        """An option with a text, unless that is ``None``."""
        if value is not None:
            self._add(option, text(name, value))

    def one_of(self, option: str, name: str, value: object, allowed: Sequence[str]) -> None:
        """An option with one of these words, unless it is ``None``."""
        if value is not None and text(name, value) not in allowed:
            raise ValueError(f"{name}: {value!r} is none of {', '.join(map(repr, allowed))}")
        self.text(option, name, value)

    def path(self, option: str, name: str, value: object) -> None:
        """An option with a path, unless that is ``None``."""
        if value is not None:
            self._add(option, path(name, value))

    def paths(self, option: str, name: str, value: object) -> None:
        """An option that is repeated for each path."""
        for one in many(name, value) if value is not None else ():
            self.path(option, name, one)

    def joined(self, option: str, name: str, value: object) -> None:
        """An option with texts that are joined by commas."""
        if value is None:
            return
        words = [text(name, one) for one in many(name, value)]
        if not words:
            raise ValueError(f"{name}: there are none")
        if not isinstance(value, str) and any("," in word for word in words):
            raise ValueError(f"{name}: a comma separates names")
        self._add(option, ",".join(words))

    def integer(self, option: str, name: str, value: object) -> None:
        """An option with an integer, unless that is ``None``."""
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name}: an int is needed, not {type(value).__name__}")
        self._add(option, str(value))

    def workers(self, value: object) -> None:
        """The number of workers, ``"auto"`` for that of the cores, unless it is ``None``."""
        if isinstance(value, str):
            self.one_of("--workers", "workers", value, ("auto",))
        else:
            self.integer("--workers", "workers", value)

    def time(self, option: str, name: str, value: object) -> None:
        """An option with a time, unless that is ``None``."""
        if value is not None:
            self._add(option, time(name, value))
