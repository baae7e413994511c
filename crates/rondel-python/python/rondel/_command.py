"""Calls of the command that end by themselves."""

from __future__ import annotations

import os
import subprocess
import tempfile
from typing import NamedTuple

from ._errors import INCONCLUSIVE, SATISFIED, UNREAD, VIOLATED, failure
from ._native import RondelError
from ._program import find_program


class Finished(NamedTuple):
    """The end of a call."""

    status: int
    output: str
    errors: str


def execute(arguments: list[str], text: str | None, timeout: float | None) -> Finished:
    """Run the command with a text as its standard input. It is killed when this call is interrupted.

    Raises:
        TimeoutError: if it takes more than ``timeout`` seconds.
        RondelError: if it cannot be started.
    """
    program = find_program()
    content = None if text is None else text.encode()
    try:
        process = subprocess.Popen(
            [program, "--color=never", *arguments],
            stdin=subprocess.DEVNULL if content is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise RondelError(f"cannot start {program}: {error.strerror or error}") from error
    try:
        output, errors = process.communicate(content, timeout)
    except BaseException as error:
        process.kill()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise TimeoutError(f"the command took more than {timeout} s, and was ended") from None
        raise
    return Finished(process.returncode, output.decode(errors="replace"), errors.decode(errors="replace"))


class Call(NamedTuple):
    """A check: its arguments, and how it can be repeated."""

    paths: list[str]
    """The specification, unless there is a text or a formula, and the recordings."""
    text: str | None
    """The text of the specification, if it is in no file."""
    formula: str | None
    """The formula that stands for a specification."""
    selection: list[str]
    """The options that select messages and verdicts."""
    emit: str | None
    """The option `--emit`."""
    explain: bool
    """The option `--explain`."""
    kept: list[str]
    """The options that write files, `--store` and `--snapshot-to`."""
    snapshot: str | None
    """The file of `--snapshot-to`."""
    resume: str | None
    """The file of `--resume`."""
    timeout: float | None
    """The limit in seconds."""

    def _arguments(self, subcommand: str, options: list[str]) -> list[str]:
        first = [] if self.text is None else ["-"]
        return [subcommand, *self.selection, *options, "--", *first, *self.paths]

    def check(self) -> Finished:
        """Check."""
        options = ["--format=json", "--summary=json", *self.kept]
        if self.emit is not None:
            options.append(f"--emit={self.emit}")
        if self.explain:
            options.append("--explain")
        return execute(self._arguments("check", options), self.text, self.timeout)

    def repeat(self, subcommand: str, options: list[str], status: int | None = None) -> Finished:
        """Check the same again for another form of the results; ``status`` is that of the check before. Stores and
        snapshots stay as they are.

        Raises:
            RondelError: if that fails, or cannot be done.
        """
        files = [os.path.realpath(file) for file in (self.snapshot, self.resume) if file is not None]
        if len(files) > len(set(files)):
            raise RondelError(
                f"the check has replaced the snapshot {self.resume} from which it resumed, and cannot be repeated: "
                "use another file for snapshot_to"
            )
        with tempfile.TemporaryDirectory(prefix="rondel-") as folder:
            if self.snapshot is not None:
                # Open verdicts stay open, as they did.
                options = [*options, f"--snapshot-to={os.path.join(folder, 'snapshot')}"]
            ended = execute(self._arguments(subcommand, options), self.text, self.timeout)
        if ended.status in (SATISFIED, VIOLATED, INCONCLUSIVE):
            return ended
        if ended.status != UNREAD:
            raise failure(ended.status, ended.errors, self.source)
        if status != UNREAD or "cannot write" in ended.errors:
            raise RondelError(ended.errors.strip())
        return ended

    @property
    def source(self) -> str | None:
        """The text in which mistakes have their places; ``None`` if it is in a file."""
        return self.formula if self.text is None else self.text
