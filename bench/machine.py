"""Head, statistics and tables of the benchmarks in Python: machine, date, commit and command of a measurement."""

import datetime
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def _output(*command):
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return names[0] if names else "unknown processor"


def _command():
    """The command line, with paths below this repository relative to it."""
    words = [sys.argv[0], *sys.argv[1:]]
    return shlex.join(os.path.relpath(word, ROOT) if os.path.isabs(word) and pathlib.Path(word).is_relative_to(ROOT) else word for word in words)


def head(program):
    """A line with version, commit, date, machine, load and command. To be made before the first measurement."""
    commit = _output("git", "rev-parse", "--short", "HEAD") or "an unknown commit"
    changed = " with changes" if _output("git", "status", "--porcelain", "--untracked-files=no") else ""
    version = _output(os.path.abspath(program), "--version").splitlines()[0]
    date = datetime.datetime.now(datetime.timezone.utc).date()
    cores = len(os.sched_getaffinity(0))
    return (
        f"{version} at {commit}{changed}, {date}: {_processor()}, {cores} cores, {platform.system()} {platform.release()}, "
        f"load {os.getloadavg()[0]:.2f} before the start. `{_command()}`"
    )


def spread(values, digits=0):
    """The median, and the least and the greatest value in brackets."""
    median, least, most = statistics.median(values), min(values), max(values)
    return f"{median:,.{digits}f} ({least:,.{digits}f} to {most:,.{digits}f})"


def ratio(values, against):
    """The median of the ratios of all turns, with the least and the greatest."""
    return spread([value / other for value, other in zip(values, against, strict=True)], 3)


def table(columns, rows):
    """A table in Markdown. The first column is text, the others are numbers."""
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def write(text, path):
    """Writes tables into a file, whose folders it makes, or without a path to the standard output."""
    if path is None:
        print(text)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"wrote {path}")


def turns(cases, repeat):
    """Pairs of a turn's number and a case: each case comes once in each turn, and each turn begins with another one."""
    for turn in range(repeat):
        for place in range(len(cases)):
            yield turn, cases[(turn + place) % len(cases)]
