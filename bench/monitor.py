"""A run with a stream of messages on Zenoh, and viewers of its page, for the benchmark of the page."""

import contextlib
import http.client
import json
import os
import pathlib
import selectors
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time

FIELDS = 10
#: Messages between two changes of a field, of which each ends a violation and begins another one.
STEP = 1000
LIMIT = 600  # seconds for a run


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def name(number):
    return f"p_{number:04}"


def specification(count):
    """`count` properties over ten fields. A field has one value for which one of its properties is violated."""
    fields = ", ".join(f"x{i}: float" for i in range(FIELDS))
    lines = [f"topic s {{ {fields} }}"]
    for number in range(count):
        field, level = f"s.x{number % FIELDS}", number // FIELDS
        lines.append(f"property {name(number)} = {field} < {level}.25 or {field} > {level}.75")
    return "\n".join(lines) + "\n"


def write_messages(path, length, count):
    """A file of `length` messages: one of `count` properties is violated at a time, another one every STEP messages."""
    with path.open("w", encoding="utf-8") as file:
        for begin in range(0, length, STEP):
            violated = (begin // STEP * 7) % count
            values = {f"x{i}": -1.0 for i in range(FIELDS)}
            values[f"x{violated % FIELDS}"] = violated // FIELDS + 0.5
            line = json.dumps(values) + "\n"
            file.writelines([line] * min(STEP, length - begin))


class Monitor:
    """`rondel run` as a child. `kind` is `plain`, `store` (in memory, as the page has one) or `page`."""

    def __init__(self, program, count, kind, messages=None):
        self.files = contextlib.ExitStack()
        self.folder = pathlib.Path(self.files.enter_context(tempfile.TemporaryDirectory(prefix="rondel-bench-")))
        self.port, self.endpoint, self.program = free_port(), f"tcp/127.0.0.1:{free_port()}", program
        (self.folder / "spec.rondel").write_text(specification(count))
        lines = ["specification: spec.rondel", f'zenoh: {{ listen: ["{self.endpoint}"] }}', 'topics: { s: "zenoh:bench/s" }']
        if kind == "store":
            shared = self.files.enter_context(tempfile.TemporaryDirectory(prefix="rondel-bench-", dir="/dev/shm"))
            lines.append(f"store: {{ path: {shared}/verdicts.db, keep: {{ size: 32 MiB }}, slow_consumer: drop }}")
        if kind == "page":
            lines.append(f"page: 127.0.0.1:{self.port}")
        (self.folder / "rondel.yaml").write_text("\n".join(lines) + "\n")
        self.log = self.folder / "monitor.log"
        options = [f"--count={messages}"] if messages else []
        command = [program, "run", "--summary=json", *options, "rondel.yaml"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=log)
        end = time.monotonic() + 60
        while "ready" not in self.log.read_text():
            if self.process.poll() is not None or time.monotonic() > end:
                self.close()
                raise SystemExit(f"the monitor is not ready: {self.text}")
            time.sleep(0.01)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def cpu(self):
        """CPU seconds of all threads, by the clock of the process."""
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def memory(self):
        """Resident bytes: the median over two seconds."""
        found = []
        for _ in range(20):
            with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
                found += [int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS:")]
            time.sleep(0.1)
        return statistics.median(found)

    def publisher(self, file, rate=None):
        """A publisher of the lines of a file, as fast as they go or at a rate."""
        options = ["--rate", str(rate)] if rate else []
        command = [self.program, "publish", "--to", "zenoh:bench/s", "--zenoh-connect", self.endpoint, *options, str(file)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ended(self):
        """CPU seconds from start to end, and the summary, once all messages were checked."""
        end = time.monotonic() + LIMIT
        while True:
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                raise SystemExit(f"messages are missing after {LIMIT} s: {self.log.read_text()}")
            time.sleep(0.005)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        lines = [line for line in self.log.read_text().splitlines() if line.startswith("{")]
        if self.process.returncode or not lines:
            raise SystemExit(f"the monitor failed with status {self.process.returncode}: {self.log.read_text()}")
        return usage.ru_utime + usage.ru_stime, json.loads(lines[-1])

    def close(self):
        stop(self.process)
        self.text = self.log.read_text()
        self.files.close()


def stop(process):
    """Ends a child that has not ended yet."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def get(port, path):
    """Status and body of a request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", f"/api/v1/{path}")
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


class Viewers:
    """Plain clients of the page's events. Each loads the overview first, and again every 15 seconds, as a browser does.

    Without `reads`, none reads its events.
    """

    OVERVIEW = "overview?seconds=600&width=240&limit=1000&sort=name"
    AGAIN = 15

    def __init__(self, port, reads=True):
        self.port, self.reads = port, reads
        self.sockets, self.disconnected = [], 0
        self.selector, self.ends = selectors.DefaultSelector(), threading.Event()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def add(self, count):
        for _ in range(count):
            status, body = get(self.port, self.OVERVIEW)
            if status != 200:
                raise SystemExit(f"the overview is refused: {status} {body[:200]!r}")
            connected = socket.create_connection(("127.0.0.1", self.port), timeout=30)
            request = f"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAccept: text/event-stream\r\n\r\n"
            connected.sendall(request.encode())
            first = connected.recv(16)
            if b" 200" not in first:
                raise SystemExit(f"events are refused: {first!r}")
            self.sockets.append(connected)
            if self.reads:
                connected.setblocking(False)
                self.selector.register(connected, selectors.EVENT_READ)
            # Below the limit of 500 requests a second.
            time.sleep(0.01)
        return self

    def read(self):
        due = time.monotonic() + self.AGAIN
        while not self.ends.is_set():
            for key, _ in self.selector.select(0.1):
                self.take(key.fileobj)
            if self.reads and time.monotonic() >= due:
                due += self.AGAIN
                for _ in self.sockets:
                    with contextlib.suppress(OSError, http.client.HTTPException):
                        get(self.port, self.OVERVIEW)

    def take(self, connected):
        try:
            taken = connected.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            taken = b""
        if not taken:
            self.selector.unregister(connected)
            self.disconnected += 1

    def count_closed(self):
        """Number of viewers without `reads` whose connection the server has closed, behind what it had sent."""
        closed = 0
        for connected in self.sockets:
            connected.setblocking(False)
            try:
                while connected.recv(1 << 16):
                    pass
                closed += 1
            except BlockingIOError:
                pass
            except OSError:
                closed += 1
        return closed

    def close(self):
        self.ends.set()
        self.thread.join()
        for connected in self.sockets:
            connected.close()
        self.selector.close()
