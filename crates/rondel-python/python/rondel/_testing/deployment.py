"""A run of a deployment that judges a test."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import rondel

from .._errors import INCONCLUSIVE, VIOLATED, killed, split_summary
from .._types import Verdict
from .judgement import Expectations, Judgement, Outcome, judge, of_summary
from .marker import UsageError, expectations
from .text import Violation

KEPT = 1000
"""Violations that are read with their explanations; further ones are counted."""
LINES = 30
"""Last lines of the messages of a run that are shown."""
POLL = 0.02
"""Seconds between two looks at a run."""
RESERVED = ("--explain", "--store", "--summary")
"""Options of the run that this module sets."""


class JudgedDeployment:
    """`rondel run` on a deployment, as a child process."""

    def __init__(
        self,
        deployment: Path,
        *arguments: str,
        expect: Mapping[str, Verdict] | None,
        allow_inconclusive: bool,
        ready_within: float,
        stop_within: float,
        settle: float,
        env: Mapping[str, str] | None,
    ) -> None:
        for argument in arguments:
            if argument.split("=", 1)[0] in RESERVED:
                raise UsageError(f"`{argument}` is set by `rondel_deployment`: leave it out")
        self._deployment = deployment
        self._arguments = arguments
        self._expect = expectations(expect)
        self._allow_inconclusive = allow_inconclusive
        self._ready_within = ready_within
        self._stop_within = stop_within
        self._settle = settle
        self._env = dict(env or {})
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._status = ""
        self._problems: list[str] = []
        self._judgement: Judgement | None = None

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._running().pid

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process is not None and self._process.poll() is None

    def expect_violation(self, *properties: str) -> None:
        """Require that these properties are violated by the end of the run. Their violations do not fail the test."""
        __tracebackhide__ = True
        if not properties:
            raise UsageError("`expect_violation` names no property")
        for property in properties:
            self._expect[property] = "violated"

    def start(self) -> None:
        """Start the run, and wait until it is ready.

        Raises:
            RondelError: it ends before, or is not ready within the limit. Nothing is left behind.
        """
        if not self._deployment.is_file():
            raise UsageError(f"there is no deployment {self._deployment}")
        program = rondel.find_program()
        self._folder = Path(tempfile.mkdtemp(prefix="rondel-"))
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
                self._process = self._spawn(program, _bind(notify, self._folder))
                self._wait_until_ready(notify)
        except BaseException:
            self.close()
            raise

    def _spawn(self, program: str, address: str) -> subprocess.Popen[bytes]:
        folder = self._folder_of_run()
        env = {**os.environ, **self._env, "NOTIFY_SOCKET": address}
        for name in ("WATCHDOG_USEC", "WATCHDOG_PID"):
            env.pop(name, None)
        options = ["--explain", "--summary=json", f"--store={folder / 'verdicts.db'}"]
        with open(folder / "messages", "wb") as messages:
            return subprocess.Popen(
                [program, "--color=never", "run", *options, *self._arguments, "--", os.fspath(self._deployment)],
                env=env,
                stdin=subprocess.DEVNULL,
                # The store has the verdicts as well.
                stdout=subprocess.DEVNULL,
                stderr=messages,
                preexec_fn=_end_with_parent(),
            )

    def _wait_until_ready(self, notify: socket.socket) -> None:
        deadline = time.monotonic() + self._ready_within
        notify.settimeout(POLL)
        while True:
            # Before the socket: a run that has ended may have been ready.
            ended = self._running().poll()
            with contextlib.suppress(TimeoutError):
                for line in notify.recv(65536).decode(errors="replace").splitlines():
                    if line == "READY=1":
                        return
                    if line.startswith("STATUS="):
                        self._status = line.removeprefix("STATUS=")
                continue
            if ended is not None:
                raise self._not_ready(f"{_end(ended)} before it was ready")
            if time.monotonic() > deadline:
                status = f": {self._status}" if self._status else ""
                raise self._not_ready(f"was not ready within {self._ready_within:g} s{status}")

    def _not_ready(self, reason: str) -> rondel.RondelError:
        return rondel.RondelError(f"{self._deployment.name}: the monitor {reason}{self._last()}")

    def verdicts(self, property: str | None = None) -> list[tuple[str, str]]:
        """Return the properties and verdicts so far, in their order."""
        rows = self._rows("SELECT property, verdict FROM all_verdicts ORDER BY seq")
        return [(row[0], row[1]) for row in rows if property in (None, row[0])]

    def wait_for(self, property: str, verdict: Verdict, within: float = 10.0) -> None:
        """Wait until a property has had this verdict.

        Raises:
            AssertionError: it has not within this number of seconds, or the run has ended.
        """
        __tracebackhide__ = True
        deadline = time.monotonic() + within
        while True:
            # Before the verdicts: a run that has ended may have had it.
            is_running = self.is_running
            if (property, verdict) in self.verdicts(property):
                return
            if not is_running:
                raise AssertionError(f"{self._deployment.name}: the monitor has ended{self._last()}")
            if time.monotonic() > deadline:
                had = ", ".join(each for _, each in self.verdicts(property)) or "no verdict"
                raise AssertionError(f"{property} was not {verdict} within {within:g} s: it had {had}")
            time.sleep(POLL)

    def judgement(self) -> Judgement:
        """End the run, unless it has ended, and return the judgement of its verdicts."""
        if self._judgement is None:
            if self._process is not None:
                self._stop(self._process)
            self._judgement = judge(self._outcome(), Expectations(self._expect, self._allow_inconclusive))
        return self._judgement

    def close(self) -> None:
        """End the process, and remove its files."""
        if self._process is not None and self._process.poll() is None:
            self._end(self._process)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        """End the run at the end of the test, with the sentences about everything that is wrong with its end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            # Messages on their way arrive before the end.
            process.wait(self._settle)
        if process.poll() is not None:
            # With a number of messages it ends by itself.
            is_counted = any(argument.split("=", 1)[0] == "--count" for argument in self._arguments)
            if process.returncode != 0 or not is_counted:
                self._problems.append(f"the monitor {_end(process.returncode)} during the test{self._last()}")
            return
        if not self._end(process):
            self._problems.append(
                f"the monitor did not end within {self._stop_within:g} s of SIGTERM, and was killed{self._last()}"
            )
        elif process.returncode not in (0, VIOLATED, INCONCLUSIVE):
            self._problems.append(f"the monitor {_end(process.returncode)}{self._last()}")

    def _end(self, process: subprocess.Popen[bytes]) -> bool:
        """End the process by SIGTERM; after the limit, kill it. Returns whether it ended by itself."""
        process.terminate()
        try:
            process.wait(self._stop_within)
        except BaseException as error:
            process.kill()
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                return False
            raise
        return True

    def _outcome(self) -> Outcome:
        """The verdicts of the run, from its summary; of one that was killed, from those that it has stored."""
        _, summary = split_summary(self._messages())
        requirements = {
            name: requirement.split(", ")
            for name, requirement in self._rows("SELECT name, requirement FROM properties ORDER BY id")
            if requirement
        }
        found = self._violations({name: ", ".join(each) for name, each in requirements.items()})
        name = self._deployment.name
        if summary is not None:
            outcome = of_summary(name, summary, is_strict="--strict" in self._arguments)
            outcome = replace(outcome, checked=summary.get("checked"))
            self._compare_status(outcome)
        else:
            violated = {each.property for each in found}
            names = [row[0] for row in self._rows("SELECT name FROM properties ORDER BY id")]
            verdicts = {each: "violated" if each in violated else "inconclusive" for each in names}
            undecided: dict[str, tuple[str, ...]] = {each: () for each in names if each not in violated}
            outcome = Outcome(name, verdicts, bool(violated), True, undecided)
            if not self._problems:
                self._problems.append(f"the monitor printed no summary{self._last()}")
        return replace(outcome, violations=found, requirements=requirements, problems=tuple(self._problems))

    def _compare_status(self, outcome: Outcome) -> None:
        """Note an exit status of `--strict` whose reason is no property, such as a connection that was lost."""
        status = self._process.returncode if self._process is not None else 0
        is_explained = {
            VIOLATED: outcome.is_violated,
            INCONCLUSIVE: outcome.is_inconclusive or self._allow_inconclusive,
        }
        if not is_explained.get(status, True):
            self._problems.append(f"the monitor {_end(status)}{self._last()}")

    def _violations(self, requirements: Mapping[str, str]) -> list[Violation]:
        rows = self._rows(
            "SELECT property, severity, parameters, time_ns, about_ns, explanation FROM all_verdicts "
            f"WHERE verdict = 'violated' ORDER BY seq LIMIT {KEPT}"
        )
        return [
            Violation(
                property=property,
                time=at / 1e9,
                about=None if about is None or about == at else about / 1e9,
                parameters=json.loads(parameters) if parameters else {},
                severity=severity or None,
                requirement=requirements.get(property),
                explanation=json.loads(explanation) if explanation else (),
            )
            for property, severity, parameters, at, about, explanation in rows
        ]

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        """Rows of the store; none before it exists, or after the run has been closed."""
        path = self._folder / "verdicts.db" if self._folder is not None else None
        if path is None or not path.exists():
            return []
        try:
            with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=10)) as store:
                return store.execute(query).fetchall()
        except sqlite3.OperationalError as error:
            # The run is creating it.
            if "no such table" in str(error) or "unable to open" in str(error):
                return []
            raise rondel.RondelError(f"the verdicts of {self._deployment.name} cannot be read: {error}") from error

    def _messages(self) -> str:
        try:
            return (self._folder_of_run() / "messages").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def _last(self) -> str:
        """The last messages of the run, without its summary, below a sentence."""
        if self._folder is None:
            return ""
        lines = split_summary(self._messages())[0].splitlines()
        return "".join(f"\n    {line}" for line in lines[-LINES:])

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise UsageError("the run has not been started")
        return self._process

    def _folder_of_run(self) -> Path:
        if self._folder is None:
            raise UsageError("the run has been closed")
        return self._folder


def _bind(notify: socket.socket, folder: Path) -> str:
    """Give the socket an address, and return it as `NOTIFY_SOCKET` has it."""
    if sys.platform == "linux":
        # An abstract one that the system chooses: a path may be too long.
        notify.bind("")
        name: bytes = notify.getsockname()
        return f"@{name[1:].decode()}"
    path = os.fspath(folder / "notify")
    notify.bind(path)
    return path


def _end(status: int) -> str:
    return killed(status, "").replace("the command ", "") if status < 0 else f"ended with status {status}"


def _end_with_parent() -> Callable[[], None] | None:
    """Return a function that lets a child end when the process of the tests is killed, where the system offers that."""
    if sys.platform != "linux":
        return None
    # Loaded before the fork: nothing may be allocated or locked after it.
    prctl = ctypes.CDLL(None).prctl
    set_parent_death_signal = 1
    return lambda: prctl(set_parent_death_signal, int(signal.SIGTERM))
