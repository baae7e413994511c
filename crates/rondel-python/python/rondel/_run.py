"""Live runs of the command."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import selectors
import signal
import subprocess
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Any

from ._errors import INCONCLUSIVE, SATISFIED, VIOLATED, RunError, failure, killed, split_summary
from ._native import RondelError, SpecificationError
from ._program import find_program
from ._reports import CommandReport

_LOGGER = logging.getLogger("rondel")
_LEVELS = (
    ("error: ", logging.ERROR),
    ("warning: ", logging.WARNING),
    ("info: ", logging.INFO),
    ("debug: ", logging.DEBUG),
)

# Bytes that are read at once, the buffer of asyncio, and the lines of standard error that are kept.
_PIECE = 1 << 16
_LINES = 200
# Seconds beyond `stop_timeout` before a run is killed: an audit file may take two.
_GRACE = 3.0
# Seconds between looks at a process that is ending.
_PAUSE = 0.01


class _Child:
    """The process of a run."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.owner = os.getpid()
        self.is_stopped = False

    def stop(self) -> None:
        """Ask it to end. A second signal would end it at once."""
        if not self.is_stopped and self.process.poll() is None:
            self.process.terminate()
        self.is_stopped = True

    def discard(self, deadline: float) -> None:
        """Read verdicts until the end or the deadline: a run waits for its reader before it ends."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.descriptor(), selectors.EVENT_READ)
            while (left := deadline - time.monotonic()) > 0:
                if selector.select(left) and not os.read(self.descriptor(), _PIECE):
                    return

    def descriptor(self) -> int:
        """The pipe of the verdicts."""
        if self.process.stdout is None:
            raise RondelError("the run has no output")
        return self.process.stdout.fileno()

    def kill(self) -> None:
        """Kill it if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def reap(self, limit: float) -> None:
        """Wait for its end; kill it after the limit in seconds."""
        deadline = time.monotonic() + limit
        with contextlib.suppress(OSError, ValueError):
            self.discard(deadline)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(deadline - time.monotonic(), 0))
        self.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()


def _abandon(child: _Child, limit: float) -> None:
    """End a run whose object was dropped, without waiting for it here."""
    if os.getpid() != child.owner or child.process.poll() is not None:
        return
    child.stop()
    # When the interpreter ends, no thread can be started any more; the run ends by itself.
    with contextlib.suppress(RuntimeError):
        threading.Thread(target=child.reap, args=(limit,), daemon=True).start()


