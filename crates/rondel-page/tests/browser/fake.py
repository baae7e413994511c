"""A server that answers by the contract of docs/reference/openapi.yaml from generated states, for tests of the page alone."""

import http.server
import json
import mimetypes
import pathlib
import queue
import random
import socket
import threading
import time
import urllib.parse

from scenes import HISTORY, VERDICTS

ASSETS = pathlib.Path(__file__).resolve().parents[2] / "assets"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
QUIET = 5  # seconds after which a comment is sent


def bound(query, name, default):
    try:
        return float(query[name][0])
    except (KeyError, ValueError):
        return default


class Fake:
    """`now` is the server's time of day: `shift` seconds from that of this machine, or standing still at `at`."""

    def __init__(self, scene, shift=0.0, at=None, token=None, may_act=False, playground=None):
        self.shift, self.at, self.token, self.may_act, self.playground = shift, at, token, may_act, playground
        self.lock = threading.RLock()
        self.scene = scene(self.now()) if callable(scene) else scene
        self.streams = set()
        self.is_silent = False  # answers nothing, but keeps connections
        self.requests = []
        self.posts = []
        self.kind = "run"
        self.reasons = []
        self.behind_since = None
        self.stopping = threading.Event()
        self.server = None
        self.port = 0
        self.random = random.Random(3)

    def now(self):
        return self.at if self.at is not None else time.time() + self.shift

    # --- life

    def start(self):
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                fake.handle(self)

            def do_POST(self):
                fake.handle(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True
            connections = set()

            def process_request(self, request, address):
                self.connections.add(request)
                super().process_request(request, address)

            def handle_error(self, *_):
                pass

        Server.connections = set()
        self.stopping.clear()
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        threading.Thread(target=self.live, args=(self.stopping,), daemon=True).start()
        return self

    def stop(self):
        """Ends like a killed process: connections break."""
        self.stopping.set()
        self.stopping = threading.Event()
        self.server.shutdown()
        self.server.server_close()
        for connection in list(self.server.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.streams.clear()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def live(self, stopping):
        """Ten times a second: changes of verdicts, as the scene has them; once a second the state if it has changed."""
        step = 0
        latest = None
        names = list(self.scene.properties)
        while not stopping.wait(0.1):
            step += 1
            if self.is_silent:
                continue
            count = self.scene.changes_per_second
            changed = self.random.sample(names, min(len(names), max(1, count // 10))) if count >= 10 else []
            if changed:
                for name in changed:
                    self.set(name, self.random.choice(["satisfied", "violated", "satisfied", "inconclusive"]), send=False)
                self.changes(changed)
            if step % 10 == 0 and (state := {**self.state(), "now": None, "reached": None}) != latest:
                latest = state
                self.send("state", self.state())
            if step % (10 * QUIET) == 0:
                for stream in list(self.streams):
                    stream.put(": quiet\n\n")

    def set(self, name, verdict, parameters=None, send=True):
        """A verdict of a property, as of now."""
        with self.lock:
            prop, now = self.scene.properties[name], self.now()
            for instance in prop.instances[:1] if parameters is None else [i for i in prop.instances if i[0] == parameters]:
                instance[1:] = [verdict, now]
            prop.add(now, verdict)
        if send:
            self.changes([name])

    def changes(self, names):
        with self.lock:
            rows = [self.summary(self.scene.properties[name], None) for name in names]
            first = lambda row: next((i[0] for i in self.scene.properties[row["name"]].instances), {})
            changes = [{"property": row["name"], "parameters": first(row), "verdict": row["verdict"], "time": row["since"], "robustness": None} for row in rows if row["verdict"]]
        self.send("changes", {"now": self.now(), "reached": self.now(), "changes": changes, "has_more": False})

    def reset(self):
        self.send("reset", {})

    def end(self):
        self.send("end", {})

    def send(self, name, data):
        for stream in list(self.streams):
            stream.put(f"id: 1-{time.monotonic_ns()}\nevent: {name}\ndata: {json.dumps(data)}\n\n")

    # --- requests

    def handle(self, handler, body=None):
        path, _, query = handler.path.partition("?")
        query = urllib.parse.parse_qs(query)
        self.requests.append(handler.path)
        while self.is_silent and not self.stopping.is_set():
            time.sleep(0.05)
        if not path.startswith("/api/"):
            return self.asset(handler, path)
        if self.token and handler.headers.get("Authorization") != f"Bearer {self.token}":
            return self.reply(handler, 401, {"error": "the token is wrong"})
        parts = [urllib.parse.unquote(part) for part in path.removeprefix("/api/v1/").split("/")]
        if parts == ["events"]:
            return self.stream(handler)
        if body is not None:
            self.posts.append((parts, json.loads(body)))
            return self.act(handler, parts, json.loads(body))
        with self.lock:
            status, answer = self.answer(parts, query)
        self.reply(handler, status, answer)

    def reply(self, handler, status, answer):
        self.write(handler, status, "application/json", json.dumps(answer).encode())

    def write(self, handler, status, content_type, content):
        handler.send_response(status)
        for name, value in [("Content-Type", content_type), ("Content-Length", len(content)), ("Content-Security-Policy", POLICY), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer")]:
            handler.send_header(name, str(value))
        handler.end_headers()
        handler.wfile.write(content)

    def asset(self, handler, path):
        file = (ASSETS / (path.lstrip("/") or "index.html")).resolve()
        if not file.is_relative_to(ASSETS) or not file.is_file():
            return self.reply(handler, 404, {"error": "there is no such file"})
        content_type = {".js": "text/javascript", ".svg": "image/svg+xml"}.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "text/plain"
        return self.write(handler, 200, content_type + "; charset=utf-8", file.read_bytes())

    def stream(self, handler):
        mine = queue.Queue()
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        mine.put(f"id: 1-0\nevent: hello\ndata: {json.dumps({'now': self.now(), 'reached': self.now()})}\n\n")
        self.streams.add(mine)
        stopping = self.stopping
        try:
            while not stopping.is_set():
                try:
                    text = mine.get(timeout=0.2)
                except queue.Empty:
                    continue
                if not self.is_silent:
                    handler.wfile.write(text.encode())
                    handler.wfile.flush()
        except OSError:
            pass
        self.streams.discard(mine)
        handler.close_connection = True

    def act(self, handler, parts, body):
        if parts[0] == "playground":
            return self.reply(handler, *self.playground.answer(parts, body))
        if not self.may_act:
            return self.reply(handler, 403, {"error": "actions are not allowed"})
        if parts[-1] == "acknowledgement":
            prop = next((p for p in self.scene.properties.values() if self.id(p) == int(parts[1])), None)
            if prop.acknowledged_by and not body.get("replace"):
                return self.reply(handler, 409, {"error": f"{prop.acknowledged_by} takes care of it"})
            prop.acknowledged_by = body["operator"]
        kind = {"acknowledgement": "ack", "end": "unsilence"}.get(parts[-1], "silence")
        action = {"id": len(self.scene.actions) + 1, "at": self.now(), "operator": body["operator"], "kind": kind, "members": {k: v for k, v in body.items() if k != "operator"}}
        self.scene.actions.insert(0, action)
        return self.reply(handler, 200, action)

    def answer(self, parts, query):
        now = self.now()
        match parts:
            case ["overview"]:
                return 200, self.overview(query)
            case ["state"]:
                return 200, self.state()
            case ["topics"]:
                return 200, self.page(query, "topics", self.scene.topics)
            case ["topics", name]:
                found = next((t for t in self.scene.topics if t["name"] == name), None)
                message = self.scene.messages.get(name)
                wrapped = message and {"received": now - 0.2, "bytes": 182, "is_cut": False, "value": message, "error": None}
                return (200, {"now": now, "topic": found, "message": wrapped}) if found else (404, {"error": f"there is no topic `{name}`"})
            case ["losses"]:
                begin, end = bound(query, "from", now - 600), bound(query, "until", now)
                return 200, self.page(query, "losses", [loss for loss in self.scene.losses if loss["until"] >= begin and loss["from"] <= end])
            case ["incidents"]:
                return 200, {**self.page(query, "incidents", [v for v in self.violations() if v["status"] != "ended"]), "silences": self.scene.silences, "actions": self.scene.actions, "may_act": self.may_act}
            case ["specification"]:
                return 200, self.specification()
            case ["playground"] if self.playground:
                return 200, self.playground.description()
            case ["violations"]:
                return 200, self.page(query, "violations", self.violations(query.get("property", [None])[0], bound(query, "from", now - 600), bound(query, "until", now)))
            case ["properties", name, *rest] if name in self.scene.properties:
                return self.property(self.scene.properties[name], rest, query)
            case ["properties", name, *_]:
                return 404, {"error": f"there is no property `{name[:60]}`"}
        return 404, {"error": "there is no such address"}

    def page(self, query, name, rows):
        offset, limit = int(bound(query, "offset", 0)), int(bound(query, "limit", 100))
        return {"now": self.now(), "total": len(rows), "offset": offset, name: rows[offset : offset + limit]}

    def state(self):
        now = self.now()
        return {"now": now, "kind": self.kind, "name": self.scene.name, "began": now - HISTORY, "ended": None, "reached": now, "is_ready": not self.reasons, "reasons": self.reasons, "behind_since": self.behind_since, "messages": 1_482_113, "networks": [{"name": "zenoh", "is_connected": True, "outages": 1}],
                "sinks": [], "may_act": self.may_act, "has_playground": self.playground is not None, "build": {"version": "0.1.0", "features": []}}

    # --- properties

    @staticmethod
    def id(prop):
        return 1 + sum(prop.name.encode("utf-8", "replace")) * 7

    def summary(self, prop, timeline):
        counts = {key: sum(i[1] == key for i in prop.instances) for key in VERDICTS[:3]}
        is_open = prop.verdict == "violated"
        total = len(prop.instances)
        if not total:
            total, counts = int(prop.verdict is not None), {key: int(prop.verdict == key) for key in VERDICTS[:3]}
        return {"name": prop.name, "verdict": prop.verdict, "since": prop.times[-1] if prop.verdict else None, "severity": prop.severity, "requirement": prop.requirement, "networks": list(prop.networks), "instances": {"total": total, **counts},
                "violations": prop.count, "worst": None, "violation": self.id(prop) if is_open else None, "acknowledged_by": prop.acknowledged_by if is_open else None, "silenced_until": prop.silenced, "because_of": prop.because_of if is_open else None, "timeline": timeline}

    @staticmethod
    def timeline(prop, begin, end):
        times, verdicts = [], []
        for i, time_ in enumerate(prop.times):
            after = prop.times[i + 1] if i + 1 < len(prop.times) else float("inf")
            if after > begin and time_ <= end:
                times.append(max(time_, begin))
                verdicts.append(prop.verdicts[i])
        return {"times": times, "verdicts": verdicts}

    def overview(self, query):
        end = self.now()
        begin = end - int(query.get("seconds", ["600"])[0])
        width = bound(query, "width", 0)
        rows = [self.summary(p, self.timeline(p, begin, end) if width else None) for p in self.scene.properties.values()]
        counts = {key or "none": sum(p.verdict == key for p in self.scene.properties.values()) for key in VERDICTS}
        values = lambda key: sorted({row[key] for row in rows} - {""})
        shown = [row for row in rows if row["name"] in json.loads(query["properties"][0])] if "properties" in query else rows
        return {**self.page(query, "properties", shown), "reached": self.now(), "counts": counts, "severities": values("severity"), "requirements": values("requirement"), "networks": sorted({n for row in rows for n in row["networks"]}), "event": "1-0"}

    def property(self, prop, rest, query):
        now = self.now()
        begin, end = bound(query, "from", now - 600), bound(query, "until", now)
        width = max(2, int(bound(query, "width", 1000)))
        match rest:
            case []:
                atoms = [{"name": s.name, "spans": self.spans(prop.text, s.name), "value": s.at(now), "time": now - 0.1, "thresholds": list(s.thresholds)} for s in prop.signals]
                return 200, {"now": now, "reached": now, "summary": self.summary(prop, None), "text": prop.text, "line": self.line(prop), "attributes": [], "parameters": list(prop.parameters), "topics": [], "definitions": [], "atoms": atoms, "is_live": True}
            case ["instances"]:
                return 200, self.instances(prop, query)
            case ["verdicts"]:
                robustness = self.band(prop.robustness, begin, end, width) if prop.robustness else None
                losses = [loss for loss in self.scene.losses if loss["is_blind"] and loss["until"] >= begin and loss["from"] <= end]
                return 200, {"from": begin, "until": end, "reached": now, "timeline": self.timeline(prop, begin, end), "robustness": robustness, "losses": losses, "is_complete": begin >= now - HISTORY}
            case ["signals"]:
                return 200, {"from": begin, "until": end, "sampled": True, "signals": [self.signal(s, begin, end, width) for s in prop.signals]}
        return 404, {"error": "there is no such address"}

    @staticmethod
    def spans(text, name):
        spans, at = [], text.find(name)
        while at >= 0 and len(spans) < 20:
            spans.append({"start": at, "end": at + len(name)})
            at = text.find(name, at + len(name))
        return spans

    def line(self, prop):
        at = self.scene.specification.find(prop.text)
        return self.scene.specification.count("\n", 0, at) + 1 if at >= 0 else None

    def band(self, at, begin, end, width):
        """Least and greatest value of each interval, from three samples in it."""
        step = (end - begin) / width
        times = [begin + i * step for i in range(width)]
        samples = [[float(at(t + k * step / 3)) for k in range(3)] for t in times]
        return {"times": times, "least": [min(s) for s in samples], "greatest": [max(s) for s in samples]}

    def signal(self, signal, begin, end, width):
        row = {"name": signal.name, "kind": signal.kind, "thresholds": list(signal.thresholds), "times": [], "least": [], "greatest": [], "texts": []}
        if signal.kind == "number":
            return {**row, **self.band(signal.at, begin, end, min(width, 600))}
        latest = object()
        for i in range(min(width, 600)):
            time_ = begin + i * (end - begin) / min(width, 600)
            if (value := signal.at(time_)) != latest:
                latest = value
                row["times"].append(time_)
                row["texts" if signal.kind == "text" else "least"].append(value if signal.kind == "text" else int(value))
        row["greatest"] = list(row["least"])
        return row

    def instances(self, prop, query):
        rows = prop.instances
        needle, verdict, sort = (query.get(key, [""])[0] for key in ("search", "verdict", "sort"))
        if needle:
            rows = [row for row in rows if needle.lower() in json.dumps(row[0]).lower()]
        if verdict:
            rows = [row for row in rows if row[1] == verdict]
        if sort in ("", "worst"):
            rows = sorted(rows, key=lambda row: ["violated", "inconclusive", "satisfied"].index(row[1]))
        elif sort == "newest":
            rows = sorted(rows, key=lambda row: -row[2])
        shown = [{"parameters": row[0], "verdict": row[1], "since": row[2], "latest": self.now(), "violation": None, "worst": -0.03 if row[1] == "violated" and prop.robustness else None, "acknowledged_by": None} for row in rows]
        return {**self.page(query, "instances", shown), "counts": self.summary(prop, None)["instances"], "is_complete": True}

    # --- violations

    def violations(self, name=None, begin=None, end=None):
        found = [self.violation(prop, i) for prop in self.scene.properties.values() if name in (None, prop.name) for i, v in enumerate(prop.verdicts) if v == 1]
        found = [v for v in found if begin is None or (v["begin"] <= end and (v["end"] or end) >= begin)]
        return sorted(found, key=lambda v: -v["begin"])

    def violation(self, prop, i):
        begin = prop.times[i]
        end = prop.times[i + 1] if i + 1 < len(prop.times) else None
        values = lambda t: {s.name: s.at(t) for s in prop.signals}
        parameters = next((row[0] for row in prop.instances if row[1] == "violated"), {})
        explanation = [{"time": begin - 0.5, "values": values(begin - 0.5)}, {"time": begin, "values": values(begin)}] if prop.signals else []
        last = end if end is not None else self.now()
        worst = min(prop.robustness(begin + (last - begin) * k / 20) for k in range(21)) if prop.robustness else None
        return {"id": self.id(prop) if end is None else self.id(prop) * 1000 + i, "property": prop.name, "severity": prop.severity, "parameters": parameters, "status": "open" if end is None else "ended", "begin": begin, "last": last, "end": end, "ended_by": "satisfied" if end else None,
                "count": max(1, int((last - begin) * 4)), "seconds": last - begin, "worst": worst and round(worst, 3), "acknowledged_by": prop.acknowledged_by if end is None else None, "acknowledged_at": begin + 35 if prop.acknowledged_by and end is None else None, "acknowledged_until": None,
                "comment": "charging station 3 is out of order" if prop.acknowledged_by == "night shift" else None, "because_of": prop.because_of if end is None else None, "silenced_until": prop.silenced, "values": {}, "missing": None, "explanation": explanation}

    def specification(self):
        properties = []
        for prop in self.scene.properties.values():
            at = self.scene.specification.find(prop.text)
            if at >= 0:
                at += max(0, prop.text.find("property " + prop.name))
                properties.append({"name": prop.name, "start": at, "end": at + len(prop.text), "line": self.scene.specification.count("\n", 0, at) + 1})
        topics = []
        for row in self.scene.topics:
            at = self.scene.specification.find(f"topic {row['name']} ")
            if at >= 0:
                topics.append({"name": row["name"], "start": at, "end": at + 6, "line": self.scene.specification.count("\n", 0, at) + 1})
        return {"text": self.scene.specification, "properties": properties, "topics": topics}


if __name__ == "__main__":
    import sys

    import scenes

    fake = Fake(getattr(scenes, sys.argv[1] if len(sys.argv) > 1 else "fleet"), may_act=True)
    fake.port = int(sys.argv[2]) if len(sys.argv) > 2 else 8080
    print(fake.start().url, flush=True)
    threading.Event().wait()
