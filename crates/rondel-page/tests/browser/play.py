"""A playground for the fake server: it finds `nothing` wrong, and judges each property by its text."""

import math
import re

EXAMPLES = [
    {"name": "Limits", "about": "If speed exceeds 10, the brake must have been pressed.", "specification": "topic speed { value: float }\nproperty braking = speed.value <= 10\n", "messages": '{"topic": "speed", "time": 0, "data": {"value": 8}}\n'},
    {"name": "Answers", "about": "Every request is answered.", "specification": "topic ask\nproperty answered = on(ask)\n", "messages": '{"topic": "ask", "time": 0}\n'},
]


class Play:
    """`status` other than 200 is the answer to every check, with the reason in `reason`."""

    def __init__(self, file=None, recordings=("drive.jsonl",)):
        self.file, self.recordings = file, list(recordings)
        self.status, self.reason = 200, ""
        self.attempts, self.saved = [], []

    def description(self):
        return {"recordings": self.recordings, "file": self.file, "examples": EXAMPLES}

    def answer(self, parts, body):
        if parts[1:] == ["file"]:
            if self.file is None:
                return 403, {"error": "saving is not allowed"}
            self.saved.append(body["specification"])
            return 200, {"file": self.file}
        self.attempts.append(body)
        if self.status != 200:
            return self.status, {"error": self.reason}
        return 200, self.result(body["specification"])

    def result(self, text):
        wrong = [self.diagnostic(text, match) for match in re.finditer("nothing", text)]
        names = [] if wrong else re.findall(r"property (\S+)", text)
        signal = {"name": "speed.value", "kind": "number", "thresholds": [10.0], "times": [t / 10 for t in range(100)], "least": [8 + 4 * math.sin(t / 12) for t in range(100)], "texts": []}
        signals = [{**signal, "greatest": signal["least"]}] if names else []
        return {"diagnostics": wrong, "error": None, "remarks": [], "events": 100 if names else 0, "begin": 0.0 if names else None, "end": 9.9 if names else None, "properties": [self.property(name, text) for name in names], "signals": signals}

    @staticmethod
    def diagnostic(text, match):
        before = text[: match.start()]
        return {"severity": "error", "code": "E0202", "message": "unknown topic 'nothing'", "start": match.start(), "end": match.end(), "line": before.count("\n") + 1, "column": len(before) - before.rfind("\n"), "help": "declare it: <b>topic nothing</b>"}

    @staticmethod
    def property(name, text):
        is_violated = "<= 10" in text
        evidence = [{"time": 6.0, "after": False, "topic": "speed", "values": {"speed.value": "11.9", "brake.pressed": "false", name: None}}]
        violations = [{"time": 6.0, "certain": 8.0, "parameters": "", "values": {}, "evidence": evidence}] if is_violated else []
        return {"name": name, "severity": "", "outcome": "violated" if is_violated else "satisfied", "remark": "", "count": len(violations), "timeline": {"times": [0.0, 6.0, 7.0] if is_violated else [0.0], "verdicts": [0, 1, 0] if is_violated else [0]}, "violations": violations}