class Run:
    """A run of the command against live networks: iterate over its verdicts.

    ``for``, ``async for``, ``with`` and ``async with`` start it. It ends with the block, when the iteration is
    interrupted or cancelled, or when the object is dropped.
    """

    def __init__(self, arguments: list[str], stop_timeout: int, duration: float | None) -> None:
        self._arguments = arguments
        self._limit = stop_timeout + _GRACE
        self._duration = duration
        self._child: _Child | None = None
        self._owner = os.getpid()
        self._errors = _Errors()
        self._rest = b""
        self._lines: deque[bytes] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reader: asyncio.StreamReader | None = None
        self._transport: asyncio.BaseTransport | None = None
        self._timer: threading.Timer | None = None
        self._finalizer: weakref.finalize[Any, Run] | None = None
        self._has_ended = False

    def start(self) -> Run:
        """Start the command, unless that was done."""
        self._check_owner()
        if self._child is not None or self._has_ended:
            return self
        program = find_program()
        try:
            process = subprocess.Popen(
                [program, "--color=never", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                # A Ctrl-C of the terminal goes to Python alone, which ends the run once.
                start_new_session=True,
            )
        except OSError as error:
            raise RondelError(f"cannot start {program}: {error.strerror or error}") from error
        self._child = _Child(process)
        self._finalizer = weakref.finalize(self, _abandon, self._child, self._limit)
        self._errors.read(process)
        if self._duration is not None:
            self._timer = threading.Timer(self._duration, self._child.stop)
            self._timer.daemon = True
            self._timer.start()
        return self

    @property
    def exit_status(self) -> int | None:
        """The exit status of the command after its end, negative with the number of a signal that ended it."""
        return self._child.process.returncode if self._child is not None and self._has_ended else None

    @property
    def summary(self) -> dict[str, Any] | None:
        """The object of ``rondel run --summary json`` after the end; ``None`` before, and of a run that failed."""
        return self._errors.summary if self._has_ended else None

    def stop(self) -> None:
        """End the run gracefully: the iteration goes on with the verdicts on messages that were received."""
        self._check_owner()
        if self._child is not None:
            self._child.stop()

    # Verdicts.

    def __iter__(self) -> Run:
        self.start()
        return self

    def __next__(self) -> CommandReport:
        child = self._running(of_loop=False)
        if child is not None:
            try:
                while True:
                    if (report := self._take()) is not None:
                        return report
                    if not (piece := os.read(child.descriptor(), _PIECE)):
                        break
                    self._feed(piece)
                child.process.wait()
            except BaseException:
                self.stop()
                raise
            self._errors.join()
            self._end()
        raise StopIteration

    def __aiter__(self) -> Run:
        self.start()
        return self

    async def __anext__(self) -> CommandReport:
        child = self._running(of_loop=True)
        if child is not None:
            try:
                reader = await self._connected(child)
                while True:
                    if (report := self._take()) is not None:
                        return report
                    if not (piece := await reader.read(_PIECE)):
                        break
                    self._feed(piece)
                while child.process.poll() is None:
                    await asyncio.sleep(_PAUSE)
            except BaseException:
                self.stop()
                raise
            self._errors.join()
            self._end()
        raise StopAsyncIteration

    async def _connected(self, child: _Child) -> asyncio.StreamReader:
        """Standard output as a reader of the running loop, which stops reading when its buffer is full."""
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            raise RuntimeError("this run is read in another event loop, and belongs to it")
        if self._reader is None:
            self._loop = loop
            reader = asyncio.StreamReader(limit=_PIECE)
            protocol = asyncio.StreamReaderProtocol(reader)
            self._transport, _ = await loop.connect_read_pipe(lambda: protocol, child.process.stdout)
            self._reader = reader
        return self._reader

    def _running(self, of_loop: bool) -> _Child | None:
        """The process whose verdicts are read; ``None`` after its end."""
        self._check_owner()
        if self._has_ended:
            return None
        if not of_loop and self._reader is not None:
            raise RuntimeError("this run is read by `async for`, and cannot be read by `for` as well")
        return self.start()._child

    def _feed(self, piece: bytes) -> None:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        self._lines.extend(lines)

    def _take(self) -> CommandReport | None:
        """The next verdict that was read. Other lines, such as reports of the state of the run, are passed over."""
        while self._lines:
            line = self._lines.popleft()
            try:
                return CommandReport(line.decode())
            except ValueError:
                _LOGGER.debug("no verdict: %r", line[:200])
        return None

    # The end.

    def close(self) -> None:
        """End the run, gracefully within its ``stop_timeout``; later it is killed. Further verdicts are discarded.

        Raises:
            RunError: it had failed before, or did not end in time.
        """
        if (child := self._closing()) is None:
            return
        try:
            deadline = time.monotonic() + self._limit
            if self._reader is None:
                child.discard(deadline)
            while child.process.poll() is None and time.monotonic() < deadline:
                time.sleep(_PAUSE)
        except BaseException:
            self._abort(child)
            raise
        child.kill()
        self._errors.join()
        self._end()

    async def aclose(self) -> None:
        """End the run as :meth:`close` does, without blocking the loop."""
        if (child := self._closing()) is None:
            return
        try:
            await asyncio.wait_for(self._drained(child), self._limit)
        except (asyncio.TimeoutError, TimeoutError):
            pass
        except BaseException:
            self._abort(child)
            raise
        child.kill()
        self._errors.join()
        self._end()

    def _closing(self) -> _Child | None:
        """Ask the process to end; returns ``None`` if there is none."""
        self.stop()
        if self._child is None:
            self._has_ended = True
        return None if self._has_ended else self._child

    async def _drained(self, child: _Child) -> None:
        reader = await self._connected(child)
        while await reader.read(_PIECE):
            pass
        while child.process.poll() is None:
            await asyncio.sleep(_PAUSE)

    def _abort(self, child: _Child) -> None:
        """End at once, where the end was interrupted: its own exception would hide that one."""
        child.kill()
        with contextlib.suppress(RondelError):
            self._end()

    def _end(self) -> None:
        """Release the process after its end, and raise the exception of one that has failed."""
        if self._child is None or self._has_ended:
            return
        process = self._child.process
        self._has_ended = True
        if self._timer is not None:
            self._timer.cancel()
        if self._finalizer is not None:
            self._finalizer.detach()
        if self._transport is not None and self._loop is not None and not self._loop.is_closed():
            self._transport.close()
        elif process.stdout is not None:
            process.stdout.close()
        status, text = process.returncode, self._errors.text()
        if self._child.is_stopped and status == -signal.SIGTERM:
            # The signal came before the run had begun, and handled it.
            return
        if status in (SATISFIED, VIOLATED, INCONCLUSIVE) and self.summary is not None:
            return
        if self.summary is not None:
            # It has ended by itself, but is not complete: messages or verdicts are lost.
            raise RunError(f"the run ended with status {status}\n{text}".strip(), status, self.summary)
        error = failure(status, text, None)
        if isinstance(error, SpecificationError):
            raise error
        text = killed(status, text) if status < 0 else f"the run ended with status {status}\n{text}".strip()
        raise RunError(text, status, None)

    def _check_owner(self) -> None:
        if os.getpid() != self._owner:
            raise RuntimeError("this run belongs to the process from which this one was forked")

    def __enter__(self) -> Run:
        return self.start()

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with _unless_raised(exception):
            self.close()

    async def __aenter__(self) -> Run:
        return self.start()

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with _unless_raised(exception):
            await self.aclose()

    def __repr__(self) -> str:
        if self._has_ended:
            return f"<Run: ended with status {self.exit_status}>"
        return "<Run: not started>" if self._child is None else f"<Run: process {self._child.process.pid}>"


@contextlib.contextmanager
def _unless_raised(exception: BaseException | None) -> Iterator[None]:
    """Log an error of the run where another exception is on its way."""
    try:
        yield
    except RondelError as error:
        if exception is None:
            raise
        if error is not exception:
            _LOGGER.error("%s", error)


def _lines_of(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of an unbuffered stream, as they come."""
    rest = b""
    while piece := stream.read(_PIECE):
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    if rest:
        yield rest


class _Errors:
    """Standard error of a run: messages go to the logger ``rondel``, and the last ones are kept."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._thread: threading.Thread | None = None
        self.summary: dict[str, Any] | None = None

    def read(self, process: subprocess.Popen[bytes]) -> None:
        """Start to read."""
        self._thread = threading.Thread(target=self._read, args=(process.stderr,), name="rondel stderr", daemon=True)
        self._thread.start()

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            for raw in _lines_of(stream):
                line = raw.decode(errors="replace")
                if line.startswith("{") and (summary := split_summary(line)[1]) is not None:
                    self.summary = summary
                    continue
                self._lines.append(line)
                level = next((level for word, level in _LEVELS if word in line[:40]), None)
                if level is not None:
                    _LOGGER.log(level, "%s", line)

    def join(self) -> None:
        """Wait for the last lines. A program that the run has started may keep the pipe open."""
        if self._thread is not None:
            self._thread.join(timeout=1)

    def text(self) -> str:
        """The last lines."""
        return "\n".join(self._lines).strip()
